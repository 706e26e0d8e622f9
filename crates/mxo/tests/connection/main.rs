//! The connection in all roles, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod adding;
mod holding;
mod loss;
mod observer;
mod relay;
mod rules;
mod support;
