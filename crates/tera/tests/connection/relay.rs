//! A relay between a client and a server.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Decision, Event, Forward as _, Inject as _, Input,
    Piece as _, SendError, Sender as _,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_tera::connection::{Connection, RelayConfig, Unit};
use worldwire_tera::crypt::exchange::{Keys, SessionCiphers, Variant};
use worldwire_tera::frame::CHECK_VERSION;
use worldwire_tera::integrity::{self, Signer, Verdict, verify};

use crate::ends::{
    CLIENT_KEYS, NOW, SERVER_KEYS, client, hear, line, lines, message, random_message, rough,
    server,
};

fn relay_of(config: RelayConfig) -> Connection {
    Connection::relay(Arc::new(config), NOW)
}

pub(crate) fn box_of(
    variant: Variant,
    config: RelayConfig,
    conditions: Conditions,
) -> Pair<Connection> {
    Pair::relayed(client(variant), relay_of(config), server(variant), conditions)
}

/// A client's first message, which reveals the variant to the relay.
pub(crate) fn first() -> Vec<u8> {
    message(CHECK_VERSION, &[1, 2, 3])
}

/// The bytes of the messages that a member received.
pub(crate) fn heard_by(member: Member, pair: &mut Pair<Connection>) -> Vec<Vec<u8>> {
    let mut heard = Vec::new();
    pair.settle(|who, event, _| match event {
        Event::Received(received) if who == member && received.is_message() => {
            heard.push(received.bytes.to_vec());
        }
        Event::Fault { .. } | Event::Closed(_) => panic!("{who:?}: {}", line(&event)),
        _ => {}
    });
    heard
}

#[test]
fn what_nobody_changes_arrives_as_the_same_bytes() {
    for variant in Variant::ALL {
        for known in [None, Some(variant)] {
            // Messages on the list are not changed either, whatever their counters are.
            let integrity = HashSet::from([1, 2, 3]);
            let config = RelayConfig { variant: known, integrity, ..RelayConfig::default() };
            let mut pair = box_of(variant, config, rough(1));
            pair.client.send(&first()).unwrap();
            let mut sampler = Sampler::new(9);
            for round in 0..50 {
                for opcode in 0..10 {
                    pair.client.send(&random_message(&mut sampler, opcode, 300)).unwrap();
                    pair.server.send(&random_message(&mut sampler, opcode, 300)).unwrap();
                }
                let heard = heard_by(Member::Server, &mut pair);
                assert_eq!(heard.len(), 10 + usize::from(round == 0));
            }
            assert_eq!(pair.written, pair.arrived);
            for end in [&pair.client, &pair.server, pair.relay.as_ref().unwrap()] {
                assert!(end.is_established() && !end.is_closed());
            }
        }
    }
}

/// The counter and checksum are not part of a message's content.
fn without_integrity(message: &[u8], listed: &HashSet<u16>) -> Vec<u8> {
    let mut message = message.to_vec();
    if listed.contains(&u16::from_le_bytes([message[2], message[3]])) {
        message[4..integrity::HEADER_BYTES].fill(0);
    }
    message
}

