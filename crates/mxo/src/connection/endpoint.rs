//! A client or a server: its session, its numbers, and what it sends.

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::connection::{SendError, Timer, Timers};
use worldwire_core::{Error, Result, Side, Writer};

use super::config::{ClientConfig, Common, ServerConfig, Session};
use super::event::{News, PacketNumber};
use super::flight::{Cargo, Fate, Flight, Outcome};
use super::inbox::Inbox;
use super::outbox::{Departure, Outbox, Unacknowledged};
use crate::frame::{
    ACK_BITS, ANSWERS, Hello, Measure, PacketHead, Plain, RccFlags, ReceiveWindow, RpcMessage,
    SequenceNumber, SequenceWord, SimTime, encode_head,
};

/// Which side it plays.
#[derive(Debug)]
pub(super) enum Part {
    Client(ClientConfig),
    Server(ServerConfig),
}

/// How far the connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No hello was answered yet.
    Setup,
    Established,
    /// Server: the client has been asked to reset the sequence, in the packet with this number.
    /// It is asked again at a time that is set when the driver next tells the time.
    Resetting {
        number: u64,
        again_at: Option<Duration>,
    },
    /// The connection is over: nobody asks any more what became of packets.
    Over,
}

/// What becomes of a packet of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is read.
    Read,
    /// It takes up no bytes: it came before, or belongs to a sequence that was reset.
    Ignore,
}

/// The state of a client or a server.
#[derive(Debug)]
pub(super) struct Endpoint {
    part: Part,
    pub(super) session: Session,
    phase: Phase,
    /// What the other side sent.
    window: ReceiveWindow,
    /// When what it sent is acknowledged at the latest.
    ack_at: Option<Duration>,
    /// Client: the packet that reset the sequence last, and its initial vector.
    reset_by: Option<(SequenceNumber, [u8; 16])>,
    pub(super) inbox: Inbox,
    pub(super) measure: Box<dyn Measure>,
    outbox: Outbox,
    unacknowledged: Unacknowledged,
    flight: Flight,
    /// Plain packets to be sent.
    plain: VecDeque<Vec<u8>>,
    plain_bytes: usize,
    /// The value of the next ping.
    ping: u32,
    pub(super) news: VecDeque<News>,
}

/// How far packets may be ahead of the newest that was acknowledged. A quarter of all numbers, so
/// that an acknowledgement can never be taken for one of another round.
const MAX_AHEAD: u64 = 1024;
/// How far behind the newest packet another may be for its acknowledgements to count: enough for
/// one that is seconds late. Older ones may speak of packets of the round before.
const MAX_WORD_AGE: u16 = 256;
/// Plain packets that wait to be sent; more are not answered.
const MAX_PLAIN_BYTES: usize = 256;
/// Acknowledgements that are planned at once.
const MAX_BARE: usize = 4;

impl Endpoint {
    pub(super) fn new(part: Part, session: Session, measure: Box<dyn Measure>) -> Self {
        let max_payload = part.common().max_payload;
        Self {
            part,
            session,
            phase: Phase::Setup,
            window: ReceiveWindow::default(),
            ack_at: None,
            reset_by: None,
            inbox: Inbox::default(),
            measure,
            outbox: Outbox::new(max_payload),
            unacknowledged: Unacknowledged::default(),
            flight: Flight::default(),
            plain: VecDeque::new(),
            plain_bytes: 0,
            ping: 0,
            news: VecDeque::new(),
        }
    }

    /// The connection begins: a client says hello.
    pub(super) fn start(&mut self, timers: &mut Timers) {
        match &self.part {
            Part::Client(config) => timers.start(Timer::Setup, config.setup_time),
            Part::Server(config) => timers.start(Timer::Setup, config.setup_time),
        }
        self.beat(timers);
    }

    /// The side that it plays.
    pub(super) fn side(&self) -> Side {
        match self.part {
            Part::Client(_) => Side::Client,
            Part::Server(_) => Side::Server,
        }
    }

    pub(super) fn common(&self) -> &Common {
        self.part.common()
    }

    pub(super) fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// How many bytes of RPC messages are not acknowledged.
    pub(super) fn unacknowledged_bytes(&self) -> usize {
        self.unacknowledged.bytes()
    }

    /// Queues an RPC message.
    ///
    /// # Errors
    /// Value, for a message without a whole opcode; the limits on its bytes and on what is queued.
    pub(super) fn send_rpc(
        &mut self,
        message: &RpcMessage<'_>,
        timers: &Timers,
    ) -> Result<(), SendError> {
        message.encode(&mut Writer::new()).map_err(SendError::Encode)?;
        let common = self.part.common();
        // Flags, id, lists, number, count.
        let (length, most) = (message.wire_bytes(), common.max_payload.saturating_sub(6));
        if length > most {
            let error = Error::limit("bytes of an RPC message", most as u64, length as u64);
            return Err(SendError::Encode(error));
        }
        let bounds = common.bounds;
        let queued =
            self.unacknowledged.push(&message.body, bounds.queued_messages, bounds.queued_bytes);
        queued.map_err(SendError::QueueFull)?;
        self.plan(timers.now());
        Ok(())
    }

