//! Tests what is lost after a panic, and the order of output.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use worldwire_capture::{CaptureReader, LinkType, Record};

use super::*;
use crate::families::Families;
use crate::quiet_defects;

thread_local! {
    /// The packet at which reading a conversation panics on this thread.
    static BREAKS_AT: Cell<u64> = const { Cell::new(0) };
}

/// Conversation, name and text of an item.
type Reported = (u64, String, String);

/// Panics if the test requested it.
pub(super) fn break_down(stamp: &Stamp) {
    assert!(stamp.packet != Some(BREAKS_AT.get()), "on purpose");
}

/// Reads generated frames in batches of this many packets and collects the output of `show` for
/// every item.
pub(super) fn dissect_frames<S: Sink>(
    families: Families,
    frames: &[Vec<u8>],
    packets: usize,
    show: &(impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync),
) -> (S, Dissection) {
    let definitions = Definitions::none_for(families);
    let mut dissection = Dissection::new(Options { definitions, ..Options::default() });
    let mut out = S::default();
    for (index, data) in frames.iter().enumerate() {
        dissection.push(&Packet {
            number: index as u64 + 1,
            time: Timestamp::from_parts(0, 0),
            interface: 0,
            link: LinkType::ETHERNET,
            data,
            original_length: 0,
            unusable: None,
            offset: 0,
        });
        if (index + 1) % packets == 0 {
            dissection.run(show, &mut out, |_| ());
        }
    }
    dissection.end();
    dissection.run(show, &mut out, |_| ());
    (out, dissection)
}

/// Reads the sample in batches of this many packets and collects every item. Reading a
/// conversation panics at one packet.
fn names_of(
    packets: usize,
    breaks_at: u64,
    show: impl Fn(&Item<'_>, &str) + Sync,
) -> (Vec<Reported>, Summary) {
    quiet_defects();
    let file = include_bytes!("../../../../samples/uru-login.pcapng");
    let keys = Keys::parse(include_str!("../../../../samples/uru-keys.toml")).unwrap();
    let mut capture = CaptureReader::new(file.as_slice(), &Limits::DEFAULT).unwrap();
    let mut dissection = Dissection::new(Options { keys, ..Options::default() });
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Reported>| {
        let mut name = String::new();
        item.push_name(&mut name);
        let text = item.note().map_or(String::new(), |note| note.text.clone());
        out.push((item.stamp.stream, name.clone(), text));
        show(item, &name);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let pool = pool.start_handler(move |_| BREAKS_AT.set(breaks_at)).build().unwrap();
    let mut out = Vec::new();
    let mut count = 0;
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
            count += 1;
            if count % packets == 0 {
                pool.install(|| dissection.run(&show, &mut out, |_| ()));
            }
        }
    }
    dissection.end();
    pool.install(|| dissection.run(&show, &mut out, |_| ()));
    (out, dissection.summary())
}

fn names(packets: usize, show: impl Fn(&Item<'_>, &str) + Sync) -> (Vec<Reported>, Summary) {
    names_of(packets, 0, show)
}

#[test]
fn batch_size_does_not_change_the_output() {
    let whole = names(usize::MAX, |_, _| ());
    assert_eq!(whole.1.problems, 0);
    for packets in [1, 2, 7] {
        assert_eq!(names(packets, |_, _| ()), whole);
    }
}

#[test]
fn a_panic_in_a_message_loses_only_that_message() {
    let (whole, _) = names(usize::MAX, |_, _| ());
    let (found, summary) = names(usize::MAX, |_, name| {
        assert!(name != "auth.AcctLoginReply", "on purpose");
    });
    assert_eq!(summary.problems, 1);
    assert_eq!(found.len(), whole.len());
    for (found, whole) in found.iter().zip(&whole) {
        if whole.1 != "auth.AcctLoginReply" {
            assert_eq!(found, whole);
            continue;
        }
        assert_eq!((found.0, &*found.1), (whole.0, "problem"));
        let text = &found.2;
        for part in ["bug in worldwire", "uru message auth.AcctLoginReply", "on purpose", "packet "]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains("secret): 0400"), "{text}");
    }
}

#[test]
fn a_panic_in_a_conversation_loses_the_rest_of_it() {
    let (whole, _) = names(usize::MAX, |_, _| ());
    let packet = AtomicU64::new(0);
    names(usize::MAX, |item, name| {
        if name == "auth.AcctLoginReply" {
            packet.store(item.stamp.packet.unwrap_or(0), Relaxed);
        }
    });
    let packet = packet.into_inner();
    let (found, summary) = names_of(usize::MAX, packet, |_, _| ());
    assert_eq!(summary.problems, 1);
    let broken = found.iter().find(|item| item.1 == "problem").unwrap();
    assert!(
        broken.2.contains(&format!("abandoned at packet {packet} from the server")),
        "{}",
        broken.2
    );
    let others = |all: &[Reported]| -> Vec<_> {
        all.iter().filter(|item| item.0 != broken.0).cloned().collect()
    };
    assert_eq!(others(&found), others(&whole));
    let last = found.iter().rfind(|item| item.0 == broken.0).unwrap();
    assert_eq!(last, broken, "nothing more of it is read");
}

#[test]
fn a_show_that_always_panics_terminates() {
    let (found, summary) = names(3, |_, _| panic!("on purpose"));
    assert!(found.is_empty());
    assert!(summary.problems > 20 && summary.messages > 20, "{summary}");
}

#[test]
fn taken_overviews_are_still_summarised() {
    let file = include_bytes!("../../../../samples/uru-login.pcapng");
    let keys = Keys::parse(include_str!("../../../../samples/uru-keys.toml")).unwrap();
    let mut capture = CaptureReader::new(file.as_slice(), &Limits::DEFAULT).unwrap();
    let mut dissection = Dissection::new(Options { keys, ..Options::default() });
    let show = |_: &Item<'_>, _: &mut Scratch, (): &mut ()| {};
    let mut taken = Vec::new();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
            dissection.run(&show, &mut (), |_| ());
            taken.extend(dissection.take_closed());
        }
    }
    assert!(!taken.is_empty(), "the first conversations have ended");
    dissection.end();
    dissection.run(&show, &mut (), |_| ());
    taken.extend(dissection.take_closed());
    assert!(dissection.overviews().is_empty() && dissection.take_closed().is_empty());
    assert_eq!(taken.iter().map(|overview| overview.stream).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(dissection.summary(), names(usize::MAX, |_, _| ()).1);
}

#[test]
fn batches_shrink_while_output_is_large() {
    let mut size = BatchSize::default();
    for _ in 0..20 {
        size = size.next(1000);
    }
    assert_eq!(size.0, BatchSize::MAX);
    for _ in 0..20 {
        size = size.next(1 << 30);
    }
    assert_eq!(size.0, BatchSize::LEAST);
}
