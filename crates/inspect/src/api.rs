//! The JSON API. `docs/inspect.md` documents it.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{self, DefaultBodyLimit, Path, Query};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversations;
use crate::error::Refusal;
use crate::events;
use crate::export;
use crate::index::{Index, Row, RowKind};
use crate::live;
use crate::message::message;
use crate::notes::{MAX_FILE, NoteList, Tag};
use crate::page;
use crate::selection::{Chosen, Search, Selection};
use crate::state::State;
use crate::timeline::{Period, Timeline, timeline};
use crate::worlds::{self, ArchiveSummary};

type Shared = extract::State<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The maximum number of rows that one request lists.
const MAX_ROWS: usize = 1000;
/// The maximum length of a filter or search in bytes, as for all filters.
const MAX_FILTER: usize = 65_536;

pub(crate) fn router(state: Arc<State>) -> Router {
    Router::new()
        .merge(page::router())
        .route("/api/capture", get(capture))
        .route("/api/conversations", get(list_conversations))
        .route("/api/rows", get(rows))
        .route("/api/position", get(position))
        .route("/api/selections", post(select))
        .route("/api/selections/{id}", get(selection).delete(drop_selection))
        .route("/api/messages/{row}", get(one_message))
        .route("/api/timeline", get(rates))
        .route("/api/suggestions", get(suggest))
        .route(
            "/api/notes",
            get(read_notes).put(write_notes).layer(DefaultBodyLimit::max(MAX_FILE)),
        )
        .route("/api/export/{format}", get(export::export))
        .route("/api/events", get(events::open))
        .merge(live::router())
        .merge(worlds::router())
        .fallback(async || {
            Refusal::missing("no such page; the API is documented in docs/inspect.md")
        })
        .layer(map_response(as_json))
        .with_state(state)
}

/// Converts errors from the web framework, such as those about unreadable numbers, to the API's
/// form.
async fn as_json(response: Response) -> Response {
    /// The maximum length of an error; the framework's errors are short.
    const MAX_TEXT: usize = 4_096;
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    if status.as_u16() < 400 || kind.is_some_and(|it| it == "application/json") {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), MAX_TEXT).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let reason = status.canonical_reason().unwrap_or("error");
    Refusal::new(status, if text.is_empty() { reason } else { &text }).into_response()
}

/// The state of the capture.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct CaptureStatus {
    /// The version of the API.
    api: u32,
    file: String,
    /// The size of the file and how much of it has been read.
    size: u64,
    bytes: u64,
    complete: bool,
    /// Whether rows are added when the file grows and whether all rows so far are present.
    following: bool,
    caught_up: bool,
    /// Whether another program has changed the file since.
    changed: bool,
    /// The running program that is watched, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'static str>,
    /// The names of the world views that the page can show.
    views: Vec<&'static str>,
    /// The archive that is shown instead of a capture, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<ArchiveSummary>,
    rows: usize,
    conversations: usize,
    problems: u64,
    warnings: u64,
    /// The number of gaps in all conversations, and of those without a row because nothing was
    /// decoded.
    gaps: u64,
    gaps_without_rows: u64,
    /// The options with which `worldwire encode` uses the same definitions, for a shell.
    options: String,
    /// Times of the first packet and the last row, in nanoseconds since 1970, as text.
    first: Option<String>,
    last: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The state of the capture now.
