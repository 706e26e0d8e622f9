//! A shard's vault: all persistent data, with accounts, players, ages and scores.
//!
//! [`Vault`] is the handle for services, cheap to clone. One task owns an index of the whole vault
//! in memory and is the only writer of the database. Requests that arrive together form a *batch*
//! and share one transaction. Replies and notices are sent after the commit, so nothing that a
//! client has seen can be lost.
//!
//! # For services
//!
//! The public items, in the order in which a service needs them:
//!
//! * [`VaultConfig`], [`OnDuplicate`], [`AgeNames`], [`StaticAge`]: the rules that an operator
//!   chooses.
//! * [`Vault::open`]: opens or creates the vault in a database
//!   ([`store::open`](crate::store::open)). [`Vault::close`]: takes all players offline, writes all
//!   changes, and ends the vault.
//! * [`Vault::connect`]: a [`Connection`] and its [`Notices`] for each client connection.
//! * Accounts: [`Connection::log_in`] ([`Login`], [`LoggedIn`]), [`Connection::change_password`].
//! * Players: [`Connection::set_player`], [`Connection::create_player`] ([`PlayerSummary`]),
//!   [`Connection::delete_player`], [`Connection::kick_player`].
//! * Nodes: [`Connection::create`], [`Connection::fetch`], [`Connection::save`],
//!   [`Connection::add`], [`Connection::remove`], [`Connection::refs`], [`Connection::find`],
//!   [`Connection::send`].
//! * Ages: [`Connection::init_age`] ([`InitAge`], [`AgeNodes`]), [`Connection::request_age`]
//!   ([`AgeFound`]), [`Connection::leave_age`], [`Connection::public_ages`] ([`PublicAge`]),
//!   [`Connection::set_public`].
//! * Scores: [`Connection::create_score`], [`Connection::get_scores`] ([`ScoreSummary`]),
//!   [`Connection::add_points`], [`Connection::transfer_points`], [`Connection::set_points`],
//!   [`Connection::high_scores`].
//! * Notices about changes: [`Notices::recv`], [`Notices::due`], [`Notice`].
//! * For operators, through [`admin`](super::admin): [`Vault::accounts`], [`Vault::add_account`],
//!   [`Vault::set_password`], [`Vault::ban_account`], [`Vault::delete_account`]; [`Vault::tree`],
//!   [`Vault::show`], [`Vault::find`], [`Vault::set`], [`Vault::check`] ([`Finding`]),
//!   [`Vault::export`], [`Vault::export_with_passwords`] and [`Vault::import`] ([`Dump`]).
//!
//! Every method of a connection is one request. It returns the data for the reply, or the
//! [`NetError`] that is its result. For a request without a reply, log the error. The future may be
//! dropped at any time; the request then either happens or does not. Dropping the [`Connection`]
//! takes its player offline.
//!
//! **Order.** Notices arrive in the order of the changes. After a method returns, first send all
//! notices from [`Notices::due`], then the reply. That is the order of events.
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
//! `steps` holds the data in memory and the only code that changes it, without IO; `graph`,
//! `interest` and `contents` are its parts; `operations`, `access`, `trees` and the modules beside
//! this one are the rules; `task` is the loop that groups, commits and answers.

mod access;
mod accounts;
pub(in crate::uru) mod age_states;
mod ages;
mod clear_states;
mod config;
mod content;
mod contents;
mod dump;
mod exchange;
mod failures;
mod graph;
mod handle;
mod inspect;
mod interest;
mod lookup;
#[cfg(test)]
mod model;
mod operations;
mod players;
mod scores;
mod session;
mod steps;
mod tables;
mod task;
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
pub use players::Kicked;
pub use session::{Login, Notice};
pub use steps::{Damage, Randomness};
pub use tables::players::PlayerSummary;
pub use tables::scores::ScoreSummary;
pub use task::VaultError;
pub use trees::AgeNodes;

pub(crate) use accounts::is_account_name;
pub(crate) use age_states::AgeNode;
pub(crate) use content::{decode, encode as encode_node, node_json};
pub(crate) use dump::{digest, fields_of, uuid_of};
pub(crate) use session::ConnectionId;
