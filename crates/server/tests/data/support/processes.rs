//! Two processes that share a PostgreSQL database: one serves it, and the other is a standby.
//!
//! They are child processes of the test that run the test's own executable, work under load, and
//! print everything that was acknowledged. This module kills them, suspends them, tells them to
//! end, or cuts them off from the database. The tests of each kind of server provide the children.
//!
//! The database records every change of its position, and the process that made it, so that the
//! tests do not depend on the processes' own view. `WORLDWIRE_STANDBY_ROUNDS=N` runs N rounds of
//! failures and of partitions; a plain `cargo test` runs each kind once.

#![allow(dead_code, reason = "children and tests use their parts")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use worldwire_net::Signal;
use worldwire_server::store;

use super::child;
use super::database::Database;
use super::gate::{Gate, Way};
use super::positions;

const ROUNDS: &str = "WORLDWIRE_STANDBY_ROUNDS";
/// The environment variable in which a child finds its directory.
const FOLDER: &str = "WORLDWIRE_STANDBY_FOLDER";

/// How long a standby may take until clients are served again.
const LIMIT: Duration = Duration::from_secs(3);
/// How long to cut off a process that should hardly notice.
const LONG: Duration = Duration::from_millis(2_500);
/// How long a test waits for anything else.
const PATIENCE: Duration = Duration::from_secs(60);

/// The parts that the tests of each kind of server provide.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The name of the test that runs as the child.
    pub(crate) child: &'static str,
    /// Writes the configuration and keys for this URL into a directory.
    pub(crate) prepare: fn(&Path, &str),
}

/// The number that is acknowledged for a key that no longer exists.
pub(crate) const GONE: u32 = 0;

/// A line that a child prints about itself.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// The child is a standby.
    Waits,
    /// The child serves clients.
    Serves,
    /// The child's data had this number under a key when it began to serve.
    Holds { key: String, number: u32 },
    /// The child has printed all the data that it had.
    Ready,
    /// The child saved a number under a key, with a request that began at this time.
    Saved { key: String, number: u32, began: u128 },
    /// The child is about to delete a key.
    Leaves { key: String },
    /// The child read something, with a request that began at this time.
    Read { began: u128 },
    /// The child read something that contradicts what was acknowledged to it.
    Wrong(String),
    /// The child ended, with this error.
    Ended(String),
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let rest = || line.split_once(' ').unwrap().1.to_owned();
        Some(match words[..] {
            ["waits"] => Self::Waits,
            ["serves"] => Self::Serves,
            ["holds", key, number] => {
                Self::Holds { key: key.to_owned(), number: number.parse().ok()? }
            }
            ["ready"] => Self::Ready,
            ["saved", key, number, began] => Self::Saved {
                key: key.to_owned(),
                number: number.parse().ok()?,
                began: began.parse().ok()?,
            },
            ["leaves", key] => Self::Leaves { key: key.to_owned() },
            ["read", began] => Self::Read { began: began.parse().ok()? },
            ["wrong", ..] => Self::Wrong(rest()),
            ["ended", ..] => Self::Ended(rest()),
            _ => return None,
        })
    }
}

/// Milliseconds of a clock that all processes share.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Whether a child should change nothing.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// The child: works in its directory, and obeys `quiet` and `busy`, until the parent closes its
/// standard input. When run directly, it does nothing.
pub(crate) fn obey(work: impl AsyncFnOnce(&Path, Signal)) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    child::serve(
        |order| QUIET.store(order == "quiet", Ordering::Relaxed),
        async |signal| work(Path::new(&folder), signal).await,
    );
}

/// Runs a blocking test on a database with its tables. Without PostgreSQL, reports that and returns
/// `None`.
pub(crate) async fn with_database<T: Send + 'static>(
    test: impl FnOnce(&Database) -> T + Send + 'static,
) -> Option<(Database, T)> {
    let database = Database::postgres()?;
    let file = database.folder.path().join("unused.sqlite");
    store::open(file, database.url.as_deref()).await.unwrap().close().await.unwrap();
    let tested = tokio::task::spawn_blocking(move || {
        let result = test(&database);
        (database, result)
    });
    Some(tested.await.unwrap())
}

/// The number of rounds set in the environment; a few if it is not set.
fn rounds(few: usize) -> usize {
    std::env::var(ROUNDS).ok().map_or(few, |rounds| rounds.parse().unwrap())
}

/// Numbers by key: those that were acknowledged, or those in a database.
pub(crate) type Numbers = BTreeMap<String, u32>;

