//! TERA after a patch: the opcodes without a name, the definitions that fit them, and a map with
//! the names that the user accepts.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::rejection::JsonRejection;
use axum::extract::{self, Path, Query};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worldwire_core::value::push_hex;
use worldwire_core::{Limits, Reader, Side, Tree};
use worldwire_dissect::{Item, Overview, Scratch};
use worldwire_tera::file::CodeMap;
use worldwire_tera::frame::Header;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::packet::Packets;
use worldwire_tera::rank::{Candidate, Ranking};
use worldwire_tera::schema::Definition;

use super::latest::Latest;
use crate::api::unreadable;
use crate::detail;
use crate::error::Refusal;
use crate::state::State;

type Shared = extract::State<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The family and the name of its view.
pub(super) const FAMILY: &str = "tera";
/// The maximum number of opcodes that are listed: those with the most messages.
const MAX_OPCODES: usize = 2_048;
/// The maximum number of builds. Messages of further builds are not listed.
const MAX_BUILDS: usize = 16;
/// The maximum number of messages tried per opcode, as for `worldwire tera def rank`.
const MAX_MESSAGES: usize = 1_000;
/// The maximum size of these messages: every definition is tried on all of them.
const MAX_TRIED_BYTES: usize = 1 << 20;
/// The maximum size of the messages kept for all opcodes.
const MAX_BYTES: usize = 32 << 20;
/// The maximum number of pairs of an opcode and a message before or after it.
const MAX_PAIRS: usize = 1 << 20;
/// The maximum number of messages listed before and after an opcode.
const MAX_NEIGHBOURS: usize = 3;
/// The maximum number of candidates in one response.
const MAX_CANDIDATES: usize = 50;

/// The most recently found unknown opcodes.
pub(crate) type Board = Latest<Unknown>;

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route("/api/tera/opcodes", get(opcodes))
        .route("/api/tera/opcodes/{opcode}", get(candidates))
        .route("/api/tera/opcodes/{opcode}/layout", get(layout))
        .route("/api/tera/map", post(map))
}

/// All messages without a name.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    /// The messages of each build; no two builds have the same revision.
    builds: Vec<Arc<Packets>>,
    /// The unknown opcodes, by build and opcode.
    found: BTreeMap<(usize, u16), Found>,
    /// The number of TERA messages, with a name or without.
    messages: u64,
    bytes: usize,
    pairs: usize,
    /// Responses about candidates, which take a while to compute.
    ranked: Mutex<HashMap<(usize, u16, usize), Arc<str>>>,
}

/// The messages of one opcode.
#[derive(Debug, Default)]
struct Found {
    /// The number that each side sent, by [`Side::index`].
    counts: [u64; 2],
    lengths: Option<(usize, usize)>,
    /// The first messages and their size.
    kept: Vec<Kept>,
    bytes: usize,
    /// The row of the first message.
    row: usize,
    before: BTreeMap<u16, u64>,
    after: BTreeMap<u16, u64>,
}

#[derive(Debug)]
struct Kept {
    row: usize,
    stream: u64,
    from: Side,
    bytes: Box<[u8]>,
}

/// What the board needs from an item.
#[derive(Debug)]
enum Seen {
    /// Anything but a TERA message.
    Other,
    Message {
        stream: u64,
        opcode: u16,
        unknown: Option<(Arc<Packets>, Side, Box<[u8]>)>,
    },
}

impl Seen {
    fn of(item: &Item<'_>) -> Self {
        let is_message = item.message().is_some_and(|message| message.is_message());
        let packets = item.knowledge::<Arc<Packets>>().filter(|_| is_message);
        let header = Header::peek(item.bytes()).ok().flatten();
        let (Some(packets), Some(Header { opcode, .. })) = (packets, header) else {
            return Self::Other;
        };
        let is_unknown = packets.get(opcode).is_none();
        let unknown = is_unknown.then(|| (Arc::clone(packets), item.from, item.bytes().into()));
        Self::Message { stream: item.stamp.stream, opcode, unknown }
    }
}

