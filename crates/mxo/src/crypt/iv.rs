//! Initialisation vectors.

use super::key::SessionKey;
use super::twofish::BLOCK_BYTES;

/// Generates a connection's initialisation vectors from 16 random bytes: a counter, encrypted with
/// those bytes as the key. They are unpredictable and never repeat.
///
/// The seed must come from the operating system's random generator and must be used for only one
/// connection.
#[derive(Clone, Debug)]
pub struct IvSource {
    cipher: SessionKey,
    next: u128,
}

impl IvSource {
    /// Creates a source from a seed.
    #[must_use]
    pub fn new(seed: &[u8; BLOCK_BYTES]) -> Self {
        Self { cipher: SessionKey::new(seed), next: 0 }
    }

    /// The next vector.
    pub fn draw(&mut self) -> [u8; BLOCK_BYTES] {
        let iv = self.cipher.seal_block(&self.next.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        iv
    }
}
