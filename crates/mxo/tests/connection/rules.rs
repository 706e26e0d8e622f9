//! Setup, limits, timers and protocol violations.

use std::time::Duration;

use worldwire_core::connection::{CloseReason, Connection as _, Event, Input, SendError, Timer};
use worldwire_core::{Error, Reader, Result, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, ServerConfig, Session};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{
    AckBits, Datagram, Measure, Packet, Plain, RccFlags, RpcList, RpcMessage, Section,
    SequenceNumber, SequenceWord,
};

use crate::support::{
    EPOCH, MILLI, SECOND, SESSION, client, datagrams, established, key, line, lines, pair, rpc,
    server, session, trusting,
};

/// A client's packet with these sections.
pub(crate) fn packet(number: u16, sections: Vec<Section<'static>>) -> Vec<u8> {
    let local = SequenceNumber::new(number);
    let packet =
        Packet { sections, ..Packet::new(1, SequenceWord { local, ..Default::default() }) };
    key().seal_datagram(&[number.to_le_bytes()[0]; 16], &packet.to_bytes().unwrap())
}

fn rpcs(first: u16, count: u16) -> Section<'static> {
    let messages = (first..first + count).map(|number| rpc(number.into())).collect();
    Section::Rpc(vec![RpcList { first, messages }])
}

/// The packets in a list of datagrams.
fn packets(datagrams: &[Vec<u8>]) -> Vec<Packet<'static>> {
    let read = |wire: &Vec<u8>| match Datagram::decode(&mut Reader::new(wire)).unwrap() {
        Datagram::Sealed(sealed) => {
            let plain = key().open(&sealed.iv, &sealed.cipher).unwrap();
            Some(Packet::decode(&mut Reader::new(&plain), None).unwrap().into_owned())
        }
        Datagram::Plain(_) => None,
    };
    datagrams.iter().filter_map(read).collect()
}

/// Feeds a client's hello to a server.
fn greeted(server: &mut Connection) {
    let mut client = client();
    let hello = client.poll_transmit(Side::Server).unwrap();
    server.input(Duration::ZERO, Side::Client, Input::Datagram(&hello));
    assert_eq!(lines(server), ["client Hello 2, 0..43", "Established"]);
    assert_eq!(datagrams(server, Side::Client), vec![[0, 0, 0, 0, 0, 0, 5]; 5]);
}

fn give(server: &mut Connection, datagram: &[u8]) -> Vec<String> {
    server.input(Duration::ZERO, Side::Client, Input::Datagram(datagram));
    lines(server)
}

#[test]
fn a_client_repeats_its_hello_until_it_is_answered_or_times_out() {
    let mut client = client();
    client.send(&rpc(0)).unwrap();
    assert!(client.sender().send_objects(&[3, 0, 0], None).is_err(), "objects are not queued");
    let mut hellos = 0;
    while !client.is_closed() {
        let sent = datagrams(&mut client, Side::Server);
        assert!(sent.iter().all(|datagram| datagram.len() == 43), "{sent:02x?}");
        hellos += sent.len();
        client.timeout(client.poll_timeout().unwrap());
    }
    assert_eq!((hellos, lines(&mut client)), (30, vec!["Closed(Timeout(Setup))".to_owned()]));

    let mut server = server();
    let other = Session::new(SESSION + 1, key(), &[9; 16]);
    let mut client = Connection::client(ClientConfig::new(EPOCH, 2), other, Duration::ZERO);
    let hello = client.poll_transmit(Side::Server).unwrap();
    let heard = give(&mut server, &hello);
    assert_eq!(
        heard,
        ["fault of the client: encryptedSession at byte 0: wanted session 0x1f2e3d4c, found \
          session 0x1f2e3d4d, or an ID encrypted with another key"]
    );
    assert!(!server.is_established() && !server.is_closed());
    assert_eq!(datagrams(&mut server, Side::Client), Vec::<Vec<u8>>::new());
    server.timeout(30 * SECOND);
    let closed = Event::Closed(CloseReason::Timeout(Timer::Setup));
    assert_eq!(server.poll_event().map(|event| line(&event)), Some(line(&closed)));
}

