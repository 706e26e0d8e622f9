//! A client for worlds of The Matrix Online. Its character walks around.
//!
//! ```no_run
//! use std::time::Duration;
//! use worldwire_client::mxo::{Client, Settings};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("127.0.0.1:10000", Settings::new(7)).await?;
//! tokio::time::sleep(Duration::from_secs(5)).await;
//! let mut text = String::new();
//! client.with_view(|view| view.replica().write_text(&mut text));
//! println!("{text}");
//! client.leave().await;
//! # Ok(())
//! # }
//! ```
//!
//! * [`log_in`] and [`Margin`]: a login to the auth server, and a session with characters on the
//!   margin server. A world without logins needs neither;
//! * [`Client`]: a connection to a world, over UDP;
//! * [`ClientView`]: the world as the client sees it, and the walk of its character, without I/O;
//! * [`compare`]: compares what a client sees with what it should see according to the server.

mod client;
mod compare;
mod login;
mod status_page;
mod view;

pub use client::{Client, ConnectError, Settings, Travel};
pub use compare::{Difference, compare};
pub use login::{LoginError, Margin, Stream, log_in, log_in_over, plain_character};
pub use status_page::{ExpectedViews, StatusPageError, query};
pub use view::{ClientView, Happening};
