//! A client, a server and an observer in virtual time, over a wire that can split the stream
//! anywhere.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{CloseReason, Connection as _, Event, EventOf};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_uru::connection::{Connection, News, ServerConfig, Unit};
use worldwire_uru::frame::{Message, Service, table};

use crate::ends::{Drive as _, KEYS, client_of, open_config, server_of};

/// How the wire splits the streams.
#[derive(Clone, Debug)]
pub(crate) enum Cut {
    Whole,
    Bytes,
    Random(u64),
}

impl Cut {
    pub(crate) fn conditions(&self) -> Conditions {
        match *self {
            Self::Whole => Conditions::default(),
            Self::Bytes => Conditions { segment: 1, ..Conditions::default() },
            Self::Random(seed) => Conditions { segment: 40, seed, ..Conditions::default() },
        }
    }

    pub(crate) fn pieces<'b>(&self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut sampler = match self {
            Self::Whole => return vec![bytes],
            Self::Bytes => return bytes.chunks(1).collect(),
            Self::Random(seed) => Sampler::new(*seed),
        };
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let length = 1 + usize::try_from(sampler.below(40)).unwrap();
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

/// An event in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventRecord {
    Unit(Side, Unit, u64, Vec<u8>),
    Established(Service, bool),
    Gap(Side, u64, u64),
    Resync(Side, u64, u64),
    KeysNeeded(Option<Service>),
    Fault(Side, String),
    Closed(CloseReason),
}

impl EventRecord {
    pub(crate) fn of(event: &EventOf<'_, Connection>) -> Self {
        match event {
            Event::Received(received) => {
                let content = received.content().expect("a reported piece can be decoded");
                if let Some(message) = received.message() {
                    assert_eq!(message.to_bytes().unwrap(), received.bytes, "{content:?}");
                }
                Self::Unit(received.side, received.unit, received.offset, received.bytes.to_vec())
            }
            Event::News(News::Established { service, encrypted }) => {
                Self::Established(*service, *encrypted)
            }
            Event::News(News::KeysNeeded { service }) => Self::KeysNeeded(*service),
            Event::News(other) => panic!("{other:?}"),
            Event::Gap { side, range } => Self::Gap(*side, range.start, range.end),
            Event::Resync { side, skipped } => Self::Resync(*side, skipped.start, skipped.end),
            Event::Fault { side, error } => Self::Fault(*side, error.to_string()),
            Event::Closed(reason) => Self::Closed(*reason),
        }
    }
}

pub(crate) fn drain(connection: &mut Connection, into: &mut Vec<EventRecord>) {
    while let Some(event) = connection.poll_event() {
        into.push(EventRecord::of(&event));
    }
}

/// A client, a server and an observer, with the events of each.
pub(crate) struct Talk {
    pub(crate) pair: Pair<Connection>,
    pub(crate) events: [Vec<EventRecord>; 2],
    pub(crate) observed: Vec<EventRecord>,
}

impl Talk {
    pub(crate) fn new(service: Service, encrypted: bool, cut: &Cut) -> Self {
        let client = client_of(service, encrypted, Duration::ZERO);
        let server = server_of(open_config(), Duration::ZERO);
        let pair = Pair::new(client, server, cut.conditions());
        let pair = pair.watched_by(Connection::observer(Arc::new(KEYS.clone())));
        let mut talk = Self { pair, events: Default::default(), observed: Vec::new() };
        talk.settle();
        talk
    }

    fn settle(&mut self) {
        let Self { pair, events: [client, server], observed } = self;
        pair.settle(|member, event, _| match member {
            Member::Client => client.push(EventRecord::of(&event)),
            Member::Server => server.push(EventRecord::of(&event)),
            _ => observed.push(EventRecord::of(&event)),
        });
    }

    pub(crate) fn send(&mut self, message: &Message<'_>) {
        match message.sender() {
            Side::Client => self.pair.client.send(message).unwrap(),
            Side::Server => self.pair.server.send(message).unwrap(),
        }
        self.settle();
    }
}

/// Every message of a service, from both sides, generated from a seed.
pub(crate) fn every_message(service: Service, seed: u64) -> Vec<Message<'static>> {
    let mut sampler = Sampler::new(seed);
    let mut messages = Vec::new();
    for side in Side::BOTH {
        for info in table(service, side).messages {
            messages.push(Message::sample(service, side, info.number, &mut sampler).unwrap());
        }
    }
    messages
}

/// The fault, if any, of a server with these settings that receives these bytes.
pub(crate) fn server_fault(config: ServerConfig, bytes: &[u8]) -> Option<String> {
    let mut server = Connection::server(config.into(), [9; 7], Duration::ZERO);
    server.receive(Side::Client, Duration::ZERO, bytes);
    let mut events = Vec::new();
    drain(&mut server, &mut events);
    let fault = events.iter().find_map(|events| match events {
        EventRecord::Fault(Side::Client, text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(fault.is_some(), server.is_closed());
    assert_eq!(fault.is_some(), events.contains(&EventRecord::Closed(CloseReason::Fault)));
    fault
}
