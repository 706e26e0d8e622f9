//! A login server and its client, started as a user would start them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A server, which is stopped however the test ends.
struct Running {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["serve", "ki"]).arg(folder).args(options);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, errors, said: String::new() };
        running.hear("Ctrl-C");
        running
    }

    /// Waits for a line of the server's output.
    fn hear(&mut self, wanted: &str) {
        while !self.said.contains(wanted) {
            assert!(self.errors.read_line(&mut self.said).unwrap() > 0, "{}", self.said);
        }
    }

    fn address(&self) -> String {
        let at = self.said.split("clients connect to ").nth(1).unwrap();
        at.split(';').next().unwrap().to_owned()
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

fn worldwire(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(arguments).env("WORLDWIRE_PASSWORD", "hunter2").output().unwrap()
}

fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_player_enters_a_zone_over_udp() {
    let folder = tempfile::tempdir().unwrap();
    let (server, password) = (folder.path().join("login"), folder.path().join("password"));
    std::fs::write(&password, "hunter2\n").unwrap();
    let (server, password) = (server.to_str().unwrap(), password.to_str().unwrap());
    let options = ["--listen", "127.0.0.1:0", "--udp-listen", "127.0.0.1:0", "--no-status"];
    let options = [&options[..], &["--other-server", "elsewhere"]].concat();
    let running = Running::start(server.as_ref(), &options);
    let at = running.said.split("clients that use UDP connect to ").nth(1).unwrap();
    let address = at.lines().next().unwrap().to_owned();
    let config = std::fs::read_to_string(folder.path().join("login/ki.toml")).unwrap();
    assert!(config.contains("udp_listen = \"127.0.0.1:0\"") && config.contains("elsewhere\"]"));
    let account =
        ["ki", "account", "add", "merle", "--password-file", password, "--server", server];
    printed(&worldwire(&account));
    let client = ["client", "ki", &address, "--udp", "--account", "merle"];
    let steps = "login + validate + create Merle Fire + select Merle + enter + ping";
    let words: Vec<&str> = client.into_iter().chain(steps.split(' ')).collect();
    let said = printed(&worldwire(&words));
    assert!(said.ends_with("ping: ok\n"), "{said}");
    // Nothing listens for UDP at the address used for TCP.
    let (host, _) = address.split_once(':').unwrap();
    let closed = format!("{host}:9");
    let refused = worldwire(&["client", "ki", &closed, "--udp", "--patience", "1", "ping"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn from_nothing_to_a_player_in_a_zone() {
    let folder = tempfile::tempdir().unwrap();
    let (server, secrets) = (folder.path().join("login"), folder.path().join("keys.toml"));
    let password = folder.path().join("password");
    std::fs::write(&password, "hunter2\n").unwrap();
    let (server, password) = (server.to_str().unwrap(), password.to_str().unwrap());
    let options = ["--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--secrets"];
    let options = [&options[..], &[secrets.to_str().unwrap()]].concat();
    let mut running = Running::start(server.as_ref(), &options);
    assert!(running.said.contains("created a login server"), "{}", running.said);
    let add = ["ki", "account", "add", "merle", "--password-file", password, "--server", server];
    printed(&worldwire(&add));
    assert_eq!(worldwire(&add).status.code(), Some(1), "it exists already");

    let address = running.address();
    let client = ["client", "ki", &address, "--account", "merle"];
    let steps = "login + validate + create Merle Fire + list + args + select Merle + enter + ping";
    let words: Vec<&str> = client.into_iter().chain(steps.split(' ')).collect();
    let said = printed(&worldwire(&words));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["user 1", "validate: ok", "create: ok"], "{said}");
    assert!(lines[3].contains("name Merle") && lines[3].contains("school Fire"), "{said}");
    let (host, port) = address.split_once(':').unwrap();
    assert!(lines[4].starts_with(&format!("-L {host} {port} -U ..1 ")), "{said}");
    assert!(lines[4].ends_with("== merle"), "{said}");
    assert!(lines[5].contains("zone WizardCity/Tutorial_Exterior"), "{said}");
    assert_eq!(lines[7], "ping: ok", "{said}");
    // The program itself accepts the command line that it prints.
    let explain = ["ki", "client-args", "--explain", "--"];
    let given: Vec<&str> = explain.into_iter().chain(lines[4].split(' ')).collect();
    assert!(
        printed(&worldwire(&given)).contains("a logged-in user: ID, login secret, account name")
    );
    let keys = std::fs::read_to_string(&secrets).unwrap();
    assert!(keys.contains("[[ki.login]]\nuser = \"merle\"\nck2 = \""), "{keys}");

    let refused = worldwire(&["client", "ki", &address, "list"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("MSG_REQUESTCHARACTERLIST: refused with NotAdmitted"), "{said}");
    let load = ["client", "ki", &address, "--account", "merle", "--count", "5", "login"];
    assert!(printed(&worldwire(&load)).starts_with("5 clients in "));

    // A user's mistakes are reported.
    let fails = |steps: &str, code: i32, wanted: &str| {
        let words: Vec<&str> = client.into_iter().chain(steps.split(' ')).collect();
        let output = worldwire(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(wanted)), (Some(code), true), "{said}");
    };
    fails("login + create Zed storn", 2, "is not a school; use Fire, Ice, Storm");
    fails("validate", 1, "needs `login` first");
    fails("login + files --patience 1", 1, "the server may not have a patch service");
    let twins = "login + create Zed storm + create Zed Ice + delete Zed";
    fails(
        twins,
        1,
        "2 characters are named \"Zed\"; use a number: 24488322973827074, 24488322973827075",
    );
    let steps = "login + list + logout --json";
    let words: Vec<&str> = client.into_iter().chain(steps.split(' ')).collect();
    let said = printed(&worldwire(&words));
    assert!(said.contains("\"school\":\"Storm\""), "{said}");
    assert!(said.ends_with("{\"step\":\"logout\"}\n"), "{said}");
    let kick = worldwire(&["ki", "account", "kick", "merle", "--server", server]);
    assert!(String::from_utf8_lossy(&kick.stderr).contains("merle: is not connected"));
    assert_eq!(kick.status.code(), Some(1));
    let list = printed(&worldwire(&["ki", "account", "list", "--json", "--server", server]));
    assert!(list.contains("{\"id\":\"24488322973827074\",\"name\":\"Zed\"}"), "{list}");
    let token = printed(&worldwire(&["ki", "account", "token", "merle", "--server", server]));
    let ck2 = token.split(' ').nth(2).unwrap();
    let tries = ["client", "ki", &address, "token", "..1", ck2, "+", "validate", "+", "ping"];
    assert_eq!(printed(&worldwire(&tries)), "token: ok\nvalidate: ok\nping: ok\n");

    running.signal("-USR1");
    running.hear("sessions are stale");
    printed(&worldwire(&["ki", "refresh", "--server", server]));
    let list = printed(&worldwire(&["ki", "account", "list", "--server", server]));
    assert!(list.starts_with("merle\n  24488322973827073  Merle\n"), "{list}");
    let token = printed(&worldwire(&["ki", "account", "token", "merle", "--server", server]));
    assert!(token.starts_with("-U ..1 "), "{token}");

    running.signal("-INT");
    assert!(running.child.wait().unwrap().success());
    let mut rest = String::new();
    running.errors.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("the login server stopped"), "{rest}");
    let gone = worldwire(&["client", "ki", &address, "ping"]);
    assert_eq!(gone.status.code(), Some(2));

    // Without a server, the settings in the folder determine how it is opened.
    let list = ["ki", "account", "list", "--server", server];
    assert!(printed(&worldwire(&list)).starts_with("merle\n"));
    let settings = Path::new(server).join("ki.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace("players = 2000", "players = 0")).unwrap();
    let refused = String::from_utf8(worldwire(&list).stderr).unwrap();
    assert!(refused.contains("ki.toml: limits.players: must be at least 1"), "{refused}");
}

#[test]
fn queued_clients_see_their_position() {
    let folder = tempfile::tempdir().unwrap();
    let (server, password) = (folder.path().join("login"), folder.path().join("password"));
    std::fs::write(&password, "hunter2\n").unwrap();
    let options = ["--listen", "0.0.0.0:0", "--no-status", "--players", "1"];
    let running = Running::start(&server, &options);
    // The address for other machines is not configured.
    assert!(running.said.contains("set --public-address"), "{}", running.said);
    assert!(!running.said.contains("status page"), "{}", running.said);
    let (server, password) = (server.to_str().unwrap(), password.to_str().unwrap());
    printed(&worldwire(&[
        "ki",
        "account",
        "add",
        "merle",
        "--password-file",
        password,
        "--server",
        server,
    ]));
    let address = running.address().replace("0.0.0.0", "127.0.0.1");
    let words = ["client", "ki", &address, "--account", "merle", "login", "+", "validate"];
    let mut first = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    first.args(words).args(["+", "wait", "60"]).env("WORLDWIRE_PASSWORD", "hunter2");
    let mut first = first.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "validate: ok"));
    let second = worldwire(&[&words[..], &["--patience", "1"]].concat());
    first.kill().unwrap();
    first.wait().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("worldwire: waiting in the queue, at position 1"), "{said}");
    assert!(said.contains("validate: still waiting in the queue, at position 1"), "{said}");
}

