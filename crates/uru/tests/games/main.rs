//! Tests of the game manager and its games.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod decisions;
mod mailbox;
mod messages;
mod model;
mod negative;
mod said;
mod scenarios;
mod spelling;
mod world;