/// Checks that no acknowledged number is missing.
pub(crate) fn check(acknowledged: &Numbers, found: &Numbers, about: &str) {
    for (key, number) in acknowledged {
        match (*number, found.get(key)) {
            (GONE, None) => {}
            (wanted, Some(found)) if wanted != GONE && *found >= wanted => {}
            (wanted, found) => panic!("{about}: {key}: {wanted} was acknowledged, {found:?} found"),
        }
    }
}

/// A child's directory, and the proxy through which it reaches the database.
struct Side {
    folder: TempDir,
    gate: Gate,
    name: &'static str,
}

/// A child process.
struct Process {
    side: Side,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    /// The last acknowledged number of each key.
    saved: Numbers,
    /// The data that it had when it began to serve.
    held: Numbers,
}

impl Process {
    fn start(kind: Kind, side: Side) -> Self {
        let mut command = child::command(kind.child);
        command.env(FOLDER, side.folder.path()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = child::listen(&mut child, |line| Line::parse(&line));
        let input = child.stdin.take();
        Self { side, child, input, lines, saved: Numbers::new(), held: Numbers::new() }
    }

    fn standby(kind: Kind, side: Side) -> Self {
        let mut this = Self::start(kind, side);
        this.wait_for(&Line::Waits);
        this
    }

    /// The next line; `None` after the process has ended.
    fn line(&mut self) -> Option<Line> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!("process {} is silent", self.side.name),
        };
        match &line {
            Line::Saved { key, number, .. } => drop(self.saved.insert(key.clone(), *number)),
            // The key may or may not exist until its deletion is acknowledged.
            Line::Leaves { key } => drop(self.saved.remove(key)),
            Line::Holds { key, number } => drop(self.held.insert(key.clone(), *number)),
            Line::Wrong(what) => panic!("process {}: {what}", self.side.name),
            _ => {}
        }
        Some(line)
    }

    /// Skips lines up to this one.
    fn wait_for(&mut self, wanted: &Line) {
        while self.line().expect("the process runs") != *wanted {}
    }

    /// Waits until it has saved something this many times.
    fn wait_for_saves(&mut self, mut count: usize) {
        while count > 0 {
            let line = self.line().expect("the process runs");
            count -= usize::from(matches!(line, Line::Saved { .. }));
        }
    }

    /// Waits until it has read something this many times, without saving anything in between.
    fn wait_for_reads(&mut self, count: usize) {
        let mut reads = 0;
        while reads < count {
            match self.line().expect("the process runs") {
                Line::Read { .. } => reads += 1,
                Line::Saved { .. } => reads = 0,
                _ => {}
            }
        }
    }

    fn tell(&mut self, order: &str) {
        self.input.as_mut().unwrap().write_all(format!("{order}\n").as_bytes()).unwrap();
    }

    /// Reads all remaining lines. Returns them, the directory, and the acknowledged numbers.
    fn end(mut self) -> (Vec<Line>, Side, Numbers) {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            lines.push(line);
        }
        self.child.wait().unwrap();
        (lines, self.side, self.saved)
    }
}

/// Both processes, and the numbers that they acknowledged.
struct Pair<'d> {
    kind: Kind,
    database: &'d Database,
    active: Process,
    standby: Process,
    /// The numbers that ended processes acknowledged.
    saved: Numbers,
}

impl<'d> Pair<'d> {
    /// Starts both processes. The tables of the database already exist.
    fn start(kind: Kind, database: &'d Database) -> Self {
        database.sql(positions::RECORD);
        database.sql(NEXT_BEAT);
        let [one, two] = ["one", "two"].map(|name| {
            let folder = tempfile::tempdir().unwrap();
            let gate = Gate::new(&database.socket());
            (kind.prepare)(folder.path(), &gate.url(database.name(), name));
            child::write_key(folder.path());
            Side { folder, gate, name }
        });
        let mut active = Process::start(kind, one);
        active.wait_for(&Line::Serves);
        let standby = Process::standby(kind, two);
        Self { kind, database, active, standby, saved: Numbers::new() }
    }

    /// Waits until the standby serves. Returns the time since `start`, which must be short.
    fn taken_over(&mut self, start: Instant, about: &str) -> Duration {
        self.standby.wait_for(&Line::Serves);
        let time = start.elapsed();
        assert!(time < LIMIT, "{about}: {time:?}");
        self.standby.wait_for(&Line::Ready);
        time
    }

