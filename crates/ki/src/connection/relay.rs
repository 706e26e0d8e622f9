//! The relay: what passes from one side to the other.
//!
//! A data frame may hold several messages. Their decisions are collected: if all are
//! [`AsIs`](Forward::AsIs), the frame's own bytes go on; else a frame is made anew, in the
//! original's form and with its trailer. If all are dropped there is no frame at all. An empty one
//! would keep nobody alive, since keep-alives pass through untouched, and what clients make of it
//! is not known.
//!
//! The login's secrets hang on the session offer, and the ends keep their own clocks, so session
//! offers, accepts and keep-alives cannot be changed.

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use worldwire_core::connection::{
    Bounds, CloseReason, Decision, Forward, Forwarding, HoldId, Inject, Leaving, Outgoing,
    SendError,
};
use worldwire_core::{Error, Reader, Result, Side, Writer};

use super::Connection;
use super::config::ObserverKeys;
use super::event::{News, Unit};
use super::sender::{Role, Sender, Session};
use super::stream::{FrameSpan, Stream};
use crate::control::{Opcode, SessionAccept};
use crate::crypt::stream::{Sealer, StreamKey};
use crate::frame::{BODY_HEAD_BYTES, Frame, FrameHead, control_opcode};
use crate::message::RawMessage;

/// How a relay treats a connection.
///
/// A relay passes on whole frames, as soon as all messages of one are decided about, and datagrams
/// as datagrams. With nothing changed the bytes on both sides are the same, encrypted or not,
/// though not cut into the same writes. Session offers, accepts and keep-alives cannot be changed.
/// It has no time-outs. An encrypted stream without its key closes it.
///
/// # Encryption
///
/// Each direction is decrypted with one state and encrypted with another, which takes over the
/// sender's nonces: as long as nothing was changed, dropped or injected, the same bytes come out.
/// From the first change on chunks hold other bytes, and the sender's nonces must not be used again
/// with the same key. The relay then derives each nonce from the key and the tag of the chunk
/// before: 16 bytes of SHA-256. A tag depends on everything in its chunk, so two chunks get the
/// same nonce only if those before them are the same, which makes relays in a row safe too; and
/// without the key nobody can foresee it. What remains is the chunk in which the first change
/// falls: its nonce is on its way already. Whoever taps both wires of the relay learns how the
/// rest of that chunk, at most 64 KiB, differs from the original, and with that can forge.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// What the user has to read encrypted connections with.
    pub keys: Arc<ObserverKeys>,
    /// How many bytes a frame's body may have; what is behind a longer one goes on unread.
    /// Default 4 MiB.
    pub max_frame_bytes: u32,
    /// How much may be queued for each side, and kept of what the other side sent.
    pub bounds: Bounds,
}

impl RelayConfig {
    /// The defaults, with these keys.
    #[must_use]
    pub fn new(keys: Arc<ObserverKeys>) -> Self {
        Self { keys, max_frame_bytes: 4 << 20, bounds: Bounds::default() }
    }
}

/// The state of a relay.
#[derive(Debug)]
pub(super) struct Relaying {
    pub(super) config: Arc<RelayConfig>,
    forwarding: Forwarding<Passage>,
    /// By the side that sends.
    ways: [Way; 2],
    /// Everything comes and goes in datagrams.
    is_datagrams: bool,
}

/// A part of what a side sends, on its way through a relay.
#[derive(Debug)]
pub(super) enum Passage {
    Piece(Slot),
    /// A frame, a part of a datagram or a part of a stream that cannot be read.
    Unread {
        is_datagram: bool,
    },
    /// A datagram was read to its end.
    DatagramEnd,
    /// Bytes that cannot be decrypted, as they were on the wire.
    Sealed,
    /// The part of a tag and nonce with which an encrypted stream ends.
    Torn,
}

/// A piece and its place in its frame.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) unit: Unit,
    pub(super) head: FrameHead,
    /// Where the piece is in the buffer of its stream.
    pub(super) bytes: Range<usize>,
    /// What a decision is about, counted from the first byte of the piece.
    pub(super) message: Range<usize>,
    pub(super) is_last: bool,
    pub(super) is_datagram: bool,
}

