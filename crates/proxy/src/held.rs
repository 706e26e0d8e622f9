//! The messages that an exchange holds.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use worldwire_core::Side;
use worldwire_dissect::{Decision, HoldId};

use crate::handler::Hold;
use crate::kept::Kept;

/// The held messages of an exchange. No operation slows down as their number grows: thousands may
/// wait for a hook.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    /// The messages, in the order in which they arrived.
    messages: BTreeMap<HoldId, Held>,
    /// The IDs of the held messages, by sender.
    sides: [BTreeSet<HoldId>; 2],
    /// Those that wait for hooks, by ticket.
    tickets: HashMap<u64, HoldId>,
    /// Those that wait only for a set time.
    timed: BTreeSet<(Duration, HoldId)>,
    /// Those that can be released immediately, in any order.
    free: BTreeSet<HoldId>,
    /// The size of their additions and changes in bytes.
    waiting_bytes: usize,
}

/// A held message.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) from: Side,
    /// How long it is held, apart from waiting for hooks.
    pub(crate) hold: Option<Hold>,
    /// It waits until its hooks finish this ticket.
    pub(crate) ticket: Option<u64>,
    /// Messages to add right before it.
    pub(crate) added: VecDeque<(Side, Vec<u8>)>,
    /// The ticket with which its hooks finished it.
    pub(crate) finished: Option<u64>,
    pub(crate) decision: Decision<'static>,
    /// The message, if it is held at a breakpoint.
    pub(crate) kept: Option<Kept>,
    /// When it was held, on the proxy's clock.
    pub(crate) since: Duration,
}

/// A message that is held at a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMessage {
    /// Its number within the conversation.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its sender.
    pub from: Side,
    /// When it was held, on the proxy's clock.
    pub since: Duration,
    /// The message as a line of `dissect --json`, as the handlers left it.
    pub line: String,
    /// Whether the receiver has closed its side of the connection, so the message may not arrive.
    pub has_receiver_ended: bool,
}

impl HeldMessages {
    pub(crate) fn insert(&mut self, id: HoldId, held: Held) {
        self.remove(id);
        self.waiting_bytes = self.waiting_bytes.saturating_add(held.waiting_bytes());
        self.sides[held.from.index()].insert(id);
        if let Some(ticket) = held.ticket {
            self.tickets.insert(ticket, id);
        } else if let Some(Hold::Until(at)) = held.hold {
            self.timed.insert((at, id));
        } else if held.hold.is_none() && !held.is_ordered() {
            self.free.insert(id);
        }
        self.messages.insert(id, held);
    }

    pub(crate) fn remove(&mut self, id: HoldId) -> Option<Held> {
        let held = self.messages.remove(&id)?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(held.waiting_bytes());
        self.sides[held.from.index()].remove(&id);
        if let Some(ticket) = held.ticket {
            self.tickets.remove(&ticket);
        } else if let Some(Hold::Until(at)) = held.hold {
            self.timed.remove(&(at, id));
        } else {
            self.free.remove(&id);
        }
        Some(held)
    }

    /// Changes a message. `None` if it is not held.
    pub(crate) fn change<T>(&mut self, id: HoldId, f: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let mut held = self.remove(id)?;
        let changed = f(&mut held);
        self.insert(id, held);
        Some(changed)
    }

    /// All of them, oldest first.
    pub(crate) fn into_messages(self) -> impl Iterator<Item = Held> {
        self.messages.into_values()
    }

    /// The next message that can be released. `full` says for which sides the next message waits
    /// for room.
    pub(crate) fn next_ready(&mut self, now: Duration, full: [bool; 2]) -> Option<HoldId> {
        // Time only moves forward.
        while let Some(&(at, id)) = self.timed.first()
            && at <= now
        {
            self.change(id, |held| held.hold = None);
        }
        let first = |side: Side| {
            let id = self.sides[side.index()].first().filter(|_| !full[side.index()])?;
            self.messages.get(id).is_some_and(Held::is_ready).then_some(*id)
        };
        Side::BOTH.into_iter().filter_map(first).chain(self.free.first().copied()).min()
    }

    /// When the next one is released, if that depends only on time. A message that is due but still
    /// held waits for room or for a decision about an earlier message.
    pub(crate) fn next_due(&self, now: Duration) -> Option<Duration> {
        self.timed.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// The message that waits until hooks finish this ticket.
    pub(crate) fn with_ticket(&self, ticket: u64) -> Option<HoldId> {
        self.tickets.get(&ticket).copied()
    }

    /// The messages held at breakpoints, oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = (HoldId, &Held)> {
        self.messages.iter().filter(|(_, held)| held.is_open()).map(|(id, held)| (*id, held))
    }

    /// Whether any message from a side is held.
    pub(crate) fn has_from(&self, side: Side) -> bool {
        !self.sides[side.index()].is_empty()
    }

    /// The size of their additions and changes in bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }
}

impl Held {
    pub(crate) fn is_open(&self) -> bool {
        self.hold == Some(Hold::Open)
    }

    /// Whether it waits neither for a hook nor for a time or an operator.
    fn is_ready(&self) -> bool {
        self.ticket.is_none() && self.hold.is_none()
    }

