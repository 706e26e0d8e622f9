//! A capture in, items out: in batches, on as many threads as there are, always in the same order.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use rayon::prelude::*;
use worldwire_capture::{Conversations, Event, EventKind, Packet, Timestamp, Unusable};
use worldwire_core::{Limits, Side};

use crate::conversation::{Conversation, Kind, Known};
use crate::family::Family;
use crate::item::{Item, NoteKind, Stamp};
use crate::{Definitions, Keys};

/// How a capture is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Secrets.
    pub keys: Keys,
    /// What messages look like.
    pub definitions: Definitions,
    /// Read every conversation as this family, whatever it looks like.
    pub family: Option<Family>,
    /// Bounds.
    pub limits: Limits,
}

/// Reads the conversations of a capture.
///
/// Packets go in one after the other ([`push`](Self::push)); what was said comes out in batches
/// ([`run`](Self::run)) as text that the caller's `show` makes of every [`Item`]. Conversations of
/// a batch are read at the same time when there are several threads; the text always has the order
/// of the capture.
pub struct Dissection {
    options: Options,
    conversations: Conversations,
    open: HashMap<u64, Open>,
    batch: Batch,
    overviews: Vec<Overview>,
}

/// A conversation that is being read.
struct Open {
    conversation: Conversation,
    overview: Overview,
}

/// What can be said of a conversation as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overview {
    /// Its number.
    pub stream: u64,
    /// The end that opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Whether it is UDP; otherwise it is TCP.
    pub datagrams: bool,
    /// Whether its first packets are missing.
    pub midstream: bool,
    /// Whose it is, if that is known.
    pub family: Option<Family>,
    /// When it began.
    pub first: Timestamp,
    /// When its last packet came.
    pub last: Timestamp,
    /// Bytes of payload from client and server.
    pub bytes: [u64; 2],
    /// Messages by dotted name, from client and server.
    pub messages: Counts,
    /// What could not be read.
    pub problems: u64,
    /// Holes in the capture.
    pub gaps: u64,
}

/// How many messages of each name came from client and server.
pub type Counts = HashMap<String, [u64; 2]>;

/// What was read in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All conversations.
    pub conversations: u64,
    /// Those that were recognised.
    pub recognised: u64,
    /// Messages.
    pub messages: u64,
    /// What could not be read.
    pub problems: u64,
    /// Holes in the capture.
    pub gaps: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let Self { conversations, recognised, messages, problems, gaps } = *self;
        write!(f, "{conversations} conversation{}", plural(conversations))?;
        if recognised != conversations {
            write!(f, " ({recognised} recognised)")?;
        }
        write!(f, ", {messages} message{}", plural(messages))?;
        if gaps > 0 {
            write!(f, ", {gaps} gap{}", plural(gaps))?;
        }
        if problems > 0 {
            write!(f, ", {problems} problem{}", plural(problems))?;
        }
        Ok(())
    }
}

/// Events that are not read yet, in capture order, with their bytes in one piece.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<Held>,
    bytes: Vec<u8>,
    /// The time of the first packet of the capture.
    start: Option<Timestamp>,
}

/// An event of a batch.
#[derive(Debug)]
struct Held {
    stamp: Stamp,
    what: What,
}

#[derive(Debug)]
enum What {
    Opened(Box<Overview>),
    Data { side: Side, start: usize, end: usize },
    Gap { side: Side, length: u64 },
    Closed,
}

/// The events of one conversation in a batch, and the text that became of them.
struct Task {
    open: Option<Open>,
    stream: u64,
    events: Vec<usize>,
    text: String,
    /// Which event of the batch made which part of the text.
    parts: Vec<(usize, usize)>,
    closed: bool,
}

/// Enough bytes for a batch to be worth sharing out, and few enough to stay in the caches.
const BATCH_BYTES: usize = 4 << 20;
/// The most events of a batch.
const BATCH_EVENTS: usize = 1 << 16;

