//! The auth and margin channels as a state machine without I/O: framing, encryption and time limits.
//!
//! A [`LoginConnection`] follows the contract of [`worldwire_core::connection`], as a client, a
//! server, an observer of both, or a relay between them. It reports each message once it is
//! decrypted. As a client or server, it closes the connection with a fault if a message does not
//! match its layout. [`AuthServer`](super::AuthServer) and the other state machines of this module
//! act on the messages.
//!
//! An observer has a list of session keys and finds the one that opens the first encrypted
//! message. Without a matching key, it reports encrypted messages as they are:
//! [`LoginReceived::is_sealed`]. A relay can also learn the key from the login itself: see
//! [`LoginConnection::relay`].
//!
//! * Before [`LoginSender::set_key`], all messages are plain. After it, all messages in both
//!   directions are encrypted, whatever their opcode.
//! * A server limits the time until the first message, and then the time between messages. While a
//!   client is in the game, the server should turn this limit off with
//!   [`LoginSender::set_idle_time`].

use core::convert::Infallible;
use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    self, Bounds, CloseReason, Decision, Event, HalfSender, Incoming, Lane, Leaving, Located,
    Parts, Piece, ReadStream, SendError, SendHalf, StreamCipher, StreamMachine, Timer,
};
use worldwire_core::{Error, Reader, Result, Side, Writer};

use super::LoginMessage;
use super::relay::{Passage, Relay};
#[cfg(feature = "login")]
use super::relay_keys::{KnownAccount, SecretFault};
use crate::connection::MissingKey;
use crate::crypt::{BLOCK_BYTES, IvSource, KnownSession, SessionKey};
use crate::frame::{Channel, MarginText, TcpFrame, decode_length};

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct LoginConfig {
    /// The channel.
    pub channel: Channel,
    /// The wall clock at time 0, since 1970. Encrypted messages contain the time.
    pub epoch: Duration,
    /// The limits on queued bytes.
    pub bounds: Bounds,
    /// The maximum size of a message from the peer. Default 4,096 for servers, 32,767 for clients.
    pub max_message_bytes: usize,
    /// The time limit for the other side's first message. Default 10 s.
    pub first_time: Duration,
    /// The time limit between the other side's messages. Default 60 s on the margin channel, and 5
    /// minutes on the auth channel, where clients wait while the player chooses.
    pub idle_time: Duration,
    /// The time limit for completing a message. Default 10 s.
    pub message_time: Duration,
}

impl LoginConfig {
    /// The default settings of a server.
    #[must_use]
    pub fn server(channel: Channel, epoch: Duration) -> Self {
        Self {
            channel,
            epoch,
            bounds: Bounds { queued_bytes: 1 << 20, queued_messages: 256 },
            max_message_bytes: 4096,
            first_time: Duration::from_secs(10),
            idle_time: match channel {
                Channel::Auth => Duration::from_secs(300),
                Channel::Margin => Duration::from_secs(60),
            },
            message_time: Duration::from_secs(10),
        }
    }

    /// The default settings of a client.
    #[must_use]
    pub fn client(channel: Channel, epoch: Duration) -> Self {
        Self { max_message_bytes: 0x7fff, ..Self::server(channel, epoch) }
    }
}

/// A message that has arrived.
#[derive(Clone, Debug)]
pub struct LoginReceived<'c> {
    /// The side that sent it.
    pub side: Side,
    /// The channel.
    pub channel: Channel,
    /// Whether it was encrypted.
    pub encrypted: bool,
    /// Whether it is still encrypted, because an observer or relay has no key for it.
    pub is_sealed: bool,
    /// Opcode and data, decrypted.
    pub bytes: &'c [u8],
    /// The bytes in the stream.
    pub range: Range<u64>,
}

impl<'c> LoginReceived<'c> {
    /// The message.
    ///
    /// # Errors
    /// None for clients and servers, whose connection has already checked the message. For
    /// observers and relays, the errors of [`LoginMessage::decode_strictly`].
    pub fn message(&self) -> Result<LoginMessage<'c>> {
        LoginMessage::decode_strictly(self.bytes, self.channel, self.side)
    }
}

