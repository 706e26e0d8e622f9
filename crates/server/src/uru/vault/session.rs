//! Sessions: their logins, the outcomes of their requests, and notices to them.

use std::fmt;
use std::net::IpAddr;

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::ask::wire_struct;
use super::resume::Ticket;

/// Why a request has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The request was refused.
    Refused(NetError),
    /// The contents of these nodes must be loaded, and the request must be run again.
    Need(Vec<u32>),
}

impl From<NetError> for Stop {
    fn from(error: NetError) -> Self {
        Self::Refused(error)
    }
}

/// The outcome of a request.
pub(crate) type Outcome<T> = Result<T, Stop>;

/// The state of a connection's session.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Session {
    /// The account; zero before the login.
    pub(crate) account: Uuid,
    pub(crate) flags: AccountFlags,
    /// The player, or 0.
    pub(crate) player: u32,
    /// The Age node of the age that it is in, or 0.
    pub(crate) age: u32,
    /// The AgeInfo nodes of ages that it created recently and may become an owner of.
    pub(crate) made: Vec<u32>,
    /// The age that it last left, and the time.
    pub(crate) left: (u32, u32),
    /// The ticket with which the client can resume it through another process.
    pub(crate) ticket: Option<Ticket>,
}

wire_struct! {
    Session {
        account: Uuid,
        flags: AccountFlags,
        player: u32,
        age: u32,
        made: Vec<u32>,
        left: (u32, u32),
        ticket: Option<Ticket>,
    }
}

impl Session {
    pub(crate) fn is_admin(&self) -> bool {
        self.flags.0 & AccountFlags::Admin.0 != 0
    }

    /// The same session in another age.
    pub(super) fn moved_to(self, age: u32, now: u32) -> Self {
        let stays = self.age == age || self.age == 0;
        let left = if stays { self.left } else { (self.age, now) };
        Self { age, left, ..self }
    }

    /// The age that it is in, and the one that it left a short time ago.
    pub(super) fn places(&self, now: u32) -> impl Iterator<Item = u32> {
        let (left, when) = self.left;
        let recent = now.saturating_sub(when) < SHARE_SECONDS;
        [self.age, if recent { left } else { 0 }].into_iter().filter(|age| *age != 0)
    }

    /// Whether the account may log in while logins are restricted.
    pub(crate) fn is_staff(&self) -> bool {
        is_staff(self.flags)
    }

    /// The roots of the trees about which the session gets notices.
    pub(super) fn roots(&self) -> impl Iterator<Item = u32> {
        [self.player, self.age].into_iter().filter(|root| *root != 0)
    }
}

/// How long players can still enter each other's ages after they were in the same age, in seconds.
const SHARE_SECONDS: u32 = 300;

/// Whether an account with these rights may log in while logins are restricted.
pub(crate) fn is_staff(flags: AccountFlags) -> bool {
    let staff = AccountFlags::Admin.0 | AccountFlags::Developer.0 | AccountFlags::BetaTester.0;
    flags.0 & staff != 0
}

/// The number of a session, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

impl ConnectionId {
    /// The number that stands for no session.
    pub(crate) const NONE: Self = Self(0);
}

/// A message to a session about a change that it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `VaultNodeChanged`: a node was saved.
    NodeChanged {
        /// The node.
        node_id: u32,
        /// The revision of the request, or a random one for changes by the server.
        revision_id: Uuid,
    },
    /// `VaultNodeAdded`: a reference was added.
    NodeAdded {
        /// The upper node.
        parent_id: u32,
        /// The lower node.
        child_id: u32,
        /// The owner of the reference.
        owner_id: u32,
    },
    /// `VaultNodeRemoved`: a reference was removed.
    NodeRemoved {
        /// The upper node.
        parent_id: u32,
        /// The lower node.
        child_id: u32,
    },
    /// `KickedOff`: the session was ended. Close the connection after sending this.
    KickedOff {
        /// The reason.
        reason: NetError,
    },
}

impl Notice {
    /// Whether this notice makes an earlier one unnecessary: whether both are about the same node,
    /// or about the same reference.
    pub(in crate::uru) fn supersedes(&self, earlier: &Self) -> bool {
        let subject = |notice: &Self| match *notice {
            Self::NodeChanged { node_id, .. } => Some((node_id, None)),
            Self::NodeAdded { parent_id, child_id, .. }
            | Self::NodeRemoved { parent_id, child_id } => Some((parent_id, Some(child_id))),
            Self::KickedOff { .. } => None,
        };
        subject(self).is_some_and(|own| subject(earlier) == Some(own))
    }
}

/// A login: the fields of `AcctLoginRequest`, the challenge of the `ClientRegisterReply`
/// before it, and the client's address.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The account.
    pub name: String,
    /// The client's challenge.
    pub client_challenge: u32,
    /// The server's challenge.
    pub server_challenge: u32,
    /// The proof.
    pub proof: [u8; 20],
    /// The client's address. If there is none, failures are counted by name only.
    pub address: Option<IpAddr>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("name", &self.name).finish_non_exhaustive()
    }
}
