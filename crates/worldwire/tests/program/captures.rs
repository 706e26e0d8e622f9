//! Results that commands extract from captures: files, other captures, and live captures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use worldwire_capture::{CaptureReader, Record, SecretsKind};
use worldwire_core::Limits;

use crate::samples::{samples, worldwire};

const SAMPLE: &str = "uru-login.pcapng";
const KEYS: [&str; 2] = ["--keys", "uru-keys.toml"];

/// The bytes of every packet in a capture, and the keys in it.
fn records(path: &Path) -> (Vec<Vec<u8>>, String) {
    let file = fs::read(path).unwrap();
    let mut capture = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
    let (mut packets, mut secrets) = (Vec::new(), String::new());
    while let Some(record) = capture.next().unwrap() {
        match record {
            Record::Packet(packet) => packets.push(packet.data.to_vec()),
            Record::Secrets { kind: SecretsKind::WORLDWIRE, data, .. } => {
                assert!(packets.is_empty());
                secrets.push_str(std::str::from_utf8(data).unwrap());
            }
            _ => {}
        }
    }
    (packets, secrets)
}

/// The files of a folder, by their paths below it.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// The downloads, according to the JSON lines.
fn downloads() -> BTreeMap<String, Vec<u8>> {
    let (lines, _, _) = worldwire(&[&["dissect", SAMPLE, "--json"], &KEYS[..]].concat());
    let mut asked = BTreeMap::new();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let fields = &line["fields"];
        let key = (line["stream"].as_u64().unwrap(), fields["transId"].to_string());
        match line["name"].as_str().unwrap() {
            "file.FileDownloadRequest" | "auth.FileDownloadRequest" => {
                let name = fields["filename"].as_str().unwrap().replace('\\', "/");
                asked.insert(key, name);
            }
            "file.FileDownloadReply" | "auth.FileDownloadChunk" => {
                let bytes = fields.get("data").or_else(|| fields.get("chunk")).unwrap();
                let bytes = worldwire_core::json::bytes(&bytes.into()).unwrap();
                files.entry(asked[&key].clone()).or_default().extend(bytes);
            }
            _ => {}
        }
    }
    files
}

#[test]
fn a_missing_capture_leaves_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pcapng");
    let missing = missing.to_str().unwrap();
    for (words, name) in [
        (&["dissect", missing, "-o"][..], "out.json"),
        (&["export", "pcapng", "--decrypted", missing, "-o"], "out.pcapng"),
    ] {
        let output = folder.path().join(name);
        let arguments = [words, &[output.to_str().unwrap()]].concat();
        let (_, problem, code) = worldwire(&arguments);
        assert_eq!(code, 2, "{problem}");
        assert!(problem.contains("missing.pcapng: no such file"), "{problem}");
        assert!(!output.exists(), "{name}");
    }
}

#[test]
fn downloads_are_written_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("all");
    let export = |target: &Path, more: &[&str]| {
        let target = ["-o", target.to_str().unwrap()];
        worldwire(&[&["export", "files", SAMPLE], &KEYS[..], &target[..], more].concat())
    };
    let wanted = downloads();
    assert!(!wanted.is_empty());
    let (out, err, code) = export(&target, &[]);
    assert_eq!((out.as_str(), code), ("", 0), "{err}");
    assert!(tree(&target) == wanted, "{:?} {:?}", tree(&target).keys(), wanted.keys());
    assert!(err.contains(&format!("{} file", wanted.len())), "{err}");
    // Existing files are kept without `--force`.
    let (_, err, code) = export(&target, &[]);
    assert!(code == 2 && err.contains("already exists"), "{err}");
    assert_eq!(export(&target, &["--force"]).2, 0);
    // A filter selects by request or content, a stream by conversation.
    for (more, count) in [
        (&["--filter", "filename contains \"no such file\""][..], 0),
        (&["--filter", "filename startswith \"\""][..], wanted.len()),
        (&["--filter", "FileDownloadReply or FileDownloadChunk"][..], wanted.len()),
        (&["--stream", "0"][..], 0),
    ] {
        let some = folder.path().join(more.join(" ").replace(['"', '/'], ""));
        let (_, err, code) = export(&some, more);
        assert_eq!(code, 0, "{more:?} {err}");
        let found = if some.exists() { tree(&some).len() } else { 0 };
        assert_eq!(found, count, "{more:?} {err}");
    }
    let (_, err, code) = export(&folder.path().join("x"), &["--stream", "99"]);
    assert!(code == 1 && err.contains("no conversation 99"), "{err}");
}

