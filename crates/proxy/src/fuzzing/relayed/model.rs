//! A model of a relayed conversation over streams: what each end must receive, and when.
//!
//! The model knows nothing of relays or of the proxy's desk. It consists of a list of messages for each
//! direction, and the rules that the documentation of [`Handler`](crate::Handler),
//! [`Effects`] and [`Exchange`](crate::Exchange) states.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use worldwire_core::Side;

use super::choices::Choices;
use super::{Content, Decided, Heard, Model, Rates, delay};
use crate::exchange::Counts;
use crate::handler::{Effects, Passing};

/// The model of both directions, by the side that sends.
#[derive(Debug)]
pub struct StreamModel {
    content: Arc<Content>,
    /// Whether everything that an end sends arrives at the proxy once and in order.
    is_reliable: bool,
    /// The messages that the ends have sent and the proxy has not reported yet.
    sent: [VecDeque<Vec<u8>>; 2],
    /// The messages that the other end must receive, in order.
    queues: [VecDeque<Entry>; 2],
    /// The held messages, by ID.
    holds: BTreeMap<u64, Until>,
    /// Additions sent back to a message's sender. They leave only when everything before them has.
    answers: Vec<Answer>,
    /// Breakpoints that the proxy has not reported.
    unreported: VecDeque<(Side, u64)>,
    /// The holds, by the number that the proxy gave them.
    open: BTreeMap<u64, (Side, u64)>,
    has_ended: [bool; 2],
    abandoned: [bool; 2],
    last_id: u64,
    counts: Counts,
}

#[derive(Debug)]
struct Entry {
    /// `None` if it is dropped.
    body: Option<Vec<u8>>,
    /// The message as shown at a breakpoint.
    shown: Vec<u8>,
    /// Whether the handler gave it another type.
    is_foreign: bool,
    /// What the held message waits for.
    hold: Option<u64>,
    /// The ID of the message; `None` for an added one.
    id: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Time(Duration),
    Decision,
}

/// An addition to the side that sent the message `id`.
#[derive(Debug)]
struct Answer {
    to: Side,
    id: u64,
    body: Vec<u8>,
}

impl StreamModel {
    /// Nothing has been sent yet.
    #[must_use]
    pub fn new(content: Arc<Content>, is_reliable: bool) -> Self {
        Self {
            content,
            is_reliable,
            sent: Default::default(),
            queues: Default::default(),
            holds: BTreeMap::new(),
            answers: Vec::new(),
            unreported: VecDeque::new(),
            open: BTreeMap::new(),
            has_ended: [false; 2],
            abandoned: [false; 2],
            last_id: 0,
            counts: Counts::default(),
        }
    }

    fn is_held(&self, entry: &Entry) -> bool {
        entry.hold.is_some_and(|hold| self.holds.contains_key(&hold))
    }

    fn is_blocked(&self, from: Side) -> bool {
        self.queues[from.index()].iter().any(|entry| self.is_held(entry))
    }

    /// Adds a message to a side before the first held one.
    fn insert(&mut self, to: Side, body: Vec<u8>) {
        if self.has_ended[to.other().index()] {
            return;
        }
        let queue = &self.queues[to.other().index()];
        let at = queue.iter().position(|entry| self.is_held(entry)).unwrap_or(queue.len());
        let entry =
            Entry { shown: Vec::new(), body: Some(body), is_foreign: false, hold: None, id: None };
        self.queues[to.other().index()].insert(at, entry);
    }

    /// Sends the answers whose messages have left.
    fn send_answers(&mut self) {
        while let Some(at) = self.answers.iter().position(|answer| {
            let queue = &self.queues[answer.to.index()];
            let before = queue.iter().take_while(|entry| entry.id != Some(answer.id));
            let own = queue.iter().filter(|entry| entry.id == Some(answer.id));
            !before.chain(own).any(|entry| self.is_held(entry))
        }) {
            let Answer { to, body, .. } = self.answers.remove(at);
            self.insert(to, body);
        }
    }
}

impl Model for StreamModel {
    fn said(&mut self, from: Side, body: &[u8]) {
        self.sent[from.index()].push_back(self.content.normal(from, body));
    }