#[test]
fn pings_are_returned_once() {
    let mut pair = established();
    let mut heard = Vec::new();
    let start = pair.written.clone().map(|bytes| bytes.len());
    pair.run_until(95 * SECOND, |member, event, _| {
        heard.push(format!("{member:?} {}", line(&event)))
    });
    let sent = [0, 1].map(|side: usize| pair.written[side].len() - start[side]);
    // Nine pings and their echoes, 12 bytes each.
    assert_eq!(sent, [108, 108]);
    assert_eq!(heard.iter().filter(|line| line.contains("Plain")).count(), 18, "{heard:#?}");
    // A client does not return pings.
    let ping = Plain::Ping(7).to_bytes().unwrap();
    pair.client.input(pair.now, Side::Server, Input::Datagram(&ping));
    assert!(lines(&mut pair.client)[0].starts_with("server Plain"));
    assert_eq!(datagrams(&mut pair.client, Side::Server), Vec::<Vec<u8>>::new());
}

#[test]
fn acknowledgements_are_not_acknowledged() {
    let mut pair = established();
    for number in 0..50 {
        pair.client.send(&rpc(number)).unwrap();
        pair.run_until(pair.now + 5 * MILLI, |_, _, _| {});
    }
    pair.run_until(pair.now + SECOND, |_, _, _| {});
    let before = pair.written.clone();
    pair.run_until(pair.now + 8 * SECOND, |_, _, _| {});
    assert_eq!(pair.written, before, "acknowledgements cause more datagrams");
    // 50 packets, with an acknowledgement for every seven and every 50 ms.
    assert_eq!(pair.client.sender().unacknowledged_bytes(), 0);
    assert!(before[1].len() < 35 + 49 + 15 * 33, "{} bytes", before[1].len());
}

#[test]
fn early_messages_wait_and_none_is_delivered_twice() {
    let mut server = trusting();
    greeted(&mut server);
    let third = packet(2, vec![rpcs(2, 1)]);
    assert_eq!(give(&mut server, &third), Vec::<String>::new());
    let both = packet(1, vec![rpcs(0, 2)]);
    assert_eq!(both.len(), third.len() + 16);
    assert_eq!(
        give(&mut server, &both),
        ["client Rpc 0, 92..135", "client Rpc 1, 135..157", "client Rpc 2, 43..92"]
    );
    // A repeated packet takes up no bytes; a new one that repeats messages is upkeep.
    assert_eq!(give(&mut server, &both), Vec::<String>::new());
    assert_eq!(give(&mut server, &packet(3, vec![rpcs(0, 3)])), ["client Upkeep 3 02, 157..222"]);
    server.timeout(50 * MILLI);
    let acks = packets(&datagrams(&mut server, Side::Client));
    let word = SequenceWord {
        acks: AckBits(0b111),
        remote: SequenceNumber::new(3),
        local: SequenceNumber::new(1),
    };
    assert_eq!(acks, [Packet::new(1_248_965_312, word)]);
}

#[test]
fn a_message_too_far_ahead_is_refused_and_not_acknowledged() {
    let mut server = trusting();
    greeted(&mut server);
    let far = packet(1, vec![rpcs(512, 1)]);
    assert_eq!(
        give(&mut server, &far),
        ["fault of the client: at byte 43: wanted at most 512 (RPC messages after \
          a missing one), found 513"]
    );
    server.timeout(SECOND);
    assert_eq!(datagrams(&mut server, Side::Client), Vec::<Vec<u8>>::new());
    assert_eq!(give(&mut server, &packet(2, vec![rpcs(511, 1)])), Vec::<String>::new());
}

#[test]
fn an_unrequested_reset_does_not_lift_a_limit() {
    let mut server = trusting();
    greeted(&mut server);
    let sequence = SequenceWord { local: SequenceNumber::new(1), ..Default::default() };
    let flags = RccFlags::Always | RccFlags::Reset;
    let packet = Packet { flags, sections: vec![rpcs(600, 1)], ..Packet::new(1, sequence) };
    let wire = key().seal_datagram(&[1; 16], &packet.to_bytes().unwrap());
    let heard = give(&mut server, &wire);
    assert!(heard[0].contains("after a missing one"), "{heard:?}");
}

/// Objects end with two zeros; those that begin with `ff` are unreadable.
#[derive(Debug)]
struct ToZeros;

impl Measure for ToZeros {
    fn objects(&mut self, from: Side, bytes: &[u8]) -> Result<usize> {
        assert_eq!(from, Side::Client);
        if bytes.first() == Some(&0xff) {
            return Err(Error::malformed("a known view", "view 255").at(0));
        }
        bytes
            .windows(2)
            .position(|pair| pair == [0, 0])
            .map(|at| at + 2)
            .ok_or_else(|| Error::malformed("a terminator", "none").at(bytes.len() as u64))
    }
}

