//! Two connected machines in virtual time, with an observer.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod answers;
mod encrypted_relay;
mod fixtures;
mod holding;
mod loss;
mod observer;
mod relay;
mod rules;
mod session;
mod support;
