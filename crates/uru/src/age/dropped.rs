//! Why messages are dropped, and how often.

use core::fmt;

use worldwire_core::Error;

use crate::net_message::class_info;
use crate::safety::{Reason, Refusal};

/// Why a message of a member has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// It cannot be read. A member that sends too many of them in a minute is closed.
    Malformed(Error),
    /// It must not be forwarded.
    Unsafe(Refusal),
    /// It is of a class that only servers send.
    ServerOnly(u16),
    /// Its state follows a descriptor that is not known here, or an older version than the state that
    /// is kept. A client that does not have the descriptor ends itself, so it goes nowhere.
    Descriptor(Error),
    /// It loads or unloads an object that is no clone.
    NotAClone,
    /// It loads or unloads a clone of another member, or in the name of another one; or it is a state
    /// of another one's avatar.
    NotOwner,
    /// The net message and the Plasma message in it contradict each other.
    Contradiction(&'static str),
    /// There is no room for what it would add.
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// Its sender is not in the age, or is being closed.
    NotAMember,
    /// It is of a class that no server handles.
    Unhandled(u16),
}

/// The kinds of [`DropReason`], for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropKind {
    /// [`DropReason::Malformed`].
    Malformed,
    /// [`DropReason::Unsafe`].
    Unsafe,
    /// [`DropReason::Unsafe`], for a text that would end clients.
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

    /// The name, for metrics.
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
    /// The kind, for counting.
    #[must_use]
    pub fn kind(&self) -> DropKind {
        match self {
            Self::Malformed(_) => DropKind::Malformed,
            Self::Unsafe(refusal) => match refusal.reason {
                Reason::Text => DropKind::Text,
                Reason::Wrapper(_) => DropKind::Wrapper,
                Reason::LocalObject => DropKind::LocalObject,
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

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |class: u16| match class_info(class) {
            Some(info) => format!("{} (0x{class:04x})", info.name),
            None => format!("class 0x{class:04x}"),
        };
        match self {
            Self::Malformed(error) | Self::Descriptor(error) => error.fmt(f),
            Self::Unsafe(refusal) => refusal.fmt(f),
            Self::ServerOnly(class) => {
                write!(f, "wanted a message that clients send, found {}", named(*class))
            }
            Self::NotAClone => f.write_str("wanted a clone, found an object without a clone id"),
            Self::NotOwner => f.write_str("wanted a clone of the sender, found one of another"),
            Self::Contradiction(what) => {
                write!(f, "wanted the same {what} in message and payload, found another one")
            }
            Self::Limit { what, limit } => {
                write!(f, "wanted at most {limit} {what}, found one more")
            }
            Self::NotAMember => f.write_str("wanted a member of the age, found another sender"),
            Self::Unhandled(class) => {
                write!(f, "wanted a message that servers handle, found {}", named(*class))
            }
        }
    }
}

impl core::error::Error for DropReason {}

/// What an instance did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeCounts {
    /// Messages of members.
    pub received: u64,
    /// Those of them that went to others.
    pub forwarded: u64,
    /// Messages to members, whoever made them.
    pub delivered: u64,
    /// Messages for the game manager, which are skipped.
    pub game_manager: u64,
    dropped: [u64; DropKind::ALL.len()],
}

impl AgeCounts {
    /// How many messages were dropped for a reason.
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