/// What goes from one side to the other.
#[derive(Debug)]
struct Way {
    out: Outgoing,
    /// The frame in progress, as far as it was decided about.
    frame: Assembly,
    /// Frames injected while another frame or datagram is in progress.
    later: Vec<Vec<u8>>,
    later_bytes: usize,
    /// The datagram in progress, as far as it was decided about.
    datagram: Option<Vec<u8>>,
    seal: Option<Seal>,
    /// Sealed bytes cannot be forwarded, since what went before was changed.
    is_broken: bool,
    /// The rest goes on as it comes.
    is_raw: bool,
}

/// A frame that is put together from pieces.
#[derive(Debug, Default)]
struct Assembly {
    original: Vec<u8>,
    /// The frame's body so far, once something in it was changed; of a control message all of it.
    changed: Option<Vec<u8>>,
}

/// Encryption of what goes on.
#[derive(Debug)]
struct Seal {
    sealer: Sealer,
    key: StreamKey,
    /// Nothing was changed so far: the sender's nonces go on.
    is_in_step: bool,
    nonces: VecDeque<[u8; 16]>,
}

impl Relaying {
    fn new(config: Arc<RelayConfig>) -> Self {
        let ways = Side::BOTH.map(|_| Way {
            out: Outgoing::new(config.bounds),
            frame: Assembly::default(),
            later: Vec::new(),
            later_bytes: 0,
            datagram: None,
            seal: None,
            is_broken: false,
            is_raw: false,
        });
        let forwarding = Forwarding::new(config.bounds);
        Self { config, forwarding, ways, is_datagrams: false }
    }

    /// A piece is reported, and can be decided about.
    pub(super) fn report(&mut self, side: Side, slot: Slot) {
        let is_urgent = !slot.is_datagram
            && matches!(slot.unit, Unit::Control(Opcode::KeepAlive | Opcode::KeepAliveRsp));
        self.forwarding.report(side, Passage::Piece(slot), is_urgent);
    }

    /// Queues what a side sent and may leave now.
    ///
    /// # Errors
    /// The limit that a frame exceeds even in an empty queue.
    fn fill(&mut self, from: Side) -> Result<()> {
        let Self { forwarding, ways, .. } = self;
        forwarding.fill(from, &mut ways[from.index()], Way::forward)
    }

    /// The stream is encrypted from here on.
    fn encrypt(&mut self, side: Side, key: &StreamKey) {
        self.ways[side.index()].seal = Some(Seal {
            sealer: Sealer::new(key, side),
            key: *key,
            is_in_step: true,
            nonces: VecDeque::new(),
        });
    }

    /// The sender's nonces that have come.
    fn on_nonces(&mut self, side: Side, stream: &mut Stream) {
        let nonces = stream.nonces.as_mut().map(core::mem::take).unwrap_or_default();
        let way = &mut self.ways[side.index()];
        let Some(seal) = way.seal.as_mut().filter(|seal| seal.is_in_step) else { return };
        seal.nonces.extend(nonces);
        let mut sealed = Vec::new();
        seal.end_chunk(&mut sealed);
        way.out.forward_joined(&sealed);
    }

    /// How many bytes are queued for a side.
    pub(super) fn queued_bytes(&self, to: Side) -> usize {
        self.ways[to.other().index()].out.bytes()
    }

    pub(super) fn pop(&mut self, to: Side) -> Option<Vec<u8>> {
        self.ways[to.other().index()].out.pop()
    }

    pub(super) fn is_paused(&self, from: Side) -> bool {
        self.forwarding.is_paused(from, &self.ways[from.index()].out)
    }

    pub(super) fn kept_bytes(&self, from: Side) -> usize {
        self.forwarding.kept_bytes(from, &self.ways[from.index()].out)
    }

