//! Measures the cost of `worldwire proxy`: the latency that it adds, the messages per second that
//! pass through it, the CPU time that it spends on each, and the memory of an idle connection. Its
//! client and server are threads of this program, on the same cores, and speak TERA, encrypted on
//! both sides of the proxy.
//!
//! With Node.js, it also measures toolbox mods; with the argument `mods`, it measures nothing else.
//! `WORLDWIRE_BENCH_HOOK` names another hook to measure, such as `python3 hook.py`. Set
//! `WORLDWIRE_BENCH_HOOK_CHANGES` if it changes every `S_CHAT`.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_core::json::parse;
use worldwire_core::{Limits, Side};
use worldwire_dissect::{CodecOptions, Definitions, Keys, Line};
use worldwire_tera::connection::{Config, Connection, Unit};

/// The number of messages sent one at a time, and how many of them per second.
const PACED: usize = 10_000;
const RATE: u32 = 2_000;
/// The number of messages sent as fast as possible.
const FLOOD: usize = 300_000;
/// The number of messages sent through a hook as fast as possible.
const HOOKED: usize = 30_000;
/// The number of characters in a chat message, the same as in tera-toolbox's figures.
const CHAT_TEXT: usize = 72;
/// The number of addresses that the idle connections come from: a proxy accepts 32 connections from
/// each.
const ADDRESSES: u8 = 20;
const PER_ADDRESS: usize = 30;

/// Rules, and whether they change the messages.
const RULES: [(&str, &str, bool); 5] = [
    ("a rule for other messages", "when C_CHAT { drop }\n", false),
    ("a rule that tests a field", "when S_CHAT and channel == 4711 { drop }\n", false),
    ("a rule that counts each message", "when S_CHAT { count \"chats\" }\n", false),
    ("a rule that sets a text", "when S_CHAT { set message = \"Hello, too!\" }\n", true),
    ("a rule that sets a number", "when S_CHAT { set channel = 7 }\n", true),
];

/// What a mod does, its code, and whether it changes the messages.
const MODS: [(&str, &str, bool); 4] = [
    ("a mod for other messages", "mod.hook('C_CHAT', 1, () => true)", false),
    ("a mod with an event hook", "mod.hook('S_CHAT', 'event', () => {})", false),
    (
        "a mod that reads each message",
        "mod.hook('S_CHAT', 2, event => { void event.message; })",
        false,
    ),
    (
        "a mod that changes each message",
        "mod.hook('S_CHAT', 2, event => { event.channel = 7; return true; })",
        true,
    ),
];

