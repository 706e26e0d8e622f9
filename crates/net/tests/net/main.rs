//! The driver, listeners and dialers with machines of a toy family, and of real ones.

#![allow(clippy::unwrap_used)]

mod between;
mod bursts;
mod drive;
mod families;
mod sockets;
mod toy;