    /// Queues a message of the relay's own. What a side sent counts as forwarded by the frame or
    /// datagram, so a message that is injected into one is sent after it.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        let from = to.other();
        let frame = Frame::message(whole_message(message)?).to_bytes();
        let frame = frame.map_err(SendError::Encode)?;
        let is_datagram = self.is_datagrams;
        if self.ways[from.index()].is_raw {
            return Err(SendError::Unread);
        }
        self.fill(from).map_err(SendError::QueueFull)?;
        let is_reading = self.forwarding.reported().is_some_and(|(side, _)| side == from);
        let is_holding = self.forwarding.is_holding(from);
        let way = &mut self.ways[from.index()];
        let length = way.later_bytes.saturating_add(frame.len());
        way.out.check_room(length).map_err(SendError::QueueFull)?;
        way.later_bytes += frame.len();
        way.later.push(frame);
        if is_holding || !(is_reading || way.is_in_progress()) {
            way.release(is_datagram);
        }
        Ok(())
    }
}

impl Assembly {
    /// Adds a piece, with what was decided about it.
    fn add(&mut self, slot: &Slot, bytes: Vec<u8>, decision: Decision<'_>) {
        let start = self.original.len();
        match start {
            0 => self.original = bytes,
            _ => self.original.extend_from_slice(&bytes),
        }
        let original = &self.original;
        let message = start + slot.message.start..start + slot.message.end;
        let is_control = matches!(slot.unit, Unit::Control(_));
        let before = if is_control { 0..0 } else { slot.head.bytes()..message.start };
        let so_far = || original.get(before).unwrap_or_default().to_vec();
        match decision {
            Decision::AsIs => {
                if let Some(changed) = &mut self.changed {
                    changed.extend_from_slice(original.get(message).unwrap_or_default());
                }
            }
            Decision::Instead(bytes) => {
                self.changed.get_or_insert_with(so_far).extend_from_slice(&bytes);
            }
            Decision::Drop => {
                self.changed.get_or_insert_with(so_far);
            }
        }
    }

    /// How long the frame is so far.
    fn bytes(&self) -> usize {
        self.changed.as_ref().unwrap_or(&self.original).len()
    }

    /// The frame to forward, which has no bytes when nothing is left of it, and whether it was
    /// changed. `last` is its last piece.
    fn finish(self, last: &Slot) -> (Vec<u8>, bool) {
        let Some(mut body) = self.changed else { return (self.original, false) };
        if matches!(last.unit, Unit::Control(_)) {
            return (body, true);
        }
        if body.len() <= BODY_HEAD_BYTES {
            return (Vec::new(), true);
        }
        let behind = last.bytes.len() - last.message.end.min(last.bytes.len());
        let trailer = self.original.len().saturating_sub(behind);
        body.extend_from_slice(self.original.get(trailer..).unwrap_or_default());
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut writer = Writer::new();
        FrameHead { form: last.head.form, length }.encode(&mut writer);
        writer.bytes(&body);
        (writer.into_bytes(), true)
    }
}

impl AsMut<Outgoing> for Way {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Way {
    /// Forwards what leaves now.
    fn forward(&mut self, leaving: Leaving<Passage>) {
        let Leaving { piece, bytes, decision, overtakes } = leaving;
        match piece {
            Some(Passage::Piece(slot)) => {
                // What overtakes is a frame of its own.
                let mut frame = match overtakes {
                    true => Assembly::default(),
                    false => core::mem::take(&mut self.frame),
                };
                frame.add(&slot, bytes, decision);
                if !slot.is_last {
                    self.frame = frame;
                    return;
                }
                let (bytes, is_changed) = frame.finish(&slot);
                self.put(bytes, is_changed || overtakes, slot.is_datagram);
                if !overtakes {
                    self.release(slot.is_datagram);
                }
            }
            Some(Passage::Unread { is_datagram }) => self.put(bytes, false, is_datagram),
            Some(Passage::DatagramEnd) => {
                if let Some(datagram) = self.datagram.take().filter(|it| !it.is_empty()) {
                    self.out.forward(datagram);
                }
                self.release(true);
            }
            Some(Passage::Sealed) => {
                self.is_broken = self.seal.take().is_some_and(|seal| !seal.is_in_step);
                if !self.is_broken {
                    self.out.forward_joined(&bytes);
                }
            }
            Some(Passage::Torn) if self.seal.as_ref().is_some_and(|seal| seal.is_in_step) => {
                self.is_raw = true;
                self.out.forward_joined(&bytes);
            }
            Some(Passage::Torn) | None => {}
        }
    }