/// Hooks of mods that change nothing, and the microseconds that tera-toolbox's dispatcher alone
/// spends on an `S_CHAT` of 179 bytes through one of them, and through ten (Node.js 20, two cores,
/// the fastest of nine rounds).
const HOOKS: [(&str, &str, [f64; 2]); 4] = [
    ("an event hook", "mod.hook('S_CHAT', 'event', () => { count++; })", [0.12, 0.38]),
    (
        "a raw hook",
        "mod.hook('S_CHAT', 'raw', (code, data) => { if (data[5] === 99) count++; })",
        [1.63, 14.9],
    ),
    (
        "a typed hook that reads",
        "mod.hook('S_CHAT', 2, event => { if (event.channel === 99) count++; })",
        [1.74, 10.1],
    ),
    (
        "a typed hook that returns true",
        "mod.hook('S_CHAT', 2, event => { if (event.channel === 99) count++; return true; })",
        [3.32, 32.0],
    ),
];
/// The number of messages in each round with mods, and the number of measured rounds.
const IN_ROUND: usize = 100_000;
const ROUNDS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a directory");
    let messages = Arc::new(Messages::read());
    if std::env::args().any(|argument| argument == "mods") {
        return mods(&messages, folder.path());
    }
    let direct = latencies(&messages, None);
    println!("direct: {}", shown(&direct));
    let through = |name: &str, words: &[&str]| {
        let delays = latencies(&messages, Some((folder.path(), words)));
        println!("{name}: {}, {}", shown(&delays), added(&direct, &delays));
    };
    through("proxy", &[]);
    through("proxy that records", &["--record", "evening.pcapng"]);
    println!("direct: {}", flood(&messages, FLOOD, None, false));
    let pass = |name: &str, count: usize, words: &[&str], changes: bool| {
        println!("{name}: {}", flood(&messages, count, Some((folder.path(), words)), changes));
    };
    pass("proxy", FLOOD, &[], false);
    for (name, rules, changes) in RULES {
        std::fs::write(folder.path().join("my.rules"), rules).expect("rules");
        pass(name, FLOOD, &["--rules", "my.rules"], changes);
    }
    pass("proxy that records", FLOOD, &["--record", "flood.pcapng"], false);
    if let Ok(hook) = std::env::var("WORLDWIRE_BENCH_HOOK") {
        through("hook", &["--hook", &hook]);
        let changes = std::env::var_os("WORLDWIRE_BENCH_HOOK_CHANGES").is_some();
        pass("hook", HOOKED, &["--hook", &hook], changes);
    }
    if Command::new("node").arg("--version").output().is_ok() {
        let mods = folder.path().join("mods");
        std::fs::create_dir(&mods).expect("a directory");
        for (name, hook, changes) in MODS {
            let code = format!("module.exports = function (mod) {{ {hook}; }};");
            std::fs::write(mods.join("one.js"), code).expect("a mod");
            pass(name, HOOKED, &["--mods", "mods"], changes);
        }
    }
    idle(&messages, folder.path());
}

/// Prints the cost of mods' hooks and of messages without hooks, with many messages in flight.
fn mods(messages: &Arc<Messages>, folder: &Path) {
    let path = folder.join("mods");
    std::fs::create_dir(&path).expect("a directory");
    let write = |hook: &str, count: usize| {
        let code = format!(
            "let count = 0; module.exports = function (mod) {{ \
             for (let i = 0; i < {count}; i++) {hook}; }};"
        );
        std::fs::write(path.join("one.js"), code).expect("a mod");
    };
    println!(
        "us of CPU time per message of {} bytes, fastest of {ROUNDS} rounds of {IN_ROUND}",
        messages.long_chat.len()
    );
    let [proxy, _] = fastest(messages, folder, &[]);
    println!("without mods: proxy {proxy:.2}");
    write("mod.hook('C_CHAT', 1, () => true)", 10);
    let [own, hooks] = fastest(messages, folder, &["--mods", "mods"]);
    println!("10 hooks on other messages: proxy {own:.2}, Node.js {hooks:.2}");
    for (name, hook, original) in HOOKS {
        for (count, original) in [1, 10].into_iter().zip(original) {
            write(hook, count);
            let [own, hooks] = fastest(messages, folder, &["--mods", "mods"]);
            let ratio = hooks / original;
            println!(
                "{name}, {count} of it: proxy {own:.2}, Node.js {hooks:.2}; tera-toolbox's \
                 dispatcher alone {original:.2}, {ratio:.2}x"
            );
        }
    }
}

/// The CPU time that a proxy and its hooks spend on each message in the fastest round, in
/// microseconds.
fn fastest(messages: &Arc<Messages>, folder: &Path, words: &[&str]) -> [f64; 2] {
    let (mut client, mut server, proxy) = connected(messages, Some((folder, words)));
    let proxy = proxy.expect("a proxy");
    client.expected.clone_from(&messages.long_chat);
    let mut fastest = [f64::INFINITY; 2];
    for round in 0..=ROUNDS {
        let before = proxy.cpu();
        pass(&mut client, &mut server, &messages.long_chat, IN_ROUND);
        // The first round warms up the compiler of Node.js.
        for (fastest, (after, before)) in
            fastest.iter_mut().zip(proxy.cpu().into_iter().zip(before)).filter(|_| round > 0)
        {
            let used = after.saturating_sub(before).as_secs_f64() * 1e6 / IN_ROUND as f64;
            *fastest = fastest.min(used);
        }
    }
    assert_eq!(client.same, (ROUNDS + 1) * IN_ROUND);
    fastest
}

