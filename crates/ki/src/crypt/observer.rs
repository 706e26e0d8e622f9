//! The keys with which observers and relays decrypt connections.

use super::stream::StreamKey;

/// The user's keys for encrypted connections.
#[derive(Clone, Debug, Default)]
pub struct ObserverKeys {
    /// Each key with the ID of its session; `None` fits every session.
    pub streams: Vec<(Option<u16>, StreamKey)>,
}

impl ObserverKeys {
    /// The keys that may belong to a session. An unknown session may use any of them.
    pub(crate) fn for_session(&self, session: Option<u16>) -> impl Iterator<Item = &StreamKey> {
        let fits = move |id: &Option<u16>| id.is_none() || session.is_none() || *id == session;
        self.streams.iter().filter_map(move |(id, key)| fits(id).then_some(key))
    }
}