impl<'c> Piece<'c> for LoginReceived<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn is_message(&self) -> bool {
        true
    }
}

/// A connection on the auth or margin channel; see the module's documentation.
#[derive(Debug)]
pub struct LoginConnection {
    pub(super) sender: LoginSender,
    /// By [`Side::index`]; a client or server uses only the other side's entry.
    pub(super) streams: [LoginStream; 2],
    pub(super) events: VecDeque<Event<UnreadMessage, LoginNews>>,
}

/// Events specific to the login.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LoginNews {
    /// No key opens the messages (observers and relays). Reported once.
    KeysNeeded {
        /// The side that sent the first of them.
        side: Side,
        /// Why the key is missing.
        missing: MissingKey,
    },
    /// An account has logged in (relays on the auth channel). Its connection to the margin server needs
    /// this for [`LoginConnection::set_account`].
    #[cfg(feature = "login")]
    Account(Arc<KnownAccount>),
    /// A character was loaded (relays on the margin channel). The client's hello on the game channel
    /// names it and uses this session.
    Character {
        /// The character.
        id: u64,
        /// The session.
        session: Arc<KnownSession>,
    },
    /// A relay cannot decrypt a secret of the login.
    #[cfg(feature = "login")]
    Unopened {
        /// The side that sent it.
        side: Side,
        /// Why the secret cannot be decrypted.
        fault: SecretFault,
    },
}

impl LoginConnection {
    /// Acts as a server. The seed of the initialisation vectors must come from the operating
    /// system's random generator.
    #[must_use]
    pub fn server(config: Arc<LoginConfig>, seed: &[u8; BLOCK_BYTES], now: Duration) -> Self {
        Self::new(Some(Side::Server), config, seed, now)
    }

    /// Acts as a client. The requirements for the seed are those of [`server`](Self::server).
    #[must_use]
    pub fn client(config: Arc<LoginConfig>, seed: &[u8; BLOCK_BYTES], now: Duration) -> Self {
        Self::new(Some(Side::Client), config, seed, now)
    }

    /// Observes both sides of a connection, on the channel that its first message belongs to. On
    /// the margin channel, messages after the certificate can be decrypted only if `sessions`
    /// contains their session.
    #[must_use]
    pub fn observer(sessions: Arc<[KnownSession]>) -> Self {
        // An observer has neither a clock nor anything to send.
        let config = Arc::new(LoginConfig::client(Channel::Auth, Duration::ZERO));
        let mut observer = Self::new(None, config, &[0; BLOCK_BYTES], Duration::ZERO);
        observer.sender.half.role.sessions = sessions;
        observer
    }

    /// The session whose key opens messages, for an observer or relay.
    #[must_use]
    pub fn opened_with(&self) -> Option<&KnownSession> {
        let role = &self.sender.half.role;
        match &role.relay {
            Some(relay) => relay.session(),
            None => role.sessions.get(role.opened?),
        }
    }

    pub(super) fn new(
        own: Option<Side>,
        config: Arc<LoginConfig>,
        seed: &[u8; BLOCK_BYTES],
        now: Duration,
    ) -> Self {
        let (first_time, idle_time) = (config.first_time, Some(config.idle_time));
        let lanes = [(); 2].map(|()| Lane::new(config.bounds));
        let (observed, sessions, opened, is_locked) = (None, Arc::default(), None, false);
        let role = LoginRole { own, config, observed, sessions, opened, is_locked, relay: None };
        let mut half = SendHalf::new(role, lanes, now);
        if own.is_some() {
            half.timers.start(Timer::Setup, first_time);
        }
        let sender = LoginSender { half, key: None, ivs: IvSource::new(seed), idle_time };
        Self { sender, streams: Default::default(), events: VecDeque::new() }
    }

    /// Command: see [`LoginSender::set_key`].
    pub fn set_key(&mut self, key: SessionKey) {
        self.sender.set_key(key);
    }
}

