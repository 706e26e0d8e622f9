//! Hostile players flood one age, while other players measure how long messages take in ages on
//! other nodes.
//!
//! On a machine with few cores, a flood takes processor time from all processes. So it is compared
//! with an unrelated process that takes the same amount of processor time, and the test is repeated
//! with the flooded node and the flooding clients on a separate core.
//!
//! `WORLDWIRE_LOAD_FLOODS=N cargo test -p worldwire --test cluster flood -- --nocapture` measures N
//! floods.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use worldwire_client::uru::Shard;

use crate::cluster::{address, processor_time};
use crate::crowd::{Heard, Player, converse};
use crate::load::{FRONT, Load, NODES, TALK_EVERY};
use crate::rounds::setting;

const FLOODS: &str = "WORLDWIRE_LOAD_FLOODS";
/// The task of another process of this test program: `flood PORT AGE COUNT` or `burn PER_MILLE`.
const PART: &str = "WORLDWIRE_LOAD_PART";
/// The metric that counts the messages handled by a node.
const HANDLED: &str = "age_messages_total";
/// The number of players that flood an age.
const FLOODERS: u64 = 10;
/// The threads of a burner.
const BURNERS: u32 = 3;
/// How often a burner checks how much time it has used.
const BURN_FOR: Duration = Duration::from_millis(2);

/// Another process of this program.
struct Part {
    child: Child,
    input: Option<ChildStdin>,
}

impl Part {
    /// Starts the process and waits until it is ready.
    fn start(part: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "flood::part", "--nocapture"]).env(PART, part);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = |line: &std::io::Result<String>| line.as_ref().unwrap().contains(READY);
        assert!(lines.by_ref().any(|line| is_ready(&line)), "{part} did not start");
        let input = child.stdin.take();
        // The rest of the output is only passed on.
        std::thread::spawn(move || lines.for_each(|line| println!("{}", line.unwrap())));
        Self { child, input }
    }

    fn go(&mut self) {
        writeln!(self.input.as_mut().unwrap()).unwrap();
    }

    /// Ends the process.
    fn end(mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }
}

/// The line that a part prints once it is ready to begin.
const READY: &str = "part is ready";

/// A part of the measurement, run in a separate process.
#[test]
fn part() {
    let Ok(part) = std::env::var(PART) else { return };
    let fields: Vec<_> = part.split(' ').collect();
    match fields[..] {
        ["flood", port, age, count] => {
            flood(port.parse().unwrap(), age.parse().unwrap(), count.parse().unwrap());
        }
        ["burn", share] => burn(share.parse().unwrap()),
        _ => panic!("not a part: {part}"),
    }
}

/// Waits for the first line of the input. The returned flag is set when the input ends.
fn begin() -> Arc<AtomicBool> {
    println!("{READY}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let is_over = Arc::<AtomicBool>::default();
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        over.store(true, Ordering::Relaxed);
    });
    is_over
}

/// Players in one age who send texts as fast as they can.
fn flood(port: u16, age: u8, count: u64) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut shard = Shard::new(&address(FRONT).to_string());
    shard.port = port;
    let players = runtime.block_on(async {
        let mut players = Vec::new();
        for index in 0..count {
            players.push(Player::enter(&shard, name(index), age).await.unwrap());
        }
        players
    });
    let is_over = begin();
    let said = Arc::<AtomicU64>::default();
    let tasks: Vec<_> = players
        .into_iter()
        .map(|mut player| {
            let (is_over, said) = (Arc::clone(&is_over), Arc::clone(&said));
            runtime.spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    // The player waits while the connection's buffers are full.
                    match tokio::time::timeout(Duration::from_millis(100), player.say()).await {
                        Ok(Ok(())) => drop(said.fetch_add(1, Ordering::Relaxed)),
                        Ok(Err(error)) => panic!("the age has thrown a player out: {error}"),
                        Err(_) => {}
                    }
                    // Players who do not read are disconnected.
                    player.forget();
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    println!("the players have said {}", said.load(Ordering::Relaxed));
}

fn name(index: u64) -> String {
    format!("Flood{index}")
}

/// Uses a share of the time of one core, in thousandths, with several threads.
fn burn(share: u32) {
    let is_over = begin();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..BURNERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let wanted = start.elapsed() * share / 1_000;
                    if processor_time(std::process::id()) >= wanted {
                        std::thread::sleep(BURN_FOR);
                        continue;
                    }
                    let begin = Instant::now();
                    while begin.elapsed() < BURN_FOR {
                        std::hint::spin_loop();
                    }
                }
            });
        }
    });
}

/// Latencies of one group of players.
struct Latencies(Vec<Duration>);

impl Latencies {
    fn of<'h>(heard: impl Iterator<Item = &'h Heard>) -> Self {
        let mut times: Vec<_> = heard.flat_map(|one| one.times.iter().copied()).collect();
        times.sort_unstable();
        Self(times)
    }

    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, most] = [50, 99].map(|percent| self.percentile(percent));
        let (count, last) = (self.0.len(), self.percentile(100));
        write!(f, "p50 {median:.2?}, p99 {most:.2?}, max {last:.2?} ({count})")
    }
}

