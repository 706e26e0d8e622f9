//! `worldwire mxo views`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use worldwire_core::Side;
use worldwire_core::json::Style;
use worldwire_dissect::{Item, MxoObjects, MxoViews, Scratch};

use crate::cli::{Common, MxoViewsCommand};
use crate::command::capture;
use crate::definitions;
use crate::output::{Failure, complain, print, say};

/// A packet of a conversation, or its hello.
struct Packet {
    stream: u64,
    from: Side,
    bytes: Vec<u8>,
    is_hello: bool,
}

pub(super) fn run(arguments: &MxoViewsCommand, common: &Common) -> Result<(), Failure> {
    let definitions = definitions::load(&arguments.capture.data, common)?;
    let objects = definitions.part::<MxoObjects>();
    let (stream, last) = (arguments.stream, arguments.packet);
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Packet>| {
        let Some(message) = item.message().filter(|_| item.family == "mxo") else { return };
        let stamp = item.stamp;
        let is_late = stamp.packet.zip(last).is_some_and(|(packet, last)| packet > last);
        if is_late || stream.is_some_and(|stream| stream != stamp.stream) {
            return;
        }
        scratch.name.clear();
        item.push_name(&mut scratch.name);
        let is_hello = scratch.name == "setup.Hello";
        if is_hello || scratch.name.starts_with("game.") {
            let bytes = message.bytes().to_vec();
            out.push(Packet { stream: stamp.stream, from: item.from, bytes, is_hello });
        }
    };
    let mut all: BTreeMap<u64, (MxoViews, Vec<u8>)> = BTreeMap::new();
    let take = |packets: &Vec<Packet>| {
        for Packet { stream, from, bytes, is_hello } in packets {
            let new = || (MxoViews::new(objects.objects().clone()), Vec::new());
            let (views, hello) = all.entry(*stream).or_insert_with(new);
            if *is_hello {
                if *hello != *bytes {
                    views.begin_anew();
                    hello.clone_from(bytes);
                }
                continue;
            }
            match views.take(*from, bytes) {
                Ok(said) if common.quiet => drop(said),
                Ok(said) => said.iter().for_each(|text| complain(&format!("#{stream}"), text)),
                Err(error) => complain(&format!("#{stream}"), &error.to_string()),
            }
        }
        Ok(())
    };
    let (dissection, clean) = capture::read(&arguments.capture, common, definitions, show, take)?;
    let mut out = String::new();
    for (stream, (views, _)) in &all {
        let replica = views.replica();
        if arguments.json {
            let _ = write!(out, "{{\"stream\":{stream},\"views\":");
            replica.write_json(Style::default(), &mut out);
            out.push_str("}\n");
        } else {
            let count = replica.len();
            let plural = if count == 1 { "" } else { "s" };
            let _ = writeln!(out, "#{stream}: {count} view{plural}");
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