    /// Forwards plain bytes, as a part of a datagram or encrypted if the stream is.
    fn put(&mut self, plain: Vec<u8>, is_changed: bool, is_datagram: bool) {
        match &mut self.seal {
            _ if is_datagram => self.datagram.get_or_insert_default().extend_from_slice(&plain),
            Some(seal) => {
                let sealed = seal.seal(&plain, is_changed);
                self.out.forward_joined(&sealed);
            }
            None => self.out.forward_joined(&plain),
        }
    }

    fn is_in_progress(&self) -> bool {
        !self.frame.original.is_empty() || self.datagram.is_some()
    }

    /// Forwards what was injected while a frame or datagram was in progress.
    fn release(&mut self, is_datagram: bool) {
        if is_datagram && self.datagram.is_some() {
            return;
        }
        self.later_bytes = 0;
        for frame in core::mem::take(&mut self.later) {
            match is_datagram {
                true => self.out.forward(frame),
                false => self.put(frame, true, false),
            }
        }
    }
}

impl Seal {
    fn seal(&mut self, mut plain: &[u8], is_changed: bool) -> Vec<u8> {
        let mut sealed = Vec::new();
        if is_changed {
            self.leave_step();
        }
        while !plain.is_empty() {
            self.end_chunk(&mut sealed);
            if self.sealer.is_full() {
                // Plain bytes behind a chunk come after its nonce, so this does not happen.
                self.leave_step();
                self.end_chunk(&mut sealed);
            }
            plain = self.sealer.seal_part(plain, &mut sealed);
        }
        self.end_chunk(&mut sealed);
        sealed
    }

    fn leave_step(&mut self) {
        self.is_in_step = false;
        self.nonces = VecDeque::new();
    }

    /// Ends a chunk that is full, if the next nonce is known.
    fn end_chunk(&mut self, sealed: &mut Vec<u8>) {
        if !self.sealer.is_full() {
            return;
        }
        let nonce = match self.is_in_step {
            true => self.nonces.pop_front(),
            false => Some(derived_nonce(&self.key, self.sealer.tag())),
        };
        if let Some(nonce) = nonce {
            self.sealer.begin_chunk(&nonce, sealed);
        }
    }
}

fn derived_nonce(key: &StreamKey, tag: [u8; 16]) -> [u8; 16] {
    let hash = Sha256::new().chain_update(b"worldwire relay").chain_update(key.key);
    let hash: [u8; 32] = hash.chain_update(tag).finalize().into();
    core::array::from_fn(|at| hash[at])
}

/// Whether a control message may be changed: nothing is known to hang on those that are unknown.
fn is_unknown(opcode: Opcode) -> bool {
    !matches!(
        opcode,
        Opcode::SessionOffer | Opcode::SessionAccept | Opcode::KeepAlive | Opcode::KeepAliveRsp
    )
}

/// The message, if the bytes are one and nothing else.
fn whole_message(bytes: &[u8]) -> Result<RawMessage<'_>, SendError> {
    let mut reader = Reader::new(bytes);
    match RawMessage::decode(&mut reader, false) {
        Ok(message) if reader.remaining() == 0 => Ok(message),
        _ => {
            let found = format!("{} bytes that are something else", bytes.len());
            Err(SendError::Encode(Error::value("one whole DML message", found)))
        }
    }
}

/// Checks that the bytes are a frame with a control message that nothing is known about.
fn check_control(bytes: &[u8]) -> Result<(), SendError> {
    let whole = FrameHead::decode(&mut Reader::new(bytes)).map(FrameHead::frame_bytes);
    let opcode = control_opcode(bytes).filter(|opcode| is_unknown(*opcode));
    if whole.ok() == Some(bytes.len()) && opcode.is_some() {
        return Ok(());
    }
    let wanted = "a frame with an unknown control message";
    Err(SendError::Encode(Error::value(wanted, "other bytes")))
}

