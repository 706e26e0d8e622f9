//! A conversation between a client and a file server, with hooks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_dissect::{Definitions, Ends, Facts, Keys, Start, Time};
use worldwire_net::Signal;
use worldwire_proxy::{Exchange, HookEvent, HookOptions, Hooks, Known, Report};

/// The connect packet of a client that downloads files.
const CONNECT: &str =
    "101f00000000002800000002000000219848ea356cd04b9daebb17c585e6800c0000009603000000000000";

/// The conversation.
pub(crate) struct World {
    pub(crate) hooks: Hooks,
    pub(crate) exchange: Exchange,
    events: mpsc::Receiver<HookEvent>,
    began: Instant,
    /// What each side has received, by [`Side::index`].
    received: [Vec<u8>; 2],
}

/// A message of the file service: its number, and its fields.
pub(crate) fn message(number: u32, fields: &[u32]) -> Vec<u8> {
    let length = u32::try_from(8 + 4 * fields.len()).unwrap();
    let words = [length, number].into_iter().chain(fields.iter().copied());
    words.flat_map(u32::to_le_bytes).collect()
}

/// A ping with this number.
pub(crate) fn ping(number: u32) -> Vec<u8> {
    message(0, &[number])
}

impl World {
    pub(crate) async fn new(options: HookOptions, signal: Signal) -> Self {
        let definitions = Arc::new(Definitions::built_in());
        let hooks = Hooks::start(options, Arc::clone(&definitions), signal).await.unwrap();
        let (keys, facts) = (Arc::new(Keys::none()), Facts::default());
        let start = Start {
            keys: &keys,
            definitions: &definitions,
            facts: &facts,
            prepared: None,
            datagrams: false,
            midstream: false,
        };
        let family = definitions.families().named("uru").unwrap();
        let session = family.relay(&start, &mut |bytes| bytes.fill(7), Duration::ZERO).unwrap();
        let known = Known { family: "uru", definitions, keys };
        let ends = ["192.0.2.10:50000", "192.0.2.1:14617"].map(|end| end.parse().unwrap());
        let ends = Ends::new(ends[0], ends[1]);
        let (joined, events) = hooks.join(3, known.clone(), Some(&ends));
        let exchange =
            Exchange::new(session, Vec::new(), known, (3, Time(0)), Some(ends)).with_hooks(joined);
        let received = [Vec::new(), Vec::new()];
        let mut world = Self { hooks, exchange, events, began: Instant::now(), received };
        let connect: Vec<u8> = worldwire_core::value::parse_hex(CONNECT).unwrap();
        world.send(Side::Client, &connect);
        world.received = [Vec::new(), Vec::new()];
        world
    }

    pub(crate) fn send(&mut self, from: Side, bytes: &[u8]) {
        self.exchange.input(self.began.elapsed(), from, Input::Bytes(bytes));
        self.collect();
    }

    fn collect(&mut self) {
        for side in Side::BOTH {
            while let Some(bytes) = self.exchange.poll_transmit(side) {
                self.received[side.index()].extend(bytes);
            }
        }
    }

    /// Drives the conversation until a side has received this many bytes. Returns and removes them.
    pub(crate) async fn receive(&mut self, side: Side, count: usize) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(60);
        while self.received[side.index()].len() < count {
            let received = &self.received[side.index()];
            assert!(Instant::now() < end, "{} of {count} bytes: {received:?}", received.len());
            assert!(!self.exchange.is_closed(), "{:?}", self.problems());
            self.step(Duration::from_secs(60)).await;
        }
        self.received[side.index()].drain(..count).collect()
    }

    /// Drives the conversation for some time.
    pub(crate) async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step(end - Instant::now()).await;
        }
    }

    async fn step(&mut self, time: Duration) {
        let due = self.exchange.poll_timeout().map(|at| self.began + at);
        let end = Instant::now() + time;
        let wake = due.unwrap_or(end).min(end);
        tokio::select! {
            biased;
            event = self.events.recv() => {
                let event = event.expect("the hooks are there");
                self.exchange.hook(self.began.elapsed(), event);
            }
            () = sleep_until(wake) => self.exchange.timeout(self.began.elapsed()),
        }
        self.collect();
    }

    /// The problems that were reported.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        let reports = std::iter::from_fn(|| self.exchange.poll_report());
        let problem = |report| if let Report::Problem(text) = report { Some(text) } else { None };
        reports.filter_map(problem).collect()
    }
}

/// Whether a program can be run. If not, the test is skipped, or fails in CI.
pub(crate) fn has(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed");
        println!("skipped: {program} is not installed");
    }
    found
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}
