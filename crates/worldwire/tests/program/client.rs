//! Clients run as a user would run them, against a shard started as a user would start it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value as Json;

/// A shard that is stopped when the test ends. Its log's pipe stays open, so that it can keep
/// writing.
pub(crate) struct Serving {
    child: Child,
    _log: BufReader<ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command line.
pub(crate) fn command(folder: &Path, words: &[&str]) -> Command {
    assert_eq!(words[0], "worldwire");
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(&words[1..]).current_dir(folder).env_remove("WORLDWIRE_PASSWORD");
    command
}

/// Starts a shard on a free port.
fn serve(folder: &Path, words: &[&str]) -> Serving {
    // The port stays free: the system does not reassign it so soon.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    serve_at(folder, words, port)
}

pub(crate) fn serve_at(folder: &Path, words: &[&str], port: u16) -> Serving {
    serve_on(folder, words, &format!("127.0.0.1:{port}"))
}

fn serve_on(folder: &Path, words: &[&str], listen: &str) -> Serving {
    let mut command = command(folder, words);
    command.args(["--listen", listen, "--status", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "{said}");
    }
    Serving { child, _log: errors }
}

/// Runs a command that is given a password on standard input.
pub(crate) fn typed(mut command: Command) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // Some commands do not read their input.
    let _ = child.stdin.take().unwrap().write_all(b"secret\n");
    child.wait_with_output().unwrap()
}

/// The output of a command that must have succeeded.
pub(crate) fn good(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the client against the shard in `shard`, as ann, with the password in the environment.
fn client(folder: &Path, steps: &str) -> Output {
    let line = format!("worldwire client uru shard --account ann@example.org {steps}");
    let words: Vec<_> = line.split(' ').collect();
    command(folder, &words).env("WORLDWIRE_PASSWORD", "secret").output().unwrap()
}

/// Splits a line into words, as a shell does.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split('#').next().unwrap().split_whitespace().collect()
}

/// Starts from an empty directory and ends with two players who meet.
#[test]
fn the_readme_recipe_works() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let (_, chapter) = readme.split_once("## Run an Uru shard\n").unwrap();
    let recipe = chapter.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<Vec<_>> = recipe.lines().map(words).collect();
    let [serving, ann, bob, stays, comes] = &lines[..] else { panic!("five lines: {recipe}") };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _serving = serve(folder, serving);
    for account in [ann, bob] {
        good(typed(command(folder, account)));
    }
    // A failing test must not take long.
    let (last, stays) = stays.split_last().unwrap();
    assert_eq!(*last, "600");
    let mut stays = command(folder, &[stays, &["20"]].concat());
    stays.env("WORLDWIRE_PASSWORD", "secret").stdout(Stdio::piped());
    let mut ann = stays.spawn().unwrap();
    let mut sees = BufReader::new(ann.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(sees.any(|line| line == "all of the age's states have arrived"));
    let printed =
        good(command(folder, comes).env("WORLDWIRE_PASSWORD", "secret").output().unwrap());
    assert!(printed.contains("Ann (player "), "{printed}");
    assert!(printed.ends_with("say: ok\nwalk: ok\n"), "{printed}");
    // Ann sees Bob's actions as they happen.
    for (start, end) in [
        ("Bob (player ", ") is in the age"),
        ("avatar Male@", " appears"),
        ("Bob says: ", ""),
        ("player ", ""),
        ("avatar Male@", " disappears"),
        ("Bob (player ", ") has left the age"),
    ] {
        let fits = |line: String| line.starts_with(start) && line.ends_with(end);
        assert!(sees.any(fits), "{start}..{end}");
    }
    let _ = ann.kill();
    let _ = ann.wait();
}

/// The shard tells its clients to connect to 127.0.0.1, where nobody listens on this port. Other
/// systems have only one loopback address.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_leads_to_its_own_shard() {
    let port = TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let words = ["worldwire", "serve", "uru", "shard"];
    let _serving = serve_on(folder.path(), &words, &format!("127.0.0.2:{port}"));
    let steps = ["worldwire", "client", "uru", "shard", "gatekeeper", "+", "build"];
    let printed = good(command(folder.path(), &steps).output().unwrap());
    assert!(printed.contains("127.0.0.1") && printed.contains("\nbuild "), "{printed}");
}

