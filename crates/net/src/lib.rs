//! Sockets for connection machines: the layer between the operating system and any
//! [`Connection`](worldwire_core::connection::Connection), shared by all families.
//!
//! A connection machine does no I/O. A [`Driver`] connects it to a stream, a clock and an
//! [`Application`]: the driver reads and writes, meets the machine's deadlines, and passes every
//! event to the application. A [`tcp::Listener`] or [`udp::Listener`] accepts connections, each
//! in its own task from the first byte, so a slow or silent peer never delays another.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use worldwire_core::connection::{Event, EventOf, Sender as _};
//! use worldwire_net::{Accept, Application, Flow, Options, Peer, Stop, tcp};
//! use worldwire_uru::connection::{Connection, Sender, ServerConfig};
//!
//! struct Shard(Arc<ServerConfig>);
//! struct Greeter;
//!
//! impl Accept for Shard {
//!     type Connection = Connection;
//!     type Application = Greeter;
//!
//!     fn accept(&self, _: Peer, now: Duration) -> (Connection, Greeter) {
//!         (Connection::server(Arc::clone(&self.0), [7; 7], now), Greeter)
//!     }
//! }
//!
//! impl Application<Connection> for Greeter {
//!     type Notice = std::convert::Infallible;
//!
//!     async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
//!         if let Event::Received(received) = event {
//!             println!("{:?}", received.name());
//!         }
//!         Flow::Continue(())
//!     }
//! }
//!
//! # async fn serve(config: Arc<ServerConfig>) -> std::io::Result<()> {
//! let stop = Stop::new();
//! let listener = tcp::Listener::bind("127.0.0.1:14617", Options::default()).await?;
//! let serving = tokio::spawn(listener.serve(Arc::new(Shard(config)), stop.signal()));
//! // Later: accepts no more connections, writes queued data, and closes all connections.
//! stop.stop();
//! serving.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! * [`Application`]: how a server or client uses a connection; [`End`]: how it ended;
//! * [`Driver`]: one connection over one stream; [`Settings`]: its queue and time limits;
//! * [`tcp`], [`udp`]: listeners and dialers; [`Accept`]: creates connections; [`Options`],
//!   [`Capacity`]: limits on open connections; [`Counts`]: counters for operators;
//! * [`proxy`]: the PROXY protocol, for clients behind proxies;
//! * [`Stop`]: graceful shutdown;
//! * [`lossy`]: simulates a bad network;
//! * [`mailbox()`]: a bounded queue of notices from other tasks;
//! * [`LogLimiter`]: rate-limited log lines about frequent events;
//! * [`reason()`]: operating-system errors as text.
//!
//! This crate knows nothing about games.

mod accept;
mod application;
mod capacity;
mod clock;
mod drive;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod log_limiter;
pub mod lossy;
mod mailbox;
pub mod proxy;
mod reason;
mod stop;
pub mod tcp;
pub mod udp;
mod unwind;
mod waiting;

pub use accept::{Accept, Counts, Options, Peer};
pub use application::{Application, End, Flow};
pub use capacity::{Capacity, Permit, Permits, Refused};
pub use clock::Clock;
pub use drive::between::{Between, Dial, Intermediary};
pub use drive::{Driver, Settings};
pub use log_limiter::LogLimiter;
pub use mailbox::{Handle, Mailbox, Overflow, mailbox};
pub use reason::reason;
pub use stop::{Signal, Stop};
pub use waiting::{Waiting, WaitingList};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
