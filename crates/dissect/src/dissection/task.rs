//! One conversation's share of a batch.

use super::reporter::{Reporter, Scratch};
use super::{Batch, Content, HeldEvent, OpenConversation, Options};
use crate::conversation::{Context, Conversation};
use crate::defect::catch_defect;
use crate::family::Prepared;
use crate::item::{Item, Stamp};
use crate::knowledge::{Fact, Facts};
use crate::sink::Sink;

/// A position in a batch's output: the index of the event, and the order within its output.
pub(super) type Part = (usize, u64);

/// Enough for most item names.
const NAME: usize = 64;

/// The events of one conversation in a batch, and their output.
pub(super) struct Task<S> {
    pub(super) open: Option<OpenConversation>,
    pub(super) stream: u64,
    /// Its events, as indices into the batch.
    pub(super) events: Vec<usize>,
    /// The number of events read so far.
    pub(super) read: usize,
    pub(super) sink: S,
    /// Every addition to the sink, with the sink's length after it.
    pub(super) parts: Vec<(Part, usize)>,
    /// The facts that the conversation stated, with the event.
    pub(super) facts: Vec<(usize, Fact)>,
    pub(super) closed: bool,
    /// Whether it can be [restarted](Self::restart), because its conversation begins in this batch.
    can_restart: bool,
    /// The first event at which it learned the facts of earlier batches but not those of this batch.
    pub(super) learned_early: Option<usize>,
    /// The number of events read before it was restarted.
    repeated: usize,
    /// The result of preparing the conversation, if any.
    pub(super) prepared: Option<Prepared>,
    scratch: Scratch,
}