/// The half of a [`LoginConnection`] that sends.
#[derive(Debug)]
pub struct LoginSender {
    pub(super) half: SendHalf<LoginRole>,
    key: Option<SessionKey>,
    ivs: IvSource,
    idle_time: Option<Duration>,
}

impl LoginSender {
    /// Encrypts all later messages and decrypts all messages that arrive from now on. A margin
    /// server sets the key once it has sent the `CertChallenge`, a client once it has received it.
    pub fn set_key(&mut self, key: SessionKey) {
        self.key = Some(key);
    }

    /// Limits the time between messages, or turns the limit off. Turn it off while a character is
    /// in the game, because nothing is then sent on the margin channel.
    pub fn set_idle_time(&mut self, time: Option<Duration>) {
        self.idle_time = time;
        self.note_message();
    }

    /// The wall clock: seconds since 1970.
    #[must_use]
    pub fn unix_time(&self) -> u32 {
        let time = self.half.role.config.epoch.saturating_add(self.half.timers.now());
        u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
    }

    /// Restarts the time limit.
    fn note_message(&mut self) {
        if self.half.role.own.is_none() {
            return;
        }
        self.half.timers.stop(Timer::Setup);
        match self.idle_time.filter(|_| !self.half.closing.is_closed()) {
            Some(time) => self.half.timers.start(Timer::Idle, time),
            None => self.half.timers.stop(Timer::Idle),
        }
    }
}

impl HalfSender for LoginSender {
    type Role = LoginRole;
    type Message<'m> = LoginMessage<'m>;

    fn half(&self) -> &SendHalf<LoginRole> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut SendHalf<LoginRole> {
        &mut self.half
    }

    fn queue(&mut self, message: &LoginMessage<'_>) -> Result<(), SendError> {
        self.half.closing.check_open()?;
        let LoginRole { own, ref config, .. } = self.half.role;
        let own = own.ok_or(SendError::Role("a client or server"))?;
        message.check_sender(config.channel, own).map_err(SendError::Encode)?;
        let mut body = Writer::new();
        message.encode(&mut body).map_err(SendError::Encode)?;
        let body = body.into_bytes();
        let mut wire = Writer::new();
        match &self.key {
            None => TcpFrame::of(&body).encode(&mut wire),
            Some(key) => {
                let text = MarginText { time: self.unix_time(), body: body.into() };
                text.seal(key, &self.ivs.draw()).and_then(|frame| frame.encode(&mut wire))
            }
        }
        .map_err(SendError::Encode)?;
        let wire = wire.into_bytes();
        let out = &mut self.half.lanes[own.other().index()].out;
        out.check_room(wire.len()).map_err(SendError::QueueFull)?;
        out.push(wire);
        Ok(())
    }
}

/// The role of a connection: a client, a server, an observer, or a relay.
#[derive(Debug)]
pub struct LoginRole {
    /// `None` for an observer or relay.
    own: Option<Side>,
    config: Arc<LoginConfig>,
    /// The channel that an observer has recognised.
    observed: Option<Channel>,
    /// The keys of an observer and the one that fits.
    sessions: Arc<[KnownSession]>,
    opened: Option<usize>,
    /// Whether an observer has found that no key fits.
    is_locked: bool,
    /// What a relay knows about the login.
    pub(super) relay: Option<Box<Relay>>,
}

/// The stream itself is not encrypted; messages are.
#[derive(Debug)]
pub struct NoStreamCipher(Infallible);

impl StreamCipher for NoStreamCipher {
    fn apply(&mut self, _: &mut [u8]) {
        match self.0 {}
    }
}

impl connection::Role for LoginRole {
    type Lane = Lane<NoStreamCipher>;
    type Piece = Passage;

    fn side(&self) -> Option<Side> {
        self.own
    }

    fn message_time(&self) -> Option<Duration> {
        self.own.map(|_| self.config.message_time)
    }

