//! Derives the opcode map for a new build from the map for an old one.
//!
//! Opcodes are shuffled with every build, while the messages stay the same. [`Carry`] examines
//! conversations of both builds and matches opcodes of the new build with names of the old one by
//!
//! * *rank*: how well the definition of a name reads the messages ([`rank`](crate::rank)),
//! * *shape*: their sender, number and lengths, and whether some are identical,
//! * *order*: where they are in the conversation, and which messages precede and follow them.
//!
//! A match is certain if no other name comes close for the opcode and no other opcode for the name,
//! if swapping it with another match would clearly be worse, and if all this holds without relying
//! on uncertain neighbours. It must also precede and follow about the same messages in both builds:
//! a message missing from the old capture can be mistaken for one with the same layout, and only
//! its position reveals the mistake. Other matches are only the best guess.
//!
//! The weights were chosen, not measured. They work for synthetic builds with shuffled opcodes and
//! some changed layouts; no pairs of real captures were available.

mod sure;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;

use worldwire_core::Side;

use crate::file::library::sender;
use crate::frame::{FIXED, HEADER_BYTES, Header};
use crate::packet::Packets;
use crate::rank::Ranking;

/// Maximum number of opcodes matched per build, those with the most messages: each is compared with
/// every name. No known build has half as many.
const MAX_OPCODES: usize = 2_048;
/// Maximum number of messages kept per opcode.
const MAX_KEPT: usize = 32;
/// Maximum number of messages per conversation whose order is used.
const MAX_IN_ORDER: usize = 65_536;
/// Maximum number of passes over the order, each using the matches of the pass before.
const ROUNDS: usize = 6;
/// Score of a definition that cannot read the messages, or reads them with many deviations.
const UNREAD: f64 = -4.0;
/// Score of a name without a definition, which counts neither for nor against a match.
const UNDEFINED: f64 = -1.5;
/// Weight of preceding messages that are the same in both builds, and of following ones.
const AROUND: f64 = 3.0;

/// Matches opcodes of a new build with names of an old one.
#[derive(Debug)]
pub struct Carry<'p> {
    packets: &'p Packets,
    old: BuildStats,
    new: BuildStats,
    /// Maximum number of opcodes of each build that are matched.
    max_opcodes: usize,
}

/// The result for an opcode of the new build.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// The opcode.
    pub opcode: u16,
    /// Who sends it.
    pub from: Side,
    /// The number of messages.
    pub messages: u64,
    /// The best name; `None` if every name fits another opcode better, or if 2,048 other opcodes
    /// have more messages.
    pub name: Option<Box<str>>,
    /// Whether nothing else comes close and no other opcode's uncertainty affects this one.
    pub is_sure: bool,
    /// The lead of the name over all others, from 0 to 1.
    pub confidence: f64,
    /// The second-best name.
    pub second: Option<Box<str>>,
}

/// The messages of a build.
#[derive(Debug, Default)]
struct BuildStats {
    opcodes: BTreeMap<u16, OpcodeStats>,
    /// The opcodes of each conversation, in order.
    order: BTreeMap<u64, Vec<u16>>,
}

/// The messages of an opcode.
#[derive(Debug)]
struct OpcodeStats {
    from: Side,
    count: u64,
    lengths: BTreeMap<usize, u64>,
    /// Hashes of the bytes after the header.
    payloads: BTreeSet<u64>,
    /// The first messages, each with its conversation.
    kept: Vec<(u64, Box<[u8]>)>,
    /// The position of the first message in its conversation, from 0 to 1, summed over
    /// conversations; and the number of conversations.
    first: f64,
    conversations: f64,
}

impl<'p> Carry<'p> {
    /// Starts with the messages of the old build, resolved by its map.
    #[must_use]
    pub fn new(packets: &'p Packets) -> Self {
        Self {
            packets,
            old: BuildStats::default(),
            new: BuildStats::default(),
            max_opcodes: MAX_OPCODES,
        }
    }