/// The function that turns items into output.
pub(super) trait Show<S>: Fn(&Item<'_>, &mut Scratch, &mut S) + Sync {}

impl<S, F: Fn(&Item<'_>, &mut Scratch, &mut S) + Sync> Show<S> for F {}

impl<S: Sink> Task<S> {
    /// A task without events.
    pub(super) fn new(stream: u64, open: Option<OpenConversation>) -> Self {
        Self {
            can_restart: open.is_none(),
            open,
            stream,
            events: Vec::new(),
            read: 0,
            sink: S::default(),
            parts: Vec::new(),
            facts: Vec::new(),
            closed: false,
            learned_early: None,
            repeated: 0,
            prepared: None,
            scratch: Scratch::default(),
        }
    }

    /// Reserves space for this many events and their output.
    pub(super) fn expect(&mut self, events: usize) {
        self.events.reserve_exact(events);
        self.parts.reserve_exact(events);
        self.sink.expect(events);
        self.scratch.name.reserve(NAME);
    }

    /// Drops everything that it read, to read it again with more facts.
    pub(super) fn restart(&mut self) {
        let (events, prepared) = (core::mem::take(&mut self.events), self.prepared.take());
        let repeated = self.read;
        let fresh = Self::new(self.stream, None);
        *self = Self { events, prepared, repeated, can_restart: false, ..fresh };
    }

    /// Reads its events, up to and including the first after which it waits for a fact.
    ///
    /// Other tasks may state facts at the same time. A task that can be restarted nevertheless
    /// learns the facts of earlier batches and continues, because new facts are rare.
    pub(super) fn run(
        &mut self,
        batch: &Batch,
        options: &Options,
        facts: &Facts,
        show: &impl Show<S>,
    ) {
        while !self.waits() && self.step(batch, options, facts, 0, show) {}
    }

    /// Whether its conversation holds input until it learns a fact.
    pub(super) fn waits(&self) -> bool {
        self.open.as_ref().is_some_and(OpenConversation::waits)
    }

    pub(super) fn last_event(&self) -> Option<usize> {
        self.events.get(self.read.checked_sub(1)?).copied()
    }

    /// Reads the next event. Returns false if there is none. `order` determines the place of the
    /// output among all output of the same event.
    pub(super) fn step(
        &mut self,
        batch: &Batch,
        options: &Options,
        facts: &Facts,
        order: u64,
        show: &impl Show<S>,
    ) -> bool {
        let Some(index) = self.events.get(self.read).copied() else { return false };
        self.read += 1;
        self.scratch.is_repeated = self.read <= self.repeated;
        let context = Context { prepared: self.prepared.as_ref(), ..options.context(facts) };
        let HeldEvent { stamp, content } = &batch.events[index];
        if let Content::Opened(overview) = content {
            self.open = Some(OpenConversation::new(overview, options, context));
            return true;
        }
        let Some(OpenConversation { conversation, overview, closing, .. }) = &mut self.open else {
            return true;
        };
        overview.last = stamp.time;
        match content {
            Content::Data { side, start, end } => {
                let side = conversation.as_ref().map_or(*side, |reading| reading.side(*side));
                overview.bytes[side.index()] += (end - start) as u64;
            }
            Content::Gap { .. } => overview.gaps += 1,
            Content::Closed => self.closed = true,
            Content::Opened(_) => {}
        }
        let Some(reading) = conversation else { return true };
        let was_swapped = reading.is_swapped();
        if self.closed && reading.waits() {
            (self.closed, *closing) = (false, Some(*stamp));
            return true;
        }
        let mut reporter =
            Reporter { overview, scratch: &mut self.scratch, sink: &mut self.sink, show };
        let read =
            || content.read(reading, batch, *stamp, context, &mut |item| reporter.item(&item));
        match catch_defect(read) {
            Ok(()) => {
                overview.family = reading.family();
                overview.midstream |= reading.is_midstream();
                if self.closed && options.secrets {
                    overview.secrets = reading.secrets();
                }
                if reading.is_swapped() != was_swapped {
                    overview.swap();
                }
            }
            Err(defect) => {
                // The panic may have left it inconsistent, so it is not used again.
                *conversation = None;
                reporter.given_up(&defect, content.side(), content.bytes(batch), *stamp);
            }
        }
        self.conclude(index, order);
        let is_early = order == 0;
        if self.waits() && (!is_early || self.can_restart) {
            if is_early && !facts.is_empty() {
                self.learned_early.get_or_insert(index);
            }
            self.learn(index, options, facts, order, show);
        }
        true
    }

    /// Learns the known facts, if it waits and has not seen all of them.
    pub(super) fn learn(
        &mut self,
        event: usize,
        options: &Options,
        facts: &Facts,
        order: u64,
        show: &impl Show<S>,
    ) {
        let Some(open) = &mut self.open else { return };
        if !open.waits() || facts.is_empty() || open.learned == Some(facts.stated()) {
            return;
        }
        open.learned = Some(facts.stated());
        let stamp = open.closing.unwrap_or_default();
        open.guarded(&mut self.scratch, &mut self.sink, show, |conversation, reporter| {
            conversation.learn(facts, stamp, reporter);
        });
        if !open.waits() {
            // It can now wait for another fact.
            open.learned = None;
            if open.closing.is_some() {
                self.end(options, facts, show);
            }
        }
        self.conclude(event, order);
    }

    /// Ends a conversation that closed while it waited.
    pub(super) fn give_up(
        &mut self,
        event: usize,
        options: &Options,
        facts: &Facts,
        order: u64,
        show: &impl Show<S>,
    ) {
        self.end(options, facts, show);
        self.conclude(event, order);
    }

    fn end(&mut self, options: &Options, facts: &Facts, show: &impl Show<S>) {
        let Some(open) = &mut self.open else { return };
        let stamp: Stamp = open.closing.take().unwrap_or_default();
        open.guarded(&mut self.scratch, &mut self.sink, show, |conversation, reporter| {
            conversation.end(options.context(facts), stamp, reporter);
        });
        self.closed = true;
        if options.secrets {
            open.overview.secrets = open.conversation.as_ref().and_then(Conversation::secrets);
        }
    }

    /// Records the output and facts of what was just read.
    fn conclude(&mut self, event: usize, order: u64) {
        let length = self.sink.len();
        if length != self.parts.last().map_or(0, |part| part.1) {
            self.parts.push(((event, order), length));
        }
        let conversation = self.open.as_mut().and_then(|open| open.conversation.as_mut());
        let stated = conversation.map(Conversation::facts).unwrap_or_default();
        self.facts.extend(stated.into_iter().map(|fact| (event, fact)));
    }
}