/// Checks that a piece may be dropped or changed into these bytes.
fn check_decision(way: &Way, piece: &Passage, decision: &Decision<'_>) -> Result<(), SendError> {
    let Passage::Piece(slot) = piece else { return Ok(()) };
    match (slot.unit, decision) {
        (Unit::Control(opcode), _) if !is_unknown(opcode) => {
            Err(SendError::Unchangeable("a control message of the session"))
        }
        (Unit::Control(_), Decision::Instead(bytes)) => check_control(bytes),
        (_, Decision::Instead(bytes)) => {
            whole_message(bytes)?;
            let length = way.frame.bytes().saturating_add(bytes.len());
            way.out.check_fits(length).map_err(SendError::QueueFull)
        }
        (_, Decision::Drop | Decision::AsIs) => Ok(()),
    }
}

impl Connection {
    /// Stands between a client and a server; see [`Forward`].
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let mut connection = Self::new(Role::Relay(Box::new(Relaying::new(config))), now);
        connection.streams.iter_mut().for_each(|stream| stream.nonces = Some(Vec::new()));
        connection
    }

    /// Relays: carries out the decision about the last piece, and fills the queues up.
    #[inline]
    pub(super) fn settle(&mut self) {
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Relays: carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let streams = &self.streams;
        let settled = relay.forwarding.settle(|side, passage| match passage {
            Passage::Piece(slot) => streams[side.index()].bytes(slot.bytes.clone()).to_vec(),
            _ => Vec::new(),
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues what a side sent and may leave now.
    fn fill(&mut self, from: Side) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        if self.sender.closing.is_closed() {
            return;
        }
        let filled = relay.fill(from);
        if relay.ways[from.index()].is_broken {
            self.sender.closing.close(CloseReason::Fault);
        }
        if let Err(error) = filled {
            self.refuse(from, error.at(self.streams[from.index()].position()));
        }
    }

    /// Queues something that nobody decides about.
    fn pass(&mut self, side: Side, passage: Passage, bytes: Vec<u8>) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.forwarding.pass(side, Some(passage), bytes);
            self.fill(side);
        }
    }

    /// Checks that not too much of a paused stream has arrived. True when there is.
    pub(super) fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let stream = &self.streams[side.index()];
        let checked = relay.forwarding.check_unread(stream.waiting_bytes());
        let at = stream.position();
        checked.map_err(|error| self.refuse(side, error.at(at))).is_err()
    }

    /// Something came from a side.
    pub(super) fn on_relayed_input(&mut self, side: Side, is_datagram: bool) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.is_datagrams |= is_datagram;
            relay.on_nonces(side, &mut self.streams[side.index()]);
        }
    }

    /// A stream turns out to be encrypted: without its key nothing can be passed on.
    pub(super) fn open_relayed(&mut self, side: Side) {
        let session_id = self.sender.session_id();
        let stream = &mut self.streams[side.index()];
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let config = Arc::clone(&relay.config);
        let Some(key) = stream.open(config.keys.of(session_id)) else {
            let session = session_id.map_or(String::new(), |id| format!(" of session {id}"));
            let wanted = format!("the AES key and first nonce{session}");
            let error = Error::malformed(wanted, "an encrypted stream and no key that fits");
            let error = error.at(stream.position());
            return self.refuse(side, error);
        };
        relay.encrypt(side, key);
        relay.on_nonces(side, stream);
    }

    /// A frame that cannot be read goes on as it came.
    pub(super) fn pass_frame(&mut self, side: Side, span: &FrameSpan) {
        let stream = &self.streams[side.index()];
        let passage = Passage::Unread { is_datagram: stream.is_datagram() };
        let bytes = stream.bytes(span.range.clone()).to_vec();
        self.pass(side, passage, bytes);
    }

    /// What is behind a fault goes on as it comes: the rest of the datagram, or all of the stream.
    pub(super) fn pass_unread(&mut self, side: Side, datagram: Option<Range<usize>>) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let Some(range) = datagram else {
            relay.ways[side.index()].is_raw = true;
            return;
        };
        let bytes = self.streams[side.index()].bytes(range).to_vec();
        self.pass(side, Passage::Unread { is_datagram: true }, bytes);
    }

    /// Passes on what is there of a stream that is not read any more.
    pub(super) fn pass_raw(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        if !relay.ways[side.index()].is_raw {
            return false;
        }
        let most = relay.forwarding.max_raw_bytes();
        let stream = &mut self.streams[side.index()];
        let range = stream.take(most);
        let bytes = stream.bytes(range).to_vec();
        let is_empty = bytes.is_empty();
        if !is_empty {
            self.pass(side, Passage::Unread { is_datagram: false }, bytes);
        }
        !is_empty
    }

    /// A datagram was read to its end.
    pub(super) fn pass_datagram(&mut self, side: Side) {
        self.pass(side, Passage::DatagramEnd, Vec::new());
    }

    /// Bytes that cannot be decrypted, if they are that, go on as they were on the wire. `false`
    /// when the connection cannot go on, since bytes are missing or what went before was changed.
    pub(super) fn pass_wire(&mut self, side: Side, wire: Option<Vec<u8>>) -> bool {
        let stream = &mut self.streams[side.index()];
        if !matches!(self.sender.role, Role::Relay(_)) {
            return true;
        }
        // What is left of the plain bytes goes first.
        let range = stream.take(usize::MAX);
        let rest = stream.bytes(range).to_vec();
        stream.close_cipher();
        self.pass(side, Passage::Unread { is_datagram: false }, rest);
        let Some(wire) = wire else { return false };
        self.pass(side, Passage::Sealed, wire);
        matches!(&self.sender.role, Role::Relay(relay) if !relay.ways[side.index()].is_broken)
    }

    /// The side sends nothing more.
    pub(super) fn pass_end(&mut self, side: Side) {
        let rest = self.streams[side.index()].torn_tag().to_vec();
        if !rest.is_empty() {
            self.pass(side, Passage::Torn, rest);
        }
    }
}

