//! A model of a relayed conversation whose ends repair losses themselves, as MxO's do.
//!
//! Dropping a packet is just another loss: its reliable messages are sent again, and the handler
//! sees them again. Each arrives exactly once and in order, in one of the forms in which the
//! handler let it pass. Object sections arrive at most once, and only those that arrived are
//! acknowledged. What the proxy adds arrives exactly once, whatever is lost.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use worldwire_core::{Reader, Side};
use worldwire_mxo::frame::{OBJECTS, Packet, RpcMessage, Section};

use super::choices::Choices;
use super::mxo::RPC;
use super::{Content, Decided, Heard, Model, Rates, delay};
use crate::exchange::Counts;
use crate::handler::{Effects, Passing};

/// The model of both directions, by the side that sends.
#[derive(Debug)]
pub(super) struct PacketModel {
    content: Arc<Content>,
    directions: [Direction; 2],
    /// Held packets: the sender, and the time of release. `None` if they wait for a decision.
    holds: BTreeMap<u64, (Side, Option<Duration>)>,
    /// Packets before which additions wait, because an earlier one is held.
    preceded: HashSet<u64>,
    /// Breakpoints that the proxy has not reported.
    unreported: VecDeque<(Side, u64, Vec<u8>)>,
    /// Breakpoints, by the number that the proxy gave them.
    open: BTreeMap<u64, (Side, u64, Vec<u8>)>,
    last_id: u64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Direction {
    /// The identities of reliable messages, in order.
    reliable: VecDeque<Identity>,
    /// All forms in which the handler let a message or section pass.
    forms: HashMap<Identity, Vec<Vec<u8>>>,
    /// The object sections that arrived.
    arrived: HashSet<Identity>,
    /// Additions that have not arrived yet.
    added: HashMap<Identity, Vec<u8>>,
    is_abandoned: bool,
}

/// The kind and number of a message or section.
type Identity = [u8; 5];

fn identity(body: &[u8]) -> Identity {
    let view = if body.first() == Some(&OBJECTS) { 2 } else { 0 };
    let number = body.get(1 + view..).and_then(<[u8]>::first_chunk::<4>).expect("a number");
    let [a, b, c, d] = *number;
    [body[0], a, b, c, d]
}

impl PacketModel {
    /// Nothing has been sent yet.
    pub(super) fn new(content: Arc<Content>) -> Self {
        Self {
            content,
            directions: Default::default(),
            holds: BTreeMap::new(),
            preceded: HashSet::new(),
            unreported: VecDeque::new(),
            open: BTreeMap::new(),
            last_id: 0,
            counts: Counts::default(),
        }
    }
}

impl Direction {
    /// Notes the arrival of added contents. Returns what the other end itself has sent: objects are
    /// added before a packet's own objects.
    fn take_added(&mut self, mut body: Vec<u8>) -> Option<Vec<u8>> {
        if body.first() != Some(&OBJECTS) {
            let Some(added) = self.added.remove(&identity(&body)) else { return Some(body) };
            assert_eq!(added, body, "a different message was added");
            return None;
        }
        let operations = |section: &[u8]| section.get(1..section.len() - 2).map(<[u8]>::to_vec);
        while let Some((identity, length)) = self.added.iter().find_map(|(identity, added)| {
            let operations = operations(added).filter(|_| added[0] == OBJECTS)?;
            body[1..].starts_with(&operations).then_some((*identity, operations.len()))
        }) {
            self.added.remove(&identity);
            body.drain(1..=length);
        }
        // What remains can be the answer to a hello.
        (body.len() >= 5).then_some(body)
    }

    fn note(&mut self, packet: &[u8]) {
        for body in contents(packet) {
            self.forms.entry(identity(&body)).or_default().push(body);
        }
    }
}

/// The messages and sections of a packet.
fn contents(packet: &[u8]) -> Vec<Vec<u8>> {
    let packet = Packet::decode(&mut Reader::new(packet), None).expect("a packet");
    let mut all = Vec::new();
    for section in packet.sections {
        match section {
            Section::Rpc(lists) => {
                let messages = lists.into_iter().flat_map(|list| list.messages);
                all.extend(messages.map(|message| message.body.into_owned()));
            }
            // A server answers a hello with an empty one.
            Section::Objects(bytes) if bytes.len() > 2 => {
                all.push([&[OBJECTS][..], &bytes].concat());
            }
            _ => {}
        }
    }
    all
}

/// The packet with other contents. `None` if it has none.
fn changed(packet: &[u8], choices: &mut Choices) -> Option<Vec<u8>> {
    const HEAD: usize = 4;
    const VIEW: usize = 2;
    let mut packet = Packet::decode(&mut Reader::new(packet), None).ok()?.into_owned();
    let mut sampler = choices.sampler();
    let mut is_changed = false;
    for section in &mut packet.sections {
        match section {
            Section::Rpc(lists) => {
                for message in lists.iter_mut().flat_map(|list| &mut list.messages) {
                    let mut body = message.body.get(..=HEAD)?.to_vec();
                    let length = usize::try_from(sampler.below(40)).ok()?;
                    body.extend(sampler.bytes(length));
                    *message = RpcMessage::of(&body).into_owned();
                    is_changed = true;
                }
            }
            Section::Objects(bytes) if bytes.len() > 2 => {
                let mut body = bytes.get(..VIEW + HEAD)?.to_vec();
                body.extend(sampler.bytes(5));
                body.extend([0xff, 0, 0]);
                *bytes = body.into();
                is_changed = true;
            }
            _ => {}
        }
    }
    let bytes = packet.to_bytes().ok()?;
    is_changed.then_some(bytes)
}

impl Model for PacketModel {
    fn said(&mut self, from: Side, body: &[u8]) {
        if body.first() == Some(&RPC) {
            self.directions[from.index()].reliable.push_back(identity(body));
        }
    }

