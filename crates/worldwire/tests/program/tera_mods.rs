//! Toolbox mods on `worldwire proxy tera --mods`, between a client and a server of this program.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_core::json::{Json, parse};
use worldwire_tera::connection::{Config, Connection, Unit};

use crate::proxy::{Running, worldwire};

/// The build of the sample definitions, and opcodes of its messages.
const REVISION: u32 = 999_001;
const CHECK_VERSION: u16 = 19_900;
/// How long to wait for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn has_node() -> bool {
    let has = Command::new("node").arg("--version").output().is_ok();
    if !has {
        assert!(std::env::var_os("CI").is_none(), "node is not installed");
        eprintln!("SKIPPED: node is not installed");
    }
    has
}

fn sample_data() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/tera");
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// The opcode of a message in the sample map.
fn opcode(name: &str) -> u16 {
    let map = Path::new(&sample_data()).join(format!("map/protocol.{REVISION}.map"));
    let map = fs::read_to_string(map).unwrap();
    let line = map.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
    line.unwrap().trim().parse().unwrap()
}

/// A client's or server's end of a conversation.
pub(crate) struct Peer {
    connection: Connection,
    stream: TcpStream,
    peer: Side,
    began: Instant,
    pub(crate) received: Vec<Vec<u8>>,
}

impl Peer {
    fn new(stream: TcpStream, side: Side) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let config = Arc::new(Config { idle_time: None, ..Config::default() });
        let connection = match side {
            Side::Client => Connection::client(config, [[3; 128], [4; 128]], Duration::ZERO),
            Side::Server => Connection::server(config, [[1; 128], [2; 128]], Duration::ZERO),
        };
        let (peer, began) = (side.other(), Instant::now());
        let mut end = Self { connection, stream, peer, began, received: Vec::new() };
        while !end.connection.is_established() {
            end.flush();
            end.receive();
        }
        end.flush();
        end
    }

    fn flush(&mut self) {
        while let Some(bytes) = self.connection.poll_transmit(self.peer) {
            self.stream.write_all(&bytes).unwrap();
        }
    }

    /// Queues messages together and sends them.
    pub(crate) fn send<'m>(&mut self, messages: impl IntoIterator<Item = &'m [u8]>) {
        for message in messages {
            self.connection.sender().send(message).unwrap();
        }
        self.flush();
    }

    /// Receives the messages that have arrived.
    pub(crate) fn receive(&mut self) {
        let mut buffer = [0; 65_536];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => panic!("the connection has ended"),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let input = Input::Bytes(&buffer[..count]);
        self.connection.input(self.began.elapsed(), self.peer, input);
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Received(it) if matches!(it.unit, Unit::Message { .. }) => {
                    self.received.push(it.bytes.to_vec());
                }
                Event::Fault { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }

    /// Waits for the next message.
    fn next(&mut self) -> Vec<u8> {
        let began = Instant::now();
        while self.received.is_empty() {
            assert!(began.elapsed() < PATIENCE, "no message arrives");
            self.receive();
        }
        self.received.remove(0)
    }
}

/// A client and a server on both sides of a proxy.
pub(crate) struct Talk {
    pub(crate) client: Peer,
    pub(crate) server: Peer,
    pub(crate) proxy: Running,
}

impl Talk {
    /// Starts a proxy in a directory and connects. The client has reported its revision.
    pub(crate) fn begin(home: &Path, data: &str, revision: u32, more: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap().to_string();
        let words = ["proxy", "tera", "--to", &to, "--listen", "127.0.0.1:0", "--data", data];
        let proxy = Running::start(home, &[&words[..], &["--mods", "mods"], more].concat());
        let server = thread::spawn(move || Peer::new(listener.accept().unwrap().0, Side::Server));
        let client = Peer::new(TcpStream::connect(proxy.address()).unwrap(), Side::Client);
        let server = server.join().unwrap();
        let mut talk = Self { client, server, proxy };
        let first = [&revision.to_le_bytes()[..], &[0; 4]].concat();
        let entry = [&[8, 0, 0, 0, 0, 0, 0, 0][..], &first[..4]].concat();
        let check = message(CHECK_VERSION, &[&[1, 0, 8, 0], &entry[..]].concat());
        talk.client.send([&check[..]]);
        assert_eq!(talk.server.next(), check);
        talk
    }
}

