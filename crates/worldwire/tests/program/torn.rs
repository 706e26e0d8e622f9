//! Captures that lack their beginning, their end or a part in the middle: the rest is still
//! decoded, and missing parts are reported.

use worldwire_core::Side;

use crate::samples::{BRIEF, downloads, packets, run, samples, talk, tcp};

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
    // Only the connect packets are missing; setup packets and the file server's messages are enough
    // to recognise the conversations.
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

/// For a family that numbers its datagrams, lost ones are reported and count like lost bytes of a
/// stream.
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

/// The same two ends start another conversation; the end of the first one was not captured.
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
    // These fields depend on lost packets: known players, and the packet that completes a message.
    for key in ["time", "packet", "players", "remarks"] {
        members.remove(key);
    }
    let names = ["opened", "gap", "resync", "warning", "problem"];
    let is_note = names.iter().any(|name| members["name"] == *name);
    (is_note, line.to_string())
}

/// Removes each packet of every sample in turn: no message is invented, and most of the remaining
/// ones are still decoded.
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
