//! Two machines in a box: client, server and observer in virtual time, over a wire that cuts the
//! stream wherever it likes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
