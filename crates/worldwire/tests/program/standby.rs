//! Two processes of an Uru shard, as docs/cluster.md sets them up.

#[path = "../../../server/tests/data/support/database.rs"]
mod database;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use self::database::Database;
use crate::client::command;

/// How long a test waits for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process, which is killed however the test ends.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(folder: &Folder, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["serve", "uru"]).arg(&folder.path).args(options);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line with this text.
    fn says(&self, text: &str) {
        let mut said = String::new();
        while !said.contains(text) {
            let line = self.lines.recv_timeout(PATIENCE);
            said.push_str(&line.unwrap_or_else(|error| panic!("{text}: {error}: {said}")));
            said.push('\n');
        }
    }

    /// Stops the process as systemd does.
    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

/// A shard's folder, and the port of its status page.
struct Folder {
    path: PathBuf,
    status: u16,
}

impl Folder {
    fn new(path: PathBuf, url: &str) -> Self {
        // The ports stay free: the system does not reassign them so soon.
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (listen, status) = (port(), port());
        fs::create_dir(&path).unwrap();
        let settings = format!(
            "listen = \"127.0.0.1:{listen}\"\nstatus = \"127.0.0.1:{status}\"\ndatabase = \"{url}\"\n"
        );
        fs::write(path.join("shard.toml"), settings).unwrap();
        Self { path, status }
    }

    /// The answer of the status page: its code and its text.
    fn page(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.status)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), text.to_owned())
    }

    /// Runs a command with this folder as the shard, which must succeed.
    fn run(&self, words: &[&str]) {
        let mut command = command(self.path.parent().unwrap(), words);
        let output = command.env("WORLDWIRE_PASSWORD", "secret").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_standby_serves_after_kills_and_stops() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let home = database.folder.path();
    let [one, two] = ["one", "two"].map(|name| Folder::new(home.join(name), url));
    // Generating keys takes long.
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    fs::copy(keys, one.path.join("keys.toml")).unwrap();

    // The second machine has no keys yet.
    let refused = Process::start(&two, &["--standby"]);
    refused.says("keys.toml: file is missing; copy it from the folder of the process");
    let first = Process::start(&one, &[]);
    first.says("Ctrl-C stops the shard");
    assert!(one.page("/status").1.contains(r#""role":"active""#));
    for file in ["keys.toml", "server.key"] {
        fs::copy(one.path.join(file), two.path.join(file)).unwrap();
    }
    // A process without --standby keeps no lease, so it must end first.
    let waiting = Process::start(&two, &["--standby"]);
    waiting.says("serves the shard without --standby");
    first.stop();
    waiting.says("Ctrl-C stops the shard");
    waiting.stop();

    let active = Process::start(&one, &["--standby"]);
    active.says("Ctrl-C stops the shard");
    let standby = Process::start(&two, &["--standby"]);
    standby.says("another process serves the shard");
    assert_eq!(one.page("/health"), (200, "ok\n".to_owned()));
    assert_eq!(two.page("/health"), (503, "standby, 0 batches behind\n".to_owned()));
    let shown = r#"{"behind":0,"database":"ok","online":false,"role":"standby"}"#;
    assert_eq!(two.page("/status"), (200, shown.to_owned()));
    assert!(one.page("/metrics").1.contains("\nworldwire_active 1\n"));
    let metrics = two.page("/metrics").1;
    for line in ["active 0", "database_up 1", "standby_batches_behind 0"] {
        assert!(metrics.contains(&format!("\nworldwire_{line}\n")), "{metrics}");
    }
    one.run(&["worldwire", "uru", "account", "add", "ann", "--server", "one"]);
    let words = ["worldwire", "uru", "account", "list", "--server", "two"];
    let output = command(home, &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let refused = "two: the process here does not serve the shard now: it is a standby";
    assert!(output.status.code() == Some(2) && said.contains(refused), "{said}");
    let client = ["worldwire", "client", "uru"];
    let login = |folder, step, rest: &[&str]| {
        let words = [&client[..], &[folder, "--account", "ann", "login", "+", step], rest];
        one.run(&words.concat());
    };
    login("one", "create-player", &["Ann", "female"]);

    let start = Instant::now();
    drop(active);
    standby.says("Ctrl-C stops the shard");
    let time = start.elapsed();
    assert!(time < Duration::from_secs(3), "{time:?}");
    login("two", "set-player", &["Ann"]);
    assert_eq!(two.page("/health"), (200, "ok\n".to_owned()));

    let again = Process::start(&one, &["--standby"]);
    again.says("another process serves the shard");
    let start = Instant::now();
    standby.stop();
    again.says("Ctrl-C stops the shard");
    let time = start.elapsed();
    assert!(time < Duration::from_secs(3), "{time:?}");
    login("one", "set-player", &["Ann"]);
    again.stop();
}

#[test]
fn a_standby_needs_a_database_that_it_can_share() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = command.args(["serve", "uru", "--standby"]).arg(home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a standby needs the shard's PostgreSQL database"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}
