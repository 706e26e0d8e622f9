//! `worldwire follow`.

use std::io::Write as _;
use std::ops::Range;

use worldwire_core::Side;
use worldwire_dissect::{Item, ItemBody, NoteKind, Overview, Scratch, Wire};

use super::capture::{self, Extras};
use super::decode::side;
use super::dialogue::Dialogue;
use super::dissect::{self, read_filter};
use super::lines::{Lines, ShownLine};
use super::selection::Selection;
use crate::cli::{Common, Follow, TimeForm};
use crate::definitions;
use crate::input::packets::Meanwhile;
use crate::output::{Failure, counted, say, terminal_width};

/// The form of "to be" that goes with this number.
fn is_or_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The maximum number of bytes waiting to be decoded: more than the largest message.
const MAX_WAITING_BYTES: usize = 64 << 20;

pub(crate) fn run(arguments: &Follow, common: &Common) -> Result<(), Failure> {
    let Follow { dump, wire, raw, json, json_safe, fields, .. } = arguments;
    if *dump || *wire || raw.is_some() {
        return show_bytes(arguments, common);
    }
    if *json || *json_safe || !fields.is_empty() {
        return dissect::run_one(arguments, common);
    }
    show_messages(arguments, common)
}

/// Shows the messages as a dialogue.
fn show_messages(arguments: &Follow, common: &Common) -> Result<(), Failure> {
    arguments.target.is_no_capture("the messages of a conversation")?;
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let selection = Selection { stream: Some(arguments.stream), filter };
    let is_stdout = arguments.target.is_stdout();
    let width = is_stdout.then(terminal_width).flatten();
    let is_colored = common.colour(Some(&arguments.target));
    let dialogue = Dialogue::new(arguments.full, is_colored, arguments.time, width)?;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<ShownLine>| {
        selection.pass(item, scratch, true, |shown| {
            let mut text = String::new();
            dialogue.write(shown, &mut text);
            out.push(match Dialogue::is_heading(shown.item) {
                true => ShownLine::heading(shown.item, text),
                false => ShownLine::of(shown.item, text),
            });
        });
    };
    let output = capture::output(&arguments.capture, &arguments.target)?;
    let is_delta = arguments.time == TimeForm::Delta;
    let mut lines = Lines::limited(arguments.limit, is_delta, output);
    let meanwhile = Meanwhile { watches_stdout: is_stdout, ..Meanwhile::default() };
    let extras = Extras { meanwhile, ..Extras::default() };
    let write = |shown: &Vec<ShownLine>| {
        selection.check()?;
        lines.add(shown)
    };
    let mut found = None;
    let mut closed = |overview: &Overview| keep(overview, arguments.stream, &mut found);
    let closed: Option<&mut dyn FnMut(&Overview)> = Some(&mut closed);
    let outcome =
        capture::read_taking(&arguments.capture, common, definitions, extras, show, write, closed);
    selection.check()?;
    if lines.is_complete() {
        return lines.finish();
    }
    let (dissection, clean) = outcome?;
    let overview = match &found {
        Some(overview) => overview,
        None => capture::conversation(&dissection, arguments.stream)?,
    };
    lines.into_output()?.finish()?;
    if !common.quiet {
        match overview.family {
            Some(_) => say(dissection.summary()),
            None => say("this conversation was not recognised; use --as FAMILY to decode it, or \
                         --wire to see its bytes"),
        }
    }
    let is_read = overview.family.is_some() && overview.problems == 0;
    if clean && is_read { Ok(()) } else { Err(Failure::Input) }
}

/// Keeps only the overview of the wanted conversation, so that memory does not grow with the number
/// of conversations.
fn keep(overview: &Overview, wanted: u64, found: &mut Option<Overview>) {
    if overview.stream == wanted {
        *found = Some(overview.clone());
    }
}