    /// Adds the next message of a conversation of the old build.
    pub fn push_old(&mut self, conversation: u64, from: Side, message: &[u8]) {
        self.old.push(conversation, from, message);
    }

    /// Adds the next message of a conversation of the new build.
    pub fn push_new(&mut self, conversation: u64, from: Side, message: &[u8]) {
        self.new.push(conversation, from, message);
    }

    /// The results for all opcodes of the new build, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Carried> {
        self.old.place();
        self.new.place();
        let packets = self.packets;
        let name = |opcode: u16| packets.get(opcode).map(|packet| packet.name);
        let olds = self.old.most_frequent(self.max_opcodes, |opcode| name(opcode).is_some());
        let olds: Vec<(u16, &str, &OpcodeStats)> =
            olds.into_iter().filter_map(|(opcode, of)| Some((opcode, name(opcode)?, of))).collect();
        let news = self.new.most_frequent(self.max_opcodes, |_| true);
        let totals = [&self.old, &self.new].map(BuildStats::messages);
        let mut base: Scores = vec![vec![f64::NEG_INFINITY; olds.len()]; news.len()];
        for ((opcode, of), row) in news.iter().zip(&mut base) {
            let ranks = ranks(packets, of);
            for ((old, name, known), score) in olds.iter().zip(row.iter_mut()) {
                let other = old != opcode && (is_fixed(*old) || is_fixed(*opcode));
                if known.from != of.from || other {
                    continue;
                }
                let rank = ranks.get(name).copied().unwrap_or(UNREAD);
                *score = rank + known.likeness(of, totals);
            }
        }
        let beside = self.old.beside(olds.iter().map(|(opcode, ..)| *opcode));
        let neighbours = self.new.neighbours();
        // The scores, given the matches of neighbouring opcodes.
        let scores_by = |matched: &Matched| -> Scores {
            let known = matched.iter();
            let known = known
                .filter_map(|(new, old)| Some((Some(news.get(*new)?.0), Some(olds.get(*old)?.0))));
            let known: HashMap<Neighbour, Neighbour> = known.chain([(None, None)]).collect();
            let mut scores = base.clone();
            for (row, (opcode, _)) in scores.iter_mut().zip(&news) {
                for (around, beside) in neighbours.get(opcode).into_iter().flatten().zip(&beside) {
                    let around = around
                        .iter()
                        .filter_map(|(code, share)| Some((share, beside.get(known.get(code)?)?)));
                    for (share, olds) in around {
                        for (old, of_old) in olds {
                            if let Some(score) = row.get_mut(*old) {
                                *score += AROUND * share.min(*of_old);
                            }
                        }
                    }
                }
            }
            scores
        };
        let mut scores = base.clone();
        let mut matched = assign(&scores);
        for _ in 0..ROUNDS {
            scores = scores_by(&matched);
            let again = assign(&scores);
            if again == matched {
                break;
            }
            matched = again;
        }
        let of_old = self.old.neighbours();
        let code = |new: usize, old: usize| Some((news.get(new)?.0, olds.get(old)?.0));
        // The amount that the match of another opcode adds to the score of a match.
        let support = |(new, old): (usize, usize), (other_new, other_old): (usize, usize)| {
            let (Some((new, old)), Some(other)) = (code(new, old), code(other_new, other_old))
            else {
                return 0.0;
            };
            let share = |all: &Neighbours, of: u16, at: usize, other: u16| {
                let share = all.get(&of).and_then(|around| around.get(at)?.get(&Some(other)));
                share.copied().unwrap_or(0.0)
            };
            let both = |at: usize| match share(&neighbours, new, at, other.0) {
                // The usual case, since most opcodes have few neighbours.
                0.0 => 0.0,
                of_new => of_new.min(share(&of_old, old, at, other.1)),
            };
            AROUND * (both(0) + both(1))
        };
        let is_fixed = |new: usize| news.get(new).is_some_and(|(opcode, _)| is_fixed(*opcode));
        let evidence =
            sure::Evidence { base: &base, scores: &scores, scores_by, support, is_fixed };
        let sure = evidence.sure(&matched);
        let found: BTreeMap<u16, Carried> = news
            .iter()
            .enumerate()
            .map(|(new, (opcode, of))| {
                let row = scores.get(new).map_or(&[][..], Vec::as_slice);
                let chosen = matched.get(&new).copied();
                let score = |old: usize| row.get(old).copied().unwrap_or(f64::NEG_INFINITY);
                let others = (0..olds.len()).filter(|old| Some(*old) != chosen);
                let second = others.max_by(|a, b| score(*a).total_cmp(&score(*b)));
                let second = second.filter(|old| score(*old).is_finite());
                let margin = chosen.map_or(0.0, |old| sure::margin(&scores, new, old));
                let named = |old: usize| olds.get(old).map(|(_, name, _)| Box::from(*name));
                let carried = Carried {
                    name: chosen.and_then(named),
                    is_sure: sure.contains_key(&new),
                    confidence: (1.0 - (-margin.max(0.0) / sure::CLEAR).exp()).min(0.99),
                    second: second.and_then(named),
                    ..Carried::unknown(*opcode, of)
                };
                (*opcode, carried)
            })
            .collect();
        let all = self.new.opcodes.iter();
        let of = |(opcode, of): (&u16, &OpcodeStats)| match found.get(opcode) {
            Some(carried) => carried.clone(),
            None => Carried::unknown(*opcode, of),
        };
        all.map(of).collect()
    }
}

