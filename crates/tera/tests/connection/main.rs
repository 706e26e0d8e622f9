//! The connection machine in its four roles, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod holding;
mod loss;
mod observer;
mod relay;
mod rules;