    /// Plans a packet with objects.
    ///
    /// # Errors
    /// Those of [`send_objects`](super::Sender::send_objects).
    pub(super) fn send_objects(
        &mut self,
        objects: &[u8],
        sim_time: Option<SimTime>,
    ) -> Result<PacketNumber, SendError> {
        let common = self.part.common();
        if self.phase != Phase::Established {
            return Err(SendError::NotEstablished);
        }
        let (length, most) = (objects.len(), common.max_payload.saturating_sub(6));
        if length > most {
            let error = Error::limit("bytes of an object section", most as u64, length as u64);
            return Err(SendError::Encode(error));
        }
        let ahead = self.outbox.next().saturating_sub(self.flight.highest());
        // When nothing is on its way any more, one packet finds out whether any arrives.
        let is_idle = self.flight.is_empty() && self.outbox.packets() == 0;
        if ahead > MAX_AHEAD && !is_idle {
            let name = "packets that are not acknowledged";
            return Err(SendError::QueueFull(Error::limit(name, MAX_AHEAD, ahead)));
        }
        let (packets, most) = (self.outbox.packets() + 1, common.bounds.queued_messages);
        if packets > most {
            let error = Error::limit("queued messages", most as u64, packets as u64);
            return Err(SendError::QueueFull(error));
        }
        let bytes = self.outbox.bytes() + crate::crypt::sealed_bytes(length + 20);
        if bytes > common.bounds.queued_bytes {
            let most = common.bounds.queued_bytes as u64;
            return Err(SendError::QueueFull(Error::limit("queued bytes", most, bytes as u64)));
        }
        Ok(PacketNumber(self.outbox.plan_objects(objects, sim_time)))
    }

    /// Asks the client to reset the sequence (servers).
    ///
    /// # Errors
    /// Those of [`reset`](super::Sender::reset).
    pub(super) fn reset(&mut self) -> Result<(), SendError> {
        if !matches!(self.part, Part::Server(_)) {
            return Err(SendError::Role("a server"));
        }
        if self.phase != Phase::Established {
            return Err(SendError::NotEstablished);
        }
        self.restart();
        let number = self.outbox.plan_bare(RccFlags::Always | RccFlags::Reset);
        self.window = ReceiveWindow::default();
        self.ack_at = None;
        self.phase = Phase::Resetting { number, again_at: None };
        Ok(())
    }

    /// A plain packet came; what is wrong with it.
    pub(super) fn on_plain(&mut self, plain: &Plain<'_>, timers: &mut Timers) -> Result<()> {
        match (plain, &self.part) {
            (Plain::Hello(hello), Part::Server(_)) => {
                let found = self.session.key.session_id(&hello.encrypted_session);
                if found != self.session.id {
                    let wanted = format!("session {:#x}", self.session.id);
                    let found = format!("session {found:#x}, or one with another key");
                    return Err(Error::malformed(wanted, found).inside("encryptedSession"));
                }
                // A client whose packets came has heard the answer. This is an old hello, or another
                // client's, whose packets would be taken for those of this one.
                if self.window.newest().is_some() {
                    return Ok(());
                }
                for _ in 0..ANSWERS {
                    self.push_plain(&Plain::Answer);
                }
                self.on_traffic(timers);
            }
            (Plain::Answer, Part::Client(_)) => self.on_traffic(timers),
            (Plain::Ping(_), Part::Server(_)) if self.phase != Phase::Setup => {
                self.push_plain(plain);
                self.on_traffic(timers);
            }
            (Plain::Ping(_), Part::Client(_)) if self.phase != Phase::Setup => {
                self.on_traffic(timers);
            }
            _ => {}
        }
        Ok(())
    }

    /// A packet of the other side was decrypted: decides whether it is read.
    pub(super) fn judge(&mut self, head: &PacketHead, iv: &[u8; 16], timers: &Timers) -> Verdict {
        let number = head.sequence.local;
        let resets = head.flags.contains(RccFlags::Reset);
        match (&self.part, self.phase) {
            // A client says hello first.
            (Part::Server(_), Phase::Setup) => return Verdict::Ignore,
            // Without an answer, they are for a client that was at this address before.
            (Part::Client(_), Phase::Setup) => return Verdict::Ignore,
            (Part::Server(_), Phase::Resetting { .. }) => {
                return if resets { Verdict::Read } else { Verdict::Ignore };
            }
            (Part::Client(_), _) if resets => match self.reset_by {
                Some((_, before)) if before == *iv => return Verdict::Ignore,
                Some((before, _)) if before == number => {
                    // It comes again because the answer was lost, or it is late.
                    if self.window.newest() == Some(number) {
                        self.outbox.plan_bare(RccFlags::Always | RccFlags::Reset);
                    }
                    return Verdict::Ignore;
                }
                _ => return Verdict::Read,
            },
            _ => {}
        }
        if self.window.contains(number) {
            // The acknowledgement may be lost.
            self.window.receive(number);
            self.ack_later(timers);
            return Verdict::Ignore;
        }
        Verdict::Read
    }

