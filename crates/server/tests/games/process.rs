//! A shard in its own process, which a test can kill. The shard's clock moves only when the test
//! advances it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use worldwire_net::Stop;
use worldwire_server::uru::{GameRandom, Shard, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;

use crate::child::{self, say};
use crate::world::{StillTime, settings};

const FOLDER: &str = "WORLDWIRE_GAMES_WORLD";
const FIXED: &str = "WORLDWIRE_GAMES_FIXED";
/// The ID of the first game if random numbers are fixed, as the model expects.
const FIRST_GAME: u32 = 7_000;
/// The number of turns that tasks get after each step of the clock: a timer wakes an age, which
/// wakes connections.
const TURNS: usize = 4;

/// The process.
pub(crate) struct ShardProcess {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) keys: KeyRing,
}

impl ShardProcess {
    /// Starts a shard in a prepared directory. Its random bytes can be fixed at zero.
    pub(crate) fn start(folder: TempDir, is_random_fixed: bool) -> Self {
        let mut command = child::command("process::shard");
        command.env(FOLDER, folder.path()).stdin(Stdio::piped()).stderr(Stdio::inherit());
        if is_random_fixed {
            command.env(FIXED, "1");
        }
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = output.by_ref().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("address ")?.parse().unwrap()));
        let address = address.expect("the shard starts");
        let keys = keys::load(&folder.path().join("keys.toml")).unwrap();
        Self { child, input, output, folder, address, keys }
    }

    /// Waits until the vault has handled all earlier requests.
    pub(crate) fn settle(&mut self) {
        self.ask("settle");
    }

    /// Lets the clock run, a millisecond at a time, because timers must not be late.
    pub(crate) fn advance(&mut self, milliseconds: u64) {
        self.ask(&format!("advance {milliseconds}"));
    }

    /// Lets the clock skip a period in which no timer is due.
    pub(crate) fn skip(&mut self, milliseconds: u64) {
        self.ask(&format!("skip {milliseconds}"));
    }

    /// Kills the process and returns its folder.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.folder
    }

    /// Stops the shard.
    pub(crate) fn stop(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }

    fn ask(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
        let answer = self.output.next().expect("the shard runs").unwrap();
        assert_eq!(answer, "done", "{command}");
    }
}

/// The child: serves a shard until its standard input ends. When run directly, it does nothing.
#[test]
fn shard() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let calls = AtomicUsize::new(0);
    let fixed = GameRandom::new(move |bytes: &mut [u8]| {
        bytes.fill(0);
        if calls.fetch_add(1, Ordering::Relaxed) == 0 {
            bytes.copy_from_slice(&FIRST_GAME.to_le_bytes());
        }
    });
    let random = if std::env::var_os(FIXED).is_some() { fixed } else { GameRandom::default() };
    let (commands, inbox) = mpsc::channel(1);
    // This ends with the process, whose last thread reads a pipe.
    std::thread::spawn(move || {
        let mut lines = std::io::stdin().lines().map_while(Result::ok);
        lines.try_for_each(|line| commands.blocking_send(line).ok())
    });
    StillTime::new().run(serve(Path::new(&folder), random, inbox));
}

async fn serve(folder: &Path, random: GameRandom, mut commands: mpsc::Receiver<String>) {
    let change = |config: &mut _| {
        settings(config);
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.status = String::new();
    };
    let shard = Shard::open_within(folder, PrimeKind::Plain, change, random).await.unwrap();
    let vault = shard.vault().clone();
    // The test harness has already started a line.
    say(&format!("\naddress {}", shard.address().unwrap()));
    let stop = Stop::new();
    let serving = tokio::spawn(shard.serve(stop.signal()));
    while let Some(command) = commands.recv().await {
        let (verb, number) = command.split_once(' ').unwrap_or((&command, "0"));
        let number = number.parse().unwrap();
        match verb {
            "settle" => drop(vault.accounts().await.unwrap()),
            "advance" => {
                for _ in 0..number {
                    step(1).await;
                }
            }
            "skip" => step(number).await,
            verb => panic!("{verb}"),
        }
        say("done");
    }
    // Connections may need a moment to end.
    tokio::time::resume();
    stop.stop();
    serving.await.unwrap().unwrap();
}

async fn step(milliseconds: u64) {
    tokio::time::advance(Duration::from_millis(milliseconds)).await;
    for _ in 0..TURNS {
        yield_now().await;
    }
}
