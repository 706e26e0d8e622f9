//! Messages are written as JSON, edited, and encoded again.

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
fn a_message_can_be_changed_and_encoded() {
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
fn the_file_of_lines_can_be_the_last_argument() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.jsonl");
    std::fs::write(&file, lines_of_the_sample()).unwrap();
    let file = file.to_str().unwrap();
    let [near, apart] = [["--hex", "--lines", file], ["--lines", "--hex", file]]
        .map(|words| worldwire(&[&["encode"][..], &words].concat(), ""));
    assert!(near.status.success() && !near.stdout.is_empty(), "{near:?}");
    assert_eq!((apart.status.code(), apart.stdout), (Some(0), near.stdout));
    for words in [["uru.auth", "--lines", file], ["uru.auth", "--hex", "--lines"]] {
        let both = worldwire(&[&["encode"][..], &words].concat(), "");
        let said = String::from_utf8(both.stderr).unwrap();
        assert!(both.status.code() == Some(2) && said.contains("omit uru.auth"), "{said}");
    }
}

#[test]
fn missing_definitions_are_named() {
    for (capture, name, other, data, codec, advice) in [
        (
            "samples/tera-login.pcapng",
            "S_CHAT",
            "S_NOTHING",
            "samples/tera",
            "tera.packet",
            "supply definitions (.def) and the opcode map with --data",
        ),
        (
            "samples/ki-login.pcapng",
            "MSG_WEATHER",
            "MSG_NOTHING",
            "samples/ki-messages",
            "ki.dml",
            "supply this revision's message XML with --data",
        ),
    ] {
        let run = |words: &[&str], input: &str| {
            let output = worldwire(words, input);
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        };
        let (code, _, said) = run(&["dissect", capture, "--filter", name], "");
        assert!(code == Some(2) && said.contains(advice), "{said}");
        let with = ["dissect", capture, "--data", data, "--filter"];
        let (code, _, said) = run(&[&with[..], &[other]].concat(), "");
        assert!(code == Some(2) && !said.contains("--data"), "{said}");
        let (_, _, said) = run(&[&with[..], &[name, "--first"]].concat(), "");
        let wanted =
            format!("`worldwire decode {codec} --from server --data {data}` decodes these bytes");
        assert!(said.contains(&wanted), "{said}");
        let (_, line, _) = run(&[&with[..], &[name, "--first", "--json"]].concat(), "");
        let (code, hex, said) = run(&["encode", "--lines", "--hex", "--data", data], &line);
        assert!(code == Some(0) && hex.len() > 8, "{said}");
        let (code, _, said) = run(&["encode", "--lines", "--hex"], &line);
        assert!(code == Some(1) && said.contains(advice), "{said}");
    }
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
fn a_line_given_to_a_codec_suggests_the_option() {
    let line = lines_of_the_sample();
    let line = line.lines().find(|line| line.contains("auth.PingRequest")).unwrap();
    let output = worldwire(&["encode", "uru.auth"], line);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--lines"));
    let output = worldwire(&["encode"], "{}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn contradictory_lines_are_refused() {
    let arguments = ["dissect", "samples/uru-age.pcapng", "--keys", "samples/uru-keys.toml"];
    let output = worldwire(&[&arguments[..], &["--json", "--quiet"]].concat(), "");
    let lines = String::from_utf8(output.stdout).unwrap();
    let class = "\"type\":\"plNetMsgSDLStateBCast\"";
    let line = lines.lines().find(|line| line.contains(class)).unwrap();
    let changed = line.replacen(class, "\"type\":\"plNetMsgVoice\"", 1);
    for (line, code) in [(line, 0), (&*changed, 1)] {
        let output = worldwire(&["encode", "--lines"], line);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(output.stdout.is_empty(), code == 1);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            said.contains("fields.type: wanted plNetMsgSDLStateBCast (809)"),
            code == 1,
            "{said}"
        );
    }
    let output = worldwire(&["encode", "uru.safe-string", "--hex"], "\"\u{e9}\"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// With a definition for another build, a message ends too early. However the message is shown,
/// that is a problem of the input, and its bytes are shown.
#[test]
fn an_unreadable_message_is_a_problem_and_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let edit = |file: &str, change: &dyn Fn(&str) -> String| {
        let text = std::fs::read_to_string(samples.join(file)).unwrap();
        let changed = change(&text);
        assert_ne!(changed, text, "{file}");
        let path = folder.path().join(Path::new(file).file_name().unwrap());
        std::fs::write(&path, changed).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tera =
        edit("tera/definitions/S_LOGIN_ARBITER.1.def", &|text| format!("{text}\nint64 more\n"));
    let ki = edit("ki-messages/MadeUpMessages.xml", &|text| {
        text.replace("<Wind TYPE=\"FLT\">", "<More TYPE=\"GID\"></More><Wind TYPE=\"FLT\">")
    });
    let of_tera = ["samples/tera-login.pcapng", "--data", "samples/tera", "--data", &tera];
    let of_ki = ["samples/ki-login.pcapng", "--data", &ki, "--keys", "samples/ki-keys.toml"];
    for (name, capture) in [("S_LOGIN_ARBITER", of_tera), ("MSG_WEATHER", of_ki)] {
        let dissect = |more: &[&str]| {
            let output = worldwire(&[&["dissect"][..], &capture, more].concat(), "");
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (text(output.stdout), text(output.stderr), output.status.code().unwrap())
        };
        let (brief, said, code) = dissect(&["--brief"]);
        let lines = brief.lines().filter(|line| line.contains(name) && !line.contains("! warning"));
        let marked = |line: &str| line.contains("! cannot be decoded completely");
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty() && lines.iter().all(|line| marked(line)), "{brief}");
        assert_eq!(brief.lines().filter(|line| marked(line)).count(), lines.len(), "{brief}");
        let problems = if lines.len() == 1 { ", 1 problem" } else { " problems" };
        assert!(code == 1 && said.contains(problems), "{said}");
        let (_, _, code) = dissect(&["--quiet"]);
        assert_eq!(code, 1);
        let (json, _, code) = dissect(&["--json", "--quiet", "--filter", name]);
        assert_eq!(code, 1);
        let line = json.lines().find(|line| line.contains("\"error\"")).unwrap();
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let payload = value["payload"]["$hex"].as_str().unwrap();
        let encoded = worldwire(&["encode", "--lines", "--hex"], line);
        assert!(!payload.is_empty(), "{line}");
        assert_eq!(String::from_utf8(encoded.stdout).unwrap().trim(), payload);
    }
}

/// Lines are not kept in memory.
#[cfg(target_os = "linux")]
#[test]
fn any_number_of_lines_is_encoded_in_little_memory() {
    let line = lines_of_the_sample();
    let line = line.lines().find(|line| line.contains("auth.PingRequest")).unwrap();
    let what = "x".repeat(1 << 20);
    let long = r#"{"family":"uru","from":"client","name":"gap","fields":{"what":"WHAT"}}"#;
    let note = long.replace("WHAT", &what) + "\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["encode", "--lines", "--hex"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    for _ in 0..128 {
        input.write_all(note.as_bytes()).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    writeln!(input, "{line}").unwrap();
    drop(input);
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 8, "{output:?}");
    assert!(most < 64 << 10, "{most} KiB for 128 MiB of lines");
}
