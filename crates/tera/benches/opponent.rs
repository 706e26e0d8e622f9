//! Our figures beside those of a JavaScript parser.
//!
//! `WORLDWIRE_TERA_OPPONENT=PATH cargo bench -p worldwire-tera --bench opponent`, where PATH is a
//! module as `opponent.mjs` wants it; without it our figures stand alone.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use worldwire_tera::message::{Head, HeaderForm, Value};
use worldwire_tera::schema::Definition;

mod made_up;
#[path = "made_up/opponent.rs"]
mod opponent;

use opponent::{Folder, Kind, has_node};

/// How long each thing is measured, after as long to warm up.
const EACH: Duration = Duration::from_millis(500);
/// Messages of each kind.
const MESSAGES: usize = 50;

fn main() {
    let set = made_up::set();
    let all = set
        .definitions()
        .flat_map(|one| made_up::messages(one, 1).into_iter().map(move |m| (one, m)));
    let mut kinds: Vec<Kind<'_>> = vec![("mix", all.collect())];
    for one in &made_up::NAMED {
        let definition = set.newest(one.name).unwrap();
        assert!(definition.plan().fields().iter().any(|field| field.name() == one.asked[0]));
        let messages = made_up::messages(definition, MESSAGES);
        kinds.push((one.title, messages.into_iter().map(|bytes| (definition, bytes)).collect()));
    }
    let theirs = theirs(&kinds);
    println!("nanoseconds for one message: ours, theirs, and how many times ours that is");
    println!("{:<8}{:>8}{:>26}{:>26}", "kind", "bytes", "decode", "encode");
    for (kind, messages) in &kinds {
        let (decode, encode) = ours(messages);
        let bytes = messages.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() / messages.len();
        let theirs = theirs.as_ref().and_then(|theirs| theirs.get(*kind));
        let beside = |ours: f64, key: &str| match theirs.and_then(|one| one.get(key)?.as_f64()) {
            Some(theirs) => format!("{ours:.0} {theirs:.0} {:.1}x", theirs / ours),
            None => format!("{ours:.0}"),
        };
        let (decode, encode) = (beside(decode, "decode_ns"), beside(encode, "encode_ns"));
        println!("{kind:<8}{bytes:>8}{decode:>26}{encode:>26}");
        if let Some(error) = theirs.and_then(|one| one.get("error")) {
            println!("        theirs: {error}");
        }
        let different = theirs.and_then(|one| one.get("different")).and_then(Json::as_u64);
        if let Some(different) = different.filter(|different| *different > 0) {
            println!(
                "        theirs: {different} of {} come back with other bytes",
                messages.len()
            );
        }
    }
}

fn theirs(kinds: &[Kind<'_>]) -> Option<Json> {
    let Some(path) = std::env::var_os("WORLDWIRE_TERA_OPPONENT") else {
        println!("WORLDWIRE_TERA_OPPONENT names no parser: our figures alone");
        return None;
    };
    if !has_node() {
        println!("there is no node: our figures alone");
        return None;
    }
    let folder = Folder::write(&made_up::files(), kinds).unwrap();
    let milliseconds = u64::try_from(EACH.as_millis()).unwrap();
    match folder.run(Path::new(&path), milliseconds) {
        Ok(theirs) => Some(theirs),
        Err(error) => {
            println!("{}: {error}", path.to_string_lossy());
            None
        }
    }
}

/// What reading to values and writing values take us.
fn ours(messages: &[(&Definition, Vec<u8>)]) -> (f64, f64) {
    let decode = time(messages, |(definition, bytes)| {
        black_box(definition.plan().read(black_box(bytes), HeaderForm::Plain).unwrap());
    });
    let values: Vec<(&Definition, Head, Value<'static>)> = messages
        .iter()
        .map(|(definition, bytes)| {
            let message = definition.plan().read(bytes, HeaderForm::Plain).unwrap();
            (*definition, message.head(), message.fields().clone().into_owned())
        })
        .collect();
    let mut out = Vec::new();
    let encode = time(&values, |(definition, head, value)| {
        out.clear();
        definition.plan().encode(*head, black_box(value), &mut out).unwrap();
        black_box(&out);
    });
    (decode, encode)
}

/// Nanoseconds for one item.
fn time<T>(items: &[T], mut work: impl FnMut(&T)) -> f64 {
    let mut round = || {
        let (start, mut calls) = (Instant::now(), 0.0);
        while start.elapsed() < EACH {
            items.iter().for_each(&mut work);
            calls += items.len() as f64;
        }
        start.elapsed().as_secs_f64() * 1e9 / calls
    };
    round();
    round()
}
