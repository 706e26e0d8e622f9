//! A relayed conversation on the network: an exchange, with facts from other conversations and
//! commands from other tasks.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_dissect::Facts;
use worldwire_net::{Intermediary, LogLimiter, Waiting};

use crate::command::Command;
use crate::exchange::{Counts, Exchange};
use crate::gate::Listed;
use crate::handler::Report;
use crate::hook::HookEvent;
use crate::record::Legs;

/// The facts that a proxy's conversations have stated.
#[derive(Debug)]
pub(crate) struct SharedFacts {
    facts: Mutex<Facts>,
    /// Notifies conversations of every new fact.
    stated: watch::Sender<()>,
}

impl Default for SharedFacts {
    fn default() -> Self {
        Self { facts: Mutex::default(), stated: watch::Sender::new(()) }
    }
}

impl SharedFacts {
    /// The facts so far.
    pub(crate) fn known(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Input from other tasks to a conversation.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Events from hooks, if there are any.
    pub(crate) events: Option<mpsc::Receiver<HookEvent>>,
}

/// The maximum number of events that are handled before their output is written.
const EVENTS_AT_ONCE: usize = 256;

/// Waits for events and appends all that have arrived. Returns their number; `None` if there are no
/// hooks.
async fn next(
    events: &mut Option<mpsc::Receiver<HookEvent>>,
    arrived: &mut Vec<HookEvent>,
) -> Option<usize> {
    Some(events.as_mut()?.recv_many(arrived, EVENTS_AT_ONCE).await)
}

/// A conversation that the network drives.
#[derive(Debug)]
pub(crate) struct Conversation {
    exchange: Exchange,
    number: u64,
    facts: Arc<SharedFacts>,
    stated: watch::Receiver<()>,
    inputs: Inputs,
    /// The command and the events that woke the conversation, if any did.
    command: Option<Command>,
    arrived: Vec<HookEvent>,
    listed: Listed,
    /// Over UDP, its place among the clients that have not replied to anything yet.
    waiting: Option<Waiting>,
    /// Both sides, if they are recorded.
    legs: Option<Legs>,
    /// Comments on the next packet to each side.
    leaving: [Vec<String>; 2],
    /// The number of problems logged one by one.
    problems: u32,
    further_problems: LogLimiter,
}

/// The number of a conversation's problems that are logged one by one, and the interval at which
/// later problems are summarised.
const MAX_LOGGED: u32 = 20;
const LOG_EVERY: Duration = Duration::from_secs(60);

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(legs) = &mut self.legs {
            legs.close(self.exchange.time());
        }
        let Counts { messages, changed, dropped, held, added } = self.exchange.counts();
        let connection = self.number;
        tracing::info!(connection, messages, changed, dropped, held, added, "closed");
    }
}

impl Conversation {
    pub(crate) fn new(
        exchange: Exchange,
        number: u64,
        facts: Arc<SharedFacts>,
        inputs: Inputs,
        listed: Listed,
        (waiting, legs): (Option<Waiting>, Option<Legs>),
    ) -> Self {
        let stated = facts.stated.subscribe();
        let mut exchange = exchange;
        if legs.is_some() {
            exchange.begin_marks();
        }
        let (command, arrived, leaving) = (None, Vec::new(), Default::default());
        Self {
            exchange,
            number,
            facts,
            stated,
            inputs,
            command,
            arrived,
            listed,
            waiting,
            legs,
            leaving,
            problems: 0,
            further_problems: LogLimiter::new(LOG_EVERY),
        }
    }

    /// Records received bytes.
    fn record(&mut self, from: Side, input: Input<'_>) {
        let Some(legs) = &mut self.legs else { return };
        legs.secrets(self.exchange.secrets());
        let mut comments = Vec::new();
        for mark in self.exchange.marks() {
            match mark.leaves {
                true => self.leaving[mark.from.other().index()].push(mark.text),
                false => comments.push(mark.text),
            }
        }
        if let Input::Bytes(bytes) | Input::Datagram(bytes) = input {
            legs.bytes(self.exchange.time(), (from, from), bytes, comments);
        }
    }

    /// Shares the facts that the last step stated and logs its reports.
    fn settle(&mut self, now: Duration) {
        let facts = self.exchange.facts();
        if !facts.is_empty() {
            let mut known = self.facts.known();
            facts.into_iter().for_each(|fact| known.state(fact));
            drop(known);
            self.facts.stated.send_replace(());
        }
        if self.exchange.waits() {
            self.stated.mark_unchanged();
            self.exchange.learn(now, &self.facts.known());
        }
        self.listed.update(self.exchange.counts());
        if self.exchange.is_confirmed() {
            self.waiting = None;
        }
        self.log_reports();
    }

    fn log_reports(&mut self) {
        let connection = self.number;
        while let Some(report) = self.exchange.poll_report() {
            match report {
                Report::Log(text) => tracing::info!(connection, "{text}"),
                Report::Problem(text) if self.problems < MAX_LOGGED => {
                    self.problems += 1;
                    tracing::warn!(connection, "{text}");
                }
                Report::Problem(text) => {
                    if let Some(count) = self.further_problems.count() {
                        tracing::warn!(connection, count, "more problems; for example: {text}");
                    }
                }
                Report::Held { id, name, from } => {
                    let from = from.name();
                    tracing::info!(connection, id, from, name, "held at a breakpoint");
                }
            }
        }
    }
}

impl Intermediary for Conversation {
    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.exchange.input(now, from, input);
        self.record(from, input);
        self.settle(now);
    }

    fn timeout(&mut self, now: Duration) {
        self.exchange.timeout(now);
        self.settle(now);
    }

    fn resume(&mut self, now: Duration) {
        if let Some(command) = self.command.take() {
            command.carry_out(&mut self.exchange);
        }
        if self.arrived.is_empty() {
            self.exchange.resume(now);
        }
        for event in self.arrived.drain(..) {
            self.exchange.hook(now, event);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        let bytes = self.exchange.poll_transmit(to)?;
        if let Some(legs) = &mut self.legs {
            let comments = core::mem::take(&mut self.leaving[to.index()]);
            legs.bytes(self.exchange.time(), (to, to.other()), &bytes, comments);
        }
        Some(bytes)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.exchange.poll_timeout()
    }

    fn is_paused(&self, from: Side) -> bool {
        self.exchange.is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.exchange.kept_bytes(from)
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.exchange.queued_bytes(to)
    }

    fn is_closed(&self) -> bool {
        self.exchange.is_closed()
    }

    fn close(&mut self) {
        self.exchange.close();
        self.listed.update(self.exchange.counts());
        self.log_reports();
    }

    async fn woken(&mut self) {
        let waits = self.exchange.waits();
        tokio::select! {
            Some(command) = self.inputs.commands.recv() => self.command = Some(command),
            Some(1..) = next(&mut self.inputs.events, &mut self.arrived) => {}
            Ok(()) = self.stated.changed(), if waits => {}
            () = dropped(&mut self.waiting) => {
                tracing::info!(connection = self.number, "dropped to make room for newer clients");
                self.exchange.close();
            }
        }
    }
}

/// Completes when the client, which has not replied to anything, is dropped in favour of a newer
/// one.
async fn dropped(waiting: &mut Option<Waiting>) {
    match waiting {
        Some(place) => place.dropped().await,
        None => core::future::pending().await,
    }
    *waiting = None;
}
