//! Clients and servers of the login, in virtual time. Comments name the decision in `docs/mxo.md`
//! that a test checks.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod auth;
mod channel;
mod margin;
mod observer;
mod relay;
mod support;