    fn leave(
        &mut self,
        from: Side,
        lane: &mut Self::Lane,
        leaving: Leaving<Passage>,
    ) -> Result<(), CloseReason> {
        if let Some(relay) = &mut self.relay {
            relay.leave(from, &mut lane.out, leaving);
        }
        Ok(())
    }

    fn check(
        &self,
        [lane, _]: &[Self::Lane; 2],
        piece: &Passage,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        piece.check(&lane.out, decision)
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct LoginStream {
    pub(super) incoming: Incoming,
    /// The decrypted message that is being reported.
    current: Vec<u8>,
}

impl ReadStream for LoginStream {
    fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    fn incoming_mut(&mut self) -> &mut Incoming {
        &mut self.incoming
    }
}

/// A decrypted message waiting to be reported.
#[derive(Debug)]
pub struct UnreadMessage {
    pub(super) body: Vec<u8>,
    pub(super) range: Range<u64>,
    pub(super) passage: Passage,
}

impl StreamMachine for LoginConnection {
    const PROTOCOL: &'static str = "the login";

    type News = LoginNews;
    type Received<'c> = LoginReceived<'c>;
    type Unread = UnreadMessage;
    type Sender = LoginSender;
    type Stream = LoginStream;

    fn parts(&self) -> (&LoginSender, &[LoginStream; 2]) {
        (&self.sender, &self.streams)
    }

    fn parts_mut(&mut self) -> Parts<'_, Self> {
        let Self { sender, streams, events } = self;
        Parts { sender, streams, events }
    }

    fn read(&mut self, side: Side) -> bool {
        if self.sender.half.role.relay.is_some() {
            return self.relay_message(side);
        }
        let LoginRole { own, ref config, .. } = self.sender.half.role;
        if own == Some(side) {
            return false;
        }
        let (channel, most) = (config.channel, config.max_message_bytes);
        let incoming = &mut self.streams[side.index()].incoming;
        let frame = match incoming.attempt(|bytes| frame_bytes(bytes, most)) {
            Ok(None) => return false,
            Ok(Some(frame)) => frame,
            Err(error) => {
                self.parts_mut().refuse(side, error);
                return true;
            }
        };
        let (head, Located { range, offset }) = frame;
        let wire = incoming.bytes(range.clone()).get(head..).unwrap_or_default();
        if own.is_none() {
            let wire = wire.to_vec();
            self.observe(side, &wire, offset..offset.saturating_add(range.len() as u64));
            return true;
        }
        match opened(wire, self.sender.key.as_ref(), channel, side) {
            Ok(body) => {
                self.sender.note_message();
                let encrypted = self.sender.key.is_some();
                let range = offset..offset.saturating_add(range.len() as u64);
                let passage = Passage::reported(side, channel, encrypted, false);
                self.events.push_back(Event::Received(UnreadMessage { body, range, passage }));
            }
            // Offsets inside an encrypted message are not offsets in the stream.
            Err(error) if self.sender.key.is_some() => {
                let error = error.in_layer("decrypted");
                self.parts_mut().refuse(side, error);
            }
            Err(error) => {
                let error = error.based(offset + head as u64).at(offset);
                self.parts_mut().refuse(side, error);
            }
        }
        true
    }

    fn push(&mut self, from: Side, bytes: &[u8]) {
        self.streams[from.index()].incoming.push(bytes);
    }

    fn gap(&mut self, side: Side, length: u64) {
        let error = Error::malformed("a stream without gaps", format!("a gap of {length} bytes"));
        let error = error.at(self.streams[side.index()].incoming.end());
        self.parts_mut().refuse(side, error);
    }

    fn conclude(&mut self, _: bool) -> bool {
        self.sender.half.role.relay.is_some() && self.relay_conclude()
    }

    fn in_transit(&self, unread: &UnreadMessage) -> (Side, Passage, bool) {
        (unread.passage.side, unread.passage.clone(), false)
    }

    fn range(passage: &Passage) -> Range<usize> {
        passage.frame.clone()
    }

    fn received(unread: UnreadMessage, streams: &mut [LoginStream; 2]) -> LoginReceived<'_> {
        let UnreadMessage { body, range, passage } = unread;
        let Passage { side, channel, encrypted, is_sealed, .. } = passage;
        let stream = &mut streams[side.index()];
        stream.current = body;
        LoginReceived { side, channel, encrypted, is_sealed, bytes: &stream.current, range }
    }