impl Dissection {
    /// Starts on a capture.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            conversations: Conversations::new(&options.limits),
            options,
            open: HashMap::new(),
            batch: Batch::default(),
            overviews: Vec::new(),
        }
    }

    /// Takes in a packet. True when a batch is full and ought to be [`run`](Self::run).
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        Feed { conversations: &mut self.conversations, batch: &mut self.batch }.push(packet)
    }

    /// Takes in the end of the capture; [`run`](Self::run) comes once more.
    pub fn end(&mut self) {
        let batch = &mut self.batch;
        self.conversations.finish(&mut |event| batch.hold(event));
    }

    /// Why packets were of no use, and how many there were of each kind.
    #[must_use]
    pub fn unusable(&self) -> Vec<(Unusable, u64)> {
        self.conversations.unusable()
    }

    /// Reads what was taken in, and appends the text that `show` makes of every item. `meanwhile`
    /// runs at the same time if there is a thread for it.
    pub fn run<R: Send>(
        &mut self,
        show: &(impl Fn(&Item<'_>, &mut Scratch, &mut String) + Sync),
        out: &mut String,
        meanwhile: impl FnOnce(&mut Feed<'_>) -> R + Send,
    ) -> R {
        let fresh = Batch { start: self.batch.start, ..Batch::default() };
        let batch = core::mem::replace(&mut self.batch, fresh);
        let mut tasks = self.share_out(&batch);
        let options = &self.options;
        let mut feed = Feed { conversations: &mut self.conversations, batch: &mut self.batch };
        let (result, ()) = rayon::join(
            || meanwhile(&mut feed),
            || tasks.par_iter_mut().for_each(|task| task.run(&batch, options, show)),
        );
        let mut order: Vec<(usize, usize, usize, usize)> = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let mut from = 0;
            for (event, to) in &task.parts {
                order.push((*event, index, from, *to));
                from = *to;
            }
        }
        order.sort_unstable();
        for (_, task, from, to) in order {
            out.push_str(&tasks[task].text[from..to]);
        }
        for task in tasks {
            if let Some(open) = task.open {
                if task.closed {
                    self.overviews.push(open.overview);
                } else {
                    self.open.insert(task.stream, open);
                }
            }
        }
        result
    }

    /// A task for every conversation of the batch, in the order in which they come up.
    fn share_out(&mut self, batch: &Batch) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        let mut places: HashMap<u64, usize> = HashMap::new();
        for (index, event) in batch.events.iter().enumerate() {
            let stream = event.stamp.stream;
            let place = *places.entry(stream).or_insert_with(|| {
                tasks.push(Task {
                    open: self.open.remove(&stream),
                    stream,
                    events: Vec::new(),
                    text: String::new(),
                    parts: Vec::new(),
                    closed: false,
                });
                tasks.len() - 1
            });
            tasks[place].events.push(index);
        }
        tasks
    }

    /// Every conversation so far, in the order of their numbers.
    #[must_use]
    pub fn overviews(&self) -> Vec<&Overview> {
        let open = self.open.values().map(|open| &open.overview);
        let mut all: Vec<&Overview> = self.overviews.iter().chain(open).collect();
        all.sort_by_key(|overview| overview.stream);
        all
    }

    /// What was read in all.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.overviews().into_iter().fold(Summary::default(), |sum, overview| Summary {
            conversations: sum.conversations + 1,
            recognised: sum.recognised + u64::from(overview.family.is_some()),
            messages: sum.messages + overview.messages.values().flatten().sum::<u64>(),
            problems: sum.problems + overview.problems,
            gaps: sum.gaps + overview.gaps,
        })
    }
}

impl fmt::Debug for Dissection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dissection").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// Takes in packets of the next batch while the present one is read.
#[derive(Debug)]
pub struct Feed<'f> {
    conversations: &'f mut Conversations,
    batch: &'f mut Batch,
}

