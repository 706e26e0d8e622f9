//! `worldwire proxy` between the project's servers and clients, started as a user would start them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use worldwire_core::json::{Json, parse};

use crate::client::words;

/// A server or proxy, which is killed when the test ends, however it ends. The pipe of its log
/// stays open, so that it can keep writing.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) said: String,
    log: Option<BufReader<ChildStderr>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = worldwire(folder, words);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = Some(BufReader::new(child.stderr.take().unwrap()));
        let mut running = Self { child, said: String::new(), log };
        running.hear("Ctrl-C");
        running
    }

    /// Waits for this text in the process's log.
    pub(crate) fn hear(&mut self, wanted: &str) {
        while !self.said.contains(wanted) {
            let log = self.log.as_mut().expect("it is still read");
            assert!(log.read_line(&mut self.said).unwrap() > 0, "{}", self.said);
        }
    }

    /// Reads the rest of the log in the background, because a full pipe would block the process.
    pub(crate) fn ignore_log(&mut self) {
        if let Some(mut log) = self.log.take() {
            thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        }
    }

    /// The address for clients.
    pub(crate) fn address(&self) -> String {
        let rest = self.said.split("connect to ").nth(1).unwrap();
        rest.chars().take_while(|it| it.is_ascii_digit() || ".:".contains(*it)).collect()
    }

    /// Stops the process as an operator would, and waits for it to end.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

