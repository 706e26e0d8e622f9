//! Collects the items of a capture, from which scripts are made.

use core::fmt;
use core::time::Duration;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Limits, Side, Tree};
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Definitions, Item, Keys, NoteKind, Overview};
use worldwire_tera::packet::Packets;

use super::script::Script;
use crate::coder::Coder;
use crate::exchange::Known;
use crate::handler::Passing;
use crate::kept::Kept;

/// Reads items of a capture for a recording.
#[derive(Clone, Debug)]
pub struct ReadRecording {
    /// The conversations to replay. If empty, all are kept.
    pub streams: Vec<u64>,
    /// The definitions used to read the capture.
    pub definitions: Arc<Definitions>,
    /// The keys used to read the capture.
    pub keys: Arc<Keys>,
    /// Messages from the peer that the replay does not wait for.
    pub ignored: Option<Arc<Filter>>,
}

/// One item of a capture.
#[derive(Clone, Debug)]
pub struct RecordedItem {
    pub(super) stream: u64,
    pub(super) since: Duration,
    pub(super) packet: Option<u64>,
    pub(super) from: Side,
    pub(super) content: Content,
}

/// What an item contains.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A step of connection setup: its name and bytes.
    Setup(String, Vec<u8>),
    Message(Box<RecordedMessage>),
    /// Part of the conversation is missing.
    Fault(String),
}

/// A message of a capture.
#[derive(Clone, Debug)]
pub(super) struct RecordedMessage {
    pub(super) kept: Kept,
    /// Its name, with the name of the message inside it.
    pub(super) label: String,
    pub(super) is_ignored: bool,
    /// TERA: the messages of its build.
    pub(super) build: Option<Arc<Packets>>,
}

/// The items of a capture that can be replayed.
#[derive(Debug, Default)]
pub struct Recording {
    streams: BTreeMap<u64, Vec<RecordedItem>>,
    items: usize,
    bytes: usize,
    is_full: bool,
}

/// Why a conversation cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoScript {
    /// The capture has no conversation that can be decoded.
    #[error("no conversation in the capture was recognised; check the file, --keys and --data")]
    Nothing,
    /// The capture has several conversations.
    #[error("the capture has several conversations; choose one with --stream:{}", lines(.0))]
    Several(Vec<String>),
    /// The capture does not have this conversation.
    #[error("there is no conversation {stream}; choose another with --stream:{}", lines(.others))]
    NoSuchStream {
        /// Its number.
        stream: u64,
        /// The conversations that exist.
        others: Vec<String>,
    },
    /// The conversation is incomplete or cannot be decoded.
    #[error("conversation {stream} cannot be replayed: at {seconds:.3} s, {problem}")]
    Incomplete {
        /// Its number.
        stream: u64,
        /// The time of the problem, in seconds since the first packet.
        seconds: Seconds,
        /// What is wrong.
        problem: String,
    },
    /// Its beginning is missing.
    #[error(
        "conversation {0} cannot be replayed: its beginning is missing; record from the first packet"
    )]
    Midstream(u64),
    /// It contains no messages.
    #[error("conversation {0} has no messages")]
    Empty(u64),
    /// There are too many messages.
    #[error(
        "the recording is too long: more than {MAX_ITEMS} messages or {} MiB; choose a \
         conversation with --stream, or split the capture", MAX_BYTES >> 20
    )]
    TooLong,
}

/// A number of seconds that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(Duration);

/// The maximum number of messages in a recording.
const MAX_ITEMS: usize = 1 << 20;
/// The maximum total size of those messages in bytes.
const MAX_BYTES: usize = 256 << 20;
/// The maximum number of conversations listed in an error.
const MAX_LISTED: usize = 32;

