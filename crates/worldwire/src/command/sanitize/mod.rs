//! `worldwire sanitize`.
//!
//! The capture is read twice: first for names, addresses and the families of conversations, then
//! for the messages. A message is written only if it was decoded completely and its fields could be
//! encoded with their replacements, so no bytes are copied without being decoded. Finally, the new
//! capture is read and must contain every message that was written.

mod fields;
mod mxo;
mod pseudonyms;
mod readback;
mod seal;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddrV4;
use std::path::Path;

use worldwire_core::json::parse;
use worldwire_core::{Limits, Reader, Side, Tree};
use worldwire_dissect::{Definitions, Dissection, Ends, Item, NoteKind, Scratch, Time};
use worldwire_ki::frame::FrameHead;

use super::capture::{self, Extras};
use crate::cli::{Capture, Common, SanitizeArguments, Target};
use crate::definitions;
use crate::output::{Failure, Output, complain, counted, printable, say};
use fields::{Opened, collect, have_same_fields, replaced};
use mxo::is_login;
use pseudonyms::{Found, Pseudonyms};
use readback::{Names, Route};
use seal::{Sealer, Start};
use wire::{Part, Wire, Written};

static LIMITS: Limits = Limits::DEFAULT;

pub(crate) fn run(arguments: &SanitizeArguments, common: &Common) -> Result<(), Failure> {
    let SanitizeArguments { file, knowledge, output, force, seed } = arguments;
    if file == Path::new("-") || !file.is_file() {
        let problem = "sanitize reads the capture twice, so it needs a regular file, not a pipe \
                       or a directory"
            .to_owned();
        let is_missing = file != Path::new("-") && !file.exists();
        return Err(match is_missing {
            true => Failure::Run(format!("{}: no such file", crate::output::shown(file))),
            false => Failure::Run(problem),
        });
    }
    let target = Target { output: Some(output.clone()), force: *force };
    target.ends_in("a capture with its keys", &["pcapng"])?;
    target.spares(std::iter::once(&**file))?;
    let mut capture = Capture::plain(file, knowledge.data.clone());
    capture.knowledge = knowledge.clone();
    let definitions = definitions::load(&knowledge.data, common)?;
    let sanitizer = Sanitizer { capture, common, definitions };
    let opened = Output::open(&target)?;

    let key = key(*seed)?;
    let first = sanitizer.first_reading(key)?;
    let pseudonyms = Pseudonyms::new(key, &first.found);
    let mut omitted = Omitted::default();
    let mut conversations = HashMap::new();
    let mut keys = BTreeSet::new();
    for start in &first.starts {
        let conversation = start.conversation(&pseudonyms, &mut omitted);
        if let Some(conversation) = conversation {
            keys.extend(conversation.sealer.keys());
            conversations.insert(start.stream, conversation);
        }
    }
    let keys: Vec<String> = keys.into_iter().collect();
    let mut writing = Writing {
        pseudonyms: &pseudonyms,
        conversations,
        wire: Wire::new(opened, &keys.join("\n"))?,
        omitted,
        messages: 0,
    };
    sanitizer.second_reading(&mut writing)?;
    let Writing { wire, omitted, messages, .. } = writing;
    let written = wire.finish()?;
    if !common.quiet {
        let conversations = counted(written.conversations(), "conversation");
        say(format_args!("{} of {conversations} written", counted(messages, "message")));
    }
    omitted.report(common);
    // Data written to standard output or a device cannot be read again.
    let is_right = !output.is_file() || sanitizer.reads_back(output, &written)?;
    if first.clean && omitted.is_empty() && is_right { Ok(()) } else { Err(Failure::Input) }
}

/// The key of all replacements.
fn key(seed: Option<u64>) -> Result<[u8; 32], Failure> {
    let mut key = [0; 32];
    match seed {
        Some(seed) => key[..8].copy_from_slice(&seed.to_le_bytes()),
        None => getrandom::fill(&mut key)
            .map_err(|error| Failure::Run(format!("cannot get random numbers: {error}")))?,
    }
    Ok(key)
}

