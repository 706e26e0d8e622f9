//! The small print of the connection machine: order, time, limits, and who is to blame.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
mod observer;
mod setup;
mod time;
