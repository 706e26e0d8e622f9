//! Sessions, and the outcomes of their requests.

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::ConnectionId;
use super::steps::VaultState;

/// Why a request has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was refused.
    Refused(NetError),
    /// The contents of these nodes must be loaded, and the request run again.
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
    /// The Age node of the age it is in, or 0.
    pub(crate) age: u32,
    /// The AgeInfo nodes of ages that it created recently and may become an owner of.
    pub(crate) made: Vec<u32>,
}

impl Session {
    pub(crate) fn is_admin(&self) -> bool {
        self.flags.0 & AccountFlags::Admin.0 != 0
    }

    /// The roots of the trees about which the session gets notices.
    pub(super) fn roots(&self) -> impl Iterator<Item = u32> {
        [self.player, self.age].into_iter().filter(|root| *root != 0)
    }
}

impl VaultState {
    /// The session of a connection. Fails with [`NetError::Disconnected`].
    pub(crate) fn session(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        self.sessions().get(&connection).ok_or(NetError::Disconnected)
    }

    /// The session of a connection that has logged in. Fails with
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn logged_in(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.session(connection)?;
        if session.account.is_zero() { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    /// The session of a connection that has chosen a player. Fails with
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn playing(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.logged_in(connection)?;
        if session.player == 0 { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    /// Ends a session. Fails with the contents that must be loaded first.
    pub(crate) fn run_ending(&mut self, connection: ConnectionId) -> Result<(), Vec<u32>> {
        match self.run(|state| state.disconnect(connection)) {
            Err(Stop::Need(ids)) => Err(ids),
            Err(Stop::Refused(_)) | Ok(()) => Ok(()),
        }
    }
}
