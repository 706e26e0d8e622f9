//! Three age nodes under load: each does only the work of its own ages.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cluster::{Cluster, address};
use crate::crowd::{self, FILE, Player, converse};
use crate::rounds::setting;

/// The number of ages, the number of players in each, and how long they talk, in seconds.
const AGES: &str = "WORLDWIRE_LOAD_AGES";
const PLAYERS: &str = "WORLDWIRE_LOAD_PLAYERS";
const SECONDS: &str = "WORLDWIRE_LOAD_SECONDS";
/// All processes.
const NAMES: [&str; 5] = ["a", "front-1", "age-1", "age-2", "age-3"];
pub(crate) const FRONT: usize = 1;
/// The indices of the processes that run ages.
pub(crate) const NODES: [usize; 3] = [2, 3, 4];
/// How often a player says something.
pub(crate) const TALK_EVERY: Duration = Duration::from_millis(100);
/// The maximum number of attempts. Other processes can disturb the measurement of processor time,
/// and heartbeats that of bus traffic.
const TRIES: usize = 3;

/// A running shard, and the players in its ages.
pub(crate) struct Load {
    pub(crate) runtime: Runtime,
    pub(crate) cluster: std::sync::Arc<Cluster>,
    pub(crate) players: Vec<Player>,
    pub(crate) time: Duration,
}

impl Load {
    /// Starts the shard, with additional accounts, and lets players enter ages. `None` without
    /// PostgreSQL or NATS.
    pub(crate) fn start(ages: u64, players: u64, seconds: u64, more: &[String]) -> Option<Self> {
        let (ages, players) = (setting(AGES, ages), setting(PLAYERS, players));
        let time = Duration::from_secs(setting(SECONDS, seconds));
        let names: Vec<_> = (0..ages * players).map(|index| format!("Load{index}")).collect();
        let accounts = [&names[..], more].concat();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let cluster = Cluster::start(&runtime, &accounts, &NAMES, &[FILE])?;
        cluster.wait_until("the cluster is not complete", || cluster.is_complete());
        let front = (address(FRONT), cluster.port);
        let players = runtime.block_on(crowd::enter(front, u8::try_from(ages).unwrap(), names));
        Some(Self { runtime, cluster, players, time })
    }

    /// The work that each node has done so far.
    fn work(&self) -> Vec<Work> {
        NODES.map(|node| Work::of(&self.cluster, node)).to_vec()
    }

    /// Waits until the nodes have processed everything that players requested when they entered.
    fn settle(&self) {
        let done = || self.work().iter().map(|work| work.deliveries).collect::<Vec<_>>();
        let mut before = done();
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = done();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Measures the work of each node while players talk, and while they are silent.
    fn measure(&mut self) -> Vec<Measured> {
        self.settle();
        let start = self.work();
        std::thread::sleep(self.time);
        let before = self.work();
        let heard = converse(&mut self.players, TALK_EVERY, self.time);
        let heard = self.runtime.block_on(heard);
        let after = self.work();
        let mut texts = BTreeMap::<Ipv4Addr, u64>::new();
        heard.iter().for_each(|one| *texts.entry(one.node).or_default() += one.times.len() as u64);
        let said = u64::try_from(self.time.as_nanos() / TALK_EVERY.as_nanos()).unwrap();
        let measured = NODES.iter().enumerate().map(|(index, node)| {
            let players = self.players.iter().filter(|player| player.node == address(*node));
            Measured {
                said: said * players.count() as u64,
                heard: texts.get(&address(*node)).copied().unwrap_or_default(),
                idle: before[index].since(&start[index]),
                busy: after[index].since(&before[index]),
            }
        });
        measured.collect()
    }
}

/// The work that a process has done.
#[derive(Clone, Copy, Debug)]
struct Work {
    messages: u64,
    deliveries: u64,
    bus_bytes: u64,
    processor: Duration,
}

impl Work {
    fn of(cluster: &Cluster, node: usize) -> Self {
        let metric = |name| cluster.metric(node, name);
        Self {
            messages: metric("age_messages_total"),
            deliveries: metric("age_deliveries_total"),
            bus_bytes: metric("bus_sent_bytes_total") + metric("bus_received_bytes_total"),
            processor: cluster.processor_time(node),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            deliveries: self.deliveries - before.deliveries,
            bus_bytes: self.bus_bytes - before.bus_bytes,
            processor: self.processor - before.processor,
        }
    }
}

/// The work that a node has done, and the texts that its players said and heard.
#[derive(Debug)]
struct Measured {
    said: u64,
    heard: u64,
    idle: Work,
    busy: Work,
}

#[test]
fn each_node_does_the_work_of_its_ages_only() {
    let _alone = crate::alone();
    let Some(mut load) = Load::start(6, 4, 4, &[]) else { return };
    for attempt in 1..=TRIES {
        let measured = load.measure();
        for (node, one) in NODES.iter().zip(&measured) {
            println!("{}: {one:?}", load.cluster.name(*node));
        }
        for Measured { said, heard, idle, busy } in &measured {
            assert!(*said > 0, "a node has no ages: {measured:?}");
            assert_eq!((idle.messages, idle.deliveries), (0, 0), "{measured:?}");
            assert_eq!((busy.messages, busy.deliveries), (*said, *heard), "{measured:?}");
        }
        match check_bus(&measured).and_then(|()| check_shares(&measured)) {
            Ok(()) => break,
            Err(problem) => assert!(attempt < TRIES, "{problem}: {measured:?}"),
        }
    }
    load.cluster.stop();
}

/// Checks that talk causes no bus traffic: not even one byte per message, although an encoded
/// message takes more than a hundred. This leaves room for one heartbeat more or less.
fn check_bus(measured: &[Measured]) -> Result<(), String> {
    for Measured { said, idle, busy, .. } in measured {
        let more = busy.bus_bytes.saturating_sub(idle.bus_bytes);
        if more >= *said {
            return Err(format!("{more} bytes went over the bus"));
        }
    }
    Ok(())
}

/// Checks that the processor time of each node is proportional to its deliveries, within 20 %.
fn check_shares(measured: &[Measured]) -> Result<(), String> {
    let sum = |part: fn(&Work) -> f64| measured.iter().map(|one| part(&one.busy)).sum::<f64>();
    let deliveries = |work: &Work| work.deliveries as f64;
    let processor = |work: &Work| work.processor.as_secs_f64();
    let (all, whole) = (sum(deliveries), sum(processor));
    for one in measured {
        let share = deliveries(&one.busy) / all;
        let used = processor(&one.busy) / whole;
        if (used / share - 1.0).abs() > 0.2 {
            return Err(format!("a node with {share:.3} of the deliveries used {used:.3}"));
        }
    }
    Ok(())
}

#[test]
fn shares_of_processor_time_are_compared() {
    let measured = |deliveries, ms| {
        let processor = Duration::from_millis(ms);
        let busy = Work { messages: 0, deliveries, bus_bytes: 0, processor };
        Measured { said: 0, heard: 0, idle: busy, busy }
    };
    check_shares(&[measured(100, 110), measured(200, 190), measured(300, 300)]).unwrap();
    let problem = check_shares(&[measured(100, 150), measured(200, 200), measured(300, 300)]);
    assert!(problem.unwrap_err().starts_with("a node with 0.167"), "too much");
}
