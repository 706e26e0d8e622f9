//! Key exchanges of captured connections, computed for many connections at once.
//!
//! The client's first bytes determine an observer's part of the key exchange, and computing that
//! part takes far longer than the observer's other work. A caller with many connections to read
//! therefore computes all exchanges together and passes one to each observer.

use std::fmt;

use worldwire_core::Reader;

use super::config::key_kind;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::crypt::exchange::{SessionKey, SharedSecret};
use crate::crypt::key::{PrivateKey, ServerKind};
use crate::file::keys::KeyRing;

/// The result of a captured key exchange, except for the server's seed.
///
/// ```
/// use worldwire_uru::connection::CapturedExchange;
/// use worldwire_uru::file::keys::KeyRing;
///
/// // The first bytes of three clients that need no key.
/// let computed = CapturedExchange::compute(&KeyRing::new(), &[b"", b"\x10", b"\x00\x42"]);
/// assert!(computed.iter().all(Option::is_none));
/// ```
pub struct CapturedExchange {
    kind: ServerKind,
    y: Vec<u8>,
    secret: SharedSecret,
}

impl CapturedExchange {
    /// The number of bytes needed from the start of a client's stream: the longest connect packet
    /// and a setup packet.
    pub const BEGINNING: usize = 67 + 66;

    /// Computes the exchanges of connections from the first bytes of their clients. On processors
    /// that handle eight numbers at a time, this is several times as fast as computing them one by
    /// one.
    ///
    /// The result is `None` if the bytes are not a connect packet followed by a setup packet, or
    /// the service has no private key. The time it takes depends on the secrets, so servers must
    /// not use it.
    #[must_use]
    pub fn compute(keys: &KeyRing, beginnings: &[&[u8]]) -> Vec<Option<Self>> {
        let numbers: Vec<_> = beginnings.iter().map(|bytes| number(bytes)).collect();
        let mut all: Vec<_> = beginnings.iter().map(|_| None).collect();
        for kind in ServerKind::ALL {
            let Some(private) = keys.private(kind) else { continue };
            let own = numbers.iter().enumerate();
            let own = own.filter_map(|(place, number)| match number {
                Some((own, y)) if *own == kind => Some((place, y.as_slice())),
                _ => None,
            });
            let (places, ys): (Vec<usize>, Vec<&[u8]>) = own.unzip();
            for ((place, y), secret) in places.iter().zip(&ys).zip(private.captured_secrets(&ys)) {
                let exchange = |secret| Self { kind, y: y.to_vec(), secret };
                all[*place] = secret.ok().map(exchange);
            }
        }
        all
    }

    /// The session key for a seed, if the exchange was computed from this `y` and for this server's
    /// key.
    pub(super) fn session_key(
        &self,
        server: &PrivateKey,
        y: &[u8],
        seed: [u8; 7],
    ) -> Option<SessionKey> {
        let is_own = self.kind == server.public().kind() && self.y == y;
        is_own.then(|| self.secret.session_key(seed))
    }
}

impl fmt::Debug for CapturedExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturedExchange").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The kind of key that a client needs, and the client's number, both taken from its first bytes.
fn number(beginning: &[u8]) -> Option<(ServerKind, Vec<u8>)> {
    let mut reader = Reader::new(beginning);
    let kind = key_kind(ConnectPacket::decode_fields(&mut reader).ok()?.service()?)?;
    match SetupPacket::decode_fields(&mut reader).ok()? {
        SetupPacket::Connect(y) if !y.is_empty() => Some((kind, y.into_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::{Field, Writer};

    use super::*;
    use crate::crypt::key::PrimeKind;
    use crate::frame::Service;
    use rand_core::SeedableRng;

    fn keys() -> KeyRing {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let mut keys = KeyRing::new();
        for kind in [ServerKind::Auth, ServerKind::Game] {
            keys.insert_private(PrivateKey::generate(kind, PrimeKind::Plain, &mut rng));
        }
        keys
    }

    fn beginning(service: Service, y: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        ConnectPacket::new(service).encode(&mut writer).unwrap();
        SetupPacket::Connect(y.into()).encode(&mut writer).unwrap();
        writer.into_bytes()
    }

    #[test]
    fn exchanges_match_those_computed_one_at_a_time() {
        let keys = keys();
        let services = [Service::Auth, Service::Game, Service::Gatekeeper, Service::Auth];
        let numbers: Vec<[u8; 64]> = (2..24).map(|byte| [byte; 64]).collect();
        let of = |place: usize| services[place % services.len()];
        let beginnings: Vec<Vec<u8>> =
            numbers.iter().enumerate().map(|(place, y)| beginning(of(place), y)).collect();
        let beginnings: Vec<&[u8]> = beginnings.iter().map(Vec::as_slice).collect();
        let computed = CapturedExchange::compute(&keys, &beginnings);
        assert_eq!(computed.len(), numbers.len());
        for (place, (y, computed)) in numbers.iter().zip(computed).enumerate() {
            let private = key_kind(of(place)).and_then(|kind| keys.private(kind));
            let Some(private) = private else {
                assert!(computed.is_none(), "there is no key for the gatekeeper");
                continue;
            };
            let computed = computed.unwrap();
            let seed = [1, 2, 3, 4, 5, 6, 7];
            let wanted = private.captured_key(y, seed).unwrap();
            assert_eq!(computed.session_key(private, y, seed), Some(wanted));
            // The exchange yields no key for another number or another server.
            assert_eq!(computed.session_key(private, &[1; 64], seed), None);
            let other =
                if of(place) == Service::Auth { ServerKind::Game } else { ServerKind::Auth };
            assert_eq!(computed.session_key(keys.private(other).unwrap(), y, seed), None);
        }
    }

    #[test]
    fn bytes_that_are_not_an_exchange_yield_none() {
        let whole = beginning(Service::Auth, &[9; 64]);
        assert_eq!(
            whole.len(),
            CapturedExchange::BEGINNING - 16,
            "a game connection's has 16 more"
        );
        let plain = beginning(Service::Auth, &[]);
        let file = beginning(Service::File, &[9; 64]);
        let beginnings: Vec<&[u8]> = (0..whole.len())
            .map(|end| &whole[..end])
            .chain([&plain[..], &file[..], b"GET /"])
            .collect();
        let computed = CapturedExchange::compute(&keys(), &beginnings);
        assert_eq!(computed.iter().flatten().count(), 0);
        let [exchange] = &CapturedExchange::compute(&keys(), &[&whole])[..] else { panic!() };
        assert_eq!(
            format!("{:?}", exchange.as_ref().unwrap()),
            "CapturedExchange { kind: Auth, .. }"
        );
    }
}