fn message(opcode: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4).unwrap();
    [&length.to_le_bytes()[..], &opcode.to_le_bytes(), body].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// `C_CHAT.1`: the channel, and the text.
fn client_chat(text: &str) -> Vec<u8> {
    let head = [&10_u16.to_le_bytes()[..], &0_u32.to_le_bytes()].concat();
    message(opcode("C_CHAT"), &[head, utf16(text)].concat())
}

/// A directory with mods. `None` without Node.js.
fn home_with(mods: &[(&str, &str)]) -> Option<tempfile::TempDir> {
    has_node().then(|| {
        let home = tempfile::tempdir().unwrap();
        write_mods(home.path(), mods);
        home
    })
}

pub(crate) fn write_mods(home: &Path, mods: &[(&str, &str)]) {
    fs::create_dir_all(home.join("mods")).unwrap();
    for (name, text) in mods {
        fs::write(home.join("mods").join(name), text).unwrap();
    }
}

/// `S_CHAT.2`: the author and the text.
fn server_chat(author: &str, text: &str) -> Vec<u8> {
    let [author, text] = [author, text].map(utf16);
    // The header, two offsets, the channel, an ID and two flags.
    let at = 4 + 2 + 2 + 4 + 8 + 1 + 1;
    let second = at + u16::try_from(author.len()).unwrap();
    let offsets = [at.to_le_bytes(), second.to_le_bytes()].concat();
    message(opcode("S_CHAT"), &[offsets, vec![0; 14], author, text].concat())
}

#[test]
fn the_example_mods_change_and_log_the_chat() {
    let Some(home) = home_with(&[]) else { return };
    let home = home.path();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/mods");
    fs::copy(examples.join("chat-log.js"), home.join("mods/chat-log.js")).unwrap();
    copy(&examples.join("loud"), &home.join("mods/loud"));
    let mut talk = Talk::begin(home, &sample_data(), REVISION, &[]);
    let chats = ["one", "two", "three"].map(|text| server_chat("Elin", text));
    talk.server.send(chats.iter().map(|one| &one[..]));
    for text in ["ONE", "TWO", "THREE"] {
        assert_eq!(talk.client.next(), server_chat("Elin", text));
    }
    talk.proxy.hear("Elin: three");
    // A command is not forwarded.
    talk.client.send([&client_chat("!loud")[..], &client_chat("hello")]);
    assert_eq!(talk.server.next(), client_chat("hello"));
    talk.server.send([&server_chat("Elin", "four")[..]]);
    assert_eq!(talk.client.next(), server_chat("Elin", "four"));
    talk.proxy.stop();
    let settings = fs::read_to_string(home.join("mods/loud/module_settings.json")).unwrap();
    assert!(settings.contains("\"isOn\": false"), "{settings}");
}

#[test]
fn mods_that_fail_loop_leak_or_exit_end_nothing() {
    let mods = &[
        ("add.js", "module.exports = mod => { throw new Error('an arrow function'); };"),
        (
            "bad.js",
            "module.exports = function (mod) {
                    mod.hook('C_CHAT', 1, { order: -1 }, event => {
                        if (event.message === 'exit') process.exit(3);
                        if (event.message === 'loop') for (;;) ;
                        throw new Error('oops');
                    });
                    for (let i = 0; i < 1000; i++) setInterval(() => {}, 10);
                    setTimeout(() => { throw new Error('in a timer'); }, 1);
                    Promise.reject(new Error('nobody catches it'));
                };",
        ),
        (
            "good.js",
            "module.exports = function (mod) {
                    mod.hook('C_CHAT', 1, event => { event.message += '!'; return true; });
                };",
        ),
    ];
    let Some(home) = home_with(mods) else { return };
    let home = home.path();
    let mut talk = Talk::begin(home, &sample_data(), REVISION, &[]);
    let mut say = |text: &str| {
        talk.client.send([&client_chat(text)[..]]);
        talk.server.next()
    };
    assert_eq!(say("hello"), client_chat("hello!"));
    for fatal in ["exit", "loop"] {
        // The message continues unchanged, and so do later ones until the mods run again.
        assert_eq!(say(fatal), client_chat(fatal));
        let began = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            let passed = say("again");
            if passed == client_chat("again!") {
                break;
            }
            assert_eq!(passed, client_chat("again"));
            assert!(began.elapsed() < PATIENCE, "the mods are not restarted");
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }
    talk.proxy.hear("the mod bad.js, or a timer, has not returned for 3 s");
    assert!(talk.proxy.said.contains("oops"), "{}", talk.proxy.said);
    talk.proxy.stop();
}

