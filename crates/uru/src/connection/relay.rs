//! The relay role: its keys, its key exchange and the checks on its decisions.

use core::fmt;
use std::sync::Arc;

use worldwire_core::connection::{Decision, SendError, Unread};
use worldwire_core::{Error, Field, Reader, Result, Side, Writer};
use zeroize::Zeroize;

use super::config::{RelayConfig, RelayKeys, key_kind, private_key, refused};
use super::event::Unit;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::crypt::exchange::{SessionKey, SharedSecret};
use crate::frame::{Message, Service};

/// Fresh random bytes for one relayed connection. Only [`RelayKeys::Separate`] uses them. They are
/// cleared on drop and hidden from `Debug`.
#[derive(Clone)]
pub struct RelayRandom {
    /// The random bytes for the secret on the server's hop.
    pub secret: [u8; 64],
    /// The seed sent to the client.
    pub seed: [u8; 7],
}

impl Drop for RelayRandom {
    fn drop(&mut self) {
        self.secret.zeroize();
        self.seed.zeroize();
    }
}

impl fmt::Debug for RelayRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayRandom(..)")
    }
}

/// The state of a relay, apart from its streams.
#[derive(Debug)]
pub struct RelayState {
    config: Arc<RelayConfig>,
    random: RelayRandom,
    /// The service of the connect packet, once known.
    pub(super) service: Option<Service>,
    /// The client's number, with shared keys.
    y: Option<Vec<u8>>,
    /// With separate keys, the hops while their keys are being negotiated.
    hops: Option<Hops>,
    /// The seed and the key of each hop of an encrypted connection, once known.
    pub(super) sessions: Vec<([u8; 7], SessionKey)>,
    /// The relay's own setup packet, forwarded in place of the piece.
    pub(super) made: Option<Vec<u8>>,
}

/// The hops of a relay with separate keys. Each can be encrypted without the other.
#[derive(Debug)]
struct Hops {
    /// The key of the client's hop. `None` if the client asked for a plain connection.
    client: Option<SessionKey>,
    /// The secret of the server's hop. `None` without the server's public key.
    server: Option<SharedSecret>,
}

impl RelayState {
    pub(super) fn new(config: Arc<RelayConfig>, random: RelayRandom) -> Self {
        let sessions = Vec::new();
        Self { config, random, service: None, y: None, hops: None, sessions, made: None }
    }

    /// Whether the relay has sent its own setup packet, so that nothing can be forwarded unread any
    /// more.
    pub(super) fn is_committed(&self) -> bool {
        self.hops.is_some()
    }

    /// Handles the client's number, which is empty if the client asks for a plain connection. With
    /// separate keys, the relay sends its own number to the server, or none.
    pub(super) fn begin(&mut self, service: Service, y: Vec<u8>) -> Result<()> {
        match &self.config.keys {
            RelayKeys::Shared(_) if y.is_empty() => {}
            RelayKeys::Shared(keys) => {
                private_key(keys, service)?;
                self.y = Some(y);
            }
            RelayKeys::Separate { own, server } => {
                let mut hops = Hops { client: None, server: None };
                if !y.is_empty() {
                    let key = private_key(own, service)?;
                    let key = key.server_answer(&y, self.random.seed).map_err(refused)?;
                    hops.client = Some(key);
                }
                let public = key_kind(service).and_then(|kind| server.public(kind));
                let mut number = Vec::new();
                if let Some(public) = public {
                    let (y, secret) = public.client_begin(&self.random.secret).map_err(refused)?;
                    number = y.as_bytes().to_vec();
                    hops.server = Some(secret);
                }
                if hops.client.is_some() || hops.server.is_some() {
                    self.make(&SetupPacket::Connect(number.into()))?;
                    self.hops = Some(hops);
                }
            }
        }
        Ok(())
    }

    /// Handles the server's setup packet, with or without a seed. Returns the key of each hop that is
    /// encrypted.
    pub(super) fn agree(
        &mut self,
        service: Service,
        seed: Option<[u8; 7]>,
    ) -> Result<[Option<SessionKey>; 2]> {
        if let Some(hops) = &self.hops {
            let server = match (&hops.server, seed) {
                (Some(secret), Some(seed)) => Some((seed, secret.session_key(seed))),
                (None, None) => None,
                (Some(_), None) => return Err(Error::malformed("a seed of 7 bytes", "no seed")),
                (None, Some(_)) => return Err(Error::malformed("no seed", "a seed of 7 bytes")),
            };
            let client = hops.client.clone().map(|key| (self.random.seed, key));
            self.make(&SetupPacket::Encrypt(client.as_ref().map(|(seed, _)| *seed)))?;
            self.hops = None;
            let keys = [client, server];
            self.sessions.extend(keys.iter().flatten().cloned());
            return Ok(keys.map(|session| session.map(|(_, key)| key)));
        }
        match (self.y.take(), seed) {
            (Some(y), Some(seed)) => {
                let RelayKeys::Shared(keys) = &self.config.keys else { return Ok([None, None]) };
                let key = private_key(keys, service)?.captured_key(&y, seed).map_err(refused)?;
                self.sessions.push((seed, key.clone()));
                Ok([Some(key.clone()), Some(key)])
            }
            (None, Some(_)) => Err(Error::malformed("no seed", "a seed of 7 bytes")),
            (_, None) => Ok([None, None]),
        }
    }

    /// Checks that a piece may be dropped or replaced as decided.
    pub(super) fn check(
        &self,
        piece: &Unread<Unit>,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        match (piece.unit, decision) {
            (Unit::Message(service), Decision::Instead(bytes)) => {
                check_message(service, piece.side, bytes)
            }
            (Unit::Connect, Decision::Instead(bytes)) => {
                let mut reader = Reader::new(bytes);
                let packet = ConnectPacket::decode_fields(&mut reader)
                    .and_then(|packet| reader.end().map(|()| packet));
                match packet {
                    Ok(packet) if packet.service() == self.service => Ok(()),
                    Ok(packet) => {
                        let wanted = "a connect packet of the same service";
                        let error = Error::value(wanted, packet.connection_type().to_string());
                        Err(SendError::Encode(error))
                    }
                    Err(error) => {
                        let why = format!("not a valid connect packet: {error}");
                        Err(SendError::Encode(Error::invalid(why)))
                    }
                }
            }
            (Unit::Connect, Decision::Drop) => {
                Err(SendError::Unchangeable("a connect packet of this service"))
            }
            (Unit::Setup, _) => Err(SendError::Unchangeable("a setup packet")),
            (Unit::Message(_), _) | (_, Decision::AsIs) => Ok(()),
        }
    }

    fn make(&mut self, packet: &SetupPacket<'_>) -> Result<()> {
        let mut writer = Writer::new();
        packet.encode(&mut writer)?;
        self.made = Some(writer.into_bytes());
        Ok(())
    }
}

/// Checks that the bytes are exactly one message.
pub(super) fn check_message(service: Service, side: Side, bytes: &[u8]) -> Result<(), SendError> {
    let mut reader = Reader::new(bytes);
    let outcome = Message::decode(service, side, &mut reader).and_then(|_| reader.end());
    outcome.map_err(|error| {
        let wanted = format!("one whole message from the {side} on {}", service.name());
        SendError::Encode(Error::value(wanted, error.to_string()))
    })
}
