//! A shard's vault: all persistent data, including accounts, players, ages and scores.
//!
//! [`Vault`] is the handle for services; it is cheap to clone. One task owns an in-memory index of
//! the whole vault and is the only writer of the database. Requests that arrive together form a
//! *batch* and share one transaction. Replies and notices are sent after the commit, so nothing
//! that a client has seen can be lost.
//!
//! # For services
//!
//! [`Vault::open`] opens or creates the vault in a database ([`store::open`](crate::store::open)),
//! with the rules that the operator chose ([`VaultConfig`]). [`Vault::connect`] returns a
//! [`Connection`] for a client connection's requests, and its [`Notices`] about changes. Operators
//! use the other methods of [`Vault`], through [`admin`](super::admin).
//!
//! Every method of a connection is one request. It returns the data for the reply, or the
//! [`NetError`] that is the reply's result. If the request has no reply, log the error. The future
//! may be dropped at any time; the request is then carried out completely or not at all. Dropping
//! the [`Connection`] takes its player offline.
//!
//! **Order.** Notices arrive in the order of the changes. After a method returns, first send all
//! notices from [`Notices::due`], then the reply. This preserves the order of events.
//!
//! **States.** Requests that are not allowed yet fail with [`NetError::AuthenticationFailed`].
//! Before the login, only the login is allowed. Before a player is chosen, only requests about
//! accounts and players, fetching and finding nodes, reading scores, and requesting the age
//! `StartUp` are.
//!
//! [`NetError`]: worldwire_uru::types::NetError
//! [`NetError::AuthenticationFailed`]: worldwire_uru::types::NetError::AuthenticationFailed
//!
//! # Inside
//!
//! `steps` contains the data in memory and the only code that changes it, without I/O; `graph`,
//! `interest` and `contents` are its parts; `operations`, `access`, `trees` and the modules next to
//! them implement the rules; `task` is the loop that groups requests into batches, commits them and
//! replies. `ask` defines requests in general; `requests` contains those of clients. `resume` hands
//! sessions over to other processes.

mod access;
mod accounts;
mod age_index;
pub(in crate::uru) mod age_states;
mod ages;
pub(crate) mod ask;
mod clear_states;
mod config;
mod content;
mod contents;
mod dump;
mod exchange;
mod failures;
mod follow;
mod graph;
mod handle;
mod inspect;
mod interest;
mod lookup;
mod marker_index;
pub(in crate::uru) mod markers;
#[cfg(test)]
mod model;
mod operations;
mod own_ages;
pub(crate) mod placements;
mod players;
mod prune;
mod requests;
pub(in crate::uru) mod resume;
mod scores;
mod session;
mod steps;
mod tables;
mod task;
#[cfg(test)]
pub(in crate::uru) mod testing;
mod trees;

pub use accounts::{AccountSummary, LoggedIn, PasswordSet};
pub use ages::{AgeFound, InitAge, PublicAge};
pub use clear_states::{ClearError, Cleared};
pub use config::{AgeNames, OnDuplicate, StaticAge, VaultConfig};
pub use dump::{Dump, DumpError, LineError, VaultProblem};
pub use handle::{Connection, Environment, Notices, Vault};
pub use inspect::{Finding, TreeLine};
pub use lookup::Named;
pub use operations::MAX_FOUND;
pub use own_ages::{AgeSummary, OnlineSession, RemoveError};
pub use players::{Kicked, Renamed};
pub use prune::Pruned;
pub use session::{Login, Notice};
pub use steps::{Damage, Randomness};
pub use tables::players::PlayerSummary;
pub use task::VaultError;
pub use trees::AgeNodes;

pub(crate) use accounts::is_account_name;
pub(crate) use age_states::AgeNode;
pub(crate) use content::{decode, encode as encode_node, folder};
pub(crate) use dump::{AccountLine, Password, PlayerLine, digest, fields_of, uuid_of};
pub(crate) use follow::VaultCopy;
pub(in crate::uru) use follow::{Followed, LiveSettings};
pub(crate) use markers::is_marker_node;
pub(crate) use players::{NAME_RULE, is_player_name};
pub(in crate::uru) use requests::named_player;
pub(crate) use session::ConnectionId;