struct Sanitizer<'s> {
    capture: Capture,
    common: &'s Common,
    definitions: Definitions,
}

/// The results of the first reading.
struct FirstReading {
    found: Found,
    starts: Vec<ConversationStart>,
    clean: bool,
}

/// A conversation before it is written.
struct ConversationStart {
    stream: u64,
    family: Option<&'static str>,
    ends: [std::net::SocketAddr; 2],
    is_udp: bool,
    /// The name of its first message.
    first: String,
    /// The keys that decrypted it, as part of a key file.
    secrets: Option<String>,
    /// Why a login cannot be written.
    unwritable: Option<String>,
    bytes: u64,
}

impl ConversationStart {
    fn conversation(&self, pseudonyms: &Pseudonyms, omitted: &mut Omitted) -> Option<Conversation> {
        let Some(family) = self.family else {
            omitted.unrecognised += 1;
            omitted.unrecognised_bytes += self.bytes;
            return None;
        };
        if self.first.is_empty() {
            omitted.conversation(self.stream, "none of its messages can be read");
            return None;
        }
        // A login with missing parts would be useless.
        if let Some(why) = self.unwritable.as_ref().filter(|_| is_login(family, self.is_udp)) {
            omitted.conversation(self.stream, why);
            return None;
        }
        let Self { stream, first, secrets, .. } = self;
        let start = Start { stream: *stream, family, first, secrets: secrets.as_deref() };
        let is_supported = !self.is_udp || family == "mxo";
        let sealer = match is_supported {
            true => Sealer::new(&start, pseudonyms),
            false => Err("datagrams of its family are not supported"),
        };
        match sealer {
            Ok(sealer) => {
                let ends = self.ends.map(|end| pseudonyms.end(end));
                Some(Conversation { sealer, ends, is_udp: self.is_udp })
            }
            Err(why) => {
                omitted.conversation(self.stream, why);
                None
            }
        }
    }
}

/// A conversation that is being written.
struct Conversation {
    sealer: Sealer,
    ends: [SocketAddrV4; 2],
    is_udp: bool,
}

/// The parts that were not written, and the reasons.
#[derive(Default)]
struct Omitted {
    unrecognised: u64,
    unrecognised_bytes: u64,
    /// Recognised conversations.
    conversations: BTreeMap<u64, String>,
    /// Messages by name and reason.
    messages: BTreeMap<(String, String), u64>,
    /// Reports of parts that could not be read.
    problems: u64,
    gaps: u64,
    /// Packets that do not belong to any conversation.
    packets: u64,
}

/// The maximum number of kinds of omitted messages, and of conversations, that are listed.
const MAX_LISTED: usize = 20;

impl Omitted {
    fn conversation(&mut self, stream: u64, why: &str) {
        self.conversations.insert(stream, why.to_owned());
    }

    fn message(&mut self, name: &str, why: &str) {
        let (name, why) = (name.to_owned(), why.to_owned());
        *self.messages.entry((name, why)).or_default() += 1;
    }

    /// Whether all conversations of known families were written completely.
    fn is_empty(&self) -> bool {
        self.conversations.is_empty() && self.messages.is_empty() && self.problems + self.gaps == 0
    }