#[test]
fn the_guide_recipe_works() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shard.md");
    let guide = fs::read_to_string(guide).unwrap();
    let recipe = guide.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<Vec<_>> = recipe.lines().map(|line| line.split_whitespace().collect()).collect();
    let [serve_line, account, client_line] = &lines[..] else { panic!("three lines: {recipe}") };
    let folder = tempfile::tempdir().unwrap();
    let serving = serve(folder.path(), serve_line);
    good(typed(command(folder.path(), account)));
    let mut logs_in = command(folder.path(), client_line);
    logs_in.arg("--password-file").arg("-");
    let printed = good(typed(logs_in));
    assert!(printed.contains("players 0") && printed.starts_with("account "), "{printed}");

    // All other steps of a client.
    let folder = folder.path();
    let files = folder.join("shard/data/files/External");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("page.prp"), "page ".repeat(20_000)).unwrap();
    let steps = "login + create-player Ann female + set-player Ann + vault";
    let printed = good(client(folder, steps));
    assert!(printed.ends_with("nodes 33  refs 34\n"), "{printed}");
    assert!(printed.contains("PlayerInfo Ann") && printed.contains("(see above)"), "{printed}");
    let steps = "--json gatekeeper + build + login + players + download External game + ping";
    let printed = good(client(folder, steps));
    let values: Vec<Json> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |step: &str| values.iter().filter(|value| value["step"] == step).collect::<Vec<_>>();
    assert_eq!(of("build")[0]["build"], 918);
    assert_eq!(of("gatekeeper")[0]["auth"], "127.0.0.1");
    assert_eq!(of("players")[0]["name"], "Ann");
    assert_eq!(of("download")[1]["written"], 1);
    let page = fs::read_to_string(folder.join("game/page.prp")).unwrap();
    assert_eq!(page, "page ".repeat(20_000));

    fs::write(folder.join("steps"), "login\nset-player Ann # plays\nfind NodeType=System\n")
        .unwrap();
    let printed = good(client(folder, "--script steps"));
    assert_eq!(printed.lines().last().unwrap().split(' ').next(), Some("id"), "{printed}");

    let steps = "--quiet --json --count 4 --seconds 1 login + ping";
    let printed = good(client(folder, steps));
    let rows: Vec<Json> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["of"], &rows[0]["count"]), (&"login".into(), &4.into()));
    assert!(rows[1]["of"] == "ping" && rows[1]["count"].as_u64() > Some(4), "{printed}");
    assert!(rows[1]["p50"].as_f64() <= rows[1]["p99"].as_f64(), "{printed}");

    // A step that fails immediately is not retried at its full rate.
    let output = client(folder, "--quiet --count 2 --seconds 1 login + node made");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let failed = said.split_once("node: ").and_then(|(_, rest)| rest.split_once(" failed; "));
    let failed: u32 = failed.unwrap_or_else(|| panic!("{said}")).0.parse().unwrap();
    assert!(output.status.code() == Some(1) && (4..=20).contains(&failed), "{said}");

    // Clients that cannot log in generate no load.
    let line = "worldwire client uru shard --account nobody-{} --count 2 --seconds 60 login + ping";
    let words: Vec<_> = line.split(' ').collect();
    let output = command(folder, &words).env("WORLDWIRE_PASSWORD", "secret").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("load: 0 of 2 clients connected; running for 0 s"), "{said}");
    assert!(said.contains("login: 2 failed") && output.status.code() == Some(1), "{said}");

    // An operator kicks Ann. She is notified, and can log in again.
    let waits =
        "worldwire client uru shard --account ann@example.org login + set-player Ann + wait 60";
    let words: Vec<_> = waits.split(' ').collect();
    let mut ann = command(folder, &words);
    ann.env("WORLDWIRE_PASSWORD", "secret").stdout(Stdio::null()).stderr(Stdio::piped());
    let ann = ann.spawn().unwrap();
    let who = ["worldwire", "uru", "who", "--shard", "shard"];
    let online = loop {
        let online = good(command(folder, &who).output().unwrap());
        if online.starts_with("Ann (") {
            break online;
        }
    };
    assert!(online.contains("  ann@example.org  in Lobby  online since 2"), "{online}");
    let message = ["worldwire", "uru", "message", "Shorah!", "--shard", "shard", "--json"];
    let sent = good(command(folder, &message).output().unwrap());
    assert_eq!(sent, "{\"players\":0}\n");
    let games = ["worldwire", "uru", "games", "--shard", "shard"];
    assert_eq!(good(command(folder, &games).output().unwrap()), "");
    let kick = ["worldwire", "uru", "kick", "Ann", "--shard", "shard"];
    while !command(folder, &kick).output().unwrap().status.success() {}
    let output = ann.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kicked off: KickedByCCR (39)"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    good(client(folder, "login + set-player Ann"));

    // The same happens if her client has frozen and notices nothing.
    let mut frozen = command(folder, &words);
    frozen.env("WORLDWIRE_PASSWORD", "secret").stdout(Stdio::null()).stderr(Stdio::null());
    let mut frozen = frozen.spawn().unwrap();
    while !good(command(folder, &who).output().unwrap()).starts_with("Ann (") {}
    let stopped = Command::new("kill").args(["-STOP", &frozen.id().to_string()]).status();
    let before = client(folder, "login + set-player Ann");
    let kicked = command(folder, &kick).output().unwrap();
    let after = client(folder, "login + set-player Ann");
    // A frozen process does not end by itself, even if the test fails.
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    assert!(stopped.unwrap().success());
    let said = String::from_utf8_lossy(&before.stderr).into_owned();
    assert!(said.contains("LoggedInElsewhere"), "{said}");
    good(kicked);
    good(after);

    // Each client has its own account, player and node.
    for number in 1..=2 {
        let name = format!("load-{number}");
        let words = ["worldwire", "uru", "account", "add", &name, "--shard", "shard"];
        good(typed(command(folder, &words)));
    }
    let steps = "login + create-player Load{} female + set-player Load{} + create-node \
                 NodeType=TextNote + again + save-node made Text_1=x + node made";
    let line = format!(
        "worldwire client uru shard --account load-{{}} --quiet --json --count 2 --seconds 1 {steps}"
    );
    let words: Vec<_> = line.split_whitespace().collect();
    let printed =
        good(command(folder, &words).env("WORLDWIRE_PASSWORD", "secret").output().unwrap());
    let rows: Vec<Json> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let row = |name: &str| rows.iter().find(|row| row["of"] == name).unwrap();
    assert_eq!(
        (&row("create-node")["count"], &row("create-node")["perSecond"]),
        (&2.into(), &Json::Null)
    );
    assert!(
        row("save-node")["count"].as_u64() > Some(2) && row("node")["failed"] == 0,
        "{printed}"
    );

    // Ages and scores.
    let zeros = "00000000-0000-0000-0000-000000000000";
    let steps = format!(
        "--json login + set-player Ann + init-age Garden {zeros} Mine + create-score player points 1 5 \
         + scores player points + high-scores 0 3 points + create-node NodeType=TextNote"
    );
    let printed = good(client(folder, &steps));
    let values: Vec<Json> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |step: &str| values.iter().find(|value| value["step"] == step).unwrap();
    let number = |value: &Json| value.as_u64().unwrap();
    let (info, score) = (number(&of("init-age")["info"]), number(&of("create-score")["id"]));
    let (player, note) = (number(&of("set-player")["id"]), number(&of("create-node")["id"]));
    assert_eq!((&of("scores")["value"], &of("high-scores")["value"]), (&5.into(), &5.into()));
    let steps = format!(
        "login + set-player Ann + add-points {score} 2 + create-score player more 1 0 \
         + send-node {note} {player} + set-public {info} no + logout + login + set-player {player} \
         + scores player points + ping"
    );
    let printed = good(client(folder, &steps));
    assert!(printed.contains("send-node: sent") && printed.contains("logout: ok"), "{printed}");
    assert!(printed.contains(&format!("id {score}  owner {player}  type 1  value 7")), "{printed}");
    let output =
        client(folder, &format!("login + set-player Ann + transfer-points {score} {score} 1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ScoreTransferPoints: refused with InvalidParameter"), "{said}");
    let output = client(folder, &format!("login + set-player Ann + set-points {score} 1"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ScoreWrongType"));

    // Requests that the shard refuses and steps that are impossible.
    let output = client(folder, "login + set-player Nobody");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "worldwire: set-player: AcctSetPlayerRequest: refused with PlayerNotFound (14): game clients show \"Player Not Found\"\n"
    );
    let mut wrong = command(folder, client_line);
    let output = wrong.env("WORLDWIRE_PASSWORD", "guess").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("AuthenticationFailed (20)"));
    drop(serving);
    let output = client(folder, "login");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("worldwire: cannot connect to the auth server at 127.0.0.1:"),
        "{said}"
    );
    assert!(said.ends_with("; `worldwire serve uru shard` starts it\n"), "{said}");
}