impl Sender {
    /// The accept of the session that was offered last passes an observer or a relay.
    pub(super) fn on_relayed(&mut self, side: Side, accept: &SessionAccept<'_>) -> Option<News> {
        let session_id = self.session_id().filter(|id| *id == accept.session_id)?;
        let previous = match self.session {
            Session::Established { id } => Some(id),
            _ => None,
        };
        if side != Side::Client || previous == Some(session_id) {
            return None;
        }
        self.session = Session::Established { id: session_id };
        Some(News::Established { session_id, previous })
    }
}

impl Forward for Sender {
    /// Decides about the piece that was received last. What goes on instead of a message is a
    /// message as [`RawMessage`] encodes it; instead of an unknown control message, a frame with
    /// one.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Relaying { forwarding, ways, .. } = relaying(&mut self.role)?;
        let way = forwarding.reported().map(|(side, _)| &ways[side.index()]);
        let Some(way) = way else { return forwarding.decide(decision, |_, _| Ok(())) };
        forwarding.decide(decision, |piece, decision| check_decision(way, piece, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        relaying(&mut self.role)?.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Relaying { forwarding, ways, .. } = relaying(&mut self.role)?;
        // The bounds of both are the same.
        let [way, _] = ways;
        forwarding.release(held, decision, |piece, decision| check_decision(way, piece, decision))
    }
}

impl Inject for Sender {
    /// Sends a message, as [`RawMessage`] encodes it, in a frame of its own. A message of the
    /// relay's that meets a stale session is lost: the server ignores it, and the client sends
    /// only its own last message again.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let is_established = self.is_established();
        let relay = relaying(&mut self.role)?;
        // A held offer or accept comes first.
        let is_control = |passage: &Passage| {
            matches!(passage, Passage::Piece(Slot { unit: Unit::Control(opcode), .. })
                if matches!(*opcode, Opcode::SessionOffer | Opcode::SessionAccept))
        };
        if !is_established || relay.forwarding.keeps(is_control) {
            return Err(SendError::NotEstablished);
        }
        relay.inject(to, message)
    }
}

fn relaying(role: &mut Role) -> Result<&mut Relaying, SendError> {
    match role {
        Role::Relay(relay) => Ok(relay),
        _ => Err(SendError::Role("a relay")),
    }
}
