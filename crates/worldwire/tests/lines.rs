//! Messages of a capture as JSON, edited, and back to bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn worldwire(arguments: &[&str], input: &str) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    running.wait_with_output().unwrap()
}

fn lines_of_the_sample() -> String {
    let keys = ["--keys", "samples/uru-keys.toml", "--json", "--quiet"];
    let arguments = [&["dissect", "samples/uru-login.pcapng"][..], &keys].concat();
    String::from_utf8(worldwire(&arguments, "").stdout).unwrap()
}

#[test]
fn a_message_is_changed_on_its_way() {
    let line = lines_of_the_sample();
    let line = line.lines().find(|line| line.contains("auth.PlayerCreateRequest")).unwrap();
    let original = worldwire(&["encode", "--lines", "--hex"], line);
    assert!(original.status.success(), "{original:?}");
    let edited = line.replace("yeesha", "sirrus");
    assert_ne!(edited, line);
    let edited = worldwire(&["encode", "--lines", "--hex"], &edited);
    let [original, edited] = [original, edited].map(|it| String::from_utf8(it.stdout).unwrap());
    assert_eq!(original.len(), edited.len());
    let [was, is] = ["yeesha", "sirrus"].map(|name| {
        name.encode_utf16().map(|unit| format!("{:04x}", unit.swap_bytes())).collect::<String>()
    });
    assert_eq!(original.replace(&was, &is), edited);
}

#[test]
fn all_lines_of_a_capture_are_encoded_or_none() {
    let lines = lines_of_the_sample();
    let whole = worldwire(&["encode", "--lines"], &lines);
    assert!(whole.status.success() && whole.stdout.len() > 2000, "{whole:?}");
    let broken = format!("{lines}\n{{\"family\":\"uru\",\"name\":\"auth.PingRequest\"}}\n[\n");
    let broken = worldwire(&["encode", "--lines"], &broken);
    assert_eq!((broken.status.code(), broken.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(broken.stderr).unwrap();
    let count = lines.lines().count();
    assert!(said.contains(&format!("line {}: ", count + 2)), "{said}");
    assert!(said.contains(&format!("line {}: invalid JSON", count + 3)), "{said}");
}

#[test]
fn a_line_given_to_a_codec_is_told_where_it_belongs() {
    let line = lines_of_the_sample();
    let line = line.lines().find(|line| line.contains("auth.PingRequest")).unwrap();
    let output = worldwire(&["encode", "uru.auth"], line);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--lines"));
    let output = worldwire(&["encode"], "{}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
