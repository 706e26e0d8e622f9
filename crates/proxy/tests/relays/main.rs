//! Conversations of all families, relayed under random decisions.

#![allow(missing_docs, reason = "a test is not a library")]

mod decisions;
mod holding;
mod random;
