//! The stream cipher of gatekeeper, auth and game connections. For compatibility only.
//!
//! Plain RC4 with the seven bytes from the key exchange. Both directions use the same key, each
//! with its own state. No initial bytes are skipped, and the state continues across messages. The
//! first encrypted byte in a direction is the first byte of its first message after the setup
//! packets.

use std::fmt;

use zeroize::Zeroizing;

use super::exchange::SessionKey;

/// The cipher state for one direction of a connection.
///
/// Encrypting and decrypting are the same operation, so one type serves both ends:
///
/// ```
/// use worldwire_uru::crypt::{exchange::SessionKey, rc4::Rc4};
///
/// let key = SessionKey::new([1, 2, 3, 4, 5, 6, 7]);
/// let mut data = *b"ping";
/// Rc4::new(&key).apply(&mut data);
/// let mut other_end = Rc4::new(&key);
/// other_end.apply(&mut data[..1]); // cut where you like
/// other_end.apply(&mut data[1..]);
/// assert_eq!(&data, b"ping");
/// ```
///
/// The state is cleared on drop and hidden by `Debug`.
#[derive(Clone)]
pub struct Rc4 {
    /// A permutation of all bytes.
    state: Zeroizing<[u8; 256]>,
    i: u8,
    j: u8,
}

impl Rc4 {
    /// Starts the keystream of one direction.
    #[must_use]
    pub fn new(key: &SessionKey) -> Self {
        let mut state = Zeroizing::new([0; 256]);
        for (byte, value) in state.iter_mut().zip(0..=u8::MAX) {
            *byte = value;
        }
        let mut j = 0_u8;
        for (i, key) in (0..=u8::MAX).zip(key.as_bytes().iter().cycle()) {
            j = j.wrapping_add(state[usize::from(i)]).wrapping_add(*key);
            state.swap(usize::from(i), usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    /// Encrypts or decrypts the next bytes of the stream in place.
    pub fn apply(&mut self, data: &mut [u8]) {
        for byte in data {
            *byte ^= self.next();
        }
    }

    /// Skips `count` bytes of the stream, for captures that lost exactly that many.
    ///
    /// The running time is proportional to `count`; limit `count` to a plausible loss.
    pub fn skip(&mut self, count: u64) {
        for _ in 0..count {
            self.next();
        }
    }

    /// The next byte of the keystream.
    fn next(&mut self) -> u8 {
        self.i = self.i.wrapping_add(1);
        let a = self.state[usize::from(self.i)];
        self.j = self.j.wrapping_add(a);
        let b = self.state[usize::from(self.j)];
        self.state[usize::from(self.i)] = b;
        self.state[usize::from(self.j)] = a;
        self.state[usize::from(a.wrapping_add(b))]
    }
}

impl worldwire_core::connection::StreamCipher for Rc4 {
    fn apply(&mut self, bytes: &mut [u8]) {
        Self::apply(self, bytes);
    }
}

impl fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rc4(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        worldwire_core::value::parse_hex(text).unwrap()
    }

    fn cipher() -> Rc4 {
        Rc4::new(&SessionKey::new(*b"\x45\x87\x1a\xb1\x6f\xfb\xe6"))
    }

    /// The first case of the key exchange vectors: the state continues across chunks.
    #[test]
    fn known_stream() {
        let mut rc4 = cipher();
        let mut data =
            hex("42157f9c9a2607c59a8c1500ae2afb54bda87c45338414e0424620dda76fb5c40683f8a138");
        rc4.apply(&mut data);
        assert_eq!(
            data,
            hex("1a84aebce23d0f7a901b20dd6c773de0f8d721b08f5d0ca9fd501c042765c5a3936e2c6119")
        );
        let mut data = hex("255c40abfd1f3a867ba1c96ad485bdc0");
        rc4.apply(&mut data);
        assert_eq!(data, hex("d94450f461e4bb18c8d751254c04e4f4"));
        // The other direction starts over.
        let mut data = hex("545dcad505e613272c77b9708bb5a23875070f6f0d");
        cipher().apply(&mut data);
        assert_eq!(data, hex("0ccc1bf57dfd1b9826e08cad49e8648c3078529ab1"));
    }

    #[test]
    fn skipping_equals_applying_to_discarded_bytes() {
        for count in [0_usize, 1, 255, 256, 257, 1000] {
            let mut data = vec![0; count + 8];
            cipher().apply(&mut data);
            let mut skipped = [0; 8];
            let mut rc4 = cipher();
            rc4.skip(count as u64);
            rc4.apply(&mut skipped);
            assert_eq!(data[count..], skipped);
        }
    }

    #[test]
    fn debug_hides_the_state() {
        assert_eq!(format!("{:?}", cipher()), "Rc4(..)");
    }
}
