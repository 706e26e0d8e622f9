//! One relayed conversation without I/O: a relay, and the handlers that decide what happens to its
//! messages.

use core::fmt;
use core::ops::AddAssign;
use core::time::Duration;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_core::connection::{Input, SendError};
use worldwire_core::json::Json;
use worldwire_dissect::{
    Decision, Definitions, Ends, Fact, Facts, Keys, RelaySession, Stamp, Time,
};

use crate::desk::{Desk, Mark, not_added};
use crate::handler::{Effects, Finished, Handler, Report};
use crate::held::{Held, HeldMessage};
use crate::hook::{ConversationHooks, HookEvent};

/// One conversation that a proxy relays.
///
/// Bytes, time and decisions go in; bytes, deadlines and [reports](Report) come out.
pub struct Exchange {
    session: Box<dyn RelaySession>,
    desk: Desk,
    stamp: Stamp,
    /// The wall-clock time when the proxy's clock reads zero.
    epoch: Time,
    /// The sides that will send nothing more.
    ended: [bool; 2],
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

/// Counts of a conversation's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that arrived.
    pub messages: u64,
    /// Messages that were changed.
    pub changed: u64,
    /// Messages that were dropped.
    pub dropped: u64,
    /// Messages that were held or delayed.
    pub held: u64,
    /// Messages that were added.
    pub added: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.changed += other.changed;
        self.dropped += other.dropped;
        self.held += other.held;
        self.added += other.added;
    }
}

impl Exchange {
    /// A conversation that starts now. `epoch` is the wall-clock time when the proxy's clock reads
    /// zero.
    #[must_use]
    pub fn new(
        session: Box<dyn RelaySession>,
        handlers: Vec<Box<dyn Handler>>,
        known: Known,
        (stream, epoch): (u64, Time),
        ends: Option<Ends>,
    ) -> Self {
        let desk = Desk::new(handlers, known, ends);
        Self {
            session,
            desk,
            stamp: Stamp { stream, ..Stamp::default() },
            epoch,
            ended: [false; 2],
        }
    }

