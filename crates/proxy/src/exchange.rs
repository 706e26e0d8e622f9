//! One relayed conversation without IO: a relay, and the handlers that decide about its messages.

use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use worldwire_core::connection::{Input, SendError};
use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result, Side};
use worldwire_dissect::{
    Answer, CodecOptions, Decider, Decision, Definitions, Ends, Fact, Facts, HoldId, Item, Keys,
    Line, LineEncoder, NoteKind, RelaySession, Stamp, Time,
};

use crate::handler::{Addition, Effects, Handler, Hold, Next, Passing, Report};

/// One conversation on its way through a proxy.
///
/// Bytes, time and decisions go in; bytes, deadlines and [reports](Report) come out.
pub struct Exchange {
    session: Box<dyn RelaySession>,
    desk: Desk,
    stamp: Stamp,
    /// The wall-clock time at zero on the proxy's clock.
    epoch: Time,
}

/// What decides about messages.
struct Desk {
    handlers: Vec<Box<dyn Handler>>,
    known: Known,
    /// Encodes messages with what this conversation has revealed.
    encoder: Option<Arc<dyn LineEncoder>>,
    ends: Option<Ends>,
    /// Whether the handlers know that the conversation is established.
    is_announced: bool,
    now: Duration,
    name: String,
    /// Messages to add before the item just answered.
    added: VecDeque<(Side, Vec<u8>)>,
    /// The message that was just answered with a hold.
    holding: Option<Held>,
    held: BTreeMap<HoldId, Held>,
    reports: VecDeque<Report>,
    /// What was done with messages. `None` unless the conversation is recorded.
    marks: Option<Vec<Mark>>,
    counts: Counts,
    next_number: u64,
}

/// What is known in advance about a conversation.
#[derive(Clone, Debug)]
pub struct Known {
    /// The name of its family.
    pub family: &'static str,
    /// The definitions of its messages.
    pub definitions: Arc<Definitions>,
    /// Secrets.
    pub keys: Arc<Keys>,
}

/// What a proxy did with a message, for a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The sender of the message; for an added one, the side that appears to send it.
    pub(crate) from: Side,
    /// Whether it concerns the packet that leaves rather than the one that arrived.
    pub(crate) leaves: bool,
    /// What was done: `changed auth.AgeReply`.
    pub(crate) text: String,
}

/// A held message.
#[derive(Clone, Debug)]
struct Held {
    number: u64,
    name: String,
    from: Side,
    /// When it is released; `None` if somebody has to decide.
    until: Option<Duration>,
    decision: Decision<'static>,
}

/// How many messages a conversation has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that arrived.
    pub messages: u64,
    /// Of these, how many were changed.
    pub changed: u64,
    /// Of these, how many were dropped.
    pub dropped: u64,
    /// Of these, how many were held or delayed.
    pub held: u64,
    /// Messages that were added.
    pub added: u64,
}

/// How many reports wait to be taken. Later ones are dropped.
const MAX_REPORTS: usize = 1_024;
/// How often a handler may see the same message again.
pub(crate) const MAX_AGAIN: usize = 64;

impl Exchange {
    /// A conversation that starts now. `epoch` is the wall-clock time at zero on the proxy's clock.
    #[must_use]
    pub fn new(
        session: Box<dyn RelaySession>,
        handlers: Vec<Box<dyn Handler>>,
        known: Known,
        (stream, epoch): (u64, Time),
        ends: Option<Ends>,
    ) -> Self {
        let desk = Desk {
            handlers,
            known,
            encoder: None,
            ends,
            is_announced: false,
            now: Duration::ZERO,
            name: String::new(),
            added: VecDeque::new(),
            holding: None,
            held: BTreeMap::new(),
            reports: VecDeque::new(),
            marks: None,
            counts: Counts::default(),
            next_number: 1,
        };
        Self { session, desk, stamp: Stamp { stream, ..Stamp::default() }, epoch }
    }

