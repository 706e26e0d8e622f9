//! The keys of encrypted connections, with which observers and relays decrypt them.

use core::fmt;

/// The key and first nonce of an encrypted connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StreamKey {
    /// The AES-128 key.
    pub key: [u8; 16],
    /// The first nonce.
    pub nonce: [u8; 16],
    /// Without the feature `keys` there is no cipher, so no key can exist.
    #[cfg(not(feature = "keys"))]
    pub(super) never: core::convert::Infallible,
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamKey(..)")
    }
}

/// The user's keys for encrypted connections.
#[derive(Clone, Debug, Default)]
pub struct ObserverKeys {
    /// Each key with the ID of its session; `None` matches every session.
    pub streams: Vec<(Option<u16>, StreamKey)>,
}

impl ObserverKeys {
    /// The keys that may belong to a session. An unknown session may use any of them.
    pub(crate) fn for_session(&self, session: Option<u16>) -> impl Iterator<Item = &StreamKey> {
        let fits = move |id: &Option<u16>| id.is_none() || session.is_none() || *id == session;
        self.streams.iter().filter_map(move |(id, key)| fits(id).then_some(key))
    }
}
