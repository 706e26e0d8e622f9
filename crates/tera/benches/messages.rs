//! Loading definitions, and reading and writing messages: by definition as values, as a tree, and
//! field by field in place; and as generated structs.
//!
//! The definitions are synthetic, but match a real set in number and size; `mix` is one message of
//! each.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::mem::take;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::{Reader, Tree};
use worldwire_tera::message::typed::Typed;
use worldwire_tera::message::{Head, HeaderForm, Value, View};
use worldwire_tera::schema::{Definition, Dialect, ParseOptions, Plan, Set};

mod synthetic;
#[path = "synthetic/typed.rs"]
#[rustfmt::skip]
#[allow(clippy::all, reason = "generated code")]
#[allow(dead_code, unreachable_pub, reason = "generated for use in public modules")]
mod typed;

use synthetic::{NAMED, TYPED};
use typed::{CSyntheticStepsV1, SSyntheticBagV1, SSyntheticUserV1};

/// Number of messages of each kind.
const MESSAGES: usize = 50;
/// The measured messages: each of the named ones, and one of every definition.
const KINDS: [&str; 7] = ["user", "bag", "party", "skill", "chat", "steps", "mix"];

fn main() {
    divan::main();
}

/// Messages of a kind, each with its definition.
struct Work<'s> {
    messages: Vec<(&'s Definition, Vec<u8>)>,
}

impl<'s> Work<'s> {
    fn of(set: &'s Set, kind: &str) -> Self {
        let chosen = |definition: &&Definition| match NAMED.iter().find(|one| one.title == kind) {
            Some(one) => one.name == definition.name(),
            None => true,
        };
        let count = if kind == "mix" { 1 } else { MESSAGES };
        let messages = set.definitions().filter(chosen).flat_map(|definition| {
            synthetic::messages(definition, count).into_iter().map(move |bytes| (definition, bytes))
        });
        Self { messages: messages.collect() }
    }

    fn measure(&self, bencher: Bencher<'_, '_>, work: impl FnMut()) {
        let bytes: usize = self.messages.iter().map(|(_, bytes)| bytes.len()).sum();
        bencher
            .counter(BytesCount::new(bytes))
            .counter(ItemsCount::new(self.messages.len()))
            .bench_local(work);
    }

