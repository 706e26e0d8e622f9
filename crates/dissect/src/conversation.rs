//! Conversations: recognised by content, then read by their family.

use std::net::SocketAddr;

use worldwire_core::Side;
use worldwire_core::connection::Input;

use crate::family::{Families, Family, HeldPiece, Opening, Recognition, Start};
use crate::item::{Item, ItemBody, Note, Stamp};
use crate::knowledge::{Definitions, Fact, Facts, Keys};
use crate::session::Session;

/// The most bytes kept of a conversation that is not recognised yet.
const MOST_UNDECIDED_BYTES: usize = 4096;

/// What the user knows that helps to read conversations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'k> {
    pub(crate) keys: &'k Keys,
    pub(crate) definitions: &'k Definitions,
    pub(crate) families: Families,
    pub(crate) facts: &'k Facts,
}

impl Known<'_> {
    fn session(self, family: &dyn Family, kind: Kind) -> Box<dyn Session> {
        let Self { keys, definitions, facts, .. } = self;
        let Kind { midstream, datagrams } = kind;
        family.session(&Start { keys, definitions, facts, datagrams, midstream })
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
    /// The packet that came last, for what is reported at the end.
    last: Option<Stamp>,
    /// Client and server change places: the capture began in the middle and had them wrong.
    swapped: bool,
    /// The ends, client first.
    ends: [SocketAddr; 2],
    /// Whether the beginning is missing.
    midstream: bool,
    /// Whether it is UDP.
    datagrams: bool,
    /// Whether the ends were reported.
    told: bool,
}

#[derive(Debug)]
enum State {
    Undecided { held: Vec<HeldPiece>, bytes: usize },
    Read(&'static dyn Family, Box<dyn Session>),
    Unknown,
}

impl Conversation {
    /// A conversation that has just begun. `forced` skips recognition.
    pub(crate) fn new(
        stream: u64,
        ends: [SocketAddr; 2],
        kind: Kind,
        forced: Option<&'static dyn Family>,
        known: Known<'_>,
    ) -> Self {
        let Kind { midstream, datagrams } = kind;
        let state = match forced {
            Some(family) => State::Read(family, known.session(family, kind)),
            None => State::Undecided { held: Vec::new(), bytes: 0 },
        };
        let (last, swapped, told) = (None, false, false);
        Self { state, stream, last, swapped, ends, midstream, datagrams, told }
    }

    /// The family, once it is known.
    pub(crate) fn family(&self) -> Option<&'static dyn Family> {
        match &self.state {
            State::Read(family, _) => Some(*family),
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
        if matches!(self.state, State::Read(..)) {
            self.introduce(stamp, out);
        }
        match &mut self.state {
            State::Read(_, session) => {
                session.input(stamp, side, input(self.datagrams, bytes), out)
            }
            State::Undecided { held, bytes: total } => {
                *total += bytes.len();
                held.push(HeldPiece { side, stamp, bytes: bytes.to_vec() });
                self.decide(known, out);
            }
            State::Unknown => {}
        }
    }

    pub(crate) fn gap(
        &mut self,
        known: Known<'_>,
        side: Side,
        stamp: Stamp,
        length: u64,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        match &mut self.state {
            State::Read(_, session) => session.input(stamp, side, Input::Gap(length), out),
            // What begins with a hole cannot be recognised.
            State::Undecided { .. } => self.give_up(known, stamp, out),
            State::Unknown => {}
        }
    }

    pub(crate) fn end(&mut self, known: Known<'_>, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let stamp = self.last_stamp(stamp);
        match &mut self.state {
            State::Read(_, session) => {
                for side in Side::BOTH {
                    session.input(stamp, side, Input::End, out);
                }
            }
            State::Undecided { .. } => self.give_up(known, stamp, out),
            State::Unknown => {}
        }
    }

    /// What other conversations should know.
    pub(crate) fn facts(&mut self) -> Vec<Fact> {
        match &mut self.state {
            State::Read(_, session) => session.facts(),
            _ => Vec::new(),
        }
    }

    /// Whether it keeps something until it learns a fact.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.state, State::Read(_, session) if session.waits())
    }

    /// Learns what others stated.
    pub(crate) fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let stamp = self.last_stamp(stamp);
        if let State::Read(_, session) = &mut self.state {
            session.learn(facts, stamp, out);
        }
    }

    /// Where what comes behind everything stands: at the last packet.
    fn last_stamp(&self, stamp: Stamp) -> Stamp {
        Stamp { stream: self.stream, ..self.last.unwrap_or(stamp) }
    }

    /// Whether the end that opened it is the server.
    pub(crate) fn is_swapped(&self) -> bool {
        self.swapped
    }

    /// The side that bytes of this one are of.
    pub(crate) fn side(&self, side: Side) -> Side {
        if self.swapped { side.other() } else { side }
    }

    fn decide(&mut self, known: Known<'_>, out: &mut dyn FnMut(Item<'_>)) {
        let (datagrams, midstream) = (self.datagrams, self.midstream);
        let State::Undecided { held, bytes } = &mut self.state else {
            return;
        };
        let opening = Opening { pieces: held, ends: Some(self.ends), datagrams, midstream };
        let (family, swapped) = match known.families.recognize(&opening) {
            Recognition::Yes(family, swapped) => (family, swapped),
            Recognition::No => return self.state = State::Unknown,
            Recognition::NeedMore if *bytes > MOST_UNDECIDED_BYTES => {
                return self.state = State::Unknown;
            }
            Recognition::NeedMore => return,
        };
        let held = core::mem::take(held);
        self.swapped ^= swapped;
        let mut session = known.session(family, Kind { midstream, datagrams });
        self.state = State::Unknown;
        self.named(family, held.first().map(|piece| piece.stamp), out);
        for piece in held {
            let side = if swapped { piece.side.other() } else { piece.side };
            session.input(piece.stamp, side, input(datagrams, &piece.bytes), out);
        }
        self.state = State::Read(family, session);
    }

    /// Names the ends, once.
    fn introduce(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        if let Some(family) = self.family() {
            self.named(family, Some(stamp), out);
        }
    }

    fn named(
        &mut self,
        family: &'static dyn Family,
        stamp: Option<Stamp>,
        out: &mut dyn FnMut(Item<'_>),
    ) {
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

    fn give_up(&mut self, known: Known<'_>, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let State::Undecided { held, .. } = core::mem::replace(&mut self.state, State::Unknown)
        else {
            return;
        };
        let Self { ends, datagrams, midstream, .. } = *self;
        let opening = Opening { pieces: &held, ends: Some(ends), datagrams, midstream };
        for family in known.families.iter() {
            if let Some(text) = family.missed(&opening) {
                let body = ItemBody::Note(Note::problem(text));
                let (family, range) = (family.name(), 0..0);
                out(Item { stamp, family, from: Side::Client, range, body });
            }
        }
    }
}

/// A segment, or a datagram.
fn input(is_datagram: bool, bytes: &[u8]) -> Input<'_> {
    if is_datagram { Input::Datagram(bytes) } else { Input::Bytes(bytes) }
}
