//! The client and server roles: session, sequence numbers and sending.

mod handshake;

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::connection::{SendError, Timer, Timers};
use worldwire_core::{Error, Float, Result, Side, Writer};

use crate::connection::config::{ClientConfig, Common, ServerConfig, Session};
use crate::connection::event::{News, PacketNumber};
use crate::connection::inbox::Inbox;
use crate::connection::outbox::{Departure, Outbox, Unacknowledged, limit};
use crate::connection::sent_packets::{Cargo, Fate, Outcome, SentPackets};
use crate::frame::{
    ACK_BITS, ANSWERS, Measure, OBJECTS, PacketHead, Plain, RccFlags, ReceiveWindow, RpcMessage,
    SequenceNumber, SequenceWord, ToTheEnd, encode_head,
};

/// The role, with its settings.
#[derive(Debug)]
pub(super) enum Part {
    Client(ClientConfig),
    Server(ServerConfig),
}

/// The phase of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No hello has been answered.
    Setup,
    /// Server: a hello was answered, but its sender's address may be forged. Only probes are sent
    /// until the client acknowledges one.
    Greeted,
    Established,
    /// Server: the packet with this number asked the client to reset the sequence. The time of the
    /// next attempt is set at the driver's next input.
    Resetting {
        number: u64,
        again_at: Option<Duration>,
    },
    /// The connection has ended, and packets are no longer tracked.
    Over,
}

/// What to do with a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Read,
    /// The packet is a repeat, or belongs to a sequence that was reset. It takes up no bytes in the
    /// stream.
    Ignore,
}

/// The state of a client or a server.
#[derive(Debug)]
pub struct Endpoint {
    part: Part,
    pub(super) session: Session,
    phase: Phase,
    /// The packets received.
    window: ReceiveWindow,
    /// The deadline for acknowledging them.
    ack_at: Option<Duration>,
    /// Client: the packet that reset the sequence last, and its initialisation vector.
    reset_by: Option<(SequenceNumber, [u8; 16])>,
    pub(super) inbox: Inbox,
    pub(super) measure: Box<dyn Measure>,
    outbox: Outbox,
    unacknowledged: Unacknowledged,
    sent_packets: SentPackets,
    /// Plain packets to be sent.
    plain: VecDeque<Vec<u8>>,
    plain_bytes: usize,
    /// The value of the next ping.
    ping: u32,
    /// Server: packets up to this one with objects were probes.
    last_probe: u64,
    /// Server: how many more probes may be sent until the client is heard from again.
    probes_left: u32,
    /// Whether the other side has acknowledged a packet with sections.
    is_confirmed: bool,
    /// Client: the first packet that acknowledges one of the server's packets; whether the server
    /// has acknowledged that packet or a later one; and how many packets were sent only because it
    /// had not done so.
    first_ack: Option<SequenceNumber>,
    is_acknowledged: bool,
    extra_acks: u32,
    pub(super) news: VecDeque<News>,
}

/// How far packets may be ahead of the newest acknowledged one. The limit is a quarter of all
/// numbers, so an acknowledgement is never mistaken for one from another round.
const MAX_AHEAD: u64 = 1024;
/// The acknowledgements in a packet older than this are ignored, because they may refer to the
/// previous round. The limit still allows for a packet that is seconds late.
const MAX_WORD_AGE: u16 = 256;
/// Limit on plain packets waiting to be sent; beyond it, received ones are not answered.
const MAX_PLAIN_BYTES: usize = 256;
/// The end marker of an object section.
const END: [u8; 2] = [0, 0];
/// The maximum number of bare acknowledgements planned together.
const MAX_BARE: usize = 4;

impl Endpoint {
    pub(super) fn new(part: Part, session: Session) -> Self {
        let max_payload = part.common().max_payload;
        Self {
            part,
            session,
            phase: Phase::Setup,
            window: ReceiveWindow::default(),
            ack_at: None,
            reset_by: None,
            inbox: Inbox::default(),
            measure: Box::new(ToTheEnd),
            outbox: Outbox::new(max_payload),
            unacknowledged: Unacknowledged::default(),
            sent_packets: SentPackets::default(),
            plain: VecDeque::new(),
            plain_bytes: 0,
            ping: 0,
            last_probe: 0,
            probes_left: 0,
            is_confirmed: false,
            first_ack: None,
            is_acknowledged: false,
            extra_acks: 0,
            news: VecDeque::new(),
        }
    }

    /// Starts the timers. A client sends its hello.
    pub(super) fn start(&mut self, timers: &mut Timers) {
        match &self.part {
            Part::Client(config) => timers.start(Timer::Setup, config.setup_time),
            Part::Server(config) => timers.start(Timer::Setup, config.setup_time),
        }
        self.beat(timers);
    }

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

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// The number of unacknowledged bytes of RPC messages.
    pub(super) fn unacknowledged_bytes(&self) -> usize {
        self.unacknowledged.bytes()
    }

