//! Example mods on `worldwire proxy tera --mods`: they must behave as in the original program, with
//! which the scenarios were recorded. `WORLDWIRE_TOOLBOX_MODS` is the directory of the mods and
//! scenarios, and `WORLDWIRE_TERA_DATA` that of the definitions; without them, nothing is tested.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use worldwire_core::json::{Json, parse};
use worldwire_core::value::{parse_hex, push_hex};

use crate::tera_mods::{PATIENCE, Talk, copy, has_node, write_mods};

/// A mod that loads and unloads others on request.
const CONTROL: &str = "const net = require('net'), fs = require('fs'), path = require('path');
    exports.GlobalMod = class {
        constructor({ manager, rootFolder }) {
            const server = net.createServer(socket => socket.on('data', line => {
                const [action, name] = line.toString().trim().split(' ');
                socket.write(`${manager[action](name)}\\n`);
            }));
            server.listen(0, '127.0.0.1', () => {
                fs.writeFileSync(path.join(rootFolder, 'port'), `${server.address().port}\\n`);
            });
        }
    };";

#[test]
fn example_mods_do_what_they_do_in_the_original() {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(examples), Some(data)) =
        (folder("WORLDWIRE_TOOLBOX_MODS"), folder("WORLDWIRE_TERA_DATA"))
    else {
        return;
    };
    if !has_node() {
        return;
    }
    for name in ["tracer", "chat-helper"] {
        let scenario = Scenario::read(&examples, name);
        let got = scenario.play(&data, Pace::Stepwise);
        scenario.check(&got);
        scenario.play(&data, Pace::Bursts);
    }
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// One step at a time.
    Stepwise,
    /// All consecutive steps of one side together.
    Bursts,
}

/// A mod, the messages that both sides send, and those that they must receive.
struct Scenario {
    examples: PathBuf,
    name: &'static str,
    json: Json,
}

/// Messages in hexadecimal, to the client and to the server.
type Sides = [Vec<String>; 2];

impl Scenario {
    fn read(examples: &Path, name: &'static str) -> Self {
        let text = fs::read_to_string(Self::file(examples, name)).unwrap();
        Self { examples: examples.to_owned(), name, json: parse(&text).unwrap() }
    }

    fn file(examples: &Path, name: &str) -> PathBuf {
        examples.join("scenarios").join(format!("{name}.json"))
    }