impl Unknown {
    /// Reads the capture.
    fn read(state: &State) -> Self {
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Seen>| {
            out.push(Seen::of(item));
        };
        let mut unknown = Self::default();
        // The last message of each conversation, and its build if it has no name.
        let mut last: HashMap<u64, (u16, Option<usize>)> = HashMap::new();
        let mut row = 0;
        let take = |seen: &Vec<Seen>, closed: Vec<Overview>| {
            for overview in closed {
                last.remove(&overview.stream);
            }
            for seen in seen {
                unknown.push(row, seen, &mut last);
                row += 1;
            }
            match state.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let recording = &state.recording;
        recording.read(recording.dissection(), &Arc::default(), None, show, take);
        unknown
    }

    fn push(&mut self, row: usize, seen: &Seen, last: &mut HashMap<u64, (u16, Option<usize>)>) {
        let Seen::Message { stream, opcode, unknown } = seen else { return };
        self.messages += 1;
        let build = unknown.as_ref().and_then(|(packets, ..)| self.build(packets));
        let before = last.insert(*stream, (*opcode, build));
        if let Some((before, Some(build))) = before
            && let Some(found) = self.found.get_mut(&(build, before))
        {
            count(&mut found.after, *opcode, &mut self.pairs);
        }
        let (Some(build), Some((_, from, bytes))) = (build, unknown) else { return };
        let new = || Found { row, ..Found::default() };
        let found = self.found.entry((build, *opcode)).or_insert_with(new);
        found.counts[from.index()] += 1;
        let (shortest, longest) = found.lengths.unwrap_or((usize::MAX, 0));
        found.lengths = Some((shortest.min(bytes.len()), longest.max(bytes.len())));
        let has_room = found.kept.len() < MAX_MESSAGES
            && found.bytes + bytes.len() <= MAX_TRIED_BYTES
            && self.bytes + bytes.len() <= MAX_BYTES;
        if has_room {
            found.bytes += bytes.len();
            self.bytes += bytes.len();
            let (stream, from, bytes) = (*stream, *from, bytes.clone());
            found.kept.push(Kept { row, stream, from, bytes });
        }
        if let Some((before, _)) = before {
            count(&mut found.before, before, &mut self.pairs);
        }
    }

    /// The index of a build; `None` if there are too many.
    fn build(&mut self, packets: &Arc<Packets>) -> Option<usize> {
        let revision = packets.known().revision;
        let known = self.builds.iter().position(|own| own.known().revision == revision);
        if known.is_none() && self.builds.len() < MAX_BUILDS {
            self.builds.push(Arc::clone(packets));
            return Some(self.builds.len() - 1);
        }
        known
    }

    /// The messages of an opcode and their build.
    fn of(&self, build: usize, opcode: u16) -> Outcome<(&Found, &Packets)> {
        let found = self.found.get(&(build, opcode)).zip(self.builds.get(build));
        let found = found.map(|(found, packets)| (found, &**packets));
        found.ok_or_else(|| {
            Refusal::missing(format!(
                "opcode {opcode} is not among the unknown opcodes of build {build} in this capture"
            ))
        })
    }

    /// The list of all opcodes, most messages first.
    fn list(&self) -> Value {
        let mut listed: Vec<_> = self.found.iter().collect();
        let messages = |found: &Found| found.counts.iter().sum::<u64>();
        listed.sort_by_key(|(key, found)| (core::cmp::Reverse(messages(found)), **key));
        listed.truncate(MAX_OPCODES);
        let opcodes = listed.into_iter().filter_map(|((build, opcode), found)| {
            let packets = self.builds.get(*build)?;
            let (shortest, longest) = found.lengths?;
            Some(json!({
                "build": build, "opcode": opcode, "messages": found.counts,
                "shortest": shortest, "longest": longest, "row": found.row,
                "before": most(&found.before, packets), "after": most(&found.after, packets),
            }))
        });
        let opcodes: Vec<Value> = opcodes.collect();
        let builds = self.builds.iter().map(|packets| {
            json!({
                "revision": packets.known().revision,
                "patch": packets.patch().map(|patch| patch.to_string()),
                "has_map": packets.has_map(), "definitions": packets.definitions().len(),
            })
        });
        let builds: Vec<Value> = builds.collect();
        json!({
            "messages": self.messages, "builds": builds,
            "total": self.found.len(), "opcodes": opcodes,
        })
    }

    /// The definitions that fit an opcode, best first, as JSON.
    fn candidates(
        &self,
        state: &State,
        (build, opcode): (usize, u16),
        top: usize,
    ) -> Outcome<Arc<str>> {
        let key = (build, opcode, top);
        let ranked = || self.ranked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = ranked().get(&key) {
            return Ok(Arc::clone(known));
        }
        let (found, packets) = self.of(build, opcode)?;
        let mut ranking = Ranking::of(packets);
        for Kept { stream, from, bytes, .. } in &found.kept {
            if state.is_closed() {
                return Err(Refusal::failed("the program is shutting down"));
            }
            ranking.push(*stream, *from, bytes);
        }
        let candidates = ranking.finish();
        let shown = candidates.iter().take(top).map(|it| shown(it, opcode, packets));
        let shown: Vec<Shown<'_>> = shown.collect();
        let samples: Vec<_> = found.kept.iter().map(|kept| (kept.row, kept.bytes.len())).collect();
        let answer = json!({
            "build": build, "opcode": opcode, "tried": found.kept.len(),
            "messages": found.counts, "total": candidates.len(), "candidates": shown,
            "tied": tied(&candidates), "samples": samples,
        });
        let answer: Arc<str> = answer.to_string().into();
        let mut known = ranked();
        if known.len() < MAX_OPCODES {
            known.insert(key, Arc::clone(&answer));
        }
        Ok(answer)
    }
}

fn count(pairs: &mut BTreeMap<u16, u64>, opcode: u16, all: &mut usize) {
    if let Some(count) = pairs.get_mut(&opcode) {
        *count += 1;
    } else if *all < MAX_PAIRS {
        *all += 1;
        pairs.insert(opcode, 1);
    }
}

/// The most frequent neighbours.
fn most(pairs: &BTreeMap<u16, u64>, packets: &Packets) -> Vec<Value> {
    let mut sorted: Vec<_> = pairs.iter().collect();
    sorted.sort_by_key(|(opcode, count)| (core::cmp::Reverse(**count), **opcode));
    let named = sorted.into_iter().take(MAX_NEIGHBOURS).map(|(opcode, count)| {
        let name = packets.get(*opcode).map_or_else(|| opcode.to_string(), |it| it.name.to_owned());
        json!({ "name": name, "messages": count })
    });
    named.collect()
}

/// A candidate, in the form of `worldwire tera def rank --json`.
#[derive(Debug, Serialize)]
struct Shown<'p> {
    title: &'p str,
    name: &'p str,
    version: u32,
    score: f64,
    fits: u64,
    clean: u64,
    header: usize,
    /// The opcode that the map has for the name.
    mapped: Option<u16>,
    notes: BTreeMap<&'static str, u64>,
    error: Option<String>,
}

