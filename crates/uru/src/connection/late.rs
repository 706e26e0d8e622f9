//! Connections whose connect packet was not captured: what follows it tells what they are.
//!
//! Behind the connect packet of an encrypted connection comes the client's setup packet; which
//! service it is shows in what the keys make of the first messages. File connections have no setup
//! packet. Their messages say how long they are, and are looked for at every place.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Event};
use worldwire_core::{Error, Reader, Result, Side};

use super::Connection;
use super::config::{key_kind, refused};
use super::event::News;
use super::sender::Role;
use super::stream::Phase;
use crate::connect::{ConnectPacket, SetupType};
use crate::crypt::exchange::SessionKey;
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service};

/// What a connection may be.
#[derive(Debug)]
pub(super) struct Candidate {
    service: Service,
    /// The seed and the key; nothing on a plain connection.
    session: Option<([u8; 7], SessionKey)>,
}

/// The services with a setup packet, and how long their connect packets are.
const SET_UP: [(Service, u64); 3] =
    [(Service::Gatekeeper, 51), (Service::Auth, 51), (Service::Game, 67)];
/// How long the connect packet of a file connection is.
const FILE_CONNECT: u64 = 43;
/// How long a client's setup packet may be behind a gap. Shorter ones are possible, but come up once
/// in 2^32 connections.
const LEAST_SETUP: u8 = MAX_SETUP - 4;
const MAX_SETUP: u8 = 66;
/// How long both setup packets of a plain connection are.
const PLAIN_SETUP: u8 = 2;
/// So many bytes of each side tell which key is the right one.
const MAX_TRIED_BYTES: usize = 4096;

impl Connection {
    /// Watches a connection that may have begun before the capture. Its service is told by what
    /// there is: by setup packets and the keys that fit, or by messages of a file connection.
    #[must_use]
    pub fn observer_from_the_middle(keys: Arc<KeyRing>) -> Self {
        let role = Role::Observer { keys, y: None, exchange: None };
        let phases = [Phase::Late, Phase::Setup];
        Self::new(role, Bounds::default(), phases, Duration::ZERO)
    }

    /// A gap in or before the connect packet, or one of the server's behind such a gap: reading can
    /// go on.
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

    /// Goes on where something of a connection whose connect packet is missing can be told; false
    /// where that takes more bytes.
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

    /// A message was found behind lost bytes: the connection is of its service.
    pub(super) fn found(&mut self, service: Service) {
        if self.service().is_none() {
            self.sender.service = Some(service);
            self.sender.is_established = true;
            self.events.push_back(Event::News(News::Established { service, encrypted: false }));
        }
    }

    /// Both setup packets were seen, but no connect packet.
    pub(super) fn overhear_late(
        &mut self,
        keys: &KeyRing,
        y: Option<Vec<u8>>,
        seed: Option<[u8; 7]>,
    ) -> Result<()> {
        let Some(y) = y else {
            return Err(Error::malformed("the client's number before the seed", "none"));
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
            self.lack_key(None);
        }
        Ok(())
    }

    /// Tells the service by the messages that its key makes of what there is. `is_last` when nothing
    /// more comes that would tell. True when something is known.
    pub(super) fn tell_service(&mut self, is_last: bool) -> bool {
        if self.candidates.is_empty() {
            return false;
        }
        let unread = self.streams.each_ref().map(|stream| stream.incoming.unread());
        let is_enough = is_last || unread.iter().any(|bytes| bytes.len() >= MAX_TRIED_BYTES);
        if unread.iter().all(|bytes| bytes.is_empty()) {
            return false;
        }
        let fits: Vec<Option<usize>> =
            self.candidates.iter().map(|candidate| candidate.messages(unread)).collect();
        let mut possible = fits.iter().flatten();
        let is_told = matches!((possible.next(), possible.next()), (Some(1..), None));
        let best = (0..fits.len()).filter(|place| fits[*place].is_some());
        // Of equal ones the first.
        let best = best.rev().max_by_key(|place| fits[*place]);
        match best {
            Some(best) if is_told || is_enough => {
                let Candidate { service, session } = self.candidates.swap_remove(best);
                self.candidates.clear();
                match session {
                    Some((seed, key)) => self.establish_known(service, Some(seed), &key),
                    None => self.establish(service, None),
                }
            }
            Some(_) => return false,
            None => {
                self.candidates.clear();
                let found = "others: what they decrypt is no message";
                let error = Error::malformed("the key of this connection", found);
                self.fault(Side::Client, error.at(self.streams[0].incoming.offset()));
            }
        }
        true
    }
}

impl Candidate {
    /// How many messages there are if this is what the connection is, an incomplete one included;
    /// `None` when it cannot be.
    fn messages(&self, unread: [&[u8]; 2]) -> Option<usize> {
        let mut count = 0;
        for (side, bytes) in Side::BOTH.into_iter().zip(unread) {
            let mut bytes = bytes.get(..MAX_TRIED_BYTES).unwrap_or(bytes).to_vec();
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
/// Bytes of a message's number.
const NUMBER_BYTES: usize = 2;

/// What stands at the beginning of what there is of a client's stream.
enum Beginning {
    /// More bytes are needed to tell.
    Unknown,
    /// The connect packet after all.
    Connect,
    /// A setup packet, behind so many bytes of the connect packet.
    Setup(usize),
    /// Messages of a file connection, or nothing that can be read.
    Messages,
}

/// What the bytes of a client are that begin at this offset of its stream; 0 also where that is not
/// known. What the server has said tells whether a client wants a plain connection, or a file.
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
            [0, LEAST_SETUP..=MAX_SETUP, ..] => return Beginning::Setup(at),
            [0, PLAIN_SETUP, ..] => match answer {
                // A client waits for it, and says no more.
                [] | [SETUP_ENCRYPT] if unread.len() < MAX_TRIED_BYTES => {
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

/// Fewer bytes than a connect packet has.
const SHORT: usize = 35;
