//! The relay role of a login: messages in transit, and the session that encrypts them.

use core::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, Connection as _, Decision, Event, Inject, Leaving, Located, Outgoing, SendError,
    StreamMachine as _, Timer,
};
use worldwire_core::{Error, Result, Side, Writer};

use super::connection::{
    LoginConfig, LoginConnection, LoginNews, LoginSender, UnreadMessage, frame_bytes, is_plain,
    unsealed,
};
use super::margin::{MarginClientMessage, MarginServerMessage};
#[cfg(feature = "login")]
use super::relay_keys::RelayKeys;
use super::{LoginMessage, name};
use crate::connection::MissingKey;
use crate::crypt::{BLOCK_BYTES, IvSource, KnownSession, UNCOUNTED_BYTES, sealed_bytes};
use crate::frame::{Channel, MAX_RPC_BYTES, MarginText, TcpFrame};

/// The settings of a [relay](LoginConnection::relay).
#[derive(Clone, Debug)]
pub struct LoginRelayConfig {
    /// The sessions whose keys are known.
    pub sessions: Arc<[KnownSession]>,
    /// The limits on the bytes queued for each side and on the bytes buffered from each side.
    pub bounds: Bounds,
    /// The time limit for the client's first message (`Timer::Setup`). Default 15 s, which is
    /// longer than servers wait.
    pub setup_time: Duration,
}

impl LoginRelayConfig {
    /// The default settings, with these sessions.
    #[must_use]
    pub fn new(sessions: Arc<[KnownSession]>) -> Self {
        let bounds = Bounds { queued_bytes: 1 << 20, queued_messages: 256 };
        Self { sessions, bounds, setup_time: Duration::from_secs(15) }
    }
}

/// The maximum number of sessions tried on the first encrypted message.
const MAX_TRIED: usize = 256;
/// The opcode of the margin server's `CertChallenge`, after which everything is encrypted.
const CERT_CHALLENGE: u8 = 2;

/// A message on its way through a relay.
#[derive(Clone, Debug)]
pub struct Passage {
    pub(super) side: Side,
    pub(super) channel: Channel,
    pub(super) encrypted: bool,
    /// Whether it is still encrypted, because its key is missing.
    pub(super) is_sealed: bool,
    /// Its first byte, decrypted.
    opcode: u8,
    /// The sender's clock, if the message was decrypted.
    time: u32,
    /// Its frame in the buffer of its stream.
    pub(super) frame: Range<usize>,
}

/// What a relay knows about the conversation.
#[derive(Debug)]
pub(super) struct Relay {
    /// The channel, once the client's first message has arrived.
    channel: Option<Channel>,
    /// Whether the challenge was read, after which everything is encrypted.
    is_encrypted: bool,
    /// Whether the challenge was forwarded.
    has_challenged: bool,
    /// The given sessions, until they have been tried.
    sessions: Arc<[KnownSession]>,
    session: Option<KnownSession>,
    /// Whether no key fits.
    is_locked: bool,
    ivs: IvSource,
    /// The clock of each side, from its last encrypted message.
    times: [u32; 2],
    /// The character for which the client has claimed a name.
    claimed: Option<u64>,
    /// The character that is being loaded.
    loading: Option<u64>,
    #[cfg(feature = "login")]
    pub(super) keys: Option<Box<RelayKeys>>,
}

impl Passage {
    /// A message that is only reported, because this role does not forward it.
    pub(super) fn reported(side: Side, channel: Channel, encrypted: bool, is_sealed: bool) -> Self {
        Self { side, channel, encrypted, is_sealed, opcode: 0, time: 0, frame: 0..0 }
    }

    /// Checks that the message may be replaced or dropped as decided.
    pub(super) fn check(&self, out: &Outgoing, decision: &Decision<'_>) -> Result<(), SendError> {
        let Decision::Instead(body) = decision else { return Ok(()) };
        if self.is_sealed {
            return Err(SendError::Unchangeable("an encrypted message without its key"));
        }
        self.check_replacement(body).map_err(SendError::Encode)?;
        let length = frame_length(body, self.encrypted).map_err(SendError::Encode)?;
        out.check_fits(length).map_err(SendError::QueueFull)
    }

    /// Checks that a replacement is a message of this side. If its opcode has no name, the original
    /// must have the same opcode, because nothing else shows which side sends such a message.
    fn check_replacement(&self, body: &[u8]) -> Result<()> {
        LoginMessage::decode_strictly(body, self.channel, self.side)?;
        let opcode = body.first().copied().unwrap_or(0);
        let is_known = name(self.channel, self.side, opcode).is_some();
        match is_known || opcode == self.opcode {
            true => Ok(()),
            false => {
                let wanted = format!("a message from the {}", self.side);
                Err(Error::value(wanted, format!("the unknown opcode {opcode:#04x}")))
            }
        }
    }
}

