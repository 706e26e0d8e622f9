//! Fuzz targets for descriptors, blobs and states.

use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{Target, decode};
use worldwire_core::{Limits, Reader, Sampler};

use super::{DESCRIPTORS as SET, TEXTS};
use crate::schema::{Descriptors, parse};
use crate::sdl::{Blob, MergePolicy, ObjectState, missing_records};
use crate::types::UnifiedTime;

/// An SDL file. Formatting valid descriptors must yield text that parses to the same descriptors.
fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = parse("input", &text);
    for problem in &parsed.problems {
        assert!(!problem.to_string().is_empty());
    }
    for statement in parsed.statements.iter().filter(|statement| statement.valid) {
        let shown = statement.definition.to_string();
        let again = parse("shown", &shown);
        let same = again.statements.first().is_some_and(|one| {
            one.valid && one.definition == statement.definition && again.statements.len() == 1
        });
        assert!(same, "{shown}");
    }
    let set = Descriptors::load([("input", &text)]);
    for descriptor in set.iter() {
        let found = set.get(descriptor.name(), descriptor.version());
        assert_eq!(found.as_ref(), Some(&descriptor));
    }
}

/// A blob. Decoded blobs must give the same result when traced, encode to the same bytes, survive
/// conversion to JSON, and convert to a state.
fn blob_of(set: &Descriptors, data: &[u8]) {
    let plain = |reader: &mut _| Blob::decode(set, reader);
    let traced = |reader: &mut _| Blob::decode(set, reader);
    let decoded = decode(data, &Limits::DEFAULT, Style { safe: true }, plain, traced);
    let used = decoded.used;
    let again = |json: &Json| Blob::from_json(set, json)?.to_bytes();
    let Some(blob) = decoded.encodes_back(Blob::to_bytes, again) else { return };
    let head = used.len() - record_length(set, &blob);
    assert_eq!(missing_records(&blob.descriptor, &used[head..]), None, "nothing is missing");
    let state = ObjectState::of(&blob);
    assert!(state.diff(&state).is_empty());
    holds(set, &state);
}

/// The size of a blob's record in bytes.
fn record_length(set: &Descriptors, blob: &Blob<'_>) -> usize {
    let bytes = blob.to_bytes().unwrap_or_default();
    let mut reader = Reader::new(&bytes);
    let head = crate::sdl::BlobHeader::decode_fields(&mut reader);
    assert!(head.is_ok_and(|head| set.find(&head.name.to_bytes(), head.version).is_ok()));
    reader.remaining()
}

/// A state that fits into a blob must decode to the same state.
fn holds(set: &Descriptors, state: &ObjectState) {
    let bytes = state.to_blob().to_bytes();
    let bytes = bytes.unwrap_or_else(|error| panic!("{state:?}: {error}"));
    let again = Blob::decode(set, &mut Reader::new(&bytes));
    let again = again.unwrap_or_else(|error| panic!("{state:?}: {error}"));
    assert_eq!(ObjectState::of(&again), *state);
}

fn blob(data: &[u8]) {
    blob_of(&SET, data);
}

/// An SDL file, a zero byte, and a blob that may match one of the file's descriptors.
fn both(data: &[u8]) {
    let split = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (text, blob) = data.split_at(split);
    let set = Descriptors::load([("input", String::from_utf8_lossy(text))]);
    blob_of(&set, blob.get(1..).unwrap_or_default());
}

/// Two blobs, the first preceded by its length: a state, and an update to it.
fn update(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (base, update) = rest.split_at(length);
    let decode = |bytes| Blob::decode(&SET, &mut Reader::new(bytes));
    let (Ok(base), Ok(update)) = (decode(base), decode(update)) else { return };
    let now = UnifiedTime { seconds: 1_700_000_000, microseconds: 0 };
    for rule in [MergePolicy::OURS, MergePolicy::CLIENT, MergePolicy::MOSS, MergePolicy::DIRTSAND] {
        let before = ObjectState::of(&base);
        let mut after = before.clone();
        if after.apply(&update, rule, &now).is_err() {
            assert_eq!(after, before, "a refused update changed the state");
            continue;
        }
        holds(&SET, &after);
        let mut json = String::new();
        for change in before.diff(&after) {
            assert!(!change.to_string().is_empty());
            json.clear();
            change.write_json(&mut json);
            assert!(serde_json::from_str::<Json>(&json).is_ok(), "{json}");
        }
        let mut again = after.clone();
        assert_eq!(again.apply(&update, rule, &now), Ok(()));
        assert_eq!(again, after, "applying the update again changed the state");
        for version in SET.versions(after.descriptor().name()) {
            holds(&SET, &after.upgrade(&version));
        }
    }
}

/// Arbitrary JSON as a blob: it either encodes or fails with an error, and encoded blobs decode.
fn json(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Json>(data) else { return };
    let Ok(blob) = Blob::from_json(&SET, &json) else { return };
    if let Ok(bytes) = blob.to_bytes() {
        let again = Blob::decode(&SET, &mut Reader::new(&bytes));
        let again = again.unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(again.to_bytes().as_deref(), Ok(&*bytes));
    }
}

/// A few blobs for every descriptor.
fn samples() -> Vec<Blob<'static>> {
    let of = |descriptor| {
        (0..4).map(move |seed| Blob::sample(&descriptor, &mut Sampler::sized(seed, 4)))
    };
    SET.iter().flat_map(of).collect()
}

fn blobs() -> Vec<Vec<u8>> {
    samples().iter().filter_map(|blob| blob.to_bytes().ok()).collect()
}

pub(super) static TARGETS: &[Target] = &[
    Target {
        name: "uru_sdl_text",
        run: text,
        seeds: || TEXTS.clone().map(String::into_bytes).to_vec(),
    },
    Target { name: "uru_sdl_blob", run: blob, seeds: blobs },
    Target {
        name: "uru_sdl_descriptors_and_blob",
        run: both,
        seeds: || {
            let texts = TEXTS.concat();
            blobs().iter().map(|blob| [texts.as_bytes(), &[0], blob].concat()).collect()
        },
    },
    Target {
        name: "uru_sdl_update",
        run: update,
        seeds: || {
            let blobs = blobs();
            let pairs = blobs.iter().zip(blobs.iter().skip(1));
            let join = |(base, update): (&Vec<u8>, &Vec<u8>)| {
                let length = u16::try_from(base.len()).ok()?;
                Some([&length.to_le_bytes()[..], base, update].concat())
            };
            pairs.filter_map(join).collect()
        },
    },
    Target {
        name: "uru_sdl_json",
        run: json,
        seeds: || {
            let text = |blob: &Blob<'_>| blob.to_json(&SET).ok().map(|json| json.to_string());
            samples().iter().filter_map(text).map(String::into_bytes).collect()
        },
    },
];
