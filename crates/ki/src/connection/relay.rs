//! The relay role: frames being assembled, ciphers, and the checks on decisions.
//!
//! A data frame may hold several messages. The relay collects the decisions about them. If all are
//! [`AsIs`](Decision::AsIs), it forwards the frame's own bytes. Otherwise it builds a new frame in
//! the form of the original and with its trailer. If every message is dropped, it forwards no frame
//! at all: keep-alives already keep the connection alive, and there is no documentation of how
//! clients treat an empty frame.

use std::collections::VecDeque;
use std::sync::Arc;

use worldwire_core::connection::{Bounds, Decision, Leaving, Outgoing, SendError};
use worldwire_core::{Error, Reader, Side, Writer};

use super::config::RelayConfig;
use super::event::{PieceInfo, Unit};
use super::stream::Stream;
use crate::control::Opcode;
use crate::crypt::stream::{Sealer, StreamKey};
use crate::frame::{BODY_HEAD_BYTES, FrameHead, control_opcode};
use crate::message::RawMessage;

/// The state that only a relay has, apart from its lanes.
#[derive(Debug)]
pub struct RelayState {
    pub(super) config: Arc<RelayConfig>,
    /// Whether the connection uses datagrams.
    pub(super) is_datagrams: bool,
}

/// A part of a side's stream on its way through a relay.
#[derive(Debug)]
pub enum Passage {
    Piece(PieceInfo),
    /// A frame, a part of a datagram or a part of a stream that cannot be read.
    Unread {
        is_datagram: bool,
    },
    /// The end of a datagram.
    DatagramEnd,
    /// Bytes that cannot be decrypted, as on the wire.
    Sealed,
    /// The incomplete tag and nonce at the end of an encrypted stream.
    Torn,
}

/// The queue to one side, with the data that a relay needs to send a frame in parts. Other roles
/// use only the queue.
#[derive(Debug)]
pub struct Way {
    pub(super) out: Outgoing,
    /// The decided part of the current frame.
    frame: Assembly,
    /// Frames injected while another frame or datagram is in progress.
    injected: Vec<Vec<u8>>,
    injected_bytes: usize,
    /// The decided part of the current datagram.
    datagram: Option<Vec<u8>>,
    /// Boxed, because only relays of encrypted connections have one, and it is large.
    seal: Option<Box<Seal>>,
    /// Whether sealed bytes cannot be forwarded, because earlier bytes were changed.
    pub(super) is_broken: bool,
    /// Whether the incomplete end of an encrypted stream was forwarded, so nothing can follow.
    is_finished: bool,
    /// Whether only the next frame will show whether the stream is encrypted.
    is_undecided: bool,
}

/// A frame being assembled from pieces.
#[derive(Debug, Default)]
struct Assembly {
    original: Vec<u8>,
    /// The frame's body so far, once something in it has been changed; for a control message, the
    /// whole frame.
    changed: Option<Vec<u8>>,
}

/// Encryption of the forwarded bytes.
#[derive(Debug)]
struct Seal {
    sealer: Sealer,
    key: StreamKey,
    /// Whether nothing has been changed so far, so that the sender's nonces are reused.
    is_in_step: bool,
    nonces: VecDeque<[u8; 16]>,
}

