//! Tests captures in which TCP packets are missing, late or repeated.

use std::collections::BTreeMap;

use proptest::prelude::*;
use worldwire_core::Sampler;

use crate::samples::{KI, TERA, URU, URU_AGE, dissected, packets};

/// The packets with TCP data, each with its port and its segment number within the conversation.
fn segments(packets: &[Vec<u8>]) -> Vec<(usize, u16, usize)> {
    const TCP: u8 = 6;
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    let mut segments = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        // Ethernet, IPv4 without options, TCP without options.
        if packet[12..14] != [8, 0] || packet[23] != TCP || packet.len() <= 54 {
            continue;
        }
        let ports = [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]]));
        let count = counts.entry(ports[0].max(ports[1])).or_default();
        *count += 1;
        segments.push((index, ports[0].max(ports[1]), *count));
    }
    segments
}

/// Losing any one segment loses only the messages in it. Excludes the segments that set up a
/// connection, because an encrypted connection cannot be read without them.
#[test]
fn a_lost_segment_loses_only_its_content() {
    for (sample, name) in [(&URU, "uru"), (&URU_AGE, "uru-age"), (&KI, "ki"), (&TERA, "tera")] {
        let packets = packets(sample);
        let (all, _) = dissected(sample, &packets);
        let (mut read, mut whole) = (0, 0);
        for (index, _, _) in segments(&packets).into_iter().filter(|it| it.2 > sample.busy.1) {
            let mut lossy = packets.clone();
            lossy.remove(index);
            let (shown, summary) = dissected(sample, &lossy);
            assert_eq!(summary.gaps, 1, "{name} {index}");
            let is_note = |name: &str| ["gap", "resync", "problem", "warning"].contains(&name);
            for (side, items) in &shown {
                let all = &all[side];
                for item in items.iter().filter(|(_, name)| !is_note(name)) {
                    assert!(all.contains(item), "{name} {index}: {item:?} was never sent");
                }
                whole += all.len();
                read += items.iter().filter(|(_, name)| !is_note(name)).count();
            }
            // The line of the segment itself.
            whole -= 1;
        }
        let share =
            f64::from(u32::try_from(read).unwrap()) / f64::from(u32::try_from(whole).unwrap());
        println!("{name}: {share:.4}");
        assert!(share > 0.95, "{name}: {share}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Data packets that are late, early or repeated yield the same messages.
    #[test]
    fn reordered_and_repeated_packets_do_not_change_the_messages(seed: u64) {
        let sample = [&URU, &KI, &TERA][usize::try_from(seed % 3).unwrap()];
        let whole = dissected(sample, &packets(sample));
        let mut sampler = Sampler::new(seed);
        let mut packets = packets(sample);
        for _ in 0..12 {
            let at = usize::try_from(sampler.below(packets.len() as u64 - 1)).unwrap();
            // Handshake packets and FINs stay in place, because the numbers in a SYN are needed
            // first.
            let plain = |packet: &Vec<u8>| packet[47] & 7 == 0;
            if sampler.below(2) == 0 && plain(&packets[at]) && plain(&packets[at + 1]) {
                packets.swap(at, at + 1);
            } else if plain(&packets[at]) {
                let again = packets[at].clone();
                packets.insert(at + 1, again);
            }
        }
        let mut again = dissected(sample, &packets);
        // A gap can open only if an acknowledgement overtakes the data that it acknowledges.
        if again.1.gaps == 0 {
            prop_assert_eq!(&again.0, &whole.0);
        } else {
            again.0.values_mut().for_each(|items| {
                items.retain(|item| !["gap", "resync", "problem"].contains(&item.1.as_str()));
            });
            for (side, items) in &again.0 {
                prop_assert!(items.iter().all(|item| whole.0[side].contains(item)));
            }
        }
    }

    /// A packet missing from a capture is reported as a gap. The messages before the gap and those
    /// in the segments after it are read.
    #[test]
    fn a_lost_packet_is_reported_as_a_gap(pick in 0..200_usize, which in 0..3_usize) {
        let sample = [&URU, &KI, &TERA][which];
        let whole = dissected(sample, &packets(sample));
        let mut packets = packets(sample);
        let (port, setup) = sample.busy;
        // Data of a connection that is set up.
        let data: Vec<usize> = (0..packets.len())
            .filter(|at| {
                let packet = &packets[*at];
                let ports = [packet[34..36].to_vec(), packet[36..38].to_vec()];
                packet.len() > 54 && ports.contains(&port.to_be_bytes().to_vec())
            })
            .skip(setup)
            .collect();
        let lost = data[pick % (data.len() - 2)];
        packets.remove(lost);
        let (after, summary) = dissected(sample, &packets);
        prop_assert_eq!((summary.gaps, summary.problems), (1, 0));
        for (side, items) in &whole.0 {
            let kept = &after[side];
            let is_message = |item: &&(u64, String)| !["gap", "resync"].contains(&item.1.as_str());
            let missing = items.iter().filter(|item| !kept.contains(item)).count();
            prop_assert!(missing <= 2, "{missing} messages are missing");
            prop_assert!(kept.iter().filter(is_message).all(|item| items.contains(item)));
        }
    }
}