#[test]
fn server_errors_name_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("login");
    let server = server.to_str().unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let host =
        "for '--public-address <HOST>': must be an IP address or a name such as ki.example.org";
    for (option, value, wanted) in [
        ("--public-address", "a b", host),
        ("--public-address", "http://x.example/", host),
        ("--afk", "0", "'0' for '--afk <SECONDS>'"),
        ("--players", "0", "'0' for '--players <NUMBER>'"),
        ("--per-address", "0", "'0' for '--per-address <NUMBER>'"),
    ] {
        let output = worldwire(&["serve", "ki", server, "--no-status", option, value]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(wanted), "{said}");
    }
    let output = worldwire(&["serve", "ki", server, "--no-status", "--listen", &taken]);
    let said = String::from_utf8(output.stderr).unwrap();
    let wanted = [
        format!("cannot listen on {taken}: "),
        "; choose another address with --listen".to_owned(),
    ];
    assert!(wanted.iter().all(|part| said.contains(part)), "{said}");
    let free = ["--listen", "127.0.0.1:0", "--status", &taken];
    let output = worldwire(&[&["serve", "ki", server][..], &free].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("; choose another address with --status"), "{said}");
}

#[test]
fn names_are_checked_before_the_password_prompt() {
    for (family, name, option, problem) in [
        ("ki", "a b", "--server", ": a name must have 1 to 64 ASCII characters and no spaces"),
        ("uru", " ann", "--shard", " has a value that is empty, too long, or not allowed"),
    ] {
        let add = |name| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            command.args([family, "account", "add", name, option, "there"]).stdin(Stdio::null());
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (code, said) = add(name);
        assert!(code == Some(1) && said.contains(&format!("account {name:?}{problem}")), "{said}");
        let (code, said) = add("ann");
        assert_eq!(code, Some(2));
        assert!(
            said.contains("the password is empty; use --password-file, the variable "),
            "{said}"
        );
    }
}
