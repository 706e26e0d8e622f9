//! A client of a shard of Uru: gatekeeper, auth, file and game services.
//!
//! Every request is an async method that waits for the reply with its transaction. What the server
//! says without being asked comes as [`Notification`]s.
//!
//! ```no_run
//! use worldwire_client::uru::{Auth, Files, Picture, Shard, folder};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // The lines that a client's server.ini has; `worldwire serve uru` prints them.
//! let shard = Shard::parse(&std::fs::read_to_string("server.ini")?)?;
//! let files = Files::connect(&shard).await?;
//! folder::update(&files, "External", "game".as_ref(), &mut |_| ()).await?;
//!
//! let (auth, mut notifications) = Auth::connect(&shard).await?;
//! let login = auth.log_in("ann@example.org", "secret").await?;
//! let player = login.players.first().ok_or("no player")?;
//! auth.set_player(player.id).await?;
//! let mut vault = Picture::fetch(&auth, player.id).await?;
//! while let Some(notification) = notifications.next().await {
//!     vault.follow(&auth, &notification).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! * [`Shard`]: where a shard is, its keys, and what a client says of itself;
//! * [`Link`]: a connection of any service; [`Transaction`]: a request and its replies;
//! * [`Gatekeeper`], [`Files`], [`Auth`]: what can be asked of a service; [`Game`]: a player in an
//!   age;
//! * [`Notification`]: what comes unasked; [`Picture`]: a part of the vault that follows it;
//!   [`Scene`]: what is in an age, likewise;
//! * [`folder`]: downloads into a folder; [`ClientError`]: what may go wrong.

mod auth;
mod error;
mod files;
pub mod folder;
mod game;
mod gatekeeper;
mod link;
mod notification;
mod picture;
mod reply;
mod scene;
mod scores;
mod secure;
mod shard;
mod vault;

pub use auth::{Auth, Login, Player};
pub use error::ClientError;
pub use files::Files;
pub use game::{Game, NetBuffer};
pub use gatekeeper::Gatekeeper;
pub use link::{Link, Transaction};
pub use notification::{Notification, Notifications};
pub use picture::Picture;
pub use scene::{Scene, Seen};
pub use secure::SecureEntry;
pub use shard::{Shard, ShardParseError};
pub use vault::{Age, NewAge};

/// What a request of a client yields.
pub type Result<T, E = ClientError> = core::result::Result<T, E>;
