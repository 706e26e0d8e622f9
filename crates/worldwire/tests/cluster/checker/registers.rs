//! Checks nodes that several clients change. Each must behave like a single register, on which
//! every call takes effect at one moment between its beginning and its end.
//!
//! The check simulates all possible orders (the algorithm of Wing and Gong), event by event.
//! Numbers are unique, so a call that was not acknowledged has taken effect if its number was read;
//! it must have done so before the end of the first call that read it. If nobody read the number,
//! the order does not depend on that call.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::history::{Action, Call, Outcome};

/// Checks all registers, which begin at 0. `last` contains the final number of each.
pub(crate) fn check_registers(calls: &[Call], last: &BTreeMap<u32, u64>) -> Result<usize, String> {
    let mut checked = 0;
    for (register, last) in last {
        let calls = steps(calls, *register, *last)?;
        checked += calls.len();
        linearize(&calls).map_err(|problem| format!("register {register}: {problem}"))?;
    }
    Ok(checked)
}

/// A call that has taken effect.
#[derive(Clone, Debug)]
struct Step {
    number: u64,
    writes: bool,
    began: Duration,
    /// The call took effect before this time.
    ended: Duration,
}

/// The calls of a register, followed by one that reads its final number.
fn steps(calls: &[Call], register: u32, last: u64) -> Result<Vec<Step>, String> {
    let end = calls.iter().map(|call| call.ended).max().unwrap_or_default();
    let end = end + Duration::from_nanos(1);
    let mut steps = Vec::new();
    let mut open = Vec::new();
    for call in calls {
        let Call { began, ended, .. } = *call;
        match (&call.action, call.outcome) {
            (Action::Write { register: of, number }, outcome) if *of == register => {
                let step = Step { number: *number, writes: true, began, ended };
                match outcome {
                    Outcome::Done(_) => steps.push(step),
                    Outcome::Unknown => open.push(step),
                    Outcome::NotFound => return Err(format!("register {register} was not found")),
                }
            }
            (Action::Read { register: of }, outcome) if *of == register => match outcome {
                Outcome::Done(number) => {
                    steps.push(Step { number, writes: false, began, ended });
                }
                Outcome::Unknown => {}
                Outcome::NotFound => return Err(format!("register {register} was not found")),
            },
            _ => {}
        }
    }
    steps.push(Step { number: last, writes: false, began: end, ended: end });
    let mut first_read = HashMap::<u64, Duration>::new();
    for read in steps.iter().filter(|step| !step.writes) {
        let first = first_read.entry(read.number).or_insert(read.ended);
        *first = read.ended.min(*first);
    }
    for write in open {
        if let Some(read) = first_read.get(&write.number) {
            if *read < write.began {
                return Err(format!("register {register}: {} was read early", write.number));
            }
            steps.push(Step { ended: *read, ..write });
        }
    }
    Ok(steps)
}

/// The maximum number of calls that may be open at once.
const MAX_OPEN: usize = 64;

/// Finds an order of the calls.
fn linearize(steps: &[Step]) -> Result<(), String> {
    // Calls that begin at the end of another one are concurrent with it.
    let begins = steps.iter().enumerate().map(|(index, step)| (step.began, false, index));
    let ends = steps.iter().enumerate().map(|(index, step)| (step.ended, true, index));
    let mut events: Vec<_> = begins.chain(ends).collect();
    events.sort_unstable();
    let mut open: [Option<usize>; MAX_OPEN] = [None; MAX_OPEN];
    // The possible numbers, each with the set of open calls that have taken effect by then.
    let mut states = HashSet::from([(0_u64, 0_u64)]);
    for (_, is_end, index) in events {
        if !is_end {
            let free = open.iter().position(Option::is_none);
            open[free.ok_or("too many calls are open at once")?] = Some(index);
            continue;
        }
        let Some(slot) = open.iter().position(|one| *one == Some(index)) else { continue };
        let bit = 1 << slot;
        let mut found = HashSet::new();
        let mut seen = states.clone();
        let mut next: Vec<_> = states.drain().collect();
        while let Some((number, done)) = next.pop() {
            if done & bit != 0 {
                found.insert((number, done & !bit));
                continue;
            }
            for (slot, step) in open.iter().enumerate() {
                let Some(step) = step.map(|index| &steps[index]) else { continue };
                let is_possible = step.writes || step.number == number;
                let after = (step.number, done | 1 << slot);
                if done & 1 << slot == 0 && is_possible && seen.insert(after) {
                    next.push(after);
                }
            }
        }
        if found.is_empty() {
            return Err(no_order(&steps[index], &open, steps));
        }
        states = found;
        open[slot] = None;
    }
    Ok(())
}