/// A shard whose port the system chose is found by its folder, and objects are locked with the
/// class that was named in the age's messages.
#[test]
fn a_running_shard_says_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let descriptors = folder.join("shard/data/secure/SDL");
    fs::create_dir_all(&descriptors).unwrap();
    let text = "STATEDESC lever { VERSION 1 VAR BOOL open[1] DEFAULT=0 }\n";
    fs::write(descriptors.join("lever.sdl"), text).unwrap();
    let serve_line = ["worldwire", "serve", "uru"];
    let serving = serve_at(folder, &serve_line, 0);
    assert!(fs::read_to_string(folder.join("shard/shard.toml")).unwrap().contains("127.0.0.1:0"));
    let account = ["worldwire", "uru", "account", "add", "ann@example.org"];
    good(typed(command(folder, &account)));
    let steps = "login + create-player Ann female + set-player Ann + enter city \
                 + set-state Lever@00780022:5 lever open=true \
                 + set-state Door@00780022 lever open=true + leave + enter city \
                 + lock Lever@00780022 + lock Door@00780022";
    let printed = good(client(folder, steps));
    for object in ["Lever@00780022:5", "Door@00780022:2d"] {
        let lock = format!("the lock on {object} is granted\n");
        assert!(printed.contains(&lock), "{printed}");
    }
    // Steps that the server does not respond get their own line.
    let printed =
        good(client(folder, "--json login + set-player Ann + enter city + say Shorah! + leave"));
    let last: Vec<Json> =
        printed.lines().rev().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(last[1], serde_json::json!({"step": "say", "outcome": "ok"}));
    assert_eq!(last[0], serde_json::json!({"step": "leave", "outcome": "ok"}));
    failures_say_what_to_do(folder);
    drop(serving);
    let output = client(folder, "login");
    let said = String::from_utf8_lossy(&output.stderr);
    let wanted = "worldwire: shard: the shard is not running, and the system chooses its port when \
                  it starts\n";
    assert_eq!((output.status.code(), &*said), (Some(2), wanted));
}