pub(crate) fn status(state: &State) -> CaptureStatus {
    let recording = &state.recording;
    let views = worlds::views(state);
    let file = match &state.archive {
        Some(archive) => archive.name().to_owned(),
        None => recording.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let index = state.index();
    let (first, last) = index.span().map(|(a, b)| (a.to_string(), b.to_string())).unzip();
    CaptureStatus {
        api: 1,
        file,
        size: recording.length(),
        bytes: state.progress.bytes(),
        complete: index.is_complete,
        following: recording.is_followed() && !index.is_complete,
        caught_up: state.progress.is_waiting(),
        changed: recording.is_changed(),
        live: state.live.as_ref().map(|live| live.kind()),
        views,
        archive: state.archive.as_deref().map(ArchiveSummary::of),
        rows: index.len(),
        conversations: index.conversations.len(),
        problems: index.problems,
        warnings: index.warnings,
        gaps: index.gaps.max(index.conversations.gaps()),
        gaps_without_rows: index.conversations.gaps().saturating_sub(index.gaps),
        options: state.options.clone(),
        first,
        last,
        error: index.fault.clone(),
    }
}

async fn capture(extract::State(state): Shared) -> Json<CaptureStatus> {
    Json(status(&state))
}

#[derive(Debug, Deserialize)]
struct Slice {
    #[serde(default)]
    start: usize,
    count: Option<usize>,
    selection: Option<u64>,
}

async fn list_conversations(
    extract::State(state): Shared,
    Query(slice): Query<Slice>,
) -> Outcome<Json<Value>> {
    let count = slice.count.unwrap_or(conversations::MAX_LISTED);
    let listed = state.busy(move |state| {
        let index = state.index();
        let listed = conversations::list(&index, slice.start, count);
        Ok(json!({ "total": index.conversations.len(), "conversations": listed }))
    });
    Ok(Json(listed.await?))
}

/// A row as clients see it.
#[derive(Debug, Serialize)]
struct ShownRow<'i> {
    row: usize,
    /// Nanoseconds since 1970, as text.
    time: String,
    packet: u32,
    stream: u32,
    family: &'static str,
    from: &'static str,
    name: &'i str,
    kind: RowKind,
    length: u32,
    problem: bool,
    info: String,
}

impl<'i> ShownRow<'i> {
    fn new(index: &'i Index, number: usize, row: &Row) -> Self {
        Self {
            row: number,
            time: row.time.to_string(),
            packet: row.packet,
            stream: row.stream,
            family: index.family(row),
            from: row.from().name(),
            name: index.name(row),
            kind: row.kind,
            length: row.length,
            problem: row.is_problem(),
            info: index.text(number),
        }
    }
}

async fn rows(extract::State(state): Shared, Query(slice): Query<Slice>) -> Outcome<Json<Value>> {
    let count = slice.count.unwrap_or(100).min(MAX_ROWS);
    let chosen = slice.selection.map(|id| state.selections.get(id)).transpose()?;
    let (total, numbers): (usize, Vec<usize>) = match &chosen {
        None => {
            let total = state.index().len();
            (
                total,
                (slice.start.min(total)..slice.start.saturating_add(count).min(total)).collect(),
            )
        }
        Some(selection) => {
            let rows = selection.rows();
            let part = rows.get(slice.start.min(rows.len())..).unwrap_or_default();
            let numbers: Vec<usize> = part.iter().take(count).map(|row| *row as usize).collect();
            (rows.len(), numbers)
        }
    };
    let index = state.index();
    let shown = numbers.into_iter().filter_map(|number: usize| {
        index.row(number).map(|row| ShownRow::new(&index, number, row))
    });
    let shown: Vec<_> = shown.collect();
    Ok(Json(json!({ "total": total, "start": slice.start, "rows": shown })))
}

#[derive(Debug, Deserialize)]
struct Wanted {
    selection: Option<u64>,
    /// The number of a row.
    row: Option<usize>,
    /// Nanoseconds since 1970.
    time: Option<i64>,
}

/// The position of the first row at or after the given one.
async fn position(
    extract::State(state): Shared,
    Query(wanted): Query<Wanted>,
) -> Outcome<Json<Value>> {
    let chosen = wanted.selection.map(|id| state.selections.get(id)).transpose()?;
    let find = move |state: &Arc<State>| {
        let index = state.index();
        let number = match (wanted.row, wanted.time) {
            (Some(row), None) => row,
            // Times can go backwards, so a binary search is not possible.
            (None, Some(time)) => {
                let mut rows = index.rows_from(0);
                rows.position(|row| row.time >= time).unwrap_or(index.len())
            }
            _ => return Err(Refusal::bad("needs either `row` or `time`")),
        };
        let (position, row) = match &chosen {
            None => (number, (number < index.len()).then_some(number)),
            Some(selection) => {
                let rows = selection.rows();
                let position = rows.partition_point(|row| (*row as usize) < number);
                (position, rows.get(position).map(|row| *row as usize))
            }
        };
        Ok(json!({ "position": position, "row": row }))
    };
    Ok(Json(state.busy(find).await?))
}

/// Refuses a body that is too long or is not the expected JSON.
pub(crate) fn unreadable(error: &JsonRejection) -> Refusal {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(error.status(), error.body_text()),
        _ => Refusal::bad(error.body_text()),
    }
}