    fn report(&self, common: &Common) {
        let tell = |text: &str| complain("omitted", text);
        for (stream, why) in self.conversations.iter().take(MAX_LISTED) {
            tell(&format!("conversation {stream}: {why}"));
        }
        let more = self.conversations.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            tell(&counted(more, "more conversation"));
        }
        for ((name, why), count) in self.messages.iter().take(MAX_LISTED) {
            let name = printable(name);
            tell(&format!("{} {name}: {why}", counted(*count, "message")));
        }
        let more: u64 = self.messages.values().skip(MAX_LISTED).sum();
        if more > 0 {
            tell(&counted(more, "more message"));
        }
        if self.problems > 0 {
            tell(&format!("{} that cannot be read", counted(self.problems, "part")));
        }
        if self.gaps > 0 {
            tell(&format!("{}, closed in the new capture", counted(self.gaps, "gap")));
        }
        if self.unrecognised > 0 {
            let (count, bytes) = (self.unrecognised, counted(self.unrecognised_bytes, "byte"));
            let what = counted(count, "conversation");
            common.note("omitted", &format!("{what} not recognised ({bytes})"));
        }
        if self.packets > 0 {
            let what = counted(self.packets, "packet");
            common.note("omitted", &format!("{what} outside any conversation"));
        }
    }
}

/// The part of an item that the first reading keeps.
enum Seen {
    First {
        stream: u64,
        name: String,
    },
    /// Why a login cannot be written.
    Unwritable {
        stream: u64,
        why: String,
    },
    Found(Found),
}

/// A piece of a conversation to write.
enum Piece {
    /// A step of connection setup, as captured.
    Step(Vec<u8>),
    /// A message with replacements, or why it cannot be written.
    Message(Result<Vec<u8>, String>),
    Problem,
    Gap,
}

struct Read {
    stream: u64,
    time: Time,
    from: Side,
    name: String,
    piece: Piece,
}