    /// A packet is read: its number and its acknowledgements count. `false` when it is too old.
    pub(super) fn accept(
        &mut self,
        head: &PacketHead,
        iv: &[u8; 16],
        asks: bool,
        timers: &mut Timers,
    ) -> bool {
        let (word, number) = (head.sequence, head.sequence.local);
        let resets = head.flags.contains(RccFlags::Reset);
        self.on_traffic(timers);
        match (&self.part, self.phase) {
            (Part::Client(_), _) if resets => {
                self.restart();
                self.window = ReceiveWindow::reset_by(number);
                self.reset_by = Some((number, *iv));
                self.outbox.plan_bare(RccFlags::Always | RccFlags::Reset);
                self.news.push_back(News::Reset);
            }
            (Part::Server(_), Phase::Resetting { number: own, .. }) => {
                self.window = ReceiveWindow::reset_by(number);
                self.flight.restart(own);
                self.phase = Phase::Established;
                self.news.push_back(News::Reset);
            }
            _ => {
                if !self.window.receive(number) {
                    return false;
                }
                // Older words may speak of numbers of the round before.
                let age = self.window.newest().map_or(0, |newest| newest.ahead_of(number));
                if age <= MAX_WORD_AGE {
                    let mut fates = Vec::new();
                    let next = self.outbox.next_sent();
                    self.flight.acknowledge(timers.now(), word, next, &mut fates);
                    self.settle(fates);
                }
            }
        }
        if asks {
            self.ack_later(timers);
        }
        self.plan(timers.now());
        true
    }

    /// Time has passed.
    pub(super) fn on_timeout(&mut self, timers: &mut Timers) {
        let now = timers.now();
        if timers.get(Timer::Beat).is_some_and(|at| at <= now) {
            self.beat(timers);
        }
        let mut fates = Vec::new();
        self.flight.time_out(now, self.part.common(), &mut fates);
        self.settle(fates);
        if let Phase::Resetting { number, again_at: Some(again_at) } = &mut self.phase
            && *again_at <= now
        {
            *again_at = now.saturating_add(self.flight.patience(self.part.common()));
            if self.outbox.packets() == 0 {
                self.outbox.plan_again(RccFlags::Always | RccFlags::Reset, *number);
            }
        }
        self.plan(now);
    }

    /// The driver tells the time.
    pub(super) fn tell(&mut self, now: Duration) {
        self.flight.tell(now);
        if let Phase::Resetting { again_at: again_at @ None, .. } = &mut self.phase {
            *again_at = Some(now.saturating_add(self.flight.patience(self.part.common())));
        }
    }

