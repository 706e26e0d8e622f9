//! The game manager: small games that a game server runs in its ages.
//!
//! A `GameMgrMsg` on a game connection carries one [`GameMessage`], to or from either a game or the
//! manager. Players create and join games through the manager. A [`GameManager`] runs the games of
//! one age, without sockets.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use worldwire_core::{Reader, Side};
//! use worldwire_uru::games::{
//!     GameIds, GameManager, GameMessage, GamePlayer, GameType, GamesConfig,
//! };
//!
//! let config = GamesConfig::serving([GameType::BlueSpiral]);
//! let mut games = GameManager::new(config, Arc::new(GameIds::new(7_000)));
//!
//! // A JoinGame in transaction 1: the common blue spiral at table 0.
//! let mut join = vec![1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
//! join.extend(GameType::BlueSpiral.id().0);
//! join.extend([1, 0, 0, 0, 0]);
//! let player = GamePlayer { id: 5, is_admin: false };
//! games.receive(Duration::ZERO, player, &join, &mut |bytes: &mut [u8]| bytes.fill(0));
//!
//! let mut names = Vec::new();
//! while let Some(delivery) = games.poll_delivery() {
//!     assert_eq!(delivery.to, 5);
//!     let mut reader = Reader::new(&delivery.bytes);
//!     let message = GameMessage::decode(Some(GameType::BlueSpiral), Side::Server, &mut reader)?;
//!     names.extend(message.body.name());
//! }
//! assert_eq!(names, ["GameInstance", "PlayerJoined", "OwnerChange"]);
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! # Behaviour
//!
//! * **Messages.** The server builds everything that it sends from checked values, and in exactly
//!   the size that the layout requires: clients do not check sizes, and invalid text crashes them.
//!   Bytes after the end of a text are the sender's uninitialised memory; they are neither stored
//!   nor sent.
//! * **Requests.** Only requests carry a transaction. Each gets a reply, because clients keep
//!   unanswered requests forever.
//! * **Members.** The first member owns a game. If the owner leaves, the longest-standing member
//!   becomes the owner. A common game without members starts over; other games end.
//! * **Marker games** outlive the age because a store keeps them: the server carries out each
//!   [`MarkerRequest`], and answers are sent once the change cannot be lost. [`MarkerLibrary`]
//!   defines how a store must behave.
//! * **Bounds.** No player can exhaust memory or send faster than [`GameBounds`] allow.

mod array;
mod blue_spiral;
mod climbing_wall;
mod config;
mod game_type;
mod heek;
mod library;
mod lint;
mod manager;
mod marker;
pub mod message;
mod refused;
mod table;
mod text;
mod tic_tac_toe;
mod var_sync;

pub use array::Array;
pub use config::{GameBounds, GameIds, GamesConfig};
pub use game_type::{GameScope, GameType};
pub use library::{
    Marker, MarkerAnswer, MarkerBounds, MarkerLibrary, MarkerRequest, MarkerTemplate,
};
pub use lint::lint;
pub use manager::{GameEvent, GameManager, GamePlayer};
pub use marker::Ticket;
pub use message::{GameBody, GameHeader, GameMessage};
pub use refused::{Refused, RefusedClass};
pub use table::{GameDelivery, Random};
pub use text::{GameText, GameUnits, TextFault, text_fault};