#[test]
fn the_packets_of_matching_conversations_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.pcapng");
    let output = ["-o", path.to_str().unwrap(), "--force"];
    let dissect =
        |more: &[&str]| worldwire(&[&["dissect", SAMPLE], &KEYS[..], &output[..], more].concat());
    let (all, _) = records(&samples().join(SAMPLE));
    let (_, err, code) = dissect(&[]);
    assert_eq!(code, 0, "{err}");
    let (some, secrets) = records(&path);
    assert!(some == all && secrets.is_empty(), "{} of {}", some.len(), all.len());
    let filter = ["--filter", "auth.AcctLoginRequest", "--secrets"];
    let (_, err, code) = dissect(&filter);
    assert_eq!(code, 0, "{err}");
    let (some, secrets) = records(&path);
    assert!(!some.is_empty() && some.len() < all.len(), "{}", some.len());
    assert_eq!(secrets.matches("[[uru.session]]").count(), 1, "{secrets}");
    // All packets of one conversation, in order, including those without data.
    let ports = |packet: &[u8]| {
        let mut ports = [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]]));
        ports.sort_unstable();
        ports
    };
    let own: Vec<_> =
        all.iter().filter(|packet| ports(packet) == ports(&some[0])).cloned().collect();
    assert!(some == own, "{} of {}", some.len(), own.len());
    // With its keys inside, the capture needs no key file.
    let brief = |more: &[&str]| {
        let (out, err, code) =
            worldwire(&[&["dissect", path.to_str().unwrap(), "--brief"], more].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    assert!(brief(&[]).contains("auth.AcctLoginRequest"));
    assert_eq!(brief(&[]), brief(&KEYS));
    // Contradictory options are refused before anything is written.
    let before = fs::read(&path).unwrap();
    for (more, wanted) in [
        (&["--json"][..], "a capture holds packets; use another extension for messages"),
        (&["--filter", "AcctCreateRequest"][..], "no conversation has a message that matches"),
        (&["--follow", "--stream", "1"][..], "on the complete file"),
    ] {
        let (_, err, code) = dissect(more);
        // Compatible options merely find nothing.
        let wanted_code = if more[0] == "--filter" { 1 } else { 2 };
        assert!(code == wanted_code && err.contains(wanted), "{more:?} {err}");
    }
    assert!(fs::read(&path).unwrap() == before);
    let text = path.with_extension("txt");
    let (_, err, code) = worldwire(&["dissect", SAMPLE, "--secrets", "-o", text.to_str().unwrap()]);
    assert!(!text.exists());
    assert!(code == 2 && err.contains("needs -o NAME.pcapng"), "{err}");
}

#[test]
fn a_broken_packet_block_is_counted_and_costs_nothing_else() {
    let mut file = fs::read(samples().join(SAMPLE)).unwrap();
    let section = usize::try_from(u32::from_le_bytes(file[4..8].try_into().unwrap())).unwrap();
    // The capture begins with a packet on an undescribed interface.
    let block = [6_u32, 32, 7, 0, 0, 0, 0, 32].map(u32::to_le_bytes).concat();
    file.splice(section..section, block);
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.pcapng");
    fs::write(&broken, file).unwrap();
    let broken = broken.to_str().unwrap();
    for verb in ["dissect", "stats", "doctor"] {
        let (whole, ..) = worldwire(&[&[verb, SAMPLE][..], &KEYS].concat());
        let (out, err, code) = worldwire(&[&[verb, broken][..], &KEYS].concat());
        let wanted = "1 packet could not be used: on an interface that the capture does not";
        assert!(err.contains(wanted) && code == 1, "{verb}: {code} {err}");
        assert_eq!(out, whole.replace(SAMPLE, broken), "{verb}");
    }
}

/// Files in several pieces, with paths that lead outside the folder, and with lost parts.
#[test]
fn only_whole_files_with_safe_names_are_written() {
    use worldwire_capture::{ClassicWriter, LinkType, SyntheticTcp, Timestamp};
    use worldwire_core::Side;
    let mut talk =
        SyntheticTcp::new("192.0.2.7:40000".parse().unwrap(), "192.0.2.1:14617".parse().unwrap());
    let mut packets = talk.open();
    let say = |side: Side, json: serde_json::Value| {
        let json = worldwire_core::json::Json::from(json);
        let json: worldwire_core::json::Given<'_> = (&json).into();
        worldwire_uru::frame::Message::from_json(worldwire_uru::frame::Service::File, side, json)
            .unwrap()
            .to_bytes()
            .unwrap()
    };
    let ask = |number: u32, name: &str| {
        let fields = serde_json::json!({"transId": number, "filename": name, "buildId": 0});
        say(Side::Client, serde_json::json!({"name": "FileDownloadRequest", "fields": fields}))
    };
    let answer = |number: u32, total: usize, bytes: &[u8]| {
        let mut hex = String::new();
        worldwire_core::value::push_hex(&mut hex, bytes);
        let fields = serde_json::json!({
            "transId": number, "result": "Success", "readerId": 1, "totalFileSize": total,
            "data": {"$hex": hex},
        });
        say(Side::Server, serde_json::json!({"name": "FileDownloadReply", "fields": fields}))
    };
    let connect = {
        use worldwire_core::{Field as _, Writer};
        let mut writer = Writer::new();
        let service = worldwire_uru::frame::Service::File;
        worldwire_uru::connect::ConnectPacket::new(service).encode(&mut writer).unwrap();
        writer.into_bytes()
    };
    packets.extend(talk.data(Side::Client, &connect));
    for (number, name) in [
        (1, "dat\\City.age"),
        (2, "..\\evil"),
        (3, "C:\\x"),
        (4, "dat\\lost"),
        (5, "empty"),
        (6, "DAT\\city.age"),
    ] {
        packets.extend(talk.data(Side::Client, &ask(number, name)));
    }
    // Two downloads are interleaved.
    packets.extend(talk.data(Side::Server, &answer(1, 5000, &[7; 3000])));
    packets.extend(talk.data(Side::Server, &answer(4, 9, b"lost")));
    packets.extend(talk.data(Side::Server, &answer(1, 5000, &[8; 2000])));
    packets.extend(talk.data(Side::Server, &answer(2, 4, b"evil")));
    packets.extend(talk.data(Side::Server, &answer(3, 1, b"x")));
    packets.extend(talk.data(Side::Server, &answer(5, 0, b"")));
    packets.extend(talk.data(Side::Server, &answer(6, 2, b"no")));
    packets.extend(talk.close());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("files.pcap");
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for data in &packets {
        let length = u32::try_from(data.len()).unwrap();
        writer.packet(Timestamp::from_parts(1_700_000_000, 0), data, length).unwrap();
    }
    fs::write(&file, writer.into_inner()).unwrap();
    let target = folder.path().join("inner/files");
    let (file, output) = (file.to_str().unwrap(), target.to_str().unwrap());
    let (_, err, code) = worldwire(&["export", "files", file, "-o", output]);
    let wanted = BTreeMap::from([
        ("dat/City.age".to_owned(), [vec![7; 3000], vec![8; 2000]].concat()),
        ("empty".to_owned(), Vec::new()),
    ]);
    assert!(tree(&target) == wanted, "{err}");
    assert_eq!(tree(folder.path()).len(), 3, "no other files");
    assert_eq!(code, 1, "{err}");
    for wanted in [
        "..\\evil: its name contains a `..` component",
        "C:\\x: its name begins with a drive letter",
        "dat\\lost: only 4 of 9 bytes were received",
        "DAT\\city.age: an earlier file has the same name but different contents",
        "2 files written, 4 skipped",
    ] {
        assert!(err.contains(wanted), "{wanted}: {err}");
    }
}

/// Installs a script as a capturing program and returns the search path that finds it first.
#[cfg(unix)]
pub(crate) fn fake(program: &str, folder: &Path, script: &str) -> String {
    let text = folder.join("script");
    fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    // A file that is open for writing cannot be executed. If it were written here, a program that
    // another test starts at the same moment would inherit the open file.
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(text).arg(folder.join(program));
    assert!(install.status().unwrap().success());
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", folder.display())
}

#[cfg(unix)]
#[test]
fn capture_runs_tcpdump() {
    let folder = tempfile::tempdir().unwrap();
    let (called, copy) = (folder.path().join("called"), folder.path().join("copy.pcapng"));
    let script = format!("echo \"$@\" > {}; exec cat {SAMPLE}", called.display());
    let path = fake("tcpdump", folder.path(), &script);
    let run = |arguments: &[&str], path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(arguments).args(KEYS).current_dir(samples()).env("PATH", path);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    };
    let write = ["--write", copy.to_str().unwrap()];
    let capture = ["capture", "eth7", "port", "14617", "--brief"];
    let (out, err, code) = run(&[&capture[..], &write[..]].concat(), &path);
    let (whole, _, _) = worldwire(&[&["dissect", SAMPLE, "--brief"], &KEYS[..]].concat());
    assert_eq!((out, code), (whole, 0), "{err}");
    let called = fs::read_to_string(called).unwrap();
    assert_eq!(called.trim(), "--immediate-mode -U -s 0 -w - -i eth7 -- port 14617");
    assert!(records(&copy).0 == records(&samples().join(SAMPLE)).0);
    // Files are not overwritten by accident, and a failing capture is an error.
    let (_, err, code) = run(&[&capture[..], &write[..]].concat(), &path);
    assert!(code == 2 && err.contains("already exists"), "{err}");
    // Nothing is left behind if the key file is refused, or nothing can be captured.
    let fresh = folder.path().join("fresh.pcapng");
    let write = ["--write", fresh.to_str().unwrap()];
    let refused = ["--keys", "uru-manifest.mfs"];
    let (_, err, code) = run(&[&capture[..], &write[..], &refused[..]].concat(), &path);
    assert!(code == 2 && err.contains("uru-manifest.mfs: ") && !fresh.exists(), "{err}");
    let denied = fake("tcpdump", folder.path(), "echo 'eth7: no permission' >&2; exit 1");
    let (_, err, code) = run(&[&capture[..], &write[..]].concat(), &denied);
    assert!(code == 2 && err.contains("no permission") && !fresh.exists(), "{err}");
    let (_, err, code) = run(&capture, &denied);
    assert!(code == 2 && err.contains("eth7: no permission"), "{err}");
    assert!(err.contains("nothing was captured; see the message above"), "{err}");
    let (_, err, code) = run(&capture, "/nonexistent");
    assert!(code == 2 && err.contains("neither tcpdump nor dumpcap is installed"), "{err}");
}