impl Carried {
    /// The result if nothing matches.
    const fn unknown(opcode: u16, of: &OpcodeStats) -> Self {
        Self {
            opcode,
            from: of.from,
            messages: of.count,
            name: None,
            is_sure: false,
            confidence: 0.0,
            second: None,
        }
    }
}

/// The map, one opcode per line, with the evidence as comments; uncertain matches are commented
/// out.
#[must_use]
pub fn format(carried: &[Carried]) -> String {
    let mut out = String::new();
    let mut by_name: Vec<&Carried> = carried.iter().collect();
    by_name.sort_by(|a, b| (&a.name, a.opcode).cmp(&(&b.name, b.opcode)));
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    for one in by_name.iter().filter(|one| one.is_sure) {
        let Carried { opcode, messages, confidence, .. } = one;
        let name = one.name.as_deref().unwrap_or_default();
        let (percent, plural) = (confidence * 100.0, plural(*messages));
        let _ = writeln!(out, "{name} = {opcode} # {percent:.0} %, {messages} message{plural}");
    }
    let mut unsure = by_name.iter().filter(|one| !one.is_sure).peekable();
    if unsure.peek().is_some() {
        out.push_str("\n# Uncertain: compare the messages, and uncomment the correct lines.\n");
    }
    for one in unsure {
        let Carried { opcode, messages, confidence, from, .. } = one;
        let (percent, plural) = (confidence * 100.0, plural(*messages));
        let name = one.name.as_deref().unwrap_or("?");
        let _ =
            write!(out, "# {name} = {opcode} # {percent:.0} %, {messages} {from} message{plural}");
        if let Some(second) = &one.second {
            let _ = write!(out, "; or {second}");
        }
        out.push('\n');
    }
    out
}

/// The scores of all names, for each opcode of the new build.
type Scores = Vec<Vec<f64>>;

/// Indices of opcodes of the new build, and of the names they are matched with.
type Matched = BTreeMap<usize, usize>;

/// A neighbour: an opcode; `None` is the beginning or end of a conversation.
type Neighbour = Option<u16>;

/// For each opcode, the neighbours before and after it, each with its share.
type Neighbours = HashMap<u16, [BTreeMap<Neighbour, f64>; 2]>;

/// The inverse: for each neighbour, the indices of opcodes that it precedes or follows.
type Beside = [HashMap<Neighbour, Vec<(usize, f64)>>; 2];

