//! The key of a connection that is watched.

use std::sync::Arc;

use worldwire_core::Error;

use super::event::MissingKey;
use crate::crypt::{KnownSession, SessionKey, Unopened};
use crate::frame::Hello;

/// The keys that are known, and the one that fits.
#[derive(Debug)]
pub(super) struct Keyring {
    known: Arc<[KnownSession]>,
    /// Its place among those that are known.
    chosen: Option<usize>,
    /// The places of those that opened something, and the sessions that were named then.
    opened: Vec<(usize, Option<u32>)>,
    /// The last hello.
    hello: Option<Hello>,
    /// The session of the chosen key, and the one that the hello names instead.
    contradiction: Option<(u32, u32)>,
}

/// Why a datagram was not decrypted.
#[derive(Debug)]
pub(super) enum Refused {
    /// There is no key for it.
    NoKey(MissingKey),
    /// It is damaged.
    Damaged(Error),
}

/// How many keys are tried on a datagram.
const MAX_TRIED: usize = 256;

impl Keyring {
    pub(super) fn new(known: Arc<[KnownSession]>) -> Self {
        Self { known, chosen: None, opened: Vec::new(), hello: None, contradiction: None }
    }

    /// A hello names its session to those who have its key. Returns whether it is of another
    /// session than the one before.
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

    /// The key, once it is known.
    pub(super) fn key(&self) -> Option<&SessionKey> {
        self.chosen.and_then(|place| self.known.get(place)).map(|session| &session.key)
    }

    /// What opened datagrams, with the ids of their sessions as far as they are known.
    pub(super) fn opened(&self) -> impl Iterator<Item = KnownSession> {
        self.opened.iter().filter_map(|(place, named)| {
            let KnownSession { id, key } = self.known.get(*place)?;
            Some(KnownSession { id: id.or(*named), key: key.clone() })
        })
    }

    /// A key opened a datagram.
    fn note(&mut self, place: usize) {
        if self.opened.iter().any(|(other, _)| *other == place) {
            return;
        }
        let key = self.known.get(place).map(|session| &session.key);
        let named = self.hello.as_ref().zip(key);
        let named = named.map(|(hello, key)| key.session_id(&hello.encrypted_session));
        self.opened.push((place, named));
    }

    /// The id that the chosen key was given for and the one that the hello names, where they differ.
    /// Told once: the hello is damaged, or the id is wrong.
    pub(super) fn contradiction(&mut self) -> Option<(u32, u32)> {
        self.contradiction.take()
    }

    /// Decrypts a datagram, with the key or, as long as none has fitted, with any. One that was
    /// given for another session than the hello names is the last choice.
    pub(super) fn open(&mut self, iv: &[u8; 16], cipher: &[u8]) -> Result<Vec<u8>, Refused> {
        if let Some((place, key)) = self.chosen.zip(self.key()) {
            let plain = key.open(iv, cipher).map_err(|why| match why {
                // It is the key of this session, so the datagram is wrong.
                Unopened::OtherKey => {
                    let wanted = "a datagram that the key of the session opens";
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
                // A length and padding that fit may be chance: only a CRC proves a key.
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
