//! Conversations: recognised by content, then read by their family.

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use std::net::SocketAddr;

use worldwire_capture::Timestamp;
use worldwire_core::{Limits, Side, Tree};
use worldwire_uru::connection::Received;

use crate::Keys;
use crate::uru;

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
            Self::Problem => "problem",
        }
    }
}

impl Note {
    pub(crate) fn opened(text: String) -> Self {
        Self { kind: NoteKind::Opened, text }
    }

    pub(crate) fn gap(text: String) -> Self {
        Self { kind: NoteKind::Gap, text }
    }

    pub(crate) fn resync(text: String) -> Self {
        Self { kind: NoteKind::Resync, text }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { kind: NoteKind::Problem, text }
    }
}

impl<'i> Item<'i> {
    /// Appends the dotted name: `auth.AcctLoginRequest`; for notes the word of their kind.
    pub fn push_name(&self, name: &mut String) {
        match &self.body {
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
            ItemBody::Uru(_) => None,
        }
    }

    /// The plain bytes of a message; none for notes.
    #[must_use]
    pub fn bytes(&self) -> &'i [u8] {
        match &self.body {
            ItemBody::Uru(received) => received.bytes,
            ItemBody::Note(_) => &[],
        }
    }

    /// The tree of a message, in the memory of an old one; empty for notes.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        match &self.body {
            ItemBody::Uru(received) => received.tree(tree, limits),
            ItemBody::Note(_) => tree.recycle(),
        }
    }
}

/// The families that conversations can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Myst Online: Uru Live.
    Uru,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Uru];

    /// The name in output and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uru => "uru",
        }
    }

    /// The family of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a recognizer makes of the first bytes of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recognition {
    /// It is this family's.
    Yes,
    /// It is not.
    No,
    /// More bytes are needed to tell.
    NeedMore,
}

/// The most bytes kept of a conversation that is not recognised yet.
const MOST_UNDECIDED_BYTES: usize = 4096;

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
    /// Whether the ends were told.
    told: bool,
}

#[derive(Debug)]
enum State {
    Undecided { held: Vec<Held>, bytes: usize },
    Uru(Box<uru::UruSession>),
    Unknown,
}

/// Bytes that came before the conversation was recognised.
#[derive(Debug)]
struct Held {
    side: Side,
    stamp: Stamp,
    bytes: Vec<u8>,
}

impl Conversation {
    /// A conversation that has just begun. `forced` skips recognition.
    pub(crate) fn new(
        stream: u64,
        ends: [SocketAddr; 2],
        midstream: bool,
        forced: Option<Family>,
        keys: &Keys,
    ) -> Self {
        let state = match forced {
            Some(Family::Uru) => State::Uru(Box::new(uru::UruSession::new(keys))),
            None => State::Undecided { held: Vec::new(), bytes: 0 },
        };
        Self { state, stream, last: None, swapped: false, ends, midstream, told: false }
    }

    /// The family, once it is known.
    pub(crate) fn family(&self) -> Option<Family> {
        match self.state {
            State::Uru(_) => Some(Family::Uru),
            _ => None,
        }
    }

    pub(crate) fn data(
        &mut self,
        keys: &Keys,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        if matches!(self.state, State::Uru(_)) {
            self.introduce(stamp, out);
        }
        match &mut self.state {
            State::Uru(session) => session.data(side, stamp, bytes, out),
            State::Undecided { held, bytes: total } => {
                *total += bytes.len();
                held.push(Held { side, stamp, bytes: bytes.to_vec() });
                self.decide(keys, out);
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
            State::Uru(session) => session.gap(side, stamp, length, out),
            // What begins with a hole cannot be recognised.
            State::Undecided { .. } => self.give_up(stamp, out),
            State::Unknown => {}
        }
    }

    pub(crate) fn end(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let stamp = Stamp { stream: self.stream, ..self.last.unwrap_or(stamp) };
        match &mut self.state {
            State::Uru(session) => session.end(stamp, out),
            State::Undecided { .. } => self.give_up(stamp, out),
            State::Unknown => {}
        }
    }

    fn side(&self, side: Side) -> Side {
        if self.swapped { side.other() } else { side }
    }

    fn decide(&mut self, keys: &Keys, out: &mut dyn FnMut(Item<'_>)) {
        let State::Undecided { held, bytes } = &mut self.state else {
            return;
        };
        let first = |side: Side| {
            let of_side = held.iter().filter(|piece| piece.side == side);
            of_side.flat_map(|piece| &piece.bytes).copied().take(256).collect::<Vec<u8>>()
        };
        let verdict = Side::BOTH.map(|side| uru::recognize(&first(side)));
        let swapped = match verdict {
            [Recognition::Yes, _] => false,
            [_, Recognition::Yes] => true,
            [Recognition::No, _] | [_, Recognition::No] if *bytes > MOST_UNDECIDED_BYTES => {
                return self.state = State::Unknown;
            }
            [Recognition::No, Recognition::No] => return self.state = State::Unknown,
            _ => return,
        };
        let held = core::mem::take(held);
        self.swapped ^= swapped;
        if let Some(first) = held.first() {
            self.introduce(first.stamp, out);
        }
        let mut session = Box::new(uru::UruSession::new(keys));
        for piece in held {
            let side = if swapped { piece.side.other() } else { piece.side };
            session.data(side, piece.stamp, &piece.bytes, out);
        }
        self.state = State::Uru(session);
    }

    /// Names the ends, once.
    fn introduce(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        if core::mem::replace(&mut self.told, true) {
            return;
        }
        let [mut client, mut server] = self.ends;
        if self.swapped {
            (client, server) = (server, client);
        }
        let body = ItemBody::Note(Note::opened(format!("{client} > {server}")));
        out(Item { stamp, family: "uru", from: Side::Client, range: 0..0, body });
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
