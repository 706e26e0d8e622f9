//! The toy's connections over a simulated wire: four roles, bad networks, and arbitrary lists
//! of operations.

use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Decision, Event, Forward as _, Inject as _, Sender as _,
    Timer,
};
use worldwire_core::testing::operations::{
    Command, Family, Operation, Statistics, list, run, sampler,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::testing::{Target, fuzz, fuzz_runs};
use worldwire_core::{Sampler, Side};

use crate::connection::{Connection, Role, Sender};
use crate::message::{Channel, Message, Step, Text};
use crate::talk;

const KEY: [u8; 4] = [9, 8, 7, 6];
const SESSION: u32 = 5;

fn machine(role: Role, channel: Channel) -> Connection {
    match channel {
        Channel::Stream => Connection::stream(role, SESSION, Bounds::default()),
        Channel::Steps => Connection::datagrams(role, Some((SESSION, KEY)), Bounds::default()),
    }
}

/// The messages that each member received, by sender.
type Inboxes = std::collections::BTreeMap<Member, [Vec<Vec<u8>>; 2]>;

/// Runs a conversation in all four roles. Returns what each received, and the pair.
fn play(
    channel: Channel,
    conditions: Conditions,
    messages: &[(Side, Message<'static>)],
) -> (Inboxes, Pair<Connection>) {
    let [client, server] = Side::BOTH.map(|side| machine(Role::Plays(side), channel));
    let mut pair = Pair::relayed(client, machine(Role::Relay, channel), server, conditions)
        .watched_by(machine(Role::Observer, channel));
    let mut inboxes = Inboxes::new();
    for (side, message) in messages {
        let member = if *side == Side::Client { Member::Client } else { Member::Server };
        pair.member(member).unwrap().send(message).unwrap();
        pair.settle(|member, event, _| {
            if let Event::Received(received) = &event
                && matches!(received.unit, crate::connection::Unit::Message(_))
            {
                let sides = inboxes.entry(member).or_default();
                sides[received.side.index()].push(received.bytes.to_vec());
            }
            assert!(!matches!(event, Event::Fault { .. }), "{member:?}: {event:?}");
        });
    }
    (inboxes, pair)
}

fn bytes(messages: &[(Side, Message<'static>)], of: Side) -> Vec<Vec<u8>> {
    let of_side = messages.iter().filter(|(side, _)| *side == of);
    of_side.map(|(_, message)| message.to_bytes().unwrap()).collect()
}

#[test]
fn all_roles_read_the_same_whatever_the_segments() {
    let messages = talk::stream_messages(SESSION, KEY);
    for segment in [0, 1, 7] {
        let latency = Duration::from_millis(40);
        let conditions = Conditions { latency, segment, seed: 3, ..Conditions::default() };
        let (inboxes, mut pair) = play(Channel::Stream, conditions, &messages);
        for side in Side::BOTH {
            let own = bytes(&messages, side);
            let other = if side == Side::Client { Member::Server } else { Member::Client };
            for member in [other, Member::Relay, Member::Observer] {
                assert_eq!(inboxes[&member][side.index()], own, "{member:?}");
            }
        }
        assert_eq!(pair.written, pair.arrived, "the relay changes nothing");
        pair.client.close();
        pair.settle(|_, _, _| ());
        assert!(pair.server.is_closed() && pair.relay.unwrap().is_closed());
    }
}

#[test]
fn datagrams_can_be_lost_late_or_repeated() {
    let mut sampler = Sampler::new(1);
    let messages: Vec<(Side, Message<'static>)> = (0..400)
        .map(|number| {
            let why = Text::new(["", "bored", "late"][usize::try_from(sampler.below(3)).unwrap()]);
            (Side::Client, Message::ClientStep(Step { x: number, y: 0, why }.into()))
        })
        .collect();
    let conditions = Conditions {
        latency: Duration::from_millis(10),
        datagrams: true,
        loss: 100,
        duplication: 200,
        reordering: 200,
        seed: 9,
        ..Conditions::default()
    };
    let (inboxes, pair) = play(Channel::Steps, conditions, &messages);
    let sent = bytes(&messages, Side::Client);
    let arrived = &inboxes[&Member::Server][Side::Client.index()];
    assert!(arrived.len() > 250 && arrived.len() < 400, "{}", arrived.len());
    let mut once = arrived.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), arrived.len(), "none is reported twice");
    assert!(arrived.iter().all(|message| sent.contains(message)));
    assert_eq!(inboxes[&Member::Observer][0], sent, "the observer sees them as they are written");
    assert!(!pair.server.is_closed());
}

#[test]
fn clients_time_out_and_observers_survive_gaps() {
    let mut client = machine(Role::Plays(Side::Client), Channel::Stream);
    client.timeout(client.poll_timeout().unwrap());
    let closed = client.poll_event();
    assert!(matches!(closed, Some(Event::Closed(CloseReason::Timeout(Timer::Setup)))));
    let mut observer = machine(Role::Observer, Channel::Stream);
    let wires = talk::stream(SESSION, KEY);
    let mut names = Vec::new();
    for (index, (side, bytes)) in wires.iter().enumerate() {
        let input = match index {
            2 => worldwire_core::connection::Input::Gap(bytes.len() as u64),
            _ => worldwire_core::connection::Input::Bytes(bytes),
        };
        observer.input(Duration::ZERO, *side, input);
        while let Some(event) = observer.poll_event() {
            let name = format!("{event:?}");
            names.push(name.split([' ', '(']).next().unwrap().to_owned());
        }
    }
    let count = |name: &str| names.iter().filter(|other| *other == name).count();
    assert_eq!((count("Received"), count("Gap"), count("Resync")), (7, 1, 1), "{names:?}");
}

#[test]
fn a_relay_changes_drops_and_injects() {
    let [client, server] = Side::BOTH.map(|side| machine(Role::Plays(side), Channel::Steps));
    let relay = machine(Role::Relay, Channel::Steps);
    let datagrams = Conditions { datagrams: true, ..Conditions::default() };
    let mut pair = Pair::relayed(client, relay, server, datagrams);
    let step = |x| Message::ClientStep(Step { x, y: 0, why: Text::new("") }.into());
    let mut inboxes = Vec::new();
    for x in 0..4 {
        pair.client.send(&step(x)).unwrap();
        pair.settle(|member, event, sender| {
            let Event::Received(received) = event else { return };
            match (member, x) {
                (Member::Relay, 1) => sender.forward(Decision::Drop).unwrap(),
                (Member::Relay, 2) => {
                    let other = step(20).to_bytes().unwrap();
                    sender.forward(Decision::instead(&other)).unwrap();
                    assert!(sender.forward(Decision::instead(&[1])).is_err());
                    sender.forward(Decision::instead(&other)).unwrap();
                    sender.inject(Side::Server, &step(21).to_bytes().unwrap()).unwrap();
                    assert!(sender.inject(Side::Client, &[1, 2]).is_err());
                }
                (Member::Server, _) => inboxes.push(received.bytes.to_vec()),
                _ => {}
            }
        });
    }
    let mut wanted = [0, 20, 21, 3].map(|x| step(x).to_bytes().unwrap()).to_vec();
    inboxes.sort();
    wanted.sort();
    assert_eq!(inboxes, wanted);
}

/// One run of a machine.
struct Run {
    role: Role,
    channel: Channel,
}

impl Family for Run {
    type Connection = Connection;

    fn bounds(&self) -> Bounds {
        Bounds::default()
    }

    fn message(&mut self, from: Side, data: &[u8]) -> Vec<u8> {
        Message::sample(self.channel, from, &mut sampler(data)).to_bytes().unwrap_or_default()
    }

    fn send(&mut self, sender: &mut Sender, data: &[u8]) {
        let side = if self.role == Role::Plays(Side::Server) { Side::Server } else { Side::Client };
        let _ = sender.send(&Message::sample(self.channel, side, &mut sampler(data)));
    }

    fn inject(&mut self, sender: &mut Sender, to: Side, data: &[u8]) {
        let _ = sender.inject(to, &self.message(to.other(), data));
    }
}

/// Runs a machine of this role and channel through the operations that the bytes encode.
fn operate(role: Role, channel: Channel, data: &[u8]) -> Statistics {
    run(machine(role, channel), data, &mut Run { role, channel })
}

fn seeds() -> Vec<Vec<u8>> {
    let conversation = |wires: Vec<(Side, Vec<u8>)>, datagrams: bool| {
        let mut operations = vec![
            Operation::OnPiece(Command::Instead(b"x")),
            Operation::OnPiece(Command::Hold),
            Operation::Now(Command::Send(b"early")),
        ];
        operations.extend(wires.iter().map(|(side, bytes)| match datagrams {
            true => Operation::Datagram(*side, bytes),
            false => Operation::Bytes(*side, bytes),
        }));
        operations.push(Operation::Now(Command::Inject(Side::Client, b"y")));
        operations.push(Operation::Timeout);
        list(&operations)
    };
    vec![
        conversation(talk::stream(SESSION, KEY), false),
        conversation(talk::datagrams(SESSION, KEY), true),
        Vec::new(),
    ]
}

macro_rules! target {
    ($name:literal, $role:expr, $channel:ident) => {
        Target {
            name: $name,
            run: |data| {
                operate($role, Channel::$channel, data);
            },
            seeds,
        }
    };
}

static TARGETS: &[Target] = &[
    target!("toy_stream_client", Role::Plays(Side::Client), Stream),
    target!("toy_stream_server", Role::Plays(Side::Server), Stream),
    target!("toy_stream_observer", Role::Observer, Stream),
    target!("toy_stream_relay", Role::Relay, Stream),
    target!("toy_steps_client", Role::Plays(Side::Client), Steps),
    target!("toy_steps_server", Role::Plays(Side::Server), Steps),
    target!("toy_steps_observer", Role::Observer, Steps),
    target!("toy_steps_relay", Role::Relay, Steps),
];

#[test]
fn any_list_of_operations_keeps_the_contract() {
    let seen = |role, channel, seed: usize| operate(role, channel, &seeds()[seed]);
    for role in [Role::Observer, Role::Relay] {
        assert_eq!(seen(role, Channel::Stream, 0).messages, 7);
        assert_eq!(seen(role, Channel::Steps, 1).messages, 3);
    }
    assert!(seen(Role::Relay, Channel::Stream, 0).transmitted > 50);
    for target in TARGETS {
        fuzz(target, fuzz_runs());
    }
}
