//! Uru: the vault and the ages, as the messages of a capture show them.
//!
//! The capture is read once more, in the background, when a view is first requested.

mod ages;
mod report;
mod vault;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use axum::extract::{Path, Query, State as Extracted};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use worldwire_core::Side;
use worldwire_dissect::{Item, Scratch};

use self::ages::Ages;
use self::report::{NamedValue, Report, reports};
use self::vault::Vault;
use crate::error::Refusal;
use crate::recording::Progress;
use crate::state::State;

type Shared = Extracted<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The maximum number of nodes or objects that one request lists.
const MAX_LISTED: usize = 1000;

/// What a capture shows of an Uru shard.
#[derive(Debug, Default)]
pub(crate) struct UruWorld {
    progress: Arc<Progress>,
    is_complete: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    vault: Vault,
    ages: Ages,
}

/// The message that changed something.
#[derive(Clone, Copy, Debug)]
struct Moment {
    row: usize,
    /// Nanoseconds since 1970.
    time: i64,
    from: Side,
}

/// The facts that an item states.
struct Reported {
    stream: u64,
    time: i64,
    from: Side,
    reports: Vec<Report>,
}

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route("/api/uru/vault", get(vault))
        .route("/api/uru/vault/{id}", get(node))
        .route("/api/uru/ages", get(ages))
        .route("/api/uru/ages/{age}", get(objects))
        .route("/api/uru/ages/{age}/paths", get(paths))
        .route("/api/uru/ages/{age}/objects/{number}", get(object))
}

/// The views for messages with these names.
pub(super) fn views<'n>(
    names: impl Iterator<Item = (&'n str, &'n str)> + Clone,
) -> Vec<&'static str> {
    let has = |start: &str| {
        let mut names = names.clone();
        names.any(|(family, name)| family == "uru" && name.starts_with(start))
    };
    let vault = has("auth.VaultNode").then_some("vault");
    let ages = has("game.JoinAgeRequest") || has("game.PropagateBuffer");
    vault.into_iter().chain(ages.then_some("ages")).collect()
}

