//! Reads a capture in batches, on all available threads, with output in a fixed order.

mod checkpoint;
mod exchange;
mod merge;
mod prepare;
mod reporter;
mod task;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use foldhash::fast::RandomState;
use rayon::prelude::*;
use worldwire_capture::{Conversations, Event, EventKind, Packet, Timestamp, Unusable};
use worldwire_core::{Limits, Side};

use crate::conversation::{Context, Conversation, Transport};
use crate::counts::Counts;
use crate::defect::catch_defect;
use crate::family::Family;
use crate::item::{Item, Stamp, Time};
use crate::knowledge::{Definitions, Facts, Keys};
use crate::overview::{Overview, Summary};
use crate::sink::Sink;
pub use checkpoint::{Checkpoint, Fork};
use merge::Merge;
use reporter::Reporter;
pub use reporter::Scratch;
use task::{Show, Task};

/// How to read a capture.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Secrets.
    pub keys: Keys,
    /// Definitions of messages.
    pub definitions: Definitions,
    /// Read every conversation as this family, without recognition.
    pub family: Option<&'static dyn Family>,
    /// Read conversations with servers on these ports as these families.
    pub ports: Vec<(u16, &'static dyn Family)>,
    /// Also report the captured bytes of this conversation, as [`Wire`](crate::ItemBody::Wire).
    pub wire: Option<u64>,
    /// Read only this conversation and skip the others. You must then supply the facts that the
    /// others state: see [`Dissection::knowing`].
    pub only: Option<u64>,
    /// Set [`Overview::secrets`].
    pub secrets: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Options {
    fn context<'k>(&'k self, facts: &'k Facts) -> Context<'k> {
        let (keys, definitions) = (&self.keys, &self.definitions);
        let families = definitions.families();
        Context { keys, definitions, families, facts, prepared: None, wire: self.wire }
    }

    /// The family that the user chose for a conversation, if any, and whether the presumed client
    /// is the server.
    fn forced(&self, overview: &Overview) -> Option<(&'static dyn Family, bool)> {
        let of = |port| self.ports.iter().find(|(own, _)| *own == port).map(|(_, family)| *family);
        let [client, server] = [overview.client, overview.server].map(|end| of(end.port()));
        let forced = server.or(self.family).map(|family| (family, false));
        let forced = forced.or_else(|| client.map(|family| (family, true)));
        forced.filter(|(family, _)| !overview.datagrams || family.speaks_datagrams())
    }
}

/// Reads the conversations of a capture.
///
/// [`push`](Self::push) takes packets one by one, and [`run`](Self::run) produces output in
/// batches. The caller's `show` turns every [`Item`] into text or into values of any type, as the
/// [`Sink`] requires. With several threads, the conversations of a batch are read in parallel.
/// Results always come in capture order.
///
/// A panic affects only the message in which it occurs. It is reported as an item, a
/// [`Problem`](crate::NoteKind::Problem); everything else is read normally. See
/// [`quiet_defects`](crate::quiet_defects).
///
/// ```
/// use worldwire_capture::{CaptureReader, Record};
/// use worldwire_core::Limits;
/// use worldwire_dissect::{Dissection, Item, Keys, Options, Scratch};
///
/// let file = include_bytes!("../../../samples/uru-login.pcapng");
/// let keys = Keys::parse(include_str!("../../../samples/uru-keys.toml"))?;
/// let mut capture = CaptureReader::new(file.as_slice(), &Limits::DEFAULT)?;
/// let mut dissection = Dissection::new(Options { keys, ..Options::default() });
///
/// // The sink is a list of packet numbers and names; for text it would be a `String`.
/// let show = |item: &Item<'_>, _: &mut Scratch, names: &mut Vec<(Option<u64>, String)>| {
///     let mut name = String::new();
///     item.push_name(&mut name);
///     names.push((item.stamp.packet, name));
/// };
/// let mut names = Vec::new();
/// while let Some(record) = capture.next()? {
///     if let Record::Packet(packet) = record
///         && dissection.push(&packet)
///     {
///         dissection.run(&show, &mut names, |_| ());
///     }
/// }
/// dissection.end();
/// dissection.run(&show, &mut names, |_| ());
///
/// assert_eq!(names[0], (Some(4), "opened".to_owned()));
/// assert_eq!(names[1], (Some(4), "connect.CliToGateKeeper".to_owned()));
/// assert!(names.is_sorted_by_key(|(packet, _)| *packet));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dissection {
    options: Options,
    conversations: Conversations,
    open: BTreeMap<u64, OpenConversation>,
    facts: Facts,
    /// The number of closed conversations that still wait for a fact.
    lingering: usize,
    /// Whether the capture has ended.
    is_over: bool,
    batch: Batch,
    /// An empty batch whose memory is reused.
    spare: Batch,
    /// The overviews of closed conversations.
    overviews: Vec<Overview>,
    /// A summary of the overviews that were taken.
    taken: Summary,
}

