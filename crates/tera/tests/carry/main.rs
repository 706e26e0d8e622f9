//! Counts the matches that [`Carry`] calls certain, and those among them that are wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod builds;

use builds::{Kind, Pair};

/// The outcome for some pairs of builds.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    opcodes: usize,
    /// Opcodes whose best name, certain or not, is right.
    right: usize,
    sure: usize,
    wrong: usize,
}

fn outcome(kind: Kind, seeds: std::ops::Range<u64>) -> Outcome {
    let mut all = Outcome::default();
    for seed in seeds {
        let pair = Pair::new(kind, seed);
        for one in pair.carry() {
            let is_right = one.name.as_deref() == Some(pair.name(one.opcode));
            all.opcodes += 1;
            all.right += usize::from(is_right);
            all.sure += usize::from(one.is_sure);
            if one.is_sure && !is_right {
                all.wrong += 1;
                println!(
                    "{kind:?} {seed}: {} is called {:?} at {:.0} %, or {:?}; {} messages",
                    pair.describe(one.opcode),
                    one.name,
                    one.confidence * 100.0,
                    one.second,
                    one.messages
                );
            }
        }
    }
    println!("{kind:?}: {all:?}");
    all
}

/// Players do the same things in both captures.
#[test]
fn honest_pairs_are_matched() {
    let Outcome { opcodes, right, sure, wrong } = outcome(Kind::Honest, 0..8);
    assert!(right * 100 >= opcodes * 95, "{right} of {opcodes}");
    assert!(sure * 2 > opcodes, "{sure} of {opcodes} are certain");
    assert_eq!(wrong, 0);
}

/// Players do different things, and many messages are in only one of the captures.
#[test]
fn certain_matches_are_right_even_if_names_are_missing() {
    let Outcome { sure, wrong, .. } = outcome(Kind::Adversarial, 0..60);
    assert!(wrong * 1000 < sure * 5, "{wrong} of {sure} certain matches are wrong");
}
