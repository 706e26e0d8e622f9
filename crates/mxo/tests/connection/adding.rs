//! A relay that adds messages.

use std::collections::BTreeSet;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    Connection as _, Decision, Event, EventOf, Forward as _, Inject as _, Input,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_mxo::connection::{ClientConfig, Connection, News, RelayConfig, ServerConfig, Unit};
use worldwire_mxo::frame::{Packet, RpcList, RpcMessage, Section, SequenceWord};

use crate::support::{
    EPOCH, MILLI, SECOND, WIRE, client, datagrams, line, lines, relay, rpc, session, trusting,
};

/// The opcode of added RPC messages and the first bytes of objects.
const ADDED: u16 = 0x29;
const OWN_OBJECTS: u8 = 0xa0;
const ADDED_OBJECTS: u8 = 0xb0;

fn added(number: u32) -> RpcMessage<'static> {
    RpcMessage::new(ADDED, &number.to_le_bytes())
}

/// A section's content: operations of five bytes each.
fn objects(kind: u8, number: u32) -> Vec<u8> {
    [&[kind][..], &number.to_le_bytes(), &[0, 0]].concat()
}

fn packet(sections: Vec<Section<'_>>) -> Vec<u8> {
    Packet { sections, ..Packet::new(0, SequenceWord::default()) }.to_bytes().unwrap()
}

/// RPC messages and then objects.
fn addition(messages: Vec<RpcMessage<'_>>, objects: Option<Vec<u8>>) -> Vec<u8> {
    let rpcs = (!messages.is_empty()).then(|| Section::Rpc(vec![RpcList { first: 77, messages }]));
    let objects = objects.map(|bytes| Section::Objects(bytes.into()));
    packet(rpcs.into_iter().chain(objects).collect())
}

/// What a side received.
#[derive(Debug, Default)]
struct Heard {
    /// The data of the other side's RPC messages and of added ones, in order.
    own: Vec<u32>,
    added: Vec<u32>,
    /// The objects received, each once.
    objects: BTreeSet<(u8, u32)>,
    delivered: usize,
}

impl Heard {
    fn hear(&mut self, event: &EventOf<'_, Connection>) {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        match event {
            Event::Received(received) => match received.unit {
                Unit::Rpc { .. } => {
                    let message = RpcMessage::of(received.bytes);
                    let all =
                        if message.opcode() == ADDED { &mut self.added } else { &mut self.own };
                    all.push(number(message.data()));
                }
                Unit::Section { id: 3, .. } => {
                    let operations = &received.bytes[1..received.bytes.len() - 2];
                    for operation in operations.chunks(5) {
                        let operation = (operation[0], number(&operation[1..]));
                        assert!(self.objects.insert(operation), "{operation:?} arrived twice");
                    }
                }
                _ => {}
            },
            Event::News(News::Delivered(_) | News::Late(_)) => self.delivered += 1,
            Event::Fault { .. } | Event::Closed(_) => panic!("{}", line(event)),
            _ => {}
        }
    }
}

struct Talk {
    pair: Pair<Connection>,
    heard: [Heard; 2],
}

impl Talk {
    fn new(conditions: Conditions) -> Self {
        // Long timeouts, because this does not test when a side gives up.
        let time = 300 * SECOND;
        let mut config = ClientConfig { setup_time: time, ..ClientConfig::new(EPOCH, 2) };
        config.common.idle_time = time;
        let client = Connection::client(config, session(Side::Client), Duration::ZERO);
        let mut config = ServerConfig { confirm_time: time, ..ServerConfig::new(EPOCH) };
        config.common.idle_time = time;
        let server = Connection::server(config, session(Side::Server), Duration::ZERO);
        let pair = Pair::relayed(client, relay(), server, conditions);
        let mut talk = Self { pair, heard: Default::default() };
        while !(talk.pair.client.is_established() && talk.pair.server.is_established()) {
            talk.run_for(SECOND);
        }
        talk.heard = Default::default();
        talk
    }

    fn run_for(&mut self, time: Duration) {
        let heard = &mut self.heard;
        self.pair.run_until(self.pair.now + time, |member, event, _| match member {
            Member::Client => heard[0].hear(&event),
            Member::Server => heard[1].hear(&event),
            _ if matches!(event, Event::Closed(_)) => panic!("{}", line(&event)),
            _ => {}
        });
    }

    fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Client => &mut self.pair.client,
            Side::Server => &mut self.pair.server,
        }
    }

    fn add(&mut self, to: Side, packet: &[u8]) {
        self.pair.relay.as_mut().unwrap().sender().inject(to, packet).unwrap();
    }

    fn check(&self, to: Side, own: u32, added: u32) {
        let heard = &self.heard[to.index()];
        assert_eq!(heard.own, (0..own).collect::<Vec<_>>(), "messages to the {to}");
        assert_eq!(heard.added, (0..added).collect::<Vec<_>>(), "added messages to the {to}");
    }
}

#[test]
fn additions_arrive_once_and_in_order_on_a_bad_network() {
    let bad = Conditions { loss: 200, duplication: 100, reordering: 200, ..WIRE };
    for seed in 0..12 {
        let mut talk = Talk::new(Conditions { seed, ..bad });
        let (mut own, mut more) = ([0; 2], [0; 2]);
        for step in 0..200_u32 {
            for to in Side::BOTH {
                let number = &mut own[to.index()];
                for _ in 0..(step + u32::try_from(seed).unwrap()) % 4 {
                    talk.end(to.other()).send(&rpc(*number)).unwrap();
                    *number += 1;
                }
                if step % 3 == 0 {
                    let section = [&[3][..], &objects(OWN_OBJECTS, step)].concat();
                    talk.end(to.other()).sender().send_objects(&section, None).unwrap();
                }
                let number = &mut more[to.index()];
                match step % 5 {
                    0 => {
                        talk.add(to, &addition(vec![added(*number), added(*number + 1)], None));
                        *number += 2;
                    }
                    2 => talk.add(to, &addition(vec![], Some(objects(ADDED_OBJECTS, step)))),
                    3 => {
                        let own = objects(ADDED_OBJECTS, step);
                        talk.add(to, &addition(vec![added(*number)], Some(own)));
                        *number += 1;
                    }
                    _ => {}
                }
            }
            talk.run_for(30 * MILLI);
        }
        talk.run_for(60 * SECOND);
        for to in Side::BOTH {
            talk.check(to, own[to.index()], more[to.index()]);
            let heard = &talk.heard[to.index()];
            let all = heard.objects.iter().filter(|(kind, _)| *kind == ADDED_OBJECTS);
            assert_eq!(all.count(), 80, "objects to the {to}");
            assert!(heard.delivered > 30, "{}", heard.delivered);
        }
        assert_eq!(talk.pair.relay.as_ref().unwrap().poll_timeout(), None, "nothing is left");
    }
}

/// A receiver refuses packets with messages far ahead of a missing one, even if they contain the
/// missing one.
#[test]
fn additions_arrive_between_more_messages_than_a_receiver_keeps() {
    for seed in 0..6 {
        let mut talk = Talk::new(Conditions { loss: 200, reordering: 100, seed, ..WIRE });
        for number in 0..1000 {
            talk.pair.client.send(&rpc(number)).unwrap();
        }
        for number in 0..200 {
            talk.add(Side::Server, &addition(vec![added(number)], None));
            talk.run_for(10 * MILLI);
        }
        talk.run_for(100 * SECOND);
        talk.check(Side::Server, 1000, 200);
    }
}

#[test]
fn additions_arrive_in_a_conversation_without_traffic() {
    let mut talk = Talk::new(WIRE);
    for number in 0..20 {
        talk.run_for(SECOND);
        for to in Side::BOTH {
            talk.add(to, &addition(vec![added(number)], None));
        }
    }
    talk.run_for(SECOND);
    talk.pair.client.send(&rpc(0)).unwrap();
    talk.run_for(SECOND);
    talk.check(Side::Client, 0, 20);
    talk.check(Side::Server, 1, 20);
}

#[test]
fn packets_change_only_where_they_must() {
    let mut talk = Talk::new(WIRE);
    talk.pair.client.send(&rpc(0)).unwrap();
    talk.run_for(SECOND);
    assert_eq!(talk.pair.written, talk.pair.arrived);
    talk.add(Side::Server, &addition(vec![], Some(objects(ADDED_OBJECTS, 1))));
    talk.run_for(SECOND);
    assert_eq!(talk.heard[1].objects.len(), 1);
    let before = talk.pair.written.each_ref().map(Vec::len);
    let arrived = talk.pair.arrived.each_ref().map(Vec::len);
    talk.pair.client.send(&rpc(1)).unwrap();
    talk.pair.server.send(&rpc(0)).unwrap();
    talk.run_for(SECOND);
    for side in Side::BOTH {
        let [written, arrived] = [
            &talk.pair.written[side.index()][before[side.index()]..],
            &talk.pair.arrived[side.index()][arrived[side.index()]..],
        ];
        assert!(written == arrived && !written.is_empty(), "objects change no numbers");
    }
    talk.check(Side::Server, 2, 0);
}

