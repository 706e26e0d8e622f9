//! A conversation is recognised by its content, then read by its family.

use std::fmt::Write as _;
use std::net::SocketAddr;

use worldwire_core::Side;
use worldwire_core::connection::Input;

use crate::families::{Families, Recognition};
use crate::family::{Family, HeldPiece, Opening, Prepared, Start};
use crate::item::{Ends, Item, ItemBody, Note, Stamp, Wire};
use crate::knowledge::{Definitions, Fact, Facts, Keys};
use crate::session::Session;

/// The maximum number of bytes kept of an unrecognised conversation. One side can send a full TCP
/// window before the capture shows the other side's first packet.
const MAX_UNDECIDED_BYTES: usize = 64 << 10;
/// Enough for two IPv4 addresses with ports as text.
const ENDS: usize = 48;
/// The memory that a piece takes in addition to its bytes.
const PIECE_BYTES: usize = 64;

/// Everything a conversation can use besides its own bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'k> {
    pub(crate) keys: &'k Keys,
    pub(crate) definitions: &'k Definitions,
    pub(crate) families: Families,
    pub(crate) facts: &'k Facts,
    /// The result of preparing this conversation, if any.
    pub(crate) prepared: Option<&'k Prepared>,
    /// The conversation whose captured bytes are reported too.
    pub(crate) wire: Option<u64>,
}

impl Context<'_> {
    fn session(self, family: &dyn Family, transport: Transport) -> Box<dyn Session> {
        let Self { keys, definitions, facts, prepared, .. } = self;
        let Transport { midstream, datagrams } = transport;
        family.session(&Start { keys, definitions, facts, prepared, datagrams, midstream })
    }
}

/// Facts about a conversation that the capture layer determines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport {
    /// Whether the beginning is missing.
    pub(crate) midstream: bool,
    /// Whether the conversation uses UDP.
    pub(crate) datagrams: bool,
}

/// A conversation that is recognised and then read.
#[derive(Debug)]
pub(crate) struct Conversation {
    stage: Stage,
    stream: u64,
    /// The last packet. Everything reported at the end has its time.
    last: Option<Stamp>,
    /// Whether client and server are swapped: the capture began in the middle and mistook one for
    /// the other.
    swapped: bool,
    ends: Ends,
    /// Whether the beginning is missing.
    midstream: bool,
    /// Whether the conversation uses UDP.
    datagrams: bool,
    /// Whether its recognition was reported.
    is_reported: bool,
    /// The stream position of each side.
    position: [u64; 2],
    /// Whether captured bytes are reported.
    is_wire_reported: bool,
}

#[derive(Debug)]
enum Stage {
    Undecided { held: Vec<HeldPiece>, bytes: usize },
    Read(&'static dyn Family, Box<dyn Session>),
    Unknown,
}

impl Conversation {
    /// A new conversation. `forced` skips recognition and says whether client and server are
    /// swapped.
    pub(crate) fn new(
        stream: u64,
        ends: [SocketAddr; 2],
        transport: Transport,
        forced: Option<(&'static dyn Family, bool)>,
        context: Context<'_>,
    ) -> Self {
        let Transport { midstream, datagrams } = transport;
        let stage = match forced {
            Some((family, _)) => Stage::Read(family, context.session(family, transport)),
            None => Stage::Undecided { held: Vec::new(), bytes: 0 },
        };
        let swapped = forced.is_some_and(|(_, swapped)| swapped);
        let [client, server] = ends;
        let mut ends = Ends::new(client, server).over(datagrams);
        if swapped {
            ends.swap();
        }
        let (last, is_reported) = (None, false);
        let is_wire_reported = context.wire == Some(stream);
        Self {
            stage,
            stream,
            last,
            swapped,
            ends,
            midstream,
            datagrams,
            is_reported,
            position: [0; 2],
            is_wire_reported,
        }
    }

    /// Copies a recognised conversation so that the rest of it can be read again from here. Returns
    /// the copy and its approximate size in bytes, or `None` if its session cannot be copied now.
    pub(crate) fn fork(&self) -> Option<(Self, usize)> {
        let Stage::Read(family, session) = &self.stage else { return None };
        let (session, bytes) = session.fork()?;
        let (stage, ends) = (Stage::Read(*family, session), self.ends.clone());
        Some((Self { stage, ends, ..*self }, size_of::<Self>() + bytes))
    }

    /// Reports captured bytes from now on.
    pub(crate) fn report_wire_bytes(&mut self) {
        self.is_wire_reported = true;
    }

    /// The family, once recognised.
    pub(crate) fn family(&self) -> Option<&'static dyn Family> {
        match &self.stage {
            Stage::Read(family, _) => Some(*family),
            _ => None,
        }
    }