/// The other capturing program has different options.
#[cfg(unix)]
#[test]
fn dumpcap_replaces_a_missing_tcpdump() {
    let folder = tempfile::tempdir().unwrap();
    let called = folder.path().join("called");
    let script = format!("echo \"$@\" > {}; exec /bin/cat {SAMPLE}", called.display());
    fake("dumpcap", folder.path(), &script);
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["capture", "eth7", "--brief", "port", "14617"]).args(KEYS);
    let output = command.current_dir(samples()).env("PATH", folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (whole, _, _) = worldwire(&[&["dissect", SAMPLE, "--brief"], &KEYS[..]].concat());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), whole);
    assert_eq!(fs::read_to_string(called).unwrap().trim(), "-q -P -w - -i eth7 -f port 14617");
}

/// Messages are shown as they arrive. Ctrl-C ends the capture, whose file is then complete.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_live_capture() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    let path = fake("tcpdump", folder.path(), &format!("cat {SAMPLE}; exec sleep 600"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["capture", "any", "--brief", "--write"]).arg(&copy).args(KEYS);
    command.current_dir(samples()).env("PATH", path).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    let (whole, _, _) = worldwire(&[&["dissect", SAMPLE, "--brief"], &KEYS[..]].concat());
    let mut shown = String::new();
    while shown.len() < whole.len() {
        assert_ne!(output.read_line(&mut shown).unwrap(), 0);
    }
    let id = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    output.read_to_string(&mut shown).unwrap();
    assert_eq!(shown, whole);
    assert!(running.wait().unwrap().success());
    assert!(records(&copy).0 == records(&samples().join(SAMPLE)).0);
}

