//! `sanitize`: what the new capture must and must not contain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::samples::samples;

/// Standard output, standard error, exit code.
fn run(arguments: &[&str]) -> (Vec<u8>, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = command.current_dir(samples()).args(arguments).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.stdout, err, output.status.code().unwrap())
}

/// A sample, how to read it, and the data that the new capture must not reveal.
struct Case {
    file: &'static str,
    keys: &'static [&'static str],
    data: &'static [&'static str],
    texts: &'static [&'static str],
    bytes: &'static [&'static str],
}

const CASES: [Case; 10] = [
    Case {
        file: "uru-login.pcapng",
        keys: &["--keys", "uru-keys.toml"],
        data: &[],
        texts: &["shorah", "Yeesha", "192.0.2.1", "11111111-1111", "files.example", "10190"],
        bytes: &["a9132248bb2c6ebbf356556aa8020c33f7f6a3db", "ce270000"],
    },
    Case {
        file: "uru-age.pcapng",
        keys: &["--keys", "uru-keys.toml"],
        data: &[],
        texts: &["Yeesha", "Atrus", "Shorah", "192.0.2.1", "11111111-1111", "10190", "10200"],
        bytes: &["ce270000", "d8270000"],
    },
    Case {
        file: "uru-age.pcapng",
        keys: &["--keys", "uru-keys.toml"],
        data: &["--data", "sdl"],
        texts: &["Yeesha", "Atrus", "Shorah", "192.0.2.1", "11111111-1111", "10190", "10200"],
        bytes: &["ce270000", "d8270000"],
    },
    Case {
        file: "uru-games.pcapng",
        keys: &["--keys", "uru-keys.toml"],
        data: &[],
        texts: &["192.0.2.1", "11111111-1111", "10190", "10200"],
        bytes: &["ce270000", "d8270000"],
    },
    Case {
        file: "uru-walk.pcapng",
        keys: &["--keys", "uru-keys.toml"],
        data: &[],
        texts: &["Yeesha", "Atrus", "steps and a lever", "192.0.2.1", "11111111-1111", "10190"],
        bytes: &["ce270000"],
    },
    Case {
        file: "ki-login.pcapng",
        keys: &["--keys", "ki-keys.toml"],
        data: &[],
        texts: &["Merle", "Ashthorn", "192.0.2.1", "made-up key", "D7Ms/g2EHpy14b", "raine"],
        bytes: &["d84cc152948f55c5e458ba00", "9c09a7588fab62a7a566a115"],
    },
    Case {
        file: "ki-server.pcapng",
        keys: &["--keys", "ki-server-keys.toml"],
        data: &[],
        texts: &["Merle", "192.0.2.1", "3f6c9b0d5e7a41c2", "Ef8M301hB+cGEY4"],
        bytes: &["d84ce152948f55c58548ad33"],
    },
    Case {
        file: "mxo-world.pcapng",
        keys: &["--keys", "mxo-keys.toml"],
        data: &[],
        texts: &["Merle", "Ambrose", "hello there", "192.0.2.1"],
        bytes: &["1bf1ddaf1a95af06ed37dd119c48e108"],
    },
    Case {
        file: "mxo-login.pcapng",
        keys: &["--keys", "mxo-login-keys.toml"],
        data: &[],
        texts: &["Merle", "Ambrose", "hacker", "white rabbit", "Whoa", "192.0.2.1"],
        bytes: &[
            // The session's key and ID, the challenge, the server's key, and the user's key.
            "78774a186003cdaf73dfefce516edeac",
            "a794b617",
            "cb6e387de1e6234aa45f4df00a8b62ad",
            "acab5c73d774d63b53214142585ee66f",
            "9c978604af2616fab62fd73ccb05765f",
            // The data encrypted for the server, and the data encrypted with the account's key.
            "27fd4b80afb9f8a49cef1b6f9fce4587",
            "260dbcd9661fc14fec587f145ca53666",
        ],
    },
    Case {
        file: "tera-login.pcapng",
        keys: &[],
        data: &["--data", "tera"],
        texts: &[
            "Elin",
            "Baraka",
            "Wächter",
            "Hello!",
            "Popori",
            "made-up ticket",
            "192.0.2.1",
            "1152921504606846977",
            "\"gameId\":77,",
        ],
        bytes: &[
            "33af161fa11307437232c809",
            "61206d6164652d7570207469636b6574",
            // Game IDs.
            "0100000000000010",
            "4d00000000000000",
        ],
    },
];