fn shown<'p>(candidate: &Candidate<'p>, opcode: u16, packets: &Packets) -> Shown<'p> {
    let definition = candidate.definition;
    Shown {
        title: definition.title(),
        name: definition.name(),
        version: definition.version(),
        score: candidate.shown_score(),
        fits: candidate.fits,
        clean: candidate.clean,
        header: candidate.form.bytes(),
        mapped: packets.opcode(definition.name()).filter(|other| *other != opcode),
        notes: candidate.notes.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        error: candidate.error.clone(),
    }
}

/// The names that nothing in the messages distinguishes from the best one; empty without a tie.
fn tied<'p>(candidates: &[Candidate<'p>]) -> Vec<&'p str> {
    let Some(best) = candidates.first() else { return Vec::new() };
    let close = candidates.iter().filter(|one| one.ties_with(best));
    let mut names: Vec<&str> = close.map(|one| one.definition.name()).collect();
    names.dedup();
    if names.len() > 1 { names } else { Vec::new() }
}

async fn opcodes(extract::State(state): Shared) -> Outcome<Json<Value>> {
    let unknown = state.tera.current(&state, Unknown::read).await?;
    Ok(Json(state.busy(move |_| Ok(unknown.list())).await?))
}

#[derive(Debug, Deserialize)]
struct Wanted {
    #[serde(default)]
    build: usize,
    top: Option<usize>,
}

