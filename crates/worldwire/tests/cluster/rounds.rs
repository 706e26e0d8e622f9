//! Rounds of faults under load, and checks of the state afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worldwire_core::Sampler;
use worldwire_server::uru::vault::Dump;

use crate::checker::{
    Stored, check_fences, check_nodes, check_registers, check_speakers, check_talks, check_view,
};
use crate::client::{REGISTER, Session, Worker, name};
use crate::cluster::{Cluster, LOOK_EVERY, PATIENCE, RECONNECT_SECONDS, address, open_vault};
use crate::faults::{BRIEF, Fault, Kind, Target};
use crate::history::{History, Talk, Talking, longest_silence, longest_solitude};
use crate::positions;
use crate::walker::{self, Walker};

const ROUNDS: &str = "WORLDWIRE_FAULT_ROUNDS";
const SEED: &str = "WORLDWIRE_FAULT_SEED";
/// A part of the names of the faults to use. By default, all are used.
const ONLY: &str = "WORLDWIRE_FAULT_ONLY";
/// The processes by index: both with the vault, the fronts and the age nodes.
const NAMES: [&str; 6] = ["a", "b", "front-1", "front-2", "age-1", "age-2"];
const VAULTS: [usize; 2] = [0, 1];
pub(crate) const FRONTS: [usize; 2] = [2, 3];
pub(crate) const AGE_NODES: [usize; 2] = [4, 5];
/// Ages that players meet in.
pub(crate) const AGES: [&str; 2] = ["Fern", "Moss"];
/// Clients of the fronts, and of the process with the vault.
const AT_FRONTS: usize = 6;
const AT_VAULTS: usize = 2;
const CLIENTS: usize = AT_FRONTS + AT_VAULTS;
/// Clients that meet in ages: two that stay in each of them, and others.
const RESIDENTS: usize = 2 * AGES.len();
const WALKERS: usize = RESIDENTS + 2;
/// The number of nodes that all clients change.
const REGISTERS: usize = 3;
/// The longest time without service after a process was killed.
const LIMIT: Duration = Duration::from_secs(3);

/// A number from an environment variable.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// How long clients received no answer because of a fault: the clients that were served first and
/// last.
struct Silence {
    fault: Fault,
    first: Duration,
    last: Duration,
    /// How long players who stay in an age heard nobody.
    alone: Duration,
}

#[test]
fn a_cluster_survives_faults() {
    let _alone = crate::alone();
    let (rounds, seed) = (setting(ROUNDS, BRIEF as u64), setting(SEED, 1));
    let walkers = (0..WALKERS).map(walker::name);
    let accounts: Vec<_> = (0..CLIENTS).map(name).chain(walkers).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let Some(cluster) = Cluster::start(&runtime, &accounts, &NAMES, &AGES) else { return };
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Restarts processes as systemd would do.
        scope.spawn(|| {
            while !ending.load(Ordering::Relaxed) {
                cluster.supervise();
                sleep(LOOK_EVERY);
            }
        });
        let _ends = Ends(&ending);
        survive(&runtime, &cluster, rounds, seed);
    });
}

/// Ends the supervisor, however the test ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn survive(runtime: &Runtime, cluster: &Cluster, rounds: u64, seed: u64) {
    cluster.wait_until("the cluster is not complete", || cluster.is_complete());
    let history = Arc::new(History::new());
    let mut workers: Vec<_> =
        (0..CLIENTS).map(|index| worker(index, cluster, &history, seed)).collect();
    let registers = runtime.block_on(async {
        let first = &mut workers[0];
        let session = first.enter().await.expect("a front serves clients");
        Arc::new(first.make_registers(&session, REGISTERS).await)
    });
    let (stop, stopped) = watch::channel(false);
    let walkers: Vec<_> = (0..WALKERS)
        .map(|index| {
            let mut addresses = FRONTS.map(address);
            addresses.rotate_left(index / AGES.len() % 2);
            let walker = Walker::new(index, addresses.to_vec(), cluster.port, &history, seed);
            runtime.spawn(walker.run(stopped.clone()))
        })
        .collect();
    let running: Vec<_> = workers
        .into_iter()
        .map(|worker| runtime.spawn(worker.run(Arc::clone(&registers), stopped.clone())))
        .collect();

    let only = std::env::var(ONLY).unwrap_or_default();
    let mut sampler = Sampler::new(seed);
    let mut silences = Vec::new();
    for round in 0..usize::try_from(rounds).unwrap() {
        calm(cluster, &history, &format!("before round {round}"));
        // The fault begins at a different moment in each round.
        sleep(Duration::from_millis(50 + sampler.below(400)));
        let fault = Fault::draw(round, &mut sampler, &only);
        let about = format!("seed {seed}, round {round}: {} for {:?}", fault.kind, fault.time);
        let silence = endure(cluster, &history, fault, &about);
        if rounds > BRIEF as u64 {
            let Silence { first, last, alone, .. } = &silence;
            println!("{about}: {first:.2?} to {last:.2?}, ages {alone:.2?}");
        }
        silences.push(silence);
    }
    calm(cluster, &history, "at the end");
    stop.send_replace(true);
    for walker in walkers {
        runtime.block_on(walker).unwrap();
    }
    let resumed = runtime.block_on(rest(cluster, running));
    cluster.stop();
    let proven = runtime.block_on(check(cluster, &history, &registers));
    println!("{proven}, {resumed} sessions continued by token; {}", figures(&silences));
    assert_limits(&silences);
}

