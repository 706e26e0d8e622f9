//! A replay as a state machine, without I/O.

use core::fmt;
use core::time::Duration;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use worldwire_core::connection::Input;
use worldwire_core::json::Json;
use worldwire_core::{Error, Result, Side};
use worldwire_dissect::{Decision, Facts, Start, Time};

use super::actor::{Actor, Heard, Report};
use super::divergence::{Cause, Divergence};
use super::event::{Place, ReplayEvent, ReplaySummary};
use super::learnt::Learnt;
use super::progress::{Next, Pace, Progress, Treatment};
use super::script::{Script, Step};
use super::setup::{Carried, ReplaySetup};
use super::watcher::{Seen, Sight, Watcher};
use super::{ki, mxo, tera, uru};
use crate::exchange::{Exchange, Known};
use crate::handler;

/// How a replay ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Everything happened as recorded.
    Complete(ReplaySummary),
    /// The live side differs.
    Diverged(Box<Divergence>),
}

/// One side of a recorded conversation, played to a live peer.
///
/// Bytes from the peer and time go in; bytes for the peer, deadlines, [events](ReplayEvent) and the
/// [outcome](Outcome) come out.
pub struct Replay {
    own: Side,
    is_datagrams: bool,
    pace: Pace,
    patience: Duration,
    progress: Progress,
    actor: Box<dyn Actor>,
    exchange: Exchange,
    sight: Sight,
    learnt: Learnt,
    facts: Facts,
    /// Names of live messages to ignore.
    ignored: HashSet<String>,
    /// Messages from the peer whose turn has not come yet.
    arrived: VecDeque<Heard>,
    events: VecDeque<ReplayEvent>,
    /// Recent problems.
    problems: VecDeque<String>,
    begun: Duration,
    /// When the last step was done, and when it was recorded.
    last: Duration,
    recorded: Option<Duration>,
    is_announced: bool,
    /// Whether the peer has ended its stream, and whether the machine knows.
    ended: Option<bool>,
    /// Why the connection is closed.
    closed: Option<String>,
    /// The time at which everything had been sent and received.
    finishing: Option<Duration>,
    summary: ReplaySummary,
    outcome: Option<Outcome>,
}

/// The number of bytes that may wait for the peer before the next outgoing message waits too.
const ROOM: usize = 256 << 10;
/// The number of messages from the peer that may wait for their turn before reading stops.
const MAX_ARRIVED: usize = 4_096;
/// The maximum number of messages sent before their events are taken.
const MAX_AT_ONCE: usize = 1_024;
/// The maximum number of events that wait to be taken. Later ones are dropped.
const MAX_EVENTS: usize = 65_536;
/// The maximum number of problems shown in a divergence.
const MAX_PROBLEMS: usize = 4;
/// The time that a replay over UDP waits after its last message, to acknowledge the peer's last
/// one.
const FAREWELL: Duration = Duration::from_millis(250);

