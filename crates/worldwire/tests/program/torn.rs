//! Captures without a beginning, an end or a part in the middle: the rest is still decoded, and
//! missing parts are reported.

use std::path::{Path, PathBuf};
use std::process::Command;

use worldwire_capture::{CaptureReader, ClassicWriter, LinkType, Record, SyntheticTcp, Timestamp};
use worldwire_core::{Limits, Side};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples")
}

/// The packets of a sample.
fn packets(name: &str) -> Vec<Vec<u8>> {
    let file = std::fs::read(samples().join(name)).unwrap();
    let mut capture = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

/// The ports of sender and receiver, and the TCP payload.
fn tcp(packet: &[u8]) -> ([u16; 2], &[u8]) {
    (
        [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]])),
        packet.get(54..).unwrap_or_default(),
    )
}

/// Runs the program on packets: standard output, standard error, exit code.
fn run(packets: &[Vec<u8>], arguments: &[&str]) -> (String, String, i32) {
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for (number, data) in (0..).zip(packets) {
        let length = u32::try_from(data.len()).unwrap();
        writer.packet(Timestamp::from_parts(1_700_000_000 + number, 0), data, length).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("torn.pcap");
    std::fs::write(&file, writer.into_inner()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg(arguments[0]).arg(&file).args(&arguments[1..]).current_dir(samples());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

const BRIEF: &[&str] = &["dissect", "--brief", "--keys", "uru-keys.toml"];

/// The plain file connection of a sample, message by message.
pub(crate) fn downloads() -> Vec<(Side, Vec<u8>)> {
    let of_server = |port: u16| port == 14_617;
    let of_file = packets("uru-login.pcapng").into_iter().filter(|packet| {
        let (ports, bytes) = tcp(packet);
        ports.contains(&49_154) && !bytes.is_empty()
    });
    let said = of_file.map(|packet| {
        let (ports, bytes) = tcp(&packet);
        let side = if of_server(ports[0]) { Side::Server } else { Side::Client };
        (side, bytes.to_vec())
    });
    said.collect()
}

pub(crate) fn talk() -> SyntheticTcp {
    SyntheticTcp::new("192.0.2.7:40000".parse().unwrap(), "192.0.2.1:14617".parse().unwrap())
}

/// Sets the flags of a packet to those of a reset.
fn reset(mut packet: Vec<u8>) -> Vec<u8> {
    packet[47] = 0x14;
    packet.truncate(54);
    packet[16..18].copy_from_slice(&40_u16.to_be_bytes());
    packet
}

#[test]
fn a_reset_that_reveals_a_lost_message_reports_a_gap() {
    let mut talk = talk();
    let mut packets = talk.open();
    let said = downloads();
    for (side, bytes) in &said {
        packets.extend(talk.data(*side, bytes));
    }
    let (whole, _, code) = run(&packets, BRIEF);
    assert_eq!(code, 0, "{whole}");
    // The server's last message is lost; then it resets the connection.
    let lost = talk.data(Side::Server, &[7; 33]);
    let last = talk.data(Side::Server, b"?").remove(0);
    drop(lost);
    packets.push(reset(last));
    let (out, err, code) = run(&packets, BRIEF);
    assert!(out.contains("gap: 33 bytes are missing"), "{out}{err}");
    assert_eq!((code, out.lines().count()), (1, whole.lines().count() + 1), "{out}");
}

#[test]
fn a_server_that_seems_to_speak_first_is_recognised() {
    let mut talk = talk();
    let mut packets = talk.open();
    let said = downloads();
    let (mut of_server, mut of_client) = (Vec::new(), Vec::new());
    for (side, bytes) in said.iter().cycle().take(said.len()) {
        match side {
            Side::Server => of_server.extend(talk.data(*side, bytes)),
            Side::Client => of_client.extend(talk.data(*side, bytes)),
        }
    }
    let extra = said.iter().filter(|(side, _)| *side == Side::Server).map(|(_, bytes)| bytes);
    for _ in 0..60 {
        for bytes in extra.clone() {
            of_server.extend(talk.data(Side::Server, bytes));
        }
    }
    let count = of_server.iter().filter(|packet| !tcp(packet).1.is_empty()).count();
    let bytes: usize = of_server.iter().map(|packet| tcp(packet).1.len()).sum();
    assert!((8_000..60_000).contains(&bytes), "{bytes}");
    packets.extend(of_server);
    packets.extend(of_client);
    let (out, err, code) = run(&packets, BRIEF);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.matches("server  file.").count(), count);
}

#[test]
fn a_missing_connect_packet_is_not_needed() {
    let all = packets("uru-login.pcapng");
    // The first packet with data of every conversation; its port is unknown.
    let mut seen = Vec::new();
    let late: Vec<Vec<u8>> = all
        .into_iter()
        .filter(|packet| {
            let (ports, bytes) = tcp(packet);
            let client = ports[0].max(ports[1]);
            let is_first = !bytes.is_empty() && !seen.contains(&client);
            if is_first {
                seen.push(client);
            }
            !is_first
        })
        .map(|mut packet| {
            for at in [34, 36] {
                if packet[at..at + 2] == 14_617_u16.to_be_bytes() {
                    packet[at..at + 2].copy_from_slice(&24_617_u16.to_be_bytes());
                }
            }
            packet
        })
        .collect();
    // Only the connect packets are missing: setup packets and the file server's messages suffice.
    let messages = |out: &str| {
        let names = ["gatekeeper.", "auth.", "game.", "file."];
        out.lines().filter(|line| names.iter().any(|name| line.contains(name))).count()
    };
    let (whole, _, _) = run(&packets("uru-login.pcapng"), BRIEF);
    let (out, err, code) = run(&late, BRIEF);
    assert_eq!((messages(&out), code), (messages(&whole), 1), "{out}{err}");
    assert_eq!(out.matches("! gap: ").count(), 4, "{out}");
    assert!(err.contains("4 conversations, "), "{err}");
    // Without the setup packets after them, only the remedy can be reported.
    let mut setup = Vec::new();
    let later: Vec<Vec<u8>> = late
        .into_iter()
        .filter(|packet| {
            let (ports, bytes) = tcp(packet);
            let is_first = !bytes.is_empty() && !setup.contains(&ports);
            if is_first {
                setup.push(ports);
            }
            !is_first && ports != [49_154, 24_617] && ports != [24_617, 49_154]
        })
        .collect();
    let (out, err, code) = run(&later, BRIEF);
    assert_eq!((out.as_str(), code), ("", 1), "{err}");
    assert!(err.contains("read it with --as 24617=FAMILY"), "{err}");
}

/// A family that numbers its datagrams reports lost ones, which count like a stream's lost bytes.
#[test]
fn lost_datagrams_are_gaps() {
    let all = packets("mxo-world.pcapng");
    let arguments = ["dissect", "--brief", "--keys", "mxo-keys.toml"];
    let mut count = 0;
    for lost in 0..all.len() {
        let torn = [&all[..lost], &all[lost + 1..]].concat();
        let (out, err, code) = run(&torn, &arguments);
        let gaps = out.matches("! gap: ").count();
        if gaps > 0 {
            count += 1;
            let gaps = format!(", {gaps} gap{}", if gaps == 1 { "" } else { "s" });
            assert!(code == 1 && err.contains(&gaps), "{lost}: {code} {err}");
            let stats = ["stats", "--each", "--keys", "mxo-keys.toml"];
            let (each, _, code) = run(&torn, &stats);
            assert!(code == 1 && each.contains("  gaps\n"), "{lost}: {code} {each}");
            let (all, _, code) = run(&torn, &["stats", "--keys", "mxo-keys.toml"]);
            let line = all.lines().find(|line| line.starts_with("not decoded")).unwrap();
            assert!(code == 1 && line.contains(" gap"), "{lost}: {code} {all}");
        }
    }
    assert!(count > 3, "{count}");
}

/// Contents that do not fit the user's description are a problem, and missing descriptions are not.
#[test]
fn contents_that_do_not_fit_their_description_are_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.sdl");
    let right = std::fs::read_to_string(samples().join("sdl/Fernhollow.sdl")).unwrap();
    let doors = "VAR BYTE         fhDoors[]";
    assert!(right.contains(doors), "{right}");
    std::fs::write(&wrong, right.replace(doors, "VAR STRING32     fhDoors[]")).unwrap();
    let all = packets("uru-age.pcapng");
    for (data, code, is_opaque) in [
        (&[][..], 0, false),
        (&["--data", "sdl"], 0, false),
        (&["--data", wrong.to_str().unwrap()], 1, true),
    ] {
        let arguments = [&["dissect", "--keys", "uru-keys.toml"], data].concat();
        let (out, err, found) = run(&all, &arguments);
        assert_eq!((found, err.contains("1 problem")), (code, is_opaque), "{data:?}: {err}");
        let remark = "! shown as bytes: state of Fernhollow 3: sdl.state.variables.fhDoors";
        assert_eq!(out.contains(remark), is_opaque);
        for verb in [&["dissect", "--brief"][..], &["stats"]] {
            let (_, err, found) = run(&all, &[verb, &arguments[1..]].concat());
            assert_eq!((found, err.contains("1 problem")), (code, is_opaque), "{verb:?}: {err}");
        }
    }
}

/// Exported keys decrypt their own capture without the server's secret, and no other capture.
#[test]
fn exported_keys_decrypt_their_capture() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("sessions.toml");
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        let output = command.args(arguments).current_dir(samples()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    };
    let path = keys.to_str().unwrap();
    let export = ["secrets", "export", "uru-login.pcapng", "--keys", "uru-keys.toml"];
    let (_, err, code) = program(&[&export[..], &["-o", path]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("3 conversations with keys"), "{err}");
    let text = std::fs::read_to_string(&keys).unwrap();
    assert_eq!(text.matches("[[uru.session]]").count(), 3, "{text}");
    assert!(!text.contains("\na = ") && text.contains("# conversation 0, "), "{text}");
    let brief = |file: &str, keys: &str| program(&["dissect", "--brief", file, "--keys", keys]);
    let (whole, _, _) = brief("uru-login.pcapng", "uru-keys.toml");
    let (again, err, code) = brief("uru-login.pcapng", path);
    assert_eq!((again, code), (whole, 0), "{err}");
    let (_, err, code) = brief("uru-age.pcapng", path);
    assert!(code == 1 && err.contains("problem"), "{err}");
    // The keys of one conversation; an unencrypted one has none.
    let (one, _, code) = program(&[&export[..], &["--stream", "0"]].concat());
    assert_eq!((one.matches("[[uru.session]]").count(), code), (1, 0));
    let (_, err, code) = program(&[&export[..], &["--stream", "1"]].concat());
    assert!(code == 2 && err.contains("no keys to export"), "{err}");
    // MxO: a key that decrypts nothing is omitted, and the hello supplies a missing ID.
    let (mxo, known) = (folder.path().join("mxo.toml"), folder.path().join("known.toml"));
    let key = "000102030405060708090a0b0c0d0e0f";
    let other = "ffffffffffffffffffffffffffffffff";
    let table = |key| format!("[[mxo.session]]\nkey = \"{key}\"\n");
    std::fs::write(&known, table(other) + &table(key)).unwrap();
    let [mxo, known] = [&mxo, &known].map(|path| path.to_str().unwrap());
    let export = ["secrets", "export", "mxo-world.pcapng", "--keys", known, "-o", mxo];
    let (_, err, code) = program(&export);
    assert_eq!(code, 0, "{err}");
    let text = std::fs::read_to_string(mxo).unwrap();
    assert!(text.contains("id = 0x1f2e3d4c") && text.contains(key), "{text}");
    assert!(!text.contains(other), "{text}");
    let (whole, _, _) = brief("mxo-world.pcapng", "mxo-keys.toml");
    let (again, err, code) = brief("mxo-world.pcapng", mxo);
    assert_eq!((again, code), (whole, 0), "{err}");
    // TERA's keys are in the capture; exported, they decrypt a capture that lacks them.
    let tera = folder.path().join("tera.toml");
    let tera = tera.to_str().unwrap();
    let export = ["secrets", "export", "tera-login.pcapng", "--data", "tera", "-o", tera];
    let (_, err, code) = program(&export);
    assert_eq!(code, 0, "{err}");
    let all = packets("tera-login.pcapng");
    let arguments = ["dissect", "--brief", "--data", "tera", "--as", "tera", "--keys", tera];
    let messages = |out: &str| out.lines().filter(|line| line.contains("  tera.")).count();
    let (whole, _, _) = run(&all, &arguments);
    // The client's first key is lost, then the server's second key, then all four.
    let keys: Vec<usize> = (0..all.len()).filter(|at| tcp(&all[*at]).1.len() == 128).collect();
    assert!(keys.len() >= 4, "{keys:?}");
    for lost in [&keys[..1], &keys[3..4], &keys[..4]] {
        let torn = all.iter().enumerate().filter(|(at, _)| !lost.contains(at));
        let torn: Vec<Vec<u8>> = torn.map(|(_, packet)| packet.clone()).collect();
        let (out, err, code) = run(&torn, &arguments);
        assert_eq!((messages(&out), code), (messages(&whole), 1), "{lost:?} {out}{err}");
    }
}

#[test]
fn ki_frames_are_found_in_the_middle_and_read_by_port() {
    let all = packets("ki-login.pcapng");
    let (whole, _, code) = run(&all, &["dissect", "--brief", "--keys", "ki-keys.toml"]);
    assert_eq!(code, 0, "{whole}");
    // The capture begins after the handshakes, with half a segment.
    let mut late: Vec<Vec<u8>> =
        all.into_iter().filter(|packet| packet[47] & 2 == 0).skip(6).collect();
    late.retain(|packet| !tcp(packet).1.is_empty());
    let (out, err, _) = run(&late, &["dissect", "--brief", "--keys", "ki-keys.toml"]);
    let count = |text: &str| text.lines().filter(|line| !line.contains('!')).count();
    assert!(count(&out) + 12 > count(&whole), "{out}{err}");
    // A port overrides recognition.
    let port = tcp(&late[0]).0.into_iter().min().unwrap();
    let arguments = ["dissect", "--brief", "--as", &format!("{port}=ki")];
    let (out, err, _) = run(&late, &arguments);
    assert!(out.contains("  ki  "), "{out}{err}");
    for (wrong, wanted) in [("x=ki", "is not a port"), ("1=kii", "did you mean \"ki\"?")] {
        let (_, err, code) = run(&late, &["dissect", "--as", wrong]);
        assert!(code == 2 && err.contains(wanted), "{err}");
    }
}

#[test]
fn a_missing_tera_hello_is_not_needed() {
    let all = packets("tera-login.pcapng");
    let (whole, _, _) = run(&all, &["dissect", "--brief", "--data", "tera"]);
    let is_hello = |packet: &&Vec<u8>| tcp(packet).1 == [1, 0, 0, 0];
    assert_eq!(all.iter().filter(is_hello).count(), 1);
    let count = |text: &str| text.lines().filter(|line| line.contains("  tera.")).count();
    let with_gap: Vec<_> = all.iter().filter(|packet| !is_hello(packet)).cloned().collect();
    let (out, err, code) = run(&with_gap, &["dissect", "--brief", "--data", "tera"]);
    assert_eq!((count(&out), code), (count(&whole), 1), "{out}{err}");
    assert!(out.contains("gap: 4 bytes are missing"), "{out}");
    // A capture that started after the hello.
    let at = all.iter().position(|packet| is_hello(&packet)).unwrap();
    let (out, err, _) = run(&all[at + 1..], &["dissect", "--brief", "--data", "tera"]);
    assert_eq!(count(&out), count(&whole), "{out}{err}");
}

/// The same two ends start another conversation; the end of the first was not captured.
#[test]
fn reused_ports_start_a_new_conversation() {
    let mut packets = Vec::new();
    let said = downloads();
    for round in 0..2_u32 {
        let mut talk = talk();
        let mut of_round = talk.open();
        for (side, bytes) in &said {
            of_round.extend(talk.data(*side, bytes));
        }
        // Later sequence numbers, close to those of the first one.
        for packet in &mut of_round {
            for at in [38, 42] {
                let number = u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
                let later = number.wrapping_add(round * 700_000);
                if at == 38 || packet[47] & 16 != 0 {
                    packet[at..at + 4].copy_from_slice(&later.to_be_bytes());
                }
            }
        }
        packets.extend(of_round);
    }
    let (out, err, code) = run(&packets, BRIEF);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.matches("connect.CliToFile").count(), 2, "{out}{err}");
    assert!(err.contains("2 conversations,"), "{err}");
    // A late SYN alone does not begin a conversation.
    let late = [&packets[..8], &packets[packets.len() / 2..][..1], &packets[8..12]].concat();
    let (_, err, _) = run(&late, BRIEF);
    assert!(err.contains("1 conversation,"), "{err}");
}

