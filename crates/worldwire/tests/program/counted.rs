//! Unused packets of a capture are counted, by reason.

use std::io::Write as _;
use std::process::{Command, Stdio};

use worldwire_capture::{ClassicWriter, LinkType, Timestamp};

/// The messages of `dissect` about these packets, and its exit code.
fn dissect(link: LinkType, packets: &[(&[u8], u32)], quiet: bool) -> (String, Option<i32>) {
    let mut writer = ClassicWriter::new(Vec::new(), link).unwrap();
    for (data, length) in packets {
        writer.packet(Timestamp::from_parts(0, 0), data, *length).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["dissect", "-"]).args(quiet.then_some("--quiet"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(&writer.into_inner()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
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
        "worldwire: capture: 4 packets not used: 2 not IP but ARP, 1 neither TCP nor UDP but \
         ICMP, 1 truncated inside a header by the capture\n\
         worldwire: capture: 1 packet cut short by the capture; capture with a snap length \
         of 0\n0 conversations, 0 messages\n"
    );
    assert_eq!(code, Some(0));
    let (said, code) = dissect(LinkType(147), &[(b"?", 1)], true);
    assert!(said.contains("1 packet could not be used: link type 147"), "{said}");
    assert_eq!(code, Some(1));
    let (said, _) = dissect(LinkType::RAW, &[], false);
    assert!(said.contains("contains no packets"), "{said}");
}
