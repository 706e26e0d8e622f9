//! Connections whose connect packet was not captured. Later bytes identify their service.
//!
//! On an encrypted connection, the client's setup packet follows the connect packet. The service is
//! the one whose key decrypts the first messages. File connections have no setup packet. Their
//! messages state their length and are searched for at every offset.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Event};
use worldwire_core::{Error, Reader, Result, Side};

use super::Connection;
use super::config::{key_kind, refused};
use super::event::News;
use super::sender::Role;
use super::setup::PLAIN;
use super::stream::Phase;
use crate::connect::{ConnectPacket, SetupType};
use crate::crypt::exchange::SessionKey;
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service};

/// A service that a connection may belong to.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    service: Service,
    /// The seed and the key; `None` on a plain connection.
    session: Option<([u8; 7], SessionKey)>,
}

/// The services with a setup packet, and the size of their connect packets in bytes.
const SET_UP: [(Service, u64); 3] =
    [(Service::Gatekeeper, 51), (Service::Auth, 51), (Service::Game, 67)];
/// The size of a file connection's connect packet.
const FILE_CONNECT: u64 = 43;
/// The smallest client setup packet expected after a gap. Smaller ones occur once in 2^32
/// connections.
const MIN_SETUP: u8 = MAX_SETUP - 4;
const MAX_SETUP: u8 = 66;
/// The size of both setup packets on a plain connection.
const PLAIN_SETUP: u8 = 2;
/// The number of bytes from each side that decide which key is right.
const MAX_TRIAL_BYTES: usize = 4096;

impl Connection {
    /// Observes a connection that may have begun before the capture. Its service is identified by
    /// setup packets and the keys that fit, or by messages of a file connection.
    #[must_use]
    pub fn observer_from_the_middle(keys: Arc<KeyRing>) -> Self {
        let role = Role::observer(keys, None);
        let phases = [Phase::Late, Phase::Setup];
        Self::new(role, Bounds::default(), phases, Duration::ZERO)
    }

    /// Handles a gap in or before the connect packet, or one in the server's stream after such a
    /// gap. Returns false for any other gap.
    pub(super) fn is_late_gap(&mut self, side: Side, length: u64) -> bool {
        let [client, server] = &mut self.streams;
        match (side, client.phase(), server.phase()) {
            (Side::Client, Phase::Connect | Phase::Late, _) => client.begin_late(length),
            (Side::Server, Phase::Late, Phase::Setup) => {
                // Without the seed only a file connection can be read.
                server.incoming.skip(length);
                server.search_for(Service::File, None);
            }
            _ => return false,
        }
        true
    }

    /// Determines how to read a connection whose connect packet is missing; returns false if more
    /// bytes are needed.
    pub(super) fn begin_late(&mut self, side: Side) -> bool {
        let [client, server] = &self.streams;
        if !matches!(client.phase(), Phase::Late) {
            return false;
        }
        let unread = match side {
            Side::Client => client.incoming.unread(),
            Side::Server => server.incoming.unread(),
        };
        let offset = client.incoming.offset();
        let found = match side {
            Side::Client => beginning(unread, offset, server.incoming.unread()),
            Side::Server if matches!(server.phase(), Phase::Setup) => match unread {
                [] | [SETUP_ENCRYPT | SETUP_ERROR] | [SETUP_ENCRYPT | SETUP_ERROR, 2..=9, ..] => {
                    Beginning::Unknown
                }
                _ => Beginning::Messages,
            },
            Side::Server => Beginning::Unknown,
        };
        match found {
            Beginning::Unknown => return false,
            Beginning::Connect => self.streams[side.index()].set_phase(Phase::Connect),
            Beginning::Setup(at) => {
                let stream = &mut self.streams[side.index()];
                stream.incoming.advance(at);
                let skipped = 0..stream.incoming.offset();
                if !skipped.is_empty() {
                    self.events.push_back(Event::Resync { side, skipped });
                }
                self.streams[side.index()].set_phase(Phase::Setup);
            }
            Beginning::Messages => {
                for (stream, begin) in self.streams.iter_mut().zip([Some(FILE_CONNECT), None]) {
                    if !matches!(stream.phase(), Phase::Searching(..)) {
                        stream.search_for(Service::File, begin);
                    }
                }
            }
        }
        true
    }

    /// Records that a message was found after lost bytes; the message identifies the service.
    pub(super) fn resumed_at(&mut self, service: Service) {
        if self.service().is_none() {
            self.sender.service = Some(service);
            self.sender.is_established = true;
            self.events.push_back(Event::News(News::Established { service, encrypted: false }));
        }
    }

    /// Handles a connection with both setup packets but no connect packet.
    pub(super) fn observe_late_setup(
        &mut self,
        keys: &KeyRing,
        y: Option<Vec<u8>>,
        seed: Option<[u8; 7]>,
    ) -> Result<()> {
        let Some(y) = y else {
            return Err(Error::malformed("the client's number before the seed", "no number"));
        };
        let services = SET_UP.into_iter().map(|(service, _)| service);
        let Some(seed) = seed else {
            let plain = services.map(|service| Candidate { service, session: None });
            self.candidates = plain.collect();
            return Ok(());
        };
        for service in services {
            if let Some(private) = key_kind(service).and_then(|kind| keys.private(kind)) {
                let key = private.captured_key(&y, seed).map_err(refused)?;
                self.candidates.push(Candidate { service, session: Some((seed, key)) });
            }
        }
        if self.candidates.is_empty() {
            self.give_up_without_key(None);
        }
        Ok(())
    }