/// A measurement of the shard.
struct Bench {
    load: Load,
    /// The node whose age is flooded.
    victim: usize,
    flooded: u8,
}

impl Bench {
    /// Measures latencies while a part runs. Returns the latencies on other nodes, and the
    /// processor time of the victim and the part, in thousandths of a core.
    fn measure(&mut self, about: &str, part: Option<&mut Part>) -> (Latencies, u32) {
        let processes = [self.load.cluster.process(self.victim)]
            .into_iter()
            .chain(part.as_ref().map(|part| part.child.id()))
            .collect::<Vec<_>>();
        let used = || processes.iter().map(|one| processor_time(*one)).collect::<Vec<_>>();
        if let Some(part) = part {
            part.go();
        }
        let known = self.load.cluster.metric(self.victim, HANDLED);
        let (start, before) = (Instant::now(), used());
        let Load { runtime, players, time, .. } = &mut self.load;
        let heard = runtime.block_on(converse(players, TALK_EVERY, *time));
        let (elapsed, after) = (start.elapsed(), used());
        let handled = self.load.cluster.metric(self.victim, HANDLED) - known;
        let share = |(after, before): (&Duration, &Duration)| {
            let share = (*after - *before).as_micros() * 1_000 / elapsed.as_micros();
            u32::try_from(share).unwrap()
        };
        let shares: Vec<_> = after.iter().zip(&before).map(share).collect();
        let victim = address(self.victim);
        let group = |is_meant: &dyn Fn(Ipv4Addr) -> bool| {
            Latencies::of(heard.iter().filter(|one| is_meant(one.node)))
        };
        let (others, there) = (group(&|node| node != victim), group(&|node| node == victim));
        println!(
            "{about}: other nodes {others}; other ages of the node {there}; processor of the node \
             and the other process, in thousandths of a core: {shares:?}; messages handled by the \
             node: {handled}"
        );
        (others, shares.iter().sum())
    }

    /// Measures before, during and after a flood, and with a burner that takes the same processor
    /// time. If `is_apart`, the victim and the processes that disturb it share one core, and
    /// everything else runs on the other. Returns the 99th percentiles on other nodes.
    fn compare(&mut self, is_apart: bool) -> [Duration; 4] {
        let about = if is_apart { "apart" } else { "together" };
        let part = format!("flood {} {} {FLOODERS}", self.load.cluster.port, self.flooded);
        let mut flood = Part::start(&part);
        let own = [self.load.cluster.process(self.victim), flood.child.id()];
        let others = self.load.cluster.all().filter(|node| *node != self.victim);
        let others = others.map(|node| self.load.cluster.process(node));
        let others: Vec<_> = others.chain([std::process::id()]).collect();
        if is_apart {
            own.iter().for_each(|process| pin(*process, "0"));
            others.iter().for_each(|process| pin(*process, "1"));
        }
        let (before, quiet) = self.measure(&format!("{about}, before"), None);
        let (flooded, used) = self.measure(&format!("{about}, flood"), Some(&mut flood));
        flood.end();
        let (after, _) = self.measure(&format!("{about}, after"), None);
        let mut burner = Part::start(&format!("burn {}", used.saturating_sub(quiet)));
        if is_apart {
            pin(burner.child.id(), "0");
        }
        let (burnt, _) = self.measure(&format!("{about}, burner"), Some(&mut burner));
        burner.end();
        if is_apart {
            own[..1].iter().chain(&others).for_each(|process| pin(*process, "0,1"));
        }
        [before, flooded, after, burnt].map(|one| one.percentile(99))
    }
}

/// Restricts a process and its threads to these cores.
fn pin(process: u32, cores: &str) {
    let mut command = Command::new("taskset");
    command.args(["-a", "-p", "-c", cores, &process.to_string()]);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

#[test]
fn a_flood_in_one_age_delays_no_other_node() {
    let floods = setting(FLOODS, 0);
    if floods == 0 {
        return;
    }
    let _alone = crate::alone();
    let names: Vec<_> = (0..FLOODERS).map(name).collect();
    let Some(load) = Load::start(30, 10, 10, &names) else { return };
    let victim = NODES[0];
    let flooded = load.players.iter().find(|player| player.node == address(victim)).unwrap().age;
    let mut bench = Bench { load, victim, flooded };
    // The players of the flooded age would hear only the flood.
    bench.load.players.retain(|player| player.age != flooded);
    let rounds: Vec<_> = (0..floods).map(|_| [false, true].map(|it| bench.compare(it))).collect();
    for (index, about) in ["together", "apart"].into_iter().enumerate() {
        let median = |phase: usize| {
            let mut times: Vec<_> = rounds.iter().map(|modes| modes[index][phase]).collect();
            times.sort_unstable();
            times[times.len() / 2]
        };
        let [before, flood, after, burner] = [0, 1, 2, 3].map(median);
        println!(
            "{about}, medians of p99 at other nodes: before {before:.2?}, flood {flood:.2?}, after \
             {after:.2?}, burner {burner:.2?}"
        );
    }
    bench.load.cluster.stop();
}