/// Shows all bytes, or those of one side.
fn show_bytes(arguments: &Follow, common: &Common) -> Result<(), Failure> {
    arguments.target.is_no_capture("the bytes of a conversation")?;
    let mut output = capture::output(&arguments.capture, &arguments.target)?;
    let wanted = arguments.stream;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Piece>| {
        if item.stamp.stream == wanted {
            out.push(Piece::of(item));
        }
    };
    let definitions = definitions::load(&arguments.capture.knowledge.data, common)?;
    let mut dump = Dump {
        raw: arguments.raw.map(side),
        is_wire: arguments.wire,
        colour: common.colour(Some(&arguments.target)),
        is_datagrams: false,
        waiting: [Waiting::default(), Waiting::default()],
        sealed: 0,
        missing: 0,
        out: Vec::new(),
    };
    let watches_stdout = arguments.target.is_stdout();
    let meanwhile = Meanwhile { watches_stdout, ..Meanwhile::default() };
    let mut found = None;
    let mut closed = |overview: &Overview| keep(overview, wanted, &mut found);
    let (dissection, clean) = capture::read_taking(
        &arguments.capture,
        common,
        definitions,
        Extras { wire: Some(wanted), meanwhile, ..Extras::default() },
        show,
        |pieces: &Vec<Piece>| {
            pieces.iter().for_each(|piece| dump.piece(piece));
            output.write(&dump.out)?;
            dump.out.clear();
            output.flush()
        },
        Some(&mut closed),
    )?;
    let overview = match &found {
        Some(overview) => overview,
        None => capture::conversation(&dissection, wanted)?,
    };
    dump.end();
    output.write(&dump.out)?;
    output.finish()?;
    let is_known = overview.family.is_some();
    if !common.quiet {
        if !is_known && !dump.is_wire {
            say("this conversation was not recognised; use --as FAMILY to decode it");
        }
        for (count, begin, end) in [
            (dump.sealed, "could not be decoded and ", "shown as captured"),
            (dump.missing, "", "missing in the capture"),
        ] {
            if count > 0 {
                let bytes = counted(count, "byte");
                say(format_args!("{bytes} {begin}{} {end}", is_or_are(count)));
            }
        }
    }
    let is_read = dump.is_wire || (is_known && dump.sealed == 0 && overview.problems == 0);
    if clean && is_read && dump.missing == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// An element of a conversation to show.
enum Piece {
    /// A note about the conversation.
    Note(Side, NoteKind, String),
    /// A message or a setup step, decrypted.
    Message(Side, Range<u64>, Vec<u8>),
    /// Bytes as they were captured.
    Bytes(Side, Vec<u8>),
    /// A datagram as it was captured.
    Datagram(Side, Vec<u8>),
    /// Bytes that are missing.
    Missing(Side, u64),
}

impl Piece {
    fn of(item: &Item<'_>) -> Self {
        let from = item.from;
        match &item.body {
            ItemBody::Note(note) => Self::Note(from, note.kind, note.text.clone()),
            ItemBody::Wire(Wire::Bytes(bytes)) => Self::Bytes(from, bytes.to_vec()),
            ItemBody::Wire(Wire::Datagram(bytes)) => Self::Datagram(from, bytes.to_vec()),
            ItemBody::Wire(Wire::Missing(length)) => Self::Missing(from, *length),
            _ => Self::Message(from, item.range.clone(), item.bytes().to_vec()),
        }
    }
}

/// Captured bytes of one side that have not been shown yet.
#[derive(Default)]
struct Waiting {
    /// The stream position of the first byte.
    at: u64,
    bytes: Vec<u8>,
}

/// Shows every byte of a conversation once.
struct Dump {
    /// Shows only the bytes of this side.
    raw: Option<Side>,
    /// Shows the bytes as captured.
    is_wire: bool,
    colour: bool,
    /// Whether the conversation consists of datagrams. The output for each one follows it directly.
    is_datagrams: bool,
    /// The bytes that have not been shown yet, by [`Side::index`].
    waiting: [Waiting; 2],
    /// The number of bytes that could not be decoded.
    sealed: u64,
    /// The number of missing bytes.
    missing: u64,
    out: Vec<u8>,
}

impl Dump {
    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Bytes(side, bytes) | Piece::Datagram(side, bytes) if self.is_wire => {
                let at = self.waiting[side.index()].at;
                self.waiting[side.index()].at += bytes.len() as u64;
                self.show(*side, at, bytes, "");
            }
            Piece::Bytes(side, bytes) => {
                let waiting = &mut self.waiting[side.index()];
                waiting.bytes.extend_from_slice(bytes);
                let excess = waiting.bytes.len().saturating_sub(MAX_WAITING_BYTES);
                self.give_up(*side, excess);
            }
            Piece::Datagram(side, bytes) => {
                self.is_datagrams = true;
                self.give_up(*side, usize::MAX);
                self.waiting[side.index()].bytes.extend_from_slice(bytes);
            }
            Piece::Missing(side, length) => {
                self.give_up(*side, usize::MAX);
                self.waiting[side.index()].at += length;
                self.missing += length;
                self.mark(*side, *length);
            }
            Piece::Message(side, range, bytes) if self.is_datagrams && !self.is_wire => {
                // A repeated datagram does not count as a message.
                let waiting = &mut self.waiting[side.index()];
                waiting.at += waiting.bytes.len() as u64;
                waiting.bytes.clear();
                self.show(*side, range.start, bytes, "");
            }
            Piece::Message(side, range, bytes) if !self.is_wire => {
                // The bytes before it could not be decoded.
                let before = range.start.saturating_sub(self.waiting[side.index()].at);
                self.give_up(*side, usize::try_from(before).unwrap_or(usize::MAX));
                let waiting = &mut self.waiting[side.index()];
                let read = range.end.saturating_sub(waiting.at);
                let read = usize::try_from(read).unwrap_or(usize::MAX).min(waiting.bytes.len());
                waiting.bytes.drain(..read);
                waiting.at += read as u64;
                self.show(*side, range.start, bytes, "");
            }
            Piece::Message(..) => {}
            Piece::Note(side, kind, text) => self.note(*side, *kind, text),
        }
    }

    /// Handles the end of the conversation.
    fn end(&mut self) {
        for side in Side::BOTH {
            self.give_up(side, usize::MAX);
        }
    }

    /// Shows the first `most` waiting bytes as captured.
    fn give_up(&mut self, side: Side, most: usize) {
        let waiting = &mut self.waiting[side.index()];
        let count = most.min(waiting.bytes.len());
        if count == 0 {
            return;
        }
        let at = waiting.at;
        let bytes: Vec<u8> = waiting.bytes.drain(..count).collect();
        waiting.at += count as u64;
        self.sealed += count as u64;
        if self.raw.is_none() {
            let indent = indent(side);
            let _ =
                writeln!(self.out, "{indent}! not decoded: {} as captured", counted(count, "byte"));
        }
        self.show(side, at, &bytes, "?");
    }

    /// Marks missing bytes in the same way as Wireshark does.
    fn mark(&mut self, side: Side, length: u64) {
        let _ = match self.raw {
            None => {
                let (bytes, are) = (counted(length, "byte"), is_or_are(length));
                writeln!(self.out, "{}! gap: {bytes} {are} missing", indent(side))
            }
            Some(raw) if raw == side => {
                write!(self.out, "[{length} bytes missing in capture file]\0")
            }
            Some(_) => Ok(()),
        };
    }

    fn note(&mut self, side: Side, kind: NoteKind, text: &str) {
        // Captured bytes reveal gaps even in unrecognised conversations.
        if self.raw.is_some() || kind == NoteKind::Gap {
            return;
        }
        let _ = match kind {
            NoteKind::Opened => writeln!(self.out, "{text}"),
            _ if self.is_wire => Ok(()),
            kind => writeln!(self.out, "{}! {}: {text}", indent(side), kind.name()),
        };
    }

    /// Sixteen bytes per line, as hex and as text, with their offset in the sender's stream. The
    /// server's side is indented.
    fn show(&mut self, side: Side, at: u64, bytes: &[u8], mark: &str) {
        if let Some(raw) = self.raw {
            if raw == side {
                self.out.extend_from_slice(bytes);
            }
            return;
        }
        let (on, off) = match (self.colour, side) {
            (false, _) => ("", ""),
            (true, Side::Client) => ("\x1b[31m", "\x1b[0m"),
            (true, Side::Server) => ("\x1b[34m", "\x1b[0m"),
        };
        let (indent, out) = (indent(side), &mut self.out);
        for (index, line) in bytes.chunks(16).enumerate() {
            let offset = at.saturating_add(index as u64 * 16);
            let _ = write!(out, "{indent}{on}{mark}{offset:08x}  ");
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
}

fn indent(side: Side) -> &'static str {
    match side {
        Side::Client => "",
        Side::Server => "    ",
    }
}
