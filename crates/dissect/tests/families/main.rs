//! The families: captures, lines of JSON, and what each has of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captures;
mod lines;
mod mxo;
mod tera_builds;
mod uru_names;
