//! The messages of all four services, each declared once.
//!
//! | connection | from the client | from the server |
//! | --- | --- | --- |
//! | gatekeeper | [`gatekeeper::client`] | [`gatekeeper::server`] |
//! | auth | [`auth::client`] | [`auth::server`] |
//! | game | [`game::client`] | [`game::server`] |
//! | file | [`file::client`] | [`file::server`] |
//!
//! Message numbers are separate for each service and direction; only 0 (ping) is common to all.
//! [`frame`](crate::frame) encodes numbers and fields.

mod record;

/// Messages on gatekeeper connections.
pub mod gatekeeper {
    pub mod client;
    pub mod server;
}

/// Messages on auth connections.
pub mod auth {
    pub mod client;
    pub mod server;
}

/// Messages on game connections.
pub mod game {
    pub mod client;
    pub mod server;
}

/// Messages on file connections.
pub mod file {
    pub mod client;
    pub mod server;
}

pub use record::{AccountFlags, Caps, NetAgeInfo, NodeRef, Rank, Ranks, Score, Scores};
