//! Metrics of logins, and the status page of a server with logins.
//!
//! | path | content |
//! | --- | --- |
//! | `/` | text: these paths, and those for comparing views |
//! | `/status` | JSON: the fields of the world's status, plus `online`, `open`, `players`, `accounts` and others |
//! | `/metrics` | metrics in the Prometheus text format |
//! | `/health` | `ok`, or 503 while the database does not accept changes |

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use worldwire_mxo::login::{LoginRefusal, LoginStatus, MarginAnswer};
use worldwire_net::{Counts, LogLimiter};

use crate::metrics::{Metrics, of_listener};
use crate::mxo::realm::{Census, HelloRefusal, Realm};
use crate::mxo::{LOG_EVERY, Shared};
use crate::page::{self, Role};

/// A server's counters of logins.
#[derive(Debug)]
pub(in crate::mxo) struct LoginFigures {
    started: Instant,
    logins: AtomicU64,
    loads: AtomicU64,
    ignored: AtomicU64,
    /// Refused logins by reason, in the order of [`REFUSALS`].
    refused: [AtomicU64; REFUSALS.len()],
    /// Refused requests about characters, in the order of [`STATUSES`].
    denied: [AtomicU64; STATUSES.len()],
    /// Refused hellos by reason, in the order of [`HelloRefusal::ALL`].
    hellos: [AtomicU64; HelloRefusal::ALL.len()],
    refused_logins: LogLimiter,
    refused_hellos: LogLimiter,
}

/// The names of refusals in metrics.
const REFUSALS: [&str; 12] = [
    "out-of-order",
    "wrong-password",
    "banned",
    "inactive",
    "account-in-use",
    "no-account",
    "no-database",
    "other-server-key",
    "wrong-proof",
    "wrong-challenge",
    "certificate",
    "other",
];

/// The statuses with which requests about characters are refused, and their names in metrics.
const STATUSES: [(LoginStatus, &str); 6] = [
    (LoginStatus::CharacterInUse, "character-in-use"),
    (LoginStatus::CharacterLimit, "character-limit"),
    (LoginStatus::NameInUse, "name-in-use"),
    (LoginStatus::InvalidName, "invalid-name"),
    (LoginStatus::NoDatabase, "no-database"),
    (LoginStatus::InvalidWorld, "invalid-world"),
];

/// The name of a refusal in metrics.
fn name_of(refusal: LoginRefusal) -> &'static str {
    match refusal {
        LoginRefusal::OutOfOrder { .. } => "out-of-order",
        LoginRefusal::Status(LoginStatus::WrongPassword) => "wrong-password",
        LoginRefusal::Status(LoginStatus::Banned) => "banned",
        LoginRefusal::Status(LoginStatus::Inactive) => "inactive",
        LoginRefusal::Status(LoginStatus::AccountInUse) => "account-in-use",
        LoginRefusal::Status(LoginStatus::NoAccount) => "no-account",
        LoginRefusal::Status(LoginStatus::NoDatabase) => "no-database",
        LoginRefusal::OtherServerKey => "other-server-key",
        LoginRefusal::WrongProof => "wrong-proof",
        LoginRefusal::WrongChallenge => "wrong-challenge",
        LoginRefusal::UnsignedCertificate
        | LoginRefusal::Expired { .. }
        | LoginRefusal::InvalidUserKey => "certificate",
        _ => "other",
    }
}

impl Default for LoginFigures {
    fn default() -> Self {
        let [logins, loads, ignored] = Default::default();
        let [refused_logins, refused_hellos] = [(); 2].map(|()| LogLimiter::new(LOG_EVERY));
        Self {
            started: Instant::now(),
            logins,
            loads,
            ignored,
            refused: Default::default(),
            denied: Default::default(),
            hellos: Default::default(),
            refused_logins,
            refused_hellos,
        }
    }
}

