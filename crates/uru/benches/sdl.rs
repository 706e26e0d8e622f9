//! The performance of parsing descriptors, converting blobs, and updating states.

use std::hint::black_box;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::json::json;
use worldwire_core::{Reader, Sampler, Tree, Writer};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, MergePolicy, ObjectState, StateDb, UpdateOrigin, hook};
use worldwire_uru::types::{
    Location, LocationFlags, SafeString, SequenceNumber, UnifiedTime, Uoid,
};

fn main() {
    divan::main();
}

/// Roughly the descriptors of a shard: a hundred with forty variables each, plus those in the
/// samples.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = [
        include_str!("../../../samples/sdl/Fernhollow.sdl"),
        include_str!("../../../samples/sdl/things.sdl"),
    ]
    .concat();
    for number in 0..100 {
        text += &format!("STATEDESC madeUp{number}\n{{\n    VERSION 1\n");
        for variable in 0..40 {
            let kind = ["BOOL", "BYTE", "INT"][variable % 3];
            text += &format!(
                "    VAR {kind:5} madeUpVariable{variable}[1] DEFAULT={} DEFAULTOPTION=VAULT\n",
                variable % 2
            );
        }
        text += "}\n\n";
    }
    text
});

static SET: LazyLock<Descriptors> = LazyLock::new(|| Descriptors::load([("made-up.sdl", &**TEXT)]));

fn now() -> UnifiedTime {
    UnifiedTime { seconds: 1_700_000_000, microseconds: 0 }
}

/// A client's update of two variables of an object.
static UPDATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let changed = |value| json!({"hint": "", "flags": ["Dirty", "WantTimeStamp"], "value": value});
    let json = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": "madeUp70", "version": 1,
        "variables": {"madeUpVariable3": changed(json!(true)), "madeUpVariable5": changed(json!(9))},
    });
    let bytes = Blob::from_json(&SET, &json).and_then(|blob| blob.to_bytes());
    bytes.unwrap_or_else(|error| panic!("{error}"))
});

/// An avatar's wardrobe with all its records.
static WARDROBE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let garment = |red: u8| json!({"variables": {"tint": {"hint": "", "flags": ["Dirty"], "value": [red, 2, 3]}}});
    let json = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": "fhWardrobe", "version": 1,
        "variables": {
            "worn": {"hint": "", "length": 8, "elements": (0..8).map(garment).collect::<Vec<_>>()},
            "hat": {"hint": "", "elements": [garment(1)]},
            "list": {"hint": "", "flags": ["Dirty"], "value": (0..40).collect::<Vec<_>>()},
            "mood": {"hint": "", "flags": ["Dirty"], "value": 4},
        },
    });
    let bytes = Blob::from_json(&SET, &json).and_then(|blob| blob.to_bytes());
    bytes.unwrap_or_else(|error| panic!("{error}"))
});

fn bytes_of(name: &str) -> &'static [u8] {
    if name == "update" { &UPDATE } else { &WARDROBE }
}

const BLOBS: [&str; 2] = ["update", "wardrobe"];

fn decode(bytes: &[u8]) -> Blob<'_> {
    Blob::decode(&SET, &mut Reader::new(bytes)).unwrap_or_else(|error| panic!("{error}"))
}

mod schema {
    use super::*;

    /// Parses all of a shard's descriptors and computes their layouts.
    #[divan::bench]
    fn load(bencher: Bencher<'_, '_>) {
        bencher
            .counter(BytesCount::of_str(TEXT.as_str()))
            .bench(|| Descriptors::load([("made-up.sdl", black_box(&**TEXT))]));
    }
}

mod blob {
    use super::*;

    #[divan::bench(args = BLOBS)]
    fn plain(bencher: Bencher<'_, '_>, name: &str) {
        let bytes = bytes_of(name);
        bencher.counter(BytesCount::of_slice(bytes)).bench(|| decode(black_box(bytes)));
    }

    #[divan::bench(args = BLOBS)]
    fn tree(bencher: Bencher<'_, '_>, name: &str) {
        let bytes = bytes_of(name);
        let mut kept = Tree::new();
        bencher.counter(BytesCount::of_slice(bytes)).bench_local(|| {
            let mut reader = Reader::traced("sdl", black_box(bytes), core::mem::take(&mut kept));
            let decoded = Blob::decode(&SET, &mut reader).is_ok();
            kept = reader.finish();
            decoded
        });
    }

    #[divan::bench(args = BLOBS)]
    fn encode(bencher: Bencher<'_, '_>, name: &str) {
        let blob = decode(bytes_of(name));
        let mut kept = Vec::new();
        bencher.counter(BytesCount::of_slice(bytes_of(name))).bench_local(|| {
            kept.clear();
            let mut writer = Writer::append_to(core::mem::take(&mut kept));
            let encoded = black_box(&blob).encode(&mut writer).is_ok();
            kept = writer.into_bytes();
            encoded
        });
    }
}

mod state {
    use super::*;

    const OBJECTS: u32 = 500;

    fn object(number: u32) -> Uoid<'static> {
        Uoid {
            location: Location {
                sequence_number: SequenceNumber(0x21 + number % 7),
                flags: LocationFlags::default(),
            },
            load_mask: None,
            class_index: 1,
            object_id: number,
            name: SafeString::from(&*format!("madeUpObject{number}")),
            clone: None,
        }
    }

    /// Decodes and merges an update for each of 500 objects that already have a state.
    #[divan::bench]
    fn merge_500(bencher: Bencher<'_, '_>) {
        let objects: Vec<_> = (0..OBJECTS).map(object).collect();
        let mut db = StateDb::default();
        let origin = UpdateOrigin { persist: true, avatar: false, player_id: 10_190 };
        let bytes = &**UPDATE;
        let mut merge = || {
            for object in &objects {
                let update = decode(black_box(bytes));
                let merged = db.apply(object, &update, origin, MergePolicy::OURS, &now());
                assert!(merged.is_ok());
            }
        };
        merge();
        bencher.counter(ItemsCount::new(OBJECTS)).bench_local(merge);
    }

    /// The initial state for a joining client: 500 states as blobs.
    #[divan::bench]
    fn send_500(bencher: Bencher<'_, '_>) {
        let mut db = StateDb::default();
        for number in 0..OBJECTS {
            let update = decode(&UPDATE);
            let merged = db.apply(
                &object(number),
                &update,
                UpdateOrigin::default(),
                MergePolicy::OURS,
                &now(),
            );
            assert!(merged.is_ok());
        }
        bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| {
            let mut writer = Writer::new();
            for stored in db.iter() {
                assert!(stored.state.to_blob().encode(&mut writer).is_ok());
            }
            writer.into_bytes()
        });
    }

    /// Merges the state of an instance with the shard's settings, 40 variables each.
    #[divan::bench]
    fn merge_hook(bencher: Bencher<'_, '_>) {
        let Some(descriptor) = SET.newest("madeUp3") else { panic!("no descriptor") };
        let state = |seed| ObjectState::of(&Blob::sample(&descriptor, &mut Sampler::new(seed)));
        let (instance, shard) = (state(1), state(2));
        bencher.bench(|| hook::merged(black_box(&instance), black_box(&shard)));
    }
}