/// The bytes of one side, as captured.
fn stream_of(packets: &[Vec<u8>], ports: [u16; 2]) -> Vec<u8> {
    let of = packets.iter().filter(|packet| tcp(packet).0 == ports);
    of.flat_map(|packet| tcp(packet).1.to_vec()).collect()
}

/// Like [`run`], for binary output.
fn bytes(file: &Path, arguments: &[&str]) -> (Vec<u8>, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg(arguments[0]).arg(file).args(&arguments[1..]).current_dir(samples());
    let output = command.output().unwrap();
    (output.stdout, String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn follow_shows_every_byte_once() {
    let file = samples().join("uru-login.pcapng");
    let all = packets("uru-login.pcapng");
    for (stream, client) in [("0", 49_153), ("1", 49_154), ("2", 49_155)] {
        for (side, ports) in [("client", [client, 14_617]), ("server", [14_617, client])] {
            let wanted = stream_of(&all, ports);
            let raw = ["follow", "--stream", stream, "--raw", side];
            let (wire, _, code) = bytes(&file, &[&raw[..], &["--wire"]].concat());
            assert!(wire == wanted, "{stream} {side}");
            assert_eq!(code, 0);
            // Without keys, encrypted bytes are shown as captured.
            let (sealed, err, code) = bytes(&file, &raw);
            assert_eq!(sealed.len(), wanted.len(), "{stream} {side} {err}");
            assert_eq!((code, sealed == wanted), (i32::from(stream != "1"), true), "{err}");
            // Encryption changes no length.
            let (open, err, code) =
                bytes(&file, &[&raw[..], &["--keys", "uru-keys.toml"]].concat());
            assert_eq!((code, open.len()), (0, wanted.len()), "{err}");
            assert_eq!(open == wanted, stream == "1", "{stream} {side}");
        }
    }
    let (_, err, _) = bytes(&file, &["follow", "--stream", "0", "--raw", "client"]);
    assert!(err.contains("bytes could not be decoded and are shown as captured"), "{err}");
    for (name, stream) in
        [("ki-login.pcapng", "0"), ("tera-login.pcapng", "0"), ("mxo-world.pcapng", "0")]
    {
        let (out, err, code) =
            bytes(&samples().join(name), &["follow", "--dump", "--stream", stream]);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(code == 0, !out.contains("! not decoded"), "{name}: {err}");
    }
}

#[test]
fn follow_marks_missing_and_undecoded_bytes() {
    let mut talk = talk();
    let mut packets = talk.open();
    let said = downloads();
    let mut server: Vec<u8> = Vec::new();
    let mut lost = 0;
    let count = said.iter().filter(|(side, _)| *side == Side::Server).count();
    let mut number = 0;
    for (side, bytes) in &said {
        let mut of_message = talk.data(*side, bytes);
        if *side == Side::Server {
            number += 1;
            if number == count - 2 {
                // The second half of a message is missing.
                let cut = bytes.len() / 2;
                let first = &mut of_message[0];
                first.truncate(54 + cut);
                first[16..18].copy_from_slice(&u16::try_from(40 + cut).unwrap().to_be_bytes());
                lost = bytes.len() - cut;
                server.extend(&bytes[..cut]);
                server.extend(format!("[{lost} bytes missing in capture file]\0").bytes());
            } else {
                server.extend(bytes);
            }
        }
        packets.extend(of_message);
    }
    let (out, err, code) = run(&packets, &["follow", "--stream", "0", "--raw", "server"]);
    assert!(out == String::from_utf8_lossy(&server), "{err}");
    assert_eq!(code, 1);
    assert!(err.contains(&format!("{lost} bytes are missing in the capture")), "{err}");
    let (out, _, _) = run(&packets, &["follow", "--dump", "--stream", "0"]);
    assert_eq!(out.matches("! not decoded: ").count(), 1, "{out}");
    assert_eq!(out.matches(&format!("! gap: {lost} bytes are missing")).count(), 1, "{out}");
    assert!(out.contains("    ?0000"), "{out}");
    // The exit code reports the gap, even if the rest is not read.
    let gap = ["dissect", "--quiet", "--filter", "gap", "--limit", "1"];
    let (out, _, code) = run(&packets, &gap);
    assert!(code == 1 && out.contains(&format!("{lost} bytes")), "{code} {out}");
}

/// Values from the output can be pasted into filters.
#[test]
fn printed_values_work_in_filters() {
    let file = samples().join("uru-login.pcapng");
    let said = |arguments: &[&str]| {
        let keys = ["--keys", "uru-keys.toml", "--quiet"];
        let (out, err, code) = bytes(&file, &[&["dissect"], arguments, &keys[..]].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        String::from_utf8(out).unwrap()
    };
    let line = "auth.AcctLoginRequest";
    let filter = |text: &str| format!("AcctLoginRequest and {text}");
    for (form, field) in [("utc", "date"), ("local", "date"), ("relative", "time")] {
        let shown = said(&["--brief", "--time", form, "--filter", line]);
        let moment = shown.split("  #").next().unwrap().trim();
        let value = if form == "relative" { moment.to_owned() } else { format!("\"{moment}\"") };
        let again =
            said(&["--brief", "--time", form, "--filter", &filter(&format!("{field} == {value}"))]);
        assert!(
            !shown.is_empty() && again.starts_with(shown.lines().next().unwrap()),
            "{shown}{again}"
        );
    }
    let delta = said(&["--brief", "--time", "delta"]);
    assert!(delta.starts_with("    0.000000  #0"), "{delta}");
    assert_eq!(delta.lines().count(), said(&["--brief"]).lines().count());
    let json = said(&["--json", "--filter", line]);
    let json: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    for name in ["src", "srcport", "dst", "dstport", "packet", "stream"] {
        let all = filter(&format!("{name} == {}", json[name]));
        assert!(said(&["--json", "--filter", &all]).contains("AcctLoginRequest"), "{all}");
    }
    // Bytes, as text and as JSON lines show them.
    let shown = said(&["--filter", line]);
    let hash = shown.lines().find_map(|line| line.trim().strip_prefix("challengeHash: ")).unwrap();
    let hash = hash.split(' ').next().unwrap();
    assert_eq!(json["fields"]["challengeHash"]["$hex"], *hash);
    for filter in
        [format!("challengeHash == {hash}"), format!("challengeHash startswith {}", &hash[..8])]
    {
        assert!(said(&["--brief", "--filter", &filter]).contains(line), "{filter}");
    }
    let date = filter(&format!("date == {}", json["time"]));
    assert!(said(&["--json", "--filter", &date]).contains("AcctLoginRequest"), "{date}");
}

#[test]
fn one_message_is_extracted() {
    let file = samples().join("uru-login.pcapng");
    let dissect = |arguments: &[&str]| {
        bytes(&file, &[&["dissect", "--keys", "uru-keys.toml"], arguments].concat())
    };
    let (blob, err, code) = dissect(&["--filter", "auth.VaultNodeFetched", "--first"]);
    assert_eq!(code, 0, "{err}");
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("reply.bin");
    std::fs::write(&cut, &blob).unwrap();
    // The suggested command decodes the bytes.
    let decode = err.split('`').nth(1).unwrap().strip_prefix("worldwire ").unwrap();
    assert_eq!(decode, "decode uru.auth --from server");
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(decode.split(' ')).arg("--json").arg(&cut);
    let decoded = command.output().unwrap();
    let decoded: serde_json::Value = serde_json::from_slice(&decoded.stdout).unwrap();
    let (line, _, _) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "1", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(decoded["fields"], line["fields"]);
    let (second, _, _) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "2"]);
    assert!(!second.is_empty() && second != blob);
    let (none, err, code) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "999"]);
    assert_eq!((none.len(), code), (0, 1));
    assert!(err.contains("no message 999: only "), "{err}");
}

