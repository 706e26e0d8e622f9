//! The messages of the four kinds of connection, each declared once.
//!
//! | connection | client says | server says |
//! | --- | --- | --- |
//! | gatekeeper | [`gatekeeper::client`] | [`gatekeeper::server`] |
//! | auth | [`auth::client`] | [`auth::server`] |
//! | game | [`game::client`] | [`game::server`] |
//! | file | [`file::client`] | [`file::server`] |
//!
//! Numbers are separate for each connection and direction; only 0 (ping) is common to all.
//! [`frame`](crate::frame) puts the number and the fields on the wire.

mod record;

/// Messages of gatekeeper connections.
pub mod gatekeeper {
    pub mod client;
    pub mod server;
}

/// Messages of auth connections.
pub mod auth {
    pub mod client;
    pub mod server;
}

/// Messages of game connections.
pub mod game {
    pub mod client;
    pub mod server;
}

/// Messages of file connections.
pub mod file {
    pub mod client;
    pub mod server;
}

pub use record::{AccountFlags, Caps, NetAgeInfo, NodeRef, Rank, Ranks, Score, Scores};