fn worker(index: usize, cluster: &Cluster, history: &Arc<History>, seed: u64) -> Worker {
    let mut addresses = match index < AT_FRONTS {
        true => FRONTS.map(address),
        false => VAULTS.map(address),
    };
    addresses.rotate_left(index % 2);
    Worker::new(index, addresses.to_vec(), cluster.port, history, seed)
}

/// Waits until all processes are healthy, and all clients are served.
fn calm(cluster: &Cluster, history: &History, about: &str) {
    let otherwise = format!("{about}: the cluster is not complete");
    cluster.wait_until(&otherwise, || cluster.is_complete());
    let since = history.now();
    let otherwise = format!("{about}: clients are not served");
    cluster.wait_until(&otherwise, || history.served_since(since, CLIENTS) == CLIENTS);
    let otherwise = format!("{about}: players hear nobody");
    cluster.wait_until(&otherwise, || history.heard_since(since) >= WALKERS);
}

/// Causes a fault, and measures how long clients are not served.
fn endure(cluster: &Cluster, history: &History, fault: Fault, about: &str) -> Silence {
    let began = history.now();
    let undo = fault.begin(cluster).unwrap_or_else(|| panic!("{about}: nobody leads"));
    // PostgreSQL is already running again.
    let since = if fault.kind == Kind::PostgresCrashed { history.now() } else { began };
    if !fault.is_brief() {
        sleep(fault.time);
    }
    undo.end(cluster);
    calm(cluster, history, about);
    let (calls, until) = (history.calls(), history.now());
    let silence = |client| longest_silence(&calls, client, since, until).unwrap();
    let silences: Vec<_> = (0..CLIENTS).map(silence).collect();
    let [first, last] = [silences.iter().min(), silences.iter().max()].map(|it| *it.unwrap());
    let talks = history.talks();
    let alone = residents(&talks).into_iter().map(|player| {
        longest_solitude(&talks, player, since, until).expect("they were heard since")
    });
    let alone = alone.max().unwrap_or_default();
    Silence { fault, first, last, alone }
}

/// The players who have never changed their age.
fn residents(talks: &[Talk]) -> BTreeSet<u32> {
    let mut ages = BTreeMap::<u32, BTreeSet<usize>>::new();
    for talk in talks {
        if let Talking::Joined { player, age, .. } = talk.what {
            ages.entry(player).or_default().insert(age);
        }
    }
    ages.into_iter().filter(|(_, ages)| ages.len() == 1).map(|(player, _)| player).collect()
}

