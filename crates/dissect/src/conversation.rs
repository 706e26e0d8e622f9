//! Conversations: recognised by content, then read by their family.

use core::ops::Range;
use core::time::Duration;

use std::net::SocketAddr;

use worldwire_capture::Timestamp;
use worldwire_core::{Limits, Side, Tree};
use worldwire_uru::connection::Received;

use crate::family::{self, Family, Recognition, Session};
use crate::ki::KiItem;
use crate::uru;
use crate::{Definitions, Keys};

/// Where something stands in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The conversation, counted from 0 in the order of first packets.
    pub stream: u64,
    /// When the packet was captured that completed it.
    pub time: Timestamp,
    /// How long after the first packet of the capture that was.
    pub since: Duration,
    /// That packet's number, counted from 1.
    pub packet: u64,
}

/// One thing that was said on a conversation, or that there is to say about it.
#[derive(Debug)]
pub struct Item<'i> {
    /// Where it stands.
    pub stamp: Stamp,
    /// Whose protocol it is.
    pub family: &'static str,
    /// Who sent it.
    pub from: Side,
    /// Its bytes in the sender's stream.
    pub range: Range<u64>,
    /// What it is.
    pub body: ItemBody<'i>,
}

/// What an item is.
#[derive(Debug)]
#[non_exhaustive]
pub enum ItemBody<'i> {
    /// A control message or DML message of KI.
    Ki(KiItem<'i>),
    /// A message of Uru.
    Uru(Received<'i>),
    /// Something about the conversation.
    Note(Note),
}

/// Something that is no message: what is missing, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// One line.
    pub text: String,
}

/// What a note tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A conversation was recognised; the text names its ends.
    Opened,
    /// Bytes are missing in the capture.
    Gap,
    /// Reading goes on behind something that could not be read.
    Resync,
    /// Something was read, but a definition seems to be of another revision.
    Warning,
    /// Something cannot be read.
    Problem,
}

impl NoteKind {
    /// The word in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Gap => "gap",
            Self::Resync => "resync",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl From<Note> for ItemBody<'_> {
    fn from(note: Note) -> Self {
        Self::Note(note)
    }
}

impl Note {
    pub(crate) fn opened(text: String) -> Self {
        Self { kind: NoteKind::Opened, text }
    }

    /// Bytes of a stream that are missing.
    pub(crate) fn gap(range: &Range<u64>) -> Self {
        let text = format!("{} bytes are missing", range.end - range.start);
        Self { kind: NoteKind::Gap, text }
    }

    /// Bytes of a stream that were passed over.
    pub(crate) fn resync(skipped: &Range<u64>) -> Self {
        let bytes = skipped.end - skipped.start;
        let text = format!("reading goes on, {bytes} bytes were passed over");
        Self { kind: NoteKind::Resync, text }
    }

    pub(crate) fn warning(text: String) -> Self {
        Self { kind: NoteKind::Warning, text }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { kind: NoteKind::Problem, text }
    }
}

impl<'i> Item<'i> {
    /// Appends the dotted name: `auth.AcctLoginRequest`; for notes the word of their kind.
    pub fn push_name(&self, name: &mut String) {
        match &self.body {
            ItemBody::Ki(item) => item.push_name(name),
            ItemBody::Uru(received) => {
                let (kind, message) = received.name();
                name.push_str(kind);
                name.push('.');
                name.push_str(message);
            }
            ItemBody::Note(note) => name.push_str(note.kind.name()),
        }
    }

    /// The note, if it is one.
    #[must_use]
    pub fn note(&self) -> Option<&Note> {
        match &self.body {
            ItemBody::Note(note) => Some(note),
            ItemBody::Ki(_) | ItemBody::Uru(_) => None,
        }
    }

    /// The plain bytes of a message; none for notes.
    #[must_use]
    pub fn bytes(&self) -> &'i [u8] {
        match &self.body {
            ItemBody::Ki(item) => item.received.bytes,
            ItemBody::Uru(received) => received.bytes,
            ItemBody::Note(_) => &[],
        }
    }

    /// The tree of a message, in the memory of an old one; empty for notes.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        match &self.body {
            ItemBody::Ki(item) => item.tree(tree, limits),
            ItemBody::Uru(received) => received.tree(tree, limits),
            ItemBody::Note(_) => tree.recycle(),
        }
    }
}

/// The most bytes kept of a conversation that is not recognised yet.
const MOST_UNDECIDED_BYTES: usize = 4096;

/// What the user knows that helps to read conversations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'k> {
    pub(crate) keys: &'k Keys,
    pub(crate) definitions: &'k Definitions,
}

impl Known<'_> {
    fn session(self, family: Family, midstream: bool) -> Session {
        Session::new(family, midstream, self.keys, self.definitions)
    }
}

/// How a conversation came to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Its beginning is missing.
    pub(crate) midstream: bool,
    /// It is UDP.
    pub(crate) datagrams: bool,
}