impl Replay {
    /// Prepares a replay that starts now. `random` fills a buffer with fresh random bytes.
    ///
    /// # Errors
    /// Keys that the live connection needs are missing, or the recorded setup cannot be played.
    pub fn new(
        script: Script,
        setup: ReplaySetup,
        random: &mut dyn FnMut(&mut [u8]),
        now: Duration,
    ) -> Result<Self> {
        let mut setup = setup;
        let actor = match script.family() {
            "uru" => uru::actor(&script, &mut setup, random, now)?,
            "ki" => ki::actor(&script, &setup, random, now),
            "tera" => tera::actor(&script, &setup, random, now),
            "mxo" => mxo::actor(&script, &setup, random, now)?,
            other => {
                return Err(Error::invalid(format!("{other} conversations cannot be replayed")));
            }
        };
        let facts = Facts::default();
        let (keys, definitions) = (&*setup.keys, &*setup.definitions);
        let datagrams = script.is_datagrams;
        let start =
            Start { keys, definitions, facts: &facts, prepared: None, datagrams, midstream: false };
        let session = script.family.relay(&start, random, now)?;
        let ReplaySetup { own, pace, patience, epoch, .. } = setup;
        let sight = Sight::default();
        let mut handlers = core::mem::take(&mut setup.handlers);
        handlers.push(Box::new(Watcher {
            own,
            ignored: setup.ignored.clone(),
            hears: actor.hears_relay(),
            sight: sight.clone(),
        }));
        let known = Known {
            family: script.family(),
            definitions: Arc::clone(&setup.definitions),
            keys: Arc::clone(&setup.keys),
        };
        let epoch = Time(i64::try_from(epoch.as_nanos()).unwrap_or(i64::MAX));
        let exchange = Exchange::new(session, handlers, known, (0, epoch), None);
        // Where the relay sees only packets, the filter cannot be applied to live messages.
        let by_name = script.steps.iter().filter(|step| step.is_ignored && !actor.hears_relay());
        let ignored = by_name.map(|step| step.name.clone()).collect();
        let recorded = script.steps.len() as u64;
        let (progress, skipped) = Progress::new(own, script.steps, |step| {
            let fields = || step.fields();
            let is_skipped = match step.from == own {
                true => actor.is_upkeep(&step.name),
                false => step.is_ignored || actor.is_unsolicited(step.from, &step.name, &fields),
            };
            match is_skipped {
                false => Treatment::Play,
                true if step.from != own && actor.is_learnt_from(&step.name) => Treatment::Learn,
                true => Treatment::Skip,
            }
        });
        let mut replay = Self {
            own,
            is_datagrams: script.is_datagrams,
            pace,
            patience,
            progress,
            actor,
            exchange,
            sight,
            learnt: setup.carried.take().unwrap_or_default().learnt,
            facts,
            ignored,
            arrived: VecDeque::new(),
            events: VecDeque::new(),
            problems: VecDeque::new(),
            begun: now,
            last: now,
            recorded: None,
            is_announced: false,
            ended: None,
            closed: None,
            finishing: None,
            summary: ReplaySummary { recorded, skipped, ..ReplaySummary::default() },
            outcome: None,
        };
        replay.work(now);
        Ok(replay)
    }

    /// Handles input from the peer.
    pub fn input(&mut self, now: Duration, input: Input<'_>) {
        if input == Input::End {
            self.ended.get_or_insert(false);
        }
        self.exchange.input(now, self.own.other(), input);
        self.work(now);
    }

    /// Advances time to `now`. Also call it after output has been written.
    pub fn timeout(&mut self, now: Duration) {
        if self.exchange.poll_timeout().is_some_and(|at| at <= now) {
            self.exchange.timeout(now);
        }
        if self.actor.poll_timeout().is_some_and(|at| at <= now) {
            self.actor.timeout(now);
        }
        self.work(now);
        if self.outcome.is_none() && self.deadline().is_some_and(|at| at <= now) {
            self.expire(now);
        }
    }

    /// Stops the replay, if it has not ended.
    pub fn stop(&mut self) {
        self.diverge(Cause::Stopped);
    }

    /// Closes the connection. The remaining output should still be written.
    pub fn close(&mut self, now: Duration) {
        self.stop();
        self.actor.close();
        self.carry(now);
    }