/// Ten thousand messages in both directions, a third of them changed, dropped, or followed by one
/// that the relay injects; the server checks counters and checksums.
fn edit_a_lot(variant: Variant, seed: Option<u32>) {
    const OPCODES: u64 = 8;
    let listed = HashSet::from([0, 1, 2]);
    let mut pair = box_of(variant, RelayConfig::default(), rough(7));
    pair.client.send(&first()).unwrap();
    heard_by(Member::Relay, &mut pair);
    // The first message reveals which messages are on the list.
    pair.relay.as_mut().unwrap().sender().set_integrity(listed.clone()).unwrap();
    if let Some(seed) = seed {
        pair.relay.as_mut().unwrap().sender().set_integrity_seed(seed).unwrap();
    }
    let mut samples = Sampler::new(3);
    let mut pick = |side: Side| {
        let opcode = u16::try_from(samples.below(OPCODES)).unwrap();
        let mut made = random_message(&mut samples, opcode, 60);
        if side == Side::Client && listed.contains(&opcode) {
            made.splice(4..4, [0; 8]);
            made[0] += 8;
        }
        made
    };
    let mut signer = Signer::new(seed);
    let mut counters: HashMap<u16, u32> = HashMap::new();
    let mut chance = Sampler::new(5);
    // The expected messages, by sender.
    let mut wanted: [VecDeque<Vec<u8>>; 2] = Default::default();
    let (mut relayed, mut arrived) = (0, 0);
    for round in 0..100 {
        for side in Side::BOTH {
            for _ in 0..50 {
                let mut message = pick(side);
                match side {
                    Side::Client => {
                        if listed.contains(&message[2].into()) {
                            signer.sign(&mut message);
                        }
                        pair.client.send(&message).unwrap();
                    }
                    Side::Server => pair.server.send(&message).unwrap(),
                }
            }
        }
        pair.settle(|member, event, sender| {
            let Event::Received(received) = event else {
                panic!("{member:?}: {}", line(&event));
            };
            let (side, bytes) = (received.side, received.bytes);
            let plain = |side: Side, bytes: &[u8]| match side {
                Side::Client => without_integrity(bytes, &listed),
                Side::Server => bytes.to_vec(),
            };
            if member != Member::Relay {
                arrived += 1;
                let said = wanted[side.index()].pop_front();
                assert_eq!(said, Some(plain(side, bytes)), "round {round}");
                let Unit::Message { opcode } = received.unit else { panic!() };
                if side == Side::Client && listed.contains(&opcode) {
                    let counter = counters.entry(opcode).or_default();
                    *counter += 1;
                    assert_eq!(integrity::header(bytes).unwrap().0, *counter, "{opcode}");
                    match seed {
                        Some(seed) => assert_eq!(verify(bytes, seed), Verdict::Right, "{opcode}"),
                        None => assert_eq!(integrity::header(bytes).unwrap().1, 0, "{opcode}"),
                    }
                }
                return;
            }
            relayed += 1;
            let other = pick(side);
            match chance.below(9) {
                0 => sender.forward(Decision::Drop).unwrap(),
                1 => {
                    sender.forward(Decision::instead(&other)).unwrap();
                    wanted[side.index()].push_back(plain(side, &other));
                }
                2 => {
                    // One ahead of the piece, which is not forwarded yet, and one back to the
                    // piece's sender.
                    sender.inject(side.other(), &other).unwrap();
                    wanted[side.index()].extend([plain(side, &other), plain(side, bytes)]);
                    let back = pick(side.other());
                    sender.inject(side, &back).unwrap();
                    wanted[side.other().index()].push_back(plain(side.other(), &back));
                }
                3 => {
                    // The same message, with one byte more or a different one.
                    let mut changed = bytes.to_vec();
                    match changed.get_mut(integrity::HEADER_BYTES) {
                        Some(byte) => *byte ^= 1,
                        None => sender.forward(Decision::AsIs).unwrap(),
                    }
                    sender.forward(Decision::instead(&changed)).unwrap();
                    wanted[side.index()].push_back(plain(side, &changed));
                }
                _ => wanted[side.index()].push_back(plain(side, bytes)),
            }
        });
        assert!(wanted.iter().all(VecDeque::is_empty), "round {round}");
    }
    assert_eq!(relayed, 10_000);
    assert!(arrived > 10_000, "{arrived}");
    assert!(counters.values().sum::<u32>() > 1500, "{counters:?}");
}

#[test]
fn edits_drops_and_injections_leave_both_ends_in_step() {
    edit_a_lot(Variant::From45, Some(0x89ab_cdef));
    edit_a_lot(Variant::Before45, None);
}

/// A client, a relay and a server whose keys are exchanged, and the client's cipher.
pub(crate) fn established(config: RelayConfig) -> (Connection, Connection, Connection) {
    let mut pair = box_of(Variant::From45, config, Conditions::default());
    pair.client.send(&first()).unwrap();
    heard_by(Member::Relay, &mut pair);
    (pair.client, pair.relay.unwrap(), pair.server)
}

