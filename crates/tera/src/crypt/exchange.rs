//! Derives the keys of both directions from the four that are exchanged.

use core::fmt;

use super::pike::{KEY_BYTES, Pike};
use crate::frame::{CHECK_VERSION, HEADER_BYTES, Header};

/// A key as sent on the wire.
pub type Key = [u8; KEY_BYTES];

/// The distance by which keys are rotated, which changed with patch 45.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Variant {
    /// Before patch 45.
    Before45,
    /// Patch 45 and later.
    #[default]
    From45,
}

impl Variant {
    /// Both variants, the current one first.
    pub const ALL: [Self; 2] = [Self::From45, Self::Before45];

    const fn turns(self) -> (usize, usize, usize) {
        match self {
            Self::Before45 => (31, 17, 79),
            Self::From45 => (67, 29, 41),
        }
    }
}

/// The four keys of a connection, two from each side, all sent in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The client's keys, in the order sent.
    pub client: [Key; 2],
    /// The server's keys, in the order sent.
    pub server: [Key; 2],
}

/// The keys received so far. Not shown by `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Exchange {
    /// The keys by sender, in the order sent.
    pub(crate) of: [Vec<Key>; 2],
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange(..)")
    }
}

impl Exchange {
    /// All four keys, once they have arrived.
    pub(crate) fn whole(&self) -> Option<Keys> {
        let [client, server] = self.of.each_ref().map(|keys| keys.first_chunk().copied());
        Some(Keys { client: client?, server: server? })
    }
}

/// The ciphers of both directions.
#[derive(Clone, Debug)]
pub struct SessionCiphers {
    /// From client to server, starting at byte 128: the bytes before that encrypt the other key.
    pub client: Pike,
    /// From server to client.
    pub server: Pike,
}

impl SessionCiphers {
    /// Both ciphers, at the first byte after the exchange.
    #[must_use]
    pub fn new(keys: &Keys, variant: Variant) -> Self {
        Self::of_client(Pike::new(&client_key(keys, variant)), keys, variant)
    }

    /// Both ciphers, given the client's at its first byte.
    fn of_client(mut client: Pike, keys: &Keys, variant: Variant) -> Self {
        let mut server_key = server_key(keys, variant);
        client.apply(&mut server_key);
        Self { client, server: Pike::new(&server_key) }
    }

    /// The ciphers that decrypt these bytes to the start of the client's first message, whose
    /// opcode never changed. `None` if neither variant does, so the keys are wrong.
    #[must_use]
    pub fn of_first_message(keys: &Keys, head: [u8; HEADER_BYTES]) -> Option<Self> {
        let (client, variant, fits) = Self::first(keys, head);
        fits.then(|| Self::of_client(client, keys, variant))
    }

    /// Like [`of_first_message`](Self::of_first_message), with the current variant as fallback.
    pub(crate) fn guess(keys: &Keys, head: [u8; HEADER_BYTES]) -> Self {
        let (client, variant, _) = Self::first(keys, head);
        Self::of_client(client, keys, variant)
    }

    /// The client's cipher, and whether it fits. Expanding keys is expensive, so the server's is
    /// only expanded for the variant chosen.
    fn first(keys: &Keys, head: [u8; HEADER_BYTES]) -> (Pike, Variant, bool) {
        let client = |variant| Pike::new(&client_key(keys, variant));
        let fits = |client: &Pike| {
            let (mut client, mut head) = (client.clone(), head);
            client.skip(KEY_BYTES as u64);
            client.apply(&mut head);
            let header = Header::peek(&head).ok().flatten();
            header.is_some_and(|header| header.opcode == CHECK_VERSION)
        };
        let present = client(Variant::From45);
        if !fits(&present) {
            let earlier = client(Variant::Before45);
            if fits(&earlier) {
                return (earlier, Variant::Before45, true);
            }
            return (present, Variant::From45, false);
        }
        (present, Variant::From45, true)
    }
}

/// The key for messages from the client.
#[must_use]
pub(crate) fn client_key(keys: &Keys, variant: Variant) -> Key {
    let (first, second, _) = variant.turns();
    let mut key = keys.server[0];
    key.rotate_right(first);
    let mut last = keys.client[1];
    last.rotate_left(second);
    for (place, (one, two)) in key.iter_mut().zip(keys.client[0].iter().zip(last)) {
        *place ^= one ^ two;
    }
    key
}

/// The key for messages from the server, before the client's keystream is applied to it.
fn server_key(keys: &Keys, variant: Variant) -> Key {
    let mut key = keys.server[1];
    key.rotate_right(variant.turns().2);
    key
}
