//! Servers, started and stopped as a user would do it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends the program, however the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a shard, stops it once it runs, and returns its output on both streams.
fn start_and_stop(folder: &Path, listen: &str, meanwhile: impl FnOnce()) -> (String, String) {
    run(&["uru", "--listen", listen, folder.to_str().unwrap()], "-INT", meanwhile)
}

/// Starts a server and stops it with a signal once it runs.
fn run(words: &[&str], signal: &str, meanwhile: impl FnOnce()) -> (String, String) {
    run_with(words, "127.0.0.1:0", signal, meanwhile)
}

/// Starts a server with a status page and stops it with a signal once it runs.
fn run_with(
    words: &[&str],
    status: &str,
    signal: &str,
    meanwhile: impl FnOnce(),
) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg("serve").args(words);
    if !words.contains(&"--no-status") {
        command.args(["--status", status]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut errors = BufReader::new(running.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "{said}");
    }
    meanwhile();
    let id = running.0.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    errors.read_to_string(&mut said).unwrap();
    assert!(running.0.wait().unwrap().success(), "{said}");
    let mut printed = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    (printed, said)
}

/// Runs a command on accounts.
fn account(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["uru", "account"]).args(arguments).arg("--shard").arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Some commands do not read their input.
    let _ = child.stdin.take().unwrap().write_all(b"secret\n");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_shard_starts_from_nothing_and_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("shard");
    // Operators can give commands while the shard runs.
    let (printed, said) = start_and_stop(&shard, "127.0.0.1:0", || {
        account(&shard, &["add", "ann@example.org"]);
        let mut again = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        let output = again.args(["serve", "uru"]).arg(&shard).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(": in use by process ") && said.contains("stop that process"),
            "{said}"
        );
    });
    assert_eq!(account(&shard, &["list"]), "ann@example.org\n");
    assert!(printed.contains("Server.Auth.N \"") && printed.contains("Server.Status \"http://127"));
    for part in [
        "created a shard",
        "account add",
        "clients connect to 127.0.0.1:",
        "/status",
        "SDL has no descriptors (.sdl): the states of ages and objects are dropped",
        "worldwire uru files import",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("--public-address"), "{said}");
    let keys = |printed: &str| {
        let lines = printed.lines().filter(|line| line.contains(".N ") || line.contains(".X "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let known = keys(&printed);
    let (printed, said) = start_and_stop(&shard, "0.0.0.0:0", || ());
    assert_eq!(known.len(), 6);
    assert_eq!(keys(&printed), known);
    // The address for other machines is not configured.
    assert!(said.contains(
        "clients on other machines will be told to connect to 127.0.0.1; set --public-address"
    ));
    assert!(!said.contains("created a shard"), "{said}");

    // The address that clients use, with a page that they can reach or without any.
    let public = |status: &str| {
        let listen = ["--listen", "0.0.0.0:0", "--public-address", "uru.example.org"];
        let home = folder.path().join(status.replace(':', "-"));
        let words = [&["uru", home.to_str().unwrap()], &listen[..]].concat();
        run_with(&words, status, "-INT", || ())
    };
    let (ini, said) = public("127.0.0.1:0");
    assert!(said.contains("clients connect to uru.example.org:"), "{said}");
    assert!(said.contains("cannot reach the status page"), "{said}");
    assert!(!ini.contains("Server.Status"), "{ini}");
    let (ini, said) = public("0.0.0.0:0");
    assert!(ini.contains("Server.Status \"http://uru.example.org:"), "{ini}");
    assert!(said.contains("get the welcome message from http://uru.example.org:"), "{said}");

    // A shard with a prepared configuration starts at the first attempt.
    let prepared = folder.path().join("prepared");
    std::fs::create_dir(&prepared).unwrap();
    std::fs::write(prepared.join("shard.toml"), "welcome = \"Ours\"\n").unwrap();
    let (ini, said) = start_and_stop(&prepared, "127.0.0.1:0", || ());
    assert!(ini.contains("Server.Auth.N \"") && said.contains("created a shard"), "{said}");
    let text = std::fs::read_to_string(prepared.join("shard.toml")).unwrap();
    assert_eq!(text, "welcome = \"Ours\"\n");
    let (again, said) = start_and_stop(&prepared, "127.0.0.1:0", || ());
    assert_eq!(keys(&again), keys(&ini));
    assert!(!said.contains("created a shard"), "{said}");

    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    for (option, value, wanted) in [
        ("--listen", &*taken, format!("cannot listen on {taken}: ")),
        ("--listen", &*taken, "; choose another address with --listen".to_owned()),
        (
            "--public-address",
            "a b",
            "'a b' for '--public-address <HOST>': must be an IPv4".to_owned(),
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        let output = command.args(["serve", "uru", option, value]).arg(&shard).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(&wanted), "{said}");
    }

    std::fs::write(shard.join("shard.toml"), "listen = 7\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = command.args(["serve", "uru"]).arg(&shard).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("shard.toml: line 1: "), "{said}");
}

#[test]
fn a_lost_configuration_is_not_a_first_start() {
    let folder = tempfile::tempdir().unwrap();
    for (family, file) in [("uru", "shard.toml"), ("ki", "ki.toml")] {
        let home = folder.path().join(family);
        let words = [family, "--listen", "127.0.0.1:0", "--no-status", home.to_str().unwrap()];
        let (_, said) = run(&words, "-TERM", || ());
        assert!(said.contains("created a ") && !said.contains("was missing"), "{said}");
        std::fs::remove_file(home.join(file)).unwrap();
        let (printed, said) = run(&words, "-TERM", || ());
        assert!(said.contains(&format!("{family}: {file} was missing, although")), "{said}");
        assert!(!said.contains("created a ") && !printed.contains("created"), "{said}{printed}");
        assert!(home.join(file).exists());
        let (_, said) = run(&words, "-TERM", || ());
        assert!(!said.contains("was missing"), "{said}");

        // The configuration may have named the database.
        std::fs::remove_file(home.join(file)).unwrap();
        let database = home.read_dir().unwrap().flatten().map(|entry| entry.path());
        let database = database.filter(|path| path.to_string_lossy().contains(".sqlite"));
        database.for_each(|path| std::fs::remove_file(path).unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        let output = command.args(["serve", family]).arg(&home).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("because it names"), "{said}");
        assert!(!home.join(file).exists());
    }
}

#[cfg(unix)]
#[test]
fn a_start_that_cannot_listen_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let existing = folder.path().join("existing");
    std::fs::create_dir(&existing).unwrap();
    for family in ["uru", "ki"] {
        for home in [&folder.path().join(family), &existing] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            command.args(["serve", family, "--listen", &taken]).arg(home);
            assert_eq!(command.output().unwrap().status.code(), Some(2));
        }
        assert!(!folder.path().join(family).exists());
    }
    assert_eq!(existing.read_dir().unwrap().count(), 0);
}

/// If these options were ignored, the server would listen elsewhere.
#[test]
fn options_of_an_open_world_are_refused_with_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("mxo");
    for (option, value, hint) in [
        ("--listen", "127.0.0.1:0", "; use --auth-listen, --margin-listen and --game-listen"),
        ("--key", "random", ""),
        ("--session", "7", ""),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["serve", "mxo"]).arg(&home).args([option, value]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said, format!("worldwire: {option} applies only to --open-world{hint}\n"));
    }
    assert!(!home.exists());
}

#[test]
fn every_server_stops_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    for (family, wanted) in [
        ("uru", "the shard stopped"),
        ("ki", "the login server stopped"),
        ("mxo", "the world stopped"),
    ] {
        let home = folder.path().join(family);
        let mut words = vec![family, "--listen", "127.0.0.1:0"];
        // An open world has no folder. The folder of a server with logins is tested elsewhere.
        words.extend(match family {
            "mxo" => Some("--open-world"),
            _ => home.to_str(),
        });
        let second = || {
            let mut again = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            let output = again.args(["serve", family]).arg(&home).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // The process is named, except on Windows.
            assert!(output.status.code() == Some(2) && said.contains(": in use by "), "{said}");
        };
        let (_, said) = run(&words, "-TERM", || {
            if family != "mxo" {
                second()
            }
        });
        assert!(said.contains(wanted) && said.contains("status page"), "{family}: {said}");
        words.push("--no-status");
        let (_, said) = run(&words, "-TERM", || ());
        assert!(said.contains(wanted) && !said.contains("status page"), "{family}: {said}");
    }
}