pub(crate) fn worldwire(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(words).env("WORLDWIRE_PASSWORD", "hunter2");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The output of a command that must succeed.
pub(crate) fn printed(folder: &Path, words: &[&str]) -> String {
    let output = worldwire(folder, words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A login server with the account merle, whose password is in the file `pw`.
pub(crate) fn login_server(home: &Path) -> Running {
    let serve = ["serve", "ki", "login", "--listen", "127.0.0.1:0", "--no-status"];
    let server = Running::start(home, &serve);
    fs::write(home.join("pw"), "hunter2\n").unwrap();
    printed(home, &["ki", "account", "add", "merle", "--password-file", "pw", "--server", "login"]);
    server
}

/// An MxO world, which writes the keys of its sessions to `keys.toml`.
pub(crate) fn open_world(home: &Path) -> Running {
    let serve = ["serve", "mxo", "--open-world", "--listen", "127.0.0.1:0", "--no-status"];
    Running::start(home, &[&serve[..], &["--secrets", "keys.toml"]].concat())
}

/// The messages in a recording that one side of the proxy exchanged with a port: name and fields.
pub(crate) fn messages(folder: &Path, recording: &str, port: &str) -> Vec<(String, Json)> {
    let filter = format!("port == {port}");
    let lines = printed(folder, &["dissect", recording, "--json", "--filter", &filter]);
    let lines = lines.lines().map(|line| parse(line).unwrap());
    let messages = lines.map(|line| {
        let name = line.get("name").and_then(Json::as_str).unwrap().to_owned();
        (name, line.get("fields").cloned().unwrap())
    });
    messages.filter(|(name, _)| name != "opened").collect()
}

/// The response of a web server.
fn fetched(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

pub(crate) fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

/// The names are in alphabetical order, because conversations overlap.
pub(crate) fn names(messages: &[(String, Json)]) -> Vec<&str> {
    let mut names: Vec<&str> = messages.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names
}

#[test]
fn an_uru_evening_passes_through_a_proxy_with_its_own_keys() {
    uru_evening([true, true]);
}

#[test]
fn either_side_of_an_uru_proxy_can_be_encrypted_without_the_other() {
    uru_evening([true, false]);
    uru_evening([false, true]);
}

/// An evening of two clients through a proxy. `encrypted` states whether the proxy's connections to
/// the clients and to the shard are encrypted.
fn uru_evening(encrypted: [bool; 2]) {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let serve = ["serve", "uru", "shard", "--listen", "127.0.0.1:0", "--no-status"];
    let mut shard = Running::start(home, &serve);
    fs::write(home.join("pw"), "hunter2\n").unwrap();
    for name in ["ann", "ben"] {
        let add = ["uru", "account", "add", name, "--password-file", "pw", "--shard", "shard"];
        printed(home, &add);
    }
    let page = b"page ".repeat(20_000);
    fs::create_dir_all(home.join("shard/data/files/External")).unwrap();
    fs::write(home.join("shard/data/files/External/page.prp"), &page).unwrap();
    // The lines that the first start printed lack the port that the system chose.
    let mut ini = String::new();
    let mut output = BufReader::new(shard.child.stdout.take().unwrap());
    while !ini.contains("Server.Game.X") {
        assert!(output.read_line(&mut ini).unwrap() > 0, "{ini}");
    }
    let is_key = |line: &str| [".N ", ".X ", ".G "].iter().any(|key| line.contains(key));
    let kept = ini.lines().filter(|line| !line.starts_with("Server.Port"));
    let kept = kept.filter(|line| encrypted[1] || !is_key(line));
    let ini = kept.collect::<Vec<_>>().join("\n");
    let shard_port = port(&shard.address()).to_owned();
    fs::write(home.join("server.ini"), format!("{ini}\nServer.Port {shard_port}\n")).unwrap();

    let relay = ["proxy", "uru", "--server-ini", "server.ini", "--client-ini", "client.ini"];
    let listen = ["--listen", "127.0.0.1:0", "--record", "evening.pcapng"];
    let client = ["--client-encryption", if encrypted[0] { "on" } else { "off" }];
    // Without the option, both sides are the same.
    let client = if encrypted[0] == encrypted[1] { &[][..] } else { &client };
    let proxy = Running::start(home, &[&relay[..], &listen, client].concat());
    let proxy_port = port(&proxy.address()).to_owned();
    let ini = fs::read_to_string(home.join("client.ini")).unwrap();
    let ini = ini.replace("Server.Port 0\n", &format!("Server.Port {proxy_port}\n"));
    fs::write(home.join("client.ini"), ini).unwrap();

    let visit = |account: &str, steps: &str| {
        let visit = ["client", "uru", "client.ini", "--account", account, "--password-file", "pw"];
        let mut visit = worldwire(home, &visit);
        visit.args(steps.split(' '));
        visit
    };
    let ben = "login + create-player Ben male + set-player Ben + enter city + wait 600";
    let mut ben = visit("ben", ben).spawn().unwrap();
    let mut sees = BufReader::new(ben.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(sees.any(|line| line == "all of the age's states have arrived"));
    let ann = "gatekeeper + download External game + login + create-player Ann female + \
               set-player Ann + vault + enter city + say hello + walk 1 + leave";
    let output = visit("ann", ann).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.ends_with("walk: ok\nleave: ok\n"), "{said}{log}");
    assert_eq!(fs::read(home.join("game/page.prp")).unwrap(), page);
    for (start, end) in [
        ("Ann (player ", ") is in the age"),
        ("avatar ", " appears"),
        ("Ann says: hello", ""),
        ("player ", ""),
        ("Ann (player ", ") has left the age"),
    ] {
        let fits = |line: String| line.starts_with(start) && line.ends_with(end);
        assert!(sees.any(fits), "{start}..{end}");
    }
    ben.kill().unwrap();
    ben.wait().unwrap();
    // The proxy still accepts connections after the shard has ended.
    shard.stop();
    let output = visit("ann", "login").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("If it is a proxy, check that the server behind it is running"),
        "{said}"
    );
    proxy.stop();

    let inside = messages(home, "evening.pcapng", &shard_port);
    let outside = messages(home, "evening.pcapng", &proxy_port);
    assert_eq!(names(&inside), names(&outside));
    for wanted in ["game.JoinAgeRequest", "file.FileDownloadRequest", "auth.VaultNodeFetch"] {
        assert!(names(&inside).contains(&wanted), "{wanted}: {:?}", names(&inside));
    }
    let doubts = ["dissect", "evening.pcapng", "--brief", "--filter", "gap or problem or warning"];
    assert_eq!(printed(home, &doubts), "");
    // The clients and the shard send only what the protocol allows.
    assert_eq!(printed(home, &["doctor", "evening.pcapng"]), "");
    // Each hop has its own keys; everything else is the same.
    let differing =
        |(one, other): (&(String, Json), &(String, Json))| (one != other).then(|| one.0.clone());
    let sorted = |messages: &[(String, Json)]| {
        let mut messages = messages.to_vec();
        messages.sort_by_key(|(name, fields)| (name.clone(), format!("{fields:?}")));
        messages
    };
    let (inside, outside) = (sorted(&inside), sorted(&outside));
    let differing: Vec<String> = inside.iter().zip(&outside).filter_map(differing).collect();
    assert!(differing.iter().all(|name| name.starts_with("setup.")), "{differing:?}");
    for (messages, encrypted) in [(&outside, encrypted[0]), (&inside, encrypted[1])] {
        let setups = messages.iter().filter(|(name, _)| name == "setup.Encrypt");
        let setups: Vec<bool> = setups.map(|(_, it)| it.get("seed").is_some()).collect();
        assert!(setups.len() >= 2 && setups.iter().all(|it| *it == encrypted), "{messages:?}");
    }
}

/// The words in a line of a recipe, after the program's name.
fn own(line: &str) -> Vec<&str> {
    let words = words(line);
    assert_eq!(words[0], "worldwire");
    words[1..].to_vec()
}

/// Starts from an empty directory.
#[test]
fn the_readme_recipe_changes_a_message() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let (_, chapter) = readme.split_once("## Change a message in transit\n").unwrap();
    let recipe = chapter.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = recipe.lines().collect();
    let [serve, account, rules, relay, visit] = lines[..] else { panic!("five lines: {recipe}") };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let serve = own(serve);
    let (wanted, to) = (serve.split_last().unwrap().1, serve.last().unwrap());
    assert_eq!(*to, ">server.ini");
    let free = ["--listen", "127.0.0.1:0", "--no-status"];
    let mut shard = Running::start(home, &[wanted, &free].concat());
    let mut ini = String::new();
    let mut output = BufReader::new(shard.child.stdout.take().unwrap());
    while !ini.contains("Server.Game.X") {
        assert!(output.read_line(&mut ini).unwrap() > 0, "{ini}");
    }
    let kept = ini.lines().filter(|line| !line.starts_with("Server.Port"));
    let ini = kept.collect::<Vec<_>>().join("\n");
    let port_line = format!("Server.Port {}", port(&shard.address()));
    fs::write(home.join("server.ini"), format!("{ini}\n{port_line}\n")).unwrap();
    let (_, rules) = rules.split_once("echo '").unwrap();
    let (rules, to) = rules.split_once("' >").unwrap();
    fs::write(home.join(to), rules).unwrap();
    let mut add = worldwire(home, &own(account));
    assert!(add.output().unwrap().status.success());
    let relay = relay.replace(":14700", ":0");
    let proxy = Running::start(home, &own(&relay));
    let ini = fs::read_to_string(home.join("proxied.ini")).unwrap();
    let ini = ini.replace("Server.Port 0\n", &format!("Server.Port {}\n", port(&proxy.address())));
    fs::write(home.join("proxied.ini"), ini).unwrap();
    let said = printed(home, &own(visit));
    assert!(said.contains("  name Yeesha  "), "{said}");
}

#[test]
fn a_pipe_cannot_contain_rules() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("my.rules");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let relay = ["proxy", "ki", "--to", "127.0.0.1:9", "--rules", "my.rules"];
    let output = worldwire(home.path(), &relay).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("my.rules: not a regular file"),
        "{said}"
    );
}

