//! A client, a server and an observer in virtual time, over a wire that can split the stream
//! anywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod ends;
mod exchange;
mod holding;
mod keys;
mod late;
mod loss;
mod observer;
mod pair;
mod relay;
mod rules;
mod setup;
mod time;
