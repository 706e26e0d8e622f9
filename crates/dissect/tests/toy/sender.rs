//! The sending half of the toy's connections: messages, decisions of a relay, and its own messages.

use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Decision, Forward, Forwarding, HoldId, Inject, Leaving, Outgoing,
    SendError, Sender as Sends, Timers,
};
use worldwire_core::{Error, Reader, Result, Side, Writer};

use crate::event::{Unit, Unread};
use crate::frame::{LETTERS, apply};
use crate::message::{Channel, Message};

/// The role of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Plays this side.
    Plays(Side),
    /// Watches both sides.
    Observer,
    /// Relays between the two sides.
    Relay,
}

/// The sending half.
#[derive(Debug)]
pub struct Sender {
    pub role: Role,
    pub channel: Channel,
    pub session: Option<u32>,
    pub key: Option<[u8; 4]>,
    /// The directions, by the side that they lead to.
    pub ways: [Way; 2],
    pub forwarding: Forwarding<Passage>,
    pub timers: Timers,
    pub closing: Closing,
}

/// A direction: everything that leads to one side.
#[derive(Debug)]
pub struct Way {
    pub out: Outgoing,
    /// The number of the next datagram, and the number of a relay's own datagrams sent so far.
    pub next: u16,
    pub own: u16,
}

/// A piece on its way through a relay.
#[derive(Debug)]
pub struct Passage {
    pub piece: Unread,
    /// The datagram's number.
    pub number: u16,
}

impl Sender {
    pub fn new(role: Role, channel: Channel, bounds: Bounds) -> Self {
        Self {
            role,
            channel,
            session: None,
            key: None,
            ways: Side::BOTH.map(|_| Way { out: Outgoing::new(bounds), next: 0, own: 0 }),
            forwarding: Forwarding::new(bounds),
            timers: Timers::default(),
            closing: Closing::default(),
        }
    }

    pub fn is_established(&self) -> bool {
        match self.channel {
            Channel::Stream => self.session.is_some(),
            Channel::Steps => self.key.is_some() && self.session.is_some(),
        }
    }

    pub fn end(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// Queues messages that were sent before the hello.
    pub fn release_deferred(&mut self) {
        for way in &mut self.ways {
            while let Some(message) = way.out.release_deferred() {
                way.out.push(message);
            }
        }
    }

    /// Queues one of this side's own messages in its wire format.
    fn put(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        let unit = Unit::Message(self.channel);
        let way = &mut self.ways[to.index()];
        let wire = way.wire(unit, message, None, self.session, self.key);
        let wire = wire.map_err(SendError::Encode)?;
        way.out.check_room(wire.len()).map_err(SendError::QueueFull)?;
        match self.channel {
            Channel::Stream if self.session.is_none() => way.out.defer(wire),
            _ => way.out.push(wire),
        }
        Ok(())
    }

    /// Queues a side's bytes that may leave now.
    pub fn fill(&mut self, from: Side) -> Result<()> {
        let (session, key, channel) = (self.session, self.key, self.channel);
        let way = &mut self.ways[from.other().index()];
        let mut outcome = Ok(());
        let filled = self.forwarding.fill(from, way, |way, leaving| {
            let Leaving { piece, bytes, decision, .. } = leaving;
            let Some(Passage { piece, number }) = piece else {
                return match channel {
                    Channel::Stream => way.out.forward_joined(&bytes),
                    Channel::Steps => way.out.forward(bytes),
                };
            };
            let message = match decision {
                Decision::AsIs => bytes,
                Decision::Instead(bytes) => bytes.into_owned(),
                Decision::Drop => return,
            };
            match way.wire(piece.unit, &message, Some(number), session, key) {
                Ok(wire) => way.out.forward(wire),
                Err(error) => outcome = Err(error),
            }
        });
        filled.and(outcome)
    }

    fn relays(&self) -> Result<(), SendError> {
        self.closing.check_open()?;
        match self.role {
            Role::Relay => Ok(()),
            _ => Err(SendError::Role("a relay")),
        }
    }
}

impl Sends for Sender {
    type Message<'m> = Message<'m>;

    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Role::Plays(own) = self.role else {
            return Err(SendError::Role("a client or a server"));
        };
        let bytes = message.to_bytes().map_err(SendError::Encode)?;
        check(self.channel, own, &bytes)?;
        self.put(own.other(), &bytes)
    }

    fn close(&mut self) {
        self.end(CloseReason::Local);
    }
}

impl Forward for Sender {
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.relays()?;
        let channel = self.channel;
        self.forwarding
            .decide(decision, |passage, decision| check_decision(channel, passage, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.relays()?;
        self.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.relays()?;
        let channel = self.channel;
        self.forwarding
            .release(held, decision, |passage, decision| check_decision(channel, passage, decision))
    }
}

impl Inject for Sender {
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.relays()?;
        let is_setup = |passage: &Passage| passage.piece.unit == Unit::Hello;
        let reported = self.forwarding.reported().is_some_and(|(_, passage)| is_setup(passage));
        if !self.is_established() || reported || self.forwarding.keeps(is_setup) {
            return Err(SendError::NotEstablished);
        }
        self.forwarding.check_readable(to.other())?;
        check(self.channel, to.other(), message)?;
        self.fill(to.other()).map_err(SendError::QueueFull)?;
        self.put(to, message)?;
        let own = &mut self.ways[to.index()].own;
        *own = own.wrapping_add(1);
        Ok(())
    }
}

impl AsMut<Outgoing> for Way {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Way {
    /// A message in its wire format; `number` is that of a forwarded datagram.
    fn wire(
        &mut self,
        unit: Unit,
        message: &[u8],
        number: Option<u16>,
        session: Option<u32>,
        key: Option<[u8; 4]>,
    ) -> Result<Vec<u8>> {
        let mut wire = Writer::new();
        match unit {
            Unit::Hello => wire.bytes(message),
            Unit::Message(Channel::Stream) => {
                let length = u16::try_from(message.len()).map_err(|_| {
                    Error::limit("bytes of a message", u16::MAX.into(), message.len() as u64)
                })?;
                wire.u16(length);
                wire.bytes(message);
            }
            Unit::Message(Channel::Steps) => {
                let number = match number {
                    Some(number) => number.wrapping_add(self.own),
                    None => self.next,
                };
                self.next = number.wrapping_add(1);
                wire.bytes(&LETTERS);
                wire.u32(session.unwrap_or(0));
                wire.u16(number);
                let mut message = message.to_vec();
                apply(key.unwrap_or_default(), &mut message);
                wire.bytes(&message);
            }
        }
        Ok(wire.into_bytes())
    }
}

/// Checks that a piece may be dropped or changed into these bytes.
fn check_decision(
    channel: Channel,
    passage: &Passage,
    decision: &Decision<'_>,
) -> Result<(), SendError> {
    let Unread { side, unit, .. } = passage.piece;
    match decision {
        _ if unit == Unit::Hello => Err(SendError::Unchangeable("a hello")),
        Decision::Instead(bytes) => check(channel, side, bytes),
        Decision::AsIs | Decision::Drop => Ok(()),
    }
}

/// Checks that bytes are one whole message of a side.
fn check(channel: Channel, side: Side, message: &[u8]) -> Result<(), SendError> {
    let mut reader = Reader::new(message);
    let read = Message::decode(channel, side, &mut reader).and_then(|_| reader.end());
    let refused = |error: Error| Error::value("one whole message", error.to_string());
    read.map_err(refused).map_err(SendError::Encode)
}
