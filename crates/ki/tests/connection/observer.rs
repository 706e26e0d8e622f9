//! Observers of complete, damaged and encrypted connections.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Sampler, Side};
use worldwire_ki::connection::{Connection, ObserverKeys, ServerConfig};
use worldwire_ki::control::{Control, KeepAlive, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::{Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::Frame;

use crate::support::{EPOCH, SECOND, client, line, lines, message, server};

/// The writes of both sides of a session, in order.
fn session(sampler: &mut Sampler) -> Vec<(Side, Vec<u8>)> {
    let (mut client, mut server) = (client(), server());
    let mut writes = Vec::new();
    for round in 0..20u32 {
        let now = SECOND * 7 * round;
        client.timeout(now);
        server.timeout(now);
        for connection in [&mut client, &mut server] {
            let length = usize::try_from(sampler.below(40)).unwrap();
            let payload = sampler.bytes(length);
            connection.send(&message(5, 1 + (round % 200) as u8, &payload)).unwrap();
        }
        if round == 9 {
            server.send(&message(7, 9, &sampler.bytes(40_000))).unwrap();
        }
        for _ in 0..3 {
            while let Some(bytes) = server.poll_transmit(Side::Client) {
                client.input(now, Side::Server, Input::Bytes(&bytes));
                writes.push((Side::Server, bytes));
            }
            lines(&mut client);
            while let Some(bytes) = client.poll_transmit(Side::Server) {
                server.input(now, Side::Client, Input::Bytes(&bytes));
                writes.push((Side::Client, bytes));
            }
            lines(&mut server);
        }
    }
    writes
}

fn observe(writes: &[(Side, Vec<u8>)], cut: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> [Vec<String>; 2] {
    let mut observer = Connection::observer(Arc::default());
    let mut events = [Vec::new(), Vec::new()];
    let mut read = [0, 0];
    for (side, bytes) in writes {
        for piece in cut(bytes) {
            observer.input(Duration::ZERO, *side, Input::Bytes(&piece));
            while let Some(event) = observer.poll_event() {
                let Event::Received(received) = &event else {
                    panic!("{}", line(&event));
                };
                let index = received.side.index();
                // The pieces tile the stream.
                assert_eq!(received.range.start, read[index]);
                assert_eq!(received.range.end - received.range.start, received.bytes.len() as u64);
                read[index] = received.range.end;
                events[index].push(line(&event));
            }
        }
    }
    for (side, read) in Side::BOTH.into_iter().zip(read) {
        let total: usize = writes.iter().filter(|(by, _)| *by == side).map(|(_, b)| b.len()).sum();
        assert_eq!(read, total as u64);
    }
    for side in Side::BOTH {
        observer.input(Duration::ZERO, side, Input::End);
    }
    assert_eq!(lines(&mut observer), ["Closed(Remote)"]);
    assert!(observer.is_established());
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn segment_sizes_do_not_change_the_events(seed in any::<u64>(), size in 1..300usize) {
        let writes = session(&mut Sampler::new(seed));
        let whole = observe(&writes, |bytes| vec![bytes.to_vec()]);
        let cut = observe(&writes, |bytes| bytes.chunks(size).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(&whole, &cut);
        let bytes = observe(&writes, |bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(&whole, &bytes);
    }

    #[test]
    fn a_gap_loses_only_the_messages_it_touches(seed in any::<u64>(), lost in 1..40usize) {
        let writes = session(&mut Sampler::new(seed));
        prop_assume!(lost + 1 < writes.len());
        let mut observer = Connection::observer(Arc::default());
        let mut events = Vec::new();
        for (index, (side, bytes)) in writes.iter().enumerate() {
            if index == lost {
                observer.input(Duration::ZERO, *side, Input::Gap(bytes.len() as u64));
            } else {
                observer.input(Duration::ZERO, *side, Input::Bytes(bytes));
            }
            events.extend(lines(&mut observer));
        }
        let all = {
            let mut observer = Connection::observer(Arc::default());
            let mut all = Vec::new();
            for (index, (side, bytes)) in writes.iter().enumerate() {
                observer.input(Duration::ZERO, *side, Input::Bytes(bytes));
                let reported = lines(&mut observer);
                if index != lost {
                    all.extend(reported);
                }
            }
            all
        };
        let notes = |line: &&String| line.starts_with("Gap") || line.starts_with("Resync");
        prop_assert!(events.iter().filter(notes).count() >= 1);
        let messages: Vec<&String> = events.iter().filter(|line| !notes(line)).collect();
        prop_assert_eq!(messages, all.iter().collect::<Vec<_>>());
    }

    #[test]
    fn datagrams_hold_whole_frames(seed in any::<u64>()) {
        let writes = session(&mut Sampler::new(seed));
        let mut stream = Connection::observer(Arc::default());
        let mut datagrams = Connection::observer(Arc::default());
        for (side, bytes) in &writes {
            stream.input(Duration::ZERO, *side, Input::Bytes(bytes));
            datagrams.input(Duration::ZERO, *side, Input::Datagram(bytes));
            prop_assert_eq!(lines(&mut stream), lines(&mut datagrams));
        }
    }
}

#[test]
fn a_torn_datagram_affects_no_other() {
    let good = Frame::message(message(1, 1, b"good")).to_bytes().unwrap();
    let mut observer = Connection::observer(Arc::default());
    for bytes in [&good[..], &good[..9], b"junk", &good[..]] {
        observer.input(Duration::ZERO, Side::Client, Input::Datagram(bytes));
    }
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client 1/1 [67, 6f, 6f, 64]
    fault of the client: at byte 17: wanted a datagram of whole frames, found 9 bytes of one
    fault of the client: magic at byte 26: wanted the start of a frame, 0d f0, found 6a 75
    client 1/1 [67, 6f, 6f, 64]
    ");
}

#[test]
fn encrypted_streams_need_a_key() {
    let key = StreamKey { key: [3; 16], nonce: [4; 16] };
    let handshake = CryptoBlock(vec![1; 257].into());
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(handshake),
    }));
    let accept = accept.to_bytes().unwrap();
    let alive = Control::KeepAlive(KeepAlive::Client { session_id: 77, millis: 1, minutes: 2 });
    let mut frames = Frame::control(alive).to_bytes().unwrap();
    for round in 0..300u32 {
        let text = format!("message {round}");
        let frame = Frame::message(message(5, 6, text.as_bytes()));
        frames.extend_from_slice(&frame.to_bytes().unwrap());
    }
    let mut sealed = Vec::new();
    Sealer::new(&key, Side::Client).seal(&frames, &mut sealed, || [9; 16]);
    assert_eq!(sealed.len(), frames.len() + 32, "one chunk is full");

    let read = |keys: Vec<(Option<u16>, StreamKey)>, size: usize| {
        let mut observer = Connection::observer(Arc::new(ObserverKeys { streams: keys }));
        let offer = Connection::server(ServerConfig::new(EPOCH).into(), 77, Duration::ZERO);
        observer.input(
            Duration::ZERO,
            Side::Server,
            Input::Bytes(&{ offer }.poll_transmit(Side::Client).unwrap()),
        );
        observer.input(Duration::ZERO, Side::Client, Input::Bytes(&accept));
        lines(&mut observer);
        let mut events = Vec::new();
        let mut end = 0;
        for piece in sealed.chunks(size) {
            observer.input(Duration::ZERO, Side::Client, Input::Bytes(piece));
            while let Some(event) = observer.poll_event() {
                if let Event::Received(received) = &event {
                    assert!(received.encrypted);
                    assert!(end == 0 || received.range.start == end);
                    end = received.range.end;
                }
                events.push(line(&event));
            }
        }
        let opened = if end > 0 { &[key][..] } else { &[] };
        assert_eq!(observer.opened_with(), (Some(77), opened));
        (events, end)
    };
    let total = (accept.len() + sealed.len()) as u64;
    for size in [1, 100, 5000, 10_000] {
        let (events, end) =
            read(vec![(Some(1), StreamKey { key: [1; 16], ..key }), (Some(77), key)], size);
        assert_eq!((events.len(), end), (301, total));
        assert_eq!(events[300], "client 5/6 [6d, 65, 73, 73, 61, 67, 65, 20, 32, 39, 39]");
    }
    for keys in [vec![], vec![(Some(78), key)], vec![(None, StreamKey { key: [1; 16], ..key })]] {
        let (events, _) = read(keys, 1000);
        assert_eq!(events, ["KeysNeeded { side: Client, session_id: Some(77) }"]);
    }
}

/// Bytes that do not begin a frame, or a message that exceeds its frame, do not affect anything
/// else.
#[test]
fn a_broken_frame_affects_nothing_else() {
    let good = |text: &[u8]| Frame::message(message(1, 1, text)).to_bytes().unwrap();
    let mut torn = good(b"torn");
    // The length of the message in the frame.
    torn[10] = 200;
    let writes = [good(b"one"), torn, good(b"two"), b"junk in between".to_vec(), good(b"three")];
    let rest = [good(b"four"), good(b"five"), good(b"six")];
    let whole = [writes.concat(), rest.concat()].concat();
    for size in [1, 7, 1000] {
        let mut observer = Connection::observer(Arc::default());
        let mut events = Vec::new();
        for piece in whole.chunks(size) {
            observer.input(Duration::ZERO, Side::Client, Input::Bytes(piece));
            events.extend(lines(&mut observer));
        }
        let texts: Vec<_> = events.iter().filter(|line| line.starts_with("client")).collect();
        // Reading resumes at two frames in a row. Segments that begin with a frame allow it
        // earlier.
        let count = if size == 1 { 6 } else { 4 };
        assert_eq!(texts.len(), count, "{size}: {events:?}");
        let faults = events.iter().filter(|line| line.starts_with("fault")).count();
        assert_eq!(faults, 2, "{events:?}");
        let skipped = "Resync { side: Client, skipped: 49..";
        assert!(events.iter().any(|line| line.starts_with(skipped)), "{size}: {events:?}");
    }
}

/// A changed byte of an encrypted stream is reported, and reading continues.
#[test]
fn a_wrong_tag_is_reported_and_loses_nothing() {
    let key = StreamKey { key: [3; 16], nonce: [4; 16] };
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(CryptoBlock(vec![1; 257].into())),
    }));
    let mut frames = Vec::new();
    for round in 0..900u32 {
        let text = format!("message {round:03}");
        frames.extend(Frame::message(message(5, 6, text.as_bytes())).to_bytes().unwrap());
    }
    let mut sealed = Vec::new();
    Sealer::new(&key, Side::Client).seal(&frames, &mut sealed, || [9; 16]);
    // A letter in the text of the first message.
    sealed[14] ^= 1;
    let keys = ObserverKeys { streams: vec![(None, key)] };
    let mut observer = Connection::observer(Arc::new(keys));
    observer.input(Duration::ZERO, Side::Client, Input::Bytes(&accept.to_bytes().unwrap()));
    lines(&mut observer);
    let mut events = Vec::new();
    for piece in sealed.chunks(1448) {
        observer.input(Duration::ZERO, Side::Client, Input::Bytes(piece));
        events.extend(lines(&mut observer));
    }
    assert_eq!(events.iter().filter(|line| line.starts_with("client 5/6")).count(), 900);
    let faults: Vec<_> = events.iter().filter(|line| line.starts_with("fault")).collect();
    assert!(faults.len() == 1 && faults[0].contains("the tag of an AES-GCM chunk"), "{faults:?}");
}