fn no_order(step: &Step, open: &[Option<usize>], steps: &[Step]) -> String {
    let open: Vec<_> = open.iter().flatten().map(|index| &steps[*index]).collect();
    let before = steps.iter().filter(|other| other.writes && other.ended < step.began);
    let before = before.max_by_key(|other| other.ended);
    let writer = steps.iter().find(|other| other.writes && other.number == step.number);
    format!(
        "no order of its calls explains {step:?}; open were {open:?}, the last earlier write was \
        {before:?}, its number was written by {writer:?}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(action: Action, began: u64, ended: u64, outcome: Outcome) -> Call {
        let (began, ended) = (Duration::from_millis(began), Duration::from_millis(ended));
        Call { client: 1, action, began, ended, outcome }
    }

    fn write(number: u64, began: u64, ended: u64) -> Call {
        call(Action::Write { register: 1, number }, began, ended, Outcome::Done(0))
    }

    fn lost(number: u64, began: u64, ended: u64) -> Call {
        Call { outcome: Outcome::Unknown, ..write(number, began, ended) }
    }

    fn read(number: u64, began: u64, ended: u64) -> Call {
        call(Action::Read { register: 1 }, began, ended, Outcome::Done(number))
    }

    fn check(calls: &[Call], last: u64) -> Result<usize, String> {
        check_registers(calls, &[(1, last)].into())
    }

    #[test]
    fn possible_histories_pass() {
        assert_eq!(check(&[], 0), Ok(1));
        check(&[write(1, 0, 1), read(1, 2, 3), write(2, 4, 5)], 2).unwrap();
        // Concurrent writes may take effect in either order, but the order must be the same for all
        // readers.
        let concurrent = [write(1, 0, 10), write(2, 0, 10), read(2, 1, 2), read(1, 3, 4)];
        check(&concurrent, 1).unwrap();
        // A call without an answer may take effect at any later time, or never.
        check(&[lost(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)], 1).unwrap();
        check(&[lost(1, 0, 1), write(2, 2, 3), read(2, 4, 5)], 2).unwrap();
        let unanswered = Call { outcome: Outcome::Unknown, ..read(0, 0, 1) };
        check(&[unanswered, write(1, 0, 1)], 1).unwrap();
    }

    #[test]
    fn lost_and_stale_numbers_are_found() {
        let broken: [(&str, Vec<Call>, u64); 7] = [
            ("a lost write", vec![write(1, 0, 1)], 0),
            ("a stale read", vec![write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)], 2),
            ("an older write wins", vec![write(1, 0, 1), write(2, 2, 3)], 1),
            ("read before it was written", vec![read(1, 0, 1), write(1, 2, 3)], 1),
            ("read before a lost write", vec![read(1, 0, 1), lost(1, 2, 3)], 1),
            (
                "a write that takes effect twice",
                vec![lost(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(1, 6, 7)],
                2,
            ),
            ("a number that nobody wrote", vec![write(1, 0, 1), read(7, 2, 3)], 1),
        ];
        for (about, calls, last) in broken {
            assert!(check(&calls, last).is_err(), "{about}");
        }
        // Readers disagree about the order of two concurrent writes.
        let [one, two] = [write(1, 0, 10), write(2, 0, 10)];
        let readers = [read(1, 1, 2), read(2, 3, 4), read(1, 5, 6)];
        assert!(check(&[&[one, two], &readers[..]].concat(), 1).is_err());
    }

    #[test]
    fn registers_do_not_vanish() {
        let gone = Call { outcome: Outcome::NotFound, ..read(0, 0, 1) };
        assert!(check(&[gone], 0).unwrap_err().contains("not found"));
    }
}
