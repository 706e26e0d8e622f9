//! Views of worlds: what a world's messages or files say about the world as a whole.
//!
//! A view exists if the capture has messages for it, or if the program that serves the page offers it.
//! `/api/capture` lists the names of views, and the page shows one tab for each.

mod latest;
mod mxo;
mod tera;

use std::sync::Arc;

use axum::Router;

use crate::state::State;

pub(crate) use mxo::Plane;
pub(crate) use tera::Board;

/// The names of the views that the page can show, in the order of their tabs.
pub(crate) fn views(state: &State) -> Vec<&'static str> {
    let mut views = state.live.as_ref().map(|live| live.views().to_vec()).unwrap_or_default();
    let index = state.index();
    let has = |family: &&str| index.names().iter().any(|name| name.family == *family);
    views.extend([tera::FAMILY, mxo::FAMILY].into_iter().filter(has));
    views
}

/// The routes of all views.
pub(crate) fn router() -> Router<Arc<State>> {
    tera::router().merge(mxo::router())
}