/// What to select.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Request {
    filter: String,
    search: String,
    /// Whether the search is case-sensitive.
    match_case: bool,
    stream: Option<u64>,
}

async fn select(
    extract::State(state): Shared,
    request: Result<Json<Request>, JsonRejection>,
) -> Outcome<Response> {
    let Json(request) = request.map_err(|error| unreadable(&error))?;
    if request.filter.len() + request.search.len() > MAX_FILTER {
        return Err(Refusal::bad(format!("a filter can have at most {MAX_FILTER} bytes")));
    }
    // Resolving a filter collects the names of all definitions.
    let begin = move |state: &Arc<State>| {
        let Request { filter, search, match_case, stream } = &request;
        let search = Search { text: search, match_case: *match_case };
        let chosen = Chosen::parse(state, *stream, filter, search)?;
        let selection = state.selections.start(state, chosen)?;
        Ok(selection.status())
    };
    let status = state.busy(begin).await?;
    Ok((StatusCode::CREATED, Json(status)).into_response())
}

async fn selection(extract::State(state): Shared, Path(id): Path<u64>) -> Outcome<Response> {
    Ok(Json(state.selections.get(id)?.status()).into_response())
}

async fn drop_selection(extract::State(state): Shared, Path(id): Path<u64>) -> StatusCode {
    state.selections.remove(id);
    StatusCode::NO_CONTENT
}

async fn one_message(extract::State(state): Shared, Path(row): Path<usize>) -> Outcome<Response> {
    let json = state.busy(move |state| message(state, row)).await?;
    Ok(([(CONTENT_TYPE, "application/json")], json.to_string()).into_response())
}

#[derive(Debug, Deserialize)]
struct WantedPeriod {
    selection: Option<u64>,
    from: Option<i64>,
    to: Option<i64>,
    buckets: Option<usize>,
}

async fn rates(
    extract::State(state): Shared,
    Query(wanted): Query<WantedPeriod>,
) -> Outcome<Json<Timeline>> {
    let WantedPeriod { selection, from, to, buckets } = wanted;
    let chosen = selection.map(|id| state.selections.get(id)).transpose()?;
    let period = Period { from, to, buckets: buckets.unwrap_or(200) };
    let count = move |state: &Arc<State>| {
        let index = state.index();
        let rows = chosen.as_deref().map(Selection::rows);
        Ok(timeline(&index, rows.as_ref().map(|rows| rows.as_slice()), period))
    };
    Ok(Json(state.busy(count).await?))
}

#[derive(Debug, Deserialize)]
struct Typed {
    text: String,
    cursor: Option<usize>,
}

async fn suggest(extract::State(state): Shared, Query(typed): Query<Typed>) -> Outcome<Response> {
    let complete = move |state: &Arc<State>| {
        let index = state.index();
        let seen: Vec<&str> = index.names().iter().map(|name| name.name.as_str()).collect();
        let definitions = state.recording.definitions();
        let cursor = typed.cursor.unwrap_or(usize::MAX);
        Ok(state.vocabulary.complete(definitions, &seen, &typed.text, cursor))
    };
    Ok(Json(state.busy(complete).await?).into_response())
}

async fn read_notes(extract::State(state): Shared) -> Outcome<Response> {
    let read = |state: &Arc<State>| {
        let (mut list, tag) = state.notes.read()?;
        let index = state.index();
        let notes = list.notes.iter_mut().filter(|note| !note.name.is_empty());
        index.locate(notes.map(|note| (&mut note.row, note.packet, &*note.name)));
        Ok((list, tag))
    };
    let (list, Tag(tag)) = state.busy(read).await?;
    Ok(([(ETAG, tag)], Json(list)).into_response())
}

async fn write_notes(
    extract::State(state): Shared,
    headers: HeaderMap,
    list: Result<Json<NoteList>, JsonRejection>,
) -> Outcome<Response> {
    let Json(list) = list.map_err(|error| unreadable(&error))?;
    // A header that cannot be read matches nothing.
    let known = headers.get(IF_MATCH).map(|tag| tag.to_str().unwrap_or_default().to_owned());
    let write = move |state: &Arc<State>| state.notes.write(&list, known.as_deref());
    let Tag(tag) = state.busy(write).await?;
    Ok((StatusCode::NO_CONTENT, [(ETAG, tag)]).into_response())
}
