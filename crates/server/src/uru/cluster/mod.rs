//! A shard on several machines: *nodes* that serve clients, and the *leader*, whose vault they use.
//!
//! | module | content |
//! | --- | --- |
//! | `bus`, `nats`, `bus_problems` | messages between processes, which may be lost |
//! | `subjects` | the subjects that messages are sent to, and what they reveal about the sender |
//! | `frames` | the format of messages |
//! | `channel` | reliable streams of items over the bus |
//! | `requests` | what nodes request besides vault requests |
//! | `ages` | messages between the leader and nodes that run ages |
//! | `members` | what operators can see about the processes |
//! | `passport` | what a process presents to join, and why it is refused |
//! | `permissions` | what each process may do on the bus |
//! | `admin` | operators' requests to processes other than the leader |
//! | `link` | a node's end: sessions and requests |
//! | `leader` | the leader's end: nodes and their sessions |
//! | `tenure` | how long a node may run an age |
//! | `routes` | messages between ages of different processes |

mod admin;
#[cfg(test)]
mod admission_simulation;
#[cfg(test)]
mod age_simulation;
mod ages;
mod bus;
mod bus_problems;
mod channel;
mod frames;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod leader;
mod link;
#[cfg(test)]
mod local;
mod members;
#[cfg(test)]
mod memory;
mod nats;
mod passport;
mod permissions;
mod requests;
mod routes;
#[cfg(test)]
mod simulation;
mod subjects;
mod tenure;

pub use bus::BusError;
pub use permissions::{BusUser, BusUserError, nats_config, new_bus_key};

pub(in crate::uru) use admin::{RemoteOperators, forward};
pub(in crate::uru) use ages::{AgeOrder, AgeReport, NodeInfo, Visit};
pub(in crate::uru) use bus::Bus;
#[cfg(test)]
pub(in crate::uru) use bus::BusMessage;
pub(in crate::uru) use leader::{Leader, Leading, NodeAges, NotExpected, Successors};
pub(in crate::uru) use link::{
    HeardLeader, Joining, LeadersSettings, Link, NodeEvent, other_leader,
};
#[cfg(test)]
pub(in crate::uru) use local::{LocalBus, LocalLeader};
pub(in crate::uru) use members::{Description, LeaderHandle, Member};
pub(in crate::uru) use nats::Nats;
pub(in crate::uru) use passport::{FileDigests, KeyDigests, Passport, PassportOffice, Refusal};
pub(in crate::uru) use requests::{
    ClientReport, ENTER_AGE, EnterAge, EnteredAge, RENEW_TICKET, RESUME_SESSION, RenewTicket,
    ResumeSession,
};
pub(in crate::uru) use routes::Routes;
pub(in crate::uru) use subjects::NodeKind;
#[cfg(test)]
pub(in crate::uru) use subjects::matches;
pub(in crate::uru) use tenure::Tenure;
