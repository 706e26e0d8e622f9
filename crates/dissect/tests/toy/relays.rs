//! Drives relays of every family as a proxy would. A recorded conversation passes through,
//! unchanged or not.

use std::collections::BTreeMap;
use std::time::Duration;

use worldwire_capture::{Conversations, EventKind, LinkType, Packet, Timestamp};
use worldwire_core::connection::Input;
use worldwire_core::json::Json;
use worldwire_core::{Limits, Side};
use worldwire_dissect::{
    Answer, Decider, Decision, Definitions, Facts, HoldId, Item, Keys, RelaySession, Stamp, Start,
};

use crate::encodes::{SAMPLES, fields};
use crate::family::families;
use crate::talk::{self, Order};

/// Each side's writes, by segment.
type Recorded = Vec<(Side, Vec<u8>)>;

/// The conversations of a capture.
fn recorded(packets: &[Vec<u8>]) -> Vec<Recorded> {
    let mut conversations = Conversations::new(&Limits::DEFAULT);
    let mut all: BTreeMap<u64, Recorded> = BTreeMap::new();
    for (number, data) in (1..).zip(packets) {
        let packet = Packet {
            number,
            time: Timestamp::from_parts(0, 0),
            interface: 0,
            link: LinkType::ETHERNET,
            data,
            original_length: u32::try_from(data.len()).unwrap(),
            unusable: None,
            offset: 0,
        };
        conversations.push(&packet, &mut |event| {
            if let EventKind::Data { side, bytes, .. } | EventKind::Datagram { side, bytes } =
                event.kind
            {
                all.entry(event.conversation).or_default().push((side, bytes.to_vec()));
            }
        });
    }
    all.into_values().collect()
}

/// The output on each side, the names of messages, and the texts of notes.
#[derive(Debug, Default, PartialEq)]
struct Relayed {
    written: [Vec<u8>; 2],
    /// The same output, by the input that caused it.
    writes: Vec<Vec<(Side, Vec<u8>)>>,
    names: Vec<String>,
    notes: Vec<String>,
}

/// Passes a recorded conversation through a relay. `decide` is given the index of each message and
/// the item.
fn relay(
    session: &mut dyn RelaySession,
    recorded: &Recorded,
    facts: &mut Facts,
    is_udp: bool,
    mut decide: impl FnMut(usize, &Item<'_>) -> (Decision<'static>, Option<(Side, Vec<u8>)>),
) -> Relayed {
    let mut relayed = Relayed::default();
    let (mut names, mut notes) = (Vec::new(), Vec::new());
    let inject = std::cell::RefCell::new(None);
    let mut on_item = |item: &Item<'_>| {
        if let Some(note) = item.note() {
            notes.push(note.text.clone());
            return Decision::AsIs;
        }
        if !item.message().unwrap().is_message() {
            return Decision::AsIs;
        }
        let mut name = String::new();
        item.push_name(&mut name);
        names.push(name);
        let (decision, wanted) = decide(names.len() - 1, item);
        if wanted.is_some() {
            *inject.borrow_mut() = wanted;
        }
        decision
    };
    let (now, stamp) = (Duration::ZERO, Stamp::default());
    for (side, bytes) in recorded {
        let input = if is_udp { Input::Datagram(bytes) } else { Input::Bytes(bytes) };
        session.input(now, stamp, *side, input, &mut on_item);
        if session.waits() {
            session.learn(facts, stamp, &mut on_item);
        }
        session.facts().into_iter().for_each(|fact| facts.state(fact));
        if let Some((from, message)) = inject.take() {
            session.inject(from.other(), &message).unwrap();
        }
        let mut writes = Vec::new();
        for to in Side::BOTH {
            while let Some(bytes) = session.poll_transmit(to) {
                relayed.written[to.other().index()].extend_from_slice(&bytes);
                writes.push((to.other(), bytes));
            }
        }
        relayed.writes.push(writes);
    }
    for side in Side::BOTH {
        session.input(now, stamp, side, Input::End, &mut on_item);
    }
    assert!(session.is_closed());
    (relayed.names, relayed.notes) = (names, notes);
    relayed
}

fn joined(recorded: &Recorded) -> [Vec<u8>; 2] {
    Side::BOTH.map(|of| {
        let own = recorded.iter().filter(|(side, _)| *side == of);
        own.flat_map(|(_, bytes)| bytes).copied().collect()
    })
}

/// The relays of a family, and the conversations to pass through them.
struct Relays {
    family: &'static str,
    keys: Keys,
    definitions: Definitions,
    conversations: Vec<(Recorded, bool)>,
    /// Whether the relay can inject messages.
    injects: bool,
}