pub(crate) fn client_bytes(client: &mut Connection, message: &[u8]) -> Vec<u8> {
    client.send(message).unwrap();
    client.poll_transmit(Side::Server).unwrap()
}

#[test]
fn messages_before_the_first_change_and_of_other_opcodes_stay_untouched() {
    let integrity = HashSet::from([1, 2]);
    let (mut client, mut relay, mut server) =
        established(RelayConfig { integrity, ..RelayConfig::default() });
    relay.sender().set_integrity_seed(77).unwrap();
    // All of the client's checksums are wrong, and must stay wrong.
    let listed = |opcode: u16, counter: u8| {
        message(opcode, &[counter, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 5, 6])
    };
    let mut send = |relay: &mut Connection, sent: &[u8], decision: Decision<'_>| {
        relay.input(NOW, Side::Client, Input::Bytes(&client_bytes(&mut client, sent)));
        relay.poll().unwrap().1.forward(decision).unwrap();
        assert!(relay.poll().is_none());
        let mut heard = Vec::new();
        while let Some(bytes) = relay.poll_transmit(Side::Server) {
            server.input(NOW, Side::Client, Input::Bytes(&bytes));
        }
        while let Some(event) = server.poll_event() {
            let Event::Received(received) = event else { panic!() };
            heard.push(received.bytes.to_vec());
        }
        heard
    };
    let same = listed(1, 1);
    assert_eq!(send(&mut relay, &same, Decision::AsIs), std::slice::from_ref(&same));
    assert_eq!(send(&mut relay, &same, Decision::instead(&same)), [same]);
    // The message is shorter than the header, so neither side counts it.
    assert_eq!(send(&mut relay, &[4, 0, 1, 0], Decision::AsIs), [[4, 0, 1, 0]]);
    assert!(send(&mut relay, &[4, 0, 1, 0], Decision::Drop).is_empty());
    assert!(send(&mut relay, &listed(1, 2), Decision::Drop).is_empty());
    let other = listed(2, 1);
    assert_eq!(send(&mut relay, &other, Decision::AsIs), [other]);
    let next = send(&mut relay, &listed(1, 3), Decision::AsIs);
    assert_eq!((integrity::header(&next[0]).unwrap().0, verify(&next[0], 77)), (2, Verdict::Right));
    let edited = send(&mut relay, &listed(2, 2), Decision::instead(listed(2, 200)));
    assert_eq!(integrity::header(&edited[0]).unwrap().0, 2);
    assert_eq!(verify(&edited[0], 77), Verdict::Right);
    // With one dropped and one added, the number is unchanged.
    relay.sender().inject(Side::Server, &listed(1, 0)).unwrap();
    let last = listed(1, 4);
    let heard = send(&mut relay, &last, Decision::AsIs);
    assert_eq!(integrity::header(&heard[0]).unwrap().0, 3);
    assert_eq!(heard[1], last);
}

