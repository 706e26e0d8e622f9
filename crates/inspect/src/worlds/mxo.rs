//! MxO: where the objects of a client's views are, at any time of the capture.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{self, Path, Query};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worldwire_core::{Limits, Reader, Side};
use worldwire_dissect::{Item, MxoObjects, MxoViews, Overview, Scratch};
use worldwire_mxo::frame::{PacketHead, RccFlags};
use worldwire_mxo::message::OWN_VIEW;
use worldwire_mxo::replica::View;
use worldwire_mxo::schema::{Objects, Updates};
use worldwire_mxo::types::Value as Property;

use super::latest::Latest;
use crate::error::Refusal;
use crate::state::State;

type Shared = extract::State<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The family and the name of its view.
pub(super) const FAMILY: &str = "mxo";
/// The maximum number of objects, over all conversations.
const MAX_OBJECTS: usize = 1 << 16;
/// The maximum number of positions, over all objects: 32 bytes each.
const MAX_POSITIONS: usize = 1 << 20;
/// The maximum number of objects in one response.
const MAX_SHOWN: usize = 2_000;
/// The maximum number of changed views that are kept per packet.
const MAX_CHANGED: usize = 4_096;
/// The maximum number of earlier positions of an object in one response.
const MAX_TRAIL: usize = 24;
/// The maximum age of these positions, in nanoseconds.
const TRAIL_TIME: i64 = 10_000_000_000;

/// The most recently found objects.
pub(crate) type Plane = Latest<Moves>;

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route("/api/mxo/views", get(conversations))
        .route("/api/mxo/views/{stream}", get(views))
}

/// The objects of all conversations.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    conversations: HashMap<u64, Conversation>,
    objects: usize,
    positions: usize,
    /// Whether a limit was reached.
    is_limited: bool,
}

/// The objects that one client saw.
#[derive(Debug, Default)]
struct Conversation {
    /// All tracks, in the order of their creation.
    tracks: Vec<Track>,
    /// The tracks of existing views.
    live: HashMap<u16, usize>,
    positions: usize,
    /// The times of the first and last packet. The last one never decreases.
    span: Option<(i64, i64)>,
    area: Option<Area>,
}

/// The part of the plane with positions: the minimum x and z, and the maximum.
#[derive(Clone, Copy, Debug, Serialize)]
struct Area {
    from: [f32; 2],
    to: [f32; 2],
}

/// An object while it was a view.
#[derive(Debug)]
struct Track {
    view: u16,
    goid: u16,
    spawn: u8,
    kind: Kind,
    /// The name of the object or that of its type.
    name: String,
    /// The name of its type.
    object: Option<String>,
    /// Whether the class, and with it the name, is a guess.
    is_guess: bool,
    /// When the view was deleted, if it was.
    until: Option<i64>,
    positions: Vec<Position>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Character,
    Npc,
    Door,
    Object,
}

/// Where an object was, from one message on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Position {
    time: i64,
    row: u32,
    /// X, y (height) and z.
    at: [f32; 3],
    /// The number of its state; for a door, whether it is open.
    state: Option<u32>,
    yaw: Option<u8>,
}

/// What a view needs from an item.
#[derive(Debug)]
enum Seen {
    /// Anything but a datagram of MxO's game channel.
    Other,
    Hello {
        stream: u64,
        bytes: Box<[u8]>,
    },
    Packet {
        stream: u64,
        time: i64,
        from: Side,
        bytes: Box<[u8]>,
        /// The views that it concerns.
        changed: Vec<u16>,
    },
}

impl Seen {
    fn of(item: &Item<'_>, scratch: &mut Scratch) -> Self {
        if item.family != FAMILY || item.message().is_none() {
            return Self::Other;
        }
        let stream = item.stamp.stream;
        match &*scratch.name {
            "setup.Hello" => Self::Hello { stream, bytes: item.bytes().into() },
            name if name.starts_with("game.") => {
                let limits = Limits::DEFAULT;
                let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
                let changed = tree.find("view").into_iter().flat_map(|list| list.children());
                let changed = changed.filter_map(|view| u16::try_from(view.unsigned()?).ok());
                let changed = changed.take(MAX_CHANGED).collect();
                scratch.tree = tree.recycle();
                let (time, from) = (item.stamp.time.0, item.from);
                Self::Packet { stream, time, from, bytes: item.bytes().into(), changed }
            }
            _ => Self::Other,
        }
    }
}

/// The views of a conversation while it is read.
struct Reading {
    views: MxoViews,
    /// The last hello. A different one starts a new session.
    hello: Box<[u8]>,
}

