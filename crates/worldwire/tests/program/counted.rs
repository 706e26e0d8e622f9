//! Unused packets of a capture are counted, by reason.

use std::io::Write as _;
use std::process::{Command, Stdio};

use worldwire_capture::{ClassicWriter, LinkType, Timestamp};

use crate::samples::{downloads, talk};

/// The messages of `dissect` about these packets, and its exit code.
fn dissect(link: LinkType, packets: &[(&[u8], u32)], quiet: bool) -> (String, Option<i32>) {
    let more: &[&str] = if quiet { &["--quiet"] } else { &[] };
    let (out, err, code) = run("dissect", &capture(link, packets), more);
    assert!(out.is_empty(), "{out}");
    (err, code)
}

/// A capture of packets, each with its length on the wire.
fn capture(link: LinkType, packets: &[(&[u8], u32)]) -> Vec<u8> {
    let mut writer = ClassicWriter::new(Vec::new(), link).unwrap();
    for (data, length) in packets {
        writer.packet(Timestamp::from_parts(0, 0), data, *length).unwrap();
    }
    writer.into_inner()
}

/// Runs a command on a capture: standard output, standard error, exit code.
fn run(verb: &str, capture: &[u8], more: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args([verb, "-"]).args(more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(capture).unwrap();
    let output = running.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn a_capture_without_conversations_says_why() {
    let arp = [&[0xee; 12][..], &[8, 6], b"who has"].concat();
    let mut icmp = [&[0xee; 12][..], &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1], &[0; 18]].concat();
    icmp.resize(42, 0);
    let (said, code) = dissect(
        LinkType::ETHERNET,
        &[(&arp, 21), (&arp, 21), (&icmp, 42), (&icmp[..20], 42)],
        false,
    );
    assert_eq!(
        said,
        "worldwire: capture: 4 packets not used: 2 not IP but ARP, 1 cut off inside a header \
         by the capture, 1 neither TCP nor UDP but ICMP\nworldwire: capture: 1 packet cut short \
         by the capture; capture with a snap length of 0\n0 conversations, 0 messages\n"
    );
    assert_eq!(code, Some(0));
    let (said, code) = dissect(LinkType(147), &[(b"?", 1)], true);
    assert!(said.contains("1 packet could not be used: link type 147"), "{said}");
    assert_eq!(code, Some(1));
    let (said, _) = dissect(LinkType::RAW, &[], false);
    assert!(said.contains("contains no packets"), "{said}");
}

/// A gap in a conversation, or a truncated file, must not hide other problems with the capture.
#[test]
fn all_warnings_about_a_capture_are_printed() {
    let mut talk = talk();
    let mut packets = talk.open();
    for (side, bytes) in downloads() {
        packets.extend(talk.data(side, &bytes));
    }
    let lost = packets.iter().rposition(|packet| packet.len() > 54).unwrap() - 4;
    let arp = [&[0xee; 12][..], &[8, 6], b"who has"].concat();
    let mut torn = packets.clone();
    torn.remove(lost);
    for (packets, cut, snapped, reasons) in [
        (&torn, 0, 0, &["1 packet not used: 1 not IP but ARP"][..]),
        (&packets, 0, 9, &["1 packet not used: 1 not IP but ARP", "1 packet cut short by"]),
        (&packets, 5, 9, &["truncated at offset ", "1 packet not used: ", "1 packet cut short by"]),
    ] {
        let whole = packets.iter().map(|packet| (&packet[..], packet.len()));
        let mut all: Vec<(&[u8], usize)> =
            whole.chain([(&arp[..], 21), (&packets[0], 54)]).collect();
        // This packet was captured with a snap length.
        all[lost].0 = &all[lost].0[..all[lost].1 - snapped];
        let sized = all.iter().map(|(data, length)| (*data, u32::try_from(*length).unwrap()));
        let mut file = capture(LinkType::ETHERNET, &sized.collect::<Vec<_>>());
        file.truncate(file.len() - cut);
        for verb in ["dissect", "stats", "doctor"] {
            let (out, err, code) = run(verb, &file, &[]);
            assert_eq!(code, Some(1), "{verb}: {out}{err}");
            for reason in reasons {
                assert!(err.contains(reason), "{verb}: {reason}: {out}{err}");
            }
        }
    }
}