#[test]
fn messages_after_objects_are_read_if_a_measure_finds_their_end() {
    let mut server = trusting().measuring(Box::new(ToZeros));
    greeted(&mut server);
    let objects = |bytes: &[u8]| Section::Objects(bytes.to_vec().into());
    let sections = || vec![objects(&[2, 1, 0, 0]), rpcs(0, 1)];
    let wire = packet(1, sections());
    assert_eq!(give(&mut server, &wire), ["client Section 3 1, 43..80", "client Rpc 0, 80..92"]);
    // An unreadable packet is not acknowledged, so its messages are resent.
    let unknown = packet(2, vec![objects(&[0xff, 0, 0]), rpcs(1, 1)]);
    assert_eq!(
        give(&mut server, &unknown),
        ["fault of the client: sections[0].objects at byte 16 of decrypted: wanted a known view, \
          found view 255"]
    );
    assert_eq!(give(&mut server, &packet(3, vec![rpcs(1, 1)])).len(), 1);
    server.timeout(50 * MILLI);
    let acks = packets(&datagrams(&mut server, Side::Client));
    assert_eq!(acks[0].sequence.acks, AckBits(0b101));
    // Unknown sections extend to the end.
    let other = Section::Other { id: 5, bytes: vec![2, 12, 0, 0].into() };
    let heard = give(&mut server, &packet(4, vec![other]));
    assert!(heard[0].starts_with("client Section 5 4"), "{heard:?}");
}

#[test]
fn exceeded_limits_are_named() {
    let refused = |outcome: Result<(), SendError>| outcome.unwrap_err().to_string();
    let mut config = ServerConfig { trusts_hellos: true, ..ServerConfig::new(EPOCH) };
    config.common.bounds.queued_messages = 3;
    let mut server = Connection::server(config, session(Side::Server), Duration::ZERO);
    let long = RpcMessage::new(0x28, &[0; 1294]);
    assert_eq!(
        refused(server.send(&long)),
        "wanted at most 1294 (bytes of an RPC message), found 1297"
    );
    let nothing = RpcMessage::of(&[]);
    assert_eq!(refused(server.send(&nothing)), "opcode: wanted a whole opcode, found 0 bytes");
    (0..3).for_each(|number| server.send(&rpc(number)).unwrap());
    assert_eq!(
        refused(server.send(&rpc(3))),
        "wanted at most 3 (unacknowledged RPC messages), found 4"
    );
    greeted_with(&mut server);
    let sender = server.sender();
    assert_eq!(
        refused(sender.send_objects(&[&[3][..], &[0; 1295]].concat(), None).map(|_| ())),
        "wanted at most 1295 (bytes of an object section), found 1296"
    );
    let wrong =
        [(&[][..], "none"), (&[1, 0, 0], "1"), (&[3], "no end marker"), (&[3, 0], "no end")];
    for (section, found) in wrong {
        let error = refused(sender.send_objects(section, None).map(|_| ()));
        assert!(error.starts_with("wanted a section that ") && error.contains(found), "{error}");
    }
    for _ in 0..2 {
        sender.send_objects(&[3, 0, 0], None).unwrap();
    }
    assert_eq!(
        refused(sender.send_objects(&[3, 0, 0], None).map(|_| ())),
        "wanted at most 3 (queued messages), found 4"
    );
    server.close();
    assert_eq!(refused(server.send(&rpc(3))), "the connection is closed");
    assert!(server.sender().reset().is_err());
}

fn greeted_with(server: &mut Connection) {
    let hello = client().poll_transmit(Side::Server).unwrap();
    server.input(Duration::ZERO, Side::Client, Input::Datagram(&hello));
    lines(server);
}

