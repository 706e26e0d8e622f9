//! An MxO world started as a user would start it, and clients in it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A world that is stopped when the test ends. Its log's pipe stays open, so that it can keep
/// writing.
struct Serving {
    child: Child,
    address: String,
    status: String,
    /// What the server prints until it is ready.
    start: String,
    log: BufReader<ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn worldwire(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(words);
    command
}

fn serve(words: &[&str]) -> Serving {
    serve_at("127.0.0.1:0", words)
}

fn serve_at(address: &str, words: &[&str]) -> Serving {
    let mut command = worldwire(&["serve", "mxo", "--open-world", "--listen", address]);
    command.args(["--status", "127.0.0.1:0"]).args(words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C") {
        assert!(log.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let behind = |what: &str| {
        let rest = said.split(what).nth(1).unwrap();
        rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect::<String>()
    };
    let (address, status) = (behind("connect to "), behind("http://"));
    Serving { child, address, status, start: said, log }
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn visit(serving: &Serving, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = worldwire(&["client", "mxo", &serving.address]);
    text(&command.args(words).output().unwrap())
}

fn scene(folder: &Path, lines: &str) -> String {
    let path = folder.join("scene.toml");
    fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

const SCENE: &str = "\
[[object]]\ngoobj = 414\nat = [100.0, 0.0, 0.0]\ncount = 20\nstep = [50.0, 0.0, 0.0]\n\
values = { CurrentState = 0x838 }\n\
cycle = { property = 'CurrentState', values = [0x834, 0x838], every = 0.3 }\n\
[[object]]\ngoobj = 599\nat = [0.0, 0.0, 300.0]\ncount = 20\nstep = [50.0, 0.0, 0.0]\n\
path = [[0.0, 0.0, 0.0], [300.0, 0.0, 0.0]]\nspeed = 150.0\n";

#[test]
fn clients_match_the_server_on_a_bad_network() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("keys.toml");
    let scene = scene(folder.path(), SCENE);
    let mut serving = serve(&["--scene", &scene, "--secrets", secrets.to_str().unwrap()]);
    let keys = fs::read_to_string(&secrets).unwrap();
    let wanted = "[[mxo.session]]\nid = 0x1\nkey = \"000102030405060708090a0b0c0d0e0f\"\n";
    assert_eq!(keys, wanted);
    assert_eq!(fs::metadata(&secrets).unwrap().permissions().mode() & 0o777, 0o600);

    let compare = format!("--compare={}", serving.status);
    let rough = ["--loss", "20", "--duplicate", "10", "--reorder", "20", "--delay", "5"];
    let all = ["--count", "3", "--seconds", "2", &compare, "--views"];
    let (code, out, err) = visit(&serving, &[&rough[..], &all].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("3 clients see exactly what the server has") && err.contains("were lost"),
        "{err}"
    );
    // Doors, people, and the three clients.
    assert_eq!(out.matches("\nview ").count() + 1, 43, "{out}");
    assert!(err.contains("3 clients, 129 views,"), "{err}");

    let words = ["--seconds", "0", "--still", "--views", "--json", "--character", "7"];
    let (code, out, err) = visit(&serving, &words);
    assert!(code == Some(0) && out.starts_with("{\"character\":7,\"views\":["), "{out} {err}");
    // Nothing listens on port 1, so no status page answers.
    let (code, _, err) = visit(&serving, &["--seconds", "0", "--compare=127.0.0.1:1"]);
    assert!(code == Some(2) && err.contains("the status page at 127.0.0.1:1: "), "{err}");

    let id = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(serving.child.wait().unwrap().success());
    let mut said = String::new();
    while serving.log.read_line(&mut said).unwrap() > 0 {}
    assert!(said.contains("the world stopped after "), "{said}");
}

#[test]
fn objects_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (lines, objects) in
        [(SCENE, "40 objects"), ("[[object]]\ngoobj = 414\nat = [0.0, 0.0, 0.0]\n", "1 object")]
    {
        let serving = serve(&["--scene", &scene(folder.path(), lines)]);
        let start = &serving.start;
        assert!(start.contains(&format!("worldwire: {objects}; clients connect to ")), "{start}");
    }
}

#[test]
fn clients_join_in_parallel() {
    let folder = tempfile::tempdir().unwrap();
    let serving = serve(&["--scene", &scene(folder.path(), SCENE)]);
    let start = std::time::Instant::now();
    let (code, _, err) = visit(&serving, &["--count", "40", "--delay", "300", "--seconds", "0"]);
    assert!(code == Some(0) && err.contains("40 clients, "), "{err}");
    // If the clients ran one after another, each would wait for at least three delays.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_client_reconnects_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(folder.path(), SCENE);
    let mut serving = serve(&["--scene", &scene]);
    let address = serving.address.clone();
    let mut client = worldwire(&["client", "mxo", &address, "--seconds", "6", "--character", "7"]);
    let mut client = client.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(client.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("client entered") {
        assert!(serving.log.read_line(&mut said).unwrap() > 0, "{said}");
    }
    // By then, the world has been sent to the client.
    assert_eq!(visit(&serving, &["--seconds", "1"]).0, Some(0));
    drop(serving);
    let mut heard = String::new();
    log.read_line(&mut heard).unwrap();
    assert!(heard.contains("client 7: the connection ended: lost; reconnecting"), "{heard}");
    let _again = serve_at(&address, &["--scene", &scene]);
    while log.read_line(&mut heard).unwrap() > 0 {}
    assert!(client.wait().unwrap().success() && heard.contains("1 reconnection"), "{heard}");
}

#[test]
fn a_client_without_the_servers_tables_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("lamp.objects");
    let lamp = "worldwire-mxo-objects 1\n\nclass lamp mine\n  create:\n    Position LTVector3d\n\
                \x20   Brightness uint8\n  update plain:\n    Brightness\n\n\
                goobj 60001 lamp Lamp Post\n  source: made up\n";
    fs::write(&tables, lamp).unwrap();
    let tables = tables.to_str().unwrap();
    let lamps = "[[object]]\ngoobj = 'Lamp Post'\nat = [100.0, 0.0, 100.0]\ncount = 3\n";
    let serving = serve(&["--scene", &scene(folder.path(), lamps), "--data", tables]);
    let with = ["--seconds", "1", "--data", tables, "--views"];
    let (code, out, err) = visit(&serving, &with);
    assert!(code == Some(0) && out.contains("Lamp Post (60001)"), "{out} {err}");
    let (code, _, err) = visit(&serving, &["--seconds", "1"]);
    assert!(code == Some(1) && err.contains("could not be read; the first: "), "{err}");
    assert!(err.contains("60001") && err.contains("--data must name"), "{err}");
}

#[test]
fn unusable_options_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |words: &[&str]| {
        let (code, out, err) =
            text(&worldwire(&["serve", "mxo", "--open-world"]).args(words).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        err
    };
    let err = fails(&["--listen", "0.0.0.0:0"]);
    assert!(
        err.contains("a session on other machines needs its own key; --key random generates one"),
        "{err}"
    );
    // Warnings come before the error.
    let known = ["--key", "000102030405060708090a0b0c0d0e0f", "--status", "0.0.0.0:0"];
    let err = fails(&[&["--listen", "0.0.0.0:0", "--scene", "none.toml"][..], &known].concat());
    assert!(err.contains("--key: this key is well known"), "{err}");
    assert!(err.contains("--status: the page has no password"), "{err}");
    let err = fails(&["--key", "00"]);
    assert!(err.ends_with("--key: needs 32 hexadecimal digits\n"), "{err}");
    let missing = folder.path().join("none.toml");
    assert!(fails(&["--scene", missing.to_str().unwrap()]).contains("none.toml"));
    let nowhere = scene(folder.path(), "start = [nan, 0.0, 0.0]\n");
    let err = fails(&["--scene", &nowhere, "--listen", "127.0.0.1:0"]);
    assert!(err.contains("scene.toml: start: coordinates must be at most 1000000, not"), "{err}");
    let odd = scene(folder.path(), "[[object]]\ngoobj = 9\nat = [0.0, 0.0, 0.0]\n");
    let err = fails(&["--scene", &odd]);
    assert!(err.contains("scene.toml: object 1: goobj: the class of 9 is unknown"), "{err}");
    let walks =
        "[[object]]\ngoobj = 414\nat = [0.0, 0.0, 0.0]\npath = [[1.0, 0.0, 0.0]]\nspeed = 1.0\n";
    let err = fails(&["--scene", &scene(folder.path(), walks), "--listen", "127.0.0.1:0"]);
    let wanted = "scene.toml: object 1: path: objects of class door364 cannot walk";
    assert!(err.contains(wanted), "{err}");
    let (code, _, err) =
        text(&worldwire(&["client", "mxo", "127.0.0.1:1", "--loss", "101"]).output().unwrap());
    assert!(code == Some(2) && err.contains("needs a number from 0 to 100"), "{err}");
    let (code, _, err) = text(&worldwire(&["client", "mxo", "127.0.0.1:1"]).output().unwrap());
    assert!(code == Some(2) && err.contains("127.0.0.1:1: "), "{err}");
}
