//! Views of a world as a whole, as its messages or files show it.
//!
//! A view exists if the capture has messages for it, or if the program that serves the page offers it.
//! `/api/capture` lists the names of views, and the page shows one tab for each.

mod archive;
mod classes;
mod copy;
mod ki;
mod latest;
mod mxo;
mod object;
mod tera;
mod uru;

use std::sync::Arc;

use axum::Router;

use crate::state::State;

pub use archive::KiArchive;
pub(crate) use ki::ArchiveSummary;
pub(crate) use mxo::Plane;
pub(crate) use tera::Board;
pub(crate) use uru::UruWorld;

/// The names of the views that the page can show, in the order of their tabs.
pub(crate) fn views(state: &State) -> Vec<&'static str> {
    let mut views = state.live.as_ref().map(|live| live.views().to_vec()).unwrap_or_default();
    let index = state.index();
    views.extend(uru::views(index.names().iter().map(|row| (row.family, &*row.name))));
    let has = |family: &&str| index.names().iter().any(|name| name.family == *family);
    views.extend([tera::FAMILY, mxo::FAMILY].into_iter().filter(has));
    views.extend(state.archive.is_some().then_some("archive"));
    views
}

/// The routes of all views.
pub(crate) fn router() -> Router<Arc<State>> {
    ki::router().merge(uru::router()).merge(tera::router()).merge(mxo::router())
}
