//! Plays a conversation.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Input};
use worldwire_core::json::parse;
use worldwire_dissect::{Decision, Facts, Time};

use super::choices::Choices;
use super::end::{End, Heard};
use super::wire::Wire;
use super::{Content, Decided, Meddler, Network, Rates, Stage, World};
use crate::exchange::Exchange;
use crate::handler::Report;
use crate::held::HeldMessage;

/// A conversation in progress.
pub struct Play {
    now: Duration,
    ends: [Box<dyn End>; 2],
    exchange: Exchange,
    meddler: Meddler,
    content: Arc<Content>,
    network: Network,
    /// The wires by sending side: from the end to the proxy, and from the proxy to the other end.
    wires: [[Wire; 2]; 2],
    /// Whether an end or the proxy has closed the conversation on purpose.
    is_over: bool,
    /// Whether the proxy closed it, which loses everything in transit.
    is_cut: bool,
}

/// More deadlines than any conversation has at one moment.
const MAX_DEADLINES: usize = 10_000;

impl Play {
    /// Establishes a conversation.
    ///
    /// # Panics
    /// If it cannot be established.
    #[must_use]
    pub fn new(world: World, choices: Choices, rates: Rates) -> Self {
        let World { ends, session, known, network, content, opening, model } = world;
        let stage = Stage { choices, rates: Rates::NONE, model };
        let meddler = Meddler(Arc::new(Mutex::new(stage)));
        let handler = Box::new(meddler.clone());
        let exchange = Exchange::new(session, vec![handler], known, (1, Time(0)), None);
        let wires = [(); 2].map(|()| Side::BOTH.map(|_| Wire::new(network.is_datagrams)));
        let now = Duration::ZERO;
        let (is_over, is_cut) = (false, false);
        let mut play =
            Self { now, ends, exchange, meddler, content, network, wires, is_over, is_cut };
        Side::BOTH.into_iter().for_each(|side| play.pump_end(side));
        play.drain();
        for _ in 0..100 {
            if play.ends.iter().all(|end| end.is_established()) {
                break;
            }
            play.advance(Duration::from_millis(100));
        }
        assert!(play.ends.iter().all(|end| end.is_established()), "setup is not complete");
        for (from, body) in opening {
            play.say(from, &body);
            play.drain();
        }
        for (wires, trouble) in play.wires.iter_mut().zip(network.trouble) {
            wires.iter_mut().for_each(|wire| wire.trouble = trouble);
        }
        play.meddler.stage().rates = rates;
        play
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The proxy's part of the conversation.
    #[must_use]
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Changes how often something happens to messages.
    pub fn set_rates(&mut self, rates: Rates) {
        self.meddler.stage().rates = rates;
    }

    /// Takes this many random steps, or fewer if the choices are used up.
    pub fn steps(&mut self, most: usize, may_end: bool) {
        for _ in 0..most {
            if self.meddler.stage().choices.are_over() {
                break;
            }
            self.step(may_end);
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.meddler.stage().choices.below(bound)
    }

    fn percent(&self, percent: u64) -> bool {
        self.meddler.stage().choices.percent(percent)
    }

    fn step(&mut self, may_end: bool) {
        match self.below(17) {
            0..=2 => self.say_some(Side::Client),
            3..=5 => self.say_some(Side::Server),
            6..=8 => {
                let from = [Side::Client, Side::Server][usize::from(self.percent(50))];
                let leg = usize::from(self.percent(50));
                self.deliver(leg, from);
            }
            9 | 10 => self.drain(),
            11 | 12 => {
                if self.percent(50) {
                    self.drain();
                }
                let time = Duration::from_millis(self.below(1000));
                self.advance(time);
            }
            13 | 14 => self.decide_one(),
            15 => self.add_one(),
            _ if may_end && self.percent(20) => self.end_one(),
            _ => {
                self.drain();
                let time = Duration::from_secs(self.below(100));
                self.advance(time);
            }
        }
    }

    fn say_some(&mut self, from: Side) {
        for _ in 0..=self.below(3) {
            self.say_one(from);
        }
    }

    /// Sends a new message from a side.
    pub fn say_one(&mut self, from: Side) {
        let body = self.content.make(from, &mut self.meddler.stage().choices);
        self.say(from, &body);
    }

    fn say(&mut self, from: Side, body: &[u8]) {
        let end = &mut self.ends[from.index()];
        if end.is_closed() {
            return;
        }
        end.say(body).unwrap_or_else(|error| panic!("the {from}: {error}"));
        self.meddler.stage().model.said(from, body);
        self.pump_end(from);
    }

    /// Adds a message, as an operator can.
    fn add_one(&mut self) {
        if !self.content.can_add {
            return;
        }
        let to = [Side::Client, Side::Server][usize::from(self.percent(50))];
        let body = self.content.make(to.other(), &mut self.meddler.stage().choices);
        match self.exchange.add(to, &(self.content.added)(&body)) {
            Ok(()) => self.meddler.stage().model.added(to, body),
            Err(error) => assert!(self.is_over, "{error}"),
        }
        self.after_proxy();
    }

    fn decide_one(&mut self) {
        let held = self.exchange.held();
        let index = self.meddler.stage().choices.index(held.len());
        if let Some(HeldMessage { id, line, .. }) = held.get(index) {
            self.decide(*id, line);
        }
    }

    fn decide(&mut self, number: u64, line: &str) {
        if self.percent(20) && self.meddler.stage().model.is_checked(number) {
            let refused = self.exchange.decide(number, Decision::instead(&[0xff]));
            assert!(refused.is_err(), "these bytes are not a message");
        }
        let decided = match self.below(4) {
            0 => Decided::Sent,
            1 => Decided::Dropped,
            2 if self.meddler.stage().model.is_editable(number) => Decided::Edited,
            _ => {
                let Stage { choices, model, .. } = &mut *self.meddler.stage();
                match model.replacement(number, choices, &self.content) {
                    Some(body) => Decided::Changed(body),
                    None => Decided::Sent,
                }
            }
        };
        let outcome = match &decided {
            Decided::Sent => self.exchange.decide(number, Decision::AsIs),
            Decided::Dropped => self.exchange.decide(number, Decision::Drop),
            Decided::Edited => {
                let line = parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                self.exchange.edit(number, line["fields"].clone())
            }
            Decided::Changed(body) => self.exchange.decide(number, Decision::instead(body)),
        };
        if self.is_over && outcome.is_err() {
            return;
        }
        outcome.unwrap_or_else(|error| panic!("message {number} as {decided:?}: {error}: {line}"));
        self.meddler.stage().model.decided(number, decided);
        self.exchange.resume(self.now);
        self.after_proxy();
    }

    fn end_one(&mut self) {
        self.is_over = true;
        match self.below(5) {
            0 => {
                self.is_cut = true;
                self.exchange.close();
                Side::BOTH.into_iter().for_each(|from| self.meddler.stage().model.abandon(from));
                self.after_proxy();
            }
            side => {
                let side = [Side::Client, Side::Server][usize::from(side > 2)];
                self.ends[side.index()].close();
                self.meddler.stage().model.abandon(side.other());
                self.pump_end(side);
            }
        }
    }

    /// Delivers something to the proxy or from the proxy to an end. False if nothing is in transit.
    fn deliver(&mut self, leg: usize, from: Side) -> bool {
        let is_waiting = leg == 0 && self.exchange.is_paused(from);
        let wire = &mut self.wires[leg][from.index()];
        if is_waiting {
            return false;
        }
        let next = wire.next(&mut self.meddler.stage().choices);
        let input = match &next {
            Some(bytes) if bytes.is_empty() => return true,
            Some(bytes) if self.network.is_datagrams => Input::Datagram(bytes),
            Some(bytes) => Input::Bytes(bytes),
            None if wire.is_ended && !wire.has_delivered_end => {
                wire.has_delivered_end = true;
                Input::End
            }
            None => return false,
        };
        match leg {
            0 => {
                self.exchange.input(self.now, from, input);
                self.after_proxy();
            }
            _ => {
                self.ends[from.other().index()].input(self.now, input);
                self.pump_end(from.other());
            }
        }
        true
    }

    /// Delivers everything.
    pub fn drain(&mut self) {
        const MAX_DELIVERIES: usize = 1_000_000;
        for _ in 0..MAX_DELIVERIES {
            let mut moved = false;
            for leg in [0, 1] {
                for from in Side::BOTH {
                    moved |= self.deliver(leg, from);
                }
            }
            if !moved {
                self.meddler.stage().model.check_settled();
                return;
            }
        }
        panic!("endless deliveries");
    }

    /// Lets time pass and delivers everything in transit.
    ///
    /// # Panics
    /// If deadlines never end.
    pub fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        let mut deadlines = 0;
        loop {
            let ends = self.ends.iter().filter_map(|end| end.poll_timeout());
            let next = ends.chain(self.exchange.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            deadlines = if next > self.now { 0 } else { deadlines + 1 };
            assert!(deadlines < MAX_DEADLINES, "endless deadlines at {:?}", self.now);
            self.reach(next);
        }
        self.reach(until);
    }

    fn reach(&mut self, now: Duration) {
        self.now = self.now.max(now);
        let now = self.now;
        self.exchange.timeout(now);
        self.after_proxy();
        for side in Side::BOTH {
            let end = &mut self.ends[side.index()];
            if end.poll_timeout().is_some_and(|at| at <= now) {
                end.timeout(now);
                self.pump_end(side);
            }
        }
        self.drain();
    }

    /// Takes an end's events and output.
    fn pump_end(&mut self, side: Side) {
        let end = &mut self.ends[side.index()];
        let heard = end.poll();
        let writes = end.transmit();
        let more = end.poll();
        let wire = &mut self.wires[0][side.index()];
        writes.into_iter().for_each(|write| wire.push(write));
        wire.is_ended |= end.is_closed();
        for heard in heard.into_iter().chain(more) {
            if let Heard::Closed(reason) = heard {
                // An end that no longer hears from the other one may time out.
                let state = Side::BOTH
                    .map(|from| (self.exchange.kept_bytes(from), self.exchange.is_paused(from)));
                assert!(
                    self.is_over && reason != CloseReason::Fault,
                    "the {side} at {:?}: {reason}; kept bytes and pauses: {state:?}",
                    self.now
                );
                if reason == CloseReason::Remote && !self.is_cut {
                    self.meddler.stage().model.check_ended(side.other());
                }
                self.meddler.stage().model.abandon(side.other());
            } else {
                self.meddler.stage().model.heard(side, heard);
            }
        }
    }

    /// Takes the proxy's output and reports.
    fn after_proxy(&mut self) {
        self.meddler.stage().model.passed(self.now);
        if self.exchange.waits() {
            self.exchange.learn(self.now, &Facts::default());
        }
        let mut moved = true;
        while core::mem::take(&mut moved) {
            for to in Side::BOTH {
                while let Some(bytes) = self.exchange.poll_transmit(to) {
                    moved = true;
                    self.wires[1][to.other().index()].push(bytes);
                }
                assert!(self.exchange.queued_bytes(to) == 0, "bytes for the {to} are stuck");
            }
            if moved {
                self.exchange.resume(self.now);
            }
        }
        while let Some(report) = self.exchange.poll_report() {
            match report {
                Report::Held { id, from, .. } => self.meddler.stage().model.reported(id, from),
                Report::Log(text) => panic!("unexpected log line: {text}"),
                Report::Problem(text) => {
                    let is_last = text.ends_with(" dropped: the conversation has ended");
                    let is_allowed = match is_last {
                        true => self.is_over && self.exchange.is_closed(),
                        false => self.meddler.stage().model.allows(&text),
                    };
                    assert!(is_allowed, "{text}");
                }
            }
        }
        for from in Side::BOTH {
            let has_ended = self.wires[0][from.index()].has_delivered_end;
            let is_last = has_ended && self.exchange.kept_bytes(from) == 0;
            if is_last || self.exchange.is_closed() {
                self.wires[1][from.index()].is_ended = true;
                self.meddler.stage().model.ended(from);
            }
        }
    }

    /// Releases everything and checks that both ends have received what they must.
    ///
    /// # Panics
    /// If they have not, or something is left.
    pub fn finish(mut self) {
        const MAX_ROUNDS: usize = 60;
        self.set_rates(Rates::NONE);
        self.wires.iter_mut().flatten().for_each(|wire| wire.trouble = [0; 3]);
        self.drain();
        self.release_all();
        for round in 0.. {
            let is_finished = self.meddler.stage().model.is_finished();
            if is_finished || (self.is_over && self.exchange.is_closed()) {
                break;
            }
            assert!(
                round < MAX_ROUNDS,
                "the conversation does not end: {:?}",
                self.meddler.stage().model
            );
            self.advance(Duration::from_secs(5));
            self.release_all();
        }
        if self.is_over {
            // An end must notice that the other end or the proxy is gone.
            for side in Side::BOTH {
                assert!(self.ends[side.index()].is_closed(), "the {side} is still open");
            }
            assert!(self.exchange.is_closed(), "the proxy is still open");
            return;
        }
        for side in Side::BOTH {
            self.say_one(side);
            self.advance(Duration::from_secs(2));
        }
        let Stage { model, .. } = &*self.meddler.stage();
        model.check_settled();
        assert!(model.is_finished(), "the ends can no longer exchange messages");
        assert_eq!(self.exchange.counts(), model.counts());
        assert!(!self.exchange.is_closed());
        for side in Side::BOTH {
            assert_eq!((self.exchange.kept_bytes(side), self.exchange.queued_bytes(side)), (0, 0));
            assert!(!self.exchange.is_paused(side) && !self.ends[side.index()].is_closed());
        }
    }

    /// Decides on every message held at a breakpoint.
    pub fn release_all(&mut self) {
        loop {
            let held = self.exchange.held();
            let [HeldMessage { id, line, .. }, ..] = &held[..] else { return };
            if self.exchange.is_closed() {
                return;
            }
            self.decide(*id, line);
            self.drain();
        }
    }
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("now", &self.now).finish_non_exhaustive()
    }
}