impl Sanitizer<'_> {
    fn first_reading(&self, key: [u8; 32]) -> Result<FirstReading, Failure> {
        // Whether a message can be encoded does not depend on the names.
        let pseudonyms = Pseudonyms::new(key, &Found::default());
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Seen>| {
            let stream = item.stamp.stream;
            let is_udp = item.ends.is_some_and(Ends::is_datagrams);
            if is_login(item.family, is_udp)
                && let Some(why) = unwritable(item, &scratch.name, &pseudonyms)
            {
                out.push(Seen::Unwritable { stream, why });
            }
            if item.message().is_none() {
                return;
            }
            out.push(Seen::First { stream, name: scratch.name.clone() });
            let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &LIMITS);
            let mut found = Found::default();
            collect(&tree, &mut found);
            if !found.is_empty() {
                out.push(Seen::Found(found));
            }
            scratch.tree = tree.recycle();
        };
        let (mut found, mut firsts) = (Found::default(), HashMap::new());
        let mut unwritable = HashMap::new();
        let (dissection, clean) = self.read(false, show, |seen| {
            for one in seen {
                match one {
                    Seen::First { stream, name } => {
                        firsts.entry(*stream).or_insert_with(|| name.clone());
                    }
                    Seen::Unwritable { stream, why } => {
                        unwritable.entry(*stream).or_insert_with(|| why.clone());
                    }
                    Seen::Found(more) => found.add(more),
                }
            }
            Ok(())
        })?;
        let mut starts = Vec::new();
        for overview in dissection.overviews() {
            let ends = [overview.client, overview.server];
            ends.iter().for_each(|end| found.add_address(end.ip()));
            starts.push(ConversationStart {
                stream: overview.stream,
                family: overview.family.map(|family| family.name()),
                ends,
                is_udp: overview.datagrams,
                first: firsts.remove(&overview.stream).unwrap_or_default(),
                secrets: overview.secrets.clone(),
                unwritable: unwritable.remove(&overview.stream),
                bytes: overview.bytes.iter().sum(),
            });
        }
        Ok(FirstReading { found, starts, clean })
    }

    fn second_reading(&self, writing: &mut Writing<'_>) -> Result<(), Failure> {
        let pseudonyms = writing.pseudonyms;
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Read>| {
            let piece = match (item.note(), item.message()) {
                (Some(note), _) => match note.kind {
                    NoteKind::Problem => Piece::Problem,
                    NoteKind::Gap => Piece::Gap,
                    _ => return,
                },
                (None, None) => return,
                (None, Some(_)) if is_step(&scratch.name) => Piece::Step(item.bytes().to_vec()),
                (None, Some(_)) => Piece::Message(encoded(item, pseudonyms)),
            };
            let (stream, time) = (item.stamp.stream, item.stamp.time);
            out.push(Read { stream, time, from: item.from, name: scratch.name.clone(), piece });
        };
        let (dissection, _) =
            self.read(true, show, |read| read.iter().try_for_each(|read| writing.piece(read)))?;
        writing.omitted.packets = dissection.unusable().iter().map(|(_, count)| count).sum();
        Ok(())
    }

    /// Reads the new capture, which requires no key files. Returns whether it contains exactly the
    /// messages that were written, and reports conversations that differ.
    fn reads_back(&self, path: &Path, written: &Written) -> Result<bool, Failure> {
        let mut capture = Capture::plain(path, self.capture.knowledge.data.clone());
        capture.knowledge.families.clone_from(&self.capture.knowledge.families);
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<_>| {
            if let (Some(ends), true) = (item.ends, item.message().is_some()) {
                let of = Side::BOTH.map(|side| ends.of(side));
                let route = Route { ends: of, is_udp: ends.is_datagrams() };
                out.push((route, item.from, scratch.name.clone()));
            }
        };
        let mut names = Names::default();
        let extras = Extras { is_again: true, ..Extras::default() };
        let definitions = self.definitions.clone();
        let (_, is_whole) = capture::read_with(
            &capture,
            self.common,
            definitions,
            extras,
            show,
            |all: &Vec<(Route, Side, String)>| {
                all.iter().for_each(|(route, from, name)| names.add(*route, *from, name));
                Ok(())
            },
        )?;
        let differing = written.names.differing(&names);
        for route in &differing {
            let streams = written.routes.get(route).into_iter().flatten();
            let streams: Vec<String> = streams.map(u64::to_string).collect();
            let streams = if streams.is_empty() { "?".to_owned() } else { streams.join(" and ") };
            let problem = format!(
                "conversation {streams} of the original differs when it is read from this file; do \
                 not use this file"
            );
            complain(&crate::output::shown(path), &problem);
        }
        Ok(is_whole && differing.is_empty())
    }

    fn read<T: Send>(
        &self,
        is_again: bool,
        show: impl Fn(&Item<'_>, &mut Scratch, &mut Vec<T>) + Sync,
        mut add: impl FnMut(&[T]) -> Result<(), Failure>,
    ) -> Result<(Dissection, bool), Failure> {
        let extras = Extras { is_again, secrets: !is_again, ..Extras::default() };
        let definitions = self.definitions.clone();
        capture::read_with(&self.capture, self.common, definitions, extras, show, |all: &Vec<T>| {
            add(all)
        })
    }
}

/// The reason why a login cannot be written, if an item reveals it.
fn unwritable(item: &Item<'_>, name: &str, pseudonyms: &Pseudonyms) -> Option<String> {
    match item.note() {
        Some(note) => {
            let is_fault = matches!(note.kind, NoteKind::Problem | NoteKind::Gap);
            is_fault.then(|| note.text.clone())
        }
        None => encoded(item, pseudonyms).err().map(|why| format!("{name} {why}")),
    }
}

/// Whether a piece is a setup step, which only its family's code can write.
fn is_step(name: &str) -> bool {
    ["setup.", "control.", "handshake."].iter().any(|kind| name.starts_with(kind))
}

