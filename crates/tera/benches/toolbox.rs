//! Compares our performance with that of tera-toolbox's parser under node, in one run.
//!
//! `cargo bench -p worldwire-tera --bench toolbox -- PARSER`, where PARSER is the parser, or a
//! directory with `node_modules/tera-data-parser`; without it only our figures are measured. If
//! `WORLDWIRE_TERA_DATA` names a directory with `toolbox-2022/definitions` and
//! `real-definition-vectors/real_definitions.jsonl`, five messages of real definitions and the mix
//! of all vectors are measured; otherwise synthetic messages.
//!
//! Both sides read the same bytes. V8 warms up for three seconds on the mix and for one second on
//! anything else; with less, it has not compiled its 836 parsers yet. Then both sides take turns,
//! nine slices each, and the best is reported. The last 256 results of the parser are kept alive,
//! and so are our last 256 trees of values. Tapes and output buffers are reused, as programs with
//! many messages do.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use worldwire_core::json::{Json, json};
use worldwire_tera::message::{
    Datum, Head, HeaderForm, Item, RecordView, ScalarValue, Tape, TapeRecord, Value, View,
};
use worldwire_tera::schema::plan::{Field, FieldKind};
use worldwire_tera::schema::{Definition, Dialect, ParseOptions, Plan, Set};
use worldwire_tera::types::Scalar;

#[path = "synthetic/cases.rs"]
mod cases;
#[allow(dead_code, reason = "the other benchmarks use the rest")]
mod synthetic;

/// The length of a slice, and the number of slices.
const SLICE: Duration = Duration::from_millis(60);
const SLICES: usize = 9;
/// Number of results kept alive.
const KEPT: usize = 256;
const FORM: HeaderForm = HeaderForm::Plain;

/// Messages of a kind, each with its definition and that definition's text.
struct Kind<'s> {
    title: String,
    messages: Vec<Message<'s>>,
}

#[derive(Clone)]
struct Message<'s> {
    definition: &'s Definition,
    text: &'s str,
    bytes: Vec<u8>,
}

fn main() {
    let parser = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let data = std::env::var_os("WORLDWIRE_TERA_DATA").map(PathBuf::from);
    let files: BTreeMap<String, String> = match &data {
        Some(data) => cases::files(&data.join("toolbox-2022/definitions")),
        None => synthetic::files().into_iter().collect(),
    };
    let options = ParseOptions { dialect: Some(Dialect::Toolbox), ..ParseOptions::default() };
    let set = Set::load(&files, options);
    let message = |file: &str, bytes| {
        let (definition, text) = (set.by_file(file)?, files.get(file)?);
        Some(Message { definition, text, bytes })
    };
    let kinds: Vec<Kind<'_>> = match &data {
        Some(data) => cases::real(&set, data),
        None => cases::synthetic(&set),
    }
    .into_iter()
    .map(|(title, messages)| {
        let messages = messages.into_iter().filter_map(|(file, bytes)| message(&file, bytes));
        Kind { title, messages: messages.collect() }
    })
    .collect();
    println!("nanoseconds per message, and in brackets how many times faster than the parser");
    for kind in &kinds {
        let bytes = kind.messages.iter().map(|message| message.bytes.len()).sum::<usize>();
        let count = kind.messages.len();
        println!("{}: {count} messages of {} bytes on average", kind.title, bytes / count.max(1));
        decode(kind, parser.as_deref());
        encode(kind, parser.as_deref());
    }
}

fn decode(kind: &Kind<'_>, parser: Option<&str>) {
    let (messages, theirs) = both(kind, parser, "parse");
    let (mut tape, mut looked_at) = (Tape::new(), Tape::new());
    let mut values = vec![Value::Absent; KEPT];
    let asked: Vec<[usize; 3]> = messages.iter().map(|one| asked(one.definition.plan())).collect();
    let plan = |index: usize| (messages[index].definition.plan(), messages[index].bytes.as_slice());
    let count = messages.len();
    let rows: Vec<Row<'_>> = vec![
        (
            "decode onto a tape",
            count,
            Box::new(|_, index| {
                let (plan, bytes) = plan(index);
                plan.read_into(black_box(bytes), FORM, &mut tape).unwrap();
                black_box(&tape);
            }),
        ),
        (
            "the same, and visit every field",
            count,
            Box::new(|_, index| {
                let (plan, bytes) = plan(index);
                plan.read_into(black_box(bytes), FORM, &mut looked_at).unwrap();
                let mut sum = Sum::default();
                sum.record(looked_at.fields(plan));
                black_box(sum.0);
            }),
        ),
        (
            "decode to a tree of values",
            count,
            Box::new(|call, index| {
                let (plan, bytes) = plan(index);
                let message = plan.read(black_box(bytes), FORM).unwrap();
                values[call % KEPT] = message.fields().clone();
            }),
        ),
        (
            "check, and view three fields",
            count,
            Box::new(|_, index| {
                let (plan, bytes) = plan(index);
                let (view, notes) = View::checked(plan, black_box(bytes), FORM).unwrap();
                black_box(notes);
                let mut sum = Sum::default();
                for slot in asked[index] {
                    sum.glance(view.fields().at(slot).unwrap());
                }
                black_box(sum.0);
            }),
        ),
        (
            "view all fields, one by one",
            count,
            Box::new(|_, index| {
                let (plan, bytes) = plan(index);
                let mut sum = Sum::default();
                sum.view(View::new(plan, black_box(bytes), FORM).unwrap().fields());
                black_box(sum.0);
            }),
        ),
    ];
    compare("parse", rows, theirs);
}