/// A wrong host, port, server, account or password, and a closed shard.
fn failures_say_what_to_do(folder: &Path) {
    let fails = |steps: &str, code: i32, parts: &[&str]| {
        let output = client(folder, steps);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
    };
    // A name that is too long is not looked up.
    let host = format!("{}.example", "x".repeat(64));
    let unknown = [&*format!("cannot find {host}, the host of the auth server"), "check the name"];
    fails(&format!("--at {host} login"), 2, &unknown);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let parts = [&*unused.to_string(), "no program is listening there", "address and port"];
    fails(&format!("--at {unused} login"), 2, &parts);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let web = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        // Closing the connection with unread bytes could discard the answer.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let parts = ["does not respond like an Uru auth server", "check the address and port"];
    fails(&format!("--at {address} login"), 2, &parts);
    web.join().unwrap();
    let line = "worldwire client uru shard --account ann@example.org login";
    let words: Vec<_> = line.split(' ').collect();
    let output = command(folder, &words).env("WORLDWIRE_PASSWORD", "guess").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with("; check the account name and the password\n"), "{said}");
    for (word, code) in [("close", 1), ("open", 0)] {
        good(command(folder, &["worldwire", "uru", word, "--shard", "shard"]).output().unwrap());
        let parts: &[&str] =
            if code == 1 { &["LoginDenied (22)", "the shard is closed to players"] } else { &[] };
        fails("login", code, parts);
    }
}

#[test]
fn plain_connections_need_an_option() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.ini"), "Server.Auth.Host \"192.0.2.1\"\n").unwrap();
    let refused = |words: &str, said: &str| {
        let words: Vec<_> = words.split(' ').collect();
        let output = command(folder.path(), &words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, format!("worldwire: {said}\n"));
    };
    refused(
        "worldwire client uru server.ini build",
        "server.ini: has no auth key; use --plain to continue without encryption",
    );
    refused(
        "worldwire client uru server.ini --plain --account ann",
        "no password given; use --password-file or the variable WORLDWIRE_PASSWORD",
    );
    refused("worldwire client uru server.ini", "step `login` needs --account NAME");
    refused("worldwire client uru server.ini logn", "unknown step `logn`; did you mean login?");
    refused("worldwire client uru nowhere build", "nowhere: no such file or directory");
}