impl ReadRecording {
    /// Keeps an item, if it matters for a replay.
    #[must_use]
    pub fn read(&self, item: &Item<'_>) -> Option<RecordedItem> {
        if !self.streams.is_empty() && !self.streams.contains(&item.stamp.stream) {
            return None;
        }
        let content = match (item.note(), item.message()) {
            (Some(note), _) => match note.kind {
                NoteKind::Gap | NoteKind::Problem => Content::Fault(note.text.clone()),
                _ => return None,
            },
            (None, Some(message)) => {
                let mut name = String::new();
                item.push_name(&mut name);
                if message.is_message() {
                    let known = Known {
                        family: item.family,
                        definitions: Arc::clone(&self.definitions),
                        keys: Arc::clone(&self.keys),
                    };
                    let mut coder = Coder::new(known);
                    coder.learn_from(message);
                    let passing = Passing::new((item, message), &name, Duration::ZERO, None, false);
                    let kept = Kept::new(&passing, &coder);
                    let is_ignored = self.ignores(item, &name);
                    let (label, build) =
                        (label(item, &name), message.knowledge().and_then(packets));
                    let message = RecordedMessage { kept, label, is_ignored, build };
                    Content::Message(Box::new(message))
                } else {
                    Content::Setup(name, message.bytes().to_vec())
                }
            }
            (None, None) => return None,
        };
        let (stamp, from) = (item.stamp, item.from);
        let (stream, since, packet) = (stamp.stream, stamp.since, stamp.packet);
        Some(RecordedItem { stream, since, packet, from, content })
    }

    fn ignores(&self, item: &Item<'_>, name: &str) -> bool {
        self.ignored.as_ref().is_some_and(|ignored| {
            let tree = item.tree(Tree::new(), &Limits::DEFAULT);
            ignored.matches(&Subject::of(item, name, &tree))
        })
    }
}

/// The name of a message, with the name of the message inside it, if any.
pub(super) fn label(item: &Item<'_>, name: &str) -> String {
    let mut inside = String::new();
    item.push_inside(&mut inside);
    match inside.split_whitespace().next() {
        Some(first) => format!("{name} {first}"),
        None => name.to_owned(),
    }
}

fn packets(knowledge: &(dyn Any + Send + Sync)) -> Option<Arc<Packets>> {
    knowledge.downcast_ref::<Arc<Packets>>().cloned()
}

impl Recording {
    /// Adds items, in the order of the capture.
    pub fn add(&mut self, items: impl IntoIterator<Item = RecordedItem>) {
        for item in items {
            self.items += 1;
            self.bytes = self.bytes.saturating_add(match &item.content {
                Content::Setup(_, bytes) => bytes.len(),
                Content::Message(message) => message.kept.body.len(),
                Content::Fault(text) => text.len(),
            });
            self.is_full |= self.items > MAX_ITEMS || self.bytes > MAX_BYTES;
            if !self.is_full {
                self.streams.entry(item.stream).or_default().push(item);
            }
        }
    }

    /// Whether there are too many items, so there is no point in reading more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The script of a conversation, or of the only one if no number is given. Each can be taken
    /// once.
    ///
    /// # Errors
    /// Why the conversation cannot be replayed.
    pub fn script(
        &mut self,
        stream: Option<u64>,
        overviews: &[&Overview],
    ) -> Result<Script, NoScript> {
        if self.is_full {
            return Err(NoScript::TooLong);
        }
        let known = || overviews.iter().filter(|it| it.family.is_some());
        let listed = || known().take(MAX_LISTED).map(|it| line(it)).collect();
        let overview = match stream {
            Some(stream) => known()
                .find(|it| it.stream == stream)
                .ok_or_else(|| NoScript::NoSuchStream { stream, others: listed() })?,
            None => match known().count() {
                0 => return Err(NoScript::Nothing),
                1 => known().next().ok_or(NoScript::Nothing)?,
                _ => return Err(NoScript::Several(listed())),
            },
        };
        let stream = overview.stream;
        let items = self.streams.remove(&stream).unwrap_or_default();
        let fault = items.iter().find_map(|item| match &item.content {
            Content::Fault(problem) => Some((item.since, problem.clone())),
            _ => None,
        });
        if let Some((since, problem)) = fault {
            return Err(NoScript::Incomplete { stream, seconds: Seconds(since), problem });
        }
        if overview.midstream {
            return Err(NoScript::Midstream(stream));
        }
        let family = overview.family.ok_or(NoScript::Nothing)?;
        Script::new(family, overview, items).ok_or(NoScript::Empty(stream))
    }
}

/// A conversation in a list.
fn line(overview: &Overview) -> String {
    let Overview { stream, client, server, .. } = overview;
    let family = overview.family.map_or("", |family| family.name());
    let (messages, problems) = (overview.messages.total(), overview.problems + overview.gaps);
    let problems = match problems {
        0 => String::new(),
        1 => ", 1 problem".to_owned(),
        _ => format!(", {problems} problems"),
    };
    format!("--stream {stream}  {family}  {client} to {server}, {messages} messages{problems}")
}

fn lines(candidates: &[String]) -> String {
    candidates.iter().map(|line| format!("\n  {line}")).collect()
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}