/// Sends messages from the server to the client as fast as possible.
fn pass(client: &mut End, server: &mut End, message: &[u8], count: usize) {
    thread::scope(|scope| {
        scope.spawn(|| {
            for index in 1..=count {
                server.connection.sender().send(message).expect("room");
                if index % 16 == 0 || index == count {
                    server.flush();
                }
            }
        });
        let mut received = 0;
        while received < count {
            received += client.receive().expect("an open connection");
        }
    });
}

/// The encoded messages that are sent.
struct Messages {
    first: Vec<u8>,
    chat: Vec<u8>,
    long_chat: Vec<u8>,
}

fn samples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples"))
}

impl Messages {
    fn read() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["dissect", "tera-login.pcapng", "--data", "tera", "--json"]);
        let output = command.current_dir(samples()).output().expect("dissect");
        let lines = String::from_utf8(output.stdout).expect("text");
        let mut definitions = Definitions::built_in();
        let problems = definitions.add_folder(samples().join("tera")).expect("files");
        assert!(
            problems.is_some_and(|problems| problems.is_empty()),
            "the definitions have errors"
        );
        let encoded = |name: &str, text: Option<String>| {
            let line = lines.lines().find(|line| line.contains(&format!("\"tera.{name}\"")));
            let mut line = parse(line.expect("a message")).expect("JSON");
            if let Some(text) = text {
                let fields = line.get_mut("fields").expect("fields");
                *fields.get_mut("message").expect("a text") = text.into();
            }
            let line = Line::parse(&line).expect("a line").expect("a message");
            let (keys, limits) = (&Keys::none(), &Limits::DEFAULT);
            let options = CodecOptions { from: line.from, keys, definitions: &definitions, limits };
            line.encode(&options).expect("a message").expect("bytes")
        };
        Self {
            first: encoded("C_CHECK_VERSION", None),
            chat: encoded("S_CHAT", None),
            long_chat: encoded("S_CHAT", Some("x".repeat(CHAT_TEXT))),
        }
    }
}

/// A running `worldwire proxy tera`.
struct Proxy {
    child: Child,
    address: SocketAddr,
}

impl Proxy {
    fn start(folder: &Path, to: SocketAddr, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["proxy", "tera", "--listen", "127.0.0.1:0", "--to", &to.to_string()]);
        command.arg("--data").arg(samples().join("tera")).args(words).current_dir(folder);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("a proxy");
        let mut log = BufReader::new(child.stderr.take().expect("a log"));
        let mut said = String::new();
        while !said.contains("Ctrl-C") {
            assert!(log.read_line(&mut said).expect("a line") > 0, "{said}");
        }
        // Drain the log, so that the proxy never blocks on a full pipe.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let address = said.split("connect to ").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.expect("an address").parse().expect("an address");
        Self { child, address }
    }

    /// The proxy's memory in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        line.split_whitespace().nth(1).expect("kB").parse::<u64>().expect("kB") * 1024
    }

    /// The CPU time that the proxy and its hooks have used, in user and kernel mode.
    fn cpu(&self) -> [Duration; 2] {
        let proxy = u64::from(self.child.id());
        let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
        let all: Vec<_> = processes.filter_map(|it| usage(&it.path().join("stat"))).collect();
        let mut known = vec![proxy];
        while let Some((id, ..)) =
            all.iter().find(|(id, parent, _)| known.contains(parent) && !known.contains(id))
        {
            known.push(*id);
        }
        let of = |wanted: &dyn Fn(u64) -> bool| {
            let used = all.iter().filter(|(id, ..)| known.contains(id) && wanted(*id));
            used.map(|(.., time)| *time).sum()
        };
        [of(&|id| id == proxy), of(&|id| id != proxy)]
    }
}

