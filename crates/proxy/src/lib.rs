//! A proxy between clients and servers. It reads their conversations, and can change, drop, delay
//! and add messages.

mod exchange;
mod handler;

pub use exchange::{Counts, Exchange, Known};
pub use handler::{Effects, Handler, Next, Passing, Report};