impl Feed<'_> {
    /// Takes in a packet. True when the batch is full.
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        let batch = &mut *self.batch;
        batch.start.get_or_insert(packet.time);
        self.conversations.push(packet, &mut |event| batch.hold(event));
        batch.is_full()
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.events.len() >= BATCH_EVENTS
    }

    /// Keeps an event; its bytes are copied to the others.
    fn hold(&mut self, event: Event<'_>) {
        let stamp = Stamp {
            stream: event.conversation,
            time: event.time,
            since: event.time.since(self.start.unwrap_or(event.time)),
            packet: event.packet,
        };
        let what = match event.kind {
            EventKind::Opened(opened) => What::Opened(Box::new(Overview {
                stream: event.conversation,
                client: opened.client,
                server: opened.server,
                datagrams: opened.datagrams,
                midstream: opened.midstream,
                family: None,
                first: event.time,
                last: event.time,
                bytes: [0; 2],
                messages: HashMap::new(),
                problems: 0,
                gaps: 0,
            })),
            EventKind::Data { side, bytes, .. } | EventKind::Datagram { side, bytes } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                What::Data { side, start, end: self.bytes.len() }
            }
            EventKind::Gap { side, length, .. } => What::Gap { side, length },
            EventKind::Closed(_) => What::Closed,
            _ => return,
        };
        self.events.push(Held { stamp, what });
    }
}

impl Task {
    fn run(
        &mut self,
        batch: &Batch,
        options: &Options,
        show: &(impl Fn(&Item<'_>, &mut Scratch, &mut String) + Sync),
    ) {
        let mut scratch = Scratch::default();
        let known = Known { keys: &options.keys, definitions: &options.definitions };
        for index in &self.events {
            let Held { stamp, what } = &batch.events[*index];
            if let What::Opened(overview) = what {
                let (midstream, datagrams) = (overview.midstream, overview.datagrams);
                // Of the families only KI's speaks UDP.
                let forced = options.family.filter(|family| !datagrams || *family == Family::Ki);
                let conversation = Conversation::new(
                    overview.stream,
                    [overview.client, overview.server],
                    Kind { midstream, datagrams },
                    forced,
                    known,
                );
                self.open = Some(Open { conversation, overview: (**overview).clone() });
                continue;
            }
            let Some(Open { conversation, overview }) = &mut self.open else {
                continue;
            };
            overview.last = stamp.time;
            let (text, messages) = (&mut self.text, &mut overview.messages);
            let problems = &mut overview.problems;
            let mut tell = |item: Item<'_>| {
                match item.note().map(|note| note.kind) {
                    None => count(messages, &item, &mut scratch.name),
                    Some(NoteKind::Problem) => *problems += 1,
                    // Gaps count for every conversation, recognised or not.
                    Some(_) => {}
                }
                show(&item, &mut scratch, text);
            };
            match what {
                What::Data { side, start, end } => {
                    overview.bytes[side.index()] += (end - start) as u64;
                    let bytes = &batch.bytes[*start..*end];
                    conversation.data(known, *side, *stamp, bytes, &mut tell);
                }
                What::Gap { side, length } => {
                    overview.gaps += 1;
                    conversation.gap(*side, *stamp, *length, &mut tell);
                }
                What::Closed => {
                    conversation.end(*stamp, &mut tell);
                    self.closed = true;
                }
                What::Opened(_) => {}
            }
            overview.family = conversation.family();
            if self.text.len() != self.parts.last().map_or(0, |part| part.1) {
                self.parts.push((*index, self.text.len()));
            }
        }
    }
}

/// Counts a message without allocating once its name is known.
fn count(messages: &mut Counts, item: &Item<'_>, name: &mut String) {
    name.clear();
    item.push_name(name);
    let counts = match messages.get_mut(name.as_str()) {
        Some(counts) => counts,
        None => messages.entry(name.clone()).or_default(),
    };
    counts[item.from.index()] += 1;
}

/// Memory that `show` may use again from one item to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For the name of an item.
    pub name: String,
    /// For its tree.
    pub tree: worldwire_core::Tree<'static>,
}