    /// When time matters next, apart from the timers. What was sent since the driver last told the
    /// time asks for it at once: when it was sent decides when it is lost.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let asks = match self.phase {
            Phase::Resetting { again_at, .. } => Some(again_at.unwrap_or(now)),
            Phase::Setup | Phase::Established | Phase::Over => None,
        };
        let lost_at = match self.flight.is_fresh() {
            true => Some(now),
            false => self.flight.deadline(self.common()),
        };
        [self.ack_at, asks, lost_at].into_iter().flatten().min()
    }

    /// The next datagram.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Vec<u8>> {
        if let Some(plain) = self.plain.pop_front() {
            self.plain_bytes -= plain.len();
            return Some(plain);
        }
        let departure = self.outbox.pop()?;
        let (remote, acks) = self.window.acknowledge();
        self.ack_at = match self.window.waiting() {
            0 => None,
            // It takes another word.
            _ if self.outbox.packets() == 0 => Some(now),
            _ => self.ack_at,
        };
        Some(self.seal(departure, remote, acks, now))
    }

    /// How many bytes are queued as datagrams.
    pub(super) fn queued_bytes(&self) -> usize {
        self.plain_bytes + self.outbox.bytes()
    }

    /// The connection is over: what is on its way counts as lost, and objects that are not are
    /// not sent any more.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Over;
        self.abandon();
        let dropped = self.outbox.drop_objects();
        self.news.extend(dropped.into_iter().map(|number| News::Lost(PacketNumber(number))));
    }

    fn abandon(&mut self) {
        let mut fates = Vec::new();
        self.flight.abandon(&mut fates);
        self.settle(fates);
    }

    fn seal(
        &mut self,
        departure: Departure,
        remote: SequenceNumber,
        acks: crate::frame::AckBits,
        now: Duration,
    ) -> Vec<u8> {
        let local = SequenceNumber::of(departure.number);
        let body = departure.body(SequenceWord { acks, remote, local });
        let mut packet = Writer::new();
        let encoded = encode_head(self.part.common().clock(now), &body, &mut packet);
        debug_assert!(encoded.is_ok(), "payloads are bounded");
        if let Some(cargo) = departure.cargo
            && self.phase != Phase::Over
        {
            self.flight.send(departure.number, now, cargo);
        }
        self.session.key.seal_datagram(&self.session.ivs.draw(), packet.as_bytes())
    }

    /// Puts into packets what can be sent now.
    fn plan(&mut self, now: Duration) {
        if self.phase != Phase::Established {
            return;
        }
        let common = self.part.common();
        while let Some((number, message)) = self.unacknowledged.next(common.max_ahead.into()) {
            let on_their_way = self.flight.rpc_packets() + self.outbox.packets();
            let ahead = self.outbox.next().saturating_sub(self.flight.highest());
            let is_close = ahead <= MAX_AHEAD || on_their_way == 0;
            let may_begin = on_their_way < common.max_in_flight.max(1) && is_close;
            let most = common.bounds.queued_bytes;
            if !self.outbox.plan_rpc(number, &message, most, may_begin) {
                break;
            }
            self.unacknowledged.plan(number);
        }
        let is_due = self.ack_at.is_some_and(|at| at <= now);
        if is_due || self.window.waiting() >= ACK_BITS.into() {
            let words = self.window.words_needed().min(MAX_BARE);
            while self.outbox.packets() < words {
                self.outbox.plan_bare(RccFlags::Always);
            }
            self.ack_at = None;
        }
    }

    fn ack_later(&mut self, timers: &Timers) {
        let at = timers.now().saturating_add(self.part.common().ack_delay);
        self.ack_at.get_or_insert(at);
        self.plan(timers.now());
    }

    fn settle(&mut self, fates: Vec<Fate>) {
        for Fate { number, cargo, outcome } in fates {
            match cargo {
                Cargo::Rpc(ranges) => {
                    self.unacknowledged.settle(&ranges, outcome == Outcome::Arrived);
                }
                Cargo::Objects => self.news.push_back(match outcome {
                    Outcome::Arrived => News::Delivered(number),
                    Outcome::Lost => News::Lost(number),
                    Outcome::Late => News::Late(number),
                }),
            }
        }
    }

    /// The sequence is reset: nothing of what was sent counts any more.
    fn restart(&mut self) {
        self.abandon();
        let lost = self.outbox.clear().into_iter().map(|number| News::Lost(PacketNumber(number)));
        self.news.extend(lost);
        self.unacknowledged.restart();
        self.inbox.restart();
        self.flight.restart(self.outbox.next().saturating_sub(1));
        self.ack_at = None;
    }

    /// The other side lives.
    fn on_traffic(&mut self, timers: &mut Timers) {
        timers.start(Timer::Idle, self.common().idle_time);
        if let Part::Client(config) = &self.part {
            timers.start(Timer::Beat, config.ping_every);
        }
        if self.phase != Phase::Setup {
            return;
        }
        self.phase = Phase::Established;
        timers.stop(Timer::Setup);
        self.news.push_back(News::Established);
        self.plan(timers.now());
    }

    /// Client: says hello, or sends a ping.
    fn beat(&mut self, timers: &mut Timers) {
        let Part::Client(config) = &self.part else { return timers.stop(Timer::Beat) };
        // Until something comes.
        timers.start(Timer::Beat, config.repeat_every);
        if self.phase == Phase::Setup {
            let mut block = [0; 16];
            let (id, rest) = block.split_at_mut(4);
            id.copy_from_slice(&self.session.id.to_le_bytes());
            rest.copy_from_slice(&config.block_rest);
            let hello = Hello {
                character_uid: config.character_uid,
                unknown: config.hello_unknown,
                encrypted_session: self.session.key.seal_block(&block),
            };
            return self.push_plain(&Plain::Hello(hello));
        }
        self.push_plain(&Plain::Ping(self.ping));
        self.ping = self.ping.wrapping_add(1);
    }

    /// Plain packets are said again: one that finds no room is left out.
    fn push_plain(&mut self, plain: &Plain<'_>) {
        let Ok(bytes) = plain.to_bytes() else { return };
        if self.plain_bytes + bytes.len() <= MAX_PLAIN_BYTES {
            self.plain_bytes += bytes.len();
            self.plain.push_back(bytes);
        }
    }
}

impl Part {
    fn common(&self) -> &Common {
        match self {
            Self::Client(config) => &config.common,
            Self::Server(config) => &config.common,
        }
    }
}
