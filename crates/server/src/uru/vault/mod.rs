//! The vault of a shard, with its accounts, players, ages and scores: everything that lasts.
//!
//! [`Vault`] is the handle that services hold, cheap to clone. Behind it one task owns an index of
//! the whole vault in memory and is the only writer of the database. The requests that wait
//! together are one *batch* and share one transaction; replies and notices leave when it is
//! committed. So what a client was told has happened survives whatever happens next.
//!
//! # For services
//!
//! Everything public, in the order in which a service needs it:
//!
//! | item | what it is for |
//! | --- | --- |
//! | [`VaultConfig`], [`OnDuplicate`], [`AgeNames`], [`StaticAge`] | what an operator chooses |
//! | [`Vault::open`] | the vault of a database ([`store::open`](crate::store::open)), founded if it is new |
//! | [`Vault::connect`] | one [`Connection`] and its [`Notices`] for every connection of a client |
//! | [`Connection::log_in`], [`change_password`](Connection::change_password) | accounts; [`Login`](super::accounts::Login), [`LoggedIn`](super::accounts::LoggedIn) |
//! | [`Connection::set_player`], [`create_player`](Connection::create_player), [`delete_player`](Connection::delete_player), [`kick_player`](Connection::kick_player) | players; [`PlayerSummary`](super::players::PlayerSummary) |
//! | [`Connection::create`], [`fetch`](Connection::fetch), [`save`](Connection::save), [`add`](Connection::add), [`remove`](Connection::remove), [`refs`](Connection::refs), [`find`](Connection::find), [`send`](Connection::send) | nodes |
//! | [`Connection::init_age`], [`request_age`](Connection::request_age), [`leave_age`](Connection::leave_age), [`public_ages`](Connection::public_ages), [`set_public`](Connection::set_public) | ages; [`InitAge`](super::ages::InitAge), [`AgeNodes`], [`AgeFound`](super::ages::AgeFound), [`PublicAge`](super::ages::PublicAge) |
//! | [`Connection::create_score`], [`get_scores`](Connection::get_scores), [`add_points`](Connection::add_points), [`transfer_points`](Connection::transfer_points), [`set_points`](Connection::set_points), [`high_scores`](Connection::high_scores) | scores; [`ScoreSummary`](super::scores::ScoreSummary) |
//! | [`Notices::recv`], [`Notices::due`], [`Notice`] | what others did |
//! | [`Vault::accounts`], [`add_account`](Vault::add_account), [`set_password`](Vault::set_password), [`ban_account`](Vault::ban_account), [`delete_account`](Vault::delete_account) | accounts, for operators |
//! | [`Vault::tree`], [`show`](Vault::show), [`find`](Vault::find), [`set`](Vault::set), [`check`](Vault::check), [`export`](Vault::export), [`import`](Vault::import) | the vault, for operators; [`TreeLine`], [`Finding`], [`Dump`] |
//! | [`Vault::close`] | the end: everybody offline, everything written |
//!
//! Every method of a connection is one request. It returns what the reply needs, or the
//! [`NetError`](worldwire_uru::types::NetError) that the reply carries (a request without a reply is logged). It may be dropped
//! at any time; the request happens or not. Dropping the [`Connection`] takes its player offline.
//!
//! **Order.** Notices come in the order of the changes. When a method has returned, send what
//! [`Notices::due`] has first and then the reply: this is the order in which things happened.
//!
//! **States.** The vault answers [`AuthenticationFailed`](worldwire_uru::types::NetError::AuthenticationFailed) to whatever is not
//! allowed yet: before the login only that is; before a player is chosen only accounts, players,
//! reading nodes and scores, and the age `StartUp` are.
//!
//! # Inside
//!
//! `state` is all that the shard knows and the steps that change it, without IO; `graph`,
//! `interest` and `contents` are its parts; `operations`, `access`, `trees` and the modules beside
//! this one are the rules; `task` is the loop that groups, commits and answers.

mod access;
mod config;
mod content;
mod contents;
mod exchange;
mod graph;
mod handle;
mod inspect;
mod interest;
#[cfg(test)]
mod model;
mod operations;
mod state;
mod task;
mod trees;

pub use config::{AgeNames, OnDuplicate, StaticAge, VaultConfig};
pub use exchange::{Dump, DumpError};
pub use handle::{Connection, Environment, Notice, Notices, Randomness, Vault, VaultError};
pub use inspect::{Finding, TreeLine};
pub use operations::MOST_FOUND;
pub use trees::AgeNodes;

pub(crate) use content::{Facts, decode};
pub(crate) use exchange::fields_of;
pub(crate) use handle::ConnectionId;
pub(crate) use state::{Outcome, Session, State};
pub(crate) use trees::{NewAge, text};
