//! Tests captures, JSON lines and features of each built-in family.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod batches;
mod captures;
mod editors;
mod lines;
mod lost_packets;
mod mxo;
mod mxo_captures;
mod samples;
mod tera_builds;
mod uru_games;
mod uru_names;
