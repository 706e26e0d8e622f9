//! Two processes share a PostgreSQL database: one serves the shard, the other is its standby.
//!
//! Child processes serve, write under load, and print what was acknowledged. They are killed with
//! SIGKILL, stopped with SIGSTOP, or asked to end. `WORLDWIRE_STANDBY_ROUNDS=N` runs N rounds; a
//! plain `cargo test` runs a few.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use worldwire_net::Stop;
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_server::uru::{Standby, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use crate::support::{Database, key, login, note, titled};

const FOLDER: &str = "WORLDWIRE_STANDBY_FOLDER";
const ROUNDS: &str = "WORLDWIRE_STANDBY_ROUNDS";
const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707\n";
const WORKERS: usize = 8;
/// How long a standby may take until clients are served again.
const LIMIT: Duration = Duration::from_secs(3);
/// How long a test waits for anything else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A line of a child.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// It is a standby.
    Waits,
    /// It serves the shard.
    Serves,
    /// It saved a number in a node, with a request that began at this time.
    Saved { node: u32, number: u32, began: u128 },
    /// It read a node, with a request that began at this time.
    Read { began: u128 },
    /// It ended, with this error.
    Ended(String),
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        Some(match words[..] {
            ["waits"] => Self::Waits,
            ["serves"] => Self::Serves,
            ["saved", node, number, began] => Self::Saved {
                node: node.parse().ok()?,
                number: number.parse().ok()?,
                began: began.parse().ok()?,
            },
            ["read", began] => Self::Read { began: began.parse().ok()? },
            ["ended", ..] => Self::Ended(line["ended ".len()..].to_owned()),
            _ => return None,
        })
    }
}

/// Milliseconds of a clock that all processes share.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// A child process with its own folder.
struct Process {
    folder: TempDir,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    /// The last acknowledged number of each node.
    saved: BTreeMap<u32, u32>,
}

impl Process {
    fn start(folder: TempDir) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "standby::process", "--nocapture"]).env(FOLDER, folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter_map(|line| Line::parse(&line)).try_for_each(|line| sender.send(line))
        });
        let input = child.stdin.take();
        Self { folder, child, input, lines, saved: BTreeMap::new() }
    }

    /// The next line; `None` after the process has ended.
    fn line(&mut self) -> Option<Line> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if let Line::Saved { node, number, .. } = line {
                    self.saved.insert(node, number);
                }
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the process is silent"),
        }
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

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Reads all remaining lines, and returns them, the folder, and what was acknowledged.
    fn end(mut self) -> (Vec<Line>, TempDir, BTreeMap<u32, u32>) {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            lines.push(line);
        }
        self.child.wait().unwrap();
        (lines, self.folder, self.saved)
    }
}

/// What can happen to the process that serves.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// SIGKILL.
    Killed,
    /// SIGSTOP, and SIGCONT once the standby has taken over.
    Stopped,
    /// It is asked to end.
    Ends,
}

/// A folder for a process that shares the database.
fn folder(url: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("listen = \"127.0.0.1:0\"\nstatus = \"\"\ndatabase = \"{url}\"\n");
    std::fs::write(folder.path().join("shard.toml"), settings).unwrap();
    folder
}

