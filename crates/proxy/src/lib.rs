//! A proxy between clients and servers. It reads their conversations, and can change, drop, delay
//! and add messages.

mod coder;
mod exchange;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod held;
mod hook;

pub use exchange::{Counts, Exchange, Known};
pub use handler::{Effects, Handler, Next, Passing, Report};
pub use hook::{HookEvent, HookOptions, HookSocket, Hooks};
