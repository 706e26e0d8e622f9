//! Headless clients for preserved online worlds, for tests, tools and load generation.
//!
//! A client speaks the same protocol as the game's own client, over the sockets of
//! [`worldwire_net`], and needs neither graphics nor game files.
//!
//! * [`ki`]: the login servers of Wizard101 and Pirate101;
//! * [`mxo`]: The Matrix Online;
//! * [`uru`]: Myst Online: Uru Live.
//!
//! # Example
//!
//! Logs in to an Uru shard, links to an age and prints the chat there:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use worldwire_client::uru::{Auth, Game, NewAge, Scene, SceneEvent, Shard};
//! use worldwire_uru::schema::Descriptors;
//! use worldwire_uru::types::Uuid;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // `worldwire serve uru` prints the lines for this file.
//! let shard = Shard::parse(&std::fs::read_to_string("server.ini")?)?;
//! let (auth, _) = Auth::connect(&shard).await?;
//! let login = auth.log_in("ann@example.org", "secret").await?;
//! let player = login.players.first().ok_or("the account has no player")?;
//! auth.set_player(player.id).await?;
//!
//! // An instance of the age; the first visitor creates it.
//! let city = Uuid([7; 16]);
//! auth.init_age(&NewAge::new("city", city)).await?;
//! let age = auth.age("city", city).await?;
//! let (game, mut notifications) = Game::join(&shard, &age, login.account_id, player.id).await?;
//!
//! // Descriptors describe object states; chat does not need them.
//! let mut scene = Scene::new(player.id, Arc::new(Descriptors::default()));
//! game.arrive(&player.shape, &mut scene, &mut notifications).await?;
//! while let Some(notification) = notifications.next().await {
//!     for event in scene.apply(&notification)? {
//!         if let SceneEvent::Chat { name, text, .. } = event {
//!             println!("{name}: {text}");
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod ki;
pub mod mxo;
pub mod uru;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
