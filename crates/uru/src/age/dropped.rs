//! Why messages are dropped, with counters.

use worldwire_core::Error;

use crate::net_message::class_info;
use crate::safety::{Reason, Refusal};

/// Why a member's message has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// It cannot be decoded. Members that send too many of these in a minute are disconnected.
    #[error("{0}")]
    Malformed(Error),
    /// It must not be forwarded.
    #[error("{0}")]
    Unsafe(Refusal),
    /// Only servers send this class.
    #[error("only servers send {}", named(*.0))]
    ServerOnly(u16),
    /// Its state follows a descriptor that is unknown here or older than that of the stored state.
    /// Clients that lack the descriptor crash, so it is not forwarded.
    #[error("{0}")]
    Descriptor(Error),
    /// It loads or unloads an object that is not a clone.
    #[error("the object is not a clone: it has no clone ID")]
    NotAClone,
    /// It loads or unloads another member's clone, or claims to come from another player; or it is
    /// a state of another player's avatar.
    #[error("the clone does not belong to the sender")]
    NotOwner,
    /// The net message and the Plasma message inside it contradict each other.
    #[error("message and payload contradict each other: {0}")]
    Contradiction(&'static str),
    /// It would exceed a limit.
    #[error("too many {what}; the limit is {limit}")]
    Limit {
        /// What the limit applies to.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Its sender is not in the age or is being disconnected.
    #[error("the sender is not a member of the age")]
    NotAMember,
    /// No server handles this class.
    #[error("servers do not handle {}", named(*.0))]
    Unhandled(u16),
}

/// The kinds of [`DropReason`], for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropKind {
    /// [`DropReason::Malformed`].
    Malformed,
    /// [`DropReason::Unsafe`].
    Unsafe,
    /// [`DropReason::Unsafe`], for text that would crash clients.
    Text,
    /// [`DropReason::Unsafe`], for a payload in the wrong net message.
    Wrapper,
    /// [`DropReason::ServerOnly`].
    ServerOnly,
    /// [`DropReason::Descriptor`].
    Descriptor,
    /// [`DropReason::NotAClone`].
    NotAClone,
    /// [`DropReason::NotOwner`].
    NotOwner,
    /// [`DropReason::Contradiction`].
    Contradiction,
    /// [`DropReason::Unsafe`], for an object that exists on one client only.
    LocalObject,
    /// [`DropReason::Limit`].
    Limit,
    /// [`DropReason::NotAMember`].
    NotAMember,
    /// [`DropReason::Unhandled`].
    Unhandled,
}

impl DropKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::Unsafe,
        Self::Text,
        Self::Wrapper,
        Self::ServerOnly,
        Self::Descriptor,
        Self::NotAClone,
        Self::NotOwner,
        Self::Contradiction,
        Self::LocalObject,
        Self::Limit,
        Self::NotAMember,
        Self::Unhandled,
    ];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unsafe => "unsafe",
            Self::Text => "text",
            Self::Wrapper => "wrapper",
            Self::ServerOnly => "from_server",
            Self::Descriptor => "descriptor",
            Self::NotAClone => "no_clone",
            Self::NotOwner => "not_theirs",
            Self::Contradiction => "contradiction",
            Self::LocalObject => "local_object",
            Self::Limit => "limit",
            Self::NotAMember => "no_member",
            Self::Unhandled => "unhandled",
        }
    }
}

impl DropReason {
    /// The kind, for counters.
    #[must_use]
    pub fn kind(&self) -> DropKind {
        match self {
            Self::Malformed(_) => DropKind::Malformed,
            Self::Unsafe(refusal) => match refusal.reason {
                Reason::Text => DropKind::Text,
                Reason::Wrapper(_) => DropKind::Wrapper,
                Reason::LocalObject | Reason::NoPage(_) => DropKind::LocalObject,
                _ => DropKind::Unsafe,
            },
            Self::ServerOnly(_) => DropKind::ServerOnly,
            Self::Descriptor(_) => DropKind::Descriptor,
            Self::NotAClone => DropKind::NotAClone,
            Self::NotOwner => DropKind::NotOwner,
            Self::Contradiction(_) => DropKind::Contradiction,
            Self::Limit { .. } => DropKind::Limit,
            Self::NotAMember => DropKind::NotAMember,
            Self::Unhandled(_) => DropKind::Unhandled,
        }
    }
}

impl From<Refusal> for DropReason {
    fn from(refusal: Refusal) -> Self {
        match refusal.reason {
            Reason::Malformed => Self::Malformed(refusal.error().clone()),
            _ => Self::Unsafe(refusal),
        }
    }
}

/// A class with its name, if it has one.
fn named(class: u16) -> String {
    match class_info(class) {
        Some(info) => format!("{} (0x{class:04x})", info.name),
        None => format!("class 0x{class:04x}"),
    }
}

/// Counters of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeCounts {
    /// Messages received from members.
    pub received: u64,
    /// Received messages that were forwarded.
    pub forwarded: u64,
    /// Messages delivered to members, including those the server created.
    pub delivered: u64,
    /// Messages for the game manager.
    pub game_manager: u64,
    dropped: [u64; DropKind::ALL.len()],
}

impl AgeCounts {
    /// The number of messages dropped for this reason.
    #[must_use]
    pub fn dropped(&self, kind: DropKind) -> u64 {
        self.dropped.get(kind as usize).copied().unwrap_or(0)
    }

    pub(super) fn drop_one(&mut self, kind: DropKind) {
        if let Some(count) = self.dropped.get_mut(kind as usize) {
            *count += 1;
        }
    }
}
