//! `worldwire mxo views`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use worldwire_core::Side;
use worldwire_core::json::Style;
use worldwire_dissect::{Dissection, Item, MxoObjects, MxoViews, NoteKind, Scratch};

use crate::cli::{Common, MxoViewsCommand};
use crate::command::capture;
use crate::definitions;
use crate::output::{Failure, complain, counted, print, say};

/// MxO is the only family with views.
const FAMILY: &str = "mxo";

/// The view-related part of a conversation.
enum Part {
    Hello(Vec<u8>),
    Packet { from: Side, bytes: Vec<u8>, number: Option<u64> },
    Note { is_problem: bool, text: String },
}

struct Conversation {
    views: MxoViews,
    hello: Vec<u8>,
    /// The number of the last packet read.
    last: Option<u64>,
}

pub(super) fn run(arguments: &MxoViewsCommand, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let objects = definitions.part::<MxoObjects>();
    let (stream, last) = (arguments.stream, arguments.packet);
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<(u64, Part)>| {
        let stamp = item.stamp;
        let is_late = stamp.packet.zip(last).is_some_and(|(packet, last)| packet > last);
        let is_other = stream.is_some_and(|stream| stream != stamp.stream);
        if item.family == FAMILY && !is_late && !is_other {
            out.extend(part(item, scratch).map(|part| (stamp.stream, part)));
        }
    };
    let mut all: BTreeMap<u64, Conversation> = BTreeMap::new();
    let take = |parts: &Vec<(u64, Part)>| {
        for (stream, part) in parts {
            let new = || Conversation {
                views: MxoViews::new(objects.objects().clone()),
                hello: Vec::new(),
                last: None,
            };
            let Conversation { views, hello, last } = all.entry(*stream).or_insert_with(new);
            match part {
                Part::Hello(bytes) if hello != bytes => {
                    views.reset();
                    hello.clone_from(bytes);
                }
                Part::Hello(_) => {}
                // Problems with it are reported as notes.
                Part::Packet { from, bytes, number } => {
                    drop(views.take(*from, bytes, None));
                    *last = *number;
                }
                Part::Note { is_problem: true, text } => complain(&format!("#{stream}"), text),
                Part::Note { text, .. } => common.note(&format!("#{stream}"), text),
            }
        }
        Ok(())
    };
    let (dissection, clean) = capture::read(&arguments.capture, common, definitions, show, take)?;
    check(arguments, &dissection)?;
    let mut out = String::new();
    for (stream, Conversation { views, last, .. }) in &all {
        let replica = views.replica();
        if arguments.json {
            let _ = write!(out, "{{\"stream\":{stream},");
            if let Some(last) = last {
                let _ = write!(out, "\"packet\":{last},");
            }
            out.push_str("\"views\":");
            replica.write_json(Style::default(), &mut out);
            out.push_str("}\n");
        } else {
            let views = counted(replica.len(), "view");
            let behind = last.map_or(String::new(), |last| format!(" after packet {last}"));
            let _ = writeln!(out, "#{stream}: {views}{behind}");
            replica.write_text(&mut out);
        }
    }
    print(&out)?;
    let summary = dissection.summary();
    if !common.quiet {
        say(summary);
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// The view-related part of an item.
fn part(item: &Item<'_>, scratch: &Scratch) -> Option<Part> {
    if let Some(note) = item.note() {
        let is_problem = note.kind == NoteKind::Problem;
        let is_said = is_problem || matches!(note.kind, NoteKind::Warning | NoteKind::Gap);
        return is_said.then(|| Part::Note { is_problem, text: note.text.clone() });
    }
    let message = item.message()?;
    let bytes = || message.bytes().to_vec();
    match &*scratch.name {
        "setup.Hello" => Some(Part::Hello(bytes())),
        name if name.starts_with("game.") => {
            Some(Part::Packet { from: item.from, bytes: bytes(), number: item.stamp.packet })
        }
        _ => None,
    }
}

/// Checks that the capture contains the requested conversation and packet.
fn check(arguments: &MxoViewsCommand, dissection: &Dissection) -> Result<(), Failure> {
    let overviews = dissection.overviews();
    let is_ours = |family: Option<&'static dyn worldwire_dissect::Family>| {
        family.is_some_and(|family| family.name() == FAMILY)
    };
    let ours: Vec<u64> = overviews
        .iter()
        .filter(|overview| is_ours(overview.family))
        .map(|overview| overview.stream)
        .collect();
    if ours.is_empty() {
        let subject = arguments.capture.file.display().to_string();
        let help = "no MxO conversation; use --as mxo to read all conversations as MxO";
        complain(&subject, help);
        return Err(Failure::Input);
    }
    let (packets, asked) = (dissection.packets(), arguments.packet.unwrap_or(1));
    if asked > packets {
        let problem = format!("--packet: the capture has only packets 1 to {packets}");
        return Err(Failure::Run(format!("{problem}, not {asked}")));
    }
    if let Some(stream) = arguments.stream.filter(|stream| !ours.contains(stream)) {
        const MAX_LISTED: usize = 10;
        let mut numbers: Vec<String> =
            ours.iter().take(MAX_LISTED).map(ToString::to_string).collect();
        if ours.len() > MAX_LISTED {
            numbers.push("...".to_owned());
        }
        let numbers = numbers.join(", ");
        let problem =
            format!("--stream: {stream} is not an MxO conversation; choose from {numbers}");
        return Err(Failure::Run(problem));
    }
    Ok(())
}
