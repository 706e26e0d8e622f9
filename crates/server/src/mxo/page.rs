//! The status page: plain HTTP for operators, and for clients that compare their views.
//!
//! | path | meaning |
//! | --- | --- |
//! | `/status` | JSON: clients, objects, ticks, traffic |
//! | `/views/CHARACTER` | JSON: `settled`, and `views`, which the client should see |
//! | `/hold`, `/go` | stops the behaviour of objects for at most a minute; resumes it |

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use worldwire_core::json::Style;

use super::Shared;
use super::world::LONGEST_HOLD;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/status", get(status))
        .with_state(Arc::clone(&shared))
        .merge(views_router(shared))
}

/// The routes for comparing views.
pub(super) fn views_router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/views/{uid}", get(views))
        .route("/hold", post(hold))
        .route("/go", post(go))
        .with_state(shared)
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    Json(summary(&shared)).into_response()
}

/// The state of a world.
pub(super) fn summary(shared: &Shared) -> Value {
    let world = shared.world();
    let clients: Vec<_> = world
        .clients()
        .map(|(client, uid)| {
            let traffic = world.traffic(client).unwrap_or_default();
            json!({
                "character": uid, "views": world.views(client),
                "settled": world.is_settled(client), "bytes": traffic.first,
                "bytes_again": traffic.again, "sections": traffic.sections,
            })
        })
        .collect();
    let (objects, figures) = (world.objects(), &shared.figures);
    drop(world);
    let [median, slowest] = figures.tick_times().map(|time| time.as_secs_f64() * 1000.0);
    let counts = &shared.counts;
    json!({
        "objects": objects, "ticks": figures.ticks(),
        "tick_ms": { "p50": median, "p99": slowest },
        "section_bytes": figures.section_bytes(),
        "connections": { "open": shared.admission.taken(), "accepted": counts.accepted(),
                         "refused": counts.refused() + figures.clients_turned_away(),
                         "waiting": shared.admission.waiting() },
        "broken_rules": figures.broken_rules(), "clients": clients,
    })
}

async fn views(State(shared): State<Arc<Shared>>, Path(uid): Path<u64>) -> Response {
    let mut text = String::new();
    {
        let world = shared.world();
        let Some(client) = world.client_of(uid) else {
            let problem = format!("no client plays character {uid}\n");
            return (StatusCode::NOT_FOUND, problem).into_response();
        };
        let Ok(truth) = world.truth(client) else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        text.push_str("{\"settled\":");
        text.push_str(if world.is_settled(client) { "true" } else { "false" });
        text.push_str(",\"views\":");
        truth.write_json(Style::default(), &mut text);
        text.push_str("}\n");
    }
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

async fn hold(State(shared): State<Arc<Shared>>) -> StatusCode {
    let until = shared.clock.now().saturating_add(LONGEST_HOLD);
    shared.world().hold(until);
    StatusCode::NO_CONTENT
}

async fn go(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.world().resume();
    StatusCode::NO_CONTENT
}