    /// Takes what a side sent.
    pub fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        let stamp = self.at(now);
        self.session.input(now, stamp, from, input, &mut self.desk);
    }

    /// Advances time to `now`.
    pub fn timeout(&mut self, now: Duration) {
        let stamp = self.at(now);
        self.session.timeout(now, stamp, &mut self.desk);
        self.run_handlers();
        self.release_due();
        self.session.resume(stamp, &mut self.desk);
    }

    /// Continues after output made room, or after a [decision](Self::decide).
    pub fn resume(&mut self, now: Duration) {
        let stamp = self.at(now);
        self.session.resume(stamp, &mut self.desk);
    }

    /// Learns what other conversations have stated.
    pub fn learn(&mut self, now: Duration, facts: &Facts) {
        let stamp = self.at(now);
        self.session.learn(facts, stamp, &mut self.desk);
    }

    /// Facts for other conversations, since the last call.
    pub fn facts(&mut self) -> Vec<Fact> {
        self.session.facts()
    }

    /// Whether it holds input that it can only read after learning a fact.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.session.waits()
    }

    /// Decides about a message held at a breakpoint, by its number. It leaves with the next
    /// [`resume`](Self::resume).
    ///
    /// # Errors
    /// [`SendError::NotHeld`], and those of [`RelaySession::release`]. The message then stays held.
    pub fn decide(
        &mut self,
        number: u64,
        decision: Decision<'_>,
    ) -> core::result::Result<(), SendError> {
        let mut open = self.desk.held.iter().filter(|(_, held)| held.until.is_none());
        let id = open.find(|(_, held)| held.number == number).map(|(id, _)| *id);
        let id = id.ok_or(SendError::NotHeld)?;
        let own = match decision {
            // As the handlers left it.
            Decision::AsIs => self.desk.held.get(&id).map(|held| held.decision.clone()),
            _ => None,
        };
        self.session.release(id, own.unwrap_or(decision))?;
        self.desk.held.remove(&id);
        Ok(())
    }

    /// Sends an additional message to a side, before any held ones.
    ///
    /// # Errors
    /// Those of [`RelaySession::inject`].
    pub fn add(&mut self, to: Side, body: &[u8]) -> core::result::Result<(), SendError> {
        self.session.inject(to, body)?;
        self.desk.counts.added += 1;
        Ok(())
    }

    /// Notes from now on what is done with messages, for [`marks`](Self::marks).
    pub(crate) fn begin_marks(&mut self) {
        self.desk.marks = Some(Vec::new());
    }

    /// What was done with messages since the last call.
    pub(crate) fn marks(&mut self) -> Vec<Mark> {
        self.desk.marks.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// The keys of this conversation, on both sides of the proxy, as a key file.
    #[must_use]
    pub fn secrets(&self) -> Option<String> {
        self.session.secrets()
    }

    /// The next report.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.desk.reports.pop_front()
    }

    /// The next bytes for a side; over UDP, one datagram.
    pub fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.session.poll_transmit(to)
    }

    /// When to call [`timeout`](Self::timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let handlers = self.desk.handlers.iter().filter_map(|handler| handler.poll_timeout());
        let held = self.desk.held.values().filter_map(|held| held.until);
        handlers.chain(held).chain(self.session.poll_timeout()).min()
    }

    /// Whether it reads no more from a side for now.
    #[must_use]
    pub fn is_paused(&self, from: Side) -> bool {
        self.session.is_paused(from)
    }

    /// How many bytes of a side it keeps.
    #[must_use]
    pub fn kept_bytes(&self, from: Side) -> usize {
        self.session.kept_bytes(from)
    }

    /// How many bytes are queued for a side.
    #[must_use]
    pub fn queued_bytes(&self, to: Side) -> usize {
        self.session.queued_bytes(to)
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// Ends it.
    pub fn close(&mut self) {
        self.session.close();
    }

    /// The wall-clock time of the last step.
    pub(crate) fn time(&self) -> Time {
        self.stamp_at(self.desk.now).time
    }

    /// Its figures.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.desk.counts
    }

    fn at(&mut self, now: Duration) -> Stamp {
        self.desk.now = now;
        self.stamp_at(now)
    }

    fn stamp_at(&self, now: Duration) -> Stamp {
        let nanos = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        Stamp { time: Time(self.epoch.0.saturating_add(nanos)), since: now, ..self.stamp }
    }

    /// Gives the handlers the time, and carries out what they ask for.
    fn run_handlers(&mut self) {
        let now = self.desk.now;
        let mut effects = Effects::default();
        for handler in &mut self.desk.handlers {
            if handler.poll_timeout().is_some_and(|at| at <= now) {
                handler.timeout(now, &mut effects);
            }
        }
        for (to, addition) in effects.added {
            let Some(body) = self.desk.encode(to, addition) else { continue };
            match self.session.inject(to, &body) {
                Ok(()) => {
                    self.desk.counts.added += 1;
                    self.desk.mark(to.other(), true, "added", "a message");
                }
                Err(error) => self.desk.report(not_added(&error)),
            }
        }
        effects.reports.into_iter().for_each(|report| self.desk.report(report));
    }

    /// Releases the messages whose delay is over.
    fn release_due(&mut self) {
        let now = self.desk.now;
        let due =
            |(id, held): (&HoldId, &Held)| held.until.is_some_and(|at| at <= now).then_some(*id);
        let due: Vec<HoldId> = self.desk.held.iter().filter_map(due).collect();
        for id in due {
            let Some(held) = self.desk.held.remove(&id) else { continue };
            let outcome = match self.session.release(id, held.decision) {
                // Never keep the conversation waiting for a decision that cannot be carried out.
                Err(error) => self.session.release(id, Decision::AsIs).and(Err(error)),
                done => done,
            };
            if let Err(error) = outcome {
                let text = format!("{} was forwarded unchanged: {error}", held.name);
                self.desk.report(Report::Problem(text));
            }
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("session", &self.session).finish_non_exhaustive()
    }
}

fn not_added(error: &dyn fmt::Display) -> Report {
    Report::Problem(format!("a message was not added: {error}"))
}

impl Desk {
    fn report(&mut self, report: Report) {
        if self.reports.len() < MAX_REPORTS {
            self.reports.push_back(report);
        }
    }