    /// Whether it must wait until everything before it has been sent. Otherwise, additions would
    /// overtake earlier messages. The number of bytes that wait for this reason is limited.
    fn is_ordered(&self) -> bool {
        !self.added.is_empty() || matches!(self.decision, Decision::Instead(_))
    }

    /// The size of its additions and changes in bytes.
    fn waiting_bytes(&self) -> usize {
        waiting_bytes(&self.added, &self.decision)
    }
}

/// The size of a decision and of additions, in bytes.
pub(crate) fn waiting_bytes<'a>(
    added: impl IntoIterator<Item = &'a (Side, Vec<u8>)>,
    decision: &Decision<'_>,
) -> usize {
    let added: usize = added.into_iter().map(|(_, body)| body.len()).sum();
    match decision {
        Decision::Instead(body) => added.saturating_add(body.len()),
        _ => added,
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;
    use worldwire_core::connection::{Bounds, Forwarding};

    use super::*;

    fn held(sampler: &mut Sampler, now: u64) -> Held {
        let from = if sampler.below(2) == 0 { Side::Client } else { Side::Server };
        let hold = match sampler.below(6) {
            0 => Some(Hold::Open),
            1 => Some(Hold::Until(Duration::from_secs(now + sampler.below(10)))),
            _ => None,
        };
        let mut held = Held {
            number: 0,
            name: String::new(),
            from,
            hold,
            ticket: None,
            added: VecDeque::new(),
            finished: None,
            decision: Decision::AsIs,
            kept: None,
            since: Duration::ZERO,
        };
        decide(&mut held, sampler);
        held
    }

    /// The identifiers of held pieces, in ascending order.
    fn ids(count: usize) -> Vec<HoldId> {
        let mut forwarding = Forwarding::new(Bounds::default());
        let id = |_| {
            forwarding.report(Side::Client, (), false);
            let id = forwarding.hold().unwrap();
            forwarding.settle(|_, ()| Vec::new());
            id
        };
        (0..count).map(id).collect()
    }

    /// Makes a random decision, which may or may not preserve the order.
    fn decide(held: &mut Held, sampler: &mut Sampler) {
        match sampler.below(4) {
            0 => held.decision = Decision::instead(&[1, 2, 3]),
            1 => held.added.push_back((Side::Server, vec![4])),
            2 => held.decision = Decision::Drop,
            _ => {}
        }
    }

    /// The first message that can be released, looking at all of them.
    fn first_ready(
        all: &BTreeMap<HoldId, Held>,
        now: Duration,
        mut waits: [bool; 2],
    ) -> Option<HoldId> {
        let found = all.iter().find(|(_, held)| {
            let waits = &mut waits[held.from.index()];
            let is_over = match held.hold {
                None => true,
                Some(Hold::Until(at)) => at <= now,
                Some(Hold::Open) => false,
            };
            let is_ready = held.ticket.is_none() && is_over && !(held.is_ordered() && *waits);
            *waits |= !is_ready;
            is_ready
        });
        found.map(|(id, _)| *id)
    }

    #[test]
    fn the_next_message_is_the_one_that_a_search_finds() {
        let ids = ids(80);
        for seed in 0..200 {
            let mut sampler = Sampler::new(seed);
            let (mut messages, mut all) = (HeldMessages::default(), BTreeMap::new());
            let mut now = 0;
            for (ticket, id) in (0_u64..).zip(&ids) {
                let mut new = held(&mut sampler, now);
                new.ticket = (sampler.below(2) == 0).then_some(ticket);
                messages.insert(*id, new.clone());
                all.insert(*id, new);
                now += sampler.below(2);
                let time = Duration::from_secs(now);
                let chosen = sampler.below(ticket + 1);
                let id = ids[usize::try_from(chosen).unwrap()];
                match sampler.below(3) {
                    0 => {
                        let waits = |held: &&mut Held| held.ticket.is_some();
                        let known = all.get_mut(&id).filter(waits);
                        assert_eq!(messages.with_ticket(chosen), known.is_some().then_some(id));
                        if let Some(known) = known {
                            known.ticket = None;
                            decide(known, &mut sampler);
                            messages.change(id, |held| *held = known.clone());
                        }
                    }
                    1 => {
                        let removed = messages.remove(id);
                        assert_eq!(removed.is_some(), all.remove(&id).is_some());
                    }
                    _ => {}
                }
                for full in [[false; 2], [true, false], [true; 2]] {
                    let expected = first_ready(&all, time, full);
                    assert_eq!(messages.next_ready(time, full), expected, "seed {seed}");
                }
                let bytes: usize = all.values().map(Held::waiting_bytes).sum();
                assert_eq!(messages.waiting_bytes(), bytes);
                for side in Side::BOTH {
                    assert_eq!(messages.has_from(side), all.values().any(|it| it.from == side));
                }
                let dues = all.values().filter_map(|it| match (it.ticket, it.hold) {
                    (None, Some(Hold::Until(at))) => Some(at),
                    _ => None,
                });
                assert_eq!(messages.next_due(time), dues.filter(|at| *at > time).min());
            }
        }
    }
}
