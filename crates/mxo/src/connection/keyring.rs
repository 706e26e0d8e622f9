//! Finds the key of a connection, for observers and relays.

use std::sync::Arc;

use worldwire_core::Error;

use super::event::MissingKey;
use crate::crypt::{KnownSession, SessionKey, Unopened};
use crate::frame::Hello;

/// The known keys and the one in use.
#[derive(Clone, Debug)]
pub struct Keyring {
    known: Arc<[KnownSession]>,
    /// The index of the key in use.
    chosen: Option<usize>,
    /// The keys that opened a datagram, by index, and the session that the last hello had named by
    /// then.
    opened: Vec<(usize, Option<u32>)>,
    /// The last hello.
    hello: Option<Hello>,
    /// The session of the chosen key and the different one in the hello.
    contradiction: Option<(u32, u32)>,
}

/// Why a datagram was not decrypted.
#[derive(Debug)]
pub(super) enum Refused {
    /// No key opens it.
    NoKey(MissingKey),
    /// The datagram is damaged.
    Damaged(Error),
}

/// The maximum number of keys tried on a datagram.
const MAX_TRIED: usize = 256;
/// The maximum number of keys kept.
const MAX_KNOWN: usize = 1_024;

impl Keyring {
    pub(super) fn new(known: Arc<[KnownSession]>) -> Self {
        Self { known, chosen: None, opened: Vec::new(), hello: None, contradiction: None }
    }

    /// Handles a hello: chooses the key whose session it names. Returns whether the hello starts a
    /// different session.
    pub(super) fn on_hello(&mut self, hello: &Hello) -> bool {
        let is_other = self.hello.replace(hello.clone()).is_some_and(|before| before != *hello);
        if is_other {
            self.chosen = None;
        }
        let fits = |session: &KnownSession| {
            session.id == Some(session.key.session_id(&hello.encrypted_session))
        };
        if let Some(named) = self.known.iter().take(MAX_TRIED).position(fits) {
            self.chosen = Some(named);
        }
        is_other
    }

    /// Adds a session and chooses it if it is the one that the last hello names.
    pub(super) fn add(&mut self, session: &KnownSession) {
        let named = self.hello.as_ref().map(|it| session.key.session_id(&it.encrypted_session));
        if named.is_none() || named != session.id {
            return;
        }
        let place = self.known.iter().position(|known| known == session);
        if place.is_none() {
            if self.known.len() >= MAX_KNOWN {
                return;
            }
            self.known = self.known.iter().chain([session]).cloned().collect();
        }
        self.chosen = Some(place.unwrap_or(self.known.len() - 1));
    }

    /// The key, once it is known.
    pub(super) fn key(&self) -> Option<&SessionKey> {
        self.chosen.and_then(|place| self.known.get(place)).map(|session| &session.key)
    }

    /// The keys that opened datagrams, with their session IDs if known.
    pub(super) fn opened(&self) -> impl Iterator<Item = KnownSession> {
        self.opened.iter().filter_map(|(place, named)| {
            let KnownSession { id, key } = self.known.get(*place)?;
            Some(KnownSession { id: id.or(*named), key: key.clone() })
        })
    }

    /// Records that a key opened a datagram.
    fn note(&mut self, place: usize) {
        if self.opened.iter().any(|(other, _)| *other == place) {
            return;
        }
        let key = self.known.get(place).map(|session| &session.key);
        let named = self.hello.as_ref().zip(key);
        let named = named.map(|(hello, key)| key.session_id(&hello.encrypted_session));
        self.opened.push((place, named));
    }

    /// The session ID given with the chosen key and the one in the hello, if they differ. Returned
    /// once. Either the hello is damaged, or the ID is wrong.
    pub(super) fn contradiction(&mut self) -> Option<(u32, u32)> {
        self.contradiction.take()
    }

    /// Decrypts a datagram with the chosen key, or tries all keys if none has been chosen. Keys
    /// given for a session other than the one in the hello are tried last.
    pub(super) fn open(&mut self, iv: &[u8; 16], cipher: &[u8]) -> Result<Vec<u8>, Refused> {
        if let Some((place, key)) = self.chosen.zip(self.key()) {
            let plain = key.open(iv, cipher).map_err(|why| match why {
                // The key belongs to this session, so the datagram is damaged.
                Unopened::OtherKey => {
                    let wanted = "a datagram that the session's key decrypts";
                    Refused::Damaged(Error::malformed(wanted, "a damaged one"))
                }
                other => Refused::Damaged(other.into()),
            })?;
            self.note(place);
            return Ok(plain);
        }
        let mut of_another = None;
        let mut damaged = None;
        for (place, session) in self.known.iter().take(MAX_TRIED).enumerate() {
            let named = self.hello.as_ref().map(|it| session.key.session_id(&it.encrypted_session));
            match (session.key.open(iv, cipher), session.id.zip(named)) {
                (Ok(plain), Some(ids)) if ids.0 != ids.1 => {
                    of_another.get_or_insert((place, plain, ids));
                }
                (Ok(plain), _) => {
                    self.chosen = Some(place);
                    self.note(place);
                    return Ok(plain);
                }
                // Valid length and padding may be a coincidence. Only the CRC proves that the key
                // is right.
                (Err(Unopened::OtherKey | Unopened::Damaged), _) => {}
                (Err(why), _) => damaged = Some(why),
            }
        }
        if let Some((place, plain, ids)) = of_another {
            (self.chosen, self.contradiction) = (Some(place), Some(ids));
            self.note(place);
            return Ok(plain);
        }
        Err(match (damaged, self.known.len()) {
            (Some(why), _) => Refused::Damaged(why.into()),
            (None, 0) => Refused::NoKey(MissingKey::NotGiven),
            (None, keys) => Refused::NoKey(MissingKey::NoneFits { keys }),
        })
    }
}
