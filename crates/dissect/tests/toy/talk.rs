//! A synthetic conversation of the toy.

use std::time::Duration;

use worldwire_capture::{LinkType, Packet, SyntheticTcp, SyntheticUdp, Timestamp};
use worldwire_core::Side;
use worldwire_core::connection::{Bounds, Connection as _};
use worldwire_dissect::Dissection;

use crate::connection::{Connection, Role};
use crate::message::{
    Act, Action, Call, DatagramKey, Head, Heard, Message, Moods, Moved, Parcel, Say, SessionId,
    Step, Text, Wave,
};

/// The messages over TCP, in order. The key for the datagrams is in the middle.
pub fn stream_messages(session: u32, key: [u8; 4]) -> Vec<(Side, Message<'static>)> {
    let aloud = || Head { moods: Moods::Loud, target: None };
    let private = || Head { moods: Moods(0x42), target: Some(7) };
    let door = DatagramKey { session: SessionId(session), key };
    let parcel = Parcel { content: worldwire_core::Bytes32::new(b"\x05a box".to_vec()) };
    vec![
        (Side::Client, Message::Client(Say { head: aloud(), text: Text::new("hello") }.into())),
        (Side::Server, Message::Server(Heard { who: 3, text: Text::new("hello") }.into())),
        (
            Side::Client,
            Message::Client(Act { head: private(), action: Action::Wave(Wave { hand: 1 }) }.into()),
        ),
        (Side::Server, Message::Server(door.into())),
        (
            Side::Client,
            Message::Client(
                Act { head: aloud(), action: Action::Call(Call { text: Text::new("ahoy") }) }
                    .into(),
            ),
        ),
        (Side::Server, Message::Server(parcel.into())),
        (Side::Server, Message::Unknown(77, vec![1, 2, 3].into())),
    ]
}

/// The messages in datagrams.
pub fn datagram_messages() -> Vec<(Side, Message<'static>)> {
    let step = Step { x: -4, y: 9, why: Text::new("bored") };
    let moved = Moved { who: 3, x: -4, y: 9 };
    vec![
        (Side::Client, Message::ClientStep(step.into())),
        (Side::Server, Message::ServerStep(moved.into())),
        (Side::Client, Message::ClientStep(Step { x: 1, y: 2, why: Text::new("") }.into())),
    ]
}

/// The bytes on the wire, one entry per write.
pub fn wires(
    [mut client, mut server]: [Connection; 2],
    messages: &[(Side, Message<'static>)],
) -> Vec<(Side, Vec<u8>)> {
    let mut wires = Vec::new();
    if let Some(hello) = server.poll_transmit(Side::Client) {
        client.input(
            Duration::ZERO,
            Side::Server,
            worldwire_core::connection::Input::Bytes(&hello),
        );
        while client.poll_event().is_some() {}
        wires.push((Side::Server, hello));
    }
    for (side, message) in messages {
        let own = if *side == Side::Client { &mut client } else { &mut server };
        own.send(message).unwrap();
        wires.push((*side, own.poll_transmit(side.other()).unwrap()));
    }
    wires
}

/// The writes of a session's TCP connection.
pub fn stream(session: u32, key: [u8; 4]) -> Vec<(Side, Vec<u8>)> {
    let ends =
        Side::BOTH.map(|side| Connection::stream(Role::Plays(side), session, Bounds::default()));
    wires(ends, &stream_messages(session, key))
}

/// The datagrams of a session.
pub fn datagrams(session: u32, key: [u8; 4]) -> Vec<(Side, Vec<u8>)> {
    let ends = Side::BOTH.map(|side| {
        Connection::datagrams(Role::Plays(side), Some((session, key)), Bounds::default())
    });
    wires(ends, &datagram_messages())
}

/// The order in which a session's two connections are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Datagrams after the key.
    StreamFirst,
    /// Datagrams before the TCP connection.
    DatagramsFirst,
}

/// The packets of a session. The session's number determines the ports.
pub fn packets(session: u16, order: Order) -> Vec<Vec<u8>> {
    let key = [1, session.to_le_bytes()[0], 0xa5, 0x5a];
    let port = |base: u16| format!("192.0.2.10:{}", base + session).parse().unwrap();
    let mut tcp = SyntheticTcp::new(port(50_000), "192.0.2.1:4000".parse().unwrap());
    let mut udp = SyntheticUdp::new(port(40_000), "192.0.2.1:4001".parse().unwrap());
    let mut stream_packets = tcp.open();
    for (side, bytes) in stream(session.into(), key) {
        stream_packets.extend(tcp.data(side, &bytes));
    }
    stream_packets.extend(tcp.close());
    let datagrams = datagrams(session.into(), key);
    let datagrams = datagrams.iter().map(|(side, bytes)| udp.datagram(*side, bytes));
    match order {
        Order::StreamFirst => stream_packets.into_iter().chain(datagrams).collect(),
        Order::DatagramsFirst => datagrams.chain(stream_packets).collect(),
    }
}

/// Passes a packet to a dissection. Returns whether the batch is full.
pub fn push(dissection: &mut Dissection, number: u64, data: &[u8]) -> bool {
    let second = i64::try_from(number / 1000).unwrap();
    let nanos = i64::try_from(number % 1000).unwrap() * 1_000_000;
    dissection.push(&Packet {
        number,
        time: Timestamp::from_parts(second, nanos),
        interface: 0,
        link: LinkType::ETHERNET,
        data,
        original_length: u32::try_from(data.len()).unwrap(),
        unusable: None,
        offset: 0,
    })
}