    /// The next bytes for the peer; over UDP, one datagram.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.exchange.poll_transmit(self.own.other())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ReplayEvent> {
        self.events.pop_front()
    }

    /// The time by which to call [`timeout`](Self::timeout).
    #[must_use]
    pub fn poll_timeout(&mut self) -> Option<Duration> {
        let own = self.deadline();
        let parts = [self.exchange.poll_timeout(), self.actor.poll_timeout(), own];
        parts.into_iter().flatten().min()
    }

    /// How the replay ended. The connection is still open.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What the conversation has revealed for later ones.
    #[must_use]
    pub fn carried(&self) -> Carried {
        let mut carried = Carried { learnt: self.learnt.clone(), ck2: None };
        self.actor.carry(&mut carried);
        carried
    }

    /// Whether it has stopped reading from the peer for now.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.arrived.len() >= MAX_ARRIVED || self.exchange.is_paused(self.own.other())
    }

    /// Does everything that can be done now.
    fn work(&mut self, now: Duration) {
        for _ in 0..MAX_AT_ONCE {
            self.carry(now);
            if self.outcome.is_some() || !self.advance(now) {
                break;
            }
        }
        if let Some(reason) = self.closed.clone()
            && self.outcome.is_none()
        {
            self.diverge(Cause::Closed(reason));
        }
    }

    /// Carries bytes between the machine and the relay and notes what both report.
    fn carry(&mut self, now: Duration) {
        let own = self.own;
        loop {
            let mut is_quiet = true;
            while !self.exchange.is_paused(own)
                && let Some(bytes) = self.actor.poll_transmit()
            {
                self.exchange.input(now, own, input(self.is_datagrams, &bytes));
                is_quiet = false;
            }
            self.exchange.resume(now);
            while let Some(bytes) = self.exchange.poll_transmit(own) {
                self.actor.input(now, input(self.is_datagrams, &bytes));
                is_quiet = false;
            }
            self.exchange.facts().into_iter().for_each(|fact| self.facts.state(fact));
            if self.exchange.waits() {
                self.exchange.learn(now, &self.facts);
            }
            self.look();
            while let Some(report) = self.actor.poll() {
                is_quiet = false;
                match report {
                    Report::Heard(heard) => self.take(heard),
                    Report::Fault(text) => self.problem(text),
                    Report::Closed(reason) => {
                        self.closed.get_or_insert_with(|| reason.to_string());
                    }
                    Report::Other => {}
                }
            }
            if self.ended == Some(false)
                && self.exchange.kept_bytes(own.other()) == 0
                && self.exchange.queued_bytes(own) == 0
            {
                self.ended = Some(true);
                self.actor.input(now, Input::End);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
        if self.exchange.is_closed() {
            self.closed.get_or_insert_with(|| "the live stream cannot be read".to_owned());
        }
        if self.actor.is_established() && !core::mem::replace(&mut self.is_announced, true) {
            self.last = now;
            self.event(ReplayEvent::Established);
        }
    }

    /// Notes what the relay has seen and reported.
    fn look(&mut self) {
        for seen in self.sight.take() {
            match seen {
                Seen::Peer(heard) => self.take(heard),
                Seen::Changed { name, is_dropped } => {
                    self.summary.changed += 1;
                    self.event(ReplayEvent::Changed { name, is_dropped });
                }
            }
        }
        while let Some(report) = self.exchange.poll_report() {
            match report {
                handler::Report::Log(text) => self.event(ReplayEvent::Log(text)),
                handler::Report::Problem(text) => self.problem(text),
                handler::Report::Held { id, name, .. } => {
                    // In a replay, nobody could release the message.
                    let _ = self.exchange.decide(id, Decision::AsIs);
                    self.problem(format!("{name}: `pause` has no effect in a replay"));
                }
            }
        }
    }

    /// Handles a message from the peer.
    fn take(&mut self, heard: Heard) {
        let fields = || heard.fields.clone();
        let is_unsolicited = self.actor.is_unsolicited(self.own.other(), &heard.name, &fields);
        let is_ignored = heard.is_ignored || self.ignored.contains(&heard.name);
        if !is_unsolicited && !is_ignored {
            self.arrived.push_back(heard);
            return;
        }
        if let Some(step) = self.progress.learnable(&heard.name) {
            let recorded = step.fields();
            self.actor.learn(&mut self.learnt, &heard.name, &recorded, &heard.fields);
        }
        self.summary.ignored += 1;
        self.event(ReplayEvent::Ignored { name: heard.name });
    }

    /// Does the next steps. Returns whether it sent something.
    fn advance(&mut self, now: Duration) -> bool {
        loop {
            match self.progress.next() {
                Next::Send(index) => {
                    if !self.can_send() || now < self.due(index) {
                        return false;
                    }
                    self.send(index, now);
                    return self.outcome.is_none();
                }
                Next::Expect(_) => {
                    let Some(heard) = self.arrived.pop_front() else { return false };
                    self.hear(&heard, now);
                    if self.outcome.is_some() {
                        return false;
                    }
                }
                Next::Done => {
                    self.finish(now);
                    return false;
                }
            }
        }
    }

    fn can_send(&self) -> bool {
        let peer = self.own.other();
        let waiting = self.actor.queued_bytes().saturating_add(self.exchange.queued_bytes(peer));
        self.closed.is_none() && self.actor.is_established() && waiting < ROOM
    }

    /// When a step is due.
    fn due(&self, index: usize) -> Duration {
        self.last.saturating_add(self.gap(index))
    }

    /// The time to leave between the last step and this one, at this pace.
    fn gap(&self, index: usize) -> Duration {
        match (self.pace, self.recorded, self.progress.step(index)) {
            (Pace::Recorded, Some(before), Some(step)) => step.since.saturating_sub(before),
            _ => Duration::ZERO,
        }
    }

    fn send(&mut self, index: usize, now: Duration) {
        let Self { progress, actor, learnt, .. } = self;
        let Some(step) = progress.step(index) else { return };
        let place = Place::of(step);
        let mut fields = step.fields();
        let (adapted, problem) = match fields {
            Json::Null => (Vec::new(), None),
            _ => actor.adapt(learnt, step, &mut fields),
        };
        let body = match adapted.is_empty() {
            true => Ok(step.body.clone()),
            false => step.encode(fields),
        };
        let sent = body
            .map_err(|error| error.to_string())
            .and_then(|body| actor.send(step, &body).map_err(|error| error.to_string()));
        self.recorded = Some(place.since);
        if let Some(problem) = problem {
            self.problem(format!("{}: {problem}", place.name));
        }
        if let Err(why) = sent {
            return self.diverge(Cause::NotSent(why));
        }
        self.progress.mark(index);
        self.last = now;
        self.summary.sent += 1;
        self.summary.adapted += u64::from(!adapted.is_empty());
        self.event(ReplayEvent::Sent { place, adapted });
    }

    /// Compares a message from the peer with what is expected.
    fn hear(&mut self, heard: &Heard, now: Duration) {
        let found = self.corresponding(heard);
        let Some((index, step)) = found else {
            let (name, fields) = (heard.name.clone(), heard.fields.clone());
            return self.diverge(Cause::Other { name, fields });
        };
        let (place, fields) = (Place::of(step), step.fields());
        let recorded = self.actor.refusal(&place.name, &fields);
        let live = self.actor.refusal(&heard.name, &heard.fields);
        if live != recorded {
            let fields = heard.fields.clone();
            return self.diverge(Cause::Refused { live, recorded, fields });
        }
        self.actor.learn(&mut self.learnt, &heard.name, &fields, &heard.fields);
        self.progress.mark(index);
        (self.last, self.recorded) = (now, Some(place.since));
        self.summary.received += 1;
        self.event(ReplayEvent::Received { place });
    }

    /// The expected message that a live one corresponds to.
    fn corresponding(&self, heard: &Heard) -> Option<(usize, &Step)> {
        let fits = |step: &Step| step.name == heard.name;
        let mut expected = self.progress.expected().peekable();
        let first = *expected.peek()?;
        let Some(field) = self.actor.correlation() else {
            return Some(first).filter(|(_, step)| fits(step));
        };
        let live = heard.fields.get(field);
        let answers = |step: &Step| fits(step) && step.fields().get(field) == live;
        if fits(first.1) && (live.is_none() || answers(first.1)) {
            return Some(first);
        }
        let found = expected.find(|(_, step)| answers(step));
        found.or_else(|| Some(first).filter(|(_, step)| fits(step)))
    }

    /// Completes the replay, whose messages have all been sent, once the peer has received them.
    fn finish(&mut self, now: Duration) {
        let since = *self.finishing.get_or_insert(now);
        let waiting = self
            .exchange
            .queued_bytes(self.own.other())
            .saturating_add(self.actor.queued_bytes())
            .saturating_add(self.actor.unacknowledged());
        let farewell = if self.is_datagrams { FAREWELL } else { Duration::ZERO };
        if (waiting == 0 && now >= since.saturating_add(farewell)) || self.closed.is_some() {
            self.complete(now);
        }
    }

    fn complete(&mut self, now: Duration) {
        self.summary.time = now.saturating_sub(self.begun);
        self.outcome = Some(Outcome::Complete(self.summary));
    }

    /// When the peer's time for a step runs out, or the next step is due.
    fn deadline(&mut self) -> Option<Duration> {
        if self.outcome.is_some() {
            return None;
        }
        let patience = self.last.saturating_add(self.patience);
        Some(match self.progress.next() {
            Next::Send(index) if self.can_send() => self.due(index),
            Next::Send(_) => patience,
            Next::Expect(index) => patience.saturating_add(self.gap(index)),
            Next::Done => match self.finishing {
                Some(since) if self.is_datagrams && self.actor.unacknowledged() == 0 => {
                    since.saturating_add(FAREWELL)
                }
                Some(since) => since.saturating_add(self.patience),
                None => self.last,
            },
        })
    }

    /// Handles a step for which the peer's time has run out.
    fn expire(&mut self, now: Duration) {
        match self.progress.next() {
            _ if !self.actor.is_established() => {
                self.diverge(Cause::NotEstablished(self.patience));
            }
            Next::Send(_) if self.can_send() => {}
            Next::Send(_) => self.diverge(Cause::NotSent("the peer is not reading".to_owned())),
            Next::Expect(_) => self.diverge(Cause::Silence(self.patience)),
            Next::Done => {
                if self.finishing.is_some_and(|since| now >= since.saturating_add(self.patience)) {
                    self.problem("the peer did not accept the last messages".to_owned());
                    self.complete(now);
                }
            }
        }
    }

    fn diverge(&mut self, cause: Cause) {
        if self.outcome.is_some() {
            return;
        }
        let index = match self.progress.next() {
            Next::Send(index) | Next::Expect(index) => index,
            Next::Done => self.progress.len().saturating_sub(1),
        };
        let Some(step) = self.progress.step(index) else { return };
        let refused = matches!(cause, Cause::Refused { live: Some(_), .. });
        let own = refused.then(|| self.actor.advice_on_refusal(&step.name)).flatten();
        let divergence = Divergence {
            place: Place::of(step),
            from: step.from,
            expected: step.fields(),
            total: self.summary.recorded,
            is_own: step.from == self.own,
            advice: own.unwrap_or_else(|| cause.advice(self.is_announced)),
            cause,
            problems: core::mem::take(&mut self.problems).into(),
        };
        self.outcome = Some(Outcome::Diverged(Box::new(divergence)));
    }

    fn problem(&mut self, text: String) {
        if self.problems.back() == Some(&text) {
            return;
        }
        if self.problems.len() >= MAX_PROBLEMS {
            self.problems.pop_front();
        }
        self.problems.push_back(text.clone());
        self.event(ReplayEvent::Problem(text));
    }

    fn event(&mut self, event: ReplayEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("own", &self.own).finish_non_exhaustive()
    }
}

fn input(is_datagrams: bool, bytes: &[u8]) -> Input<'_> {
    if is_datagrams { Input::Datagram(bytes) } else { Input::Bytes(bytes) }
}