    /// Takes a segment or a datagram.
    pub(crate) fn data(
        &mut self,
        context: Context<'_>,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        if matches!(self.stage, Stage::Read(..)) {
            self.report_recognition(stamp, out);
        }
        if !matches!(self.stage, Stage::Undecided { .. }) {
            self.report_wire(stamp, side, captured(self.datagrams, bytes), out);
        }
        let Self { stage, ends, datagrams, .. } = self;
        match stage {
            Stage::Read(_, session) => {
                session.input(stamp, side, input(*datagrams, bytes), &mut with(ends, out));
            }
            Stage::Undecided { held, bytes: total } => {
                *total += bytes.len() + PIECE_BYTES;
                held.push(HeldPiece { side, stamp, bytes: bytes.to_vec(), missing: 0 });
                self.decide(context, stamp, out);
            }
            Stage::Unknown => {}
        }
    }

    pub(crate) fn gap(
        &mut self,
        context: Context<'_>,
        side: Side,
        stamp: Stamp,
        length: u64,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.last = Some(stamp);
        let side = self.side(side);
        let Self { stage, ends, .. } = self;
        match stage {
            Stage::Read(_, session) => {
                session.input(stamp, side, Input::Gap(length), &mut with(ends, out));
            }
            Stage::Undecided { held, bytes } => {
                *bytes += PIECE_BYTES;
                held.push(HeldPiece { side, stamp, bytes: Vec::new(), missing: length });
                return self.decide(context, stamp, out);
            }
            Stage::Unknown => {}
        }
        // Items that were complete before the gap have been reported first.
        self.report_wire(stamp, side, Wire::Missing(length), out);
    }

    pub(crate) fn end(
        &mut self,
        context: Context<'_>,
        stamp: Stamp,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        let stamp = self.last_stamp(stamp);
        let Self { stage, ends, .. } = self;
        match stage {
            Stage::Read(_, session) => {
                for side in Side::BOTH {
                    session.input(stamp, side, Input::End, &mut with(ends, out));
                }
            }
            Stage::Undecided { .. } => self.give_up(context, stamp, out),
            Stage::Unknown => {}
        }
    }

    /// Facts for other conversations.
    pub(crate) fn facts(&mut self) -> Vec<Fact> {
        match &mut self.stage {
            Stage::Read(_, session) => session.facts(),
            _ => Vec::new(),
        }
    }

    /// The keys it was read with.
    pub(crate) fn secrets(&self) -> Option<String> {
        match &self.stage {
            Stage::Read(_, session) => session.secrets(),
            _ => None,
        }
    }