    /// Identifies the service by the messages that its key decrypts. `is_last` means that no more
    /// bytes will arrive. Returns true if the service was identified or the connection failed.
    pub(super) fn identify_service(&mut self, is_last: bool) -> bool {
        if self.candidates.is_empty() {
            return false;
        }
        let unread = self.streams.each_ref().map(|stream| stream.incoming.unread());
        let is_enough = is_last || unread.iter().any(|bytes| bytes.len() >= MAX_TRIAL_BYTES);
        if unread.iter().all(|bytes| bytes.is_empty()) {
            return false;
        }
        let fits: Vec<Option<usize>> =
            self.candidates.iter().map(|candidate| candidate.messages(unread)).collect();
        let mut possible = fits.iter().flatten();
        let is_decided = matches!((possible.next(), possible.next()), (Some(1..), None));
        let best = (0..fits.len()).filter(|place| fits[*place].is_some());
        // Of equal candidates, take the first.
        let best = best.rev().max_by_key(|place| fits[*place]);
        match best {
            Some(best) if is_decided || is_enough => {
                let Candidate { service, session } = self.candidates.swap_remove(best);
                self.candidates.clear();
                match session {
                    Some((seed, key)) => self.establish_known(service, Some(seed), &key),
                    None => self.establish(service, PLAIN),
                }
            }
            Some(_) => return false,
            None => {
                self.candidates.clear();
                let problem = "these are another shard's keys: none of them decrypts this \
                               connection";
                let error = Error::malformed("", problem);
                self.fault(Side::Client, error.at(self.streams[0].incoming.offset()));
            }
        }
        true
    }
}

impl Candidate {
    /// The number of messages if the connection belongs to this service, including an incomplete
    /// one; `None` if it cannot belong to it.
    fn messages(&self, unread: [&[u8]; 2]) -> Option<usize> {
        let mut count = 0;
        for (side, bytes) in Side::BOTH.into_iter().zip(unread) {
            let mut bytes = bytes.get(..MAX_TRIAL_BYTES).unwrap_or(bytes).to_vec();
            if let Some((_, key)) = &self.session {
                Rc4::new(key).apply(&mut bytes);
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let mut reader = Reader::new(rest);
                match Message::decode(self.service, side, &mut reader) {
                    Ok(_) => count += 1,
                    Err(error) if error.needed().is_some() => {
                        count += usize::from(rest.len() >= NUMBER_BYTES);
                        break;
                    }
                    Err(_) => return None,
                }
                rest = rest.get(reader.position()..).unwrap_or_default();
            }
        }
        Some(count)
    }
}

/// The first bytes of the server's setup packets.
const SETUP_ENCRYPT: u8 = SetupType::Encrypt.0;
const SETUP_ERROR: u8 = SetupType::Error.0;
/// The size of a message number.
const NUMBER_BYTES: usize = 2;

/// The first part of a client's captured stream.
enum Beginning {
    /// More bytes are needed to decide.
    Unknown,
    /// A connect packet: it was captured after all.
    Connect,
    /// A setup packet, after this many bytes of the connect packet.
    Setup(usize),
    /// Messages of a file connection or unreadable bytes.
    Messages,
}

/// Identifies the client's bytes, given their offset in its stream, or 0 if that is unknown. The
/// server's bytes, `answer`, distinguish a plain connection from a file connection.
fn beginning(unread: &[u8], offset: u64, answer: &[u8]) -> Beginning {
    if unread.is_empty() {
        return Beginning::Unknown;
    }
    if offset == 0 {
        match ConnectPacket::decode_fields(&mut Reader::new(unread)) {
            Ok(_) => return Beginning::Connect,
            Err(error) if error.needed().is_some() && unread.len() > 2 => {
                return Beginning::Connect;
            }
            Err(_) => {}
        }
    }
    let ends = SET_UP.iter().filter_map(|(_, length)| length.checked_sub(offset));
    let mut is_unknown = false;
    for at in ends.chain([0]) {
        let Ok(at) = usize::try_from(at) else { continue };
        match unread.get(at..).unwrap_or_default() {
            [] | [0] => is_unknown = true,
            [0, MIN_SETUP..=MAX_SETUP, ..] => return Beginning::Setup(at),
            [0, PLAIN_SETUP, ..] => match answer {
                // A client waits for the reply before it sends more.
                [] | [SETUP_ENCRYPT] if unread.len() < MAX_TRIAL_BYTES => {
                    return Beginning::Unknown;
                }
                [SETUP_ENCRYPT, PLAIN_SETUP, ..] => return Beginning::Setup(at),
                _ => {}
            },
            _ => {}
        }
    }
    match is_unknown && unread.len() < SHORT {
        true => Beginning::Unknown,
        false => Beginning::Messages,
    }
}

/// Fewer bytes than in a connect packet.
const SHORT: usize = 35;