#[test]
fn mods_that_exit_while_they_start_are_skipped_after_a_restart() {
    let mods = &[
        ("exits.js", "module.exports = function (mod) { process.exit(3); };"),
        (
            "good.js",
            "module.exports = function (mod) {
                    mod.hook('C_CHAT', 1, event => { event.message += '!'; return true; });
                };",
        ),
        ("leaves.js", "process.exit(0);"),
    ];
    let Some(home) = home_with(mods) else { return };
    let mut talk = Talk::begin(home.path(), &sample_data(), REVISION, &[]);
    let began = Instant::now();
    loop {
        talk.client.send([&client_chat("hello")[..]]);
        let passed = talk.server.next();
        if passed == client_chat("hello!") {
            break;
        }
        assert_eq!(passed, client_chat("hello"));
        assert!(began.elapsed() < PATIENCE, "the other mods do not run: {}", talk.proxy.said);
        thread::sleep(Duration::from_millis(100));
    }
    for (name, code) in [("leaves.js", 0), ("exits.js", 3)] {
        let ended = "has ended the program while it was starting";
        talk.proxy.hear(&format!("the mod {name} {ended} (exit code {code})"));
    }
    talk.proxy.stop();
}

#[test]
fn new_hooks_see_messages_that_wait_already() {
    let mods = &[(
        "late.js",
        "module.exports = function (mod) {
                const seen = [];
                mod.hookOnce('C_CHAT', 1, () => {
                    mod.hook('C_LOGIN_ARBITER', 'raw', (code, data) => { seen.push(data.length); });
                });
                mod.hook('C_CHAT', 1, event => { event.message = seen.join(' '); return true; });
            };",
    )];
    let Some(home) = home_with(mods) else { return };
    let home = home.path();
    let mut talk = Talk::begin(home, &sample_data(), REVISION, &[]);
    let other = |length: usize| message(opcode("C_LOGIN_ARBITER"), &vec![0; length]);
    let burst =
        [client_chat("1"), other(1), client_chat("2"), other(2), other(3), client_chat("3")];
    talk.client.send(burst.iter().map(|one| &one[..]));
    let chats =
        [client_chat(""), other(1), client_chat("5"), other(2), other(3), client_chat("5 6 7")];
    for expected in chats {
        assert_eq!(talk.server.next(), expected);
    }
    talk.proxy.stop();
}

#[test]
fn mods_are_checked() {
    let mods = &[
        ("fine.js", "module.exports = function (mod) { mod.hook('S_CHAT', 2, () => {}); };"),
        ("old.js", "module.exports = function (mod) { mod.hook('C_CHAT', 0, () => {}); };"),
    ];
    let Some(home) = home_with(mods) else { return };
    let home = home.path();
    let check = |more: &[&str]| {
        let data = sample_data();
        let words = ["mods", "check", "mods", "--data", &data];
        let output = worldwire(home, &[&words[..], more].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = check(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("fine.js: runs\n  hooks S_CHAT.2\n"), "{text}");
    assert!(text.contains("old.js: cannot run\n"), "{text}");
    assert!(text.contains("version 0 of C_CHAT is unknown; the data has version 1"), "{text}");
    let (code, lines) = check(&["--json", "--patch", "98.02"]);
    assert_eq!(code, Some(1), "{lines}");
    let lines: Vec<Json> = lines.lines().map(|line| parse(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["runs"], &lines[1]["runs"]), (&Json::Bool(true), &Json::Bool(false)));
    fs::remove_file(home.join("mods/old.js")).unwrap();
    assert_eq!(check(&["--revision", "999001"]).0, Some(0));
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::write(to.join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
    }
}
