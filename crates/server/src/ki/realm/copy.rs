//! A copy of the accounts and characters that another process serves; see
//! [`Follower`](crate::store::follow::Follower).

use std::fmt;

use super::{SETTINGS, State};
use crate::store::accounts::{RealmError, stored};
use crate::store::committed::Indexed as _;
use crate::store::follow::Copied;
use crate::store::seal::ServerKey;
use crate::store::{Changes, Store, StoreError};

/// The copy.
pub(in crate::ki) struct RealmCopy {
    state: State,
    key: ServerKey,
    /// The number of connections that the server admits.
    slots: usize,
}

impl fmt::Debug for RealmCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealmCopy")
    }
}

impl RealmCopy {
    /// An empty copy.
    pub(in crate::ki) fn new(key: ServerKey, slots: usize) -> Self {
        Self { state: State::new(slots), key, slots }
    }

    /// The state and the key, once the state is complete.
    pub(super) fn into_parts(self) -> Result<(State, ServerKey), RealmError> {
        let Self { state, key, .. } = self;
        // When the copy was made, there may have been no passwords yet.
        match state.accounts.fit(&key) {
            true => Ok((state, key)),
            false => Err(RealmError::WrongKey),
        }
    }
}

impl Copied for RealmCopy {
    type Error = RealmError;

    async fn load(&mut self, store: &dyn Store) -> Result<(), RealmError> {
        self.state.apply(&stored::<u64>(store, SETTINGS).await?);
        match self.state.accounts.fit(&self.key) {
            true => Ok(()),
            false => Err(RealmError::WrongKey),
        }
    }

    fn follow(&mut self, changes: &Changes) -> Result<(), RealmError> {
        self.state.apply(changes);
        Ok(())
    }

    fn forget(&mut self) {
        self.state = State::new(self.slots);
    }

    fn outage(error: RealmError) -> Result<StoreError, RealmError> {
        match error {
            RealmError::Store(error) => Ok(error),
            error => Err(error),
        }
    }
}
