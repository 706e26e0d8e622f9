//! The connection machine in all roles, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod loss;
mod observer;
mod relay;
mod rules;
mod support;
