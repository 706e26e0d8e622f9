//! Checks nodes that one client creates and changes: every acknowledged change is in the database,
//! once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::history::{Action, Call, Outcome};

/// The part of a database that is checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    /// The title and the number in each node that clients have created.
    pub(crate) nodes: BTreeMap<u32, (String, u64)>,
    /// Pairs of parent and child.
    pub(crate) refs: BTreeSet<(u32, u32)>,
}

/// The lowest and the highest number that a node may hold.
#[derive(Default)]
struct Numbers {
    acknowledged: u64,
    sent: u64,
}

/// Checks a database against the history. Returns the number of acknowledged calls that the
/// database confirms.
pub(crate) fn check_nodes(calls: &[Call], stored: &Stored) -> Result<usize, String> {
    let mut made = HashMap::<u32, &str>::new();
    let mut titles = HashSet::<&str>::new();
    let mut numbers = BTreeMap::<u32, Numbers>::new();
    let mut proven = 0;
    for call in calls {
        match (&call.action, call.outcome) {
            (Action::Create { title }, Outcome::Done(node)) => {
                let node = u32::try_from(node).map_err(|error| error.to_string())?;
                if let Some(other) = made.insert(node, title) {
                    return Err(format!("node {node} was made twice, as {other} and {title}"));
                }
                match stored.nodes.get(&node) {
                    Some((found, _)) if found == title => {}
                    found => return Err(format!("node {node} is {title}, but found {found:?}")),
                }
                titles.insert(title);
                numbers.entry(node).or_default();
            }
            (Action::Create { title }, _) => drop(titles.insert(title)),
            (Action::Place { parent, child }, Outcome::Done(_))
                if !stored.refs.contains(&(*parent, *child)) =>
            {
                return Err(format!("node {child} is not below {parent}"));
            }
            (Action::Save { node, number }, outcome) => {
                let known = numbers.entry(*node).or_default();
                known.sent = known.sent.max(*number);
                if let Outcome::Done(_) = outcome {
                    known.acknowledged = known.acknowledged.max(*number);
                }
            }
            (Action::Fetch { node }, Outcome::Done(number)) => {
                // Only its own client changes the node, one request at a time, and the numbers
                // increase.
                let known = numbers.entry(*node).or_default();
                if !(known.acknowledged..=known.sent).contains(&number) {
                    let Numbers { acknowledged, sent } = *known;
                    return Err(format!(
                        "node {node} was read as {number}, with {acknowledged} acknowledged and \
                        {sent} sent"
                    ));
                }
            }
            _ => {}
        }
        match (&call.action, call.outcome) {
            (Action::Save { node, .. } | Action::Fetch { node }, Outcome::NotFound) => {
                return Err(format!("node {node} was not found"));
            }
            (Action::Place { child, .. }, Outcome::NotFound) => {
                return Err(format!("node {child} or its parent was not found"));
            }
            _ => proven += usize::from(call.is_done()),
        }
    }
    for (node, Numbers { acknowledged, sent }) in &numbers {
        let found = stored.nodes.get(node).map(|(_, number)| *number);
        if !found.is_some_and(|found| (*acknowledged..=*sent).contains(&found)) {
            return Err(format!(
                "node {node} has {found:?}, with {acknowledged} acknowledged and {sent} sent"
            ));
        }
    }
    let mut found = HashMap::<&str, u32>::new();
    for (node, (title, _)) in &stored.nodes {
        if let Some(other) = found.insert(title, *node) {
            return Err(format!("{title} exists twice, as {other} and {node}"));
        }
        if !titles.contains(&**title) {
            return Err(format!("nobody made node {node}, {title}"));
        }
    }
    Ok(proven)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call(action: Action, outcome: Outcome) -> Call {
        let (began, ended) = (Duration::ZERO, Duration::ZERO);
        Call { client: 1, action, began, ended, outcome }
    }

    fn made(title: &str, outcome: Outcome) -> Call {
        call(Action::Create { title: title.to_owned() }, outcome)
    }

    fn saved(number: u64, outcome: Outcome) -> Call {
        call(Action::Save { node: 7, number }, outcome)
    }

    fn fetched(number: u64) -> Call {
        call(Action::Fetch { node: 7 }, Outcome::Done(number))
    }

    fn stored(nodes: &[(u32, &str, u64)], refs: &[(u32, u32)]) -> Stored {
        let nodes = nodes.iter().map(|(id, title, number)| (*id, ((*title).to_owned(), *number)));
        Stored { nodes: nodes.collect(), refs: refs.iter().copied().collect() }
    }

    #[test]
    fn a_complete_database_passes() {
        let calls = [
            made("a", Outcome::Done(7)),
            call(Action::Place { parent: 1, child: 7 }, Outcome::Done(0)),
            saved(1, Outcome::Done(0)),
            fetched(1),
            saved(2, Outcome::Unknown),
            made("b", Outcome::Unknown),
        ];
        assert_eq!(check_nodes(&calls, &stored(&[(7, "a", 1)], &[(1, 7)])), Ok(4));
        // Unacknowledged changes may also be present.
        check_nodes(&calls, &stored(&[(7, "a", 2), (8, "b", 0)], &[(1, 7)])).unwrap();
    }

    #[test]
    fn losses_and_repetitions_are_found() {
        let done = Outcome::Done(0);
        let place = call(Action::Place { parent: 1, child: 7 }, done);
        let one = made("a", Outcome::Done(7));
        let broken = [
            ("a lost node", vec![one.clone()], stored(&[], &[])),
            ("another node", vec![one.clone()], stored(&[(7, "x", 0)], &[])),
            (
                "a number used twice",
                vec![one.clone(), made("b", Outcome::Done(7))],
                stored(&[(7, "a", 0)], &[]),
            ),
            ("made twice", vec![one.clone()], stored(&[(7, "a", 0), (8, "a", 0)], &[])),
            ("made by nobody", vec![one.clone()], stored(&[(7, "a", 0), (8, "b", 0)], &[])),
            ("a lost reference", vec![one.clone(), place], stored(&[(7, "a", 0)], &[])),
            ("a lost save", vec![one.clone(), saved(1, done)], stored(&[(7, "a", 0)], &[])),
            ("a save that nobody sent", vec![one.clone()], stored(&[(7, "a", 1)], &[])),
            (
                "a number that goes back",
                vec![one.clone(), saved(1, done), saved(2, done), fetched(1)],
                stored(&[(7, "a", 2)], &[]),
            ),
            (
                "a node that vanishes",
                vec![one.clone(), call(Action::Fetch { node: 7 }, Outcome::NotFound)],
                stored(&[(7, "a", 0)], &[]),
            ),
        ];
        for (about, calls, stored) in broken {
            assert!(check_nodes(&calls, &stored).is_err(), "{about}");
        }
    }
}
