//! Capture files and the streams in them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conversations;
mod files;
mod records;
mod rules;
mod streams;
