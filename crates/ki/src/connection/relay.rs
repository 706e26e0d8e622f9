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
use worldwire_core::connection::{self, Bounds, Decision, Decisions, Forward, Outgoing};
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
    /// How much may be queued for a side. More closes the connection with a fault: not to read on
    /// would only fill the memory elsewhere. A driver that goes by `queued_bytes` stops reading
    /// from the network before that.
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
    decisions: Decisions,
    frame: Option<Passing>,
    /// By the side that sends.
    ways: [Way; 2],
    /// Everything comes and goes in datagrams.
    is_datagrams: bool,
}

/// A frame whose messages are being decided about.
#[derive(Debug)]
struct Passing {
    side: Side,
    span: FrameSpan,
    /// The piece that was reported last, counted from the frame's first byte.
    unit: Unit,
    message: Range<usize>,
    is_last: bool,
    /// The frame's body so far, once something in it was changed; of a control message all of it.
    changed: Option<Vec<u8>>,
}

/// What goes from one side to the other.
#[derive(Debug)]
struct Way {
    out: Outgoing,
    /// Frames injected while another frame or datagram is in progress.
    later: Vec<Vec<u8>>,
    later_bytes: usize,
    /// The datagram in progress, as far as it was decided about.
    datagram: Option<Vec<u8>>,
    seal: Option<Seal>,
    /// The rest goes on as it comes.
    is_raw: bool,
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
            later: Vec::new(),
            later_bytes: 0,
            datagram: None,
            seal: None,
            is_raw: false,
        });
        let (decisions, frame) = (Decisions::default(), None);
        Self { config, decisions, frame, ways, is_datagrams: false }
    }

    /// A piece is reported, and can be decided about.
    pub(super) fn ask(
        &mut self,
        side: Side,
        span: &FrameSpan,
        unit: Unit,
        message: Range<usize>,
        is_last: bool,
    ) {
        let changed = self.frame.take().and_then(|frame| frame.changed);
        let span = span.clone();
        self.frame = Some(Passing { side, span, unit, message, is_last, changed });
        self.decisions.ask();
    }

    /// Carries out what was decided about the piece that was reported last.
    ///
    /// # Errors
    /// The limits on what is queued, and whose frame it is.
    fn settle(&mut self, streams: &[Stream; 2]) -> Result<(), (Side, Error)> {
        let Some(decision) = self.decisions.take() else { return Ok(()) };
        let Some(mut frame) = self.frame.take() else { return Ok(()) };
        let (side, stream) = (frame.side, &streams[frame.side.index()]);
        let bytes = stream.bytes(frame.span.range.clone());
        frame.carry_out(decision, bytes);
        if !frame.is_last {
            self.frame = Some(frame);
            return Ok(());
        }
        let way = &mut self.ways[side.index()];
        let is_datagram = stream.is_datagram();
        let made = frame.finish(bytes);
        let forwarded = match &made {
            None => way.forward(bytes, false, is_datagram),
            Some(made) => way.forward(made, true, is_datagram),
        };
        forwarded.and_then(|()| way.release(is_datagram)).map_err(|error| (side, error))
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
    fn on_nonces(&mut self, side: Side, stream: &mut Stream) -> Result<()> {
        let nonces = stream.nonces.as_mut().map(core::mem::take).unwrap_or_default();
        let way = &mut self.ways[side.index()];
        let Some(seal) = way.seal.as_mut().filter(|seal| seal.is_in_step) else { return Ok(()) };
        seal.nonces.extend(nonces);
        let mut sealed = Vec::new();
        seal.end_chunk(&mut sealed);
        way.append(&sealed)
    }

    /// How many bytes are queued for a side.
    pub(super) fn queued_bytes(&self, to: Side) -> usize {
        self.ways[to.other().index()].out.bytes()
    }

    pub(super) fn pop(&mut self, to: Side) -> Option<Vec<u8>> {
        self.ways[to.other().index()].out.pop()
    }

    fn decide(&mut self, decision: Forward<'_>) -> Result<()> {
        // What is refused leaves the piece as it is.
        self.decisions.decide(Forward::AsIs)?;
        let Some(frame) = &self.frame else { return Ok(()) };
        match (frame.unit, decision) {
            (_, Forward::AsIs) => return Ok(()),
            (Unit::Control(opcode), _) if !is_unknown(opcode) => {
                let found = format!("{opcode} changed or dropped");
                return Err(Error::value("a control message unchanged", found));
            }
            (Unit::Control(_), Forward::Instead(bytes)) => check_control(bytes)?,
            (_, Forward::Instead(bytes)) => {
                whole_message(bytes)?;
                let so_far = frame.changed.as_ref().map_or(frame.message.start, Vec::len);
                let out = &self.ways[frame.side.index()].out;
                out.check_room(so_far.saturating_add(bytes.len()))?;
            }
            (_, Forward::Drop) => {}
        }
        self.decisions.decide(decision)
    }

    fn inject(&mut self, to: Side, message: &[u8]) -> Result<()> {
        let frame = Frame::message(whole_message(message)?).to_bytes()?;
        let in_progress = self.frame.as_ref().is_some_and(|frame| frame.side == to.other());
        let is_datagram = self.is_datagrams;
        let way = &mut self.ways[to.other().index()];
        if way.is_raw {
            return Err(Error::value("a stream that can be read", "one with a fault"));
        }
        way.out.check_room(way.later_bytes.saturating_add(frame.len()))?;
        way.later_bytes += frame.len();
        way.later.push(frame);
        if in_progress || way.datagram.is_some() {
            return Ok(());
        }
        way.release(is_datagram)
    }
}