    /// Installs the mods.
    fn install(&self, home: &Path) {
        let Self { examples, name, json } = self;
        copy(&examples.join("mods").join(name), &home.join("mods").join(name));
        write_mods(
            home,
            &[
                (".command.json", &json["settings"]["command"].to_string()),
                ("worldwire-mods.json", &json["world"].to_string()),
            ],
        );
        fs::create_dir(home.join("mods/control")).unwrap();
        fs::write(home.join("mods/control/index.js"), CONTROL).unwrap();
        fs::write(home.join("mods/control/module.json"), r#"{"name": "control"}"#).unwrap();
    }

    /// Plays the scenario. Returns the messages that each step delivered.
    fn play(&self, data: &Path, pace: Pace) -> Vec<Sides> {
        let Self { name, json, .. } = self;
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        self.install(home);
        let map = json["world"]["map"].as_str().unwrap().parse().unwrap();
        let mut talk = Talk::begin(home, data.to_str().unwrap(), map, &[]);
        let mut manager = Manager::connect(&home.join("mods/control/port"));
        // The scenarios begin after the client's first message.
        manager.run("unload", name);
        if let Some(settings) = json["settings"].get(name) {
            let file = home.join("mods").join(name).join("config.json");
            fs::write(file, settings.to_string()).unwrap();
        }
        manager.run("load", name);
        let settle = Duration::from_millis(json["settleMs"].as_u64().unwrap());
        let mut got = Vec::new();
        for steps in groups(json["steps"].as_array().unwrap(), pace) {
            let messages: Vec<Vec<u8>> = steps.iter().flat_map(messages).collect();
            let messages = messages.iter().map(|one| &one[..]);
            match steps[0].get("from").and_then(Json::as_str) {
                Some("client") => talk.client.send(messages),
                Some(_) => talk.server.send(messages),
                None => {}
            }
            for action in ["reload", "unload"] {
                if let Some(of) = steps[0].get(action).and_then(Json::as_str) {
                    manager.run(action, of);
                }
            }
            let expected: Sides = ["toClient", "toServer"].map(|side| {
                let expected = steps.iter().flat_map(|step| step["expect"][side].as_array());
                expected.flatten().map(|one| one["hex"].as_str().unwrap().to_owned()).collect()
            });
            let wait = steps[0].get("wait").and_then(Json::as_u64).unwrap_or(0);
            let received = receive(&mut talk, &expected, Duration::from_millis(wait), settle);
            let step = steps[0].get("name").unwrap_or(&Json::Null);
            assert_eq!(received, expected, "{name}, {pace:?}, {step}");
            got.push(received);
        }
        talk.proxy.stop();
        got
    }

    /// Compares with the program from which the scenarios were recorded.
    fn check(&self, got: &[Sides]) {
        let list = |side: &[String]| -> Json { side.iter().map(|one| &**one).collect() };
        let steps: Json = got
            .iter()
            .map(|[client, server]| {
                let sides = [("toClient", list(client)), ("toServer", list(server))];
                sides.into_iter().map(|(key, side)| (key.to_owned(), side)).collect::<Json>()
            })
            .collect();
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("got.json");
        fs::write(&file, format!("{{\"steps\":{steps}}}")).unwrap();
        let mut check = Command::new("python3");
        check.arg(self.examples.join("check.py"));
        check.arg(Self::file(&self.examples, self.name)).arg(file);
        let output = check.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The connection to the mod that manages the others.
struct Manager {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Manager {
    fn connect(port: &Path) -> Self {
        let began = Instant::now();
        let port = loop {
            match fs::read_to_string(port) {
                Ok(port) if port.ends_with('\n') => break port,
                _ => assert!(began.elapsed() < PATIENCE, "the mod is not running"),
            }
        };
        let stream = TcpStream::connect(format!("127.0.0.1:{}", port.trim())).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Self { stream, answers }
    }

    fn run(&mut self, action: &str, name: &str) {
        // Sent in a single write, which the mod treats as one line.
        self.stream.write_all(format!("{action} {name}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "true\n", "{action} {name}");
    }
}

/// The steps that are played together.
fn groups(steps: &[Json], pace: Pace) -> impl Iterator<Item = &[Json]> {
    steps.chunk_by(move |one, next| {
        let side = one.get("from").and_then(Json::as_str);
        pace == Pace::Bursts && side.is_some() && side == next.get("from").and_then(Json::as_str)
    })
}

/// The messages of a step.
fn messages(step: &Json) -> Vec<Vec<u8>> {
    let own = step.get("hex").map(|_| step);
    let burst = step.get("burst").and_then(Json::as_array).unwrap_or_default();
    burst.iter().chain(own).map(|one| parse_hex(one["hex"].as_str().unwrap()).unwrap()).collect()
}

/// Collects the messages that both sides receive, for at least this time, and until none are
/// missing and no more arrive.
fn receive(talk: &mut Talk, expected: &Sides, wait: Duration, settle: Duration) -> Sides {
    let wanted: usize = expected.iter().map(Vec::len).sum();
    let (began, mut quiet) = (Instant::now(), Instant::now());
    let mut before = 0;
    loop {
        talk.client.receive();
        talk.server.receive();
        let count = talk.client.received.len() + talk.server.received.len();
        if count != before || count < wanted {
            quiet = Instant::now();
        }
        before = count;
        let is_over = began.elapsed() > wait && quiet.elapsed() > settle;
        if is_over || began.elapsed() > PATIENCE {
            break;
        }
    }
    [&mut talk.client, &mut talk.server].map(|side| {
        let received = std::mem::take(&mut side.received);
        let digits = |one: Vec<u8>| {
            let mut text = String::new();
            push_hex(&mut text, &one);
            text
        };
        received.into_iter().map(digits).collect()
    })
}
