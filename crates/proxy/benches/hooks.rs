//! Measures how many messages per second pass through Python hooks in one conversation, and how
//! long single messages are delayed.
//!
//! `cargo bench -p worldwire-proxy --bench hooks`

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_dissect::{Definitions, Facts, Keys, Start, Time};
use worldwire_net::Stop;
use worldwire_proxy::{Exchange, HookCommand, HookEvent, HookOptions, Hooks, Known};

/// The connect packet of a client that downloads files.
const CONNECT: &str =
    "101f00000000002800000002000000219848ea356cd04b9daebb17c585e6800c0000009603000000000000";
const MESSAGES: u32 = 50_000;
/// The maximum number of messages in flight.
const WINDOW: u32 = 256;
/// The number of messages sent one by one.
const SINGLE: u32 = 2_000;

struct Conversation {
    exchange: Exchange,
    events: mpsc::Receiver<HookEvent>,
    began: Instant,
    received: usize,
}

impl Conversation {
    async fn new(hooks: &Hooks, definitions: Arc<Definitions>) -> Self {
        let (keys, facts) = (Arc::new(Keys::none()), Facts::default());
        let start = Start {
            keys: &keys,
            definitions: &definitions,
            facts: &facts,
            prepared: None,
            datagrams: false,
            midstream: false,
        };
        let family = definitions.families().named("uru").expect("a family");
        let session =
            family.relay(&start, &mut |bytes| bytes.fill(7), Duration::ZERO).expect("a relay");
        let known = Known { family: "uru", definitions, keys };
        let (joined, events) = hooks.join(1, known.clone(), None);
        let exchange =
            Exchange::new(session, Vec::new(), known, (1, Time(0)), None).with_hooks(joined);
        let mut conversation = Self { exchange, events, began: Instant::now(), received: 0 };
        conversation.send(&worldwire_core::value::parse_hex(CONNECT).expect("digits"));
        conversation.received = 0;
        conversation
    }

    fn send(&mut self, bytes: &[u8]) {
        self.exchange.input(self.began.elapsed(), Side::Client, Input::Bytes(bytes));
        self.collect();
    }

    fn request(&mut self, number: u32) {
        let words = [12, 10, number].map(u32::to_le_bytes);
        self.send(words.as_flattened());
    }

    fn collect(&mut self) {
        while let Some(bytes) = self.exchange.poll_transmit(Side::Server) {
            self.received += bytes.len();
        }
    }

    async fn receive(&mut self, count: u32) {
        while self.received < count as usize * 12 {
            let event = self.events.recv().await.expect("a hook");
            self.exchange.hook(self.began.elapsed(), event);
            self.collect();
        }
    }
}

async fn measure(name: &str, commands: Vec<String>) {
    let definitions = Arc::new(Definitions::built_in());
    let stop = Stop::new();
    let commands = commands.into_iter().map(HookCommand::from).collect();
    let options =
        HookOptions { commands, answer_time: Duration::from_secs(60), ..HookOptions::default() };
    let hooks =
        Hooks::start(options, Arc::clone(&definitions), stop.signal()).await.expect("hooks");
    let mut conversation = Conversation::new(&hooks, definitions).await;
    let mut delays = Vec::new();
    for number in 1..=SINGLE {
        let began = Instant::now();
        conversation.request(number);
        conversation.receive(number).await;
        delays.push(began.elapsed());
    }
    delays.sort_unstable();
    let began = Instant::now();
    for number in 1..=MESSAGES {
        conversation.request(number);
        conversation.receive((SINGLE + number).saturating_sub(WINDOW)).await;
    }
    conversation.receive(SINGLE + MESSAGES).await;
    let rate = f64::from(MESSAGES) / began.elapsed().as_secs_f64();
    let counts = conversation.exchange.counts();
    println!(
        "{name}: {rate:.0} messages/s, {} changed; one at a time p50 {:?}, p99 {:?}",
        counts.changed,
        delays[delays.len() / 2],
        delays[delays.len() * 99 / 100]
    );
    stop.stop();
}

fn main() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: python3 is not installed");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/hook_peer.py");
    let hook = |order: u32, what: &str| format!("exec python3 '{script}' {order} {what}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        measure("forward", vec![hook(0, "forward")]).await;
        measure("replace", vec![hook(0, "replace")]).await;
        measure("replace twice", vec![hook(0, "replace"), hook(1, "replace")]).await;
    });
}