    /// Handles bytes from a side.
    pub fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        let stamp = self.at(now);
        self.ended[from.index()] |= matches!(input, Input::End);
        self.session.input(now, stamp, from, input, &mut self.desk);
        self.release_ready(stamp);
    }

    /// Advances time to `now`.
    pub fn timeout(&mut self, now: Duration) {
        let stamp = self.at(now);
        self.session.timeout(now, stamp, &mut self.desk);
        self.run_handlers();
        self.session.resume(stamp, &mut self.desk);
        self.release_ready(stamp);
    }

    /// Continues after sent output has made room, or after a [decision](Self::decide).
    pub fn resume(&mut self, now: Duration) {
        let stamp = self.at(now);
        self.session.resume(stamp, &mut self.desk);
        self.release_ready(stamp);
    }

    /// Learns facts that other conversations have stated.
    pub fn learn(&mut self, now: Duration, facts: &Facts) {
        let stamp = self.at(now);
        self.session.learn(facts, stamp, &mut self.desk);
        self.release_ready(stamp);
    }

    /// Shows messages to hooks after all handlers have seen them. Hooks answer later, so no handler
    /// could see their changes.
    #[must_use]
    pub fn with_hooks(mut self, hooks: ConversationHooks) -> Self {
        self.desk.hooks = Some(hooks);
        self
    }

    /// Handles an event from a hook, received on the channel that
    /// [`Hooks::join`](crate::Hooks::join) returned. Answered messages are sent, each after the
    /// messages that the answer adds.
    pub fn hook(&mut self, now: Duration, event: HookEvent) {
        let stamp = self.at(now);
        let mut effects = Effects::default();
        if let Some(hooks) = &mut self.desk.hooks {
            hooks.event(now, event, &mut effects);
        }
        self.carry_out(effects);
        self.release_ready(stamp);
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

    /// Decides what happens to a message held at a breakpoint, by its number. The next
    /// [`resume`](Self::resume) carries the decision out, after adding the messages that handlers
    /// added before it. While such messages wait, a replacement is checked only when it is sent. If
    /// it does not fit, this is reported, and the message is forwarded unchanged.
    ///
    /// # Errors
    /// [`SendError::NotHeld`], and those of [`RelaySession::release`]. The message then stays held.
    pub fn decide(&mut self, number: u64, decision: Decision<'_>) -> Result<(), SendError> {
        let found = self.desk.held.open().find(|(_, held)| held.number == number);
        let (id, held) = found.ok_or(SendError::NotHeld)?;
        let (from, name) = (held.from, held.name.clone());
        let decided = decision.clone().into_owned();
        let waits = held.ticket.is_some() && decided == Decision::AsIs;
        if waits || !held.added.is_empty() {
            // The message is forwarded now, or when its hooks have answered.
            self.desk.held.change(id, |held| {
                held.hold = None;
                if decided != Decision::AsIs {
                    held.ticket = None;
                    held.decision = decided.clone();
                }
            });
        } else {
            let own = (decided == Decision::AsIs).then(|| held.decision.clone());
            self.session.release(id, own.unwrap_or(decision))?;
            self.desk.held.remove(id);
        }
        self.desk.note_decision(from, &name, &decided);
        Ok(())
    }

    /// The messages held at breakpoints, oldest first.
    #[must_use]
    pub fn held(&self) -> Vec<HeldMessage> {
        let held = self.desk.held.open().filter_map(|(_, held)| {
            let Held { number: id, from, since, .. } = *held;
            let (name, line) = (held.name.clone(), held.kept.as_ref()?.line());
            let has_receiver_ended = self.ended[from.other().index()];
            Some(HeldMessage { id, name, from, since, line, has_receiver_ended })
        });
        held.collect()
    }

    /// Releases a message held at a breakpoint with other fields, given as in a line of
    /// `dissect --json`.
    ///
    /// # Errors
    /// [`SendError::NotHeld`]; [`SendError::Encode`] if the fields do not fit. The message then
    /// stays held.
    pub fn edit(&mut self, number: u64, fields: Json) -> Result<(), SendError> {
        let found = self.desk.held.open().find(|(_, held)| held.number == number);
        let (_, held) = found.ok_or(SendError::NotHeld)?;
        let mut kept = held.kept.clone().ok_or(SendError::NotHeld)?;
        kept.replace_fields(fields).map_err(SendError::Encode)?;
        self.decide(number, Decision::instead(kept.body))
    }

    /// Encodes a message from a side without sending it: like [`edit`](Self::edit) if the number of
    /// a held message is given, otherwise like [`add_named`](Self::add_named).
    ///
    /// # Errors
    /// [`SendError::NotHeld`]; [`SendError::Encode`] if the fields do not fit.
    pub fn encode(
        &self,
        held: Option<u64>,
        from: Side,
        name: &str,
        fields: Json,
    ) -> Result<Vec<u8>, SendError> {
        let Some(number) = held else {
            return self.desk.coder.encode(from, name, fields, None).map_err(SendError::Encode);
        };
        let mut open = self.desk.held.open().map(|(_, held)| held);
        let held = open.find(|held| held.number == number).ok_or(SendError::NotHeld)?;
        let mut kept = held.kept.clone().ok_or(SendError::NotHeld)?;
        kept.replace_fields(fields).map_err(SendError::Encode)?;
        Ok(kept.body)
    }

    /// Sends an additional message to a side, given by its name and fields, before any held ones.
    ///
    /// # Errors
    /// Those of [`add`](Self::add); [`SendError::Encode`] if the fields do not fit.
    pub fn add_named(&mut self, to: Side, name: &str, fields: Json) -> Result<(), SendError> {
        let body = self.desk.coder.encode(to.other(), name, fields, None);
        self.add(to, &body.map_err(SendError::Encode)?)
    }

    /// Sends an additional message to a side, before any held ones.
    ///
    /// # Errors
    /// Those of [`RelaySession::inject`].
    pub fn add(&mut self, to: Side, body: &[u8]) -> Result<(), SendError> {
        self.session.inject(to, body)?;
        self.desk.note_addition(to);
        Ok(())
    }

    /// Starts noting what the proxy does with messages, for [`marks`](Self::marks).
    pub(crate) fn begin_marks(&mut self) {
        self.desk.marks = Some(Vec::new());
    }

    /// What the proxy has done with messages since the last call.
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

    /// The time by which to call [`timeout`](Self::timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let Desk { handlers, hooks, held, now, .. } = &self.desk;
        let handlers = handlers.iter().filter_map(|handler| handler.poll_timeout());
        let hooks = hooks.as_ref().and_then(ConversationHooks::poll_timeout);
        let held = held.next_due(*now);
        handlers.chain(hooks).chain(held).chain(self.session.poll_timeout()).min()
    }

    /// Over UDP, whether the client has replied to a datagram, which proves that its address is
    /// genuine.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.session.is_confirmed()
    }

    /// Whether it has stopped reading from a side for now.
    #[must_use]
    pub fn is_paused(&self, from: Side) -> bool {
        self.session.is_paused(from)
    }

    /// The number of bytes from a side that it keeps.
    #[must_use]
    pub fn kept_bytes(&self, from: Side) -> usize {
        self.session.kept_bytes(from)
    }

    /// The number of bytes queued for a side.
    #[must_use]
    pub fn queued_bytes(&self, to: Side) -> usize {
        self.session.queued_bytes(to)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// Ends the conversation. Messages that are still held are dropped and reported.
    pub fn close(&mut self) {
        self.session.close();
        self.desk.drop_held();
    }

    /// The wall-clock time of the last step.
    pub(crate) fn time(&self) -> Time {
        self.stamp_at(self.desk.now).time
    }

    /// Its message counts.
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

    /// Tells handlers and hooks the time and carries out what they request.
    fn run_handlers(&mut self) {
        let now = self.desk.now;
        let mut effects = Effects::default();
        for handler in &mut self.desk.handlers {
            if handler.poll_timeout().is_some_and(|at| at <= now) {
                handler.timeout(now, &mut effects);
            }
        }
        if let Some(hooks) = &mut self.desk.hooks
            && hooks.poll_timeout().is_some_and(|at| at <= now)
        {
            hooks.timeout(now, &mut effects);
        }
        self.carry_out(effects);
    }

    /// Carries out what handlers and hooks request independently of a message.
    fn carry_out(&mut self, effects: Effects) {
        for (to, addition) in effects.added {
            let rule = addition.rule();
            let Some(body) = self.desk.encode(to, addition) else { continue };
            match self.session.inject(to, &body) {
                Ok(()) => self.desk.note_addition(to),
                Err(error) => self.desk.report_not_added(rule.as_ref(), &error),
            }
        }
        for finished in effects.finished {
            let Finished { ticket, added, decision } = finished;
            let Some(decision) = decision else {
                for (to, body) in added {
                    match self.session.inject(to, &body) {
                        Ok(()) => self.desk.note_addition(to),
                        Err(error) => self.desk.refuse(Some(ticket), not_added(&error)),
                    }
                }
                continue;
            };
            self.desk.decide_held(ticket, added, decision);
        }
        effects.reports.into_iter().for_each(|report| self.desk.report(report));
        if let Some(why) = effects.end {
            self.desk.end(why);
        }
    }

    /// Releases the messages that are no longer held, each after the messages added before it.
    fn release_ready(&mut self, stamp: Stamp) {
        if self.desk.is_ending {
            self.session.close();
        }
        if self.session.is_closed() {
            return self.desk.drop_held();
        }
        // Sides whose next message waits for room in a queue.
        let mut full = [false; 2];
        while let Some(id) = self.desk.held.next_ready(self.desk.now, full) {
            let Some(mut held) = self.desk.held.remove(id) else { break };
            if !held.added.is_empty() {
                // Messages released earlier are sent before them.
                self.session.resume(stamp, &mut self.desk);
                if !self.add_before(&mut held) {
                    full[held.from.index()] = true;
                    self.desk.held.insert(id, held);
                    continue;
                }
            }
            let outcome = match self.session.release(id, held.decision) {
                // A decision that cannot be carried out must not block the conversation.
                Err(error) => self.session.release(id, Decision::AsIs).and(Err(error)),
                done => done,
            };
            if let Err(error) = outcome {
                let text = format!("{} was forwarded unchanged: {error}", held.name);
                self.desk.refuse(held.finished, Report::Problem(text));
            }
            self.session.resume(stamp, &mut self.desk);
        }
    }

    /// Adds the messages that precede a held one. False if a queue is full, so the rest must wait.
    fn add_before(&mut self, held: &mut Held) -> bool {
        while let Some((to, body)) = held.added.front() {
            match self.session.inject(*to, body) {
                Ok(()) => self.desk.note_addition(*to),
                Err(SendError::QueueFull(_)) if self.session.queued_bytes(*to) > 0 => return false,
                Err(error) => self.desk.refuse(held.finished, not_added(&error)),
            }
            held.added.pop_front();
        }
        true
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("session", &self.session).finish_non_exhaustive()
    }
}
