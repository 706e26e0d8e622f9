//! `worldwire proxy mxo` between the project's Matrix Online clients and server, from the login to
//! the game.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
use worldwire_mxo::file::format_private_key;

use crate::mxo_login::{Serving, run, serve, worldwire, write_signing_key};
use crate::proxy::{Running, messages, names, port, printed};

/// A server with accounts, and a proxy in front of it.
struct Proxied {
    /// Kept until the test ends.
    _serving: Serving,
    proxy: Running,
    auth: String,
    margin: String,
    game: String,
    /// The ports of the servers.
    inside: [String; 3],
}

fn start(home: &Path, words: &[&str]) -> Proxied {
    write_signing_key(home);
    let serving = serve(home, &[]);
    let server = home.to_str().unwrap();
    for name in ["neo", "trinity"] {
        let (code, _, err) = run(&["mxo", "account", "add", name, "--server", server]);
        assert_eq!(code, Some(0), "{err}");
    }
    let any = "127.0.0.1:0";
    let to = ["proxy", "mxo", "--to", &serving.game, "--margin", &serving.margin];
    let auth = ["--auth", &serving.auth, "--auth-at", any, "--listen", any];
    let proxy = Running::start(home, &[&to[..], &auth, words].concat());
    let after = |what: &str| {
        let rest = proxy.said.split(what).nth(1).unwrap_or_else(|| panic!("{}", proxy.said));
        rest.chars().take_while(|it| it.is_ascii_digit() || ".:".contains(*it)).collect::<String>()
    };
    let (auth, margin) = (after("auth connections to "), after("margin connections to "));
    let game = proxy.address();
    let inside = [&serving.auth, &serving.margin, &serving.game].map(|it| port(it).to_owned());
    Proxied { _serving: serving, proxy, auth, margin, game, inside }
}

impl Proxied {
    fn words<'w>(&'w self, account: &'w str, steps: &'w str) -> Vec<&'w str> {
        let mut words = vec!["client", "mxo", &self.auth, "--margin", &self.margin];
        words.extend(["--game", &self.game, "--account", account, "--still"]);
        words.extend(steps.split(' '));
        words
    }

    fn client(&self, account: &str, steps: &str) -> (Option<i32>, String, String) {
        run(&self.words(account, steps))
    }

    /// Starts a client that keeps running, and waits until it has printed this line.
    fn playing(&self, account: &str, steps: &str, until: &str) -> Playing {
        let mut command = worldwire(&self.words(account, steps));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut playing = Playing { child, lines };
        playing.see(until);
        playing
    }
}