/// Checks the clients' views once all clients are idle, and who is online after some have left.
/// Returns the number of times that sessions continued without a login.
async fn rest(cluster: &Cluster, running: Vec<JoinHandle<(Worker, Option<Session>)>>) -> usize {
    let mut resting = Vec::new();
    for worker in running {
        let (mut worker, mut session) = worker.await.unwrap();
        let start = Instant::now();
        while session.is_none() {
            assert!(start.elapsed() < PATIENCE, "a client cannot return\n{}", cluster.logs());
            session = worker.enter().await;
        }
        resting.push((worker, session.unwrap()));
    }
    for (worker, session) in &mut resting {
        let start = Instant::now();
        loop {
            let (view, tree) = worker.views(session).await.unwrap();
            match check_view(&view, &tree) {
                Ok(()) => break,
                // The last changes by other clients may still arrive.
                Err(_) if start.elapsed() < Duration::from_secs(1) => {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(problem) => panic!("player {}: {problem}", worker.player()),
            }
        }
    }
    let resumed: usize = resting.iter().map(|(worker, _)| worker.resumed).sum();
    // Some clients log out.
    resting.retain(|(worker, _)| worker.player() % 3 != 0);
    let present: BTreeSet<_> = resting.iter().map(|(worker, _)| worker.player()).collect();
    let start = Instant::now();
    let (worker, session) = resting.first().expect("not all players have such numbers");
    loop {
        let online = worker.online(session).await.unwrap();
        if online == present {
            return resumed;
        }
        let late = start.elapsed() > Duration::from_secs(RECONNECT_SECONDS + 5);
        assert!(!late, "{online:?} are online, {present:?} should be");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Checks the database against the history. Returns a description of what was verified.
async fn check(cluster: &Cluster, history: &History, registers: &[u32]) -> String {
    let rows = cluster.database.sql(positions::READ);
    let (epochs, batches) = positions::check(&rows).unwrap_or_else(|problem| panic!("{problem}"));
    let vault = open_vault(&cluster.database).await;
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    let (stored, last) = read(&vault.export().await.unwrap(), registers);
    vault.close().await;
    let calls = history.calls();
    let nodes = check_nodes(&calls, &stored).unwrap_or_else(|problem| panic!("{problem}"));
    let talks = history.talks();
    let heard = check_talks(&talks).unwrap_or_else(|problem| panic!("{problem}"));
    let owners = check_fences(&cluster.all_logs()).unwrap_or_else(|problem| panic!("{problem}"));
    let at_owners = check_speakers(&talks, &owners, history.epoch());
    let at_owners = at_owners.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(at_owners > 0, "nobody heard anything at an owner of an age");
    let ordered = check_registers(&calls, &last).unwrap_or_else(|problem| panic!("{problem}"));
    format!(
        "{nodes} acknowledged calls of {}, {} nodes, {ordered} calls to shared nodes, {heard} texts \
        heard, {at_owners} of them at one of {} owners of ages, {batches} batches of {epochs} epochs",
        calls.len(),
        stored.nodes.len(),
        owners.len(),
    )
}

/// Reads an export of a vault: the clients' nodes, all references, and the shared nodes.
fn read(dump: &Dump, registers: &[u32]) -> (Stored, BTreeMap<u32, u64>) {
    let (mut stored, mut last) = (Stored::default(), BTreeMap::new());
    let number = |json: &serde_json::Value| u32::try_from(json.as_u64().unwrap()).unwrap();
    for line in dump.lines() {
        let line: serde_json::Value = line.parse().unwrap();
        if let Some(one) = line.get("ref") {
            stored.refs.insert((number(&one["parent"]), number(&one["child"])));
        }
        let Some(node) = line.get("node") else { continue };
        if node["NodeType"] != "TextNote" {
            continue;
        }
        let Some(title) = node["String64_1"].as_str() else { continue };
        let id = number(&node["NodeId"]);
        let count = node["Text_1"].as_str().map_or(0, |text| text.parse().unwrap());
        if registers.contains(&id) {
            assert!(title.starts_with(REGISTER), "{node}");
            last.insert(id, count);
        } else {
            stored.nodes.insert(id, (title.to_owned(), count));
        }
    }
    assert_eq!(last.len(), registers.len(), "shared nodes are missing");
    (stored, last)
}

/// The times without service by kind of fault, with the median and maximum of each.
fn figures(silences: &[Silence]) -> String {
    let mut kinds = BTreeMap::<String, Vec<&Silence>>::new();
    for silence in silences {
        kinds.entry(silence.fault.kind.to_string()).or_default().push(silence);
    }
    let spread = |mut times: Vec<Duration>| {
        times.sort_unstable();
        format!("{:.2?} / {:.2?}", times[times.len() / 2], times[times.len() - 1])
    };
    let kind = |(kind, silences): (&String, &Vec<&Silence>)| {
        let first = spread(silences.iter().map(|one| one.first).collect());
        let last = spread(silences.iter().map(|one| one.last).collect());
        let alone = spread(silences.iter().map(|one| one.alone).collect());
        let count = silences.len();
        format!("\n{kind} ({count}): first client {first}, last client {last}, ages {alone}")
    };
    format!(
        "times without service, median / maximum:{}",
        kinds.iter().map(kind).collect::<String>()
    )
}

/// How long players may be without an age whose process was killed.
const AGES_WITHIN: Duration = Duration::from_secs(5);

/// Clients must be served soon after a process was killed or stopped.
fn assert_limits(silences: &[Silence]) {
    for Silence { fault, first, last, alone } in silences {
        let limited = match fault.kind {
            Kind::Killed(_) => last,
            Kind::Stopped(Target::Leader) => first,
            _ => continue,
        };
        let moved = *alone < AGES_WITHIN || !matches!(fault.kind, Kind::Killed(Target::AgeNode));
        assert!(moved, "{}: players were alone for {alone:?}", fault.kind);
        assert!(*limited < LIMIT, "{}: clients were not served for {limited:?}", fault.kind);
    }
}