/// The size of a body's frame.
fn frame_length(body: &[u8], encrypted: bool) -> Result<usize> {
    if body.is_empty() {
        return Err(Error::value("one whole message", "no bytes"));
    }
    let length = match encrypted {
        true => sealed_bytes(UNCOUNTED_BYTES.saturating_add(body.len())) - 1,
        false => body.len(),
    };
    match length > MAX_RPC_BYTES {
        true => Err(Error::limit("bytes of a message", MAX_RPC_BYTES as u64, length as u64)),
        false => Ok(length + 2),
    }
}

impl Relay {
    pub(super) fn new(config: &LoginRelayConfig, seed: &[u8; BLOCK_BYTES]) -> Self {
        Self {
            channel: None,
            is_encrypted: false,
            has_challenged: false,
            sessions: Arc::clone(&config.sessions),
            session: None,
            is_locked: false,
            ivs: IvSource::new(seed),
            times: [0; 2],
            claimed: None,
            loading: None,
            #[cfg(feature = "login")]
            keys: None,
        }
    }

    pub(super) const fn session(&self) -> Option<&KnownSession> {
        self.session.as_ref()
    }

    /// Whether messages can be added.
    pub(super) const fn is_established(&self) -> bool {
        match self.channel {
            None => false,
            Some(Channel::Auth) => true,
            Some(Channel::Margin) => self.session.is_some() && self.has_challenged,
        }
    }

    /// Reads a frame's body: the message, decrypted if a key is known.
    fn read(
        &mut self,
        side: Side,
        wire: &[u8],
        news: &mut Vec<LoginNews>,
    ) -> Result<(Passage, Vec<u8>)> {
        let channel = match self.channel {
            Some(channel) => channel,
            None => {
                let error = || Error::malformed("the beginning of a login", "a different message");
                *self.channel.insert(channel_of(side, wire).ok_or_else(error)?)
            }
        };
        let encrypted = channel == Channel::Margin && self.is_encrypted;
        let mut passage = Passage::reported(side, channel, encrypted, false);
        let mut body = None;
        if encrypted {
            self.choose_session(wire);
            match &self.session {
                Some(session) => {
                    let (time, plain) = unsealed(wire, &session.key)
                        .map_err(|error| error.in_layer("decrypted"))?;
                    (passage.time, self.times[side.index()]) = (time, time);
                    body = Some(plain);
                }
                None => passage.is_sealed = true,
            }
        }
        if passage.is_sealed && !core::mem::replace(&mut self.is_locked, true) {
            let missing = match self.sessions.len() {
                0 => MissingKey::NotGiven,
                keys => MissingKey::NoneFits { keys },
            };
            news.push(LoginNews::KeysNeeded { side, missing });
        }
        let body = body.unwrap_or_else(|| wire.to_vec());
        passage.opcode = body.first().copied().unwrap_or(0);
        if channel == Channel::Margin && !encrypted && body.first() == Some(&CERT_CHALLENGE) {
            self.is_encrypted |= side == Side::Server;
        }
        if !passage.is_sealed
            && let Ok(message) = LoginMessage::decode_strictly(&body, channel, side)
        {
            self.note(side, &message, news);
        }
        Ok((passage, body))
    }

    /// Tries the given sessions on the first encrypted message.
    fn choose_session(&mut self, wire: &[u8]) {
        if self.session.is_none() && !self.is_locked {
            let mut known = self.sessions.iter().take(MAX_TRIED);
            self.session = known.find(|it| unsealed(wire, &it.key).is_ok()).cloned();
        }
    }

    /// Records what a message reveals.
    fn note(&mut self, from: Side, message: &LoginMessage<'_>, news: &mut Vec<LoginNews>) {
        match message {
            LoginMessage::MarginClient(message) => match &**message {
                MarginClientMessage::LoadCharacterRequest(request) => {
                    self.loading = Some(request.character_id);
                }
                MarginClientMessage::CreateCharacterRequest(_) => self.loading = self.claimed,
                _ => {}
            },
            LoginMessage::MarginServer(MarginServerMessage::ConnectReply(reply)) => {
                if let Some(session) = self.session.as_mut().filter(|_| reply.status.is_success()) {
                    session.id = Some(reply.session_id);
                }
            }
            LoginMessage::MarginServer(MarginServerMessage::ClaimCharacterNameReply(reply)) => {
                self.claimed = Some(reply.character_id).filter(|_| reply.status.is_success());
            }
            LoginMessage::MarginServer(MarginServerMessage::LoadCharacterReply(reply)) => {
                let loaded = self.loading.take().filter(|_| reply.status.is_success());
                if let Some((id, session)) = loaded.zip(self.session.clone()) {
                    news.push(LoginNews::Character { id, session: Arc::new(session) });
                }
            }
            _ => {}
        }
        #[cfg(feature = "login")]
        if let Some(keys) = &mut self.keys
            && let Some(key) = keys.note(from, message, news)
        {
            self.session = Some(KnownSession { id: None, key });
        }
        #[cfg(not(feature = "login"))]
        let _ = from;
    }