impl Relays {
    fn session(&self, facts: &Facts, datagrams: bool) -> Box<dyn RelaySession> {
        let (keys, definitions) = (&self.keys, &self.definitions);
        let start = Start { keys, definitions, facts, prepared: None, datagrams, midstream: false };
        let family = families().named(self.family).unwrap();
        family.relay(&start, &mut |bytes| bytes.fill(7), Duration::ZERO).unwrap()
    }

    /// Passes all conversations through relays.
    fn run(
        &self,
        mut decide: impl FnMut(usize, usize, &Item<'_>) -> Decision<'static>,
    ) -> Vec<Relayed> {
        self.run_injecting(|conversation, number, item| (decide(conversation, number, item), None))
    }

    /// Like [`run`](Self::run), but may inject a message after each input that contained one.
    fn run_injecting(
        &self,
        mut decide: impl FnMut(usize, usize, &Item<'_>) -> (Decision<'static>, Option<(Side, Vec<u8>)>),
    ) -> Vec<Relayed> {
        let mut facts = Facts::default();
        let all = self.conversations.iter().enumerate().map(|(index, (recorded, is_udp))| {
            let mut session = self.session(&facts, *is_udp);
            let decide = |number: usize, item: &Item<'_>| decide(index, number, item);
            relay(&mut *session, recorded, &mut facts, *is_udp, decide)
        });
        all.collect()
    }
}

fn all() -> Vec<Relays> {
    let mut all: Vec<Relays> = SAMPLES
        .iter()
        .map(|sample| {
            let conversations = recorded(&sample.packets());
            Relays {
                family: sample.family,
                keys: sample.keys(),
                definitions: sample.definitions(),
                conversations: conversations.into_iter().map(|it| (it, sample.is_udp)).collect(),
                injects: !sample.is_udp,
            }
        })
        .collect();
    let toy = recorded(&talk::packets(7, Order::StreamFirst));
    all.push(Relays {
        family: "toy",
        keys: Keys::none(),
        definitions: Definitions::built_in_for(families()),
        conversations: toy.into_iter().zip([false, true]).collect(),
        injects: true,
    });
    all
}

#[test]
fn unchanged_messages_are_forwarded_as_the_same_bytes() {
    for relays in all() {
        let relayed = relays.run(|_, _, _| Decision::AsIs);
        for (relayed, (recorded, _)) in relayed.iter().zip(&relays.conversations) {
            assert_eq!(relayed.notes, Vec::<String>::new(), "{}", relays.family);
            assert!(relayed.written == joined(recorded), "{}: {:?}", relays.family, relayed.names);
        }
        let messages: usize = relayed.iter().map(|relayed| relayed.names.len()).sum();
        assert!(messages >= 5, "{}: {messages}", relays.family);
    }
}

/// The messages that each end reads from a relay's output, as the names of an observer's items.
fn read_by_ends(relays: &Relays, relayed: &[Relayed]) -> Vec<Vec<String>> {
    let family = families().named(relays.family).unwrap();
    let mut facts = Facts::default();
    let conversations = relays.conversations.iter().zip(relayed);
    let read = conversations.map(|((recorded, is_udp), relayed)| {
        let (keys, definitions) = (&relays.keys, &relays.definitions);
        let datagrams = *is_udp;
        let start =
            Start { keys, definitions, facts: &facts, prepared: None, datagrams, midstream: false };
        let mut session = family.session(&start);
        let mut names = Vec::new();
        let mut show = |item: Item<'_>| {
            let mut name = String::new();
            item.push_name(&mut name);
            assert!(item.note().is_none(), "{}: {:?}", relays.family, item.note());
            if item.message().unwrap().is_message() {
                names.push(name);
            }
        };
        assert_eq!(relayed.writes.len(), recorded.len());
        for (side, bytes) in relayed.writes.iter().flatten() {
            let input = if datagrams { Input::Datagram(bytes) } else { Input::Bytes(bytes) };
            session.input(Stamp::default(), *side, input, &mut show);
            if session.waits() {
                session.learn(&facts, Stamp::default(), &mut show);
            }
        }
        for side in Side::BOTH {
            session.input(Stamp::default(), side, Input::End, &mut show);
        }
        session.facts().into_iter().for_each(|fact| facts.state(fact));
        names
    });
    read.collect()
}

/// The index of the conversation with the most messages.
fn busiest(relayed: &[Relayed]) -> usize {
    let busiest = relayed.iter().enumerate().max_by_key(|(_, relayed)| relayed.names.len());
    busiest.map_or(0, |(index, _)| index)
}