/// The ID of a process, its parent's ID, and the CPU time of all its threads, which Linux counts in
/// ticks of 10 ms.
fn usage(stat: &Path) -> Option<(u64, u64, Duration)> {
    let stat = std::fs::read_to_string(stat).ok()?;
    let (head, fields) = stat.rsplit_once(')')?;
    let id = head.split_whitespace().next()?.parse().ok()?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [parent, user, system] =
        [1, 11, 12].map(|at| fields.get(at).and_then(|it| it.parse::<u64>().ok()));
    Some((id, parent?, Duration::from_millis((user? + system?) * 10)))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One end of a conversation.
struct End {
    connection: Connection,
    stream: TcpStream,
    peer: Side,
    began: Instant,
    buffer: Vec<u8>,
    /// The number of messages that arrived with exactly the expected bytes.
    same: usize,
    expected: Vec<u8>,
}

impl End {
    fn new(stream: TcpStream, side: Side) -> Self {
        stream.set_nodelay(true).expect("a socket");
        let config = Arc::new(Config { idle_time: None, ..Config::default() });
        let connection = match side {
            Side::Client => Connection::client(config, [[3; 128], [4; 128]], Duration::ZERO),
            Side::Server => Connection::server(config, [[1; 128], [2; 128]], Duration::ZERO),
        };
        let (peer, began, buffer) = (side.other(), Instant::now(), vec![0; 65_536]);
        let (same, expected) = (0, Vec::new());
        let mut end = Self { connection, stream, peer, began, buffer, same, expected };
        while !end.connection.is_established() {
            end.flush();
            end.receive();
        }
        end.flush();
        end
    }

    fn flush(&mut self) {
        while let Some(bytes) = self.connection.poll_transmit(self.peer) {
            self.stream.write_all(&bytes).expect("an open connection");
        }
    }

    fn send(&mut self, message: &[u8]) {
        self.connection.sender().send(message).expect("a message");
        self.flush();
    }

    /// Waits for bytes. Returns the number of messages that they completed; `None` at the end.
    fn receive(&mut self) -> Option<usize> {
        let count = match self.stream.read(&mut self.buffer) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        };
        let input = Input::Bytes(&self.buffer[..count]);
        self.connection.input(self.began.elapsed(), self.peer, input);
        let mut messages = 0;
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Received(it) => {
                    messages += usize::from(matches!(it.unit, Unit::Message { .. }));
                    self.same += usize::from(it.bytes == self.expected);
                }
                Event::Fault { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
        Some(messages)
    }
}

/// Connects a client to a server, through a proxy if there is one.
fn connected(messages: &Messages, proxy: Option<(&Path, &[&str])>) -> (End, End, Option<Proxy>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address");
    let proxy = proxy.map(|(folder, words)| Proxy::start(folder, to, words));
    let at = proxy.as_ref().map_or(to, |proxy| proxy.address);
    let server =
        thread::spawn(move || End::new(listener.accept().expect("a connection").0, Side::Server));
    let mut client = End::new(TcpStream::connect(at).expect("a connection"), Side::Client);
    let mut server = server.join().expect("a server");
    client.send(&messages.first);
    while server.receive() == Some(0) {}
    (client, server, proxy)
}

/// Measures how long each message takes from the server to the client. The results are sorted.
fn latencies(messages: &Arc<Messages>, proxy: Option<(&Path, &[&str])>) -> Vec<Duration> {
    let (mut client, mut server, _proxy) = connected(messages, proxy);
    let sent: Arc<Vec<AtomicU64>> = Arc::new((0..PACED).map(|_| AtomicU64::new(0)).collect());
    let began = Instant::now();
    let nanos = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let sender = {
        let (messages, sent) = (Arc::clone(messages), Arc::clone(&sent));
        thread::spawn(move || {
            for (index, at) in sent.iter().enumerate() {
                let due = Duration::from_secs(1) / RATE * u32::try_from(index).unwrap_or(u32::MAX);
                thread::sleep(due.saturating_sub(began.elapsed()));
                at.store(nanos(), Ordering::Release);
                server.send(&messages.chat);
            }
            server
        })
    };
    let mut delays = Vec::new();
    while delays.len() < PACED {
        let count = client.receive().expect("an open connection");
        let now = nanos();
        for _ in 0..count {
            let at = sent[delays.len()].load(Ordering::Acquire);
            delays.push(Duration::from_nanos(now.saturating_sub(at)));
        }
    }
    sender.join().expect("a server");
    // The first messages warm up caches and connections.
    delays.drain(..PACED / 10);
    delays.sort_unstable();
    delays
}

/// The number of messages per second that arrive if the server sends as fast as it can, and the CPU
/// time that the proxy spends on each. The proxy must change either all of them or none.
fn flood(
    messages: &Arc<Messages>,
    count: usize,
    proxy: Option<(&Path, &[&str])>,
    changes: bool,
) -> String {
    let (mut client, mut server, proxy) = connected(messages, proxy);
    client.expected.clone_from(&messages.chat);
    let cpu = || proxy.as_ref().map_or_else(Default::default, Proxy::cpu);
    let (before, began) = (cpu(), Instant::now());
    pass(&mut client, &mut server, &messages.chat, count);
    let rate = count as f64 / began.elapsed().as_secs_f64();
    let after = cpu();
    assert_eq!(client.same, if changes { 0 } else { count });
    let Some(_proxy) = proxy else { return format!("{rate:.0} messages/s") };
    let each = |index: usize| {
        let used = after[index].saturating_sub(before[index]);
        used.as_secs_f64() * 1e6 / count as f64
    };
    let (own, hooks) = (each(0), each(1));
    format!(
        "{rate:.0} messages/s, {own:.2} us of the proxy's CPU time for each, {hooks:.2} of its hooks'"
    )
}

/// The memory of idle connections.
fn idle(messages: &Messages, folder: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = Proxy::start(folder, listener.local_addr().expect("an address"), &[]);
    let count = usize::from(ADDRESSES) * PER_ADDRESS;
    let servers = thread::spawn(move || {
        let ends = (0..count).map(|_| {
            let mut end = End::new(listener.accept().expect("a connection").0, Side::Server);
            while end.receive() == Some(0) {}
            end
        });
        ends.collect::<Vec<_>>()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut clients = Vec::new();
    let mut before = 0;
    for address in 1..=ADDRESSES {
        for _ in 0..PER_ADDRESS {
            let stream = runtime.block_on(async {
                let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
                socket.bind(SocketAddr::from(([127, 0, 1, address], 0))).expect("an address");
                let stream = socket.connect(proxy.address).await.expect("a connection");
                stream.into_std().expect("a socket")
            });
            stream.set_nonblocking(false).expect("a socket");
            let mut end = End::new(stream, Side::Client);
            end.send(&messages.first);
            clients.push(end);
        }
        if address == 1 {
            before = proxy.memory();
        }
    }
    let servers = servers.join().expect("servers");
    let more = count - PER_ADDRESS;
    let each = proxy.memory().saturating_sub(before) / more as u64;
    println!(
        "idle connections: {each} bytes each, of {} ({} servers)",
        clients.len(),
        servers.len()
    );
}

fn shown(delays: &[Duration]) -> String {
    format!("p50 {:?}, p99 {:?}", percentile(delays, 50), percentile(delays, 99))
}

fn added(direct: &[Duration], delays: &[Duration]) -> String {
    let [p50, p99] =
        [50, 99].map(|it| percentile(delays, it).saturating_sub(percentile(direct, it)));
    format!("added p50 {p50:?}, p99 {p99:?}")
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[sorted.len() * percent / 100]
}