    /// Waits for the end of the active process, from which the standby has taken over, and swaps
    /// their roles. Returns the last lines of the process that ended.
    fn swap(self, about: &str) -> (Self, Vec<Line>) {
        let Self { kind, database, active, standby, mut saved } = self;
        let (lines, side, acknowledged) = active.end();
        saved.extend(acknowledged);
        check(&saved, &standby.held, about);
        let active = standby;
        let standby = Process::standby(kind, side);
        (Self { kind, database, active, standby, saved }, lines)
    }

    /// Kills both, checks the history, and returns all acknowledged numbers.
    fn finish(self) -> Numbers {
        let Self { database, active, standby, mut saved, .. } = self;
        for mut process in [standby, active] {
            process.child.kill().unwrap();
            saved.extend(process.end().2);
        }
        let (_, batches) = positions::check(&database.sql(positions::READ)).unwrap();
        assert!(batches > 0);
        saved
    }
}

/// The failures of the process that serves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// SIGKILL.
    Killed,
    /// SIGSTOP, and SIGCONT once the standby has taken over.
    Stopped,
    /// The process is told to end.
    Ends,
}

/// Lets processes fail in turn. Returns all acknowledged saves, and the times without service.
pub(crate) fn take_turns(kind: Kind, database: &Database) -> (Numbers, Vec<(Failure, Duration)>) {
    let mut pair = Pair::start(kind, database);
    let mut times = Vec::new();
    for round in 0..rounds(3) {
        let failure = [Failure::Killed, Failure::Stopped, Failure::Ends][round % 3];
        let about = format!("round {round}, {failure:?}");
        // Let the process fail at a different moment in each round.
        pair.active.wait_for_saves(100 + round * 37 % 211);
        let start = Instant::now();
        match failure {
            Failure::Killed => pair.active.child.kill().unwrap(),
            Failure::Stopped => child::signal(&pair.active.child, "-STOP"),
            Failure::Ends => drop(pair.active.input.take()),
        }
        pair.taken_over(start, &about);
        pair.standby.wait_for_saves(1);
        let time = start.elapsed();
        assert!(time < LIMIT, "{about}: {time:?}");
        times.push((failure, time));
        pair.standby.wait_for_saves(50);

        let woken = now();
        if matches!(failure, Failure::Stopped) {
            child::signal(&pair.active.child, "-CONT");
        }
        let lines;
        (pair, lines) = pair.swap(&about);
        if matches!(failure, Failure::Stopped) {
            assert_silent(&lines, woken, &about);
        }
        match (failure, lines.last()) {
            (Failure::Stopped, Some(Line::Ended(error))) => {
                assert!(error.contains("was taken over by process"), "{about}: {error}");
            }
            (Failure::Ends, Some(Line::Ended(error))) => assert_eq!(error, "", "{about}"),
            (Failure::Killed, _) => {}
            (_, last) => panic!("{about}: {last:?}"),
        }
    }
    (pair.finish(), times)
}

/// Fails if a request that began after another process took over was answered.
fn assert_silent(lines: &[Line], since: u128, about: &str) {
    for line in lines {
        let (Line::Saved { began, .. } | Line::Read { began }) = line else { continue };
        assert!(*began < since, "{about}: it answered {} ms after it was overtaken", began - since);
    }
}

/// How processes are cut off from the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// Nothing gets through between the active process and the database.
    Held,
    /// The active process loses its connections and gets no new ones.
    Cut,
    /// The database receives what the active process sends, but not the other way round.
    Mute,
    /// Nothing gets through between the standby and the database.
    StandbyHeld,
    /// Nothing gets through from either process, and the active process is reconnected first.
    BothHeld,
}

impl Partition {
    const ALL: [Self; 5] = [Self::Held, Self::Cut, Self::Mute, Self::StandbyHeld, Self::BothHeld];
}

