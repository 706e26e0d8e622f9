//! Hooks as processes and over sockets.

mod examples;
mod hostile;
mod schema;
mod sockets;
mod world;
