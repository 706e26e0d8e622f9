//! Measures how many messages per second of the TERA and Uru samples pass through a proxy without
//! rules, with rules for other messages, and with rules for every message.
//!
//! Every message of a recorded conversation is decided on a thousand times, so decryption and setup
//! hardly matter.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use worldwire_core::Side;
use worldwire_core::connection::{Decision, HoldId, Input, SendError};
use worldwire_dissect::{Answer, Decider, Facts, Item, RelaySession, Stamp, Time};
use worldwire_proxy::{Exchange, Known};

#[path = "../tests/conversations/samples.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests")]
mod samples;

use samples::{Sample, tera, uru};

/// The number of times that each message is decided on.
const TIMES: usize = 1_000;

/// Rules for every message of TERA's sample.
const SET_TERA: &str = "when C_CHAT or S_CHAT { set message = \"Hello, too!\" }\n\
    when C_START_SKILL { set w = 0.25 }\n\
    when S_SPAWN_USER { set alive = false }\n\
    when S_LOGIN_ACCOUNT_INFO { set accountId = accountId + 1 }\n\
    when C_LOGIN_ARBITER { set fields.name = \"x\" }\n";
/// Rules for every message of Uru's sample.
const SET_URU: &str = "when *Ping* { set pingTimeMs = 7 }\n\
    when uru and exists(transId) and not *Ping* { set transId = 9 }\n";
const FILTER_TERA: &str = "when tera and channel == 4711 { drop }";
const FILTER_URU: &str = "when uru and transId == 4711 { drop }";

const RULES: [(&str, Option<&str>); 5] = [
    ("no rules", None),
    ("other messages", Some("when tera.51043 or auth.VaultNodeSave { drop }")),
    ("test a field", Some(FILTER_TERA)),
    ("set a field", Some(SET_TERA)),
    ("log a field", Some("when * { log \"{message.name} {message.length}\" }")),
];

fn main() {
    divan::main();
}

#[divan::bench(name = "tera", args = RULES.map(|(name, _)| name), sample_count = 10, sample_size = 1)]
fn tera_rules(bencher: Bencher<'_, '_>, rules: &str) {
    static SAMPLE: LazyLock<Sample> = LazyLock::new(tera);
    measure(bencher, &SAMPLE, rules);
}

#[divan::bench(name = "uru", args = RULES.map(|(name, _)| name), sample_count = 10, sample_size = 1)]
fn uru_rules(bencher: Bencher<'_, '_>, rules: &str) {
    static SAMPLE: LazyLock<Sample> = LazyLock::new(uru);
    measure(bencher, &SAMPLE, rules);
}

fn measure(bencher: Bencher<'_, '_>, sample: &Sample, rules: &str) {
    let (_, text) = RULES.iter().find(|(name, _)| *name == rules).unwrap();
    // A set of definitions knows only its own family's messages.
    let text = match *text {
        Some(SET_TERA) if sample.family == "uru" => Some(SET_URU),
        Some(FILTER_TERA) if sample.family == "uru" => Some(FILTER_URU),
        text => text,
    };
    let rules =
        text.map(|text| worldwire_proxy::Rules::parse("r", text, &sample.definitions).unwrap());
    let exchanges = || {
        let exchange = |_| {
            let known = Known {
                family: sample.family,
                definitions: Arc::clone(&sample.definitions),
                keys: Arc::clone(&sample.keys),
            };
            let session = Box::new(Repeated(sample.relay(&Facts::default())));
            let handlers = rules.iter().map(worldwire_proxy::Rules::handler).collect();
            Exchange::new(session, handlers, known, (0, Time(0)), None)
        };
        sample.conversations.iter().map(exchange).collect::<Vec<_>>()
    };
    let run = |exchanges: &mut Vec<Exchange>| {
        for (exchange, segments) in exchanges.iter_mut().zip(&sample.conversations) {
            for (from, bytes) in segments {
                exchange.input(Duration::ZERO, *from, sample.input(bytes));
            }
        }
        exchanges.iter().map(|exchange| exchange.counts().messages).sum::<u64>()
    };
    let messages = run(&mut exchanges());
    bencher
        .counter(ItemsCount::new(messages))
        .with_inputs(exchanges)
        .bench_local_values(|mut exchanges| run(&mut exchanges));
}

/// A session whose decider is asked many times.
#[derive(Debug)]
struct Repeated(Box<dyn RelaySession>);

struct Repeat<'d>(&'d mut dyn Decider);

impl Decider for Repeat<'_> {
    fn decide(&mut self, item: &Item<'_>) -> Answer {
        for _ in 0..TIMES {
            divan::black_box(self.0.decide(divan::black_box(item)));
        }
        Decision::AsIs.into()
    }

    fn held(&mut self, _: HoldId) {}
}

impl RelaySession for Repeated {
    fn input(
        &mut self,
        now: Duration,
        stamp: Stamp,
        from: Side,
        input: Input<'_>,
        decider: &mut dyn Decider,
    ) {
        self.0.input(now, stamp, from, input, &mut Repeat(decider));
    }

    fn timeout(&mut self, now: Duration, stamp: Stamp, decider: &mut dyn Decider) {
        self.0.timeout(now, stamp, decider);
    }

    fn resume(&mut self, stamp: Stamp, decider: &mut dyn Decider) {
        self.0.resume(stamp, decider);
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.0.release(held, decision)
    }

    fn can_inject(&self) -> bool {
        self.0.can_inject()
    }

    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.0.inject(to, message)
    }

    fn is_paused(&self, from: Side) -> bool {
        self.0.is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.0.kept_bytes(from)
    }

    fn close(&mut self) {
        self.0.close();
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.0.poll_transmit(to)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.0.poll_timeout()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.0.queued_bytes(to)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