impl BuildStats {
    fn push(&mut self, conversation: u64, from: Side, message: &[u8]) {
        let Ok(Some(Header { opcode, .. })) = Header::peek(message) else { return };
        let order = self.order.entry(conversation).or_default();
        if order.len() < MAX_IN_ORDER {
            order.push(opcode);
        }
        let of = self.opcodes.entry(opcode).or_insert_with(|| OpcodeStats {
            from,
            count: 0,
            lengths: BTreeMap::new(),
            payloads: BTreeSet::new(),
            kept: Vec::new(),
            first: 0.0,
            conversations: 0.0,
        });
        of.count += 1;
        *of.lengths.entry(message.len()).or_default() += 1;
        if of.kept.len() < MAX_KEPT {
            of.kept.push((conversation, message.into()));
            of.payloads.extend(payload(message));
        }
    }

    fn messages(&self) -> u64 {
        self.opcodes.values().map(|of| of.count).sum()
    }

    /// The opcodes with the most messages among those that `counts` accepts.
    fn most_frequent(&self, max: usize, counts: impl Fn(u16) -> bool) -> Vec<(u16, &OpcodeStats)> {
        let all = self.opcodes.iter().filter(|(opcode, _)| counts(**opcode));
        let mut all: Vec<(u16, &OpcodeStats)> = all.map(|(opcode, of)| (*opcode, of)).collect();
        all.sort_by_key(|(opcode, of)| (Reverse(of.count), *opcode));
        all.truncate(max);
        all.sort_unstable_by_key(|(opcode, _)| *opcode);
        all
    }

    /// Records where in the conversations each opcode first occurs.
    fn place(&mut self) {
        for order in self.order.values() {
            let mut met = BTreeSet::new();
            for (at, opcode) in order.iter().enumerate() {
                if met.insert(opcode)
                    && let Some(of) = self.opcodes.get_mut(opcode)
                {
                    of.first += share(at, order.len());
                    of.conversations += 1.0;
                }
            }
        }
    }

    fn neighbours(&self) -> Neighbours {
        let mut all = Neighbours::new();
        for order in self.order.values() {
            let befores = iter::once(None).chain(order.iter().copied().map(Some));
            // If there are more opcodes, the conversation's end is not in `order`.
            let end = (order.len() < MAX_IN_ORDER).then_some(None);
            let afters = order.iter().copied().map(Some).skip(1).chain(end);
            for (opcode, (before, after)) in order.iter().zip(befores.zip(afters)) {
                let [of_before, of_after] = all.entry(*opcode).or_default();
                *of_before.entry(before).or_default() += 1.0;
                *of_after.entry(after).or_default() += 1.0;
            }
        }
        for map in all.values_mut().flatten() {
            let total: f64 = map.values().sum();
            map.values_mut().for_each(|count| *count /= total);
        }
        all
    }

    fn beside(&self, opcodes: impl Iterator<Item = u16>) -> Beside {
        let neighbours = self.neighbours();
        let mut beside = Beside::default();
        for (place, opcode) in opcodes.enumerate() {
            let around = neighbours.get(&opcode).into_iter().flatten();
            for (around, beside) in around.zip(&mut beside) {
                for (code, share) in around {
                    beside.entry(*code).or_default().push((place, *share));
                }
            }
        }
        beside
    }
}

impl OpcodeStats {
    /// Its similarity to an opcode of the other build; `totals` are the total numbers of messages
    /// in both builds.
    fn likeness(&self, other: &Self, totals: [u64; 2]) -> f64 {
        let mut same = 0.0;
        for (length, count) in &self.lengths {
            let of_other = other.lengths.get(length).copied().unwrap_or(0);
            same += part(*count, self.count).min(part(of_other, other.count));
        }
        let known = other.payloads.iter().filter(|payload| self.payloads.contains(payload)).count();
        let known = share(known, other.payloads.len().max(1));
        let often = part(self.count, totals[0]) / part(other.count, totals[1]);
        let long = self.mean() / other.mean();
        let place = |of: &Self| of.first / of.conversations.max(1.0);
        4.0 * same + 4.0 * known
            - often.ln().abs().min(3.0)
            - 2.0 * long.ln().abs().min(2.0)
            - 4.0 * (place(self) - place(other)).abs()
    }