/// A conversation that is being read.
struct OpenConversation {
    /// `None` after a panic.
    conversation: Option<Conversation>,
    overview: Overview,
    /// While it waits: the number of facts that had been stated when it last learned some.
    learned: Option<u64>,
    /// The time at which it closed, if it was then waiting for a fact.
    closing: Option<Stamp>,
}

/// Events that have not been read yet, in capture order. Their bytes are in one buffer.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<HeldEvent>,
    bytes: Vec<u8>,
    size: BatchSize,
    /// The time of the first usable packet of the capture.
    start: Option<Timestamp>,
    /// The number of the last packet.
    last: u64,
    /// Only events of this conversation are kept.
    only: Option<u64>,
}

#[derive(Debug)]
struct HeldEvent {
    stamp: Stamp,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Opened(Box<Overview>),
    Data { side: Side, start: usize, end: usize },
    Gap { side: Side, length: u64 },
    Closed,
}

/// The size of a batch in bytes: large enough to occupy all threads, small enough to stay in the
/// caches. The whole output of a batch is kept in memory, and deflated messages can grow a
/// thousandfold. So batches start small and grow only while their output is small.
#[derive(Clone, Copy, Debug)]
struct BatchSize(usize);

/// The number of events that fills a batch.
const BATCH_EVENTS: usize = 1 << 16;

impl BatchSize {
    const MAX: usize = 4 << 20;
    const LEAST: usize = 1 << 10;
    /// The maximum output that a batch should produce.
    const MAX_MADE: usize = 16 << 20;

    /// The next batch size, given the size of this batch's output.
    fn next(self, made: usize) -> Self {
        Self(match made > Self::MAX_MADE {
            true => (self.0 / 4).max(Self::LEAST),
            false => (self.0 * 2).min(Self::MAX),
        })
    }
}

impl Default for BatchSize {
    fn default() -> Self {
        Self(16 << 10)
    }
}