    fn each(&self, bencher: Bencher<'_, '_>, mut work: impl FnMut(&'s Plan, &[u8])) {
        self.measure(bencher, || {
            for (definition, bytes) in black_box(&self.messages) {
                work(definition.plan(), bytes);
            }
        });
    }
}

#[divan::bench(name = "tera/load", sample_count = 50)]
fn load(bencher: Bencher<'_, '_>) {
    let files = synthetic::files();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    let options = || ParseOptions { dialect: Some(Dialect::Toolbox), ..ParseOptions::default() };
    bencher.counter(BytesCount::new(bytes)).counter(ItemsCount::new(files.len())).bench_local(
        || {
            let set = Set::load(black_box(&files).iter().map(|(n, t)| (n, t)), options());
            assert_eq!(set.problems().count(), 0);
            set
        },
    );
}

#[divan::bench(name = "tera/check", args = KINDS)]
fn check(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    Work::of(&set, kind).each(bencher, |plan, bytes| {
        black_box(plan.check(bytes, HeaderForm::Plain).unwrap());
    });
}

#[divan::bench(name = "tera/decode_value", args = KINDS)]
fn decode_value(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    Work::of(&set, kind).each(bencher, |plan, bytes| {
        black_box(plan.read(bytes, HeaderForm::Plain).unwrap());
    });
}

#[divan::bench(name = "tera/decode_tree", args = KINDS)]
fn decode_tree(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    let mut kept = Tree::new();
    work.measure(bencher, || {
        for (definition, bytes) in black_box(&work.messages) {
            let mut reader = Reader::traced("message", bytes, take(&mut kept).recycle());
            definition.plan().decode(&mut reader, HeaderForm::Plain).unwrap();
            kept = black_box(reader.finish()).recycle();
        }
    });
}

/// The names of three fields for each message.
fn asked(work: &Work<'_>) -> Vec<Vec<String>> {
    let names = |definition: &&Definition| -> Vec<String> {
        let fields = definition.plan().fields();
        if let Some(one) = NAMED.iter().find(|one| one.name == definition.name()) {
            return one.asked.map(str::to_owned).into();
        }
        let some = [0, fields.len() / 2, fields.len().saturating_sub(1)];
        some.iter().filter_map(|at| Some(fields.get(*at)?.name().to_owned())).collect()
    };
    work.messages.iter().map(|(definition, _)| names(definition)).collect()
}

/// Three fields by name.
#[divan::bench(name = "tera/view_names", args = KINDS)]
fn view_names(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    let asked = asked(&work);
    work.measure(bencher, || {
        for ((definition, bytes), asked) in black_box(&work.messages).iter().zip(&asked) {
            let view = View::new(definition.plan(), bytes, HeaderForm::Plain).unwrap();
            for name in asked {
                let _ = black_box(view.fields().get(name).unwrap());
            }
        }
    });
}

/// The same fields by index, looked up once.
#[divan::bench(name = "tera/view_slots", args = KINDS)]
fn view_slots(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    let slots = |((definition, bytes), asked): (&(&Definition, Vec<u8>), Vec<String>)| {
        let view = View::new(definition.plan(), bytes, HeaderForm::Plain).unwrap();
        asked.iter().map(|name| view.fields().slot(name).unwrap()).collect::<Vec<usize>>()
    };
    let slots: Vec<_> = work.messages.iter().zip(asked(&work)).map(slots).collect();
    work.measure(bencher, || {
        for ((definition, bytes), slots) in black_box(&work.messages).iter().zip(&slots) {
            let view = View::new(definition.plan(), bytes, HeaderForm::Plain).unwrap();
            for slot in slots {
                let _ = black_box(view.fields().at(*slot).unwrap());
            }
        }
    });
}

#[divan::bench(name = "tera/encode_value", args = KINDS)]
fn encode_value(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    let values: Vec<(&Plan, Head, Value<'static>)> = work
        .messages
        .iter()
        .map(|(definition, bytes)| {
            let message = definition.plan().read(bytes, HeaderForm::Plain).unwrap();
            (definition.plan(), message.head(), message.fields().clone().into_owned())
        })
        .collect();
    let mut out = Vec::new();
    work.measure(bencher, || {
        out.clear();
        for (plan, head, value) in black_box(&values) {
            plan.encode(*head, value, &mut out).unwrap();
        }
        black_box(&out);
    });
}

fn decode_as<'d, T: Typed<'d>>(bencher: Bencher<'_, '_>, work: &'d Work<'_>) {
    work.measure(bencher, || {
        for (_, bytes) in black_box(&work.messages) {
            black_box(T::decode(bytes, HeaderForm::Plain).unwrap());
        }
    });
}

fn encode_as<'d, T: Typed<'d>>(bencher: Bencher<'_, '_>, work: &'d Work<'_>) {
    let decode = |(_, bytes): &'d (&Definition, Vec<u8>)| T::decode(bytes, HeaderForm::Plain);
    let messages: Vec<(Head, T)> = work.messages.iter().map(|one| decode(one).unwrap()).collect();
    let mut out = Vec::new();
    work.measure(bencher, || {
        out.clear();
        for (head, message) in black_box(&messages) {
            message.encode(*head, &mut out).unwrap();
        }
        black_box(&out);
    });
}

macro_rules! typed {
    ($function:ident, $bencher:expr, $kind:expr, $work:expr) => {
        match $kind {
            "user" => $function::<SSyntheticUserV1<'_>>($bencher, $work),
            "bag" => $function::<SSyntheticBagV1<'_>>($bencher, $work),
            "steps" => $function::<CSyntheticStepsV1>($bencher, $work),
            other => panic!("no struct for {other}"),
        }
    };
}

#[divan::bench(name = "tera/decode_typed", args = TYPED)]
fn decode_typed(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    typed!(decode_as, bencher, kind, &work);
}

#[divan::bench(name = "tera/encode_typed", args = TYPED)]
fn encode_typed(bencher: Bencher<'_, '_>, kind: &str) {
    let set = synthetic::set();
    let work = Work::of(&set, kind);
    typed!(encode_as, bencher, kind, &work);
}
