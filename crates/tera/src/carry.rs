//! The map of a new build, from the map of an old one.
//!
//! Opcodes are shuffled with every build; the messages stay what they are. [`Carry`] looks at
//! conversations of both builds, and matches the opcodes of the new one with the names of the old
//! one by
//!
//! * *rank*: how well the definition of a name reads the messages ([`rank`](crate::rank)),
//! * *shape*: who sends them, how many there are, how long they are, and whether some are the same
//!   to the byte,
//! * *order*: where in the conversation they are, and what stands before and behind them.
//!
//! A match is sure when no other name for the opcode, and no other opcode for the name, comes near.
//! The others are what looks best, no more.
//!
//! The weights are chosen, not measured. They tell made-up builds apart, whose opcodes are shuffled
//! and some of whose layouts are changed; real pairs of captures were not at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use worldwire_core::Side;

use crate::file::library::sender;
use crate::frame::{CHECK_VERSION, CHECK_VERSION_ANSWER, HEADER_BYTES, Header};
use crate::packet::Packets;
use crate::rank::Ranking;

/// Messages of an opcode that are looked at closely.
const MOST_KEPT: usize = 32;
/// Messages of a conversation whose order counts.
const MOST_IN_ORDER: usize = 65_536;
/// How often the order is looked at again, with what was matched in the meantime.
const ROUNDS: usize = 6;
/// How far the second best has to be behind a match that is sure.
const CLEAR: f64 = 2.0;
/// What a match that is sure has at least.
const ENOUGH: f64 = 1.5;

/// Matches the opcodes of a new build with the names of an old one.
#[derive(Debug)]
pub struct Carry<'p> {
    packets: &'p Packets,
    old: Seen,
    new: Seen,
}

/// What became of an opcode of the new build.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// The opcode.
    pub opcode: u16,
    /// Who sends it.
    pub from: Side,
    /// How many messages there were.
    pub messages: u64,
    /// The name that fits best; nothing when every name fits another opcode better.
    pub name: Option<Box<str>>,
    /// Whether nothing else comes near.
    pub is_sure: bool,
    /// How far ahead the name is of all others, from 0 to 1.
    pub confidence: f64,
    /// The name that comes next.
    pub second: Option<Box<str>>,
}

/// The messages of a build.
#[derive(Debug, Default)]
struct Seen {
    opcodes: BTreeMap<u16, Of>,
    /// The opcodes of each conversation, in their order.
    order: BTreeMap<u64, Vec<u16>>,
}

/// The messages of an opcode.
#[derive(Debug)]
struct Of {
    from: Side,
    count: u64,
    lengths: BTreeMap<usize, u64>,
    /// Hashes of what stands behind the header.
    payloads: BTreeSet<u64>,
    kept: Vec<Box<[u8]>>,
    /// Where in their conversations the first ones are, from 0 to 1: the sum, and of how many.
    first: f64,
    conversations: f64,
}

impl<'p> Carry<'p> {
    /// Begins, with the messages of the old build by its map.
    #[must_use]
    pub fn new(packets: &'p Packets) -> Self {
        Self { packets, old: Seen::default(), new: Seen::default() }
    }

    /// The next message of a conversation of the old build.
    pub fn push_old(&mut self, conversation: u64, from: Side, message: &[u8]) {
        self.old.push(conversation, from, message);
    }

    /// The next message of a conversation of the new build.
    pub fn push_new(&mut self, conversation: u64, from: Side, message: &[u8]) {
        self.new.push(conversation, from, message);
    }

    /// What the opcodes of the new build are, in their order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Carried> {
        self.old.place();
        self.new.place();
        let packets = self.packets;
        let name = |opcode: u16| packets.get(opcode).map(|packet| packet.name);
        let olds: Vec<(u16, &str, &Of)> = self
            .old
            .opcodes
            .iter()
            .filter_map(|(opcode, of)| Some((*opcode, name(*opcode)?, of)))
            .collect();
        let news: Vec<(u16, &Of)> = self.new.opcodes.iter().map(|(code, of)| (*code, of)).collect();
        let totals = [&self.old, &self.new].map(Seen::messages);
        let mut base = vec![vec![f64::NEG_INFINITY; olds.len()]; news.len()];
        for ((opcode, of), row) in news.iter().zip(&mut base) {
            let ranks = ranks(packets, of);
            for ((old, name, known), score) in olds.iter().zip(row.iter_mut()) {
                let fixed = [CHECK_VERSION, CHECK_VERSION_ANSWER];
                if known.from != of.from || (old != opcode && fixed.iter().any(|it| it == old || it == opcode)) {
                    continue;
                }
                let rank = ranks.get(name).copied().unwrap_or(UNREAD);
                *score = rank + known.likeness(of, totals);
            }
        }
        let neighbours = [self.old.neighbours(), self.new.neighbours()];
        let mut scores = base.clone();
        let mut matched = assign(&scores);
        for _ in 0..ROUNDS {
            // What the opcodes around are called as far as is known.
            let known: HashMap<u16, u16> = matched
                .iter()
                .filter_map(|(new, old)| Some((news.get(*new)?.0, olds.get(*old)?.0)))
                .collect();
            for ((new, row), (opcode, _)) in scores.iter_mut().zip(&base).zip(&news) {
                for ((score, base), (old, ..)) in new.iter_mut().zip(row).zip(&olds) {
                    let [before, behind] = [0, 1].map(|at| {
                        let of = |map: &Neighbours, code: &u16| map.get(code).map(|two| two[at].clone());
                        let old = of(&neighbours[0], old).unwrap_or_default();
                        let new = of(&neighbours[1], opcode).unwrap_or_default();
                        alike(&old, &new, &known)
                    });
                    *score = base + AROUND * (before + behind);
                }
            }
            let again = assign(&scores);
            if again == matched {
                break;
            }
            matched = again;
        }
        let best_of_old: Vec<f64> = Vec::new();
        drop(best_of_old);
        news.iter()
            .enumerate()
            .map(|(new, (opcode, of))| {
                let row = scores.get(new).map_or(&[][..], Vec::as_slice);
                let chosen = matched.get(&new).copied();
                let score = |old: usize| row.get(old).copied().unwrap_or(f64::NEG_INFINITY);
                let others = (0..olds.len()).filter(|old| Some(*old) != chosen);
                let second = others.max_by(|a, b| score(*a).total_cmp(&score(*b)));
                let second = second.filter(|old| score(*old).is_finite());
                let margin = chosen.map_or(0.0, |old| {
                    let column = scores.iter().enumerate().filter(|(other, _)| *other != new);
                    let rivals = column.filter_map(|(_, row)| row.get(old).copied());
                    let rival = rivals.fold(f64::NEG_INFINITY, f64::max);
                    score(old) - rival.max(second.map_or(f64::NEG_INFINITY, score))
                });
                let is_sure = margin >= CLEAR && chosen.is_some_and(|old| score(old) >= ENOUGH);
                let named = |old: usize| olds.get(old).map(|(_, name, _)| Box::from(*name));
                Carried {
                    opcode: *opcode,
                    from: of.from,
                    messages: of.count,
                    name: chosen.and_then(named),
                    is_sure,
                    confidence: (1.0 - (-margin.max(0.0) / CLEAR).exp()).min(0.99),
                    second: second.and_then(named),
                }
            })
            .collect()
    }
}