fn encode(kind: &Kind<'_>, parser: Option<&str>) {
    let (messages, theirs) = both(kind, parser, "write");
    let (mut tapes, mut numbers) = (Vec::new(), Vec::new());
    let mut values: Vec<(Head, Value<'static>)> = Vec::new();
    for Message { definition, bytes, .. } in &messages {
        let mut tape = Tape::new();
        definition.plan().read_into(bytes, FORM, &mut tape).unwrap();
        tape.head_mut();
        numbers.push(tape.clone());
        move_bodies(&mut tape, definition.plan(), definition.plan().fields(), "");
        tapes.push(tape);
        let message = definition.plan().read(bytes, FORM).unwrap();
        values.push((message.head(), message.fields().clone().into_owned()));
    }
    let (mut out, mut same, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let plan = |index: usize| messages[index].definition.plan();
    let count = messages.len();
    let rows: Vec<Row<'_>> = vec![
        (
            "encode from a tape, numbers changed",
            count,
            Box::new(|_, index| {
                same.clear();
                black_box(&numbers[index]).encode(plan(index), &mut same).unwrap();
                black_box(&same);
            }),
        ),
        (
            "encode from a tape, re-encoding everything",
            count,
            Box::new(|_, index| {
                out.clear();
                black_box(&tapes[index]).encode(plan(index), &mut out).unwrap();
                black_box(&out);
            }),
        ),
        (
            "encode from a tree of values",
            count,
            Box::new(|_, index| {
                again.clear();
                let (head, value) = &values[index];
                plan(index).encode(*head, black_box(value), &mut again).unwrap();
                black_box(&again);
            }),
        ),
    ];
    compare("write", rows, theirs);
}

/// Sets the first text, byte string or list to the value it already has, which forces everything to
/// be re-encoded. Returns false if there is no such field.
fn move_bodies(tape: &mut Tape, plan: &Plan, fields: &[Field], within: &str) -> bool {
    fields.iter().any(|field| {
        let path = format!("{within}{}", field.name());
        match (field.kind(), tape.fields(plan).find(&path)) {
            (FieldKind::Object(fields), _) => {
                move_bodies(tape, plan, plan.fields_of(fields), &format!("{path}."))
            }
            (_, Some(Datum::Text(_) | Datum::Bytes(_))) => {
                let value = tape.fields(plan).find(&path).unwrap().to_value().into_owned();
                tape.set(plan, &path, &value).is_ok()
            }
            (FieldKind::Array { .. }, Some(Datum::List(list))) => {
                let count = list.len();
                tape.resize(plan, &path, count).is_ok()
            }
            _ => false,
        }
    })
}

/// A measurement: its title, the number of messages, and the work for one of them.
type Row<'w> = (&'static str, usize, Box<dyn FnMut(usize, usize) + 'w>);

/// Runs all measurements in turn and prints the best of each.
fn compare(theirs_is: &str, mut rows: Vec<Row<'_>>, mut theirs: Option<Theirs>) {
    for (_, count, work) in &mut rows {
        slice(*count, work);
    }
    let mut best = vec![f64::INFINITY; rows.len()];
    let mut their_best = f64::INFINITY;
    for _ in 0..SLICES {
        if let Some(theirs) = &mut theirs {
            their_best = their_best.min(theirs.slice());
        }
        for ((_, count, work), best) in rows.iter_mut().zip(&mut best) {
            *best = best.min(slice(*count, work));
        }
    }
    if theirs.is_some() {
        println!("    {:<36}{their_best:>9.1}", format!("theirs: {theirs_is}"));
    }
    for ((title, ..), ours) in rows.iter().zip(best) {
        match theirs {
            Some(_) => println!("    {title:<36}{ours:>9.1}  ({:.1}x)", their_best / ours),
            None => println!("    {title:<36}{ours:>9.1}"),
        }
    }
}

/// Nanoseconds per message.
fn slice(count: usize, work: &mut dyn FnMut(usize, usize)) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    while start.elapsed() < SLICE {
        for _ in 0..8 {
            for index in 0..count {
                work(calls, index);
                calls += 1;
            }
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / calls as f64
}

/// The parser in its own process, warmed up.
struct Theirs {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Theirs {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn say(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn slice(&mut self) -> f64 {
        self.say(&SLICE.as_millis().to_string());
        self.answer().parse().unwrap()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the parser; returns it, and the messages that it can read and write.
fn both<'s>(
    kind: &Kind<'s>,
    parser: Option<&str>,
    what: &str,
) -> (Vec<Message<'s>>, Option<Theirs>) {
    let Some(parser) = parser else { return (kind.messages.clone(), None) };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/toolbox.cjs");
    let warm = if kind.title == "mix" { "3000" } else { "1000" };
    let mut process = Command::new("node")
        .arg(script)
        .args([parser, what, warm])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is installed");
    let answers = BufReader::new(process.stdout.take().unwrap());
    let mut theirs = Theirs { process, answers };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let messages = kind.messages.iter();
    let definitions: BTreeMap<&str, &str> =
        messages.clone().map(|one| (one.definition.title(), one.text)).collect();
    let messages: Vec<Json> = messages
        .map(|one| json!({ "key": one.definition.title(), "hex": hex(&one.bytes) }))
        .collect();
    theirs.say(&json!({ "definitions": definitions, "messages": messages }).to_string());
    let good: Vec<bool> = serde_json::from_str(&theirs.answer()).unwrap();
    assert_eq!(theirs.answer(), "ready");
    let good = kind.messages.iter().zip(good).filter(|(_, good)| *good);
    (good.map(|(message, _)| message.clone()).collect(), Some(theirs))
}

/// The first field, one in the middle, and the last.
fn asked(plan: &Plan) -> [usize; 3] {
    let fields = plan.fields().len();
    [0, fields / 2, fields.saturating_sub(1)]
}

/// Consumes every value, so that reading it is not optimised away.
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn record(&mut self, fields: TapeRecord<'_, '_>) {
        fields.iter().for_each(|(_, datum)| self.datum(datum));
    }

    fn datum(&mut self, datum: Datum<'_, '_>) {
        match datum {
            Datum::Record(fields) => self.record(fields),
            Datum::List(list) => list.iter().for_each(|datum| self.datum(datum)),
            Datum::Text(text) => self.add(text.as_bytes().len() as u64),
            Datum::Bytes(bytes) => self.add(bytes.len() as u64),
            Datum::Scalar(value) => self.one(value),
        }
    }

    fn view(&mut self, fields: RecordView<'_, '_, '_>) {
        fields.iter().for_each(|(_, item)| self.item(item.unwrap()));
    }

    /// Consumes the value of a field, or its length.
    fn glance(&mut self, item: Option<Item<'_, '_, '_>>) {
        match item {
            Some(Item::Scalar(value)) => self.one(value),
            Some(Item::Text(text)) => self.add(text.as_bytes().len() as u64),
            Some(Item::Bytes(bytes)) => self.add(bytes.len() as u64),
            Some(Item::List(list)) => self.add(list.len() as u64),
            Some(Item::Record(_)) | None => self.add(1),
        }
    }

    fn item(&mut self, item: Item<'_, '_, '_>) {
        match item {
            Item::Record(fields) => self.view(fields),
            Item::List(list) => list.iter().for_each(|item| self.item(item.unwrap())),
            Item::Text(text) => self.add(text.as_bytes().len() as u64),
            Item::Bytes(bytes) => self.add(bytes.len() as u64),
            Item::Scalar(value) => self.one(value),
        }
    }

    #[inline(always)]
    fn one(&mut self, value: ScalarValue) {
        self.add(match value.scalar() {
            Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => {
                value.signed().unwrap_or_default().cast_unsigned()
            }
            Scalar::Float | Scalar::Double | Scalar::Angle => {
                value.number().unwrap_or_default().to_bits()
            }
            Scalar::Vec3 | Scalar::Vec3fa => {
                let [x, y, z] = value.vec3().unwrap_or_default();
                u64::from(x.to_bits() ^ y.to_bits() ^ z.to_bits())
            }
            _ => value.bits(),
        });
    }

    #[inline]
    fn add(&mut self, number: u64) {
        self.0 = self.0.wrapping_add(number);
    }
}
