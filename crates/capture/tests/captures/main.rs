//! Tests of capture files and their streams.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod conversations;
mod files;
mod records;
mod rules;
mod streams;