fn sanitized(case: &Case, folder: &Path, seed: &str) -> PathBuf {
    let path = folder.join(format!("{seed}.pcapng"));
    let target = path.to_str().unwrap();
    let arguments =
        [&["sanitize", case.file, "-o", target, "--seed", seed], case.keys, case.data].concat();
    let (out, err, code) = run(&arguments);
    assert_eq!((out.as_slice(), code), (&b""[..], 0), "{}: {err}", case.file);
    path
}

fn names(arguments: &[&str]) -> Vec<String> {
    let (out, err, _) = run(&[&["stats", "--json", "--quiet"], arguments].concat());
    let totals: Value = serde_json::from_slice(&out).unwrap_or_else(|why| panic!("{why}: {err}"));
    let names = totals["names"].as_array().unwrap().iter();
    let names = names.map(|row| serde_json::json!([row["name"], row["client"], row["server"]]));
    // The names are sorted by bytes, too, which deflating changes.
    let mut names: Vec<String> = names.map(|row| row.to_string()).collect();
    names.sort();
    names
}

/// Whether bytes contain a text in any encoding that the families use.
fn contains(bytes: &[u8], text: &str) -> bool {
    let (lower, upper) = (text.to_lowercase(), text.to_uppercase());
    let plain = [text, &lower, &upper].map(|text| text.as_bytes().to_vec());
    let wide = [text, &lower, &upper]
        .map(|text| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    let all = plain.into_iter().chain(wide);
    let inverted = |bytes: &Vec<u8>| bytes.iter().map(|byte| !byte).collect();
    let all: Vec<Vec<u8>> = all.flat_map(|one| [inverted(&one), one]).collect();
    all.iter().any(|one| bytes.windows(one.len()).any(|part| part == one))
}

fn hex(digits: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(digit).collect()
}

#[test]
fn names_and_counts_stay() {
    for case in &CASES {
        let folder = tempfile::tempdir().unwrap();
        let path = sanitized(case, folder.path(), "7");
        let new = path.to_str().unwrap();
        let old = names(&[&[case.file], case.keys, case.data].concat());
        // The keys are in the file.
        assert_eq!(names(&[&[new], case.data].concat()), old, "{}", case.file);
        if case.file.starts_with("ki-") {
            // Addresses as text may become longer.
            let others = "message.name != LOGIN.MSG_CHARACTERSELECTED";
            let sizes = ["dissect", "--fields", "message.name,message.length", "--filter", others];
            let old = run(&[&sizes[..], &[case.file], case.keys].concat()).0;
            let new = run(&[&sizes[..], &[new]].concat()).0;
            assert!(old == new && old.len() > 100, "{}", String::from_utf8_lossy(&new));
        }
    }
}

#[test]
fn no_secret_remains_in_any_encoding() {
    for case in &CASES {
        let folder = tempfile::tempdir().unwrap();
        let path = sanitized(case, folder.path(), "7");
        let new = path.to_str().unwrap();
        let file = fs::read(&path).unwrap();
        let (json, ..) = run(&[&["dissect", new, "--json"], case.data].concat());
        let mut plain = vec![file, json];
        let (list, ..) = run(&[&["stats", new, "--conversations", "--json"], case.data].concat());
        let count = String::from_utf8(list).unwrap().lines().count();
        for stream in 0..count {
            for side in ["client", "server"] {
                let stream = stream.to_string();
                let follow = ["follow", new, "--stream", &stream, "--raw", side];
                plain.push(run(&[&follow, case.data].concat()).0);
            }
        }
        assert!(count > 0 && plain[2..].iter().any(|part| !part.is_empty()), "{}", case.file);
        for bytes in &plain {
            for text in case.texts {
                assert!(!contains(bytes, text), "{}: {text}", case.file);
            }
            for secret in case.bytes {
                let secret = (hex(secret), secret.as_bytes());
                let has = |one: &[u8]| bytes.windows(one.len()).any(|part| part == one);
                assert!(!has(&secret.0) && !has(secret.1), "{}: {secret:?}", case.file);
            }
            // The addresses of the packets, in both byte orders.
            for address in [[192, 0, 2, 1], [1, 2, 0, 192], [192, 0, 2, 10], [10, 2, 0, 192]] {
                assert!(!bytes.windows(4).any(|part| part == address), "{}", case.file);
            }
        }
        // The search finds these values in the original capture.
        let (json, ..) = run(&[&["dissect", case.file, "--json"], case.keys, case.data].concat());
        for text in case.texts {
            let is_blob = ["Ashthorn", "raine", "Popori", "made-up ticket"].contains(text);
            assert!(contains(&json, text) || is_blob, "{}: {text}", case.file);
        }
    }
}

#[test]
fn replacements_repeat_only_with_the_same_seed() {
    let (case, folder) = (&CASES[0], tempfile::tempdir().unwrap());
    let [one, other] =
        ["1", "2"].map(|seed| fs::read(sanitized(case, folder.path(), seed)).unwrap());
    let again = tempfile::tempdir().unwrap();
    assert!(one == fs::read(sanitized(case, again.path(), "1")).unwrap());
    assert!(one != other);
    let random = |name: &str| {
        let path = folder.path().join(name);
        let arguments = ["sanitize", case.file, "-o", path.to_str().unwrap()];
        assert_eq!(run(&[&arguments, case.keys].concat()).2, 0);
        fs::read(path).unwrap()
    };
    assert!(random("a.pcapng") != random("b.pcapng"));
}

#[test]
fn a_player_has_one_new_name() {
    let (case, folder) = (&CASES[1], tempfile::tempdir().unwrap());
    let path = sanitized(case, folder.path(), "7");
    let (json, ..) = run(&["dissect", path.to_str().unwrap(), "--json"]);
    let json = String::from_utf8(json).unwrap();
    let value = |line: &str, pointer: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
    };
    let info = json.lines().find_map(|line| value(line, "/fields/playerName")).unwrap();
    let user = "/fields/buffer/message/stream/payload/user";
    let user = json.lines().find_map(|line| value(line, user)).unwrap();
    assert_eq!(info, user);
    assert_eq!(info.len(), "Yeesha".len());
}

