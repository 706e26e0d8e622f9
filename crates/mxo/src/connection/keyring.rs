//! The key of a connection that is watched.

use std::sync::Arc;

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
        if let Some(session) = self.known.iter().take(MOST_TRIED).find(fits) {
            self.chosen = Some(session.key.clone());
        }
        is_other
    }

    /// The key, once it is known.
    pub(super) fn key(&self) -> Option<&SessionKey> {
        self.chosen.as_ref()
    }

    /// Decrypts a datagram, with the key or, as long as none has fitted, with any.
    pub(super) fn open(&mut self, iv: &[u8; 16], cipher: &[u8]) -> Result<Vec<u8>, Unopened> {
        if let Some(key) = &self.chosen {
            return key.open(iv, cipher);
        }
        let mut why = Unopened::OtherKey;
        for session in self.known.iter().take(MOST_TRIED) {
            match session.key.open(iv, cipher) {
                Ok(plain) => {
                    self.chosen = Some(session.key.clone());
                    return Ok(plain);
                }
                Err(Unopened::OtherKey) => {}
                Err(other) => why = other,
            }
        }
        Err(why)
    }
}