impl LoginFigures {
    /// Counts a client that has logged in to the auth server.
    pub(super) fn logged_in(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts and logs a client that is refused and disconnected.
    pub(super) fn refused(&self, address: SocketAddr, server: &str, refusal: LoginRefusal) {
        let name = name_of(refusal);
        let at = REFUSALS.iter().position(|one| *one == name);
        if let Some(count) = at.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(count) = self.refused_logins.count() {
            tracing::info!(%address, server, why = %refusal, count, "refused logins");
        }
    }

    /// Counts the answer to a query of a margin connection.
    pub(super) fn answered(&self, answer: &MarginAnswer) {
        let status = match answer {
            MarginAnswer::Loaded(Ok(_)) => {
                self.loads.fetch_add(1, Ordering::Relaxed);
                return;
            }
            MarginAnswer::Claimed(Err(status)) | MarginAnswer::Loaded(Err(status)) => *status,
            MarginAnswer::Deleted(status) => *status,
            _ => return,
        };
        let at = STATUSES.iter().position(|(one, _)| *one == status);
        if let Some(count) = at.and_then(|at| self.denied.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts ignored messages.
    pub(super) fn ignored(&self, count: u64) {
        self.ignored.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts and logs a refused hello on the game channel.
    pub(in crate::mxo) fn refused_hello(&self, address: SocketAddr, why: HelloRefusal) {
        let at = HelloRefusal::ALL.iter().position(|one| *one == why);
        if let Some(count) = at.and_then(|at| self.hellos.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(count) = self.refused_hellos.count() {
            tracing::warn!(%address, %why, count, "refused hellos");
        }
    }

    fn prometheus(&self, page: &Page, census: Census) -> String {
        let mut metrics = Metrics::default();
        let wide = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
        let of = |count: &AtomicU64| i128::from(count.load(Ordering::Relaxed));
        let uptime = self.started.elapsed().as_secs();
        let has_database = !page.realm.is_failing();
        for (name, help, value) in [
            ("uptime_seconds", "Time since the server started.", uptime.into()),
            ("database_up", page::DATABASE_UP, has_database.into()),
            ("accounts", "Accounts.", wide(census.accounts)),
            ("characters", "Characters.", wide(census.characters)),
            ("sessions", "Margin sessions.", wide(census.sessions)),
            ("characters_loaded", "Characters that clients have loaded.", wide(census.loaded)),
            ("players", "Characters in the world.", wide(page.shared.worlds.players())),
        ] {
            metrics.add(name, "gauge", help, "", &[("", value)]);
        }
        let [auth, margin, game] = &page.counts;
        let parts = [("auth", auth), ("margin", margin), ("game", game)];
        let open = parts.map(|(name, counts)| (name, wide(counts.open())));
        metrics.add("connections", "gauge", "Open connections.", "server", &open);
        let [a, m, g] = [auth, margin, game].map(|counts| of_listener(counts));
        for ((a, m), g) in a.into_iter().zip(m).zip(g) {
            let (name, count, help) = a;
            let values = [("auth", count.into()), ("margin", m.1.into()), ("game", g.1.into())];
            metrics.add(name, "counter", help, "server", &values);
        }
        for (name, help, count) in [
            ("logins_total", "Logins at the auth server.", &self.logins),
            ("character_loads_total", "Characters loaded.", &self.loads),
            ("messages_ignored_total", "Messages that were ignored.", &self.ignored),
        ] {
            metrics.add(name, "counter", help, "", &[("", of(count))]);
        }
        let refused: Vec<_> =
            REFUSALS.iter().zip(&self.refused).map(|(why, count)| (*why, of(count))).collect();
        let help = "Logins that were refused.";
        metrics.add("refused_total", "counter", help, "reason", &refused);
        let denied: Vec<_> =
            STATUSES.iter().zip(&self.denied).map(|((_, why), count)| (*why, of(count))).collect();
        let help = "Requests about characters that were refused.";
        metrics.add("character_requests_refused_total", "counter", help, "status", &denied);
        let hellos: Vec<_> = HelloRefusal::ALL
            .iter()
            .zip(&self.hellos)
            .map(|(why, count)| (why.name(), of(count)))
            .collect();
        let help = "Hellos on the game channel that were refused.";
        metrics.add("hellos_refused_total", "counter", help, "reason", &hellos);
        metrics.into_text()
    }
}

/// The data behind the status page.
#[derive(Debug)]
pub(in crate::mxo) struct Page {
    pub(in crate::mxo) shared: Arc<Shared>,
    pub(in crate::mxo) realm: Realm,
    pub(in crate::mxo) logins: Arc<super::Logins>,
    /// The counters of the auth, margin and game listeners.
    pub(in crate::mxo) counts: [Arc<Counts>; 3],
    pub(in crate::mxo) open: bool,
}

/// The paths, for people who open the page in a browser.
const INDEX: &str = "\
GET  /status           players, accounts, objects and traffic, as JSON
GET  /metrics          metrics for Prometheus
GET  /health           ok, or 503 while the database does not accept changes
GET  /views/CHARACTER  what the client of a character should see, as JSON
POST /hold             pause the behaviour of objects for at most a minute
POST /go               resume it
";

/// The routes of the status page.
pub(in crate::mxo) fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .with_state(page)
}

async fn status(State(page): State<Arc<Page>>) -> Response {
    let Census { accounts, characters, sessions, loaded } = page.realm.census();
    let [.., game] = &page.counts;
    let mut json = crate::mxo::page::summary(&page.shared, game);
    let logins = json!({
        "online": true, "open": page.open, "players": page.shared.worlds.players(),
        "accounts": accounts, "characters": characters, "sessions": sessions, "loaded": loaded,
        "database": page::database(page.realm.is_failing()),
    });
    if let (Some(json), Some(logins)) = (json.as_object_mut(), logins.as_object()) {
        json.extend(logins.clone());
    }
    Json(json).into_response()
}

async fn metrics(State(page): State<Arc<Page>>) -> Response {
    page::metrics(page.logins.figures.prometheus(&page, page.realm.census()))
}

async fn health(State(page): State<Arc<Page>>) -> Response {
    page::health(Role::Active, page.realm.is_failing())
}