#[test]
fn several_key_files_are_merged() {
    for (capture, keys) in [
        (SAMPLE, "uru-keys.toml"),
        ("ki-login.pcapng", "ki-keys.toml"),
        ("ki-server.pcapng", "ki-server-keys.toml"),
        ("mxo-world.pcapng", "mxo-keys.toml"),
        ("mxo-crowd.pcapng", "mxo-crowd-keys.toml"),
        ("mxo-login.pcapng", "mxo-login-keys.toml"),
    ] {
        let one = worldwire(&["dissect", capture, "--keys", keys]);
        let without = worldwire(&["dissect", capture]);
        assert_ne!(one, without, "{capture}");
        let mut all = vec!["dissect", capture];
        let files = ["ki-server-keys.toml", "mxo-keys.toml", keys, "ki-keys.toml", "uru-keys.toml"];
        files.iter().for_each(|file| all.extend(["--keys", file]));
        assert_eq!(worldwire(&all), one, "{capture}");
    }
    let two = ["dissect", SAMPLE, "--keys", "uru-wrong-keys.toml", "--keys", "uru-keys.toml"];
    let (_, said, code) = worldwire(&two);
    let wanted = "uru-keys.toml: the gatekeeper key differs from the one in an earlier key file\n";
    assert!(code == 2 && said.ends_with(wanted), "{said}");
}