impl Passing {
    fn carry_out(&mut self, decision: Decision, frame: &[u8]) {
        let message = self.message.clone();
        let is_control = matches!(self.unit, Unit::Control(_));
        let before = if is_control { 0..0 } else { self.span.head.bytes()..message.start };
        let so_far = || frame.get(before).unwrap_or_default().to_vec();
        match decision {
            Decision::AsIs => {
                if let Some(changed) = &mut self.changed {
                    changed.extend_from_slice(frame.get(message).unwrap_or_default());
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

    /// The frame to forward, which has no bytes when nothing is left of it; `None` for the
    /// original.
    fn finish(self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut body = self.changed?;
        if matches!(self.unit, Unit::Control(_)) {
            return Some(body);
        }
        if body.len() <= BODY_HEAD_BYTES {
            return Some(Vec::new());
        }
        body.extend_from_slice(frame.get(self.message.end..).unwrap_or_default());
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut writer = Writer::new();
        FrameHead { form: self.span.head.form, length }.encode(&mut writer);
        writer.bytes(&body);
        Some(writer.into_bytes())
    }
}

impl Way {
    fn forward(&mut self, plain: &[u8], is_changed: bool, is_datagram: bool) -> Result<()> {
        if is_datagram {
            let datagram = self.datagram.get_or_insert_default();
            self.out.check_room(datagram.len().saturating_add(plain.len()))?;
            datagram.extend_from_slice(plain);
            return Ok(());
        }
        let Some(seal) = &mut self.seal else { return self.append(plain) };
        let sealed = seal.seal(plain, is_changed);
        self.append(&sealed)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.append(bytes)
    }

    fn end_datagram(&mut self) -> Result<()> {
        if let Some(datagram) = self.datagram.take().filter(|datagram| !datagram.is_empty()) {
            self.out.check_room(datagram.len())?;
            self.out.push(datagram);
        }
        self.release(true)
    }

    /// `false` when nothing that is sealed already can go on, since what went before was changed.
    fn pass_sealed(&mut self, wire: &[u8]) -> Result<bool> {
        if self.seal.take().is_some_and(|seal| !seal.is_in_step) {
            return Ok(false);
        }
        self.append(wire).map(|()| true)
    }

    /// No frame is in progress: what was injected meanwhile goes.
    fn release(&mut self, is_datagram: bool) -> Result<()> {
        if self.datagram.is_some() {
            return Ok(());
        }
        self.later_bytes = 0;
        for frame in core::mem::take(&mut self.later) {
            if is_datagram {
                self.out.check_room(frame.len())?;
                self.out.push(frame);
            } else {
                self.forward(&frame, true, false)?;
            }
        }
        Ok(())
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
fn whole_message(bytes: &[u8]) -> Result<RawMessage<'_>> {
    let mut reader = Reader::new(bytes);
    match RawMessage::decode(&mut reader, false) {
        Ok(message) if reader.remaining() == 0 => Ok(message),
        _ => {
            let found = format!("{} bytes that are something else", bytes.len());
            Err(Error::value("one whole DML message", found))
        }
    }
}

/// Checks that the bytes are a frame with a control message that nothing is known about.
fn check_control(bytes: &[u8]) -> Result<()> {
    let whole = FrameHead::decode(&mut Reader::new(bytes)).map(FrameHead::frame_bytes);
    let opcode = control_opcode(bytes).filter(|opcode| is_unknown(*opcode));
    if whole.ok() == Some(bytes.len()) && opcode.is_some() {
        return Ok(());
    }
    Err(Error::value("a frame with an unknown control message", "other bytes"))
}

impl Connection {
    /// Stands between a client and a server; see [`Relay`](connection::Relay).
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let mut connection = Self::new(Role::Relay(Box::new(Relaying::new(config))), now);
        connection.streams.iter_mut().for_each(|stream| stream.nonces = Some(Vec::new()));
        connection
    }

    /// Relays: carries out what was decided about the piece that was reported last.
    pub(super) fn settle(&mut self) {
        if let Role::Relay(relay) = &mut self.sender.role
            && let Err((side, error)) = relay.settle(&self.streams)
        {
            self.refuse(side, error);
        }
    }

    /// Something came from a side.
    pub(super) fn on_relayed_input(&mut self, side: Side, is_datagram: bool) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.is_datagrams |= is_datagram;
            let passed = relay.on_nonces(side, &mut self.streams[side.index()]);
            self.refuse_if(side, passed);
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
        let passed = relay.on_nonces(side, stream);
        self.refuse_if(side, passed);
    }

    /// A frame that cannot be read goes on as it came.
    pub(super) fn pass_frame(&mut self, side: Side, span: &FrameSpan) {
        let stream = &self.streams[side.index()];
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let way = &mut relay.ways[side.index()];
        let bytes = stream.bytes(span.range.clone());
        let passed = way.forward(bytes, false, stream.is_datagram());
        self.refuse_if(side, passed);
    }

    /// What is behind a fault goes on as it comes: the rest of the datagram, or all of the stream.
    pub(super) fn pass_unread(&mut self, side: Side, datagram: Option<Range<usize>>) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let way = &mut relay.ways[side.index()];
        let Some(range) = datagram else {
            way.is_raw = true;
            return;
        };
        let passed = way.forward(self.streams[side.index()].bytes(range), false, true);
        self.refuse_if(side, passed);
    }

    /// Passes on what is there of a stream that is not read any more.
    pub(super) fn pass_raw(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        let (way, stream) = (&mut relay.ways[side.index()], &mut self.streams[side.index()]);
        if !way.is_raw {
            return false;
        }
        let range = stream.take();
        let is_empty = range.is_empty();
        let passed = way.forward(stream.bytes(range), false, false);
        self.refuse_if(side, passed);
        !is_empty
    }

    /// A datagram was read to its end.
    pub(super) fn pass_datagram(&mut self, side: Side) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let passed = relay.ways[side.index()].end_datagram();
        self.refuse_if(side, passed);
    }

    /// Bytes that cannot be decrypted, if they are that, go on as they were on the wire. `false`
    /// when the connection cannot go on, since bytes are missing or what went before was changed.
    pub(super) fn pass_wire(&mut self, side: Side, wire: Option<Vec<u8>>) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return true };
        let (way, stream) = (&mut relay.ways[side.index()], &mut self.streams[side.index()]);
        // What is left of the plain bytes goes first.
        let range = stream.take();
        let passed = way.forward(stream.bytes(range), false, false).and_then(|()| match wire {
            Some(wire) => way.pass_sealed(&wire),
            None => Ok(false),
        });
        stream.close_cipher();
        self.refuse_if(side, passed)
    }

    /// The side sends nothing more.
    pub(super) fn pass_end(&mut self, side: Side) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let way = &mut relay.ways[side.index()];
        let rest = self.streams[side.index()].torn_tag();
        let passed = match &way.seal {
            Some(seal) if seal.is_in_step && !rest.is_empty() => {
                way.is_raw = true;
                way.append(rest)
            }
            _ => Ok(()),
        };
        self.refuse_if(side, passed);
    }
}

impl Sender {
    /// The accept of the session that was offered last passes through a relay.
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

impl connection::Relay for Sender {
    /// Decides about the piece that was received last. What goes on instead of a message is a
    /// message as [`RawMessage`] encodes it; instead of an unknown control message, a frame with
    /// one.
    fn forward(&mut self, decision: Forward<'_>) -> Result<()> {
        match &mut self.role {
            Role::Relay(relay) => relay.decide(decision),
            _ => Err(Error::value("a relay", "another role")),
        }
    }

    /// Sends a message, as [`RawMessage`] encodes it, in a frame of its own. A message of the
    /// relay's that meets a stale session is lost: the server ignores it, and the client sends
    /// only its own last message again.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<()> {
        self.closing.check_open()?;
        let is_established = self.is_established();
        match &mut self.role {
            Role::Relay(relay) if is_established => relay.inject(to, message),
            Role::Relay(_) => Err(Error::value("an accepted session", "none")),
            _ => Err(Error::value("a relay", "another role")),
        }
    }
}
