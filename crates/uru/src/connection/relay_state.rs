//! The state of a relay: its keys, the key exchange and the queued pieces.

use core::fmt;
use std::sync::Arc;

use worldwire_core::connection::Forwarding;
use worldwire_core::{Error, Field, Result, Side, Writer};
use zeroize::Zeroize;

use super::config::{RelayConfig, RelayKeys, key_kind, private_key, refused};
use super::event::Unread;
use super::stream::Phase;
use crate::connect::SetupPacket;
use crate::crypt::exchange::{SessionKey, SharedSecret};
use crate::frame::Service;

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
pub(super) struct RelayState {
    config: Arc<RelayConfig>,
    random: RelayRandom,
    /// The client's number, with shared keys.
    y: Option<Vec<u8>>,
    /// The key of the client's hop and the secret of the server's, with separate keys.
    hops: Option<(SessionKey, SharedSecret)>,
    /// The relay's own setup packet, forwarded in place of the piece.
    pub(super) made: Option<Vec<u8>>,
    pub(super) forwarding: Forwarding<Unread>,
}

impl RelayState {
    pub(super) fn new(config: Arc<RelayConfig>, random: RelayRandom) -> Self {
        let forwarding = Forwarding::new(config.bounds);
        Self { config, random, y: None, hops: None, made: None, forwarding }
    }

    /// Forwards the rest of a stream unread.
    pub(super) fn pass(&mut self, side: Side) -> Phase {
        self.forwarding.set_raw(side);
        Phase::Passing
    }

    /// Whether the relay has answered the client with its own key, so that nothing can pass unread.
    pub(super) fn is_committed(&self) -> bool {
        self.hops.is_some()
    }

    /// Handles the client's number. With separate keys, the relay sends its own number to the
    /// server.
    pub(super) fn begin(&mut self, service: Service, y: Vec<u8>) -> Result<()> {
        match &self.config.keys {
            RelayKeys::Shared(keys) => {
                private_key(keys, service)?;
                self.y = Some(y);
            }
            RelayKeys::Separate { own, server } => {
                let key = private_key(own, service)?;
                let public = key_kind(service).and_then(|kind| server.public(kind));
                let public = public.ok_or_else(|| {
                    let wanted = format!("the server's public key for {}", service.name());
                    Error::malformed(wanted, "no such key in the configuration")
                })?;
                let key = key.server_answer(&y, self.random.seed).map_err(refused)?;
                let (y, secret) = public.client_begin(&self.random.secret).map_err(refused)?;
                self.make(&SetupPacket::Connect(y.as_bytes().to_vec().into()))?;
                self.hops = Some((key, secret));
            }
        }
        Ok(())
    }

    /// Handles the server's setup packet, with or without a seed. Returns the keys of both hops if
    /// they are encrypted.
    pub(super) fn agree(
        &mut self,
        service: Service,
        seed: Option<[u8; 7]>,
    ) -> Result<Option<[SessionKey; 2]>> {
        let keys = match (self.y.take(), self.hops.take(), seed) {
            (Some(y), _, Some(seed)) => {
                let RelayKeys::Shared(keys) = &self.config.keys else { return Ok(None) };
                let key = private_key(keys, service)?.captured_key(&y, seed).map_err(refused)?;
                Some([key.clone(), key])
            }
            (_, Some((client, secret)), Some(seed)) => {
                self.make(&SetupPacket::Encrypt(Some(self.random.seed)))?;
                Some([client, secret.session_key(seed)])
            }
            (_, Some(hops), None) => {
                self.hops = Some(hops);
                return Err(Error::malformed("a seed of 7 bytes", "no seed"));
            }
            (None, None, Some(_)) => return Err(Error::malformed("no seed", "a seed of 7 bytes")),
            (_, None, None) => None,
        };
        Ok(keys)
    }

    fn make(&mut self, packet: &SetupPacket<'_>) -> Result<()> {
        let mut writer = Writer::new();
        packet.encode(&mut writer)?;
        self.made = Some(writer.into_bytes());
        Ok(())
    }
}