#[test]
fn relays_change_drop_and_inject_messages() {
    for relays in all() {
        let before = relays.run(|_, _, _| Decision::AsIs);
        let busy = busiest(&before);
        let last = before[busy].names.len() - 1;
        let limits = Limits::DEFAULT;
        let mut was_changed = false;
        let mut injected = None;
        let after = relays.run_injecting(|conversation, number, item| {
            if conversation != busy {
                return (Decision::AsIs, None);
            }
            if number == last {
                injected = Some(item.from);
                return (Decision::Drop, None);
            }
            // Changes the first field that is a number.
            let mut json = fields(item, &limits);
            let same = item.encode(&json).unwrap();
            assert_eq!(same, item.body());
            let injects = relays.injects && number == last - 1;
            let inject = injects.then_some((item.from, same));
            if !was_changed && change(&mut json) {
                let changed = item.encode(&json).unwrap();
                assert_ne!(changed, item.body(), "{}", relays.family);
                was_changed = true;
                return (Decision::instead(changed), inject);
            }
            (Decision::AsIs, inject)
        });
        assert!(was_changed && injected.is_some(), "{}", relays.family);
        let read = read_by_ends(&relays, &after);
        for (index, (names, before)) in read.iter().zip(&before).enumerate() {
            assert!(after[index].notes.is_empty(), "{:?}", after[index].notes);
            let mut wanted = before.names.clone();
            if index == busy {
                // The dropped message is missing, and the injected one appears twice.
                wanted.pop();
                wanted.extend(wanted.last().cloned().filter(|_| relays.injects));
                assert_ne!(after[index].written, before.written, "{}", relays.family);
            }
            let sorted = |names: &[String]| {
                let mut names = names.to_vec();
                names.sort();
                names
            };
            assert_eq!(sorted(names), sorted(&wanted), "{} {index}", relays.family);
        }
    }
}

/// Changes a number somewhere in JSON by one. Returns false if there is none.
fn change(json: &mut Json) -> bool {
    match json {
        Json::Number(number) if number.as_u64().is_some_and(|it| (1..200).contains(&it)) => {
            *json = (number.as_u64().unwrap_or(0) + 1).into();
            true
        }
        Json::Object(fields) => {
            // Keeps fields that determine the layout, and the numbers of datagrams.
            let structure = ["class", "count", "type", "opcode", "length", "sequence"];
            let own = fields.iter_mut().filter(|(name, _)| !structure.contains(name));
            if own.into_iter().any(|(_, value)| change(value)) {
                return true;
            }
            // If everything else is lists and bytes, change the time.
            let time = fields.get_mut("time").filter(|time| time.as_u64().is_some());
            time.is_some_and(|time| {
                *time = (time.as_u64().unwrap_or(0) ^ 1).into();
                true
            })
        }
        _ => false,
    }
}

/// Holds every message of the client, as a breakpoint would.
#[derive(Default)]
struct Breakpoint {
    held: Vec<(HoldId, Vec<u8>)>,
    body: Vec<u8>,
    notes: Vec<String>,
}

impl Decider for Breakpoint {
    fn decide(&mut self, item: &Item<'_>) -> Answer {
        if let Some(note) = item.note() {
            self.notes.push(note.text.clone());
        } else if item.from == Side::Client && item.message().unwrap().is_message() {
            self.body = item.body().to_vec();
            return Answer::Hold;
        }
        Answer::Decide(Decision::AsIs)
    }

    fn held(&mut self, id: HoldId) {
        self.held.push((id, self.body.clone()));
    }
}

/// Passes a conversation to a relay that holds the client's messages. Returns the bytes that left
/// on each side.
fn hold_all(session: &mut dyn RelaySession, recorded: &Recorded) -> (Breakpoint, [Vec<u8>; 2]) {
    let mut breakpoint = Breakpoint::default();
    let mut sent = [Vec::new(), Vec::new()];
    for (side, bytes) in recorded {
        let (now, stamp) = (Duration::ZERO, Stamp::default());
        session.input(now, stamp, *side, Input::Bytes(bytes), &mut breakpoint);
        drain(session, &mut sent);
    }
    (breakpoint, sent)
}

fn drain(session: &mut dyn RelaySession, sent: &mut [Vec<u8>; 2]) {
    for to in Side::BOTH {
        while let Some(bytes) = session.poll_transmit(to) {
            sent[to.other().index()].extend(bytes);
        }
    }
}

