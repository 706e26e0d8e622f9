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
    chosen: Option<SessionKey>,
    /// The last hello.
    hello: Option<Hello>,
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
const MOST_TRIED: usize = 256;

impl Keyring {
    pub(super) fn new(known: Arc<[KnownSession]>) -> Self {
        Self { known, chosen: None, hello: None }
    }

    /// A hello names its session to those who have its key. Returns whether it is of another
    /// session than the one before.
    pub(super) fn on_hello(&mut self, hello: &Hello) -> bool {
        let is_other = self.hello.replace(hello.clone()).is_some_and(|before| before != *hello);
        if is_other {
            self.chosen = None;
        }
        let fits = |session: &&KnownSession| {
            session.id == Some(session.key.session_id(&hello.encrypted_session))
        };
        let named = self.known.iter().take(MOST_TRIED).find(fits);
        if let Some(session) = named {
            self.chosen = Some(session.key.clone());
        }
        is_other
    }

    /// The key, once it is known.
    pub(super) fn key(&self) -> Option<&SessionKey> {
        self.chosen.as_ref()
    }

    /// Decrypts a datagram, with the key or, as long as none has fitted, with any that may be of
    /// this session.
    pub(super) fn open(&mut self, iv: &[u8; 16], cipher: &[u8]) -> Result<Vec<u8>, Refused> {
        if let Some(key) = &self.chosen {
            return key.open(iv, cipher).map_err(|why| match why {
                // It is the key of this session, so the datagram is wrong.
                Unopened::OtherKey => {
                    let wanted = "a datagram that the key of the session opens";
                    Refused::Damaged(Error::malformed(wanted, "a damaged one"))
                }
                other => Refused::Damaged(other.into()),
            });
        }
        let mut of_another = None;
        let mut damaged = None;
        for session in self.known.iter().take(MOST_TRIED) {
            let named = self.hello.as_ref().map(|it| session.key.session_id(&it.encrypted_session));
            match (session.key.open(iv, cipher), session.id.zip(named)) {
                (Ok(_), Some((id, named))) if id != named => of_another = Some((id, named)),
                (Ok(plain), _) => {
                    self.chosen = Some(session.key.clone());
                    return Ok(plain);
                }
                (Err(Unopened::OtherKey), _) => {}
                (Err(why), _) => damaged = Some(why),
            }
        }
        Err(match (of_another, damaged, self.known.len()) {
            (Some((id, named)), ..) => Refused::NoKey(MissingKey::OtherSession { id, named }),
            (None, Some(why), _) => Refused::Damaged(why.into()),
            (None, None, 0) => Refused::NoKey(MissingKey::NotGiven),
            (None, None, keys) => Refused::NoKey(MissingKey::NoneFits { keys }),
        })
    }
}
