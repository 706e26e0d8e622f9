//! A shard on several machines: *nodes* that serve clients, and the *leader*, whose vault they use.
//!
//! | module | content |
//! | --- | --- |
//! | `bus`, `nats` | messages between processes, which may be lost |
//! | `frames` | their format |
//! | `channel` | reliable streams of items over the bus |
//! | `requests` | what nodes ask for besides requests to the vault |
//! | `members` | what operators see of the processes |
//! | `permissions` | what each process may do on the bus |
//! | `admin` | requests of operators at other processes than the leader |
//! | `link` | a node's end: sessions and requests |
//! | `leader` | the leader's end: nodes and their sessions |

mod admin;
mod bus;
mod channel;
mod frames;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod leader;
mod link;
mod members;
#[cfg(test)]
mod memory;
mod nats;
mod permissions;
mod requests;
#[cfg(test)]
mod simulation;

pub use bus::BusError;
pub use permissions::{BusUser, BusUserError, nats_config};

pub(in crate::uru) use admin::{RemoteOperators, forward};
pub(in crate::uru) use bus::Bus;
pub(in crate::uru) use leader::{Leader, Leading};
pub(in crate::uru) use link::Link;
pub(in crate::uru) use members::{Description, LeaderHandle, Member};
pub(in crate::uru) use nats::Nats;
pub(in crate::uru) use requests::{ClientReport, ENTER_AGE, EnterAge, EnteredAge};