#[test]
fn behind_a_fault_the_stream_goes_on_as_it_came() {
    for changed in [false, true] {
        let (mut client, mut relay, mut server) = established(RelayConfig::default());
        if changed {
            relay.sender().inject(Side::Server, &message(8, &[1; 5])).unwrap();
            let bytes = relay.poll_transmit(Side::Server).unwrap();
            assert_eq!(hear(&mut server, Side::Client, &bytes).len(), 1);
        }
        // A length of zero.
        let mut torn = client_bytes(&mut client, &message(7, &[1; 5]));
        torn[0] ^= 9;
        let heard = hear(&mut relay, Side::Client, &torn);
        let wanted =
            "fault of the client: length at byte 263: wanted a length of at least 4, found 0";
        assert_eq!(heard, [wanted]);
        let passed = relay.poll_transmit(Side::Server).unwrap();
        assert_eq!(passed == torn, !changed);
        let heard = hear(&mut server, Side::Client, &passed);
        assert!(heard[0].contains("found 0"), "{heard:?}");
        // Later bytes are forwarded, and the other direction is still read.
        let more = client_bytes(&mut client, &message(7, &[2; 5]));
        assert!(hear(&mut relay, Side::Client, &more).is_empty());
        assert_eq!(relay.poll_transmit(Side::Server).unwrap().len(), more.len());
        let error = relay.sender().inject(Side::Server, &message(7, &[])).unwrap_err();
        assert_eq!(error, SendError::Unread);
        assert!(relay.is_established() && !relay.is_closed());
    }
    // The ends continue if only the relay cannot read: it assumes the wrong variant.
    let config = RelayConfig { variant: Some(Variant::Before45), ..RelayConfig::default() };
    let mut pair = box_of(Variant::From45, config, rough(4));
    let (mut faults, mut heard) = (0, [0, 0]);
    for round in 0..200 {
        pair.client.send(&message(round, &[1; 40])).unwrap();
        pair.server.send(&message(round, &[2; 40])).unwrap();
        pair.settle(|member, event, _| match (member, &event) {
            (Member::Relay, Event::Fault { .. }) => faults += 1,
            (Member::Client | Member::Server, Event::Received(received)) => {
                heard[received.side.index()] += usize::from(received.is_message());
            }
            (_, Event::Fault { .. } | Event::Closed(_)) => panic!("{member:?}: {}", line(&event)),
            _ => {}
        });
    }
    // The bytes that the relay takes for a length may be too small, or exceed all remaining data.
    let relay = pair.relay.as_mut().unwrap();
    for side in Side::BOTH {
        relay.input(pair.now, side, Input::End);
    }
    while let Some(event) = relay.poll_event() {
        faults += usize::from(matches!(event, Event::Fault { .. }));
    }
    assert_eq!(faults, 2);
}

#[test]
fn a_stream_of_something_else_passes() {
    let mut relay = relay_of(RelayConfig::default());
    assert!(hear(&mut relay, Side::Client, b"GET / HTTP/1.1\r\n\r\n").is_empty(), "half a key");
    let heard = hear(&mut relay, Side::Server, b"HTTP/1.1 404\r\n");
    assert!(heard.len() == 1 && heard[0].contains("wanted the hello"), "{heard:?}");
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), b"HTTP/1.1 404\r\n");
    assert_eq!(relay.poll_timeout(), None);
    assert!(hear(&mut relay, Side::Client, b"bye").is_empty());
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), b"bye");
    for side in Side::BOTH {
        relay.input(NOW, side, Input::End);
    }
    assert_eq!(lines(&mut relay), ["Closed(Remote)"]);
}

#[test]
fn each_side_ends_on_its_own() {
    let (mut client, mut relay, mut server) = established(RelayConfig::default());
    let bytes = client_bytes(&mut client, &message(7, &[1; 5]));
    relay.input(NOW, Side::Client, Input::Bytes(&bytes[..3]));
    relay.input(NOW, Side::Client, Input::End);
    let heard = lines(&mut relay);
    assert!(heard[0].ends_with("wanted a whole message, found 3 bytes of one"), "{heard:?}");
    assert_eq!((heard.len(), relay.poll_transmit(Side::Server).unwrap()), (1, bytes[..3].to_vec()));
    assert!(hear(&mut relay, Side::Client, &bytes[3..]).is_empty(), "it has ended");
    // The other direction is open.
    server.send(&message(9, &[1])).unwrap();
    let reply = server.poll_transmit(Side::Client).unwrap();
    assert_eq!(hear(&mut relay, Side::Server, &reply).len(), 1);
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), reply);
    relay.input(NOW, Side::Server, Input::End);
    assert_eq!(lines(&mut relay), ["Closed(Remote)"]);
    // In the simulation: the client hangs up, the end is forwarded, and the server and the relay
    // follow.
    let mut pair = box_of(Variant::From45, RelayConfig::default(), rough(6));
    pair.client.send(&first()).unwrap();
    heard_by(Member::Relay, &mut pair);
    pair.client.send(&message(7, &[2; 400])).unwrap();
    pair.client.close();
    let (mut closed, mut heard) = (Vec::new(), 0);
    pair.settle(|member, event, _| match event {
        Event::Closed(reason) => closed.push((member, reason)),
        Event::Received(_) => heard += 1,
        other => panic!("{member:?}: {}", line(&other)),
    });
    let remote = |member| (member, CloseReason::Remote);
    let local = (Member::Client, CloseReason::Local);
    assert_eq!(closed, [local, remote(Member::Server), remote(Member::Relay)]);
    assert_eq!(heard, 2);
}