/// A client that is stopped when the test ends.
struct Playing {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Playing {
    fn see(&mut self, wanted: &str) {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            assert!(self.lines.read_line(&mut seen).unwrap() > 0, "{seen}");
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops the proxy and checks that its recording dissects completely. Returns the messages on both
/// sides of it, for auth, margin and game.
fn recorded(home: &Path, proxied: Proxied) -> [[Vec<(String, Json)>; 2]; 3] {
    let Proxied { proxy, auth, margin, game, inside, .. } = proxied;
    proxy.stop();
    let doubts = ["dissect", "evening.pcapng", "--brief", "--filter", "gap or problem or warning"];
    assert_eq!(printed(home, &doubts), "");
    let sealed = ["dissect", "evening.pcapng", "--filter", "margin.Encrypted"];
    assert_eq!(printed(home, &sealed), "");
    let outside = [&auth, &margin, &game].map(|it| port(it).to_owned());
    [(0, "auth."), (1, "margin."), (2, "game.")].map(|(channel, prefix)| {
        [&outside[channel], &inside[channel]].map(|port| {
            // The proxy uses one port number for the margin server and for the game.
            let mut messages = messages(home, "evening.pcapng", port);
            messages.retain(|(name, _)| name.starts_with(prefix));
            messages
        })
    })
}

/// The rules of `docs/proxy.md` that change a character's name.
fn rename() -> &'static str {
    let page = include_str!("../../../../docs/proxy.md");
    let (_, rest) = page.split_once("name in transit:\n\n```text\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn players_log_in_and_chat_through_a_proxy_with_the_servers_key() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let loads = "when margin.LoadCharacterRequest { log \"loads a character\"; count \"loads\" }";
    fs::write(home.join("my.rules"), format!("{}{loads}\n", rename())).unwrap();
    let words = ["--server-key", "auth.pem", "--record", "evening.pcapng", "--rules", "my.rules"];
    let mut proxied = start(home, &words);
    let listens = "login + create Trinity + enter + emote Bow + wait 60";
    let mut listens = proxied.playing("trinity", listens, "Trinity plays Bow");
    let says = "login + create Neo + enter + say Whoa. + wait 0.3";
    let (code, out, err) = proxied.client("neo", says);
    assert_eq!(code, Some(0), "{out} {err}");
    listens.see("Neo says: Whoa.");
    // The name is changed only in transit.
    let (code, out, err) = proxied.client("neo", "login + list");
    assert!(code == Some(0) && out.ends_with("  Thomas\n"), "{out} {err}");
    let (code, out, err) = proxied.client("neo", "login + load Thomas");
    assert_eq!(code, Some(0), "{out} {err}");
    proxied.proxy.hear("loads a character");
    drop(listens);
    let counts = printed(home, &["proxy", "ctl", "counts"]);
    assert!(counts.contains("loads") && counts.contains('1'), "{counts}");
    let channels = recorded(home, proxied);
    for [outside, inside] in &channels {
        assert!(!outside.is_empty());
        assert_eq!(names(outside), names(inside));
    }
    let [auth, margin, _] = &channels;
    let differing = |[outside, inside]: &[Vec<(String, Json)>; 2]| {
        outside.iter().filter(|message| !inside.contains(message)).count()
    };
    // Only the reply with a character differs.
    assert_eq!((differing(auth), differing(margin)), (2, 0));
}

#[test]
fn a_proxys_own_key_stands_in_for_the_servers() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let words = ["--signing-key", "signing.pem", "--record", "evening.pcapng"];
    let proxied = start(home, &words);
    assert!(proxied.proxy.said.contains("clients need the public key proxy/pubkey.dat"));
    let mode = fs::metadata(home.join("proxy/auth.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let key = home.join("proxy/pubkey.dat");
    let own = format!("--pubkey {} ", key.to_str().unwrap());
    let (code, out, err) =
        proxied.client("neo", &format!("{own}login + create Neo + enter + emote Bow + wait 0.6"));
    assert_eq!(code, Some(0), "{out} {err}");
    assert!(out.contains("Neo plays Bow"), "{out}");
    for [outside, inside] in &recorded(home, proxied) {
        assert!(!outside.is_empty());
        assert_eq!(names(outside), names(inside));
    }
}

/// The login of a client that has the server's own public key is forwarded unread.
#[test]
fn clients_that_trust_the_server_itself_pass_unread() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let words = ["--signing-key", "signing.pem", "--server-pubkey", "pubkey.dat"];
    let mut proxied = start(home, &words);
    let key = home.join("pubkey.dat");
    let play = format!("--pubkey {} login + create Neo + enter", key.to_str().unwrap());
    let (code, out, err) = proxied.client("neo", &play);
    assert_eq!(code, Some(0), "{out} {err}");
    proxied.proxy.hear("the request is not encrypted with the given key");
    // The proxy reads the login of a client that has its key.
    let key = home.join("proxy/pubkey.dat");
    let play = format!("--pubkey {} login + load Neo", key.to_str().unwrap());
    let (code, out, err) = proxied.client("neo", &play);
    assert_eq!(code, Some(0), "{out} {err}");
}

/// Without the right key, the login is forwarded and stays encrypted.
#[test]
fn another_servers_key_reads_nothing_and_stops_nobody() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let other = PrivateKey::generate(KeyUse::Server, &mut Random::new([4; 32])).unwrap();
    let file = home.join("other.pem");
    fs::write(&file, format_private_key(&other).unwrap().as_bytes()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut proxied = start(home, &["--server-key", "other.pem"]);
    let (code, out, err) = proxied.client("neo", "login + create Neo + enter");
    assert_eq!(code, Some(0), "{out} {err}");
    for wanted in [
        "the request is not encrypted with the given key",
        "the account has not logged in through this relay",
        "the messages after the challenge are encrypted, and no key was given",
        "are encrypted, and no key was given; supply the session's key",
    ] {
        assert!(
            proxied.proxy.said.contains(wanted) || {
                proxied.proxy.hear(wanted);
                true
            }
        );
    }
}

/// Truncated, unrelated and endless input on both channels, while others play.
#[test]
fn hostile_clients_of_a_proxy_stop_nobody() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut proxied = start(home, &["--server-key", "auth.pem"]);
    let mut open = Vec::new();
    let ports = [proxied.auth.clone(), proxied.margin.clone()];
    for address in &ports {
        for _ in 0..4 {
            // A connection on which nothing is sent.
            open.push(TcpStream::connect(address).unwrap());
        }
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0; 64],
            &[3, 0xee, 1, 2],
            // A length without a body and a certificate without a signature.
            &[0xff, 0xff, 6],
            &[&[0x81, 0x3b, 1, 3, 0, 0x36, 1][..], &[7; 310]].concat(),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            // The server closes connections that it cannot read.
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        let mut flood = TcpStream::connect(address).unwrap();
        let message = [5, 0x77, 1, 2, 3, 4].repeat(2_000);
        let _ = flood.write_all(&[&[9, 6, 1, 0, 7, 0, 4, 0, 0, 0][..], &message].concat());
        open.push(flood);
    }
    let (code, out, err) = proxied.client("neo", "login + create Neo + enter");
    assert_eq!(code, Some(0), "{out} {err}");
    for wanted in [
        "wanted a body of at least 1 byte, found none",
        "wanted the beginning of a login, found a different message",
        "wanted a whole message, found 18 bytes of one",
        "the account has not logged in through this relay",
    ] {
        proxied.proxy.hear(wanted);
    }
}

#[test]
fn keys_of_a_proxy_are_checked_when_it_starts() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let refused = |words: &[&str]| {
        let to = ["proxy", "mxo", "--to", "127.0.0.1:9", "--auth", "127.0.0.1:9"];
        let output = crate::proxy::worldwire(home, &[&to[..], words].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["--server-key", "none.pem"]);
    assert!(said.contains("none.pem: no such file"), "{said}");
    let said = refused(&["--server-key", "a.pem", "--signing-key", "b.pem"]);
    assert!(said.contains("cannot be used with"), "{said}");
    let said = refused(&["--server-pubkey", "pubkey.dat"]);
    assert!(said.contains("--signing-key"), "{said}");
    // A signing key is not generated.
    let said = refused(&["--signing-key", "none.pem"]);
    assert!(said.contains("none.pem: no such file") && !home.join("none.pem").exists());
    write_signing_key(home);
    let said = refused(&["--server-key", "signing.pem"]);
    assert!(said.contains("a server key has 1024 bits, but this key has 2048"), "{said}");
}
