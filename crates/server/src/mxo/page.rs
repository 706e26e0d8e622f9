//! The status page: plain HTTP for operators, and for clients that compare their views.
//!
//! | path | meaning |
//! | --- | --- |
//! | `/` | text: these paths |
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
use worldwire_net::Counts;

use super::Shared;
use super::world::LONGEST_HOLD;

pub(super) fn router(shared: Arc<Shared>, counts: Arc<Counts>) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/status", get(status))
        .with_state((Arc::clone(&shared), counts))
        .merge(views_router(shared))
}

/// The paths, for people who open the page in a browser.
const INDEX: &str = "\
GET  /status           clients, objects, ticks and traffic, as JSON
GET  /views/CHARACTER  what the client of a character should see, as JSON
POST /hold             pause the behaviour of objects for at most a minute
POST /go               resume it
";

/// The routes for comparing views.
pub(super) fn views_router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/views/{uid}", get(views))
        .route("/hold", post(hold))
        .route("/go", post(go))
        .with_state(shared)
}

async fn status(State((shared, counts)): State<(Arc<Shared>, Arc<Counts>)>) -> Response {
    Json(summary(&shared, &counts)).into_response()
}

/// The state of a world. `counts` are the listener's counters.
pub(super) fn summary(shared: &Shared, counts: &Counts) -> Value {
    let (mut objects, mut clients, figures) = (0, Vec::new(), &shared.figures);
    for world in shared.worlds.all() {
        objects += world.objects();
        clients.extend(world.clients().map(|(client, uid)| {
            let traffic = world.traffic(client).unwrap_or_default();
            json!({
                "character": uid, "views": world.views(client),
                "settled": world.is_settled(client), "bytes": traffic.first,
                "bytes_again": traffic.again, "sections": traffic.sections,
            })
        }));
    }
    let [median, slowest] = figures.tick_times().map(|time| time.as_secs_f64() * 1000.0);
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
        let found = shared.worlds.all().find_map(|world| {
            let client = world.client_of(uid)?;
            Some((world, client))
        });
        let Some((world, client)) = found else {
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
    shared.worlds.all().for_each(|mut world| world.hold(until));
    StatusCode::NO_CONTENT
}

async fn go(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.worlds.all().for_each(|mut world| world.resume());
    StatusCode::NO_CONTENT
}