    /// Queues an entry that leaves now.
    pub(super) fn leave(&mut self, from: Side, out: &mut Outgoing, leaving: Leaving<Passage>) {
        let Leaving { piece, bytes: wire, decision, .. } = leaving;
        let Some(passage) = piece else { return out.forward(wire) };
        let instead = match decision {
            Decision::AsIs => None,
            Decision::Instead(body) => Some(body.into_owned()),
            Decision::Drop => return,
        };
        #[cfg(feature = "login")]
        let instead = match &mut self.keys {
            Some(keys) if !passage.encrypted => {
                let head = frame_bytes(&wire, MAX_RPC_BYTES).map_or(0, |(head, _)| head);
                let body = instead.as_deref().or_else(|| wire.get(head..)).unwrap_or_default();
                keys.rewrite(passage.channel, from, body).or(instead)
            }
            _ => instead,
        };
        self.has_challenged |=
            from == Side::Server && passage.channel == Channel::Margin && !passage.encrypted;
        let time = passage.encrypted.then_some(passage.time);
        // `check` has made sure that it can be framed.
        let framed = instead.and_then(|body| self.framed(&body, time).ok());
        out.forward(framed.unwrap_or(wire));
    }

    /// The frame of a body, encrypted if it has a time.
    fn framed(&mut self, body: &[u8], time: Option<u32>) -> Result<Vec<u8>> {
        let mut wire = Writer::new();
        match time.zip(self.session.as_ref()) {
            Some((time, session)) => {
                let text = MarginText { time, body: body.into() };
                text.seal(&session.key, &self.ivs.draw())?.encode(&mut wire)?;
            }
            None => TcpFrame::of(body).encode(&mut wire)?,
        }
        Ok(wire.into_bytes())
    }

    /// Checks a message to add and frames it as if this side had sent it.
    fn added(&mut self, from: Side, body: &[u8]) -> Result<Vec<u8>, SendError> {
        let channel = self.channel.ok_or(SendError::NotEstablished)?;
        LoginMessage::decode_strictly(body, channel, from).map_err(SendError::Encode)?;
        let encrypted = channel == Channel::Margin;
        frame_length(body, encrypted).map_err(SendError::Encode)?;
        // The later of the two sides' clocks.
        let clock = self.times[from.index()].max(self.times[from.other().index()]);
        self.framed(body, encrypted.then_some(clock)).map_err(SendError::Encode)
    }
}

/// The channel of a conversation that begins with this message.
fn channel_of(side: Side, wire: &[u8]) -> Option<Channel> {
    let opcode = wire.first().copied().filter(|_| side == Side::Client)?;
    if is_plain(wire) {
        return Some(Channel::Margin);
    }
    name(Channel::Auth, Side::Client, opcode).map(|_| Channel::Auth)
}

impl LoginConnection {
    /// Relays between a client and a server, on the channel that the client's first message belongs to.
    /// Its [`LoginSender`] implements [`Forward`](worldwire_core::connection::Forward) and
    /// [`Inject`]. The seed must come from the operating system's random generator.
    ///
    /// * Unchanged messages are forwarded byte for byte, and so are encrypted ones without a key.
    ///   The latter can be dropped but not replaced.
    /// * On the margin channel, messages are read with one of the given sessions, or with the key that
    ///   `with_keys` lets the relay learn. Replaced and added messages are encrypted with the same
    ///   key and a fresh initialisation vector.
    /// * Messages can be added on the auth channel after the client's first message, and on the
    ///   margin channel once the challenge has been forwarded.
    /// * Nothing overtakes held messages: the channels have no keep-alives. A server may close a
    ///   connection while a message is held.
    /// * A stream that is not a login is forwarded unread, and so is the rest of a stream after a
    ///   fault. After the client's first message, the relay has no deadlines.
    #[must_use]
    pub fn relay(config: &LoginRelayConfig, seed: &[u8; BLOCK_BYTES], now: Duration) -> Self {
        let own = LoginConfig {
            bounds: config.bounds,
            ..LoginConfig::client(Channel::Auth, Duration::ZERO)
        };
        let mut relay = Self::new(None, Arc::new(own), seed, now);
        let half = relay.sender.half.forwarding(config.bounds);
        relay.sender.half = half;
        relay.sender.half.role.relay = Some(Box::new(Relay::new(config, seed)));
        relay.sender.half.timers.start(Timer::Setup, config.setup_time);
        relay
    }