/// A conversation of a capture on its way through recognition and reading.
#[derive(Debug)]
pub(crate) struct Conversation {
    state: State,
    stream: u64,
    /// The packet that came last, for what is told at the end.
    last: Option<Stamp>,
    /// Client and server change places: the capture began in the middle and had them wrong.
    swapped: bool,
    /// The ends, client first.
    ends: [SocketAddr; 2],
    /// Whether the beginning is missing.
    midstream: bool,
    /// Whether it is UDP.
    datagrams: bool,
    /// Whether the ends were told.
    told: bool,
}

#[derive(Debug)]
enum State {
    Undecided { held: Vec<Held>, bytes: usize },
    Read(Session),
    Unknown,
}

/// Bytes that came before the conversation was recognised.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) side: Side,
    stamp: Stamp,
    pub(crate) bytes: Vec<u8>,
}

impl Conversation {
    /// A conversation that has just begun. `forced` skips recognition.
    pub(crate) fn new(
        stream: u64,
        ends: [SocketAddr; 2],
        kind: Kind,
        forced: Option<Family>,
        known: Known<'_>,
    ) -> Self {
        let Kind { midstream, datagrams } = kind;
        let state = match forced {
            Some(family) => State::Read(known.session(family, midstream)),
            None => State::Undecided { held: Vec::new(), bytes: 0 },
        };
        let (last, swapped, told) = (None, false, false);
        Self { state, stream, last, swapped, ends, midstream, datagrams, told }
    }

    /// The family, once it is known.
    pub(crate) fn family(&self) -> Option<Family> {
        match &self.state {
            State::Read(session) => Some(session.family()),
            _ => None,
        }
    }

    /// Bytes: a segment, or a datagram.
    pub(crate) fn data(
        &mut self,
        known: Known<'_>,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        if matches!(self.state, State::Read(_)) {
            self.introduce(stamp, out);
        }
        match &mut self.state {
            State::Read(session) => session.data(self.datagrams, side, stamp, bytes, out),
            State::Undecided { held, bytes: total } => {
                *total += bytes.len();
                held.push(Held { side, stamp, bytes: bytes.to_vec() });
                self.decide(known, out);
            }
            State::Unknown => {}
        }
    }

    pub(crate) fn gap(
        &mut self,
        side: Side,
        stamp: Stamp,
        length: u64,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        match &mut self.state {
            State::Read(session) => session.gap(side, stamp, length, out),
            // What begins with a hole cannot be recognised.
            State::Undecided { .. } => self.give_up(stamp, out),
            State::Unknown => {}
        }
    }

    pub(crate) fn end(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let stamp = Stamp { stream: self.stream, ..self.last.unwrap_or(stamp) };
        match &mut self.state {
            State::Read(session) => session.end(stamp, out),
            State::Undecided { .. } => self.give_up(stamp, out),
            State::Unknown => {}
        }
    }

    fn side(&self, side: Side) -> Side {
        if self.swapped { side.other() } else { side }
    }

    fn decide(&mut self, known: Known<'_>, out: &mut dyn FnMut(Item<'_>)) {
        let State::Undecided { held, bytes } = &mut self.state else {
            return;
        };
        let (family, swapped) = match family::recognize(held, self.datagrams, self.midstream) {
            Recognition::Yes(family, swapped) => (family, swapped),
            Recognition::No => return self.state = State::Unknown,
            Recognition::NeedMore if *bytes > MOST_UNDECIDED_BYTES => {
                return self.state = State::Unknown;
            }
            Recognition::NeedMore => return,
        };
        let held = core::mem::take(held);
        self.swapped ^= swapped;
        let mut session = known.session(family, self.midstream);
        self.state = State::Unknown;
        self.named(family, held.first().map(|piece| piece.stamp), out);
        for piece in held {
            let side = if swapped { piece.side.other() } else { piece.side };
            session.data(self.datagrams, side, piece.stamp, &piece.bytes, out);
        }
        self.state = State::Read(session);
    }

    /// Names the ends, once.
    fn introduce(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        if let Some(family) = self.family() {
            self.named(family, Some(stamp), out);
        }
    }

    fn named(&mut self, family: Family, stamp: Option<Stamp>, out: &mut dyn FnMut(Item<'_>)) {
        let Some(stamp) = stamp.filter(|_| !core::mem::replace(&mut self.told, true)) else {
            return;
        };
        let [mut client, mut server] = self.ends;
        if self.swapped {
            (client, server) = (server, client);
        }
        let body = ItemBody::Note(Note::opened(format!("{client} > {server}")));
        out(Item { stamp, family: family.name(), from: Side::Client, range: 0..0, body });
    }

    fn give_up(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        self.state = State::Unknown;
        if self.midstream && self.ends[1].port() == uru::PORT {
            let text = "the beginning is missing, and an encrypted connection can be read only \
                        from its first byte"
                .to_owned();
            let body = ItemBody::Note(Note::problem(text));
            out(Item { stamp, family: "uru", from: Side::Client, range: 0..0, body });
        }
    }
}