/// The toy's relay, and a conversation over TCP.
fn toy_stream() -> (Box<dyn RelaySession>, Recorded) {
    let mut all = all();
    let toy = all.pop().unwrap();
    let (recorded, _) = toy.conversations.iter().find(|(_, is_udp)| !is_udp).unwrap();
    (toy.session(&Facts::default(), false), recorded.clone())
}

const CLIENT: usize = 0;

#[test]
fn held_messages_leave_in_order_when_they_are_released() {
    let (mut session, recorded) = toy_stream();
    let (mut breakpoint, mut sent) = hold_all(&mut *session, &recorded);
    let wanted = joined(&recorded);
    assert!(breakpoint.held.len() >= 3, "{:?}", breakpoint.held);
    assert!(sent[CLIENT].len() < wanted[CLIENT].len());
    assert_eq!(sent[1], wanted[1], "the other direction continues");
    let before = sent.clone();
    let (last, _) = breakpoint.held.pop().unwrap();
    session.release(last, Decision::AsIs).unwrap();
    session.resume(Stamp::default(), &mut breakpoint);
    drain(&mut *session, &mut sent);
    assert_eq!(sent, before, "earlier messages are still held");
    for (id, _) in std::mem::take(&mut breakpoint.held) {
        session.release(id, Decision::AsIs).unwrap();
        assert!(session.release(id, Decision::AsIs).is_err());
    }
    session.resume(Stamp::default(), &mut breakpoint);
    drain(&mut *session, &mut sent);
    assert_eq!(sent, wanted);
    assert_eq!(session.kept_bytes(Side::Client), 0);
    assert_eq!(breakpoint.notes, Vec::<String>::new());
}

#[test]
fn held_messages_can_be_replaced_and_dropped() {
    let (mut session, recorded) = toy_stream();
    let (mut breakpoint, mut sent) = hold_all(&mut *session, &recorded);
    let held = std::mem::take(&mut breakpoint.held);
    let (first, first_body) = &held[0];
    let (second, second_body) = &held[1];
    assert_ne!(first_body, second_body);
    let empty: &[u8] = &[];
    assert!(session.release(*first, Decision::instead(empty)).is_err(), "not a message");
    session.release(*first, Decision::instead(second_body)).unwrap();
    session.release(*second, Decision::Drop).unwrap();
    held[2..].iter().for_each(|(id, _)| session.release(*id, Decision::AsIs).unwrap());
    session.resume(Stamp::default(), &mut breakpoint);
    drain(&mut *session, &mut sent);
    // A second relay reads the output of the first.
    let (mut reader, _) = toy_stream();
    let mut bodies = Vec::new();
    let mut read = |item: &Item<'_>| {
        assert!(item.note().is_none(), "{:?}", item.note());
        if item.message().unwrap().is_message() {
            bodies.push((item.from, item.body().to_vec()));
        }
        Decision::AsIs
    };
    for side in [Side::Server, Side::Client] {
        let input = Input::Bytes(&sent[side.index()]);
        reader.input(Duration::ZERO, Stamp::default(), side, input, &mut read);
    }
    let mut wanted: Vec<Vec<u8>> = held.into_iter().map(|(_, body)| body).collect();
    wanted.remove(0);
    let client = bodies.into_iter().filter(|(from, _)| *from == Side::Client);
    assert_eq!(client.map(|(_, body)| body).collect::<Vec<_>>(), wanted);
}

#[test]
fn the_end_of_a_stream_waits_for_held_messages() {
    let (mut session, recorded) = toy_stream();
    let (mut breakpoint, mut sent) = hold_all(&mut *session, &recorded);
    for side in Side::BOTH {
        let (now, stamp) = (Duration::ZERO, Stamp::default());
        session.input(now, stamp, side, Input::End, &mut breakpoint);
    }
    assert!(!session.is_closed() && session.kept_bytes(Side::Client) > 0);
    for (id, _) in std::mem::take(&mut breakpoint.held) {
        session.release(id, Decision::AsIs).unwrap();
    }
    session.resume(Stamp::default(), &mut breakpoint);
    drain(&mut *session, &mut sent);
    session.resume(Stamp::default(), &mut breakpoint);
    assert!(session.is_closed());
    assert_eq!(sent, joined(&recorded));
}

#[test]
fn closing_drops_held_messages() {
    let (mut session, recorded) = toy_stream();
    let (mut breakpoint, _) = hold_all(&mut *session, &recorded);
    session.close();
    session.resume(Stamp::default(), &mut breakpoint);
    for (id, _) in breakpoint.held {
        assert!(session.release(id, Decision::AsIs).is_err());
    }
    assert!(session.is_closed());
}
