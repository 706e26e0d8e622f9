//! Decoding and encoding sections: creates, updates of properties, and movements, as values and as
//! trees. Items are operations.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::mem::take;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::{Reader, Sampler, Side, Tree, Writer};
use worldwire_mxo::message::{
    Context, Create, FIRST_VIEW, Movement, Operation, Properties, Rules, Section, Update, Viewed,
};
use worldwire_mxo::replica::Replica;
use worldwire_mxo::schema::{Objects, Order, Tables};

/// The operations per section, which roughly fill a datagram of 1,300 bytes.
const OPERATIONS: u16 = 24;
/// The number of different sections to decode.
const SECTIONS: u64 = 64;
/// Doors, other players with many properties, and NPC movements.
const KINDS: [&str; 5] =
    ["create_door", "create_player", "update_door", "update_player", "movement"];

fn main() {
    divan::main();
}

struct Work {
    objects: Objects,
    views: BTreeMap<u16, Viewed>,
    sections: Vec<Vec<u8>>,
}

impl Work {
    fn of(kind: &str) -> Self {
        let objects = Objects::built_in();
        let name = if kind.ends_with("door") { "door364" } else { "player" };
        let name = if kind == "movement" { "npc" } else { name };
        let class = objects.class_named(name).unwrap().0;
        let ids = FIRST_VIEW..FIRST_VIEW + OPERATIONS;
        let views = ids.clone().map(|view| (view, class.into())).collect();
        let section = |seed| {
            let mut sampler = Sampler::new(seed);
            let operations =
                ids.clone().map(|view| operation(kind, &objects, class.into(), view, &mut sampler));
            let section = Section { operations: operations.collect(), unterminated: false };
            let mut writer = Writer::new();
            section.encode(&objects, Side::Server, &mut writer).unwrap();
            writer.into_bytes()
        };
        let sections = (0..SECTIONS).map(section).collect();
        Self { objects, views, sections }
    }

    fn context(&self) -> Context<'_, '_> {
        Context::server(&self.objects, &self.views)
    }

    fn measure(&self, bencher: Bencher<'_, '_>, work: impl FnMut()) {
        let bytes: usize = self.sections.iter().map(Vec::len).sum();
        bencher
            .counter(BytesCount::new(bytes))
            .counter(ItemsCount::new(self.sections.len() * usize::from(OPERATIONS)))
            .bench_local(work);
    }
}

fn operation(
    kind: &str,
    objects: &Objects,
    viewed: Viewed,
    view: u16,
    sampler: &mut Sampler,
) -> Operation<'static> {
    let class = objects.class(viewed.class).unwrap();
    let seq = sampler.bits().to_le_bytes()[0];
    let order = class.updates().order(view).unwrap();
    match kind {
        // Position, orientation and state; for players, a third of all properties.
        "create_door" => {
            Operation::Create(Create::of_world(415, 7, viewed.class, seq, view).with(some(
                class.create(),
                &[2, 7, 13],
                sampler,
            )))
        }
        "create_player" => {
            let all: Vec<u16> = (0..75).step_by(3).collect();
            let properties = some(class.create(), &all, sampler);
            Operation::Create(Create::dynamic(12, viewed.class, seq, view).with(properties))
        }
        "update_door" => {
            Operation::Update(Update::of(view, viewed.class, some(order, &[8], sampler)))
        }
        "update_player" => Operation::Update(Update::of(
            view,
            viewed.class,
            some(order, &[8, 18, 23, 24], sampler),
        )),
        _ => Operation::Update(Update {
            view,
            class: viewed.class,
            guess: false,
            block1: None,
            movement: Some(Movement {
                action: Some(1),
                yaw: Some(seq),
                position: Some([1.0, 2.0, 3.0]),
                ..Movement::default()
            }),
            properties: None,
        }),
    }
}

fn some(order: &Order, indices: &[u16], sampler: &mut Sampler) -> Properties<'static> {
    let mut properties = Properties::new();
    for index in indices {
        let size = order.slot(usize::from(*index)).unwrap().kind().size();
        properties.set(*index, sampler.bytes(size.into()));
    }
    properties
}

#[divan::bench(name = "mxo/decode", args = KINDS)]
fn decode(bencher: Bencher<'_, '_>, kind: &str) {
    let work = Work::of(kind);
    work.measure(bencher, || {
        for bytes in black_box(&work.sections) {
            black_box(Section::decode(&mut Reader::new(bytes), &work.context()).unwrap());
        }
    });
}

#[divan::bench(name = "mxo/decode_tree", args = KINDS)]
fn decode_tree(bencher: Bencher<'_, '_>, kind: &str) {
    let work = Work::of(kind);
    let mut kept = Tree::new();
    work.measure(bencher, || {
        for bytes in black_box(&work.sections) {
            let mut reader = Reader::traced("section", bytes, take(&mut kept).recycle());
            Section::decode(&mut reader, &work.context()).unwrap();
            kept = black_box(reader.finish()).recycle();
        }
    });
}

#[divan::bench(name = "mxo/encode", args = KINDS)]
fn encode(bencher: Bencher<'_, '_>, kind: &str) {
    let work = Work::of(kind);
    let read = |bytes| Section::decode(&mut Reader::new(bytes), &work.context()).unwrap();
    let sections: Vec<Section<'_>> = work.sections.iter().map(|bytes| read(bytes)).collect();
    let mut out = Vec::new();
    work.measure(bencher, || {
        out.clear();
        let mut writer = Writer::append_to(take(&mut out));
        for section in black_box(&sections) {
            section.encode(&work.objects, Side::Server, &mut writer).unwrap();
        }
        out = writer.into_bytes();
        black_box(&out);
    });
}

/// Creates all views, then decodes and applies the sections.
#[divan::bench(name = "mxo/replica", args = ["update_door", "update_player"])]
fn replica(bencher: Bencher<'_, '_>, kind: &str) {
    let work = Work::of(kind);
    let mut replica = Replica::new(Arc::new(Objects::built_in()));
    let creates = Work::of(&kind.replace("update", "create"));
    if let Some(first) = creates.sections.first() {
        replica.receive(first, Side::Server, Rules::STRICT).unwrap();
    }
    work.measure(bencher, || {
        for bytes in black_box(&work.sections) {
            black_box(replica.receive(bytes, Side::Server, Rules::STRICT).unwrap());
        }
    });
}

/// Parses and compiles the built-in tables.
#[divan::bench(name = "mxo/tables")]
fn tables(bencher: Bencher<'_, '_>) {
    let text = Tables::built_in().print();
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        let mut tables = Tables::new();
        assert!(tables.read("built in", black_box(&text)).is_empty());
        tables.compile()
    });
}
