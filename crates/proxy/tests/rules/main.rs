//! Rules in recorded conversations of all families.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod behaviour;
mod properties;
mod recipes;
mod samples;
