//! Conversations: recognised by content, then read by their family.

use std::net::SocketAddr;

use worldwire_core::Side;

use crate::family::{self, Family, Held, Recognition, Session};
use crate::item::{Item, ItemBody, Note, Stamp};
use crate::uru;
use crate::{Definitions, Keys};

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