#[test]
fn a_slow_side_holds_up_its_own_direction_only() {
    let bounds = Bounds { queued_messages: 4, ..Bounds::default() };
    let integrity = HashSet::from([7]);
    let (mut client, mut relay, mut server) =
        established(RelayConfig { bounds, integrity, ..RelayConfig::default() });
    let mut signer = Signer::new(None);
    let mut said = |count: usize| {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let mut message = message(7, &[0; 16]);
            signer.sign(&mut message);
            bytes.extend(client_bytes(&mut client, &message));
        }
        bytes
    };
    // Four are queued; the fifth is read and waits for room.
    let bytes = said(50);
    assert_eq!(hear(&mut relay, Side::Client, &bytes).len(), 5);
    assert_eq!(relay.queued_bytes(Side::Server), 4 * 20);
    server.send(&message(9, &[1])).unwrap();
    let reply = server.poll_transmit(Side::Client).unwrap();
    assert_eq!(hear(&mut relay, Side::Server, &reply).len(), 1);
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), reply);
    // An injected message would overtake the waiting piece.
    let error = relay.sender().inject(Side::Server, &message(7, &[0; 16])).unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 4 (queued messages), found 5");
    let mut written = relay.poll_transmit(Side::Server).unwrap();
    // There is now room for this piece, but for none after it.
    assert!(relay.sender().inject(Side::Server, &message(7, &[0; 16])).is_err());
    let mut reported = 5;
    while written.len() < bytes.len() {
        written.extend(relay.poll_transmit(Side::Server).expect("more is to come"));
        reported += lines(&mut relay).len();
        assert!(relay.queued_bytes(Side::Server) <= 4 * 20);
    }
    assert_eq!(reported, 50);
    assert!(written == bytes);
    // With room after the waiting piece, the injected message is next.
    assert_eq!(hear(&mut relay, Side::Client, &said(6)).len(), 5);
    (0..2).for_each(|_| written.extend(relay.poll_transmit(Side::Server).unwrap()));
    relay.sender().inject(Side::Server, &message(7, &[0; 16])).unwrap();
    loop {
        while let Some(more) = relay.poll_transmit(Side::Server) {
            written.extend(more);
        }
        if lines(&mut relay).is_empty() {
            break;
        }
    }
    let mut counters = Vec::new();
    server.input(NOW, Side::Client, Input::Bytes(&written));
    while let Some(event) = server.poll_event() {
        if let Event::Received(received) = event {
            counters.push(integrity::header(received.bytes).unwrap().0);
        }
    }
    assert_eq!(counters, (1..=57).collect::<Vec<_>>());
}

#[test]
fn who_neither_reads_nor_waits_is_cut_off_by_name() {
    let bounds = Bounds { queued_bytes: 300, ..Bounds::default() };
    let config = || RelayConfig { bounds, ..RelayConfig::default() };
    let (mut client, mut relay, _) = established(config());
    let heard = (0..40).flat_map(|_| {
        let bytes = client_bytes(&mut client, &message(7, &[1; 20]));
        hear(&mut relay, Side::Client, &bytes)
    });
    let heard: Vec<_> = heard.collect();
    let [.., fault, closed] = &heard[..] else { panic!("{heard:?}") };
    assert!(
        fault.contains("wanted at most 300 (bytes waiting while the queue is full), found"),
        "{fault}"
    );
    assert_eq!(closed, "Closed(Fault)");
    assert!(relay.queued_bytes(Side::Server) <= 300);
    // A message that can never fit.
    let (mut client, mut relay, _) = established(config());
    let heard = hear(&mut relay, Side::Client, &client_bytes(&mut client, &message(7, &[1; 400])));
    assert!(heard[1].contains("wanted at most 300 (queued bytes), found 404"), "{heard:?}");
    assert_eq!(heard[2], "Closed(Fault)");
}