    /// Queues an RPC message.
    pub(super) fn send_rpc(
        &mut self,
        message: &RpcMessage<'_>,
        timers: &Timers,
    ) -> Result<(), SendError> {
        message.encode(&mut Writer::new()).map_err(SendError::Encode)?;
        let common = self.part.common();
        // Flags, ID, lists, number, count.
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

    /// Sends the simulation time with the next packet that begins with RPC messages.
    pub(super) fn set_sim_time(&mut self, time: Float) {
        self.outbox.set_sim_time(time);
    }

    /// Plans a packet with an object section.
    pub(super) fn send_objects(
        &mut self,
        section: &[u8],
        sim_time: Option<Float>,
    ) -> Result<PacketNumber, SendError> {
        let objects = match section {
            [OBJECTS, objects @ ..] if objects.ends_with(&END) => objects,
            [OBJECTS, ..] => {
                let error = Error::value("a section that ends with 00 00", "no end marker");
                return Err(SendError::Encode(error));
            }
            _ => {
                let found = section.first().map_or_else(|| "none".to_owned(), u8::to_string);
                let error = Error::value("a section that begins with its ID, 3", found);
                return Err(SendError::Encode(error));
            }
        };
        let common = self.part.common();
        if self.phase != Phase::Established {
            return Err(SendError::NotEstablished);
        }
        let (length, most) = (section.len(), common.max_payload.saturating_sub(5));
        limit("bytes of an object section", most, length).map_err(SendError::Encode)?;
        let ahead = self.outbox.next().saturating_sub(self.sent_packets.highest());
        // With nothing in flight, one packet probes whether the network works.
        let is_idle = self.sent_packets.is_empty() && self.outbox.packets() == 0;
        if ahead > MAX_AHEAD && !is_idle {
            let name = "unacknowledged packets";
            return Err(SendError::QueueFull(Error::limit(name, MAX_AHEAD, ahead)));
        }
        let packets = self.outbox.packets() + 1;
        let bytes = self.outbox.bytes() + crate::crypt::sealed_bytes(length + 19);
        limit("queued messages", common.bounds.queued_messages, packets)
            .and_then(|()| limit("queued bytes", common.bounds.queued_bytes, bytes))
            .map_err(SendError::QueueFull)?;
        Ok(PacketNumber(self.outbox.plan_objects(objects, sim_time)))
    }

    /// Asks the client to reset the sequence (servers).
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

    /// Handles a plain packet.
    pub(super) fn on_plain(&mut self, plain: &Plain<'_>, timers: &mut Timers) -> Result<()> {
        match (plain, &self.part) {
            (Plain::Hello(hello), Part::Server(_)) => {
                let found = self.session.key.session_id(&hello.encrypted_session);
                if found != self.session.id {
                    let wanted = format!("session {:#x}", self.session.id);
                    let found = format!("session {found:#x}, or an ID encrypted with another key");
                    return Err(Error::malformed(wanted, found).inside("encryptedSession"));
                }
                // A client that sends packets has received the answer.
                let has_answer = self.window.newest().is_some();
                // This hello is old, or from another client, whose packets would be mistaken for
                // this client's.
                if has_answer && self.phase != Phase::Greeted {
                    return Ok(());
                }
                for _ in 0..if has_answer { 0 } else { ANSWERS } {
                    self.push_plain(&Plain::Answer);
                }
                self.greet(timers);
            }
            (Plain::Answer, Part::Client(_)) => {
                self.on_traffic(timers);
                if self.phase == Phase::Setup {
                    self.establish(timers);
                }
            }
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

    /// Decides whether a decrypted packet is read.
    pub(super) fn judge(&mut self, head: &PacketHead, iv: &[u8; 16], timers: &Timers) -> Verdict {
        let number = head.sequence.local;
        let resets = head.flags.contains(RccFlags::Reset);
        match (&self.part, self.phase) {
            // A client must send a hello first.
            (Part::Server(_), Phase::Setup) => return Verdict::Ignore,
            // Packets that arrive before the answer are for an earlier client at this address.
            (Part::Client(_), Phase::Setup) => return Verdict::Ignore,
            (Part::Server(_), Phase::Resetting { .. }) => {
                return if resets { Verdict::Read } else { Verdict::Ignore };
            }
            (Part::Client(_), _) if resets => match self.reset_by {
                Some((_, before)) if before == *iv => return Verdict::Ignore,
                Some((before, _)) if before == number => {
                    // The answer was lost, or this copy is late.
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
            // The acknowledgement may have been lost.
            self.window.receive(number);
            self.ack_later(timers);
            return Verdict::Ignore;
        }
        Verdict::Read
    }

    /// Takes the number and the acknowledgements of a packet. Returns false if it is too old.
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
                self.sent_packets.restart(own);
                self.phase = Phase::Established;
                self.news.push_back(News::Reset);
            }
            _ => {
                if self.side() == Side::Client {
                    if self.window.newest().is_none() {
                        // The server waits for the first acknowledgement.
                        self.ack_at = Some(timers.now());
                    }
                    self.hear_acknowledgements(word, timers);
                }
                if !self.window.receive(number) {
                    return false;
                }
                // Older words may refer to numbers from the previous round.
                let age = self.window.newest().map_or(0, |newest| newest.ahead_of(number));
                if age <= MAX_WORD_AGE {
                    let mut fates = Vec::new();
                    let next = self.outbox.next_sent();
                    self.sent_packets.acknowledge(timers.now(), word, next, &mut fates);
                    if fates.iter().any(|fate| fate.outcome != Outcome::Lost) {
                        self.confirm(timers);
                    }
                    self.settle(fates);
                }
                if self.phase == Phase::Greeted {
                    // The packet does not acknowledge a probe yet.
                    self.greet(timers);
                }
            }
        }
        if asks {
            self.ack_later(timers);
        }
        self.plan(timers.now());
        true
    }

    pub(super) fn on_timeout(&mut self, timers: &mut Timers) {
        let now = timers.now();
        if timers.get(Timer::Beat).is_some_and(|at| at <= now) {
            self.beat(timers);
        }
        let mut fates = Vec::new();
        self.sent_packets.time_out(now, self.part.common(), &mut fates);
        self.settle(fates);
        if let Phase::Resetting { number, again_at: Some(again_at) } = &mut self.phase
            && *again_at <= now
        {
            *again_at = now.saturating_add(self.sent_packets.patience(self.part.common()));
            if self.outbox.packets() == 0 {
                self.outbox.plan_again(RccFlags::Always | RccFlags::Reset, *number);
            }
        }
        self.plan(now);
    }

    /// Takes the time from the driver.
    pub(super) fn set_now(&mut self, now: Duration) {
        self.sent_packets.set_now(now);
        if let Phase::Resetting { again_at: again_at @ None, .. } = &mut self.phase {
            *again_at = Some(now.saturating_add(self.sent_packets.patience(self.part.common())));
        }
    }

    /// The next deadline, apart from the timers. It is `now` if the send time of a packet is still
    /// unknown, because that time decides when the packet counts as lost.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let asks = match self.phase {
            Phase::Resetting { again_at, .. } => Some(again_at.unwrap_or(now)),
            Phase::Setup | Phase::Greeted | Phase::Established | Phase::Over => None,
        };
        let lost_at = match self.sent_packets.is_fresh() {
            true => Some(now),
            false => self.sent_packets.deadline(self.common()),
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
        if acks.0 != 0 {
            self.first_ack.get_or_insert_with(|| SequenceNumber::of(departure.number));
        }
        self.ack_at = match self.window.waiting() {
            0 => None,
            // One word could not acknowledge everything.
            _ if self.outbox.packets() == 0 => Some(now),
            _ => self.ack_at,
        };
        Some(self.seal(departure, remote, acks, now))
    }

    /// The bytes of all queued datagrams.
    pub(super) fn queued_bytes(&self) -> usize {
        self.plain_bytes + self.outbox.bytes()
    }

    /// Ends the connection. Packets in flight count as lost, and queued objects are dropped.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Over;
        self.abandon();
        let dropped = self.outbox.drop_objects();
        self.lose(dropped);
    }