/// The ID of a player is also that of the player's node.
#[test]
fn a_player_has_one_new_id_and_ages_keep_their_names() {
    let (case, folder) = (&CASES[0], tempfile::tempdir().unwrap());
    let path = sanitized(case, folder.path(), "7");
    let lines = lines(&[path.to_str().unwrap()]);
    let values = |name: &str, pointer: &str| -> Vec<Value> {
        let named = lines.iter().filter(|line| line["name"] == name);
        named.filter_map(|line| line["fields"].pointer(pointer).cloned()).collect()
    };
    let one = |name: &str, pointer: &str| values(name, pointer).remove(0);
    let id = one("auth.AcctPlayerInfo", "/playerId");
    assert!(id.as_u64().unwrap().ilog2() == 10_190_u32.ilog2() && id != 10_190, "{id}");
    for (name, pointer) in [
        ("auth.AcctSetPlayerRequest", "/playerId"),
        ("auth.VaultFetchNodeRefs", "/nodeId"),
        ("auth.VaultNodeRefsFetched", "/refs/0/parentId"),
        ("auth.VaultNodeFetch", "/nodeId"),
        ("auth.VaultNodeFetched", "/node/NodeId"),
        ("auth.VaultNodeFetched", "/node/PlayerId"),
        ("auth.ScoreGetScores", "/ownerId"),
        ("auth.ScoreGetScoresReply", "/scores/0/ownerId"),
        ("game.JoinAgeRequest", "/playerId"),
    ] {
        assert_eq!(one(name, pointer), id, "{name} {pointer}");
    }
    let children =
        ["0", "1"].map(|at| one("auth.VaultNodeRefsFetched", &format!("/refs/{at}/childId")));
    assert_eq!(values("auth.VaultNodeFetch", "/nodeId")[1..], children);
    assert_ne!(children[0], children[1]);
    for (name, pointer, age) in [
        ("auth.AgeRequest", "/ageName", "Neighborhood"),
        ("auth.GetPublicAgeList", "/ageFilename", "Neighborhood"),
        ("auth.PublicAgeList", "/ages/0/filename", "Neighborhood"),
        ("auth.PublicAgeList", "/ages/0/instanceName", "Hood"),
        ("auth.VaultNodeFetched", "/node/AgeInstName", "Lobby"),
    ] {
        assert_eq!(one(name, pointer), age, "{name} {pointer}");
    }
    assert_ne!(one("auth.PublicAgeList", "/ages/0/userName"), "DRC");
}

/// The messages of a capture as JSON lines.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let (json, err, code) = run(&[&["dissect", "--json"], arguments].concat());
    assert_eq!(code, 0, "{err}");
    let json = String::from_utf8(json).unwrap();
    json.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The auth, margin and world conversations of one login share certificates, a session and a