impl Moves {
    /// Reads the capture.
    fn read(state: &State) -> Self {
        let objects = state.recording.definitions().part::<MxoObjects>();
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<Seen>| {
            out.push(Seen::of(item, scratch));
        };
        let mut moves = Self::default();
        let mut readings: HashMap<u64, Reading> = HashMap::new();
        let new =
            || Reading { views: MxoViews::new(objects.objects().clone()), hello: Box::default() };
        let mut row: u32 = 0;
        let take = |seen: &Vec<Seen>, closed: Vec<Overview>| {
            for seen in seen {
                match seen {
                    Seen::Hello { stream, bytes } => {
                        let reading = readings.entry(*stream).or_insert_with(new);
                        if reading.hello != *bytes {
                            reading.views.reset();
                            reading.hello.clone_from(bytes);
                            moves.conversations.entry(*stream).or_default().end_all();
                        }
                    }
                    Seen::Packet { stream, time, from, bytes, changed } => {
                        let reading = readings.entry(*stream).or_insert_with(new);
                        let packet = (*time, *from, &**bytes);
                        moves.packet(*stream, row, packet, changed, &mut reading.views);
                    }
                    Seen::Other => {}
                }
                row = row.saturating_add(1);
            }
            for overview in closed {
                readings.remove(&overview.stream);
            }
            match state.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let recording = &state.recording;
        recording.read(recording.dissection(), &Arc::default(), None, show, take);
        moves
    }

    /// Applies a packet, given as its time, its sender and its bytes.
    fn packet(
        &mut self,
        stream: u64,
        row: u32,
        (time, from, bytes): (i64, Side, &[u8]),
        changed: &[u16],
        views: &mut MxoViews,
    ) {
        let conversation = self.conversations.entry(stream).or_default();
        let (first, last) = conversation.span.unwrap_or((time, time));
        // Times can go backwards.
        let time = time.max(last);
        conversation.span = Some((first, time));
        let head = PacketHead::decode(&mut Reader::new(bytes));
        if from == Side::Server && head.is_ok_and(|head| head.flags.contains(RccFlags::Reset)) {
            conversation.end_all();
        }
        // Problems are not reported here: the capture's rows show them.
        drop(views.take(from, bytes, None));
        for view in changed {
            let replica = views.replica();
            let now = replica.view(*view);
            let own = conversation.live.get(view).and_then(|own| conversation.tracks.get(*own));
            let is_same = own.zip(now).is_some_and(|(own, now)| own.is_of(now));
            if own.is_some() && !is_same {
                conversation.end(*view, time);
            }
            let Some(now) = now else { continue };
            if !is_same {
                if self.objects >= MAX_OBJECTS {
                    self.is_limited = true;
                    continue;
                }
                self.objects += 1;
                conversation.live.insert(*view, conversation.tracks.len());
                conversation.tracks.push(Track::new(*view, now, replica.objects()));
            }
            if self.positions >= MAX_POSITIONS {
                self.is_limited = true;
            } else {
                self.positions += usize::from(conversation.moved(*view, now, row, time));
            }
        }
    }
}

impl Conversation {
    /// Ends the tracks of all views: a new session has begun.
    fn end_all(&mut self) {
        let time = self.span.map_or(0, |(_, last)| last);
        let live: Vec<u16> = self.live.keys().copied().collect();
        live.into_iter().for_each(|view| self.end(view, time));
    }

    fn end(&mut self, view: u16, time: i64) {
        let track = self.live.remove(&view).and_then(|own| self.tracks.get_mut(own));
        track.into_iter().for_each(|track| track.until = Some(time));
    }

    /// Adds a position, unless the object has not moved. Returns whether it was added.
    fn moved(&mut self, view: u16, now: &View, row: u32, time: i64) -> bool {
        let Some(track) = self.live.get(&view).and_then(|own| self.tracks.get_mut(*own)) else {
            return false;
        };
        // An object's name can become known later.
        if let Some(name) = own_name(now) {
            track.name = name;
        }
        let Some(at) = now.position() else { return false };
        #[expect(clippy::cast_possible_truncation, reason = "precise enough for a picture")]
        let at = at.map(|part| part as f32);
        if !at.iter().all(|part| part.is_finite()) {
            return false;
        }
        let state = match now.value("CurrentState") {
            Some(Property::Unsigned(state)) => Some(state),
            _ => None,
        };
        let position = Position { time, row, at, state, yaw: now.movement().yaw };
        let is_known = track.positions.last().is_some_and(|last| {
            let Position { time, row, .. } = *last;
            *last == Position { time, row, ..position }
        });
        if is_known {
            return false;
        }
        track.positions.push(position);
        self.positions += 1;
        let [x, _, z] = at;
        let area = self.area.get_or_insert(Area { from: [x, z], to: [x, z] });
        area.from = [area.from[0].min(x), area.from[1].min(z)];
        area.to = [area.to[0].max(x), area.to[1].max(z)];
        true
    }

