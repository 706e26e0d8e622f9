//! Client, server and observer in virtual time, over a wire that cuts the stream wherever it likes.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Sampler, Side};
use worldwire_uru::connection::{
    ClientConfig, CloseReason, Connection, Encryption, Event, ServerConfig, Unit,
};
use worldwire_uru::frame::{Message, Service, table};

use crate::ends::{KEYS, key_kind};

/// How the wire cuts what is sent.
#[derive(Clone, Debug)]
pub(crate) enum Cut {
    Whole,
    Bytes,
    Random(u64),
}

impl Cut {
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

/// What an end heard, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Unit(Side, Unit, u64, Vec<u8>),
    Established(Service, bool),
    Gap(Side, u64, u64),
    Resync(Side, u64, u64),
    KeysNeeded(Service),
    Fault(Side, String),
    Closed(CloseReason),
}

pub(crate) fn drain(connection: &mut Connection, into: &mut Vec<Heard>) {
    while let Some(event) = connection.poll_event() {
        into.push(match event {
            Event::Received(received) => {
                let content = received.content().expect("what came out can be read");
                if let Some(message) = received.message() {
                    assert_eq!(message.to_bytes().unwrap(), received.bytes, "{content:?}");
                }
                Heard::Unit(received.side, received.unit, received.offset, received.bytes.to_vec())
            }
            Event::Established { service, encrypted } => Heard::Established(service, encrypted),
            Event::Gap { side, range } => Heard::Gap(side, range.start, range.end),
            Event::Resync { side, skipped } => Heard::Resync(side, skipped.start, skipped.end),
            Event::KeysNeeded { service } => Heard::KeysNeeded(service),
            Event::Fault { side, error } => Heard::Fault(side, error.to_string()),
            Event::Closed(reason) => Heard::Closed(reason),
            other => panic!("{other:?}"),
        });
    }
}

/// A client, a server, somebody who listens, and the streams that went over the wire.
pub(crate) struct Pair {
    pub(crate) ends: [Connection; 2],
    pub(crate) heard: [Vec<Heard>; 2],
    observer: Connection,
    pub(crate) overheard: Vec<Heard>,
    pub(crate) streams: [Vec<u8>; 2],
    cut: Cut,
    now: Duration,
}

impl Pair {
    pub(crate) fn new(service: Service, encrypted: bool, cut: Cut) -> Self {
        let mut server = ServerConfig::new(KEYS.clone());
        server.encryption = Encryption::AllowPlain;
        Self::with(service, encrypted, cut, server)
    }

    fn with(service: Service, encrypted: bool, cut: Cut, mut server: ServerConfig) -> Self {
        server.answer_pings = false;
        let key = KEYS.public(key_kind(service)).filter(|_| encrypted).cloned();
        let mut client = ClientConfig::new(service, key, [0x5a; 64]);
        client.ping_every = None;
        let now = Duration::from_secs(1000);
        let mut pair = Self {
            ends: [
                Connection::client(client, now).unwrap(),
                Connection::server(Arc::new(server), [1, 2, 3, 4, 5, 6, 7], now),
            ],
            heard: Default::default(),
            observer: Connection::observer(Arc::new(KEYS.clone())),
            overheard: Vec::new(),
            streams: Default::default(),
            cut,
            now,
        };
        pair.carry();
        pair
    }

    /// Carries everything that waits to be sent to the other end and to whoever listens.
    fn carry(&mut self) {
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit() {
                    quiet = false;
                    self.streams[side.index()].extend_from_slice(&bytes);
                    for piece in self.cut.pieces(&bytes) {
                        let other = side.other().index();
                        self.ends[other].receive(side, self.now, piece);
                        drain(&mut self.ends[other], &mut self.heard[other]);
                        self.observer.receive(side, self.now, piece);
                        drain(&mut self.observer, &mut self.overheard);
                    }
                }
            }
            for side in Side::BOTH {
                drain(&mut self.ends[side.index()], &mut self.heard[side.index()]);
            }
            if quiet {
                return;
            }
        }
    }

    pub(crate) fn say(&mut self, message: &Message<'_>) {
        self.ends[message.sender().index()].send(message).unwrap();
        self.carry();
    }
}

/// Every message of a service, by whoever sends it, made up from a seed.
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

/// What a server (with these settings) makes of these bytes: the fault, if any.
pub(crate) fn server_fault(config: ServerConfig, bytes: &[u8]) -> Option<String> {
    let mut server = Connection::server(config.into(), [9; 7], Duration::ZERO);
    server.receive(Side::Client, Duration::ZERO, bytes);
    let mut heard = Vec::new();
    drain(&mut server, &mut heard);
    let fault = heard.iter().find_map(|heard| match heard {
        Heard::Fault(Side::Client, text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(fault.is_some(), server.is_closed());
    assert_eq!(fault.is_some(), heard.contains(&Heard::Closed(CloseReason::Fault)));
    fault
}
