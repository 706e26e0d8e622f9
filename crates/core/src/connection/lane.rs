//! The sending direction to one side of a connection.

use super::{Bounds, Outgoing};

/// A cipher that encrypts or decrypts a stream in place, incrementally.
pub trait StreamCipher {
    /// Encrypts the next bytes of the stream.
    fn apply(&mut self, bytes: &mut [u8]);
}

impl<C: StreamCipher + ?Sized> StreamCipher for Box<C> {
    fn apply(&mut self, bytes: &mut [u8]) {
        (**self).apply(bytes);
    }
}

/// The queue to one side and, once setup is complete, its cipher.
#[derive(Clone, Debug)]
pub struct Lane<C> {
    /// The cipher; `None` on a plain connection and before setup is complete.
    pub cipher: Option<C>,
    /// The queue of bytes to send.
    pub out: Outgoing,
}

impl<C: StreamCipher> Lane<C> {
    /// Creates an empty lane without a cipher.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { cipher: None, out: Outgoing::new(bounds) }
    }

    /// Encrypts a message and queues it.
    pub fn push(&mut self, mut message: Vec<u8>) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(&mut message);
        }
        self.out.push(message);
    }

    /// Encrypts bytes that a relay forwards and queues them, or keeps them until there is room.
    pub fn forward(&mut self, mut bytes: Vec<u8>) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(&mut bytes);
        }
        self.out.forward(bytes);
    }

    /// Encrypts and queues the deferred messages, once setup is complete.
    pub fn release_deferred(&mut self) {
        while let Some(message) = self.out.release_deferred() {
            self.push(message);
        }
    }
}

impl<C> AsMut<Outgoing> for Lane<C> {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl<C> AsRef<Outgoing> for Lane<C> {
    fn as_ref(&self) -> &Outgoing {
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u8);

    impl StreamCipher for Counter {
        fn apply(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                *byte ^= self.0;
                self.0 += 1;
            }
        }
    }

    #[test]
    fn deferred_messages_are_encrypted_in_order() {
        let mut lane = Lane::new(Bounds::default());
        lane.push(vec![7]);
        lane.out.defer(vec![0, 0]);
        lane.out.defer(vec![0]);
        lane.cipher = Some(Counter(1));
        lane.release_deferred();
        lane.push(vec![0]);
        let sent: Vec<_> = std::iter::from_fn(|| lane.out.pop()).collect();
        assert_eq!(sent, [vec![7], vec![1, 2], vec![3], vec![4]]);
    }
}