impl UruWorld {
    /// What has been seen so far. The first call starts reading the capture.
    fn of(state: &Arc<State>) -> Outcome<Arc<Self>> {
        let mut failure = None;
        let world = state.uru.get_or_init(|| {
            let world = Arc::new(Self::default());
            let (own, state) = (Arc::clone(&world), Arc::clone(state));
            let thread = thread::Builder::new().name("uru".to_owned());
            failure = thread.spawn(move || own.read(&state)).err();
            world
        });
        match failure {
            Some(error) => {
                Err(Refusal::failed(format!("cannot start a thread for the view: {error}")))
            }
            None => Ok(Arc::clone(world)),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, state: &State) {
        let show =
            |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Option<Box<Reported>>>| {
                let (stream, time, from) = (item.stamp.stream, item.stamp.time.0, item.from);
                let reports = reports(item, scratch);
                let reported = Reported { stream, time, from, reports };
                out.push((!reported.reports.is_empty()).then(|| Box::new(reported)));
            };
        let mut row = 0;
        let take = |found: &Vec<Option<Box<Reported>>>, _| {
            let mut seen = self.seen();
            for reported in found {
                if let Some(reported) = reported {
                    let Reported { stream, time, from, ref reports } = **reported;
                    let moment = Moment { row, time, from };
                    reports.iter().for_each(|report| seen.take(stream, report, moment));
                }
                row += 1;
            }
            match state.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let stops = || state.is_closed();
        let recording = &state.recording;
        recording.read(recording.dissection(), &self.progress, Some(&stops), show, take);
        self.is_complete.store(true, Ordering::Release);
    }

    fn status(&self, is_full: bool) -> Value {
        json!({
            "bytes": self.progress.bytes(),
            "complete": self.is_complete.load(Ordering::Acquire),
            "caught_up": self.progress.is_waiting(),
            "full": is_full,
        })
    }
}

impl Seen {
    fn take(&mut self, stream: u64, report: &Report, moment: Moment) {
        let Self { vault, ages } = self;
        match report {
            Report::Node { id, fields, is_whole } => {
                vault.change(*id, fields, *is_whole, moment);
                if let Some(name) = vault.player(*id) {
                    ages.player(*id, name);
                }
            }
            Report::NodeDeleted(id) => vault.delete(*id),
            Report::References(pairs) => {
                pairs.iter().for_each(|(parent, child)| vault.refer(*parent, *child));
            }
            Report::Unreferenced(parent, child) => vault.unrefer(*parent, *child),
            Report::AgeAsked { transaction, name } => ages.ask(stream, *transaction, name),
            Report::AgeFound { transaction, host } => ages.found(stream, *transaction, *host),
            Report::Joined { host } => ages.join(stream, *host),
            Report::Player { id, name } => ages.player(*id, name),
            Report::State { object, descriptor, variables, position } => {
                ages.change(stream, object, descriptor, variables, moment);
                if let Some(position) = position {
                    ages.moved(stream, object, *position, moment);
                }
            }
            Report::Moved { object, position } => ages.moved(stream, object, *position, moment),
        }
    }
}

impl NamedValue {
    fn same_name(&self, other: &Self) -> bool {
        self.name == other.name
    }

    /// An estimate of its memory.
    fn size(&self) -> usize {
        let game = self.game.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.name.len() + game + self.value.len()
    }
}

impl Moment {
    /// A change at this moment, as JSON.
    fn with(self, member: &str, value: Value) -> Value {
        let Self { row, time, from } = self;
        json!({ "row": row, "time": time.to_string(), "from": from.name(), member: value })
    }

    #[cfg(test)]
    fn test(row: usize) -> Self {
        Self { row, time: 0, from: Side::Server }
    }
}

/// The size of values; estimated.
fn size(of: &[NamedValue]) -> usize {
    of.iter().map(NamedValue::size).sum()
}

/// Named values as JSON.
fn values(of: &[NamedValue]) -> Value {
    let value = |field: &NamedValue| match &field.game {
        Some(game) => json!({ "name": field.name, "game": game, "value": field.value }),
        None => json!({ "name": field.name, "value": field.value }),
    };
    of.iter().map(value).collect()
}

#[derive(Debug, Deserialize)]
struct WantedNodes {
    parent: Option<u32>,
    #[serde(default)]
    search: String,
    #[serde(default)]
    start: usize,
    count: Option<usize>,
}

/// The children of a node, the nodes with a text, or all nodes without parents.
async fn vault(
    Extracted(state): Shared,
    Query(wanted): Query<WantedNodes>,
) -> Outcome<Json<Value>> {
    let list = move |state: &Arc<State>| {
        let world = UruWorld::of(state)?;
        let seen = world.seen();
        let vault = &seen.vault;
        let found = match (wanted.search.trim(), wanted.parent) {
            ("", None) => vault.roots(),
            ("", Some(parent)) => vault.children(parent),
            (text, _) => vault.search(text),
        };
        let count = wanted.count.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        let lines = found.iter().skip(wanted.start).take(count).map(|id| vault.line(*id));
        let (nodes, references, is_full) = vault.counts();
        Ok(json!({
            "total": found.len(),
            "start": wanted.start,
            "nodes": lines.collect::<Value>(),
            "known": { "nodes": nodes, "references": references },
            "status": world.status(is_full),
        }))
    };
    Ok(Json(state.busy(list).await?))
}

async fn node(Extracted(state): Shared, Path(id): Path<u32>) -> Outcome<Json<Value>> {
    let show = move |state: &Arc<State>| {
        let found = UruWorld::of(state)?.seen().vault.detail(id);
        found.ok_or_else(|| Refusal::missing(format!("no message contains vault node {id}")))
    };
    Ok(Json(state.busy(show).await?))
}

async fn ages(Extracted(state): Shared) -> Outcome<Json<Value>> {
    let list = |state: &Arc<State>| {
        let world = UruWorld::of(state)?;
        let seen = world.seen();
        Ok(json!({ "ages": seen.ages.list(), "status": world.status(seen.ages.is_full()) }))
    };
    Ok(Json(state.busy(list).await?))
}

fn no_age(age: u32) -> Refusal {
    Refusal::missing(format!("no message mentions age {age}"))
}

#[derive(Debug, Deserialize)]
struct WantedObjects {
    #[serde(default)]
    start: usize,
    count: Option<usize>,
}

async fn objects(
    Extracted(state): Shared,
    Path(age): Path<u32>,
    Query(wanted): Query<WantedObjects>,
) -> Outcome<Json<Value>> {
    let list = move |state: &Arc<State>| {
        let count = wanted.count.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        let found = UruWorld::of(state)?.seen().ages.objects(age, wanted.start, count);
        found.ok_or_else(|| no_age(age))
    };
    Ok(Json(state.busy(list).await?))
}

async fn object(
    Extracted(state): Shared,
    Path((age, number)): Path<(u32, usize)>,
) -> Outcome<Json<Value>> {
    let show = move |state: &Arc<State>| {
        let found = UruWorld::of(state)?.seen().ages.object(age, number);
        found.ok_or_else(|| Refusal::missing(format!("no object {number} in age {age}")))
    };
    Ok(Json(state.busy(show).await?))
}

async fn paths(Extracted(state): Shared, Path(age): Path<u32>) -> Outcome<Json<Value>> {
    let list = move |state: &Arc<State>| {
        UruWorld::of(state)?.seen().ages.paths(age).ok_or_else(|| no_age(age))
    };
    Ok(Json(state.busy(list).await?))
}
