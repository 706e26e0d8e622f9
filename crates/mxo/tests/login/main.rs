//! Clients and servers of the login, in virtual time. Comments name the decision of `docs/mxo.md`
//! that a test is about.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod auth;
mod channel;
mod margin;
mod observer;
mod relay;
mod support;