    /// Whether it holds input until it learns a fact.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.stage, Stage::Read(_, session) if session.waits())
    }

    /// Learns facts from other conversations.
    pub(crate) fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let stamp = self.last_stamp(stamp);
        let Self { stage, ends, .. } = self;
        if let Stage::Read(_, session) = stage {
            session.learn(facts, stamp, &mut with(ends, out));
        }
    }

    /// The stamp of items reported after the last packet.
    fn last_stamp(&self, stamp: Stamp) -> Stamp {
        Stamp { stream: self.stream, ..self.last.unwrap_or(stamp) }
    }

    /// Whether the beginning is missing.
    pub(crate) fn is_midstream(&self) -> bool {
        self.midstream
    }

    /// Whether the server opened the connection, as far as the capture shows.
    pub(crate) fn is_swapped(&self) -> bool {
        self.swapped
    }

    /// The actual sender of data that `side` seems to send.
    pub(crate) fn side(&self, side: Side) -> Side {
        if self.swapped { side.other() } else { side }
    }

    fn decide(&mut self, context: Context<'_>, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let datagrams = self.datagrams;
        let Stage::Undecided { held, bytes } = &mut self.stage else {
            return;
        };
        // A stream that starts with a gap also lacks its beginning.
        self.midstream |= held.last().is_some_and(|piece| piece.missing > 0);
        let midstream = self.midstream;
        let ends = Some(Side::BOTH.map(|side| self.ends.of(side)));
        let opening = Opening { pieces: held, ends, datagrams, midstream };
        let (family, swapped) = match context.families.recognize(&opening) {
            Recognition::Yes { family, swapped } => (family, swapped),
            Recognition::No => return self.give_up(context, stamp, out),
            Recognition::NeedMore if *bytes > MAX_UNDECIDED_BYTES => {
                return self.give_up(context, stamp, out);
            }
            Recognition::NeedMore => return,
        };
        self.midstream |= family.begins_late(&opening);
        let held = core::mem::take(held);
        if swapped {
            self.swapped = !self.swapped;
            self.ends.swap();
        }
        let mut session = context.session(family, Transport { midstream, datagrams });
        self.stage = Stage::Unknown;
        self.report_opened(family, held.first().map(|piece| piece.stamp), out);
        for piece in held {
            let side = if swapped { piece.side.other() } else { piece.side };
            let input = match piece.missing {
                0 => input(datagrams, &piece.bytes),
                missing => Input::Gap(missing),
            };
            self.report_wire(piece.stamp, side, captured_piece(datagrams, &piece), out);
            session.input(piece.stamp, side, input, &mut with(&self.ends, out));
        }
        self.stage = Stage::Read(family, session);
    }

    fn report_recognition(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        if let Some(family) = self.family() {
            self.report_opened(family, Some(stamp), out);
        }
    }

    fn report_opened(
        &mut self,
        family: &'static dyn Family,
        stamp: Option<Stamp>,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        let Some(stamp) = stamp.filter(|_| !core::mem::replace(&mut self.is_reported, true)) else {
            return;
        };
        let [client, server] = Side::BOTH.map(|side| self.ends.of(side));
        let mut text = String::with_capacity(ENDS);
        let _ = write!(text, "{client} > {server}");
        let body = ItemBody::Note(Note::opened(text));
        let item = Item::new(stamp, family.name(), Side::Client, 0..0, body);
        out(item.with_ends(&self.ends));
    }

    /// Reports captured bytes, if requested.
    fn report_wire(
        &mut self,
        stamp: Stamp,
        from: Side,
        wire: Wire<'_>,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        let position = &mut self.position[from.index()];
        let length = match wire {
            Wire::Bytes(bytes) | Wire::Datagram(bytes) => bytes.len() as u64,
            Wire::Missing(length) => length,
        };
        let range = *position..position.saturating_add(length);
        *position = range.end;
        if !self.is_wire_reported {
            return;
        }
        let family = match &self.stage {
            Stage::Read(family, _) => family.name(),
            Stage::Undecided { .. } | Stage::Unknown => "",
        };
        let item = Item::new(stamp, family, from, range, ItemBody::Wire(wire));
        out(item.with_ends(&self.ends));
    }

    fn give_up(&mut self, context: Context<'_>, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let Stage::Undecided { held, .. } = core::mem::replace(&mut self.stage, Stage::Unknown)
        else {
            return;
        };
        let Self { datagrams, midstream, .. } = *self;
        let ends = Some(Side::BOTH.map(|side| self.ends.of(side)));
        let opening = Opening { pieces: &held, ends, datagrams, midstream };
        for family in context.families.iter() {
            if let Some(text) = family.missed(&opening) {
                let body = ItemBody::Note(Note::problem(text));
                let item = Item::new(stamp, family.name(), Side::Client, 0..0, body);
                out(item.with_ends(&self.ends));
            }
        }
        for piece in held {
            self.report_wire(piece.stamp, piece.side, captured_piece(datagrams, &piece), out);
        }
    }
}

/// Adds the addresses to every item.
fn with<'o>(ends: &'o Ends, out: &'o mut dyn FnMut(Item<'_>)) -> impl FnMut(Item<'_>) + 'o {
    move |item| out(item.with_ends(ends))
}

fn captured(is_datagram: bool, bytes: &[u8]) -> Wire<'_> {
    if is_datagram { Wire::Datagram(bytes) } else { Wire::Bytes(bytes) }
}

fn captured_piece(is_datagram: bool, piece: &HeldPiece) -> Wire<'_> {
    match piece.missing {
        0 => captured(is_datagram, &piece.bytes),
        missing => Wire::Missing(missing),
    }
}

fn input(is_datagram: bool, bytes: &[u8]) -> Input<'_> {
    if is_datagram { Input::Datagram(bytes) } else { Input::Bytes(bytes) }
}