/// The unencrypted bytes of a message with replacements, or why it cannot be written.
fn encoded(item: &Item<'_>, pseudonyms: &Pseudonyms) -> Result<Vec<u8>, String> {
    let Some(message) = item.message() else { return Err(String::new()) };
    let tree = message.tree(Tree::new(), &LIMITS);
    if tree.error().is_some() {
        return Err("cannot be decoded completely".to_owned());
    }
    let (bytes, body) = (message.bytes(), message.body());
    // The body is inside one of the family's frames.
    let at = (body.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize);
    let frame =
        at.and_then(|at| Some((bytes.get(..at)?, bytes.get(at.checked_add(body.len())?..)?)));
    let Some((before, after)) = frame.filter(|_| !body.is_empty()) else {
        // A KI data frame without a message.
        return match item.family == "ki" && body.is_empty() && bytes.len() <= EMPTY_FRAME {
            true => Ok(bytes.to_vec()),
            false => Err("has nothing that can be encoded".to_owned()),
        };
    };
    let mut why = "cannot be encoded with other values".to_owned();
    for opened in [Opened::Inside, Opened::Bytes] {
        let Ok(json) = parse(&replaced(&tree, item.family, opened, pseudonyms)) else { continue };
        let new = match item.encode(&json) {
            Ok(new) => new,
            Err(error) => {
                why = format!("cannot be encoded with other values: {error}");
                continue;
            }
        };
        let read = message.tree_of(&new, Tree::new(), &LIMITS);
        if read.error().is_some() || !have_same_fields(&tree, &read) {
            continue;
        }
        drop(read);
        let mut whole = [before, &new, after].concat();
        if new.len() != body.len() && !fit_frame(item.family, bytes, &mut whole) {
            return Err("its length changed in a frame of several messages".to_owned());
        }
        return Ok(whole);
    }
    Err(why)
}

/// The size of a KI data frame without a message.
const EMPTY_FRAME: usize = 9;

/// Corrects the length in the frame around a message. Returns false if the bytes are only part of a
/// frame.
fn fit_frame(family: &str, old: &[u8], new: &mut [u8]) -> bool {
    if family != "ki" {
        return true;
    }
    let Ok(head) = FrameHead::decode(&mut Reader::new(old)) else { return false };
    if head.frame_bytes() != old.len() {
        return false;
    }
    let length = new.len() - head.bytes();
    if head.is_large() {
        let (Some(at), Ok(length)) = (new.get_mut(4..8), u32::try_from(length)) else {
            return false;
        };
        at.copy_from_slice(&length.to_le_bytes());
        return true;
    }
    match (new.get_mut(2..4), u16::try_from(length)) {
        (Some(at), Ok(length)) if length < worldwire_ki::frame::LARGE => {
            at.copy_from_slice(&length.to_le_bytes());
            true
        }
        _ => false,
    }
}

/// The new capture, and the facts known about its conversations.
struct Writing<'w> {
    pseudonyms: &'w Pseudonyms,
    conversations: HashMap<u64, Conversation>,
    wire: Wire,
    omitted: Omitted,
    messages: u64,
}

impl Writing<'_> {
    fn piece(&mut self, read: &Read) -> Result<(), Failure> {
        let Read { stream, time, from, name, piece } = read;
        let Some(conversation) = self.conversations.get_mut(stream) else { return Ok(()) };
        let plain = match piece {
            Piece::Problem => {
                self.omitted.problems += 1;
                return Ok(());
            }
            Piece::Gap => {
                self.omitted.gaps += 1;
                return Ok(());
            }
            Piece::Step(bytes) => {
                let step = conversation.sealer.step(*from, name, bytes, self.pseudonyms);
                step.map_err(str::to_owned)
            }
            Piece::Message(message) => message.clone(),
        };
        let sealed = plain.and_then(|plain| {
            let sealed = conversation.sealer.seal((*from, *time), name, plain, self.pseudonyms);
            sealed.map_err(str::to_owned)
        });
        match sealed {
            Ok(bytes) => {
                self.messages += 1;
                let Conversation { ends, is_udp, .. } = *conversation;
                let (stream, time, from, bytes) = (*stream, *time, *from, &*bytes);
                self.wire.write(&Part { stream, ends, is_udp, time, from, name, bytes })
            }
            Err(why) => {
                self.omitted.message(name, &why);
                Ok(())
            }
        }
    }
}
