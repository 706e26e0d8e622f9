//! Two processes of an Uru shard or a login server, set up as described in docs/cluster.md.

#[path = "../../../server/tests/data/support/database.rs"]
mod database;
#[path = "../../../server/tests/data/support/gate.rs"]
mod gate;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use worldwire_server::store::lock::FolderLock;

use self::database::Database;
use self::gate::{Gate, Way};
use crate::client::command;

/// How long a test waits for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process, which is killed when the test ends, however it ends.
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
        command.args(["serve", folder.family]).arg(&folder.path).args(options);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line with this text. Returns all lines up to it.
    fn says(&self, text: &str) -> String {
        let mut said = String::new();
        while !said.contains(text) {
            let line = self.lines.recv_timeout(PATIENCE);
            said.push_str(&line.unwrap_or_else(|error| panic!("{text}: {error}: {said}")));
            said.push('\n');
        }
        said
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Stops the process as systemd would do.
    fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

/// A server's folder and the port of its status page.
struct Folder {
    family: &'static str,
    path: PathBuf,
    status: u16,
}

impl Folder {
    /// A folder for `uru`, with `shard.toml`, or for `ki`, with `ki.toml`.
    fn new(family: &'static str, path: PathBuf, url: &str) -> Self {
        // The ports stay free: the system does not reassign them so soon.
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (listen, status) = (port(), port());
        fs::create_dir(&path).unwrap();
        let settings = format!(
            "listen = \"127.0.0.1:{listen}\"\nstatus = \"127.0.0.1:{status}\"\ndatabase = \"{url}\"\n"
        );
        let file = if family == "uru" { "shard.toml" } else { "ki.toml" };
        fs::write(path.join(file), settings).unwrap();
        Self { family, path, status }
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

    /// Runs a command next to this folder and returns its output. The command must succeed.
    fn run(&self, words: &[&str]) -> String {
        let mut command = command(self.path.parent().unwrap(), words);
        let output = command.env("WORLDWIRE_PASSWORD", "secret").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command next to this folder. The command must fail with this error.
    fn refuses(&self, words: &[&str], error: &str) {
        let output = command(self.path.parent().unwrap(), words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(error), "{said}");
    }

    /// Checks the status page of a standby that has all batches.
    fn is_standby(&self) {
        assert_eq!(self.page("/health"), (503, "standby, 0 batches behind\n".to_owned()));
        let shown = r#"{"behind":0,"database":"ok","online":false,"role":"standby"}"#;
        assert_eq!(self.page("/status"), (200, shown.to_owned()));
        let metrics = self.page("/metrics").1;
        for line in ["active 0", "database_up 1", "standby_batches_behind 0"] {
            assert!(metrics.contains(&format!("\nworldwire_{line}\n")), "{metrics}");
        }
    }

    /// Checks the status page of the active process.
    fn is_active(&self) {
        assert_eq!(self.page("/health"), (200, "ok\n".to_owned()));
        assert!(self.page("/status").1.contains(r#""role":"active""#));
        assert!(self.page("/metrics").1.contains("\nworldwire_active 1\n"));
    }
}

#[test]
fn a_standby_serves_after_kills_and_stops() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let home = database.folder.path();
    let [one, two] = ["one", "two"].map(|name| Folder::new("uru", home.join(name), url));
    // Generating keys takes a long time.
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    fs::copy(keys, one.path.join("keys.toml")).unwrap();

    // The second machine has no keys yet.
    let refused = Process::start(&two, &["--standby"]);
    refused.says("keys.toml: file is missing; copy it from the active process's folder");
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
    one.is_active();
    two.is_standby();
    one.run(&["worldwire", "uru", "account", "add", "ann", "--server", "one"]);
    let refused =
        "two: this process is a standby; run the command where the shard is served: process ";
    two.refuses(&["worldwire", "uru", "account", "list", "--server", "two"], refused);
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
    let refused =
        "one: this process is a standby; run the command where the shard is served: process ";
    one.refuses(&["worldwire", "uru", "account", "list", "--server", "one"], refused);
    let start = Instant::now();
    standby.stop();
    again.says("Ctrl-C stops the shard");
    let time = start.elapsed();
    assert!(time < Duration::from_secs(3), "{time:?}");
    login("one", "set-player", &["Ann"]);

    // An operator moves the shard to the other process, and the first one becomes its standby.
    let lead = ["worldwire", "uru", "cluster", "lead", "--server", "one"];
    let said = command(one.path.parent().unwrap(), &lead).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("no standby is connected to the database"), "{said}");
    let drain = ["worldwire", "uru", "cluster", "drain", "front-1", "--server", "one"];
    let drained = command(one.path.parent().unwrap(), &drain).output().unwrap();
    let said = String::from_utf8(drained.stderr).unwrap();
    let wanted =
        "one: \"front-1\" is not a node of this shard; `worldwire uru cluster list` lists them";
    assert!(drained.status.code() == Some(1) && said.contains(wanted), "{said}");
    let other = Process::start(&two, &["--standby"]);
    other.says("another process serves the shard");
    let list = ["worldwire", "uru", "cluster", "list", "--server", "one"];
    let listed = one.run(&list);
    let lines: Vec<_> = listed.lines().collect();
    let version = env!("CARGO_PKG_VERSION");
    let wanted = format!(
        "  leader, front, age, vault  {version}  127.0.0.1  0 clients, 0 ages with 0 players  since "
    );
    // The name of a process is that of its machine.
    assert!(lines.len() == 2 && lines[0].contains(&wanted), "{listed}");
    assert!(lines[1].starts_with("process ") && lines[1].contains("  standby  since "), "{listed}");
    let start = Instant::now();
    one.run(&lead);
    other.says("Ctrl-C stops the shard");
    let time = start.elapsed();
    assert!(time < Duration::from_secs(3), "{time:?}");
    again.says("the shard was handed over; this process becomes a standby");
    // A command is using the folder at this moment.
    let lock = FolderLock::take(&one.path).unwrap();
    assert!(lock.is_some());
    sleep(Duration::from_millis(1_500));
    drop(lock);
    again.says("another process serves the shard");
    one.is_standby();
    two.is_active();
    login("two", "set-player", &["Ann"]);
    other.stop();
    again.says("Ctrl-C stops the shard");
    again.stop();
}

#[test]
fn a_shard_moves_from_sqlite_to_postgres() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let one = Folder::new("uru", database.folder.path().join("one"), url);
    let file = one.path.join("shard.toml");
    let settings = fs::read_to_string(&file).unwrap();
    let sqlite: Vec<_> = settings.lines().filter(|line| !line.starts_with("database")).collect();
    fs::write(&file, sqlite.join("\n")).unwrap();
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    fs::copy(keys, one.path.join("keys.toml")).unwrap();

    let shard = Process::start(&one, &[]);
    shard.says("Ctrl-C stops the shard");
    let uru =
        |words: &[&str]| one.run(&[&["worldwire", "uru"], words, &["--server", "one"]].concat());
    uru(&["account", "add", "ann"]);
    let login = |step, rest: &[&str]| {
        let words = ["worldwire", "client", "uru", "one", "--account", "ann", "login", "+", step];
        one.run(&[&words, rest].concat());
    };
    login("create-player", &["Ann", "female"]);
    let copy = ["worldwire", "uru", "vault", "copy", "--to", url, "--server", "one"];
    one.refuses(&copy, "one: in use by process ");
    shard.stop();
    let all = uru(&["vault", "export"]);
    let copied = one.run(&[&copy[..], &["--json"]].concat());
    assert!(copied.starts_with(r#"{"accounts":1,"nodes":"#), "{copied}");
    one.refuses(&copy, "the new database is not empty; nothing was copied");

    fs::write(&file, settings).unwrap();
    assert_eq!(uru(&["vault", "export"]), all);
    assert_eq!(uru(&["vault", "check"]), "0 problems\n");
    let shard = Process::start(&one, &["--standby"]);
    shard.says("Ctrl-C stops the shard");
    login("set-player", &["Ann"]);
    shard.stop();
}

#[test]
fn a_login_server_has_a_standby() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let home = database.folder.path();
    let [one, two] = ["one", "two"].map(|name| Folder::new("ki", home.join(name), url));
    // The second machine has no key yet.
    let refused = Process::start(&two, &["--standby"]);
    refused.says("server.key: file is missing; copy it from the active process's folder");
    let first = Process::start(&one, &[]);
    first.says("Ctrl-C stops the server");
    fs::copy(one.path.join("server.key"), two.path.join("server.key")).unwrap();
    let waiting = Process::start(&two, &["--standby"]);
    waiting.says("serves the login server without --standby");
    first.stop();
    waiting.says("Ctrl-C stops the server");
    waiting.stop();

    let active = Process::start(&one, &["--standby"]);
    active.says("Ctrl-C stops the server");
    let standby = Process::start(&two, &["--standby"]);
    standby.says("another process serves the login server");
    one.is_active();
    two.is_standby();
    // Makes sessions stale; a standby has none.
    standby.signal("-USR1");
    one.run(&["worldwire", "ki", "account", "add", "merle", "--server", "one"]);
    let refused =
        "two: the process in this directory is not serving the login server: it is a standby";
    two.refuses(&["worldwire", "ki", "account", "list", "--server", "two"], refused);
    let steps = |folder, steps: &str| {
        let words = ["worldwire", "client", "ki", folder, "--account", "merle"];
        one.run(&words.into_iter().chain(steps.split(' ')).collect::<Vec<_>>())
    };
    steps("one", "login + validate + create Merle Fire");

    let start = Instant::now();
    drop(active);
    standby.says("Ctrl-C stops the server");
    let time = start.elapsed();
    assert!(time < Duration::from_secs(3), "{time:?}");
    two.is_active();
    assert!(steps("two", "login + validate + list").contains("Merle"));

    let again = Process::start(&one, &["--standby"]);
    again.says("another process serves the login server");
    standby.stop();
    again.says("Ctrl-C stops the server");
    assert!(steps("one", "login + validate + list").contains("Merle"));
    again.stop();
}

/// How long a process may still appear active after its database has stopped answering: its lease
/// lasts 1 s, and the rest is a margin for busy machines.
const INACTIVE_WITHIN: Duration = Duration::from_millis(1_500);

/// Waits until the health of a process has this code. Returns its text.
fn wait_for_health(folder: &Folder, code: u16) -> String {
    let start = Instant::now();
    loop {
        let (found, text) = folder.page("/health");
        if found == code {
            return text;
        }
        assert!(start.elapsed() < PATIENCE, "{found} {text}");
    }
}

/// Two processes, each with its own connection to the database.
fn health_follows_the_lease(family: &'static str, served: &str) {
    let Some(database) = Database::postgres() else { return };
    let gates = [(); 2].map(|()| Gate::new(&database.socket()));
    let [one, two] = [0, 1].map(|at| {
        let (name, url) = (["one", "two"][at], gates[at].url(database.name(), "test"));
        Folder::new(family, database.folder.path().join(name), &url)
    });
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    for folder in [&one, &two] {
        fs::copy(&keys, folder.path.join("keys.toml")).unwrap();
    }
    let active = Process::start(&one, &["--no-status"]);
    active.says(served);
    active.stop();
    fs::copy(one.path.join("server.key"), two.path.join("server.key")).unwrap();

    let active = Process::start(&one, &["--standby"]);
    active.says(served);
    let standby = Process::start(&two, &["--standby"]);
    standby.says("another process serves");
    one.is_active();

    // The worst partition: connections stay open, but nothing gets through. Nobody sends requests.
    let start = Instant::now();
    gates[0].both(Way::Held);
    let text = wait_for_health(&one, 503);
    let time = start.elapsed();
    assert!(time < INACTIVE_WITHIN, "{time:?}");
    assert!(text.starts_with("inactive for "), "{text}");
    assert!(one.page("/metrics").1.contains("\nworldwire_active 0\n"));
    let status = one.page("/status").1;
    for part in [r#""role":"inactive""#, r#""online":false"#, r#""database":"failing""#] {
        assert!(status.contains(part), "{status}");
    }
    wait_for_health(&two, 200);
    // The other process is ready for clients.
    standby.says(served);
    two.is_active();
    assert_eq!(one.page("/health").0, 503);
    let said = active.says("cannot renew the lease on the database");
    assert!(!said.contains("sqlx"), "{said}");
    drop(active);

    // A plain outage, which is over before the process has to end.
    let start = Instant::now();
    gates[1].both(Way::Cut);
    wait_for_health(&two, 503);
    let time = start.elapsed();
    assert!(time < INACTIVE_WITHIN, "{time:?}");
    gates[1].both(Way::Open);
    wait_for_health(&two, 200);
    two.is_active();
    // One line reports the outage and one its end.
    let said = standby.says("the lease on the database is being renewed again");
    let problems =
        said.lines().filter(|line| [" WARN ", " ERROR "].iter().any(|l| line.contains(l)));
    let problems: Vec<_> = problems.collect();
    assert!(matches!(problems[..], [one] if one.contains("cannot renew the lease")), "{said}");
}

#[test]
fn the_health_of_a_shard_follows_its_lease() {
    health_follows_the_lease("uru", "Ctrl-C stops the shard");
}

#[test]
fn the_health_of_a_login_server_follows_its_lease() {
    health_follows_the_lease("ki", "Ctrl-C stops the server");
}

#[test]
fn a_restored_backup_needs_no_preparation() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let home = database.folder.path();
    let one = Folder::new("uru", home.join("one"), url);
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    fs::copy(keys, one.path.join("keys.toml")).unwrap();
    let first = Process::start(&one, &[]);
    first.says("Ctrl-C stops the shard");
    one.run(&["worldwire", "uru", "account", "add", "ann", "--server", "one"]);
    first.stop();
    let active = Process::start(&one, &["--standby"]);
    active.says("Ctrl-C stops the shard");
    let writer = database.sql("SELECT writer FROM shard");
    // The database is copied while the process keeps its lease.
    let restored = database.restore_dump();
    one.run(&["worldwire", "uru", "account", "add", "bea", "--server", "one"]);
    active.stop();

    let settings = fs::read_to_string(one.path.join("shard.toml")).unwrap();
    let restored = settings.replace(url, &restored);
    assert_ne!(restored, settings);
    fs::write(one.path.join("shard.toml"), restored).unwrap();
    let active = Process::start(&one, &["--standby"]);
    let said = active.says("the database was restored from a backup");
    assert!(said.contains(writer.trim()), "{said}");
    assert!(!said.contains("another process serves"), "{said}");
    active.says("Ctrl-C stops the shard");
    let accounts = one.run(&["worldwire", "uru", "account", "list", "--server", "one"]);
    assert!(accounts.contains("ann") && !accounts.contains("bea"), "{accounts}");
    let client = ["worldwire", "client", "uru", "one", "--account", "ann", "login"];
    one.run(&client);
    active.stop();
}

#[test]
fn a_standby_needs_a_database_that_it_can_share() {
    for (family, name) in [("uru", "shard"), ("ki", "login server")] {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        let output =
            command.args(["serve", family, "--standby"]).arg(home.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let wanted = format!("a standby needs the {name}'s PostgreSQL database");
        assert!(said.contains(&wanted), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
}