async fn candidates(
    extract::State(state): Shared,
    Path(opcode): Path<u16>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Response> {
    let unknown = state.tera.known(&state, Unknown::read).await?;
    let top = wanted.top.unwrap_or(10).min(MAX_CANDIDATES);
    let rank = move |state: &Arc<State>| unknown.candidates(state, (wanted.build, opcode), top);
    let answer = state.busy(rank).await?;
    Ok(([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response())
}

#[derive(Debug, Deserialize)]
struct WantedLayout {
    #[serde(default)]
    build: usize,
    /// The definition's name and version.
    definition: String,
    /// The bytes of the header: 4, or 12 with counter and checksum.
    header: usize,
    /// The row of the message.
    row: usize,
}

async fn layout(
    extract::State(state): Shared,
    Path(opcode): Path<u16>,
    Query(wanted): Query<WantedLayout>,
) -> Outcome<Json<Value>> {
    let unknown = state.tera.known(&state, Unknown::read).await?;
    let decode = move |_: &Arc<State>| {
        let WantedLayout { build, definition: title, header, row } = &wanted;
        let (found, packets) = unknown.of(*build, opcode)?;
        let kept = found.kept.iter().find(|kept| kept.row == *row).ok_or_else(|| {
            Refusal::missing(format!("row {row} is not among the messages tried for {opcode}"))
        })?;
        let definition = definition(packets, title)?;
        let forms = [HeaderForm::Plain, HeaderForm::Integrity];
        let form = forms.into_iter().find(|form| form.bytes() == *header);
        let form = form.ok_or_else(|| Refusal::bad("`header` must be 4 or 12"))?;
        Ok(decoded(definition, form, &kept.bytes, packets))
    };
    Ok(Json(state.busy(decode).await?))
}

/// The definition with this name and version.
fn definition<'p>(packets: &'p Packets, title: &str) -> Outcome<&'p Definition> {
    let named = title.rsplit_once('.').and_then(|(name, version)| {
        let version: u32 = version.parse().ok()?;
        packets.versions(name).iter().find(|one| one.version() == version)
    });
    named.ok_or_else(|| Refusal::missing(format!("no definition {title}")))
}

/// A message decoded by a definition.
fn decoded(definition: &Definition, form: HeaderForm, bytes: &[u8], packets: &Packets) -> Value {
    let limits = Limits::DEFAULT;
    let mut reader = Reader::traced_within("message", bytes, Tree::new(), &limits).opening(packets);
    let outcome = reader.record("fields", |reader| definition.plan().decode(reader, form));
    let notes = outcome.as_ref().map(|notes| {
        notes.list().iter().map(|note| (note.kind.name(), note.at)).collect::<Vec<_>>()
    });
    let notes = notes.unwrap_or_default();
    let tree = reader.conclude(outcome).0;
    let mut digits = String::new();
    push_hex(&mut digits, bytes);
    json!({
        "definition": definition.title(), "header": form.bytes(), "bytes": digits,
        "nodes": detail::nodes(&tree), "node_count": tree.len(),
        "error": tree.error().map(ToString::to_string), "notes": notes,
    })
}

/// Names for opcodes of a build.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    #[serde(default)]
    build: usize,
    names: BTreeMap<u16, String>,
}

/// The map of a build with additional names.
async fn map(
    extract::State(state): Shared,
    accepted: Result<Json<Accepted>, JsonRejection>,
) -> Outcome<Json<Value>> {
    let Json(Accepted { build, names }) = accepted.map_err(|error| unreadable(&error))?;
    let unknown = state.tera.known(&state, Unknown::read).await?;
    let merge = move |_: &Arc<State>| {
        let packets = unknown.builds.get(build);
        let packets =
            packets.ok_or_else(|| Refusal::missing(format!("no build {build} in this capture")))?;
        let known = packets.names().iter();
        let known = known.filter_map(|(opcode, name)| Some((name, u32::try_from(opcode).ok()?)));
        let known = CodeMap::from_pairs(known);
        let added = names.iter().map(|(opcode, name)| (&**name, u32::from(*opcode)));
        let (map, problems) = CodeMap::from_pairs_noting(known.iter().chain(added));
        if let Some(problem) = problems.first() {
            return Err(Refusal::bad(problem));
        }
        let revision = packets.known().revision;
        let revision = revision.map_or_else(|| "REVISION".to_owned(), |it| it.to_string());
        Ok(json!({ "file": format!("protocol.{revision}.map"), "text": map.format() }))
    };
    Ok(Json(state.busy(merge).await?))
}
