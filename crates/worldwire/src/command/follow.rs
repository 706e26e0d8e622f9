//! `worldwire follow`.

use std::io::Write as _;

use worldwire_dissect::{Item, ItemBody, NoteKind, Scratch};

use super::capture;
use super::decode::side;
use crate::cli::{Common, Follow};
use crate::definitions;
use crate::output::{Failure, Output, say};

pub(crate) fn run(arguments: &Follow, common: &Common) -> Result<(), Failure> {
    let raw = arguments.raw.map(side);
    let colour = common.colour(Some(&arguments.target));
    let mut output = Output::open(&arguments.target)?;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<u8>| {
        if item.stamp.stream != arguments.stream {
            return;
        }
        match raw {
            None => dump(item, colour, out),
            Some(side) if side == item.from => out.extend_from_slice(item.bytes()),
            Some(_) => {}
        }
    };
    let definitions = definitions::load(&arguments.capture.data, common)?;
    let (dissection, clean) =
        capture::read(&arguments.capture, common, definitions, show, |bytes: &Vec<u8>| {
            output.write(bytes)?;
            output.flush()
        })?;
    let overview = capture::conversation(&dissection, arguments.stream)?;
    output.finish()?;
    if overview.family.is_none() && !common.quiet {
        say("this conversation was not recognised; --as FAMILY reads it anyway");
    }
    let good = clean && overview.problems == 0 && overview.family.is_some();
    if good { Ok(()) } else { Err(Failure::Input) }
}

/// Sixteen bytes a line, with their place in the sender's stream and as text; the server's side is
/// set in.
fn dump(item: &Item<'_>, colour: bool, out: &mut Vec<u8>) {
    let server = item.from == worldwire_core::Side::Server;
    let (on, off) = match (colour, server) {
        (false, _) => ("", ""),
        (true, false) => ("\x1b[31m", "\x1b[0m"),
        (true, true) => ("\x1b[34m", "\x1b[0m"),
    };
    let indent = if server { "    " } else { "" };
    if let ItemBody::Note(note) = &item.body {
        let _ = match note.kind {
            NoteKind::Opened => writeln!(out, "{}", note.text),
            kind => writeln!(out, "{indent}! {}: {}", kind.name(), note.text),
        };
        return;
    }
    for (index, line) in item.bytes().chunks(16).enumerate() {
        let offset = item.range.start + index as u64 * 16;
        let _ = write!(out, "{indent}{on}{offset:08x}  ");
        for place in 0..16 {
            match line.get(place) {
                Some(byte) => {
                    let _ = write!(out, "{byte:02x} ");
                }
                None => out.extend_from_slice(b"   "),
            }
            if place == 7 {
                out.push(b' ');
            }
        }
        out.push(b' ');
        out.extend(line.iter().map(|byte| match byte {
            b' '..=b'~' => *byte,
            _ => b'.',
        }));
        let _ = writeln!(out, "{off}");
    }
}