    fn mean(&self) -> f64 {
        self.lengths
            .iter()
            .map(|(length, count)| share(*length, 1) * part(*count, self.count))
            .sum()
    }
}

/// The scores of all names' definitions: 0 for the best, negative for the others.
fn ranks<'p>(packets: &'p Packets, of: &OpcodeStats) -> HashMap<&'p str, f64> {
    let named = packets.names().iter().filter_map(|(_, name)| packets.get(packets.opcode(name)?));
    let mut ranks: HashMap<&str, f64> = HashMap::new();
    let mut definitions = Vec::new();
    for packet in named {
        let side = sender(packet.name);
        let score = if packet.definition.is_some() { UNREAD } else { UNDEFINED };
        ranks.insert(packet.name, score);
        definitions.extend(packet.definition.filter(|_| side.is_none_or(|side| side == of.from)));
    }
    let mut ranking = Ranking::new(definitions);
    of.kept
        .iter()
        .for_each(|(conversation, message)| ranking.push(*conversation, of.from, message));
    let candidates = ranking.finish();
    let best = candidates.first().map_or(0.0, |candidate| candidate.score);
    for candidate in candidates {
        let after = (candidate.score - best) / 4.0;
        let bad = candidate.fits < of.kept.len() as u64;
        let score = if bad { UNREAD } else { after.max(UNREAD) };
        ranks.insert(candidate.definition.name(), score);
    }
    ranks
}

/// Whether an opcode is the same in every build.
fn is_fixed(opcode: u16) -> bool {
    FIXED.iter().any(|(code, _)| *code == opcode)
}

/// Matches rows with columns, best pairs first, each at most once.
fn assign(scores: &[Vec<f64>]) -> Matched {
    let pairs = scores.iter().enumerate().flat_map(|(row, scores)| {
        scores.iter().enumerate().map(move |(column, score)| (*score, row, column))
    });
    let mut pairs: Vec<(f64, usize, usize)> =
        pairs.filter(|(score, ..)| score.is_finite()).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut matched, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (_, row, column) in pairs {
        if !matched.contains_key(&row) && taken.insert(column) {
            matched.insert(row, column);
        }
    }
    matched
}

