//! Servers for preserved online worlds.
//!
//! ```no_run
//! use std::path::Path;
//! use worldwire_net::Stop;
//! use worldwire_server::uru::Shard;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // The first start creates the directory, its keys and a commented shard.toml.
//!     let shard = Shard::open(Path::new("shard")).await?;
//!     println!("clients connect to {}", shard.address()?);
//!     let stop = Stop::new();
//!     let signal = stop.signal();
//!     tokio::spawn(async move {
//!         let _ = tokio::signal::ctrl_c().await;
//!         stop.stop();
//!     });
//!     shard.serve(signal).await?;
//!     Ok(())
//! }
//! ```
//!
//! * [`uru`]: an Uru shard; [`ki`]: a login server for Wizard101 and Pirate101; [`mxo`]: servers for
//!   The Matrix Online;
//! * [`WebServer`]: serves the status pages of other programs;
//! * [`store`]: databases; [`admin`] and [`operators`]: administration of servers from their
//!   directories.

pub mod admin;
mod boot_clock;
mod config;
mod ending;
mod failures;
mod folder;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod ki;
mod metrics;
pub mod mxo;
pub mod operators;
mod page;
mod secrets;
mod standby;
mod start;
pub mod store;
pub mod uru;
mod web;

pub use config::{ConfigError, SettingError};
pub use ending::ServeError;
pub use metrics::Metrics;
pub use start::StartError;
pub use web::{Reported, WebServer};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