    /// Relays: reads one message from a side; returns false if there is none.
    pub(super) fn relay_message(&mut self, side: Side) -> bool {
        let Some(relay) = &mut self.sender.half.role.relay else { return false };
        let incoming = &mut self.streams[side.index()].incoming;
        #[cfg(feature = "login")]
        if let Some(keys) = &mut relay.keys
            && keys.waits(side, incoming.unread())
        {
            return false;
        }
        let frame = match incoming.attempt(|bytes| frame_bytes(bytes, MAX_RPC_BYTES)) {
            Ok(None) => return false,
            Ok(Some(frame)) => frame,
            Err(error) => {
                self.give_up(side, error, None);
                return true;
            }
        };
        let (head, Located { range: frame, offset }) = frame;
        let wire = incoming.bytes(frame.clone());
        let mut news = Vec::new();
        match relay.read(side, wire.get(head..).unwrap_or_default(), &mut news) {
            Ok((passage, body)) => {
                let range = offset..offset.saturating_add(frame.len() as u64);
                let passage = Passage { frame, ..passage };
                self.sender.half.timers.stop(Timer::Setup);
                self.events.extend(news.into_iter().map(Event::News));
                self.events.push_back(Event::Received(UnreadMessage { body, range, passage }));
            }
            Err(error) => {
                let wire = wire.to_vec();
                self.give_up(side, error.at(offset), Some(wire));
            }
        }
        true
    }

    /// Relays: once a side has ended, reports the message that was cut off; returns false if there
    /// is none.
    pub(super) fn relay_conclude(&mut self) -> bool {
        #[cfg(feature = "login")]
        if self.streams[Side::Client.index()].incoming.is_ended
            && let Some(relay) = &mut self.sender.half.role.relay
            && let Some(keys) = &mut relay.keys
            && keys.stop_waiting()
        {
            return true;
        }
        let mut is_torn = false;
        for side in Side::BOTH {
            let incoming = &self.streams[side.index()].incoming;
            let forwarding = self.sender.half.forwarding.as_ref();
            if incoming.is_ended
                && !self.is_paused(side)
                && forwarding.is_some_and(|forwarding| !forwarding.is_raw(side))
                && let Some(error) = incoming.torn("a whole message")
            {
                self.give_up(side, error, None);
                is_torn = true;
            }
        }
        is_torn
    }

    /// Relays: reports a fault and forwards the rest of the stream unread, or the rest of both
    /// streams if they are not a login. `wire` has already been read.
    fn give_up(&mut self, side: Side, error: Error, wire: Option<Vec<u8>>) {
        self.events.push_back(Event::Fault { side, error });
        let half = &mut self.sender.half;
        let is_other = half.role.relay.as_ref().is_some_and(|relay| relay.channel.is_none());
        if let Some(forwarding) = &mut half.forwarding {
            let raw = Side::BOTH.into_iter().filter(|one| is_other || *one == side);
            raw.for_each(|side| forwarding.set_raw(side));
        }
        half.timers.stop(Timer::Setup);
        if let Some(wire) = wire {
            self.parts_mut().pass(side, None, wire);
        }
    }
}

impl Inject for LoginSender {
    /// Queues a message for a side, encrypted on the margin channel. Also fails while a piece is
    /// waiting for room in the queue to that side, or if that stream is forwarded unread.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        let side = to.other();
        let forwarding = self.half.open_relay()?;
        // The message must not overtake the certificate or the challenge.
        let is_early = |piece: &Passage| piece.channel == Channel::Margin && !piece.encrypted;
        let in_setup = forwarding.keeps(is_early);
        let readable = forwarding.check_readable(side);
        let Some(relay) = &mut self.half.role.relay else {
            return Err(SendError::Role("a relay"));
        };
        if !relay.is_established() || in_setup {
            return Err(SendError::NotEstablished);
        }
        let framed = relay.added(side, message)?;
        self.half.fill(side).map_err(SendError::QueueFull)?;
        readable?;
        let out = &mut self.half.lanes[to.index()].out;
        out.check_room(framed.len()).map_err(SendError::QueueFull)?;
        out.push(framed);
        Ok(())
    }
}
