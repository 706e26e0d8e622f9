//! The processes of a shard: those with the vault (the active one and its standby), fronts and age
//! nodes. Each reaches NATS and PostgreSQL through its own proxies.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use worldwire_server::store::{self, seal::ServerKey};
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_uru::message::AccountFlags;

use crate::bus::{self, KEY, ROOTS, SHARD, make_private};
use crate::checker::Mark;
use crate::database::Database;
use crate::gate::{Gate, Way};
use crate::nats::NatsServer;
use crate::{clock, late_commit, positions};

/// If set, logs are kept even if the test passes.
const LOGS: &str = "WORLDWIRE_FAULT_LOGS";
/// Makes processes log which ages they run, and since when.
const LOG_FILTER: &str = "info,worldwire_server::uru::cluster::tenure=debug";
/// Names another build of the program to test instead of this one.
const PROGRAM: &str = "WORLDWIRE_FAULT_PROGRAM";
/// How long sessions wait for their clients, in seconds.
pub(crate) const RECONNECT_SECONDS: u64 = 4;
/// How long after its end a process is started again, as systemd would do.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// How long a status page may take to answer.
const PAGE_PATIENCE: Duration = Duration::from_millis(500);

/// How long everything may take to recover.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// How often conditions are checked.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process and its environment.
struct Node {
    index: usize,
    name: &'static str,
    does: Does,
    folder: PathBuf,
    status: SocketAddr,
    nats: Gate,
    postgres: Gate,
    state: Mutex<NodeState>,
}

#[derive(Default)]
struct NodeState {
    child: Option<Child>,
    /// When the process ended.
    ended: Option<Instant>,
    is_stopped: bool,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Vault,
    Front,
    Ages,
}

/// The processes, their bus and their database.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    pub(crate) nats: Mutex<NatsServer>,
    pub(crate) database: Database,
    /// The port of all processes.
    pub(crate) port: u16,
    folder: Option<TempDir>,
}

