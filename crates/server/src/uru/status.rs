//! The status page: plain HTTP for launchers, operators and monitoring.
//!
//! | path | content |
//! | --- | --- |
//! | `/status` | JSON: `online`, `open` (to all players), `welcome`, the running `games`, `database`: `ok` or `failing`, and `role`: `active`, `front`, `age`, or `inactive` while another process may have taken over; see [`Standby`](super::Standby) for its page |
//! | `/welcome`, `/serverstatus/moullive.php`, `/serverstatus/moulbeta.php` | text for players |
//! | `/metrics` | metrics in the Prometheus text format |
//! | `/health` | `ok`, or 503 while the database does not accept changes, another process may have taken over, or a front or age node cannot reach the process that has the vault, or is drained |

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::json;
use worldwire_net::Counts;

use super::cluster::LeaderHandle;
use super::config::Settings;
use super::figures::Figures;
use super::game::{Games, RunningGame};
use super::vault::Vault;
use crate::page::{self, Role, unix};

/// The longest text that the client can show when it starts, in bytes.
const MAX_CLIENT_BYTES: usize = 255;

/// The data behind the status page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) settings: Settings,
    pub(super) figures: Arc<Figures>,
    pub(super) counts: Arc<Counts>,
    pub(super) vault: Vault,
    pub(super) games: Games,
    /// Whether this process serves logins and files.
    pub(super) is_front: bool,
    /// The leader of a cluster, if this process can lead one.
    pub(super) leader: Option<LeaderHandle>,
}

impl Page {
    /// Whether all players may log in.
    fn is_open(&self) -> bool {
        match self.vault.link() {
            // It is the leader that refuses players.
            Some(_) => !self.settings.current().auth.restricted,
            None => !self.vault.is_restricted(),
        }
    }

    /// The message that launchers show.
    fn welcome(&self) -> String {
        self.settings.current().welcome.clone()
    }

    fn role(&self) -> Role {
        match self.vault.link() {
            Some(_) if self.is_front => Role::Front,
            Some(_) => Role::AgeNode,
            None => Role::serving(self.vault.inactive_since()),
        }
    }
}

/// The routes of the status page.
pub(super) fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/welcome", get(welcome))
        .route("/serverstatus/moullive.php", any(welcome))
        .route("/serverstatus/moulbeta.php", any(welcome))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .with_state(page)
}

async fn status(State(page): State<Arc<Page>>) -> Response {
    let (open, welcome) = (page.is_open(), page.welcome());
    let games: Vec<_> = page.games.running_games().iter().map(game).collect();
    let (role, database) = (page.role(), page::database(page.vault.is_failing()));
    let status = json!({
        "online": !matches!(role, Role::Inactive(_)), "open": open, "welcome": welcome, "games": games,
        "database": database, "role": role.name(),
    });
    Json(status).into_response()
}

/// A running game, without the names of its players.
fn game(game: &RunningGame) -> serde_json::Value {
    json!({
        "id": game.id,
        "game": game.game_type.name(),
        "age": game.filename,
        "instance": game.instance.to_string(),
        "players": game.players.len(),
        "since": unix(game.since),
    })
}

async fn welcome(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response {
    let is_client = headers.get(USER_AGENT).is_some_and(|agent| {
        agent.as_bytes().get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"UruClient"))
    });
    match is_client {
        true => {
            let kind = [(CONTENT_TYPE, "text/plain; charset=windows-1252")];
            (kind, windows_1252(&page.welcome())).into_response()
        }
        false => page.welcome().into_response(),
    }
}

async fn health(State(page): State<Arc<Page>>) -> Response {
    if page.counts.is_failing() {
        return page::cannot_accept();
    }
    let problem = match page.vault.link() {
        // This makes load balancers send clients elsewhere.
        Some(link) if *link.draining().borrow() => "draining\n".to_owned(),
        Some(link) => match link.refusal() {
            Some(refusal) => format!("the leader does not admit this process: {refusal}\n"),
            None if link.is_member() && link.is_failing() => {
                "the leader's database does not accept changes; see the leader's log\n".to_owned()
            }
            None => return page::health(page.role(), page.vault.is_failing()),
        },
        None => return page::health(page.role(), page.vault.is_failing()),
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
}

async fn metrics(State(page): State<Arc<Page>>) -> Response {
    let state = [
        ("active", page.role().is_active(), page::ACTIVE),
        ("open", page.is_open(), "Whether all players may log in: 1 or 0."),
        ("database_up", !page.vault.is_failing(), page::DATABASE_UP),
    ];
    let mut metrics = page.figures.prometheus(&page.counts, &page.games.figures(), state);
    let routed = page.games.routed_bytes();
    match (page.vault.link(), &page.leader) {
        (Some(link), _) => link.traffic().add_to(&mut metrics, None, routed),
        (None, Some(leader)) if leader.leads() => {
            leader.traffic().add_to(&mut metrics, Some(&leader.members().await), routed);
        }
        _ => {}
    }
    page::metrics(metrics.into_text())
}

/// Encodes a text for the client, which displays it as Windows-1252.
fn windows_1252(text: &str) -> Vec<u8> {
    text.chars().map(|c| one_byte(c).unwrap_or(b'?')).take(MAX_CLIENT_BYTES).collect()
}

/// The characters 0x80 to 0x9f of Windows-1252; 0 for codes without a character.
const HIGH: [char; 32] = [
    '\u{20ac}', '\0', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\0', '\u{17d}', '\0', '\0',
    '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}',
    '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\0', '\u{17e}', '\u{178}',
];

fn one_byte(c: char) -> Option<u8> {
    match u8::try_from(u32::from(c)) {
        Ok(byte) if !(0x80..0xa0).contains(&byte) => Some(byte),
        _ => {
            let at = HIGH.iter().position(|high| *high == c && c != '\0')?;
            u8::try_from(at + 0x80).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_windows_1252() {
        assert_eq!(
            windows_1252("D\u{2019}ni \u{e9}\u{20ac} \u{4e00}\u{81}"),
            b"D\x92ni \xe9\x80 ??"
        );
        assert_eq!(windows_1252(&"x".repeat(300)).len(), 255);
    }
}