    fn abandon(&mut self) {
        let mut fates = Vec::new();
        self.sent_packets.abandon(&mut fates);
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
            self.sent_packets.send(departure.number, now, cargo);
        }
        self.session.key.seal_datagram(&self.session.ivs.draw(), packet.as_bytes())
    }

    /// Plans packets for messages and acknowledgements that can be sent now.
    fn plan(&mut self, now: Duration) {
        if !matches!(self.phase, Phase::Greeted | Phase::Established) {
            return;
        }
        let common = self.part.common();
        while self.phase == Phase::Established
            && let Some((number, message)) =
                self.unacknowledged.next((common.max_ahead / 2).max(1).into())
        {
            let in_flight = self.sent_packets.rpc_packets() + self.outbox.packets();
            let ahead = self.outbox.next().saturating_sub(self.sent_packets.highest());
            let is_close = ahead <= MAX_AHEAD || in_flight == 0;
            let may_begin = in_flight < common.max_in_flight.max(1) && is_close;
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
                Cargo::Objects if number.0 <= self.last_probe => {
                    let is_needed = self.phase == Phase::Greeted && self.outbox.packets() == 0;
                    if outcome == Outcome::Lost && is_needed {
                        self.probe();
                    }
                }
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

    /// Resets the sequence and forgets everything sent.
    fn restart(&mut self) {
        self.abandon();
        let dropped = self.outbox.clear();
        self.lose(dropped);
        self.unacknowledged.restart();
        self.inbox.restart();
        self.sent_packets.restart(self.outbox.next().saturating_sub(1));
        self.ack_at = None;
    }

    /// Reports dropped packets with objects as lost.
    fn lose(&mut self, dropped: Vec<u64>) {
        let dropped = dropped.into_iter().filter(|number| *number > self.last_probe);
        self.news.extend(dropped.map(|number| News::Lost(PacketNumber(number))));
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