/// Short messages are found after a gap if several different ones follow each other.
#[test]
fn small_messages_are_found_between_segments_that_cut_them() {
    let mut talk = talk();
    let mut packets = talk.open();
    let connect = downloads().remove(0).1;
    packets.extend(talk.data(Side::Client, &connect));
    let pings: Vec<u8> =
        (0..4000_u32).flat_map(|number| [12, 0, number].map(u32::to_le_bytes).concat()).collect();
    for (index, segment) in pings.chunks(400).enumerate() {
        let sent = talk.data(Side::Server, segment);
        if index != 20 {
            packets.extend(sent);
        }
    }
    let (out, err, code) = run(&packets, BRIEF);
    let read = out.matches("file.PingReply").count();
    assert!((3_880..3_968).contains(&read), "{read} {err}");
    assert_eq!((code, out.matches("resync").count()), (1, 1), "{err}");
}

/// The contents of a JSON line, without its position in the capture.
fn said(line: &str) -> (bool, String) {
    let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
    let members = line.as_object_mut().unwrap();
    // These depend on lost packets: known players, and the packet that completes a message.
    for key in ["time", "packet", "players", "remarks"] {
        members.remove(key);
    }
    let names = ["opened", "gap", "resync", "warning", "problem"];
    let is_note = names.iter().any(|name| members["name"] == *name);
    (is_note, line.to_string())
}

