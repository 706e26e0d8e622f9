//! `worldwire replay` against the project's servers and against itself.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use worldwire_core::json::{Json, parse};

use crate::proxy::{Running, login_server, port, printed, worldwire};

fn sample(name: &str) -> String {
    format!("{}/../../samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The output of a replay, and its exit code.
fn replay(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = worldwire(folder, &[&["replay"], words].concat()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The number of the conversation with a server's port in which a message occurs.
fn stream(folder: &Path, capture: &str, port: &str, name: &str) -> String {
    let filter = format!("port == {port} and {name}");
    let lines = printed(folder, &["dissect", capture, "--json", "--filter", &filter]);
    let line = parse(lines.lines().next().unwrap_or_else(|| panic!("no {name}"))).unwrap();
    line["stream"].to_string()
}

/// The commands of a recipe in `docs/proxy.md`, one per line.
fn recipe(name: &str) -> Vec<Vec<String>> {
    let page = include_str!("../../../../docs/proxy.md");
    let start = format!("<!-- replay: {name} -->\n");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no recipe {name}"));
    let lines = rest.lines().skip_while(|line| line.trim().is_empty());
    let lines = lines.map_while(|line| line.strip_prefix("    worldwire "));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn a_recorded_ki_login_is_replayed_as_the_guide_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = login_server(home);
    let recipe = recipe("ki");
    let [relay, visit, again] = &recipe[..] else { panic!("{recipe:?}") };
    // The ports used in the guide may be taken.
    let to = server.address();
    let words = |line: &[String], at: &str| -> Vec<String> {
        let words = line.iter().map(|word| word.replace("127.0.0.1:12000", &to));
        words.map(|word| word.replace("127.0.0.1:12001", at)).collect()
    };
    let relay = words(relay, "127.0.0.1:0");
    let relay: Vec<&str> = relay.iter().map(String::as_str).collect();
    let proxy = Running::start(home, &relay);
    let visit = words(visit, &proxy.address());
    printed(home, &visit.iter().map(String::as_str).collect::<Vec<_>>());
    proxy.stop();
    let again = words(&again[1..], "");
    let mut again: Vec<&str> = again.iter().map(String::as_str).collect();
    let chosen = again.iter().position(|word| *word == "--stream").unwrap() + 1;
    let listed: Vec<String> = ["LOGIN.MSG_USER_AUTHEN_V3", "LOGIN.MSG_USER_VALIDATE"]
        .iter()
        .map(|name| stream(home, "evening.pcapng", port(&to), name))
        .collect();
    let listed = listed.join(",");
    assert_eq!(again[chosen], listed, "the guide names other conversations");
    let (code, said, problems) = replay(home, &again);
    assert_eq!((code, &*problems), (Some(0), ""), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("replayed as client")).count(), 2);

    // With another password, the server refuses the login that it accepted in the recording.
    fs::write(home.join("wrong"), "hunter3\n").unwrap();
    again.extend(["--password-file", "wrong"]);
    let (code, _, problems) = replay(home, &again);
    assert_eq!(code, Some(1));
    assert!(problems.contains("refused (Error AuthenFailed), but accepted"), "{problems}");
    assert!(
        problems.contains("advice: use --account to log in to an account on the live server"),
        "{problems}"
    );
}

#[test]
fn a_recorded_uru_evening_is_replayed_against_the_shard() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let serve = ["serve", "uru", "shard", "--listen", "127.0.0.1:0", "--no-status"];
    let mut shard = Running::start(home, &serve);
    fs::write(home.join("pw"), "hunter2\n").unwrap();
    for account in ["ann@example.org", "bob"] {
        let add = ["uru", "account", "add", account, "--password-file", "pw", "--shard", "shard"];
        printed(home, &add);
    }
    // The lines that the first start printed lack the port that the system chose.
    let mut ini = String::new();
    let mut output = BufReader::new(shard.child.stdout.take().unwrap());
    while !ini.contains("Server.Game.X") {
        assert!(output.read_line(&mut ini).unwrap() > 0, "{ini}");
    }
    let own = port(&shard.address()).to_owned();
    let lines = ini.lines().filter(|line| !line.starts_with("Server.Port"));
    let ini = lines.collect::<Vec<_>>().join("\n");
    fs::write(home.join("server.ini"), format!("{ini}\nServer.Port {own}\n")).unwrap();
    let visit = |ini: &str, account: &str, steps: &str| {
        let head = ["client", "uru", ini, "--account", account, "--password-file", "pw"];
        let steps: Vec<&str> = steps.split(' ').collect();
        printed(home, &[&head[..], &steps].concat())
    };
    visit("server.ini", "ann@example.org", "login + create-player Ann female");
    visit("server.ini", "bob", "login + create-player Bob male");

    let relay = ["proxy", "uru", "--server-ini", "server.ini", "--client-ini", "client.ini"];
    let listen = ["--listen", "127.0.0.1:0", "--record", "evening.pcapng"];
    let proxy = Running::start(home, &[&relay[..], &listen].concat());
    let ini = fs::read_to_string(home.join("client.ini")).unwrap();
    let at = format!("Server.Port {}\n", port(&proxy.address()));
    fs::write(home.join("client.ini"), ini.replace("Server.Port 0\n", &at)).unwrap();
    visit("client.ini", "ann@example.org", "login + set-player Ann + enter city + leave");
    proxy.stop();

    let streams = ["auth.AcctLoginRequest", "game.JoinAgeRequest"]
        .map(|name| stream(home, "evening.pcapng", &own, name));
    let streams = streams.join(",");
    let to = shard.address();
    let words = ["evening.pcapng", "--stream", &streams, "--as", "client", "--to", &to];
    let keys = ["--live-keys", "server.ini", "--password-file", "pw"];
    // Another account has another player, whose numbers replace the recorded ones.
    for account in ["ann@example.org", "bob"] {
        let words = [&words[..], &keys, &["--account", account, "--json"]].concat();
        let (code, said, problems) = replay(home, &words);
        assert_eq!(code, Some(0), "{said}{problems}");
        let lines: Vec<Json> = said.lines().map(|line| parse(line).unwrap()).collect();
        let complete = lines.iter().filter(|line| line["event"] == "complete").count();
        let joined = lines.iter().find(|line| line["name"] == "game.JoinAgeRequest").unwrap();
        let adapted = joined["adapted"].to_string();
        assert_eq!((complete, adapted.contains("playerId")), (2, account == "bob"), "{said}");
    }

    // Without the account, the shard refuses the recorded proof.
    let (code, _, problems) = replay(home, &[&words[..], &keys[..2]].concat());
    assert_eq!(code, Some(1));
    assert!(problems.contains("refused (result AuthenticationFailed)"), "{problems}");
}

#[test]
fn recorded_clients_walk_in_an_mxo_world() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let world = Running::start(
        home,
        &["serve", "mxo", "--open-world", "--listen", "127.0.0.1:0", "--no-status"],
    );
    let (capture, keys) = (sample("mxo-crowd.pcapng"), sample("mxo-crowd-keys.toml"));
    let to = world.address();
    let words = [&*capture, "--keys", &keys, "--stream", "0", "--as", "client", "--to", &to];
    let (code, said, problems) = replay(home, &words);
    assert_eq!((code, &*problems), (Some(0), ""), "{said}");
    assert!(said.contains("23 sent"), "{said}");
    // This world sends no RPC messages, unlike the server in the other sample.
    let (capture, recorded) = (sample("mxo-world.pcapng"), sample("mxo-keys.toml"));
    let words = [&*capture, "--keys", &recorded, "--live-keys", &keys, "--as", "client", "--to"];
    let (code, _, problems) = replay(home, &[&words[..], &[&to, "--patience", "300ms"]].concat());
    assert_eq!(code, Some(1));
    assert!(problems.contains("nothing arrived for 0.3 s"), "{problems}");
}

#[test]
fn both_sides_are_replayed_over_sockets() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let data = sample("tera");
    let (uru, mxo, ki) = (sample("uru-keys.toml"), sample("mxo-keys.toml"), sample("ki-keys.toml"));
    for (capture, more) in [
        ("tera-login.pcapng", vec!["--data", &data]),
        ("uru-login.pcapng", vec!["--keys", &uru, "--stream", "0,1,2,3"]),
        ("ki-login.pcapng", vec!["--keys", &ki, "--stream", "0,1,2", "--account", "merle"]),
        ("mxo-world.pcapng", vec!["--keys", &mxo]),
    ] {
        let capture = sample(capture);
        let words = [&[&*capture], &more[..]].concat();
        let listen = ["--as", "server", "--listen", "127.0.0.1:0"];
        let mut server = Running::start(home, &[&["replay"], &words[..], &listen].concat());
        let to = server.address();
        let (code, said, problems) =
            replay(home, &[&words[..], &["--as", "client", "--to", &to]].concat());
        let mut other = String::new();
        server.child.stdout.take().unwrap().read_to_string(&mut other).unwrap();
        assert_eq!(code, Some(0), "{capture}: {said}{problems}");
        assert!(server.child.wait().unwrap().success(), "{capture}: {other}");
        assert!(other.lines().all(|line| line.contains("replayed as server")), "{other}");
        assert_eq!(said.lines().count(), other.lines().count());
    }
}

/// Everything in this conversation can arrive at any time, so a peer that says nothing would pass.
#[test]
fn a_replay_that_compares_nothing_fails() {
    let home = tempfile::tempdir().unwrap();
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = peer.local_addr().unwrap().to_string();
    let closing = thread::spawn(move || drop(peer.accept()));
    let (capture, keys) = (sample("uru-games.pcapng"), sample("uru-keys.toml"));
    let words = [&capture, "--keys", &keys, "--stream", "0", "--as", "client", "--to", &to];
    let (code, said, problems) = replay(home.path(), &words);
    closing.join().unwrap();
    assert_eq!(code, Some(1), "{said}{problems}");
    assert!(problems.contains("nothing was compared"), "{said}{problems}");
}
