//! A Matrix Online server with logins, run as a user would run it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use worldwire_core::value::parse_hex;
use worldwire_mxo::crypt::{KeyUse, PrivateKey};
use worldwire_mxo::file::format_private_key;

const PASSWORD: &str = "white rabbit";

/// A server that is stopped when the test ends. Its log's pipe stays open, so that it can keep
/// writing.
pub(crate) struct Serving {
    child: Child,
    pub(crate) auth: String,
    pub(crate) margin: String,
    pub(crate) game: String,
    status: String,
    /// What the server prints until it is ready.
    start: String,
    _log: BufReader<ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn worldwire(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(words).env("WORLDWIRE_PASSWORD", PASSWORD);
    command
}

/// Exit code, output, and messages.
pub(crate) fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = worldwire(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Writes the signing key of the conformance vectors, because generating one is slow.
pub(crate) fn write_signing_key(folder: &Path) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mxo-login/keys.json");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let number = |part: &str| parse_hex(json["signing_2048"][part].as_str().unwrap()).unwrap();
    let key = PrivateKey::from_exponent(KeyUse::Signing, &number("n"), &number("d")).unwrap();
    let file = folder.join("signing.pem");
    fs::File::create(&file)
        .unwrap()
        .write_all(format_private_key(&key).unwrap().as_bytes())
        .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn serve(folder: &Path, words: &[&str]) -> Serving {
    let any = "127.0.0.1:0";
    let mut command = worldwire(&["serve", "mxo", folder.to_str().unwrap(), "--status", any]);
    command.args(["--auth-listen", any, "--margin-listen", any, "--game-listen", any]);
    let mut child =
        command.args(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut start = String::new();
    while !start.contains("Ctrl-C") {
        assert!(log.read_line(&mut start).unwrap() > 0, "{start}");
    }
    let after = |what: &str| {
        let rest = start.split(what).nth(1).unwrap();
        rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect::<String>()
    };
    let (auth, margin, game) = (after("auth on "), after("margin on "), after("UDP "));
    let status = after("http://");
    Serving { child, auth, margin, game, status, start, _log: log }
}

impl Serving {
    /// Runs a client with an account.
    fn client(&self, account: &str, words: &[&str]) -> (Option<i32>, String, String) {
        let mut all = vec!["client", "mxo", &self.auth, "--margin", &self.margin];
        all.extend(["--game", &self.game, "--account", account, "--still"]);
        all.extend(words);
        run(&all)
    }
}

#[test]
fn players_log_in_and_play() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    write_signing_key(home);
    let secrets = home.join("keys.toml");
    let serving = serve(home, &["--secrets", secrets.to_str().unwrap(), "--name", "Zion"]);
    assert!(
        serving.start.contains("created a server in") && serving.start.contains("Zion: auth on")
    );
    assert!(serving.start.contains("clients need the new"), "{}", serving.start);
    for file in ["auth.pem", "server.key", "mxo.toml", "keys.toml"] {
        let mode = fs::metadata(home.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let server = ["--server", home.to_str().unwrap()];
    let account = |words: &[&str]| run(&[&["mxo", "account"], words, &server].concat());
    for name in ["neo", "smith"] {
        let (code, _, err) = account(&["add", name]);
        assert!(code == Some(0) && err.contains("account created"), "{err}");
    }
    let (code, _, err) = account(&["add", "NEO"]);
    assert!(code == Some(1) && err.contains("already exists"), "{err}");

    let play = "login + create Neo + enter + say Whoa. + emote Bow + wait 0.6 + leave";
    let words: Vec<_> = play.split(' ').collect();
    let (code, out, err) = serving.client("neo", &words);
    assert_eq!(code, Some(0), "{out} {err}");
    assert!(out.contains("logged in as user 1\ncreated Neo with ID 1\n"), "{out}");
    assert!(out.contains("Neo plays Bow\n"), "{out}");
    let keys = fs::read_to_string(&secrets).unwrap();
    assert!(keys.starts_with("[[mxo.session]]\nid = 0x"), "{keys}");

    let (code, out, _) = serving.client("neo", &["login", "+", "list"]);
    assert!(code == Some(0) && out.ends_with("1  Neo\n"), "{out}");
    let (code, _, err) = serving.client("smith", &["login", "+", "create", "neo"]);
    assert!(code == Some(1) && err.contains("NameInUse"), "{err}");
    let (_, out, _) = account(&["list"]);
    assert_eq!(out, "neo\n  1  Neo\nsmith\n");
    account(&["ban", "smith"]);
    let (code, _, err) = serving.client("smith", &["login"]);
    assert!(code == Some(1) && err.contains("Banned"), "{err}");

    // Many clients run at the same time.
    let words =
        ["--count", "4", "login", "+", "create", "Clone{}", "+", "enter", "+", "wait", "0.2"];
    account(&["add", "clone"]);
    let (code, out, err) = serving.client("clone", &words);
    assert!(code == Some(0) && out.starts_with("4 clients in "), "{out} {err}");
    // The clients' views match the server's, despite a bad network.
    let words = "--count 3 --loss 10 --delay 20 login + load Clone{} + enter + wait 1";
    let compare = format!("--compare={}", serving.status);
    let words: Vec<_> = [&*compare].into_iter().chain(words.split(' ')).collect();
    let (code, out, err) = serving.client("clone", &words);
    assert!(code == Some(0) && err.contains("3 clients see exactly what"), "{out} {err}");
    let sky = |words: &[&str]| run(&[&["mxo", "sky"], words, &server].concat());
    let (code, _, err) = sky(&["bluesky1"]);
    assert!(code == Some(0) && err.contains("bluesky1: set as the weather"), "{err}");
    let (code, _, err) = sky(&["a\nb"]);
    assert!(code == Some(1) && err.contains("the weather must have"), "{err}");
    let (code, out, err) = serving
        .client("neo", &"login + load Neo + enter + wait 0.2".split(' ').collect::<Vec<_>>());
    assert!(
        code == Some(0) && out.contains("loading district 1; weather: bluesky1\n"),
        "{out} {err}"
    );
    let character = |words: &[&str]| run(&[&["mxo", "character"], words, &server].concat());
    let (code, _, err) = character(&["delete", "clone3", "--yes"]);
    assert!(code == Some(0) && err.contains("deleted"), "{err}");
    let (_, out, _) = character(&["list"]);
    assert!(out.contains("Clone2  (clone)") && !out.contains("Clone3"), "{out}");

    let key = home.join("client.dat");
    let pubkey = ["mxo", "keys", "pubkey", "--output", key.to_str().unwrap()];
    let (code, _, err) = run(&[&pubkey[..], &server].concat());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(fs::read(&key).unwrap(), fs::read(home.join("pubkey.dat")).unwrap());
    let trusting = ["--pubkey", key.to_str().unwrap(), "login"];
    assert_eq!(serving.client("neo", &trusting).0, Some(0));
}

#[test]
fn a_waiting_client_prints_at_once_and_notices_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    write_signing_key(home);
    let serving = serve(home, &[]);
    let server = ["--server", home.to_str().unwrap()];
    let account = |words: &[&str]| run(&[&["mxo", "account"], words, &server].concat());
    assert_eq!(account(&["add", "neo"]).0, Some(0));
    let play = "login + create Neo + enter + emote Bow + wait 30 + leave";
    let mut command = worldwire(&["client", "mxo", &serving.auth, "--margin", &serving.margin]);
    command.args(["--game", &serving.game, "--account", "neo", "--still"]).args(play.split(' '));
    let mut client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "Neo plays Bow"));
    let (code, _, err) = account(&["kick", "neo"]);
    assert_eq!(code, Some(0), "{err}");
    let last = lines.last();
    assert_eq!(last.as_deref(), Some("the server announces: An operator has disconnected you."));
    let output = client.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("wait: the server ended the session"), "{err}");
}