/// The same keys for several folders.
fn share_keys(folders: &[TempDir]) {
    let ring = keys::generate(PrimeKind::Plain);
    for folder in folders {
        keys::save(&ring, &folder.path().join("keys.toml")).unwrap();
        let key = folder.path().join("server.key");
        std::fs::write(&key, KEY).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_standby_takes_over_without_loss() {
    let Some(database) = Database::postgres() else { return };
    let rounds = std::env::var(ROUNDS).ok().map_or(3, |rounds| rounds.parse().unwrap());
    let url = database.url.clone().unwrap();
    let figures = tokio::task::spawn_blocking(move || take_turns(&url, rounds));
    let (saved, times) = figures.await.unwrap();

    let vault = Vault::open(database.store().await, key(), VaultConfig::default());
    let vault = vault.await.unwrap();
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    for (node, number) in &saved {
        let shown = vault.show(*node).await.unwrap();
        let stored: u32 = shown["String64_1"].as_str().unwrap().parse().unwrap();
        assert!(stored >= *number, "node {node}: {number} was acknowledged, {stored} is stored");
    }
    vault.close().await;
    println!("{} nodes with acknowledged saves, all there; {times:?}", saved.len());
}

/// Lets processes fail in turn. Returns all acknowledged saves, and the times without service.
fn take_turns(url: &str, rounds: usize) -> (BTreeMap<u32, u32>, Vec<(Failure, Duration)>) {
    let folders = [folder(url), folder(url)];
    share_keys(&folders);
    let [one, other] = folders;
    let mut active = Process::start(one);
    active.wait_for(&Line::Serves);
    let mut standby = Process::start(other);
    standby.wait_for(&Line::Waits);
    let (mut saved, mut times) = (BTreeMap::new(), Vec::new());
    for round in 0..rounds {
        let failure = [Failure::Killed, Failure::Stopped, Failure::Ends][round % 3];
        // At a different moment in each round.
        active.wait_for_saves(100 + round * 37 % 211);
        let start = Instant::now();
        match failure {
            Failure::Killed => active.child.kill().unwrap(),
            Failure::Stopped => active.signal("-STOP"),
            Failure::Ends => drop(active.input.take()),
        }
        standby.wait_for(&Line::Serves);
        standby.wait_for_saves(1);
        let time = start.elapsed();
        assert!(time < LIMIT, "round {round}, {failure:?}: {time:?}");
        times.push((failure, time));
        standby.wait_for_saves(50);

        let woken = now();
        if matches!(failure, Failure::Stopped) {
            active.signal("-CONT");
        }
        let (lines, folder, acknowledged) = active.end();
        saved.extend(acknowledged);
        if matches!(failure, Failure::Stopped) {
            for line in &lines {
                let (Line::Saved { began, .. } | Line::Read { began }) = line else { continue };
                assert!(*began < woken, "round {round}: it answered after it was overtaken");
            }
        }
        match (failure, lines.last()) {
            (Failure::Stopped, Some(Line::Ended(error))) => {
                assert!(error.contains("was taken over by process"), "round {round}: {error}");
            }
            (Failure::Ends, Some(Line::Ended(error))) => assert_eq!(error, "", "round {round}"),
            (Failure::Killed, _) => {}
            (_, last) => panic!("round {round}, {failure:?}: {last:?}"),
        }
        active = standby;
        standby = Process::start(folder);
        standby.wait_for(&Line::Waits);
    }
    for mut process in [standby, active] {
        process.child.kill().unwrap();
        saved.extend(process.end().2);
    }
    (saved, times)
}

/// The child: a standby, which writes once it serves. Run directly, it does nothing.
#[test]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stop = Stop::new();
    let signal = stop.signal();
    // Ends with the process, whose last thread reads a pipe.
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().map_while(Result::ok).count();
        stop.stop();
    });
    runtime.block_on(async {
        let standby = Standby::open(Path::new(&folder), |_| ()).await.unwrap();
        // The test harness has begun a line.
        say("\nwaits");
        let Some(shard) = standby.lead(signal.clone()).await.unwrap() else { return };
        say("serves");
        let vault = shard.vault().clone();
        for number in 0..WORKERS {
            tokio::spawn(work(vault.clone(), format!("Writer{number}")));
        }
        let error = shard.serve(signal).await.err();
        say(&format!("ended {}", error.map(|error| error.to_string()).unwrap_or_default()));
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone.
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

/// Writes and reads until a request fails.
async fn work(vault: Vault, name: String) -> Result<(), NetError> {
    // Exists after the first takeover.
    let _ = vault.add_account(&name, &name, AccountFlags::User).await;
    let (connection, mut notices) = vault.connect().await?;
    tokio::spawn(async move { while notices.recv().await.is_some() {} });
    let known = connection.log_in(login(&name, &name)).await?.players;
    let player = match known.first() {
        Some(player) => player.id,
        None => connection.create_player(name, "male".to_owned()).await?.id,
    };
    connection.set_player(player).await?;
    loop {
        let node = connection.create(note("0")).await?;
        connection.add(player, node, player).await?;
        for number in 1..=5 {
            let began = now();
            connection.save(node, Uuid([1; 16]), titled(&number.to_string())).await?;
            say(&format!("saved {node} {number} {began}"));
            let began = now();
            connection.fetch(node).await?;
            say(&format!("read {began}"));
        }
    }
}
