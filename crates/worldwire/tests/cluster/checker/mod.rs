//! Checks what clients saw against what the shard promises. Each check has tests that feed it broken
//! histories.

mod fences;
mod nodes;
mod registers;
mod talk;
mod views;

pub(crate) use fences::{Mark, check_fences, check_speakers};
pub(crate) use nodes::{Stored, check_nodes};
pub(crate) use registers::check_registers;
pub(crate) use talk::check_talks;
pub(crate) use views::{View, check_view};