#[test]
fn damage_and_stream_input_do_not_close_a_server() {
    let mut server = trusting();
    greeted(&mut server);
    let mut wire = packet(1, vec![rpcs(0, 6)]);
    let last = wire.len() - 20;
    wire[last] ^= 1;
    let other = SessionKey::new(&[3; 16]).seal_datagram(&[0; 16], &[0; 40]);
    let heard: Vec<_> = [&wire[..], &other, &[1, 2, 3], &[9, 9]]
        .into_iter()
        .flat_map(|datagram| give(&mut server, datagram))
        .collect();
    insta::assert_snapshot!(heard.join("\n"), @r"
    fault of the client: at byte 43: wanted a packet with a correct CRC-32, found a damaged packet
    fault of the client: at byte 124: wanted bytes encrypted with this key, found bytes encrypted with another key
    fault of the client: iv at byte 190: wanted 16 bytes, found 2
    fault of the client: at byte 192: wanted the start of a datagram, 00 or 01, found 09
    ");
    server.input(Duration::ZERO, Side::Client, Input::Bytes(b"GET / HTTP/1.1"));
    assert_eq!(
        lines(&mut server),
        ["fault of the client: at byte 194: wanted datagrams, found a stream"]
    );
    assert!(!server.is_closed());
    server.input(Duration::ZERO, Side::Client, Input::End);
    assert_eq!(lines(&mut server), ["Closed(Remote)"]);
}

#[test]
fn the_first_sequence_words_are_those_of_the_live_service() {
    let mut pair = pair();
    pair.server.send(&rpc(0)).unwrap();
    pair.run_until(SECOND, |_, _, _| {});
    let mut server = trusting();
    greeted(&mut server);
    server.send(&rpc(0)).unwrap();
    let first = packets(&datagrams(&mut server, Side::Client));
    assert_eq!(first[0].sequence.to_bytes(), [0, 0, 0, 1]);
    assert_eq!(first[0].flags, RccFlags::Always);
    for number in 1..=4 {
        give(&mut server, &packet(number, vec![]));
    }
    server.send(&rpc(1)).unwrap();
    let second = packets(&datagrams(&mut server, Side::Client));
    assert_eq!(second[0].sequence.to_bytes(), [0x0f, 0, 0x40, 2]);
}

#[test]
fn a_hello_is_answered_with_few_bytes_until_it_is_confirmed() {
    let hello = client().poll_transmit(Side::Server).unwrap();
    let mut server = server();
    server.send(&rpc(0)).unwrap();
    assert_eq!(give(&mut server, &hello), ["client Hello 2, 0..43"]);
    let mut sent = datagrams(&mut server, Side::Client);
    // Whatever the application tries, nothing else is sent.
    while let Some(at) = server.poll_timeout() {
        assert!(!server.is_established() && !server.sender().is_confirmed());
        let refused = server.sender().send_objects(&[3, 0, 0], None);
        assert_eq!(refused, Err(SendError::NotEstablished));
        server.timeout(at);
        sent.extend(datagrams(&mut server, Side::Client));
        assert!(at <= 5 * SECOND, "{at:?}");
    }
    assert_eq!(lines(&mut server), ["Closed(Timeout(Setup))"]);
    let bytes = sent.iter().map(Vec::len).sum::<usize>();
    assert_eq!((sent.len(), bytes), (5 + 4, 5 * 7 + 4 * 49));
    let empty = |packet: Packet<'_>| packet.sections == [Section::Objects([0, 0][..].into())];
    assert!(packets(&sent).into_iter().all(empty));
}

#[test]
fn a_server_is_established_by_the_first_acknowledgement() {
    let hello = client().poll_transmit(Side::Server).unwrap();
    let mut server = server();
    server.send(&rpc(0)).unwrap();
    give(&mut server, &hello);
    datagrams(&mut server, Side::Client);
    // A packet alone does not prove that the address is genuine.
    assert_eq!(give(&mut server, &packet(1, vec![rpcs(0, 1)])), ["client Rpc 0, 43..92"]);
    assert!(!server.is_established());
    let sent = packets(&datagrams(&mut server, Side::Client));
    assert_eq!(sent[0].sections, [Section::Objects([0, 0][..].into())], "it is asked again");
    assert_eq!(sent.len(), 1);
    let acks = SequenceWord {
        acks: AckBits(1),
        remote: SequenceNumber::new(1),
        local: SequenceNumber::new(2),
    };
    let acks = Packet::new(1, acks).to_bytes().unwrap();
    let heard = give(&mut server, &key().seal_datagram(&[2; 16], &acks));
    // The probe is not reported as delivered.
    assert_eq!(heard, ["Established", "client Upkeep 2 02, 92..125"]);
    assert!(server.is_established() && server.sender().is_confirmed());
    // The message that waited is sent.
    let sent = packets(&datagrams(&mut server, Side::Client));
    assert_eq!(sent[0].sections, [rpcs(0, 1)]);
    // An old hello changes nothing.
    assert_eq!(give(&mut server, &hello), ["client Hello 2, 125..168"]);
    assert_eq!(datagrams(&mut server, Side::Client), Vec::<Vec<u8>>::new());
}