/// Cuts processes off in turn. Returns all acknowledged saves, and the times until the standby
/// served.
pub(crate) fn cut_off(kind: Kind, database: &Database) -> (Numbers, Vec<(Partition, Duration)>) {
    let mut pair = Pair::start(kind, database);
    let mut times = Vec::new();
    for round in 0..rounds(Partition::ALL.len()) {
        let partition = Partition::ALL[round % Partition::ALL.len()];
        let about = format!("round {round}, {partition:?}");
        pair.active.wait_for_saves(60 + round * 37 % 101);
        let gate = &pair.active.side.gate;
        let start = Instant::now();
        match partition {
            Partition::Held => gate.both(Way::Held),
            Partition::Cut => gate.both(Way::Cut),
            Partition::Mute => gate.answers(Way::Held),
            Partition::StandbyHeld | Partition::BothHeld => {
                endure(&mut pair, partition == Partition::BothHeld, &about);
                continue;
            }
        }
        // The standby changes nothing until the other process has tried to.
        pair.standby.tell("quiet");
        times.push((partition, pair.taken_over(start, &about)));
        let claimed = claimed(database);
        pair.active.side.gate.both(Way::Open);
        let lines;
        (pair, lines) = pair.swap(&about);
        assert_silent(&lines, claimed, &about);
        assert_overtaken(&lines, &about);
        pair.active.tell("busy");
        pair.active.wait_for_saves(50);
    }
    (pair.finish(), times)
}

/// Cuts off the standby, or both. The active process continues.
fn endure(pair: &mut Pair<'_>, both: bool, about: &str) {
    pair.standby.side.gate.both(Way::Held);
    if both {
        pair.active.side.gate.both(Way::Held);
    }
    std::thread::sleep(LONG);
    pair.active.side.gate.both(Way::Open);
    // Lines from before the partition may still be in the pipe.
    let open = now();
    while !matches!(pair.active.line(), Some(Line::Saved { began, .. }) if began > open) {}
    pair.standby.side.gate.both(Way::Open);
    match pair.standby.lines.recv_timeout(LONG) {
        Err(RecvTimeoutError::Timeout) => {}
        other => panic!("{about}: the standby said {other:?}"),
    }
}

/// Lets the answer to a renewal of the lease arrive as late as possible, and then cuts the active
/// process off. The process only reads, so nothing else can tell it that the standby has taken
/// over.
pub(crate) fn delay_an_answer(kind: Kind, database: &Database) -> Numbers {
    let mut pair = Pair::start(kind, database);
    pair.active.wait_for_saves(50);
    pair.active.tell("quiet");
    pair.active.wait_for_reads(50);
    let gate = &pair.active.side.gate;
    next_beat(database);
    // The process first checks that the connection works.
    gate.answers(Way::HeldAfterOne);
    let (renewed, start) = (next_beat(database), Instant::now());
    gate.requests(Way::Held);
    // After a second, the process would no longer wait for the answer.
    let passed = u64::try_from(now() - renewed).unwrap();
    std::thread::sleep(Duration::from_millis(900_u64.saturating_sub(passed)));
    gate.answers(Way::Open);

    pair.standby.tell("quiet");
    pair.taken_over(start, "late answer");
    let claimed = claimed(database);
    // A process that did not notice the takeover would answer for a little longer.
    std::thread::sleep(Duration::from_millis(300));
    pair.active.side.gate.both(Way::Open);
    let lines;
    (pair, lines) = pair.swap("late answer");
    assert_silent(&lines, claimed, "late answer");
    assert_overtaken(&lines, "late answer");
    pair.active.tell("busy");
    pair.active.wait_for_saves(50);
    pair.finish()
}

/// The process must state why it ended.
fn assert_overtaken(lines: &[Line], about: &str) {
    match lines.last() {
        Some(Line::Ended(error)) => assert!(error.contains("taken over"), "{about}: {error}"),
        last => panic!("{about}: {last:?}"),
    }
}

/// Waits for renewals of the lease.
const NEXT_BEAT: &str = "
    CREATE FUNCTION next_beat() RETURNS BIGINT LANGUAGE plpgsql AS $$
    DECLARE known lease; found lease; at BIGINT;
    BEGIN
        SELECT * INTO known FROM lease;
        LOOP
            PERFORM pg_sleep(0.002);
            SELECT * INTO found FROM lease;
            EXIT WHEN found <> known;
        END LOOP;
        ASSERT found.epoch = known.epoch, 'another process has taken over';
        at := extract(epoch FROM clock_timestamp()) * 1000;
        PERFORM pg_sleep(0.03);
        RETURN at;
    END;
    $$;";

/// Waits for the next renewal of the lease, and a moment longer. Returns its time in Unix
/// milliseconds.
fn next_beat(database: &Database) -> u128 {
    database.sql("SELECT next_beat()").trim().parse().unwrap()
}

/// The time at which the database was last claimed, in Unix milliseconds.
fn claimed(database: &Database) -> u128 {
    let sql = "SELECT min(at) FROM history WHERE epoch = (SELECT max(epoch) FROM history)";
    database.sql(sql).trim().parse().unwrap()
}
