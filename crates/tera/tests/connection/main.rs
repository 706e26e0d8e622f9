//! The connection machine in its four roles, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
mod holding;
mod loss;
mod observer;
mod relay;
mod rules;
