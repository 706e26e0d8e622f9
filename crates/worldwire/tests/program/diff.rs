//! `diff`: captures, messages and files.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::samples::{samples, worldwire as run};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const KEYS: [&str; 2] = ["--keys", "uru-keys.toml"];

#[test]
fn equal_inputs_have_no_differences() {
    for arguments in [
        &["uru-login.pcapng", "uru-login.pcapng", "--keys", "uru-keys.toml"][..],
        &["tera-login.pcapng", "tera-login.pcapng", "--data", "tera"],
        &["mxo-world.pcapng", "mxo-world.pcapng", "--keys", "mxo-keys.toml"],
        &["ki-login.pcapng", "ki-login.pcapng"],
        &["ki-login.pcapng:3", "ki-login.pcapng:3"],
        &["ki-zone.wad", "ki-zone.wad", "--types", "ki-types.json"],
        &["ki-types.json", "ki-types.json"],
        &["ki-messages", "ki-messages"],
        &["tera/definitions", "tera/definitions"],
        &["tera/map/protocol.999001.map", "tera/map/protocol.999001.map"],
    ] {
        let (out, err, code) = run(&[&["diff"], arguments].concat());
        let is_titled = out.contains("have no differences");
        assert!(out.is_empty() || is_titled, "{arguments:?}: {out}");
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    }
}

/// Two captures with the same messages, most of which differ.
fn two(folder: &Path) -> [String; 2] {
    ["1", "2"].map(|seed| {
        let path = folder.join(format!("{seed}.pcapng")).to_str().unwrap().to_owned();
        let sanitize = ["sanitize", "uru-login.pcapng", "-o", &path, "--seed", seed];
        assert_eq!(run(&[&sanitize[..], &KEYS].concat()).2, 0);
        path
    })
}

#[test]
fn changed_messages_are_listed_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = &two(folder.path());
    let (out, err, code) = run(&["diff", old, new, "--json"]);
    assert_eq!(code, 1, "{err}");
    let changes = lines(&out);
    assert!(changes.iter().all(|change| change["change"] == "changed"), "{out}");
    let login = changes.iter().find(|change| change["name"] == "auth.AcctLoginRequest").unwrap();
    assert_eq!(login["from"], "client");
    let numbers = login["messages"].as_array().unwrap();
    assert_eq!(numbers[0], numbers[1]);
    let paths: Vec<&Value> =
        login["fields"].as_array().unwrap().iter().map(|field| &field["path"]).collect();
    assert_eq!(paths, ["accountName", "challengeHash"]);

    let (text, ..) = run(&["diff", old, new, "--filter", "auth.AcctLoginRequest"]);
    let mut text = text.lines();
    assert!(text.next().unwrap().starts_with("#2  uru  10."), "{text:?}");
    assert_eq!(text.next(), Some("~ 1  client  auth.AcctLoginRequest"));
    assert!(text.next().unwrap().starts_with("    accountName: \""));
    assert!(text.next().unwrap().starts_with("    challengeHash: {\"$hex\":\""));
    assert_eq!(text.next(), None);

    // Without these fields, the messages are the same.
    let ignore = "AcctLoginRequest.accountName,challenge*,nothing";
    let (out, err, code) =
        run(&["diff", old, new, "--filter", "auth.AcctLoginRequest", "--ignore", ignore]);
    assert_eq!((out.as_str(), code), ("", 0), "{err}");
    assert!(err.contains("--ignore nothing: no field has this name"), "{err}");
}

#[test]
fn missing_messages_and_conversations_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.pcapng");
    let part = part.to_str().unwrap();
    let some = ["dissect", "uru-login.pcapng", "--filter", "stream != 1", "-o", part, "--secrets"];
    assert_eq!(run(&[&some[..], &KEYS].concat()).2, 0);
    let (out, err, code) = run(&[&["diff", "uru-login.pcapng", part], &KEYS[..]].concat());
    assert_eq!(code, 1, "{err}");
    assert_eq!(out, "- #1  uru  192.0.2.10:49154 > 192.0.2.1:14617\n    8 messages\n");
    let (out, ..) = run(&[&["diff", part, "uru-login.pcapng", "--json"], &KEYS[..]].concat());
    assert_eq!(lines(&out)[0]["change"], "added");
    assert_eq!(lines(&out)[0]["streams"], serde_json::json!([null, 1]));
}

#[test]
fn two_messages_of_one_capture_are_compared() {
    let messages = |one: &str, other: &str, more: &[&str]| {
        let files = [one, other].map(|number| format!("ki-login.pcapng:{number}"));
        run(&[&["diff", &files[0], &files[1]], more].concat())
    };
    let (out, err, code) = messages("1", "2", &[]);
    assert_eq!(code, 1, "{err}");
    assert!(
        out.starts_with("~ 1 2  server control.SessionOffer -> client control.SessionAccept\n"),
        "{out}"
    );
    let (out, ..) = messages("1", "2", &["--json"]);
    assert_eq!(lines(&out)[0]["old"]["name"], "control.SessionOffer");
    let (_, err, code) = messages("1", "999", &[]);
    assert_eq!(code, 1);
    assert!(err.contains("ki-login.pcapng: there is no message 999: only "), "{err}");
}

#[test]
fn archives_type_lists_and_definitions_are_compared() {
    let (out, err, code) = run(&["diff", "ki-zone.wad", "ki-made-up.wad"]);
    assert_eq!(code, 1, "{err}");
    assert!(
        out.lines().any(|line| line.starts_with("- "))
            && out.lines().any(|line| line.starts_with("+ "))
    );

    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    for (file, text) in [("S_X.1.def", "int32 a\nstring b\n"), ("S_Y.1.def", "int32 a\n")] {
        for side in ["old", "new"] {
            fs::create_dir_all(home.join(side)).unwrap();
            fs::write(home.join(side).join(file), text).unwrap();
        }
    }
    fs::write(home.join("new/S_X.1.def"), "int64 a\nstring b\n").unwrap();
    let [old, new] = ["old", "new"].map(|side| home.join(side).to_str().unwrap().to_owned());
    let (out, err, code) = run(&["diff", &old, &new]);
    assert_eq!((out.as_str(), code), ("~ S_X.1\n    ~ a: int32 became int64\n", 1), "{err}");

    let types = fs::read_to_string(samples().join("ki-types.json")).unwrap();
    let list = home.join("types.json");
    fs::write(&list, types.replacen("\"m_", "\"n_", 1)).unwrap();
    let (_, err, code) = run(&["diff", "ki-types.json", list.to_str().unwrap()]);
    assert_eq!(code, 1, "{err}");
}

#[test]
fn inputs_that_cannot_be_compared_are_refused() {
    for (arguments, why) in [
        (&["uru-login.pcapng", "ki-zone.wad"][..], "is a capture, and ki-zone.wad is a KI archive"),
        (&["uru-login.pcapng", "none.pcapng"], "none.pcapng: "),
        (&["uru-keys.toml", "uru-keys.toml"], "cannot be compared"),
        (&["-", "uru-login.pcapng"], "standard input cannot be compared"),
        (&["ki-login.pcapng:1", "ki-login.pcapng"], "write ki-login.pcapng:NUMBER"),
        (&["ki-zone.wad", "ki-zone.wad", "--filter", "ki"], "--filter applies only to captures"),
    ] {
        let (_, err, code) = run(&[&["diff"], arguments].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
}
