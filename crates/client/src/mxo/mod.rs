//! A client of a world of The Matrix Online: it sees, and its character walks.
//!
//! ```no_run
//! use std::time::Duration;
//! use worldwire_client::mxo::{Visit, VisitConfig};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let visit = Visit::to("127.0.0.1:10000", VisitConfig::new(7)).await?;
//! tokio::time::sleep(Duration::from_secs(5)).await;
//! let mut text = String::new();
//! visit.seen(|eyes| eyes.replica().write_text(&mut text));
//! println!("{text}");
//! visit.leave().await;
//! # Ok(())
//! # }
//! ```
//!
//! * [`Visit`]: a connection to a world over UDP;
//! * [`Eyes`]: what a client sees and where it walks, without IO;
//! * [`compare`]: what it sees against what a server says it should see.

mod compare;
mod eyes;
mod page;
mod visit;

pub use compare::{Difference, compare};
pub use eyes::Eyes;
pub use page::{PageError, Truth, ask};
pub use visit::{Visit, VisitConfig, VisitError};
