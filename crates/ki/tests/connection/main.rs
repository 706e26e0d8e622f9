//! Two machines in a box, in virtual time, and an observer beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod fixtures;
mod holding;
mod loss;
mod observer;
mod relay;
mod rules;
mod session;
mod support;