#[test]
fn messages_are_changed_by_rules_and_held_at_breakpoints() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = login_server(home);
    let rules = "when LOGIN.MSG_SELECTCHARACTER { log \"selects {CharID}\" }\n";
    fs::write(home.join("my.rules"), rules).unwrap();
    let to = server.address();
    let relay = ["proxy", "ki", "--to", &to, "--listen", "127.0.0.1:0", "--rules", "my.rules"];
    let pause = ["--pause", "LOGIN.MSG_REQUESTCHARACTERLIST", "--record", "evening.pcapng"];
    let pause = [&pause[..], &["--status", "127.0.0.1:0"]].concat();
    let mut proxy = Running::start(home, &[&relay[..], &pause].concat());
    let at = proxy.address();

    fs::write(home.join("my.rules"), "when nothing.Here { dorp }\n").unwrap();
    proxy.hear("has errors; the old rules stay in force");
    let rules =
        format!("{rules}when LOGIN.MSG_USER_VALIDATE {{ log \"validates\"; count \"logins\" }}\n");
    fs::write(home.join("my.rules"), rules).unwrap();
    proxy.hear("the new rules are in force");

    let steps = "login + validate + create Merle Fire + list + select Merle";
    let steps: Vec<&str> = steps.split(' ').collect();
    let visit = ["client", "ki", &at, "--account", "merle", "--password-file", "pw"];
    let mut client = worldwire(home, &[&visit[..], &steps].concat()).spawn().unwrap();
    proxy.hear("validates");
    // Every list of characters that the client requests is held until a decision is made.
    let mut decided = 0;
    let status = loop {
        if let Some(status) = client.try_wait().unwrap() {
            break status;
        }
        let held = printed(home, &["proxy", "ctl", "held", "--json"]);
        for line in held.lines() {
            let held = parse(line).unwrap();
            assert_eq!(held.get("name").unwrap().as_str(), Some("LOGIN.MSG_REQUESTCHARACTERLIST"));
            let number = |key: &str| held.get(key).unwrap().as_u64().unwrap().to_string();
            let (connection, id) = (number("connection"), number("id"));
            let refused = ["proxy", "ctl", "edit", &connection, &id, "{\"nonsense\":1}"];
            let output = worldwire(home, &refused).output().unwrap();
            assert_eq!(output.status.code(), Some(1));
            printed(home, &["proxy", "ctl", "send", &connection, &id]);
            let output =
                worldwire(home, &["proxy", "ctl", "drop", &connection, &id]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "it was released already");
            decided += 1;
        }
    };
    assert!(status.success() && decided > 0, "{decided}");
    proxy.hear("selects ");
    assert_eq!(printed(home, &["proxy", "ctl", "counts"]), "        1  logins\n");
    let listed = printed(home, &["proxy", "ctl", "list", "--json"]);
    assert!(listed.is_empty() || listed.contains("\"messages\":"), "{listed}");
    let page = proxy.said.split("the status page is http://").nth(1).unwrap();
    let page = page.split("/status").next().unwrap().to_owned();
    let status = fetched(&page, "/status");
    assert!(status.contains("\"counters\":{\"logins\":1}"), "{status}");
    let metrics = fetched(&page, "/metrics");
    assert!(metrics.contains("\nworldwire_proxy_messages_held_total "), "{metrics}");
    let counted = "\nworldwire_proxy_rule_count_total{name=\"logins\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");
    let reload = ["proxy", "ctl", "reload"];
    assert_eq!(printed(home, &reload), "the new rules are in force\n");
    fs::write(home.join("my.rules"), "when LOGIN.MSG_USER_VALIDATE { dorp }\n").unwrap();
    let output = worldwire(home, &reload).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("my.rules:1:32: error: unknown statement `dorp`"), "{said}");
    assert!(said.ends_with("the rules have errors; the old ones stay in force\n"), "{said}");
    assert_eq!(printed(home, &["proxy", "ctl", "counts"]), "        1  logins\n");
    let output = worldwire(home, &["proxy", "ki", "--to", &to, "--listen", "127.0.0.1:0"]).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("in use by"), "{said}");
    printed(home, &["proxy", "ctl", "stop"]);
    assert!(proxy.child.wait().unwrap().success());
    let output = worldwire(home, &["proxy", "ctl", "list"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_proxy_leads_ki_clients_on_to_the_zone_server() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = login_server(home);
    let to = server.address();
    let relay =
        ["proxy", "ki", "--to", &to, "--listen", "127.0.0.1:0", "--record", "evening.pcapng"];
    let proxy = Running::start(home, &relay);
    let at = proxy.address();
    let steps = "login + validate + create Merle Fire + select Merle + enter";
    let steps: Vec<&str> = steps.split(' ').collect();
    let visit = ["client", "ki", &at, "--account", "merle", "--password-file", "pw"];
    let said = printed(home, &[&visit[..], &steps].concat());
    assert!(said.contains("\nenter: "), "{said}");
    proxy.stop();
    let all = printed(home, &["dissect", "evening.pcapng", "--brief"]);
    // The zone's connection uses a port that the proxy opened for it.
    assert_eq!(all.matches("GAME.MSG_ATTACH").count(), 2, "{all}");
    assert!(!all.contains('!'), "{all}");
    let sent = printed(
        home,
        &["dissect", "evening.pcapng", "--json", "--filter", "MSG_CHARACTERSELECTED"],
    );
    let ports: Vec<u64> = sent
        .lines()
        .map(|line| {
            parse(line).unwrap().get("fields").unwrap().get("TCPPort").unwrap().as_u64().unwrap()
        })
        .collect();
    let [one, other] = ports[..] else { panic!("{sent}") };
    assert_ne!(one, other);
}

#[test]
fn clients_of_mxo_see_the_same_world_through_a_proxy() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let world = open_world(home);
    let to = world.address();
    let relay = ["proxy", "mxo", "--to", &to, "--listen", "127.0.0.1:0", "--keys", "keys.toml"];
    let record = ["--record", "evening.pcapng", "--show"];
    let mut proxy = Running::start(home, &[&relay[..], &record].concat());
    let at = proxy.address();
    let mut shown = BufReader::new(proxy.child.stdout.take().unwrap());
    printed(home, &["client", "mxo", &at, "--count", "3", "--seconds", "1"]);
    let mut line = String::new();
    assert!(shown.read_line(&mut line).unwrap() > 0);
    assert!(line.contains("  game.Objects "), "{line}");
    drop(shown);
    proxy.stop();
    let all = printed(home, &["dissect", "evening.pcapng", "--brief"]);
    assert!(all.matches("game.Objects").count() > 10 && !all.contains('!'), "{all}");
    let [inside, outside] =
        [port(&to), port(&at)].map(|port| messages(home, "evening.pcapng", port));
    assert_eq!(names(&inside), names(&outside));
}

