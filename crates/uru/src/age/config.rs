//! The configuration and bounds of an instance.

use core::time::Duration;

use worldwire_core::Limits;

use crate::safety::{REFUSED_CLASSES, Rules};

/// What happens if more players want to join than the age file allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// Further players are refused.
    Refuse,
    /// Further players are let in, and the server is notified
    /// ([`Event::OverCapacity`](super::Event::OverCapacity)).
    #[default]
    Warn,
}

/// Configuration for behaviour that differs between shards.
#[derive(Clone, Debug)]
pub struct Config {
    /// What happens when the age is full. Default: the server is notified.
    pub capacity: Capacity,
    /// The console commands that players may run on other clients ([`Rules::console_commands`]), as
    /// sent by objects in a shard's ages in a `plControlEventMsg`. There is no built-in list
    /// because no source documents one. Refused commands are named in
    /// [`DropReason::Unsafe`](super::DropReason::Unsafe), so operators can see what to add.
    /// Default: none.
    pub console_commands: Vec<String>,
    /// The classes of Plasma messages that players must not send. Default: [`REFUSED_CLASSES`].
    pub refused: Vec<u16>,
    /// Whether players may only send classes with a known layout ([`Rules::strict`]). Default: no.
    pub strict: bool,
    /// Whether messages with the flag `UseRelevanceRegions` go only to members who care about a
    /// region that the sender is in. Default: no, they go to everyone.
    pub relevance: bool,
    /// How long a player's messages go to everyone after the player joins, regardless of regions,
    /// so that others learn where the avatar is. Default: 10 s.
    pub relevance_after: Duration,
    /// Whether directed messages reach players in other ages even without the flag
    /// `InterAgeRouting`, as on old servers. Default: no.
    pub directed_anywhere: bool,
    /// How long a change may wait before it must be stored. Default: 1 s.
    pub store_after: Duration,
    /// How long a member may be silent and still become the owner. Default: 120 s.
    pub silence: Duration,
    /// Bounds on the data that members can make the instance keep.
    pub bounds: AgeBounds,
    /// The limits for decoders. Net messages never exceed 1 MiB.
    pub limits: Limits,
}

impl Config {
    /// The rules for messages from a player or an administrator.
    #[must_use]
    pub fn rules(&self, is_admin: bool) -> Rules<'_> {
        let Self { refused, console_commands, strict, .. } = self;
        Rules { refused, console_commands, strict: *strict, is_admin }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            capacity: Capacity::default(),
            console_commands: Vec::new(),
            refused: REFUSED_CLASSES.to_vec(),
            strict: false,
            relevance: false,
            relevance_after: Duration::from_secs(10),
            directed_anywhere: false,
            store_after: Duration::from_secs(1),
            silence: Duration::from_secs(120),
            bounds: AgeBounds::default(),
            limits: Limits::DEFAULT,
        }
    }
}

/// Bounds on the data that an instance keeps. Anything that would exceed a bound is dropped and
/// reported ([`DropReason::Limit`](super::DropReason::Limit)); existing data is never discarded.
///
/// A joining member is sent all clones and states at once, so a [`SendQueue`](super::SendQueue)
/// needs room for 8 MiB; otherwise an age filled up to the default bounds cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgeBounds {
    /// Malformed messages that a member may send within a minute; the last of them closes its
    /// connection. Default: 16.
    pub malformed: usize,
    /// Requests for the age's state that a member may send within a minute. Default: 30.
    pub state_requests: usize,
    /// Loaded clones. Default: 1,024.
    pub clones: usize,
    /// Bytes of the messages that loaded the clones. Default: 1 MiB.
    pub clone_bytes: usize,
    /// Object states. Default: 8,192.
    pub states: usize,
    /// Approximate bytes of those states. Default: 4 MiB.
    pub state_bytes: usize,
    /// The divisor for one member's share: a member may use at most this fraction of the room for
    /// clones and states, so that no single client prevents others from loading their avatars. A
    /// clone counts towards the share of its creator and a state towards that of its last sender,
    /// even after they have left. Default: 4.
    pub share: usize,
    /// Locks that a member may hold. Default: 256.
    pub locks: usize,
    /// Pages that a member may have loaded. Default: 1,024.
    pub pages: usize,
}

impl AgeBounds {
    /// One member's share of a bound.
    pub(super) fn share_of(&self, bound: usize) -> usize {
        (bound / self.share.max(1)).max(1)
    }
}

impl Default for AgeBounds {
    fn default() -> Self {
        Self {
            malformed: 16,
            state_requests: 30,
            clones: 1_024,
            clone_bytes: 1 << 20,
            states: 1 << 13,
            state_bytes: 4 << 20,
            share: 4,
            locks: 256,
            pages: 1_024,
        }
    }
}