/// A server that was started with `--secrets` appends the first key when somebody logs in.
#[test]
fn a_key_file_without_content_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets.toml");
    let path = path.to_str().unwrap();
    fs::write(path, "\n").unwrap();
    let words = ["dissect", SAMPLE, "--names", "--keys", path];
    let (out, err, code) = worldwire(&[&words[..], &KEYS[..]].concat());
    assert_eq!(out, worldwire(&[&["dissect", SAMPLE, "--names"], &KEYS[..]].concat()).0);
    assert!(code == 0 && err.contains("secrets.toml: has no keys yet\n"), "{err}");
    fs::write(path, "[nonsense]\n").unwrap();
    let (_, err, code) = worldwire(&words);
    assert!(code == 2 && err.contains("secrets.toml: the file has no keys; "), "{err}");
}

#[test]
fn decrypted_captures_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.pcapng");
    let plain = plain.to_str().unwrap();
    let export = ["export", "pcapng", SAMPLE, "--decrypted", "-o", plain];
    assert_eq!(worldwire(&[&export[..], &KEYS[..]].concat()).2, 0);
    for command in ["dissect", "stats", "doctor"] {
        let (out, err, code) = worldwire(&[command, plain]);
        assert!((out.as_str(), code) == ("", 1), "{command}: {out} {err}");
        assert!(err.contains("read the original capture instead"), "{err}");
    }
}

/// In a capture without problems, `--filter problem` selects nothing, so this is not an error.
#[test]
fn a_filter_that_selects_nothing_is_reported() {
    let words = ["dissect", SAMPLE, "--stream", "1", "--filter", "gap"];
    let (out, err, code) = worldwire(&[&words[..], &KEYS[..]].concat());
    assert_eq!((out.as_str(), code), ("", 0), "{err}");
    assert!(err.contains("worldwire: filter: nothing matches\n"), "{err}");
    let words = ["dissect", SAMPLE, "--quiet", "--filter", "accountName == nobody"];
    assert_eq!(worldwire(&[&words[..], &KEYS[..]].concat()), (String::new(), String::new(), 0));
    let (_, err, code) = worldwire(&[&words[..], &["--first"], &KEYS[..]].concat());
    assert!(code == 1 && err.contains("no message 1: only 0 messages match"), "{err}");
}

/// A Windows path, whose backslashes could begin escapes.
#[test]
fn values_are_copied_from_any_output_into_a_filter() {
    for (form, start) in [
        (&["--brief"][..], r#"r"dat\Tele"#),
        (&[], r#"r"dat\Tele"#),
        (&["--json"], r#""dat\\Tele"#),
    ] {
        let words = ["dissect", SAMPLE, "--filter", "any contains r\"dat\\Tele\""];
        let (out, err, _) = worldwire(&[&words[..], form, &KEYS[..]].concat());
        let at = out.find(start).unwrap_or_else(|| panic!("{form:?}: {out} {err}"));
        let end = at + start.len() + out[at + start.len()..].find('"').unwrap();
        let filter = format!("any contains {}", &out[at..=end]);
        let words = ["dissect", SAMPLE, "--quiet", "--names", "--filter", &filter];
        let (out, err, code) = worldwire(&[&words[..], &KEYS[..]].concat());
        assert!(code == 0 && out.lines().count() > 0, "{filter}: {err}");
    }
}

#[test]
fn filters_apply_to_notes_too() {
    let dissect = |filter: &str| worldwire(&["dissect", SAMPLE, "--json", "--filter", filter]);
    let (out, err, code) = dissect("file.BuildIdReply");
    assert!(!out.is_empty() && code == 1, "{err}");
    assert!(out.lines().all(|line| line.contains("\"name\":\"file.BuildIdReply\"")), "{out}");
    assert!(err.contains("3 problems hidden by the filter"), "{err}");
    let (out, err, code) = dissect("file.BuildIdReply or problem");
    let problems = out.lines().filter(|line| line.contains("\"name\":\"problem\"")).count();
    assert_eq!((problems, code), (3, 1), "{out}");
    assert!(!err.contains("hidden"), "{err}");
}

#[test]
fn doctor_says_where_states_lack_descriptors() {
    let doctor = ["doctor", "uru-age.pcapng", "--keys", "uru-keys.toml"];
    let (out, err, code) = worldwire(&doctor);
    assert_eq!(code, 1, "{err}");
    let wanted = "2 messages with an object state (SDL) shown as bytes: supply descriptors";
    let line = out.lines().find(|line| line.contains(wanted)).unwrap();
    assert!(line.contains("(first in packet "), "{line}");
    let mut findings = out.lines().filter(|line| line.starts_with('#'));
    assert!(findings.all(|line| line.contains("in packet ")), "{out}");
}