    fn message(
        &mut self,
        choices: &mut Choices,
        rates: Rates,
        passing: &Passing<'_>,
        effects: &mut Effects,
    ) {
        self.counts.messages += 1;
        let from = passing.item.from;
        self.last_id += 1;
        let id = self.last_id;
        let mut packet = passing.body.to_vec();
        let mut is_dropped = false;
        if choices.percent(rates.change) {
            if let Some(other) = changed(&packet, choices) {
                packet.clone_from(&other);
                effects.change(other);
                self.counts.changed += 1;
            }
        } else if choices.percent(rates.drop) {
            is_dropped = true;
            effects.discard();
            self.counts.dropped += 1;
        }
        let is_behind = self.holds.values().any(|(side, _)| *side == from);
        if choices.percent(rates.pause) {
            effects.pause();
            self.holds.insert(id, (from, None));
            self.unreported.push_back((from, id, packet.clone()));
        } else if choices.percent(rates.delay) {
            let at = passing.now + delay(choices);
            effects.delay_until(at);
            self.holds.insert(id, (from, Some(at)));
        }
        let is_held = self.holds.contains_key(&id);
        self.counts.held += u64::from(is_held);
        for _ in 0..3 {
            if !choices.percent(rates.add) {
                break;
            }
            let to = if choices.percent(50) { from } else { from.other() };
            let body = self.content.make(to.other(), choices);
            effects.add(to, (self.content.added)(&body));
            if is_behind && to != from {
                self.preceded.insert(id);
            }
            self.added(to, body);
        }
        if is_held || !is_dropped {
            self.directions[from.index()].note(&packet);
        }
    }

    fn added(&mut self, to: Side, body: Vec<u8>) {
        self.counts.added += 1;
        self.directions[to.other().index()].added.insert(identity(&body), body);
    }

    fn reported(&mut self, number: u64, from: Side) {
        let held = self.unreported.pop_front().expect("a breakpoint");
        assert_eq!(held.0, from, "message {number}");
        self.open.insert(number, held);
    }

    fn is_checked(&self, number: u64) -> bool {
        !self.preceded.contains(&self.open[&number].1)
    }

    fn decided(&mut self, number: u64, decided: Decided) {
        let (from, id, _) = self.open.remove(&number).expect("it is held");
        self.holds.remove(&id);
        match decided {
            Decided::Sent => {}
            Decided::Dropped => self.counts.dropped += 1,
            Decided::Edited => self.counts.changed += 1,
            Decided::Changed(packet) => {
                self.directions[from.index()].note(&packet);
                self.counts.changed += 1;
            }
        }
    }

    fn passed(&mut self, now: Duration) {
        self.holds.retain(|_, (_, until)| until.is_none_or(|at| at > now));
    }

    fn heard(&mut self, by: Side, heard: Heard) {
        match heard {
            Heard::Message(body) => {
                let direction = &mut self.directions[by.other().index()];
                let Some(body) = direction.take_added(body) else { return };
                let identity = identity(&body);
                let forms = direction.forms.get(&identity).expect("a message that did not pass");
                assert!(forms.contains(&body), "{body:02x?} did not pass, but {forms:02x?}");
                if identity[0] == RPC {
                    let next = direction.reliable.pop_front();
                    assert_eq!(next, Some(identity), "the {by} received a different message");
                } else {
                    assert!(direction.arrived.insert(identity), "{body:02x?} arrived twice");
                }
            }
            Heard::Acknowledged(body) => {
                let arrived = &self.directions[by.index()].arrived;
                assert!(arrived.contains(&identity(&body)), "{body:02x?} did not arrive");
            }
            Heard::Closed(_) => {}
        }
    }

    fn abandon(&mut self, from: Side) {
        self.directions[from.index()].is_abandoned = true;
    }

    /// A datagram network drops what it carries once an end is gone.
    fn check_ended(&self, _: Side) {}

    /// Losses are repaired only later.
    fn check_settled(&self) {}

    fn is_finished(&self) -> bool {
        let is_done = |direction: &Direction| {
            let has_all = direction.reliable.is_empty() && direction.added.is_empty();
            direction.is_abandoned || has_all
        };
        self.holds.is_empty() && self.directions.iter().all(is_done)
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn allows(&self, problem: &str) -> bool {
        // The updates are random, so they refer to unknown views.
        problem.starts_with("view ") || problem.starts_with("objects: ")
    }

    fn replacement(&mut self, number: u64, choices: &mut Choices, _: &Content) -> Option<Vec<u8>> {
        changed(&self.open.get(&number)?.2, choices)
    }
}