/// Removes each packet of every sample in turn: no message is invented, and most of the others are
/// still decoded.
#[test]
fn lost_bytes_never_produce_messages() {
    for (name, keys, data, least) in [
        ("uru-login.pcapng", "uru-keys.toml", "sdl", 0.9),
        ("uru-age.pcapng", "uru-keys.toml", "sdl", 0.8),
        ("ki-login.pcapng", "ki-keys.toml", "ki-types.json", 0.9),
        ("tera-login.pcapng", "mxo-keys.toml", "tera", 0.5),
        ("mxo-world.pcapng", "mxo-keys.toml", "sdl", 0.5),
        ("mxo-login.pcapng", "mxo-login-keys.toml", "sdl", 0.5),
    ] {
        let arguments = ["dissect", "--json", "--keys", keys, "--data", data];
        let all = packets(name);
        let lines = |packets: &[Vec<u8>]| -> Vec<String> {
            let (out, _, _) = run(packets, &arguments);
            let lines = out.lines().map(said).filter(|(is_note, _)| !is_note);
            lines.map(|(_, line)| line).collect()
        };
        let whole = lines(&all);
        let mut known: Vec<String> = whole.clone();
        known.sort_unstable();
        let (mut count, mut found) = (0, 0);
        for lost in (0..all.len()).step_by(1 + all.len() / 24) {
            let torn: Vec<Vec<u8>> = [&all[..lost], &all[lost + 1..]].concat();
            for line in lines(&torn) {
                found += 1;
                // An MxO object whose creation was lost is shown with its remaining parts.
                let is_known = known.binary_search(&line).is_ok();
                assert!(is_known || name.starts_with("mxo"), "{name} {lost}: {line}");
            }
            count += whole.len();
        }
        let share = f64::from(found) / f64::from(u32::try_from(count).unwrap());
        println!("{name}: {share:.3} of {} messages come out", whole.len());
        assert!(share >= least, "{name} {share}");
    }
}
