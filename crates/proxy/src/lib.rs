//! A proxy between clients and servers. It reads their conversations, and can change, drop, delay
//! and add messages.

mod command;
mod conversation;
mod exchange;
mod gate;
mod handler;
mod ki;
mod ports;
mod proxy;
mod record;
mod uru;
mod world;

pub use exchange::{Counts, Exchange, Known};
pub use gate::MakeHandlers;
pub use handler::{Effects, Handler, Next, Passing, Report};
pub use ki::KiWorld;
pub use ports::{Ports, Transport};
pub use proxy::{Proxy, Setup};
pub use record::{MORE_KEYS, Recorder};
pub use uru::UruWorld;
pub use world::{OneServer, World};
