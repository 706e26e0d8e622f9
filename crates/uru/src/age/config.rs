//! How an instance behaves where shards differ, and what bounds it has.

use core::time::Duration;

use worldwire_core::Limits;

use crate::safety::{REFUSED, Rules};

/// What happens when more players want to join than the age file allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// They are refused.
    Refuse,
    /// They are let in, and the server is told
    /// ([`Event::OverCapacity`](super::Event::OverCapacity)).
    #[default]
    Warn,
}

/// How an instance behaves where shards differ.
#[derive(Clone, Debug)]
pub struct Config {
    /// What happens when the age is full. Default: the server is warned.
    pub capacity: Capacity,
    /// The console commands that players may run on others' consoles
    /// ([`Rules::console_commands`]): what the objects of a shard's ages send in a
    /// `plControlEventMsg`. No list of them is built in, since no source has one. Default: none. What
    /// is refused is named in [`DropReason::Unsafe`](super::DropReason::Unsafe), so an operator can see what
    /// to add.
    pub console_commands: Vec<String>,
    /// The classes of Plasma messages that players must not send. Default
    /// [`REFUSED`].
    pub refused: Vec<u16>,
    /// Whether players may send only classes with a known layout ([`Rules::strict`]). Default: no.
    pub strict: bool,
    /// Whether messages with the flag `UseRelevanceRegions` go only to those who care about a region
    /// that the sender is in. Default: no, everybody gets them.
    pub relevance: bool,
    /// How long after joining a player's messages go to everybody, whatever the regions: others have
    /// to see where the avatar is at first. Default 10 s.
    pub relevance_after: Duration,
    /// Whether directed messages reach players in other ages without the flag `InterAgeRouting`, as
    /// old servers deliver them. Default: no.
    pub directed_anywhere: bool,
    /// How long a change may wait before it is to be stored. Default 1 s.
    pub store_after: Duration,
    /// How long a member may be silent before it is no candidate for owner. Default 120 s.
    pub silence: Duration,
    /// What a single sender may cost.
    pub bounds: AgeBounds,
    /// The bounds of the decoders. A net message never has more than 1 MiB.
    pub limits: Limits,
}

impl Config {
    /// What a player may send, or an administrator.
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
            refused: REFUSED.to_vec(),
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

/// What an instance keeps at most. What would exceed a bound is dropped and named
/// ([`DropReason::Limit`](super::DropReason::Limit)); nothing that is there already is lost.
///
/// Whoever joins gets all clones and states at once: a [`SendQueue`](super::SendQueue) needs room for 8 MiB, or
/// an age that is full by the default bounds cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgeBounds {
    /// Malformed messages of a member within a minute, of which the last one closes its connection.
    /// Default 16.
    pub malformed: usize,
    /// Requests for the state of the age that a member may send within a minute. Default 30.
    pub state_requests: usize,
    /// Clones. Default 1,024.
    pub clones: usize,
    /// Bytes of the messages that loaded the clones. Default 1 MiB.
    pub clone_bytes: usize,
    /// States of objects. Default 8,192.
    pub states: usize,
    /// Bytes of those states, roughly. Default 4 MiB.
    pub state_bytes: usize,
    /// What one member may take of the room for clones and states, and of their bytes: one part in so
    /// many. So no single client leaves others without room for their avatars. A clone counts for who
    /// made it, a state for who sent it last, also after they left. Default 4.
    pub share: usize,
    /// Locks that a member may hold. Default 256.
    pub locks: usize,
    /// Pages that a member may have paged in. Default 1,024.
    pub pages: usize,
}

impl AgeBounds {
    /// The part of a bound that one member may take.
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
