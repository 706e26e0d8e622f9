//! The way to one side of a connection.

use super::{Bounds, Outgoing};

/// A cipher that encrypts, or decrypts, a stream in place, piece by piece.
pub trait StreamCipher {
    /// Encrypts the next bytes of the stream.
    fn apply(&mut self, bytes: &mut [u8]);
}

impl<C: StreamCipher + ?Sized> StreamCipher for Box<C> {
    fn apply(&mut self, bytes: &mut [u8]) {
        (**self).apply(bytes);
    }
}

/// The way to one side: the queue, and the cipher in front of it once setup is complete.
#[derive(Clone, Debug)]
pub struct Lane<C> {
    /// What encrypts; nothing on a plain connection and before setup is complete.
    pub cipher: Option<C>,
    /// What waits to be sent.
    pub out: Outgoing,
}

impl<C: StreamCipher> Lane<C> {
    /// Empty and without a cipher.
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

    /// Encrypts what a relay forwards and queues it, or keeps it until there is room.
    pub fn forward(&mut self, mut bytes: Vec<u8>) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(&mut bytes);
        }
        self.out.forward(bytes);
    }

    /// Setup is complete: encrypts and queues what waited for that.
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
    fn what_waited_for_setup_is_encrypted_in_order() {
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
