//! Accounts, players and scores in memory. These types do not depend on requests or sessions.

pub(crate) mod accounts;
pub(crate) mod players;
pub(crate) mod scores;