#[test]
fn a_killed_server_loses_no_acknowledged_character() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    write_signing_key(home);
    let mut serving = serve(home, &[]);
    let server = home.to_str().unwrap();
    let (code, _, err) = run(&["mxo", "account", "add", "neo", "--server", server]);
    assert_eq!(code, Some(0), "{err}");
    let (code, out, err) = serving.client("neo", &["login", "+", "create", "First"]);
    assert_eq!(code, Some(0), "{out} {err}");
    // Characters are created until the server is killed between two creations.
    let create = "login + create Second + create Third + create Fourth + create Fifth + wait 60";
    let mut command = worldwire(&["client", "mxo", &serving.auth, "--margin", &serving.margin]);
    command.args(["--account", "neo"]).args(create.split(' '));
    let mut client = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut acknowledged = vec!["First".to_owned()];
    for line in lines.by_ref().map_while(Result::ok) {
        if let Some(created) = line.strip_prefix("created ") {
            acknowledged.push(created.split(' ').next().unwrap().to_owned());
        }
        if acknowledged.len() == 4 {
            break;
        }
    }
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    client.kill().unwrap();
    client.wait().unwrap();

    let serving = serve(home, &[]);
    assert!(!serving.start.contains("created a server"), "{}", serving.start);
    let (code, out, err) = serving.client("neo", &["login", "+", "list"]);
    assert_eq!(code, Some(0), "{err}");
    for handle in &acknowledged {
        assert!(out.contains(&format!("  {handle}\n")), "{handle}: {out}");
    }
    assert_eq!(acknowledged.len(), 4);
}

#[test]
fn options_of_the_other_kind_are_refused() {
    for words in [
        &["serve", "mxo", "--open-world", "--auth-listen", "127.0.0.1:1"][..],
        &["serve", "mxo", "--open-world", "folder"],
        &["serve", "mxo", "--listen", "127.0.0.1:1"],
        &["serve", "mxo", "--key", "random"],
        &["client", "mxo", "127.0.0.1", "login"],
        &["client", "mxo", "--account", "neo", "--session", "3"],
    ] {
        assert_eq!(run(words).0, Some(2), "{words:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let (code, _, err) = run(&["mxo", "account", "list", "--server", home]);
    assert!(code == Some(2) && err.contains("`worldwire serve mxo` creates one"), "{err}");
    let (code, _, err) = run(&["mxo", "keys", "pubkey", "--server", home]);
    assert!(code == Some(2) && err.contains("no public key"), "{err}");
    let (code, _, err) = run(&["mxo", "sky", "bluesky1", "--server", home]);
    assert!(code == Some(2) && err.contains("`worldwire serve mxo` creates one"), "{err}");
    let (code, _, err) = run(&["client", "mxo", "127.0.0.1", "--account", "neo", "fly"]);
    assert!(code == Some(2) && err.contains("unknown step `fly`"), "{err}");
}
