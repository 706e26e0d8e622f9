//! Pairs of builds with shuffled opcodes, and captures of both.

use std::collections::{BTreeMap, HashSet};

use worldwire_core::{Sampler, Side};
use worldwire_tera::carry::{Carried, Carry};
use worldwire_tera::file::library::{BuildFacts, sender};
use worldwire_tera::file::{CodeMap, Library};
use worldwire_tera::message::{Head, Value};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::{ParseOptions, Set};

/// The actions of the players in the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The same actions, in the same order.
    Honest,
    /// Different actions, so that each capture lacks some of the messages.
    Adversarial,
}

/// Number of messages in a build.
const NAMES: usize = 48;
/// Number of messages in a capture.
const MESSAGES: usize = 700;
const OLD: u32 = 1000;
const NEW: u32 = 3000;

/// A pair of builds.
pub(crate) struct Pair {
    kind: Kind,
    seed: u64,
    old: Packets,
    new: Packets,
    names: Vec<String>,
    layouts: Vec<String>,
    /// The usual successors of each message.
    next: Vec<Vec<usize>>,
    /// The messages that the captures lack.
    missing: [HashSet<usize>; 2],
    /// Messages that always have the same values.
    constant: HashSet<usize>,
}

fn pick(sampler: &mut Sampler, bound: usize) -> usize {
    usize::try_from(sampler.below(bound as u64)).unwrap()
}

/// A random layout; short ones are frequent, so that some agree by chance.
fn layout(sampler: &mut Sampler) -> String {
    let types = ["int32", "uint64", "bool", "float", "string", "vec3", "byte", "int16"];
    let fields = pick(sampler, 3) * (1 + pick(sampler, 4));
    (0..fields).map(|field| format!("{} f{field}\n", types[pick(sampler, 8)])).collect()
}

impl Pair {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut sampler = Sampler::new(seed);
        let sampler = &mut sampler;
        let shared: Vec<String> = (0..6).map(|_| layout(sampler)).collect();
        let (mut names, mut layouts) = (Vec::new(), Vec::new());
        for number in 0..NAMES {
            let side = if pick(sampler, 3) == 0 { 'C' } else { 'S' };
            names.push(format!("{side}_M{number}"));
            // Many messages have the layout of others.
            let alike = pick(sampler, 10) < 5;
            layouts.push(if alike { shared[pick(sampler, 6)].clone() } else { layout(sampler) });
        }
        for at in (0..NAMES).step_by(8) {
            layouts[at + 1] = layouts[at].clone();
            names[at + 1] = names[at].replace(&format!("_M{at}"), &format!("_M{}", at + 1));
        }
        let mut some = |share: usize| -> HashSet<usize> {
            (0..NAMES).filter(|_| pick(sampler, 100) < share).collect()
        };
        let (changed, undefined, constant) = (some(5), some(6), some(15));
        let missing = match kind {
            Kind::Honest => [HashSet::new(), HashSet::new()],
            Kind::Adversarial => {
                let (old, mut new) = (some(25), some(15));
                // If one of a pair took the place of the other, nothing would reveal it.
                new.retain(|number| number % 8 > 1 || !old.contains(&(number ^ 1)));
                [old, new]
            }
        };
        let follow = |at: usize, sampler: &mut Sampler| {
            let near = |_| (at + 1 + pick(sampler, 5)) % NAMES;
            (0..3).map(near).collect::<Vec<usize>>()
        };
        let mut next: Vec<Vec<usize>> = (0..NAMES).map(|at| follow(at, sampler)).collect();
        // Alternating requests and answers, of which two at a time have the same layouts.
        for at in (0..NAMES).step_by(8) {
            next[at] = vec![at + 1, at + 1, at + 1];
            next[at + 1] = vec![at, at, at + 2];
        }
        // Every build has its own opcodes.
        let mut shuffled: Vec<u32> = (0..48).collect();
        for at in 0..NAMES {
            shuffled.swap(at, pick(sampler, NAMES));
        }
        let code = |number: usize| OLD + u32::try_from(number).unwrap();
        let new_code = |number: usize| NEW + shuffled[number];
        let packets = |code: &dyn Fn(usize) -> u32, is_new: bool| {
            let files = (0..NAMES).filter(|number| is_new || !undefined.contains(number));
            let files = files.map(|number| {
                let grown = if is_new && changed.contains(&number) { "uint32 fresh\n" } else { "" };
                (format!("{}.1.def", names[number]), format!("{grown}{}", layouts[number]))
            });
            let mut library = Library {
                definitions: Set::load(files, ParseOptions::default()),
                ..Library::default()
            };
            let pairs = (0..NAMES).map(|number| (&names[number], code(number)));
            library.add_map("protocol.7.map", CodeMap::from_pairs(pairs));
            Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() })
        };
        let (old, new) = (packets(&code, false), packets(&new_code, true));
        Self { kind, seed, old, new, names, layouts, next, missing, constant }
    }

    /// The true name of an opcode of the new build.
    pub(crate) fn name(&self, opcode: u16) -> &str {
        self.new.get(opcode).unwrap().name
    }

    pub(crate) fn describe(&self, opcode: u16) -> String {
        let name = self.name(opcode);
        let number = self.names.iter().position(|one| one == name).unwrap();
        let missing =
            if self.missing[0].contains(&number) { ", missing in the old capture" } else { "" };
        format!("{name} ({:?}{missing})", self.layouts[number])
    }

    /// The names of a capture in order.
    fn walk(&self, is_new: bool) -> Vec<usize> {
        let seed = match self.kind {
            Kind::Honest => self.seed ^ 0x5eed,
            Kind::Adversarial => self.seed ^ 0x5eed ^ u64::from(is_new) << 40,
        };
        let mut plot = Sampler::new(seed);
        let (mut at, mut walk) = (0, Vec::new());
        let missing = &self.missing[usize::from(is_new)];
        while walk.len() < MESSAGES {
            // A message usually follows from the one before.
            at = match pick(&mut plot, 8) {
                0 => pick(&mut plot, NAMES),
                _ => self.next[at][pick(&mut plot, 3)],
            };
            if !missing.contains(&at) {
                walk.push(at);
            }
        }
        walk
    }

    /// The result for the captures of both builds.
    pub(crate) fn carry(&self) -> Vec<Carried> {
        let mut carry = Carry::new(&self.old);
        for is_new in [false, true] {
            let mut values = Sampler::new(self.seed ^ 0xa1 ^ u64::from(is_new));
            let mut kept: BTreeMap<usize, Value<'static>> = BTreeMap::new();
            for number in self.walk(is_new) {
                let packets = if is_new { &self.new } else { &self.old };
                let opcode = packets.opcode(&self.names[number]).unwrap();
                let own = packets.get(opcode).unwrap().definition;
                // Only the old build lacks definitions.
                let known = self.new.opcode(&self.names[number]);
                let known = known.and_then(|opcode| self.new.get(opcode)?.definition);
                let plan = own.or(known).unwrap().plan();
                let value = if self.constant.contains(&number) {
                    let make = || plan.sample(&mut Sampler::new(self.seed ^ number as u64));
                    kept.entry(number).or_insert_with(make).clone()
                } else {
                    plan.sample(&mut values)
                };
                let mut bytes = Vec::new();
                plan.encode(Head::plain(opcode), &value, &mut bytes).unwrap();
                let from = sender(&self.names[number]).unwrap_or(Side::Server);
                if is_new {
                    carry.push_new(0, from, &bytes);
                } else {
                    carry.push_old(0, from, &bytes);
                }
            }
        }
        carry.finish()
    }
}