/// character.
#[test]
fn a_login_of_mxo_stays_one_login() {
    /// The names of all fields and the lengths of texts and lists.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), shape(value)));
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.iter().map(shape).collect(),
            Value::String(text) => Value::from(text.len()),
            _ => Value::Null,
        }
    }
    let (case, folder) = (&CASES[8], tempfile::tempdir().unwrap());
    let path = sanitized(case, folder.path(), "7");
    let old = lines(&[&[case.file], case.keys].concat());
    let new = lines(&[path.to_str().unwrap()]);
    let order = |lines: &[Value]| -> Vec<Value> {
        let line = |line: &Value| {
            let fields =
                if line["name"] == "opened" { Value::Null } else { shape(&line["fields"]) };
            serde_json::json!([line["stream"], line["from"], line["name"], fields])
        };
        lines.iter().map(line).collect()
    };
    assert_eq!(order(&new), order(&old));
    let value = |name: &str, pointer: &str| {
        let of = |lines: &[Value]| {
            let line = lines.iter().find(|line| line["name"] == name).unwrap();
            line["fields"].pointer(pointer).unwrap().clone()
        };
        assert_ne!(of(&new), of(&old), "{name} {pointer}");
        of(&new)
    };
    assert_eq!(
        value("auth.AuthReply", "/fields/success/certificate"),
        value("margin.CertConnectRequest", "/fields/certificate")
    );
    let session = value("margin.ConnectReply", "/fields/sessionId").as_u64().unwrap();
    let (keys, ..) = run(&["secrets", "export", path.to_str().unwrap(), "-o", "-"]);
    let keys = String::from_utf8(keys).unwrap();
    // The margin channel and the world have the same key.
    assert!(keys.contains(&format!("id = {session:#x}")), "{keys}");
    let own = keys.lines().filter(|line| line.starts_with("key")).collect::<Vec<_>>();
    assert!(!own.is_empty() && own.iter().all(|key| *key == own[0]), "{keys}");
    let id = value("margin.LoadCharacterReply", "/fields/characterId");
    assert_eq!(id, value("margin.ClaimCharacterNameReply", "/fields/characterId"));
    assert_eq!(id, value("setup.Hello", "/characterUid"));
}

/// Part of a login would be useless, and must not look like a different login.
#[test]
fn a_login_without_its_key_is_omitted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    let target = path.to_str().unwrap();
    let (_, err, code) = run(&["sanitize", "mxo-login.pcapng", "-o", target]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("omitted: conversation 1: the messages after the challenge"), "{err}");
    assert!(err.contains("no key was given"), "{err}");
    let names: Vec<Value> = lines(&[target]).iter().map(|line| line["name"].clone()).collect();
    let of =
        |kind: &str| names.iter().filter(|name| name.as_str().unwrap().starts_with(kind)).count();
    assert_eq!([of("auth."), of("margin."), of("game.")], [6, 0, 0], "{names:?}");
}

#[test]
fn what_cannot_be_read_is_omitted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    let target = path.to_str().unwrap();
    // Without keys, encrypted streams cannot be read.
    let (_, err, code) = run(&["sanitize", "uru-login.pcapng", "-o", target]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("omitted: "), "{err}");
    let (json, ..) = run(&["dissect", target, "--json", "--quiet"]);
    let json = String::from_utf8(json).unwrap();
    assert!(!json.contains("AcctLoginRequest"), "{json}");
    let file = fs::read(&path).unwrap();
    let old = fs::read(samples().join("uru-login.pcapng")).unwrap();
    // No part of the encrypted streams is in the new file.
    let shared = |part: &[u8]| file.windows(part.len()).any(|other| other == part);
    let (stream, ..) =
        run(&["follow", "uru-login.pcapng", "--stream", "2", "--raw", "client", "--wire"]);
    // The connection setup precedes the encrypted bytes.
    let sealed = &stream[120..];
    assert!(sealed.chunks_exact(16).any(|part| old.windows(16).any(|other| part == other)));
    assert!(sealed.chunks_exact(16).all(|part| !shared(part)));
}

#[test]
fn wrong_targets_are_refused() {
    for (arguments, why) in [
        (&["sanitize", "uru-login.pcapng", "-o", "x.pcap"][..], "needs the extension .pcapng"),
        (&["sanitize", "-", "-o", "x.pcapng"], "reads the capture twice"),
        (&["sanitize", "nothing.pcapng", "-o", "x.pcapng"], "no such file"),
        (
            &["sanitize", "ki-login.pcapng", "-o", "../samples/ki-login.pcapng", "--force"],
            "this is the input itself; choose another output file",
        ),
    ] {
        let (_, err, code) = run(arguments);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(why), "{err}");
    }
}