    fn is_established(&self) -> bool {
        self.sender.half.role.relay.as_ref().is_none_or(|relay| relay.is_established())
    }
}

impl LoginConnection {
    /// Reports a message to an observer's owner, decrypted if a key fits.
    fn observe(&mut self, side: Side, wire: &[u8], range: Range<u64>) {
        let role = &mut self.sender.half.role;
        let first = if is_plain(wire) { Channel::Margin } else { Channel::Auth };
        let channel = *role.observed.get_or_insert(first);
        let encrypted = channel == Channel::Margin && !is_plain(wire);
        let mut body = Some(wire.to_vec()).filter(|_| !encrypted);
        if encrypted {
            let open = |session: &KnownSession| Some(unsealed(wire, &session.key).ok()?.1);
            body = match role.opened {
                Some(at) => role.sessions.get(at).and_then(open),
                None => {
                    let found = role.sessions.iter().enumerate();
                    let found = found.filter_map(|(at, known)| Some((at, open(known)?))).next();
                    role.opened = found.as_ref().map(|(at, _)| *at);
                    found.map(|(_, body)| body)
                }
            };
        }
        let is_sealed = body.is_none();
        if is_sealed && !core::mem::replace(&mut role.is_locked, true) {
            let missing = match role.sessions.len() {
                0 => MissingKey::NotGiven,
                keys => MissingKey::NoneFits { keys },
            };
            self.events.push_back(Event::News(LoginNews::KeysNeeded { side, missing }));
        }
        let body = body.unwrap_or_else(|| wire.to_vec());
        let passage = Passage::reported(side, channel, encrypted, is_sealed);
        self.events.push_back(Event::Received(UnreadMessage { body, range, passage }));
    }
}

/// Whether a margin message is one of the two that are never encrypted: a certificate or a
/// challenge, whose blob is at offset 3. One in 8 million random initialisation vectors begins like
/// this.
pub(super) const fn is_plain(body: &[u8]) -> bool {
    matches!(body, [1 | 2, 3, 0, ..])
}

/// The number of bytes before a frame's body and the number of bytes of the whole frame. A body
/// that is too long is refused before it arrives.
pub(super) fn frame_bytes(bytes: &[u8], most: usize) -> Result<(usize, usize)> {
    let mut reader = Reader::new(bytes);
    let (length, _) = decode_length(&mut reader)?;
    if length == 0 {
        return Err(Error::malformed("a body of at least 1 byte", "none").at(0).inside("length"));
    }
    if length > most {
        let error = Error::limit("bytes of a message", most as u64, length as u64);
        return Err(error.at(0).inside("length"));
    }
    let head = reader.position();
    reader.take(length)?;
    Ok((head, head + length))
}

/// The message in a frame's body, decrypted and checked.
fn opened(wire: &[u8], key: Option<&SessionKey>, channel: Channel, from: Side) -> Result<Vec<u8>> {
    let body = match key {
        None => wire.to_vec(),
        Some(key) => unsealed(wire, key)?.1,
    };
    LoginMessage::decode_strictly(&body, channel, from).map_err(Error::closed)?;
    Ok(body)
}

/// The time and the decrypted body of a margin message.
pub(super) fn unsealed(wire: &[u8], key: &SessionKey) -> Result<(u32, Vec<u8>)> {
    let Some((iv, cipher)) = wire.split_first_chunk() else {
        let wanted = "an initialisation vector of 16 bytes";
        return Err(Error::malformed(wanted, format!("{} bytes", wire.len())));
    };
    let plain = key.open(iv, cipher)?;
    let MarginText { time, body } = MarginText::decode(&mut Reader::new(&plain))?;
    Ok((time, body.into_owned()))
}
