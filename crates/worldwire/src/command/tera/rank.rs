//! `worldwire tera def rank`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;
use serde_json::json;
use worldwire_core::Side;
use worldwire_dissect::{Item, Scratch};
use worldwire_tera::frame::Header;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::packet::Packets;
use worldwire_tera::rank::{Candidate, Ranking};

use crate::cli::{Capture, Common, Data, TeraRank};
use crate::command::capture;
use crate::definitions;
use crate::output::{Failure, complain, print};

/// Messages of one opcode that are tried; more would not tell more.
const MOST_MESSAGES: usize = 1000;

/// The messages of an opcode, and the build that they are of.
struct Found {
    packets: Arc<Packets>,
    messages: Vec<(Side, Box<[u8]>)>,
    more: u64,
}

pub(super) fn run(arguments: &TeraRank, common: &Common) -> Result<(), Failure> {
    let TeraRank { opcode, from, data, revision, patch, top, json } = arguments;
    let data = Data { paths: data.clone(), revision: *revision, patch: *patch, pin: Vec::new() };
    let definitions = definitions::load(&data, common)?;
    let found: Mutex<BTreeMap<u16, Found>> = Mutex::default();
    let take = |item: &Item<'_>, _: &mut Scratch, _: &mut String| {
        let Some(packets) = item.knowledge::<Arc<Packets>>() else { return };
        let is_message = item.message().is_some_and(|message| message.is_message());
        let header = Header::peek(item.bytes()).ok().flatten().filter(|_| is_message);
        let Some(Header { opcode: number, .. }) = header else { return };
        let is_wanted = match opcode {
            Some(opcode) => *opcode == number,
            None => packets.get(number).is_none(),
        };
        let Ok(mut found) = found.lock() else { return };
        if !is_wanted {
            return;
        }
        let of = found.entry(number).or_insert_with(|| Found {
            packets: Arc::clone(packets),
            messages: Vec::new(),
            more: 0,
        });
        if of.messages.len() < MOST_MESSAGES {
            of.messages.push((item.from, item.bytes().into()));
        } else {
            of.more += 1;
        }
    };
    let capture = Capture { file: from.clone(), keys: None, data, family: None };
    let (_, clean) = capture::read(&capture, common, definitions, take, |_| Ok(()))?;
    let found = found.into_inner().unwrap_or_default();
    if found.is_empty() {
        let message = match opcode {
            Some(opcode) => format!("no message has opcode {opcode}"),
            None => "every message has a name".to_owned(),
        };
        complain(&from.display().to_string(), &message);
        return Err(Failure::Input);
    }
    // The order of the capture is not the order of conversations that are read at the same time.
    let mut found: Vec<(u16, Found)> = found.into_iter().collect();
    let parts: Vec<String> = found
        .par_iter_mut()
        .map(|(opcode, found)| {
            found.messages.sort_unstable_by(|a, b| a.1.cmp(&b.1));
            let mut out = String::new();
            one(*opcode, found, *top, *json, &mut out);
            out
        })
        .collect();
    let separator = if *json { "" } else { "\n" };
    print(&parts.join(separator))?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

fn one(opcode: u16, found: &Found, top: usize, json: bool, out: &mut String) {
    let Found { packets, messages, more } = found;
    let mut ranking = Ranking::new(packets.definitions());
    for (from, message) in messages {
        ranking.push(*from, message);
    }
    let (shortest, longest) = ranking.lengths().unwrap_or_default();
    let tried = messages.len();
    let candidates = ranking.finish();
    if !json {
        let from = messages.first().map_or("", |(side, _)| side.name());
        let plural = if tried == 1 { "" } else { "s" };
        let all = if *more > 0 { format!(" of {}", tried as u64 + more) } else { String::new() };
        let lengths = match shortest == longest {
            true => format!("{shortest} bytes"),
            false => format!("{shortest} to {longest} bytes"),
        };
        let _ = writeln!(out, "{opcode}: {tried}{all} message{plural} from the {from}, {lengths}");
        if candidates.is_empty() {
            let _ = writeln!(out, "  no definition fits");
        } else {
            let _ = writeln!(out, "   score      fits     clean  definition");
        }
    }
    for Candidate { definition, form, fits, clean, score, notes, .. } in candidates.iter().take(top)
    {
        let taken = packets.opcode(definition.name()).filter(|other| *other != opcode);
        let sealed = *form == HeaderForm::Integrity;
        if json {
            let notes: BTreeMap<&str, u64> =
                notes.iter().map(|(kind, count)| (kind.name(), *count)).collect();
            let line = json!({
                "opcode": opcode, "name": definition.name(), "version": definition.version(),
                "score": (score * 10.0).round() / 10.0, "messages": tried, "fits": fits,
                "clean": clean, "integrity": sealed, "mapped": taken, "notes": notes,
            });
            let _ = writeln!(out, "{line}");
            continue;
        }
        let (fits, clean) = (format!("{fits}/{tried}"), format!("{clean}/{tried}"));
        let _ = write!(out, "{score:>8.1} {fits:>9} {clean:>9}  {}", definition.title());
        if sealed {
            out.push_str(", with counter and checksum");
        }
        if let Some(taken) = taken {
            let _ = write!(out, " (the map has it as {taken})");
        }
        for (kind, _) in notes {
            let _ = write!(out, " {kind}");
        }
        out.push('\n');
    }
}