    /// The name of the client's own character, if it has one.
    fn owner(&self) -> Option<&str> {
        let own = self.tracks.iter().rev().find(|track| track.view == OWN_VIEW)?;
        Some(&own.name)
    }

    /// The objects that existed at a time, each at its last position.
    fn at(&self, time: i64) -> Value {
        let existing = self.tracks.iter().filter_map(|track| {
            let count = track.positions.partition_point(|position| position.time <= time);
            let (last, before) = track.positions.get(..count)?.split_last()?;
            track.until.is_none_or(|until| time < until).then_some((track, last, before))
        });
        let (mut total, mut shown) = (0_usize, Vec::new());
        for (track, last, before) in existing {
            total += 1;
            if shown.len() < MAX_SHOWN {
                shown.push(track.shown(last, before, time));
            }
        }
        json!({ "time": time.to_string(), "total": total, "objects": shown })
    }
}

impl Track {
    fn new(view: u16, now: &View, objects: &Objects) -> Self {
        let object = objects.name_of(now.goid()).map(str::to_owned);
        let kind = match objects.class(now.class()).map(|class| class.updates()) {
            Some(Updates::Player { .. }) => Kind::Character,
            Some(Updates::Npc(_)) => Kind::Npc,
            _ if object.as_ref().is_some_and(|name| name.contains("Door")) => Kind::Door,
            _ => Kind::Object,
        };
        let name = own_name(now).or_else(|| object.clone());
        Self {
            view,
            goid: now.goid(),
            spawn: now.spawn_seq(),
            kind,
            name: name.unwrap_or_else(|| format!("goobj {}", now.goid())),
            object,
            is_guess: now.is_guess(),
            until: None,
            positions: Vec::new(),
        }
    }

    fn is_of(&self, view: &View) -> bool {
        (self.goid, self.spawn) == (view.goid(), view.spawn_seq())
    }

    fn shown(&self, last: &Position, before: &[Position], time: i64) -> Value {
        let since = time.saturating_sub(TRAIL_TIME);
        let start = before.len().saturating_sub(MAX_TRAIL);
        let trail = before.get(start..).unwrap_or_default().iter();
        let trail = trail.filter(|position| position.time >= since);
        let trail: Vec<[f32; 2]> = trail.map(|position| [position.at[0], position.at[2]]).collect();
        json!({
            "view": self.view, "goid": self.goid, "spawn": self.spawn, "kind": self.kind,
            "name": self.name, "object": self.object, "guess": self.is_guess,
            "at": last.at, "yaw": last.yaw, "state": last.state,
            "row": last.row, "since": last.time.to_string(), "trail": trail,
        })
    }
}

/// The name of the object itself, rather than that of its type.
fn own_name(view: &View) -> Option<String> {
    let text = |property| match view.value(property) {
        Some(Property::Text(text)) => text,
        _ => String::new(),
    };
    let names = ["RealFirstName", "RealLastName", "CharacterName"].map(text);
    let [first, last, other] = names.each_ref().map(|name| name.trim());
    let full = format!("{first} {last}");
    let name = if full.trim().is_empty() { other } else { full.trim() };
    (!name.is_empty()).then(|| name.to_owned())
}

async fn conversations(extract::State(state): Shared) -> Outcome<Json<Value>> {
    let moves = state.mxo.current(&state, Moves::read).await?;
    let mut listed: Vec<_> = moves.conversations.iter().collect();
    listed.sort_by_key(|(stream, _)| **stream);
    let listed = listed.into_iter().filter_map(|(stream, conversation)| {
        let (first, last) = conversation.span?;
        Some(json!({
            "stream": stream, "name": conversation.owner(),
            "objects": conversation.tracks.len(), "positions": conversation.positions,
            "first": first.to_string(), "last": last.to_string(), "area": conversation.area,
        }))
    });
    let listed: Vec<Value> = listed.take(MAX_SHOWN).collect();
    Ok(Json(json!({
        "total": moves.conversations.len(), "conversations": listed, "limited": moves.is_limited,
    })))
}

#[derive(Debug, Deserialize)]
struct Wanted {
    /// Nanoseconds since 1970. Default: the end.
    time: Option<i64>,
}

async fn views(
    extract::State(state): Shared,
    Path(stream): Path<u64>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Json<Value>> {
    let moves = state.mxo.known(&state, Moves::read).await?;
    let find = move |_: &Arc<State>| {
        let conversation = moves.conversations.get(&stream);
        let conversation = conversation.ok_or_else(|| {
            Refusal::missing(format!("conversation {stream} has no packets of MxO's game channel"))
        })?;
        Ok(conversation.at(wanted.time.unwrap_or(i64::MAX)))
    };
    Ok(Json(state.busy(find).await?))
}
