//! The output does not depend on the number of threads, on the batches, or on when it is merged.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use proptest::collection::vec;
use proptest::prelude::*;
use worldwire_capture::{CaptureReader, Record, Timestamp};
use worldwire_core::json::Style;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Dissection, Format, Item, Keys, Options, Scratch, Unmerged};

/// The captures whose packets are mixed.
const CAPTURES: [&[u8]; 5] = [
    include_bytes!("../../../samples/uru-login.pcapng"),
    include_bytes!("../../../samples/uru-age.pcapng"),
    include_bytes!("../../../samples/ki-login.pcapng"),
    include_bytes!("../../../samples/tera-login.pcapng"),
    include_bytes!("../../../samples/mxo-world.pcapng"),
];

const KEYS: [&str; 3] = [
    include_str!("../../../samples/uru-keys.toml"),
    include_str!("../../../samples/ki-keys.toml"),
    include_str!("../../../samples/mxo-keys.toml"),
];

/// A packet with the properties that the mix keeps.
type Mixed = (worldwire_capture::LinkType, u32, Vec<u8>);

/// The packets of all captures; `order` decides which capture supplies each packet.
fn mix(order: &[u8]) -> Vec<Mixed> {
    let mut queues: Vec<std::collections::VecDeque<Mixed>> = CAPTURES
        .iter()
        .map(|file| {
            let mut capture = CaptureReader::new(*file, &Limits::DEFAULT).unwrap();
            let mut packets = std::collections::VecDeque::new();
            while let Some(record) = capture.next().unwrap() {
                if let Record::Packet(packet) = record {
                    let data = packet.data.to_vec();
                    packets.push_back((packet.link, packet.original_length, data));
                }
            }
            packets
        })
        .collect();
    let mut mixed = Vec::new();
    for turn in order.iter().cycle() {
        let start = usize::from(*turn) % queues.len();
        let Some(index) = (0..queues.len())
            .map(|at| (start + at) % queues.len())
            .find(|at| !queues[*at].is_empty())
        else {
            return mixed;
        };
        mixed.extend(queues[index].pop_front());
    }
    mixed
}

/// Reads the packets in batches of these sizes. With `is_late`, each batch is merged while the next
/// one is read.
fn read(packets: &[Mixed], batches: &[usize], threads: usize, is_late: bool) -> String {
    let mut keys = Keys::none();
    KEYS.iter().for_each(|text| keys.add(text).unwrap());
    let mut dissection = Dissection::new(Options { keys, ..Options::default() });
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        let tree = item.tree(Tree::new(), &Limits::DEFAULT);
        Format::Json(Style::default()).write(item, &scratch.name, &tree, out);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut out = String::new();
    pool.install(|| {
        let mut unmerged: Option<Unmerged<String>> = None;
        let mut run = |dissection: &mut Dissection, out: &mut String| match is_late {
            true => {
                let before = unmerged.take();
                let merge = || {
                    if let Some(before) = before {
                        before.merge(out);
                    }
                };
                unmerged = Some(dissection.run_beside(&show, |_| (), merge));
            }
            false => dissection.run(&show, out, |_| ()),
        };
        let mut sizes = batches.iter().cycle();
        let mut left = sizes.next().copied().unwrap_or(usize::MAX);
        for (number, (link, original_length, data)) in (1..).zip(packets) {
            dissection.push(&worldwire_capture::Packet {
                number,
                time: Timestamp::from_parts(0, 1000 * number.cast_signed()),
                interface: 0,
                link: *link,
                data,
                original_length: *original_length,
                unusable: None,
                offset: 0,
            });
            left -= 1;
            if left == 0 {
                run(&mut dissection, &mut out);
                left = sizes.next().copied().unwrap_or(usize::MAX);
            }
        }
        dissection.end();
        run(&mut dissection, &mut out);
        if let Some(rest) = unmerged.take() {
            rest.merge(&mut out);
        }
    });
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_output_is_the_same_on_any_number_of_threads(
        order in vec(any::<u8>(), 1..40),
        batches in vec(1_usize..150, 1..6),
        threads in 1_usize..=6,
    ) {
        let packets = mix(&order);
        let whole = read(&packets, &[usize::MAX], 1, false);
        prop_assert!(whole.lines().count() > 100);
        for is_late in [false, true] {
            prop_assert_eq!(&read(&packets, &batches, threads, is_late), &whole);
        }
    }
}