impl Assembly {
    /// Adds a piece with the decision about it.
    fn add(&mut self, piece: &PieceInfo, bytes: Vec<u8>, decision: Decision<'_>) {
        let start = self.original.len();
        match start {
            0 => self.original = bytes,
            _ => self.original.extend_from_slice(&bytes),
        }
        let original = &self.original;
        let changeable = piece.changeable();
        let message = start + changeable.start..start + changeable.end;
        let is_control = matches!(piece.unit, Unit::Control(_));
        let before = if is_control { 0..0 } else { piece.head.bytes()..message.start };
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

    /// The number of bytes in the frame so far.
    fn bytes(&self) -> usize {
        self.changed.as_ref().unwrap_or(&self.original).len()
    }

    /// The frame to forward (empty if nothing of it is left), and whether it was changed. `last` is
    /// its last piece.
    fn finish(self, last: &PieceInfo) -> (Vec<u8>, bool) {
        let Some(mut body) = self.changed else { return (self.original, false) };
        if matches!(last.unit, Unit::Control(_)) {
            return (body, true);
        }
        if body.len() <= BODY_HEAD_BYTES {
            return (Vec::new(), true);
        }
        let after = last.bytes.len() - last.changeable().end.min(last.bytes.len());
        let trailer = self.original.len().saturating_sub(after);
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

impl AsRef<Outgoing> for Way {
    fn as_ref(&self) -> &Outgoing {
        &self.out
    }
}

impl Way {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            out: Outgoing::new(bounds),
            frame: Assembly::default(),
            injected: Vec::new(),
            injected_bytes: 0,
            datagram: None,
            seal: None,
            is_broken: false,
            is_finished: false,
            is_undecided: false,
        }
    }

    /// Records that the stream may be encrypted after the accept.
    pub(super) fn expect_encryption(&mut self) {
        self.is_undecided = self.seal.is_none();
    }

    /// Encrypts a side's stream from here on.
    pub(super) fn encrypt(&mut self, side: Side, key: &StreamKey) {
        self.is_undecided = false;
        self.seal = Some(Box::new(Seal {
            sealer: Sealer::new(key, side),
            key: *key,
            is_in_step: true,
            nonces: VecDeque::new(),
        }));
    }

    /// Takes over the nonces received from the sender.
    pub(super) fn on_nonces(&mut self, stream: &mut Stream) {
        let nonces = stream.nonces.as_mut().map(core::mem::take).unwrap_or_default();
        let Some(seal) = self.seal.as_mut().filter(|seal| seal.is_in_step) else { return };
        seal.nonces.extend(nonces);
        let mut sealed = Vec::new();
        seal.end_chunk(&mut sealed);
        self.out.forward_joined(&sealed);
    }

    /// Queues an injected frame. Frames and datagrams are forwarded whole, so it waits for one that
    /// has begun, unless that one is held. `is_inside` tells whether the piece reported last
    /// continues a frame.
    pub(super) fn inject(
        &mut self,
        frame: Vec<u8>,
        (is_inside, is_holding): (bool, bool),
        is_datagram: bool,
    ) -> Result<(), SendError> {
        let length = self.injected_bytes.saturating_add(frame.len());
        self.out.check_room(length).map_err(SendError::QueueFull)?;
        self.injected_bytes += frame.len();
        self.injected.push(frame);
        if is_holding || !(is_inside || self.is_in_progress()) {
            self.send_injected(is_datagram);
        }
        Ok(())
    }

    /// Checks that a frame may be injected.
    pub(super) fn check_readable(&self) -> Result<(), SendError> {
        match (self.is_finished, self.is_undecided) {
            (true, _) => Err(SendError::Unread),
            // The frame would be sent unencrypted.
            (_, true) => Err(SendError::NotEstablished),
            _ => Ok(()),
        }
    }

    /// Forwards an entry that leaves now.
    pub(super) fn forward(&mut self, leaving: Leaving<Passage>) {
        let Leaving { piece, bytes, decision, overtakes } = leaving;
        match piece {
            Some(Passage::Piece(piece)) => {
                // A piece that overtakes is a separate frame.
                let mut frame = match overtakes {
                    true => Assembly::default(),
                    false => core::mem::take(&mut self.frame),
                };
                frame.add(&piece, bytes, decision);
                if !piece.is_last {
                    self.frame = frame;
                    return;
                }
                let is_accept = matches!(piece.unit, Unit::Control(Opcode::SessionAccept));
                self.is_undecided &= is_accept;
                let (bytes, is_changed) = frame.finish(&piece);
                if overtakes && piece.is_datagram {
                    // An earlier part of the same datagram may be waiting.
                    return self.out.forward(bytes);
                }
                self.put(bytes, is_changed || overtakes, piece.is_datagram);
                if !overtakes && self.datagram.is_none() {
                    self.send_injected(piece.is_datagram);
                }
            }
            Some(Passage::Unread { is_datagram }) => self.put(bytes, false, is_datagram),
            Some(Passage::DatagramEnd) => {
                if let Some(datagram) = self.datagram.take().filter(|it| !it.is_empty()) {
                    self.out.forward(datagram);
                }
                self.send_injected(true);
            }
            Some(Passage::Sealed) => {
                self.is_broken = self.seal.take().is_some_and(|seal| !seal.is_in_step);
                if !self.is_broken {
                    self.out.forward_joined(&bytes);
                }
            }
            Some(Passage::Torn) if self.seal.as_ref().is_some_and(|seal| seal.is_in_step) => {
                self.is_finished = true;
                self.out.forward_joined(&bytes);
            }
            None => self.put(bytes, false, false),
            Some(Passage::Torn) => {}
        }
    }

    /// Forwards decrypted bytes, either as a part of a datagram or encrypted again.
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

    /// Forwards messages that were injected while a frame or datagram was in progress.
    fn send_injected(&mut self, is_datagram: bool) {
        self.injected_bytes = 0;
        for frame in core::mem::take(&mut self.injected) {
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
                // Plaintext after a chunk arrives only after the chunk's nonce, so this does not
                // happen.
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

    /// Ends a full chunk if the next nonce is known.
    fn end_chunk(&mut self, sealed: &mut Vec<u8>) {
        if !self.sealer.is_full() {
            return;
        }
        let nonce = match self.is_in_step {
            true => self.nonces.pop_front(),
            false => Some(self.key.derived_nonce(self.sealer.tag())),
        };
        if let Some(nonce) = nonce {
            self.sealer.begin_chunk(&nonce, sealed);
        }
    }
}

/// Whether a control message is unknown and may therefore be changed.
fn is_unknown(opcode: Opcode) -> bool {
    !matches!(
        opcode,
        Opcode::SessionOffer | Opcode::SessionAccept | Opcode::KeepAlive | Opcode::KeepAliveRsp
    )
}

/// The message, if the bytes are exactly one message.
pub(super) fn whole_message(bytes: &[u8]) -> Result<RawMessage<'_>, SendError> {
    let mut reader = Reader::new(bytes);
    match RawMessage::decode(&mut reader, false) {
        Ok(message) if reader.remaining() == 0 => Ok(message),
        _ => {
            let found = format!("{} bytes that are not one", bytes.len());
            Err(SendError::Encode(Error::value("one whole DML message", found)))
        }
    }
}

/// Checks that the bytes are exactly one frame with an unknown control message.
fn check_control(bytes: &[u8]) -> Result<(), SendError> {
    let whole = FrameHead::decode(&mut Reader::new(bytes)).map(FrameHead::frame_bytes);
    let opcode = control_opcode(bytes).filter(|opcode| is_unknown(*opcode));
    if whole.ok() == Some(bytes.len()) && opcode.is_some() {
        return Ok(());
    }
    let wanted = "a frame with an unknown control message";
    Err(SendError::Encode(Error::value(wanted, "something else")))
}

/// Checks that a piece may be dropped or replaced.
pub(super) fn check_decision(
    ways: &[Way; 2],
    piece: &Passage,
    decision: &Decision<'_>,
) -> Result<(), SendError> {
    let Passage::Piece(piece) = piece else { return Ok(()) };
    let way = &ways[piece.side.other().index()];
    match (piece.unit, decision) {
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