impl Cluster {
    /// Creates the database with these accounts, whose passwords are their names, and starts
    /// processes with these names, which begin with `front` or `age` unless they have the vault.
    /// Without PostgreSQL or NATS, reports this and returns `None`.
    pub(crate) fn start(
        runtime: &Runtime,
        accounts: &[String],
        names: &[&'static str],
        ages: &[&str],
    ) -> Option<Arc<Self>> {
        let folder = tempfile::Builder::new().prefix("cluster").tempdir().unwrap();
        let nats = bus::start(folder.path(), names)?;
        let database = Database::postgres()?;
        runtime.block_on(async {
            let vault = open_vault(&database).await;
            for account in accounts {
                vault.add_account(account, account, AccountFlags::User).await.unwrap();
            }
            vault.close().await;
        });
        database.sql(positions::RECORD);
        database.sql(late_commit::HOLD);

        let port = common_port(names.len());
        let nodes = names.iter().enumerate().map(|(index, name)| {
            let [nats, postgres] = [Gate::to_port(nats.port), Gate::new(&database.socket())];
            let free = TcpListener::bind((address(index), 0)).unwrap();
            let status = free.local_addr().unwrap();
            let node = Node {
                index,
                name,
                does: match name.split('-').next() {
                    Some("front") => Does::Front,
                    Some("age") => Does::Ages,
                    _ => Does::Vault,
                },
                folder: folder.path().join(name),
                status,
                nats,
                postgres,
                state: Mutex::default(),
            };
            node.prepare(port, &database, ages);
            node
        });
        let nodes = nodes.collect();
        let (nats, folder) = (Mutex::new(nats), Some(folder));
        let cluster = Arc::new(Self { nodes, nats, database, port, folder });
        for node in &cluster.nodes {
            node.run();
        }
        Some(cluster)
    }

    /// Waits for a condition.
    pub(crate) fn wait_until(&self, otherwise: &str, is_met: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_met() {
            assert!(start.elapsed() < PATIENCE, "{otherwise}\n{}", self.logs());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Restarts processes that have ended.
    pub(crate) fn supervise(&self) {
        for node in &self.nodes {
            node.supervise();
        }
    }

    /// All processes, by index.
    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    /// The name of a process, for the bus and the database.
    pub(crate) fn name(&self, node: usize) -> &'static str {
        self.nodes[node].name
    }

    fn which_do(&self, does: Does) -> impl Iterator<Item = usize> {
        self.nodes.iter().filter(move |node| node.does == does).map(|node| node.index)
    }

    /// The process that has the vault, according to its status page.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.which_do(Does::Vault).find(|node| self.is_healthy(*node))
    }

    /// The process that could take over the vault, but does not have it.
    pub(crate) fn standby(&self) -> Option<usize> {
        let leader = self.leader()?;
        self.which_do(Does::Vault).find(|node| *node != leader)
    }

    /// Whether one process leads, the other one follows, and all others have found the leader.
    pub(crate) fn is_complete(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let follows = |node: usize| {
            let page = self.nodes[node].page("/health");
            page.is_some_and(|(_, text)| text.starts_with("standby"))
        };
        let mut followers = self.which_do(Does::Vault).filter(|node| *node != leader);
        let mut others = self.which_do(Does::Front).chain(self.which_do(Does::Ages));
        followers.all(follows) && others.all(|node| self.is_healthy(node))
    }

    fn is_healthy(&self, node: usize) -> bool {
        self.nodes[node].page("/health").is_some_and(|(code, _)| code == 200)
    }

    /// The value of a metric of a process.
    pub(crate) fn metric(&self, node: usize, name: &str) -> u64 {
        // On a busy machine, a single attempt may take too long.
        let page = (0..10).find_map(|_| self.nodes[node].page("/metrics"));
        let (_, text) = page.expect("a process serves its page");
        let values = text.lines().filter_map(|line| line.strip_prefix("worldwire_"));
        let value = values.filter_map(|line| line.split_once(' ')).find(|(of, _)| *of == name);
        value.unwrap_or_else(|| panic!("no metric {name}:\n{text}")).1.parse().unwrap()
    }

    /// Whether a process runs ages now.
    pub(crate) fn runs_ages(&self, node: usize) -> bool {
        self.metric(node, "ages") > 0
    }

    /// The processor time that a process has used, from `/proc/PID/stat`.
    pub(crate) fn processor_time(&self, node: usize) -> Duration {
        processor_time(self.process(node))
    }

    /// The ID of a running process.
    pub(crate) fn process(&self, node: usize) -> u32 {
        self.nodes[node].state().child.as_ref().expect("the process runs").id()
    }

    /// The log of each process, with its address.
    pub(crate) fn all_logs(&self) -> Vec<(Ipv4Addr, String)> {
        let log = |node: &Node| (address(node.index), fs::read_to_string(node.log()).unwrap());
        self.nodes.iter().map(log).collect()
    }

    pub(crate) fn kill(&self, node: usize) {
        let mut state = self.nodes[node].state();
        if let Some(child) = &mut state.child {
            child.kill().unwrap();
        }
    }

    /// Sends SIGSTOP or SIGCONT.
    pub(crate) fn pause(&self, node: usize, is_stopped: bool) {
        let mut state = self.nodes[node].state();
        state.is_stopped = is_stopped;
        if let Some(child) = &state.child {
            signal(child, if is_stopped { "-STOP" } else { "-CONT" });
        }
    }

    /// Changes the connection from a process to the bus, to the database, or to both.
    pub(crate) fn way(&self, node: usize, nats: Option<Way>, postgres: Option<Way>) {
        let node = &self.nodes[node];
        for (gate, way) in [(&node.nats, nats), (&node.postgres, postgres)] {
            if let Some(way) = way {
                gate.both(way);
            }
        }
    }

    /// What went wrong, for a message: the last lines of each log.
    pub(crate) fn logs(&self) -> String {
        let last = |node: &Node| {
            let log = fs::read_to_string(node.log()).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(12).collect();
            let page = node.page("/health");
            let lines: Vec<_> = lines.into_iter().rev().collect();
            format!("-- {}, {page:?}\n{}\n", node.name, lines.join("\n"))
        };
        self.nodes.iter().map(last).collect()
    }

    /// Keeps the processes' folders, so that their logs can be inspected.
    fn keep(&mut self) {
        if let Some(folder) = self.folder.take() {
            eprintln!("the logs of all processes are in {}", folder.keep().display());
        }
    }

    /// Stops all processes as systemd would do.
    pub(crate) fn stop(&self) {
        for node in self.nodes.iter().rev() {
            let child = node.state().child.take();
            let Some(mut child) = child else { continue };
            signal(&child, "-TERM");
            child.wait().unwrap();
            node.note(&Mark::Ended(clock::now()));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &self.nodes {
            if let Some(mut child) = node.state().child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        if std::thread::panicking() || std::env::var_os(LOGS).is_some() {
            self.keep();
        }
    }
}

impl Node {
    fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Writes a mark to the log and returns the log.
    fn note(&self, mark: &Mark) -> File {
        let mut log: File = OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        log.write_all(format!("{mark}\n").as_bytes()).unwrap();
        log
    }

    /// Prepares the process's folder.
    fn prepare(&self, port: u16, database: &Database, ages: &[&str]) {
        let (address, status, nats) = (address(self.index), self.status, self.nats.port());
        let roles = match self.does {
            Does::Vault => "",
            Does::Front => "roles = [\"front\"]\n",
            Does::Ages => "roles = [\"age\"]\n",
        };
        let url = match self.does {
            Does::Vault => self.postgres.url(database.name(), self.name),
            Does::Front | Does::Ages => String::new(),
        };
        // Clients change each other's nodes, and reconnect before their old sessions expire.
        let settings = format!(
            "listen = \"{address}:{port}\"\npublic_address = \"{address}\"\nstatus = \"{status}\"\n\
            database = \"{url}\"\n\
            [limits]\nconnections_per_address = 1000\nnodes_per_player = 0\n\
            [auth]\nreconnect_seconds = {RECONNECT_SECONDS}\nfailed_logins = 0\n\
            kick_on_duplicate = true\nstrict_vault = false\n\
            [cluster]\nbus = [\"tls://127.0.0.1:{nats}\"]\nname = \"{SHARD}\"\nnode = \"{}\"\n{roles}\
            bus_key = \"{KEY}\"\nbus_ca = \"{ROOTS}\"\n",
            self.name,
        );
        fs::write(self.folder.join("shard.toml"), settings).unwrap();
        // Generating keys takes a long time.
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
        fs::copy(keys, self.folder.join("keys.toml")).unwrap();
        let data = self.folder.join("data");
        for folder in ["ages", "secure/SDL"] {
            fs::create_dir_all(data.join(folder)).unwrap();
        }
        for (prefix, age) in (120..).zip(ages) {
            let file = format!("MaxCapacity=50\nLingerTime=60\nSequencePrefix={prefix}\n");
            fs::write(data.join(format!("ages/{age}.age")), file).unwrap();
            let states = format!("STATEDESC {age} {{ VERSION 1 VAR BOOL open[1] }}\n");
            fs::write(data.join(format!("secure/SDL/{age}.sdl")), states).unwrap();
        }
        if self.does == Does::Vault {
            let key = self.folder.join("server.key");
            fs::write(&key, format!("{}\n", "07".repeat(32))).unwrap();
            make_private(&key);
        }
    }

    fn run(&self) {
        let program = std::env::var_os(PROGRAM);
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_worldwire").into());
        let mut command = Command::new(program);
        command.args(["serve", "uru"]).arg(&self.folder).args(["--log", LOG_FILTER]);
        if self.does == Does::Vault {
            command.arg("--standby");
        }
        let log = self.note(&Mark::Started(clock::now()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut state = self.state();
        *state = NodeState { child: Some(command.spawn().unwrap()), ..NodeState::default() };
    }

    fn supervise(&self) {
        let mut state = self.state();
        let Some(child) = &mut state.child else { return };
        if child.try_wait().unwrap().is_none() {
            return;
        }
        let ended = *state.ended.get_or_insert_with(|| {
            self.note(&Mark::Ended(clock::now()));
            Instant::now()
        });
        drop(state);
        if ended.elapsed() >= RESTART_AFTER {
            self.run();
        }
    }

    /// The code and the text of a page, if it is served.
    fn page(&self, path: &str) -> Option<(u16, String)> {
        if self.state().is_stopped {
            return None;
        }
        let mut stream = TcpStream::connect_timeout(&self.status, PAGE_PATIENCE).ok()?;
        stream.set_read_timeout(Some(PAGE_PATIENCE)).ok()?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, text) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, text.trim_end().to_owned()))
    }
}

/// The address of a process: clients use one port for everything, so each process has its own
/// address. Outgoing connections use ports of 127.0.0.1, so one of them could otherwise occupy the
/// port when a process needs it again.
pub(crate) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(node).unwrap())
}

/// A port that is free on the addresses of all processes.
fn common_port(processes: usize) -> u16 {
    loop {
        let first = TcpListener::bind((address(0), 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        if (1..processes).all(|node| TcpListener::bind((address(node), port)).is_ok()) {
            return port;
        }
    }
}

/// The processor time that a process has used.
pub(crate) fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the program, which may have spaces, is in parentheses.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|field| fields[*field].parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Opens the vault in the database without a server.
pub(crate) async fn open_vault(database: &Database) -> Vault {
    let file = database.folder.path().join("unused.sqlite");
    let store = store::open(file, database.url.as_deref()).await.unwrap();
    let key = ServerKey::from_bytes(&[7; 32]);
    Vault::open(store, key, VaultConfig::default()).await.unwrap()
}