    fn mark(&mut self, from: Side, leaves: bool, action: &str, name: &str) {
        if let Some(marks) = &mut self.marks {
            let text = format!("the proxy {action} {name}");
            marks.push(Mark { from, leaves, text });
        }
    }

    /// The bytes of a message to add. `None` if it cannot be encoded, which is reported.
    fn encode(&mut self, to: Side, addition: Addition) -> Option<Vec<u8>> {
        let (name, fields) = match addition {
            Addition::Body(body) => return Some(body),
            Addition::Named(name, fields) => (name, fields),
        };
        let line: Json = [
            ("family", self.known.family.into()),
            ("from", to.other().name().into()),
            ("name", name.as_str().into()),
            ("fields", fields),
        ]
        .into_iter()
        .collect();
        let encoded = Line::parse(&line).and_then(|line| match line {
            Some(line) => self.encode_line(&line),
            None => Err(Error::value("a message", "the name of a note")),
        });
        match encoded {
            Ok(body) => Some(body),
            Err(error) => {
                self.report(not_added(&error));
                None
            }
        }
    }

    fn encode_line(&self, line: &Line<'_>) -> Result<Vec<u8>> {
        if let Some(encoder) = &self.encoder {
            return encoder.encode_line(line);
        }
        let Known { definitions, keys, .. } = &self.known;
        let limits = &Limits::DEFAULT;
        let options = CodecOptions { from: line.from, keys, definitions, limits };
        line.encode(&options)?.ok_or_else(|| line.no_message())
    }

    /// Asks all handlers about one message.
    fn ask(&mut self, item: &Item<'_>) -> Answer {
        let Some(message) = item.message() else { return Decision::AsIs.into() };
        let mut name = core::mem::take(&mut self.name);
        name.clear();
        message.push_name(&mut name);
        let mut effects = Effects::default();
        if !core::mem::replace(&mut self.is_announced, true) {
            for handler in &mut self.handlers {
                handler.established(self.ends.as_ref(), &mut effects);
            }
        }
        let mut changed: Option<Vec<u8>> = None;
        let (mut index, mut again) = (0, 0);
        let mut is_dropped = false;
        loop {
            let known = changed.take();
            let passing =
                Passing::new((item, message), &name, self.now, known.as_deref(), is_dropped);
            let mut is_over = true;
            while let Some(handler) = self.handlers.get_mut(index) {
                let next = handler.message(&passing, &mut effects);
                is_dropped = effects.is_dropped.take().unwrap_or(is_dropped);
                if next == Next::Again && again < MAX_AGAIN {
                    again += 1;
                } else {
                    (index, again) = (index + 1, 0);
                }
                if effects.change.is_some() || is_dropped != passing.is_dropped {
                    is_over = false;
                    break;
                }
            }
            drop(passing);
            changed = effects.change.take().or(known);
            if is_over {
                break;
            }
        }
        self.counts.messages += 1;
        self.encoder = message.line_encoder();
        for (to, addition) in effects.added {
            if let Some(body) = self.encode(to, addition) {
                self.counts.added += 1;
                self.mark(to.other(), true, "added a message before", &name);
                self.added.push_back((to, body));
            }
        }
        effects.reports.into_iter().for_each(|report| self.report(report));
        let decision = match changed {
            _ if is_dropped => Decision::Drop,
            Some(body) => Decision::instead(body),
            None => Decision::AsIs,
        };
        match &decision {
            Decision::AsIs => {}
            Decision::Instead(_) => {
                self.counts.changed += 1;
                self.mark(item.from, false, "changes", &name);
                self.mark(item.from, true, "changed", &name);
            }
            Decision::Drop => {
                self.counts.dropped += 1;
                self.mark(item.from, false, "drops", &name);
            }
        }
        let answer = match effects.hold {
            None => decision.into(),
            Some(hold) => {
                self.counts.held += 1;
                self.mark(item.from, false, "holds", &name);
                let until = match hold {
                    Hold::Until(at) => Some(at),
                    Hold::Open => None,
                };
                let number = self.next_number;
                let held = Held { number, name: name.clone(), from: item.from, until, decision };
                self.holding = Some(held);
                Answer::Hold
            }
        };
        self.name = name;
        answer
    }
}

impl Decider for Desk {
    fn decide(&mut self, item: &Item<'_>) -> Answer {
        if let Some(note) = item.note() {
            match note.kind {
                NoteKind::Problem | NoteKind::Warning => {
                    self.report(Report::Problem(note.text.clone()));
                }
                _ => {}
            }
            return Decision::AsIs.into();
        }
        match item.message() {
            Some(message) if message.is_message() => self.ask(item),
            _ => Decision::AsIs.into(),
        }
    }

    fn held(&mut self, id: HoldId) {
        let Some(held) = self.holding.take() else { return };
        self.next_number += 1;
        if held.until.is_none() {
            let Held { number, from, .. } = held;
            self.report(Report::Held { id: number, name: held.name.clone(), from });
        }
        self.held.insert(id, held);
    }

    fn added(&mut self) -> Option<(Side, Vec<u8>)> {
        self.added.pop_front()
    }
}