#[test]
fn additions_overtake_held_packets() {
    let mut talk = Talk::new(WIRE);
    talk.pair.client.send(&rpc(0)).unwrap();
    let mut held = None;
    talk.pair.run_until(talk.pair.now + SECOND / 10, |member, event, sender| {
        if let (Member::Relay, Event::Received(piece)) = (member, event)
            && piece.side == Side::Client
            && held.is_none()
        {
            held = Some(sender.hold().unwrap());
        }
    });
    talk.add(Side::Server, &addition(vec![added(0)], None));
    // The client acknowledges this in a separate packet.
    talk.pair.server.send(&rpc(0)).unwrap();
    talk.run_for(2 * SECOND);
    talk.check(Side::Server, 0, 1);
    talk.pair.relay.as_mut().unwrap().sender().release(held.unwrap(), Decision::AsIs).unwrap();
    talk.run_for(5 * SECOND);
    talk.check(Side::Server, 1, 1);
}

#[test]
fn a_reset_discards_what_was_not_delivered_and_restarts_numbers() {
    let lossy = Conditions { loss: 300, ..WIRE };
    for seed in 0..20 {
        let mut talk = Talk::new(Conditions { seed, ..lossy });
        for to in Side::BOTH {
            talk.end(to.other()).send(&rpc(0)).unwrap();
            talk.add(to, &addition(vec![added(0), added(1)], None));
        }
        talk.run_for(100 * SECOND);
        Side::BOTH.into_iter().for_each(|to| talk.check(to, 1, 2));
        talk.add(Side::Client, &addition(vec![added(9)], None));
        talk.pair.server.sender().reset().unwrap();
        let mut discarded = Vec::new();
        let mut resets = 0;
        let mut late = Vec::new();
        let mut refused = None;
        talk.pair.run_until(talk.pair.now + 100 * SECOND, |member, event, sender| {
            if member == Member::Relay && refused.is_none() && resets == 0 {
                let again = sender.inject(Side::Client, &addition(vec![added(8)], None));
                refused = again.err();
            }
            match event {
                Event::News(News::Discarded { to, messages }) => discarded.push((to, messages)),
                Event::News(News::Reset) => resets += 1,
                Event::Received(received) if matches!(received.unit, Unit::Rpc { .. }) => {
                    late.push(received.bytes[0]);
                }
                _ => {}
            }
        });
        // An addition that has not arrived by then is discarded.
        let lost: usize = discarded.iter().map(|(_, messages)| messages).sum();
        assert!(discarded.iter().all(|(to, _)| *to == Side::Client), "{discarded:?}");
        assert!(lost + late.len() > 0 && resets == 2, "{discarded:?}, {late:?}, {resets}");
        assert_eq!(
            refused.map(|it| it.to_string()).as_deref(),
            Some("setup is not complete; wait until the connection is established")
        );
        talk.heard = Default::default();
        for to in Side::BOTH {
            talk.add(to, &addition(vec![added(0)], None));
            talk.end(to.other()).send(&rpc(0)).unwrap();
        }
        talk.run_for(100 * SECOND);
        Side::BOTH.into_iter().for_each(|to| talk.check(to, 1, 1));
    }
}

#[test]
fn additions_are_refused_without_a_key_and_after_the_end() {
    let addition = addition(vec![added(0)], None);
    let refusal = |relay: &mut Connection| {
        relay.sender().inject(Side::Server, &addition).unwrap_err().to_string()
    };
    let now = Duration::ZERO;
    let mut relay = relay();
    let mut refused = vec![refusal(&mut relay)];
    let mut client = client();
    let hello = client.poll_transmit(Side::Server).unwrap();
    relay.input(now, Side::Client, Input::Datagram(&hello));
    lines(&mut relay);
    relay.sender().inject(Side::Server, &addition).unwrap();
    refused.push(relay.sender().inject(Side::Server, b"no packet").unwrap_err().to_string());
    relay.close();
    refused.push(refusal(&mut relay));
    refused.push(refusal(&mut trusting()));
    let mut blind = Connection::relay(&RelayConfig::new(Default::default()), now);
    blind.input(now, Side::Client, Input::Datagram(&hello));
    lines(&mut blind);
    refused.push(refusal(&mut blind));
    insta::assert_snapshot!(refused.join("\n"), @r"
    setup is not complete; wait until the connection is established
    time at byte 6: wanted 4 bytes, found 3
    the connection is closed
    only a relay can do this
    setup is not complete; wait until the connection is established
    ");
    assert_eq!(datagrams(&mut relay, Side::Server), [hello]);
}