/// A hook that adds a message to the client when it sees particular packets.
const ADDING_HOOK: &str = r#"
echo '{"type":"hello","version":1,"subscriptions":[
  {"id":"x","from":"server","filter":"sequence.local > 20 and sequence.local < 40"}]}' | tr -d '\n'
echo
while read -r line; do
  case "$line" in
    *'"type":"message"'*)
      id=${line#*'"id":"'}
      echo '{"type":"answer","id":"'"${id%%'"'*}"'","do":"pass","add":[{"to":"client","name":"game.Rpc",
        "fields":{"sections":[{"mpm":"Rpc","lists":[{"messages":[
        {"opcode":"Ability","data":{"$hex":"07"}}]}]}]}}]}' | tr -d '\n'
      echo ;;
  esac
done
"#;

/// Rules, hooks and operators add messages that nobody sent.
#[test]
fn messages_are_added_to_conversations_of_mxo() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let serve =
        ["serve", "mxo", "--open-world", "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0"];
    let mut world = Running::start(home, &[&serve[..], &["--secrets", "keys.toml"]].concat());
    let page = world.said.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let compare = format!("--compare={page}");
    world.ignore_log();
    let rpc = |opcode: &str| {
        format!(
            "game.Rpc {{ sections: [{{ mpm: \"Rpc\", lists: [{{ messages: [{{ \
             opcode: \"{opcode}\", data: hex\"0102\" }}] }}] }}] }}"
        )
    };
    let (to_server, to_client) = (rpc("Chat"), rpc("ChatMessage"));
    let rules = format!(
        "on connect {{ inject server {to_server} }}\nevery 200ms {{ inject client {to_client} }}\n"
    );
    fs::write(home.join("my.rules"), rules).unwrap();
    fs::write(home.join("hook.sh"), ADDING_HOOK).unwrap();
    let to = world.address();
    let relay = ["proxy", "mxo", "--to", &to, "--listen", "127.0.0.1:0", "--keys", "keys.toml"];
    let more = ["--record", "evening.pcapng", "--rules", "my.rules", "--hook", "sh hook.sh"];
    let mut proxy = Running::start(home, &[&relay[..], &more].concat());
    let at = proxy.address();
    proxy.ignore_log();
    let visit = ["client", "mxo", &at, "--count", "2", "--seconds", "3", &compare];
    let mut client = worldwire(home, &visit).stderr(Stdio::piped()).spawn().unwrap();
    let fields = r#"{"sections":[{"mpm":"Rpc","lists":[{"messages":[
        {"opcode":"Info","data":{"$hex":"05"}}]}]}]}"#;
    let mut injected = 0;
    while injected < 3 && client.try_wait().unwrap().is_none() {
        let add = ["proxy", "ctl", "inject", "0", "client", "game.Rpc", fields];
        injected += u32::from(worldwire(home, &add).output().unwrap().status.success());
    }
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("exactly what the server has"), "{said}");
    assert_eq!(injected, 3, "{said}");
    proxy.stop();
    let all = printed(home, &["dissect", "evening.pcapng", "--brief"]);
    assert!(!all.contains('!'), "{all}");
    // Packets inside and outside the proxy; a packet can contain several messages.
    let packets = |opcode: &str| {
        [port(&to), port(&at)].map(|port| {
            let filter = format!("port == {port} and opcode == {opcode}");
            let read = ["dissect", "evening.pcapng", "--brief", "--filter", &filter];
            printed(home, &read).lines().count()
        })
    };
    assert_eq!(packets("Chat"), [2, 0]);
    for opcode in ["ChatMessage", "Ability", "Info"] {
        let [inside, outside] = packets(opcode);
        assert!(inside == 0 && outside > 0, "{opcode}: {inside}, {outside}");
    }
    let recording = fs::read(home.join("evening.pcapng")).unwrap();
    let comment = b"the proxy added a message";
    assert!(recording.windows(comment.len()).any(|bytes| bytes == comment));
}