/// A hash of the bytes after the header, if there are any.
fn payload(message: &[u8]) -> Option<u64> {
    let payload = message.get(HEADER_BYTES..).filter(|payload| !payload.is_empty())?;
    let mut hasher = DefaultHasher::new();
    payload.hash(&mut hasher);
    Some(hasher.finish())
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 messages")]
fn part(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 messages")]
fn share(at: usize, of: usize) -> f64 {
    at as f64 / of.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::library::BuildFacts;
    use crate::file::{CodeMap, Library};
    use crate::message::Head;
    use crate::schema::{ParseOptions, Set};
    use worldwire_core::Sampler;

    /// The packets of a build: all names, with their layouts in this build.
    fn library(names: usize, changed: &[usize], codes: &[(String, u32)]) -> Packets {
        let types = ["int32", "uint64", "bool", "float", "string", "vec3", "byte", "int16"];
        let mut sampler = Sampler::new(5);
        let mut below = |bound: u64| usize::try_from(sampler.below(bound)).unwrap();
        let mut files = Vec::new();
        for number in 0..names {
            let mut text = String::new();
            for field in 0..1 + below(9) {
                text.push_str(&format!("{} f{field}\n", types[below(8)]));
            }
            if changed.contains(&number) {
                text.insert_str(0, "uint32 fresh\n");
            }
            let side = if number % 3 == 0 { 'C' } else { 'S' };
            files.push((format!("{side}_M{number}.1.def"), text));
        }
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        let pairs = codes.iter().map(|(name, code)| (name.as_str(), *code));
        library.add_map("protocol.7.map", CodeMap::from_pairs(pairs));
        Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() })
    }

    /// Sixty shuffled opcodes and three changed layouts.
    #[test]
    fn a_shuffled_build_is_matched() {
        const NAMES: usize = 60;
        let name = |number: usize| {
            format!("{}_M{number}", if number.is_multiple_of(3) { 'C' } else { 'S' })
        };
        let code = |number: usize| u32::try_from(1000 + number).unwrap();
        let shuffled = |number: usize| u32::try_from(3000 + number * 37 % NAMES).unwrap();
        let all = |code: &dyn Fn(usize) -> u32| -> Vec<(String, u32)> {
            (0..NAMES).map(|number| (name(number), code(number))).collect()
        };
        let old = library(NAMES, &[], &all(&code));
        let new = library(NAMES, &[7, 20, 33], &all(&shuffled));
        let mut carry = Carry::new(&old);
        for (packets, seed) in [(&old, 1), (&new, 2)] {
            let mut sampler = Sampler::new(seed);
            // All players do the same things in about the same order.
            let mut plot = Sampler::new(99);
            let mut at = 0;
            for _ in 0..1500 {
                at = (at + 1 + usize::try_from(plot.below(3)).unwrap()) % NAMES;
                let opcode = packets.opcode(&name(at)).unwrap();
                let definition = packets.get(opcode).unwrap().definition.unwrap();
                let value = definition.plan().sample(&mut sampler);
                let mut bytes = Vec::new();
                definition.plan().encode(Head::plain(opcode), &value, &mut bytes).unwrap();
                let from = sender(&name(at)).unwrap();
                if core::ptr::eq(packets, &old) {
                    carry.push_old(0, from, &bytes);
                } else {
                    carry.push_new(0, from, &bytes);
                }
            }
        }
        let carried = carry.finish();
        let right = |one: &&Carried| {
            one.name.as_deref().and_then(|name| new.opcode(name)) == Some(one.opcode)
        };
        let (good, all) = (carried.iter().filter(right).count(), carried.len());
        assert!(all == NAMES && good * 100 >= all * 95, "{good} of {all}");
        let wrong = carried.iter().filter(|one| one.is_sure && !right(one));
        assert_eq!(wrong.count(), 0, "sure and wrong");
        let sure = carried.iter().filter(|one| one.is_sure).count();
        assert!(sure * 2 > all, "{sure} of {all} are sure");
        let (map, problems) =
            CodeMap::parse(crate::file::MapKind::Protocol, "carried.map", &format(&carried));
        assert!(problems.is_empty());
        assert_eq!(map.iter().len(), sure);
    }

    /// A capture may contain opcodes that no build has, and each is compared with all names.
    #[test]
    fn the_number_of_matched_opcodes_is_limited() {
        let packets = library(3, &[], &[("C_M0".to_owned(), 1), ("S_M1".to_owned(), 2)]);
        let mut carry = Carry::new(&packets);
        assert_eq!(carry.max_opcodes, MAX_OPCODES);
        carry.max_opcodes = 3;
        let message = |opcode: u16| [&[4, 0][..], &opcode.to_le_bytes()].concat();
        for opcode in (1..=8).flat_map(|opcode| vec![opcode; usize::from(opcode)]) {
            carry.push_old(0, Side::Server, &message(opcode));
            carry.push_new(0, Side::Server, &message(opcode));
        }
        let carried = carry.finish();
        let known = carried.iter().map(|one| (one.opcode, one.messages));
        assert_eq!(
            known.collect::<Vec<_>>(),
            (1..=8).map(|code| (code, code.into())).collect::<Vec<_>>()
        );
        let named = carried.iter().filter(|one| one.name.is_some() || one.second.is_some());
        let named: Vec<u16> = named.map(|one| one.opcode).collect();
        assert_eq!(named, [6, 7, 8]);
    }
}