    fn message(
        &mut self,
        choices: &mut Choices,
        rates: Rates,
        passing: &Passing<'_>,
        effects: &mut Effects,
    ) {
        self.counts.messages += 1;
        let from = passing.item.from;
        if self.content.is_upkeep(passing.name) {
            return;
        }
        let body = self.content.normal(from, passing.body);
        if self.is_reliable {
            let sent = self.sent[from.index()].pop_front();
            assert_eq!(sent.as_ref(), Some(&body), "the {from} did not send this");
        }
        self.last_id += 1;
        let id = self.last_id;
        let mut entry = Entry {
            shown: body.clone(),
            body: Some(body),
            is_foreign: false,
            hold: None,
            id: Some(id),
        };
        if choices.percent(rates.change) {
            entry.is_foreign = choices.percent(50);
            let other = match entry.is_foreign {
                true => self.content.make(from, choices),
                false => self.content.make_like(from, passing.body, choices),
            };
            (entry.shown, entry.body) = (other.clone(), Some(other.clone()));
            effects.change(other);
            self.counts.changed += 1;
        } else if choices.percent(rates.drop) {
            entry.body = None;
            effects.discard();
            self.counts.dropped += 1;
        }
        let was_blocked = self.is_blocked(from);
        if choices.percent(rates.pause) {
            effects.pause();
            self.holds.insert(id, Until::Decision);
            self.unreported.push_back((from, id));
        } else if choices.percent(rates.delay) {
            // Distinct times, so that no two messages are released at the same moment.
            let at = passing.now + delay(choices) + Duration::from_nanos(id);
            effects.delay_until(at);
            self.holds.insert(id, Until::Time(at));
        }
        if self.holds.contains_key(&id) {
            entry.hold = Some(id);
            self.counts.held += 1;
        }
        let mut added = Vec::new();
        while self.content.can_add && added.len() < 3 && choices.percent(rates.add) {
            let to = if choices.percent(50) { from } else { from.other() };
            let body = self.content.make(to.other(), choices);
            effects.add(to, body.clone());
            self.counts.added += 1;
            added.push((to, body));
        }
        // Additions to both sides leave together.
        let waits = was_blocked && added.iter().any(|(to, _)| *to != from);
        for (to, body) in added {
            if to != from {
                let hold = entry.hold.filter(|_| waits);
                let added = Entry {
                    shown: Vec::new(),
                    body: Some(body),
                    is_foreign: false,
                    hold,
                    id: None,
                };
                self.queues[from.index()].push_back(added);
            } else if waits {
                self.answers.push(Answer { to, id, body });
            } else {
                self.insert(to, body);
            }
        }
        self.queues[from.index()].push_back(entry);
    }

    fn added(&mut self, to: Side, body: Vec<u8>) {
        self.counts.added += 1;
        self.insert(to, body);
    }

    fn reported(&mut self, number: u64, from: Side) {
        let (side, id) = self.unreported.pop_front().expect("a breakpoint");
        assert_eq!(side, from, "message {number}");
        self.open.insert(number, (side, id));
    }

    fn is_editable(&self, number: u64) -> bool {
        let (from, id) = self.open[&number];
        let mut entries = self.queues[from.index()].iter();
        entries.all(|entry| entry.id != Some(id) || !entry.is_foreign)
    }

    fn is_checked(&self, number: u64) -> bool {
        // A replacement is checked only later if additions wait with the message.
        let (from, id) = self.open[&number];
        let mut entries = self.queues[from.index()].iter();
        let waits = entries.any(|entry| entry.hold == Some(id) && entry.id.is_none());
        !waits && self.answers.iter().all(|answer| answer.id != id)
    }

    fn decided(&mut self, number: u64, decided: Decided) {
        let (from, id) = self.open.remove(&number).expect("it is held");
        self.holds.remove(&id);
        let queue = &mut self.queues[from.index()];
        let entry = queue.iter_mut().find(|entry| entry.id == Some(id)).expect("it waits");
        match decided {
            Decided::Sent => {}
            Decided::Dropped => {
                entry.body = None;
                self.counts.dropped += 1;
            }
            Decided::Edited => {
                entry.body = Some(core::mem::take(&mut entry.shown));
                self.counts.changed += 1;
            }
            Decided::Changed(body) => {
                entry.body = Some(body);
                self.counts.changed += 1;
            }
        }
        self.send_answers();
    }

    fn passed(&mut self, now: Duration) {
        self.holds.retain(|_, until| !matches!(until, Until::Time(at) if *at <= now));
        self.send_answers();
    }

    fn heard(&mut self, by: Side, heard: Heard) {
        let from = by.other();
        let Heard::Message(body) = heard else { return };
        loop {
            let queue = &self.queues[from.index()];
            let entry = queue.front().expect("a message that nobody sent");
            assert!(!self.is_held(entry), "a held message left");
            let entry = self.queues[from.index()].pop_front();
            if let Some(wanted) = entry.and_then(|entry| entry.body) {
                assert_eq!(body, wanted, "the {by} received a different message");
                return;
            }
        }
    }

    fn ended(&mut self, from: Side) {
        self.has_ended[from.index()] = true;
    }

    fn abandon(&mut self, from: Side) {
        self.abandoned[from.index()] = true;
    }

    fn check_ended(&self, from: Side) {
        let left = self.queues[from.index()].iter().find(|entry| entry.body.is_some());
        assert!(left.is_none(), "the {from}'s stream ended before its messages: {left:?}");
    }

    fn check_settled(&self) {
        for from in Side::BOTH.into_iter().filter(|from| !self.abandoned[from.index()]) {
            // The proxy stops reading a stream when it keeps too much.
            if self.is_reliable && !self.is_blocked(from) {
                assert!(self.sent[from.index()].is_empty(), "the {from}'s messages are not read");
            }
            let mut queue = self.queues[from.index()].iter();
            let next = queue.find(|entry| entry.body.is_some() || self.is_held(entry));
            assert!(
                next.is_none_or(|entry| self.is_held(entry)),
                "the {from}'s messages are stuck: {next:?}"
            );
        }
        if self.abandoned == [false; 2] {
            assert!(self.unreported.is_empty(), "breakpoints are not reported");
        }
    }

    fn is_finished(&self) -> bool {
        let is_done = |from: Side| {
            self.abandoned[from.index()]
                || self.queues[from.index()].iter().all(|entry| entry.body.is_none())
        };
        self.holds.is_empty() && Side::BOTH.into_iter().all(is_done)
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn replacement(
        &mut self,
        number: u64,
        choices: &mut Choices,
        content: &Content,
    ) -> Option<Vec<u8>> {
        let (from, _) = self.open.get(&number)?;
        Some(content.make(*from, choices))
    }
}