#[test]
fn launchers_get_a_list_of_servers_that_leads_to_the_proxy() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = servers.each_ref().map(|server| server.local_addr().unwrap().port());
    let server = |port| format!("<server><ip>127.0.0.1</ip><port>{port}</port></server>\n");
    let list = format!("<serverlist>\n{}</serverlist>\n", ports.map(server).concat());
    fs::write(home.join("list.xml"), &list).unwrap();
    let relay = ["proxy", "tera", "--server-list", "list.xml", "--list-at", "127.0.0.1:0"];
    let proxy = Running::start(home, &[&relay[..], &["--listen", "127.0.0.1:0"]].concat());
    let page = proxy.said.split("the servers at http://").nth(1).unwrap();
    let answer = fetched(page.split('/').next().unwrap(), "/any/path?lang=en");
    assert!(answer.contains("content-type: text/xml"), "{answer}");
    let found: Vec<&str> = answer.split("<port>").skip(1).collect();
    let found = found.iter().map(|rest| rest.split('<').next().unwrap());
    let found: Vec<u16> = found.map(|port| port.parse().unwrap()).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].to_string(), port(&proxy.address()));
    for (server, port) in servers.iter().zip(found) {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = server.accept().unwrap();
        // The messages that every server sends first.
        server.write_all(&[1, 0, 0, 0]).unwrap();
        let mut first = [0; 4];
        client.read_exact(&mut first).unwrap();
        assert_eq!(first, [1, 0, 0, 0]);
    }
    proxy.stop();
    fs::write(home.join("list.xml"), list.replace("127.0.0.1", "")).unwrap();
    let output = worldwire(home, &relay).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("list.xml: line 2: the server needs an address in `ip`"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn mistakes_are_named() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let refused = |words: &[&str]| {
        let output = worldwire(home, words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["proxy", "tera", "--to", "203.0.113.5"]);
    assert!(said.contains("needs a host and a port, such as 203.0.113.5:7801"), "{said}");
    let said = refused(&["proxy", "uru", "--to", "shard.example", "--listen", "0.0.0.0:0"]);
    assert!(said.contains("add --public-address"), "{said}");
    let said = refused(&["proxy", "uru", "--server-ini", "nothing.ini"]);
    assert!(said.contains("nothing.ini: no such file"), "{said}");
    fs::write(home.join("notes.txt"), "not a capture, but long enough").unwrap();
    let to = ["proxy", "mxo", "--to", "127.0.0.1:9", "--listen", "127.0.0.1:0"];
    let said = refused(&[&to[..], &["--record", "notes.txt"]].concat());
    assert!(
        said.contains("notes.txt: the file exists, but is not a little-endian pcapng capture"),
        "{said}"
    );
    let kept = fs::read_to_string(home.join("notes.txt")).unwrap();
    assert_eq!(kept, "not a capture, but long enough");
    let said = refused(&[&to[..], &["--show", "auth.Nothing"]].concat());
    assert!(said.contains("auth.Nothing"), "{said}");
}
