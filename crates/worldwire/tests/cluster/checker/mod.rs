//! Checks that what clients saw is consistent with the shard's guarantees. Each check has tests
//! that feed it invalid histories.

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