/// Bytes that could not be read are reported at the end of the stream.
#[test]
fn skipped_bytes_are_reported_at_the_end() {
    let mut observer = Connection::observer(Arc::default());
    let good = Frame::message(message(1, 1, b"good")).to_bytes().unwrap();
    observer.input(Duration::ZERO, Side::Client, Input::Bytes(&good));
    observer.input(Duration::ZERO, Side::Client, Input::Gap(100));
    observer.input(Duration::ZERO, Side::Client, Input::Bytes(&[7; 50]));
    observer.input(Duration::ZERO, Side::Client, Input::Gap(10));
    observer.input(Duration::ZERO, Side::Client, Input::Bytes(&[7; 5]));
    observer.input(Duration::ZERO, Side::Client, Input::End);
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client 1/1 [67, 6f, 6f, 64]
    Gap { side: Client, range: 17..117 }
    fault of the client: at byte 17: wanted a frame after the unreadable bytes, found no frame in the 55 bytes that follow
    ");
    // This is also true after an enormous gap.
    observer.input(Duration::ZERO, Side::Server, Input::Bytes(&good));
    observer.input(Duration::ZERO, Side::Server, Input::Gap(u64::MAX));
    let events = lines(&mut observer);
    assert!(events[2].contains("(bytes of a stream)"), "{events:?}");
}
