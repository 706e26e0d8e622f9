//! Tests MxO captures, including damage that a network or a capture can cause.

use worldwire_core::Side;
use worldwire_dissect::{Definitions, Item, MxoObjects, MxoViews, NoteKind, Scratch};

use crate::samples::{Dissected, MXO, Sample, dissected, packets, taken_in};

/// The names of one side's messages in the only conversation.
fn names(dissected: &Dissected, side: &'static str) -> Vec<String> {
    dissected[&(0, side)].iter().map(|item| item.1.clone()).collect()
}

#[test]
fn mxo_datagrams_have_names() {
    let (dissected, _) = dissected(&MXO, &packets(&MXO));
    let client = names(&dissected, "client");
    assert_eq!(client[0], "setup.Hello");
    assert_eq!(client.iter().filter(|name| *name == "game.Objects").count(), 4);
    assert!(["game.Rpc", "game.Ack", "setup.Ping"].iter().all(|it| client.iter().any(|n| n == it)));
    let server = names(&dissected, "server");
    assert_eq!(server[..5], ["setup.Answer"; 5]);
    // The first packet is empty and only gives the client something to acknowledge.
    assert_eq!(server.iter().filter(|name| *name == "game.Objects").count(), 5);
}

#[test]
fn repeated_mxo_datagrams_are_ignored() {
    let whole = dissected(&MXO, &packets(&MXO));
    let twice: Vec<Vec<u8>> = packets(&MXO)
        .into_iter()
        // Plain datagrams have no numbers, so each is shown.
        .flat_map(
            |packet| if packet[42] == 1 { vec![packet.clone(), packet] } else { vec![packet] },
        )
        .collect();
    assert_eq!(dissected(&MXO, &twice).0, whole.0);
}

#[test]
fn mxo_is_recognised_despite_a_damaged_or_missing_beginning() {
    let all = packets(&MXO);
    let count = |packets: &[Vec<u8>]| {
        let (dissected, summary) = dissected(&MXO, packets);
        let packets = dissected.values().flatten().filter(|item| item.1.starts_with("game."));
        (packets.count(), summary.problems)
    };
    let whole = count(&all);
    assert!(whole.0 > 20 && whole.1 == 0);
    // The same conversation on another port.
    let elsewhere = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let mut packets = packets.to_vec();
        for packet in &mut packets {
            for port in packet[34..38].chunks_mut(2) {
                if port == 10_000_u16.to_be_bytes() {
                    port.copy_from_slice(&20_000_u16.to_be_bytes());
                }
            }
        }
        packets
    };
    assert_eq!(count(&elsewhere(&all)), whole);
    for (byte, found) in [(0, 1), (6, 0), (20, 0), (40, 0)] {
        // A wrong first byte is a problem, whatever follows.
        let mut packets = all.clone();
        packets[0][42 + byte] ^= 0xff;
        assert_eq!(count(&packets), (whole.0, found), "byte {byte}");
        assert_eq!(count(&elsewhere(&packets)), (whole.0, found), "byte {byte} elsewhere");
    }
    let sealed: Vec<_> = all.iter().filter(|packet| packet[42] == 1).cloned().collect();
    for from in 0..5 {
        let wanted = count(&sealed[from..]);
        assert_eq!(wanted.0, whole.0 - from);
        assert_eq!(count(&elsewhere(&sealed[from..])), wanted, "from {from} on");
    }
}

#[test]
fn overviews_name_the_server_wherever_the_capture_starts() {
    let all = packets(&MXO);
    let overview = |packets: &[Vec<u8>]| {
        let mut dissection = taken_in(&MXO, packets);
        dissection.run(&|_: &Item<'_>, _: &mut Scratch, (): &mut ()| {}, &mut (), |_| ());
        let overviews = dissection.overviews();
        let [one] = overviews.as_slice() else { panic!("{overviews:?}") };
        (one.client.port(), one.server.port(), one.bytes, one.midstream)
    };
    for from in 0..10 {
        // Ethernet, IPv4 and UDP headers take 42 bytes; the ports are at 34.
        let (mut wanted, rest) = ([0; 2], &all[from..]);
        for packet in rest {
            let is_server = packet[34..36] == 10_000_u16.to_be_bytes();
            wanted[usize::from(is_server)] += packet.len() as u64 - 42;
        }
        // The first packet is the hello.
        assert_eq!(overview(rest), (50_210, 10_000, wanted, from > 0), "from {from} on");
    }
}

#[test]
fn missing_mxo_packets_are_reported() {
    let all = packets(&MXO);
    let gaps = |missing: &[usize]| -> Vec<String> {
        let rest = (0..all.len()).filter(|index| !missing.contains(index));
        let packets: Vec<Vec<u8>> = rest.map(|index| all[index].clone()).collect();
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
            out.extend(item.note().filter(|it| it.kind == NoteKind::Gap).map(|it| it.text.clone()));
        };
        let mut out = Vec::new();
        taken_in(&MXO, &packets).run(&show, &mut out, |_| ());
        out
    };
    assert_eq!(gaps(&[]), [""; 0]);
    // From here on, both sides send in turn.
    let dissected = gaps(&[11, 12, 14]);
    insta::assert_snapshot!(dissected.join("\n"), @r"
    packets 3 to 4 from the client are missing (2 packets)
    packet 4 from the server is missing
    ");
}

#[test]
fn a_missing_mxo_key_or_create_is_reported() {
    let other =
        Sample { keys: "[[mxo.session]]\nkey = \"00112233445566778899aabbccddeeff\"\n", ..MXO };
    let (told_blind, summary) = dissected(&other, &packets(&MXO));
    assert_eq!(summary.problems, 1);
    assert!(
        names(&told_blind, "client")
            .iter()
            .chain(&names(&told_blind, "server"))
            .all(|name| name.starts_with("setup.") || ["problem", "resync"].contains(&&**name))
    );
    // The character's movements can be decoded without its create; updates of the door cannot.
    let packets = packets(&MXO);
    let problems = |missing: usize| {
        let mut packets = packets.clone();
        packets.remove(missing);
        dissected(&MXO, &packets).1.problems
    };
    let missing: Vec<u64> = (0..packets.len()).map(problems).filter(|count| *count > 0).collect();
    assert_eq!(missing, [1]);
}

#[test]
fn mxo_views_are_tracked_through_a_capture() {
    let objects = Definitions::built_in().part::<MxoObjects>();
    let take = |packets: &[Vec<u8>]| -> Vec<(Side, Vec<u8>)> {
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(Side, Vec<u8>)>| {
            if let Some(message) = item.message().filter(|message| message.is_message()) {
                out.push((item.from, message.bytes().to_vec()));
            }
        };
        let mut out = Vec::new();
        taken_in(&MXO, packets).run(&show, &mut out, |_| ());
        out
    };
    let mut views = MxoViews::new(objects.objects().clone());
    let mut most = 0;
    for (from, packet) in take(&packets(&MXO)) {
        assert_eq!(views.take(from, &packet, None).unwrap(), []);
        most = most.max(views.replica().len());
    }
    assert_eq!((most, views.replica().len()), (3, 2));
    let door = views.replica().view(3).unwrap();
    assert_eq!(
        door.value("CurrentState").map(|value| format!("{value:?}")),
        Some("Unsigned(2104)".into())
    );
    let own = views.replica().view(2).unwrap();
    assert_eq!(own.movement().yaw, Some(67));
}
