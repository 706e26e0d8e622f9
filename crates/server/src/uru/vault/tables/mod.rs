//! Accounts, players and scores in memory. These types know nothing of requests or sessions.

pub(crate) mod accounts;
pub(crate) mod players;
pub(crate) mod scores;