#[test]
fn decisions_are_checked() {
    let integrity = HashSet::from([7]);
    let mut relay = relay_of(RelayConfig { integrity, ..RelayConfig::default() });
    let text = |outcome: Result<(), SendError>| outcome.unwrap_err().to_string();
    assert!(
        text(relay.sender().forward(Decision::Drop)).contains("no piece is waiting for a decision")
    );
    // The hello and the keys are forwarded unchanged, whatever is requested.
    let mut steps = vec![(Side::Server, vec![1, 0, 0, 0])];
    for (client, server) in CLIENT_KEYS.into_iter().zip(SERVER_KEYS) {
        steps.extend([(Side::Client, client.to_vec()), (Side::Server, server.to_vec())]);
    }
    for (side, bytes) in &steps {
        relay.input(NOW, *side, Input::Bytes(bytes));
        let (_, sender) = relay.poll().unwrap();
        for decision in [Decision::Drop, Decision::instead(&[4, 0, 0, 0])] {
            assert!(text(sender.forward(decision)).contains("must be forwarded unchanged"));
        }
        let early = text(sender.inject(Side::Server, &[4, 0, 0, 0]));
        assert!(early.starts_with("setup is not complete"), "{early}");
        assert_eq!(relay.poll_transmit(side.other()).as_ref(), Some(bytes));
        assert!(relay.poll().is_none());
    }
    let keys = Keys { client: CLIENT_KEYS, server: SERVER_KEYS };
    let mut sent = first();
    let session = SessionCiphers::new(&keys, Variant::Before45);
    session.client.clone().apply(&mut sent);
    relay.input(NOW, Side::Client, Input::Bytes(&sent));
    assert_eq!(line(&relay.poll_event().unwrap()), "Established");
    let (event, sender) = relay.poll().unwrap();
    assert!(matches!(event, Event::Received(_)));
    // Incomplete messages, two messages at a time, and messages without room for a counter and
    // checksum are refused.
    for wrong in [&[][..], &[5, 0, 1, 0], &[4, 0, 1, 0, 4, 0, 1, 0], &[3, 0, 1], &[5, 0, 7, 0, 9]] {
        assert!(sender.forward(Decision::instead(wrong)).is_err());
        assert!(sender.inject(Side::Server, wrong).is_err());
    }
    sender.inject(Side::Client, &[5, 0, 7, 0, 9]).unwrap();
    let error = text(sender.send(&[4, 0, 0, 0]));
    assert_eq!(error, "only a client or a server can do this");
    // A refused decision leaves the piece unchanged.
    assert_eq!(relay.poll_transmit(Side::Server), Some(sent));
    relay.close();
    assert!(relay.sender().inject(Side::Server, &[4, 0, 1, 0]).is_err());
    assert_eq!(lines(&mut relay), ["Closed(Local)"]);
}

#[test]
fn the_exchange_over_a_relay_ends_in_time() {
    let mut relay = relay_of(RelayConfig::default());
    let deadline = relay.poll_timeout().unwrap();
    assert_eq!(deadline, Duration::from_secs(20));
    hear(&mut relay, Side::Server, &[1, 0, 0, 0]);
    relay.timeout(deadline);
    assert_eq!(lines(&mut relay), ["Closed(Timeout(Setup))"]);
    // Once established, the relay leaves time-outs to the ends.
    let (_, relay, _) = established(RelayConfig::default());
    assert_eq!(relay.poll_timeout(), None);
}