impl Dissection {
    /// Starts reading a capture.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::knowing(options, Facts::default())
    }

    /// Starts reading a capture with [facts](Self::facts) from an earlier pass over it.
    #[must_use]
    pub fn knowing(options: Options, facts: Facts) -> Self {
        Self {
            conversations: Conversations::new(&options.limits),
            batch: Batch { only: options.only, ..Batch::default() },
            options,
            open: BTreeMap::new(),
            facts,
            lingering: 0,
            is_over: false,
            spare: Batch::default(),
            overviews: Vec::new(),
            taken: Summary::default(),
        }
    }

    /// Replaces the keys, for conversations that begin from now on.
    pub fn set_keys(&mut self, keys: Keys) {
        self.options.keys = keys;
    }

    /// Takes a packet. Returns true when a batch is full and [`run`](Self::run) should be called.
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        Feed { conversations: &mut self.conversations, batch: &mut self.batch }.push(packet)
    }

    /// Ends the capture. Call [`run`](Self::run) once more afterwards.
    pub fn end(&mut self) {
        self.is_over = true;
        let batch = &mut self.batch;
        self.conversations.finish(&mut |event| batch.hold(event));
    }

    /// Everything that conversations have stated so far.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The reasons why packets were unusable, and the number of packets for each.
    #[must_use]
    pub fn unusable(&self) -> Vec<(Unusable, u64)> {
        self.conversations.unusable()
    }

    /// The number of packets that the capture truncated.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.conversations.cut()
    }

    /// Whether there are packets that have not been [`run`](Self::run) yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.batch.events.is_empty()
    }

    /// Reads the current batch and appends the output of `show` for every item to `out`.
    /// `meanwhile` runs in parallel if a thread is free for it.
    ///
    /// If `show` panics, its output for that item is dropped, and it is called again with a report
    /// of the panic. Items of a conversation that turns out to depend on a fact stated in the same
    /// batch can be shown twice. Only the second output is kept; see [`Scratch::is_repeated`].
    pub fn run<S: Sink, R: Send>(
        &mut self,
        show: &(impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync),
        out: &mut S,
        meanwhile: impl FnOnce(&mut Feed<'_>) -> R + Send,
    ) -> R {
        let mut reading = self.begin();
        let Self { options, facts, conversations, batch: next, .. } = self;
        let (result, ()) = rayon::join(
            || meanwhile(&mut Feed { conversations, batch: next }),
            || reading.read(options, facts, show),
        );
        self.conclude(reading, show).merge(out);
        result
    }

    /// Like [`run`](Self::run), but leaves the output unmerged and calls `beside` on this thread
    /// while other threads read the batch. `beside` can merge and write the output of the previous
    /// batch.
    pub fn run_beside<S: Sink>(
        &mut self,
        show: &(impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync),
        meanwhile: impl FnOnce(&mut Feed<'_>) + Send,
        beside: impl FnOnce(),
    ) -> Unmerged<S> {
        let mut reading = self.begin();
        let Self { options, facts, conversations, batch: next, .. } = self;
        let (options, facts) = (&*options, &*facts);
        rayon::in_place_scope(|scope| {
            // Other threads take the oldest job first. This job cannot be divided.
            scope.spawn(|_| meanwhile(&mut Feed { conversations, batch: next }));
            scope.spawn(|_| reading.read(options, facts, show));
            beside();
        });
        self.conclude(reading, show)
    }

    /// Takes the current batch and starts the next one.
    fn begin<S: Sink>(&mut self) -> Reading<S> {
        let Batch { start, last, size, only, .. } = self.batch;
        let fresh = Batch { start, last, size, only, ..core::mem::take(&mut self.spare) };
        let batch = core::mem::replace(&mut self.batch, fresh);
        let (tasks, owners) = self.share_out(&batch);
        Reading { batch, tasks, owners }
    }

    /// Lets conversations learn from each other and keeps the open ones.
    fn conclude<S: Sink>(&mut self, reading: Reading<S>, show: &impl Show<S>) -> Unmerged<S> {
        let Reading { mut batch, mut tasks, owners } = reading;
        self.exchange(&batch, &mut tasks, show);
        let (mut merge, mut made) = (Merge::default(), 0);
        for task in tasks {
            made += task.sink.len();
            merge.add(task.sink, task.parts);
            match task.open {
                Some(open) if task.closed => self.overviews.push(open.overview),
                Some(open) => {
                    self.open.insert(task.stream, open);
                }
                None => {}
            }
        }
        self.batch.size = batch.size.next(made);
        batch.events.clear();
        batch.bytes.clear();
        self.spare = batch;
        Unmerged { merge, owners }
    }

    /// One task for each conversation in the batch, in order of appearance, and for each event the
    /// index of its task.
    fn share_out<S: Sink>(&mut self, batch: &Batch) -> (Vec<Task<S>>, Vec<usize>) {
        let mut tasks: Vec<Task<S>> = Vec::new();
        let mut counts: Vec<usize> = Vec::new();
        let mut owners = Vec::with_capacity(batch.events.len());
        let mut by_stream: HashMap<u64, usize, RandomState> = HashMap::default();
        for event in &batch.events {
            let stream = event.stamp.stream;
            let owner = *by_stream.entry(stream).or_insert_with(|| {
                tasks.push(Task::new(stream, self.open.remove(&stream)));
                counts.push(0);
                tasks.len() - 1
            });
            counts[owner] += 1;
            owners.push(owner);
        }
        // There can be thousands of conversations, and most are short.
        for (task, count) in tasks.iter_mut().zip(counts) {
            task.expect(count);
        }
        for (index, owner) in owners.iter().enumerate() {
            tasks[*owner].events.push(index);
        }
        (tasks, owners)
    }

    /// Removes the overviews of closed conversations, so that memory does not grow with their
    /// number. [`overviews`](Self::overviews) no longer lists them, but [`summary`](Self::summary)
    /// still counts them.
    pub fn take_closed(&mut self) -> Vec<Overview> {
        let closed = core::mem::take(&mut self.overviews);
        self.taken = closed.iter().fold(self.taken, Summary::with);
        closed
    }

    /// Every conversation so far, by number, except those that were taken.
    #[must_use]
    pub fn overviews(&self) -> Vec<&Overview> {
        let open = self.open.values().map(|open| &open.overview);
        let mut all: Vec<&Overview> = self.overviews.iter().chain(open).collect();
        all.sort_by_key(|overview| overview.stream);
        all
    }

    /// The number of the last packet; 0 before the first one.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.batch.last
    }

    /// A summary of everything read so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let open = self.open.values().map(|open| &open.overview);
        self.overviews.iter().chain(open).fold(self.taken, Summary::with)
    }
}

impl fmt::Debug for Dissection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dissection").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// A batch that is being read.
struct Reading<S> {
    batch: Batch,
    tasks: Vec<Task<S>>,
    /// The task of each event.
    owners: Vec<usize>,
}

impl<S: Sink> Reading<S> {
    /// Reads the events of every conversation, on all threads.
    fn read(&mut self, options: &Options, facts: &Facts, show: &impl Show<S>) {
        let Self { batch, tasks, .. } = self;
        prepare::prepare(batch, tasks, options);
        tasks.par_iter_mut().for_each(|task| task.run(batch, options, facts, show));
    }
}

/// The output of a batch, by conversation; see [`Dissection::run_beside`].
pub struct Unmerged<S: Sink> {
    merge: Merge<S>,
    /// The task of each event.
    owners: Vec<usize>,
}

