//! A shard on several machines: *nodes* that serve clients, and the *leader*, whose vault they use.
//!
//! | module | content |
//! | --- | --- |
//! | `bus`, `nats` | messages between processes, which may be lost |
//! | `frames` | their format |
//! | `channel` | reliable streams of items over the bus |
//! | `requests` | what nodes ask for besides requests to the vault |
//! | `link` | a node's end: sessions and requests |
//! | `leader` | the leader's end: nodes and their sessions |

mod bus;
mod channel;
mod frames;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod leader;
mod link;
#[cfg(test)]
mod memory;
mod nats;
mod requests;
#[cfg(test)]
mod simulation;

pub use bus::BusError;

pub(in crate::uru) use bus::Bus;
pub(in crate::uru) use leader::Leader;
pub(in crate::uru) use link::Link;
pub(in crate::uru) use nats::Nats;
pub(in crate::uru) use requests::{ClientReport, ENTER_AGE, EnterAge, EnteredAge};
