//! Metrics for operators, and the status page that shows them.
//!
//! | path | content |
//! | --- | --- |
//! | `/status` | JSON: `online`, `open`, `players`, `waiting`, `database`: `ok` or `failing`, and `role`: `active`, or `inactive` while another process may have taken over; see [`Standby`](super::Standby) for its page |
//! | `/metrics` | metrics in the Prometheus text format |
//! | `/health` | `ok`, or 503 while the database does not accept changes or another process may have taken over |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use worldwire_net::{Counts, LogLimiter};

use super::realm::{Census, Realm};
use super::refusal::Refusal;
use crate::metrics::{Metrics, of_listener};
use crate::page::{self, Role};

/// A server's counters, apart from those of its connections.
#[derive(Debug)]
pub(super) struct Figures {
    started: Instant,
    pub(super) logins: AtomicU64,
    pub(super) selections: AtomicU64,
    pub(super) refreshes: AtomicU64,
    pub(super) ignored: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) creations: AtomicU64,
    pub(super) no_ids: AtomicU64,
    /// Refusals by reason, in the order of [`Refusal::ALL`].
    refused: [AtomicU64; Refusal::ALL.len()],
    /// These limit how often failed logins, ignored messages, and connections without a session ID
    /// are logged.
    pub(super) failed_logins: LogLimiter,
    pub(super) ignored_messages: LogLimiter,
    pub(super) turned_away: LogLimiter,
}

/// The minimum interval between log lines that clients can provoke at will.
const LOG_EVERY: Duration = Duration::from_secs(60);

impl Default for Figures {
    fn default() -> Self {
        let [logins, selections, refreshes, ignored, malformed, creations, no_ids] =
            Default::default();
        let [failed_logins, ignored_messages, turned_away] =
            [(); 3].map(|()| LogLimiter::new(LOG_EVERY));
        Self {
            started: Instant::now(),
            logins,
            selections,
            refreshes,
            ignored,
            malformed,
            creations,
            no_ids,
            refused: Default::default(),
            failed_logins,
            ignored_messages,
            turned_away,
        }
    }
}

impl Figures {
    pub(super) fn refused(&self, why: Refusal) {
        let at = Refusal::ALL.iter().position(|refusal| *refusal == why);
        if let Some(count) = at.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn prometheus(
        &self,
        counts: &Counts,
        census: Census,
        [is_active, has_database]: [bool; 2],
    ) -> String {
        let mut metrics = Metrics::default();
        let wide = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
        let of = |count: &AtomicU64| i128::from(count.load(Ordering::Relaxed));
        for (name, help, value) in [
            (
                "uptime_seconds",
                "Time since the server started.",
                self.started.elapsed().as_secs().into(),
            ),
            ("active", page::ACTIVE, is_active.into()),
            ("database_up", page::DATABASE_UP, has_database.into()),
            ("connections", "Open connections.", wide(counts.open())),
            ("players", "Admitted connections.", wide(census.admitted)),
            ("players_waiting", "Connections in the queue.", wide(census.waiting)),
            ("players_in_zone", "Characters in the waiting room.", wide(census.playing)),
            ("accounts", "Accounts.", wide(census.accounts)),
            ("characters", "Characters.", wide(census.characters)),
        ] {
            metrics.add(name, "gauge", help, "", &[("", value)]);
        }
        for (name, value, help) in of_listener(counts) {
            metrics.add(name, "counter", help, "", &[("", value.into())]);
        }
        for (name, help, count) in [
            ("logins_total", "Logins, with a password or a CK2.", &self.logins),
            ("selections_total", "Characters selected.", &self.selections),
            ("refreshes_total", "Sessions that replaced a stale one.", &self.refreshes),
            ("messages_ignored_total", "Messages that were ignored.", &self.ignored),
            ("messages_malformed_total", "Messages that could not be decoded.", &self.malformed),
            (
                "creation_steps_total",
                "Steps of character creation that clients reported.",
                &self.creations,
            ),
            (
                "sessions_refused_total",
                "Connections closed for lack of a session ID.",
                &self.no_ids,
            ),
        ] {
            metrics.add(name, "counter", help, "", &[("", of(count))]);
        }
        let refused: Vec<_> =
            Refusal::ALL.iter().zip(&self.refused).map(|(why, n)| (why.name(), of(n))).collect();
        let help = "Logins and requests that were refused.";
        metrics.add("refused_total", "counter", help, "reason", &refused);
        metrics.into_text()
    }
}

/// The data behind the status page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) figures: Arc<Figures>,
    pub(super) counts: Arc<Counts>,
    pub(super) realm: Realm,
    pub(super) open: bool,
}

impl Page {
    fn role(&self) -> Role {
        Role::serving(self.realm.inactive_since())
    }
}

/// The routes of the status page.
pub(super) fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .with_state(page)
}

async fn status(State(page): State<Arc<Page>>) -> Response {
    let Census { admitted, waiting, .. } = page.realm.census();
    let role = page.role();
    let json = serde_json::json!({
        "online": role.is_active(), "open": page.open, "players": admitted, "waiting": waiting,
        "database": page::database(page.realm.is_failing()), "role": role.name(),
    });
    Json(json).into_response()
}

async fn metrics(State(page): State<Arc<Page>>) -> Response {
    page::metrics(page.figures.prometheus(
        &page.counts,
        page.realm.census(),
        [page.role().is_active(), !page.realm.is_failing()],
    ))
}

async fn health(State(page): State<Arc<Page>>) -> Response {
    if page.counts.is_failing() {
        return page::cannot_accept();
    }
    page::health(page.role(), page.realm.is_failing())
}
