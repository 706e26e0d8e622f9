//! A running program, such as a proxy, that the page watches and controls.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::api::unreadable;
use crate::error::Refusal;
use crate::state::State;

/// A response that takes time.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A running program that the page watches and controls.
///
/// The program that serves the page implements it, usually by passing requests to the interface that
/// its operators use on the command line.
pub trait Live: fmt::Debug + Send + Sync {
    /// Its kind, as the API names it, such as `proxy`.
    fn kind(&self) -> &'static str;

    /// The interval at which its state is checked while a page is open.
    fn interval(&self) -> Duration {
        Duration::from_millis(200)
    }

    /// The views of its world that the page can show with requests to [`perform`](Self::perform).
    fn views(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the page shows about it. Pages are notified whenever it changes.
    fn state(&self) -> Answering<'_, Value>;

    /// Carries out a request of a page's user: an object whose `request` names it.
    fn perform(&self, request: Value) -> Answering<'_, Result<Vec<Value>, LiveRefusal>>;
}

/// Why a request was not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveRefusal {
    /// The reason, in words for the user.
    pub problem: String,
    /// The path of the wrong field, if a field is at fault: `items[3].slot`.
    pub field: Option<String>,
}

/// The maximum length of a request in bytes: a message in hexadecimal digits.
const MAX_REQUEST: usize = 4 << 20;

/// The routes of the program that is watched.
pub(crate) fn router() -> Router<Arc<State>> {
    use axum::extract::DefaultBodyLimit;
    use axum::routing::get;
    let limit = DefaultBodyLimit::max(MAX_REQUEST);
    Router::new().route("/api/live", get(state).post(perform).layer(limit))
}

async fn state(extract::State(state): extract::State<Arc<State>>) -> Result<Json<Value>, Refusal> {
    Ok(Json(live(&state)?.state().await))
}

async fn perform(
    extract::State(state): extract::State<Arc<State>>,
    request: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Refusal> {
    let Json(request) = request.map_err(|error| unreadable(&error))?;
    let answers = live(&state)?.perform(request).await;
    Ok(match answers {
        Ok(answers) => Json(json!({ "answers": answers })).into_response(),
        Err(LiveRefusal { problem, field }) => {
            let body = json!({ "error": problem, "field": field });
            (StatusCode::CONFLICT, Json(body)).into_response()
        }
    })
}

fn live(state: &State) -> Result<&Arc<dyn Live>, Refusal> {
    let text = "the page shows a capture, not a running program";
    state.live.as_ref().ok_or_else(|| Refusal::missing(text))
}
