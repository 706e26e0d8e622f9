//! A client for Uru shards: the gatekeeper, auth, file and game services.
//!
//! Every request is an async method that waits for its reply. Messages that the server sends
//! unprompted arrive as [`Notification`]s.
//!
//! ```no_run
//! use worldwire_client::uru::{Auth, Files, Shard, VaultMirror, folder};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // `worldwire serve uru` prints the lines for this file.
//! let shard = Shard::parse(&std::fs::read_to_string("server.ini")?)?;
//! let files = Files::connect(&shard).await?;
//! folder::update(&files, "External", "game".as_ref(), &mut |_| ()).await?;
//!
//! let (auth, mut notifications) = Auth::connect(&shard).await?;
//! let login = auth.log_in("ann@example.org", "secret").await?;
//! let player = login.players.first().ok_or("the account has no player")?;
//! auth.set_player(player.id).await?;
//! let mut vault = VaultMirror::fetch(&auth, player.id).await?;
//! while let Some(notification) = notifications.next().await {
//!     vault.apply(&auth, &notification).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! * [`Shard`]: a shard's address and keys, and what the client sends about itself;
//! * [`Link`]: a connection to any service; [`Transaction`]: a request and its replies;
//! * [`Gatekeeper`], [`Files`], [`Auth`]: the requests of each service; [`Game`]: a player in an
//!   age;
//! * [`Notification`]: what the server sends unprompted; [`VaultMirror`]: a local copy of a part of
//!   the vault; [`Scene`]: a local copy of an age's state; both follow notifications;
//! * [`games`]: what a player does in the games of an age;
//! * [`folder`]: downloads into a directory; [`ClientError`]: why a request failed.

mod auth;
mod error;
mod files;
pub mod folder;
mod game;
pub mod games;
mod gatekeeper;
mod link;
mod net_buffer;
mod notification;
mod reply;
mod scene;
mod scene_objects;
mod scores;
mod secure;
mod shard;
mod vault;
mod vault_mirror;

pub use auth::{Auth, Login, Player};
pub use error::ClientError;
pub use files::Files;
pub use game::Game;
pub use gatekeeper::Gatekeeper;
pub use link::{Link, Transaction};
pub use net_buffer::NetBuffer;
pub use notification::{Notification, Notifications};
pub use scene::{Scene, SceneEvent};
pub use secure::SecureEntry;
pub use shard::{Shard, ShardParseError};
pub use vault::{Age, NewAge};
pub use vault_mirror::VaultMirror;

/// The result of a client's request.
pub type Result<T, E = ClientError> = core::result::Result<T, E>;
