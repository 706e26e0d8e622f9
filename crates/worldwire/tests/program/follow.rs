//! `follow`: the bytes of a conversation.

use worldwire_core::Side;

use crate::samples::{bytes, downloads, packets, run, samples, talk, tcp};

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
            // Encryption does not change the length.
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

/// The bytes of one side, as captured.
fn stream_of(packets: &[Vec<u8>], ports: [u16; 2]) -> Vec<u8> {
    let of = packets.iter().filter(|packet| tcp(packet).0 == ports);
    of.flat_map(|packet| tcp(packet).1.to_vec()).collect()
}