impl<S: Sink> Unmerged<S> {
    /// Appends the output to `out`, in capture order.
    pub fn merge(self, out: &mut S) {
        self.merge.finish(&self.owners, out);
    }
}

impl<S: Sink> fmt::Debug for Unmerged<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unmerged").field("events", &self.owners.len()).finish_non_exhaustive()
    }
}

/// Takes packets of the next batch while the current one is read.
#[derive(Debug)]
pub struct Feed<'f> {
    conversations: &'f mut Conversations,
    batch: &'f mut Batch,
}

impl Feed<'_> {
    /// Takes a packet. Returns true when the batch is full.
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        let batch = &mut *self.batch;
        if packet.unusable.is_none() {
            batch.start.get_or_insert(packet.time);
        }
        batch.last = packet.number;
        self.conversations.push(packet, &mut |event| batch.hold(event));
        batch.is_full()
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.bytes.len() >= self.size.0 || self.events.len() >= BATCH_EVENTS
    }

    /// Adds an event and copies its bytes.
    fn hold(&mut self, event: Event<'_>) {
        if self.only.is_some_and(|only| only != event.conversation) {
            return;
        }
        let stamp = Stamp {
            stream: event.conversation,
            time: Time(event.time.nanos()),
            since: event.time.since(self.start.unwrap_or(event.time)),
            packet: Some(event.packet),
        };
        let content = match event.kind {
            EventKind::Opened(opened) => Content::Opened(Box::new(Overview {
                stream: event.conversation,
                client: opened.client,
                server: opened.server,
                datagrams: opened.datagrams,
                midstream: opened.midstream,
                family: None,
                first: stamp.time,
                last: stamp.time,
                bytes: [0; 2],
                messages: Counts::default(),
                inside: Counts::default(),
                problems: 0,
                gaps: 0,
                secrets: None,
            })),
            EventKind::Data { side, bytes, .. } | EventKind::Datagram { side, bytes } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Content::Data { side, start, end: self.bytes.len() }
            }
            EventKind::Gap { side, length, .. } => Content::Gap { side, length },
            EventKind::Closed(_) => Content::Closed,
            _ => return,
        };
        self.events.push(HeldEvent { stamp, content });
    }
}

impl OpenConversation {
    fn new(overview: &Overview, options: &Options, context: Context<'_>) -> Self {
        let (midstream, datagrams) = (overview.midstream, overview.datagrams);
        let forced = options.forced(overview);
        let conversation = Conversation::new(
            overview.stream,
            [overview.client, overview.server],
            Transport { midstream, datagrams },
            forced,
            context,
        );
        let (conversation, overview) = (Some(conversation), overview.clone());
        Self { conversation, overview, learned: None, closing: None }
    }

    /// Whether it holds input until it learns a fact.
    fn waits(&self) -> bool {
        self.conversation.as_ref().is_some_and(Conversation::waits)
    }

    /// Runs `act` on the conversation outside its events. A panic ends the conversation.
    fn guarded<S: Sink>(
        &mut self,
        scratch: &mut Scratch,
        sink: &mut S,
        show: &impl Fn(&Item<'_>, &mut Scratch, &mut S),
        act: impl FnOnce(&mut Conversation, &mut dyn FnMut(Item<'_>)),
    ) {
        let Self { conversation, overview, .. } = self;
        let Some(reading) = conversation else { return };
        let stamp = Stamp { stream: overview.stream, time: overview.last, ..Stamp::default() };
        let mut reporter = Reporter { overview, scratch, sink, show };
        if let Err(defect) = catch_defect(|| act(reading, &mut |item| reporter.item(&item))) {
            *conversation = None;
            reporter.given_up(&defect, Side::Client, &[], stamp);
        }
    }
}

impl Content {
    /// Passes the event to its conversation.
    fn read(
        &self,
        conversation: &mut Conversation,
        batch: &Batch,
        stamp: Stamp,
        context: Context<'_>,
        reporter: &mut dyn FnMut(Item<'_>),
    ) {
        #[cfg(test)]
        tests::break_down(&stamp);
        match self {
            Self::Data { side, .. } => {
                conversation.data(context, *side, stamp, self.bytes(batch), reporter);
            }
            Self::Gap { side, length } => {
                conversation.gap(context, *side, stamp, *length, reporter)
            }
            Self::Closed => conversation.end(context, stamp, reporter),
            Self::Opened(_) => {}
        }
    }

    fn bytes<'b>(&self, batch: &'b Batch) -> &'b [u8] {
        match self {
            Self::Data { start, end, .. } => &batch.bytes[*start..*end],
            _ => &[],
        }
    }

    fn side(&self) -> Side {
        match self {
            Self::Data { side, .. } | Self::Gap { side, .. } => *side,
            Self::Opened(_) | Self::Closed => Side::Client,
        }
    }
}

#[cfg(test)]
mod tests;
