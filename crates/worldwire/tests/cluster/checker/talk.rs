//! Checks what players say in ages: others in the same age hear it once and in order, nobody hears
//! a player in an age that the player has left, and no age is in two processes.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::history::{Talk, Talking};

/// How long others may still hear a player in an age after the player has joined another one. Ages
/// on nodes that cannot hear the leader learn of the move last.
const GRACE: Duration = Duration::from_secs(4);
/// The shortest time for which an age stays in one process.
const STAY: Duration = Duration::from_millis(900);

/// Checks all talks, in the order of their times. Returns the number of texts that were heard.
pub(crate) fn check_talks(talks: &[Talk]) -> Result<usize, String> {
    // The time and place of each text.
    let mut said = HashMap::<u64, (Duration, usize, u32)>::new();
    let mut nodes = HashMap::<u64, Ipv4Addr>::new();
    // The times and places of texts that someone heard.
    let mut places = BTreeMap::<usize, BTreeMap<Duration, Ipv4Addr>>::new();
    let mut heard = HashMap::<(u32, u32, usize), u64>::new();
    let mut moves = BTreeMap::<(u32, Duration), usize>::new();
    for talk in talks {
        match talk.what {
            Talking::Said { speaker, age, number, node } => {
                said.insert(number, (talk.at, age, speaker));
                nodes.insert(number, node);
            }
            Talking::Joined { player, age, .. } => drop(moves.insert((player, talk.at), age)),
            Talking::Heard { .. } => {}
        }
    }
    let mut count = 0;
    for talk in talks {
        let Talking::Heard { listener, speaker, age, number, .. } = talk.what else { continue };
        let about = format!("player {listener} heard {number} of {speaker} in age {age}");
        let Some((at, place, author)) = said.get(&number) else {
            return Err(format!("{about}, which nobody said"));
        };
        if (*place, *author) != (age, speaker) || *at > talk.at {
            return Err(format!("{about}, which {author} said in age {place} at {at:?}"));
        }
        let last = heard.entry((listener, speaker, age)).or_default();
        if *last >= number {
            return Err(format!("{about}, after {last}"));
        }
        *last = number;
        // Where the speaker had been for a while when saying this.
        let before = at.saturating_sub(GRACE);
        let since = moves.range((speaker, Duration::ZERO)..(speaker, before)).next_back();
        let later = moves.range((speaker, before)..(speaker, *at)).any(|(_, one)| *one == age);
        if !later && since.is_some_and(|(_, one)| *one != age) {
            return Err(format!("{about}, which was in another age: {since:?}"));
        }
        places.entry(age).or_default().insert(*at, nodes[&number]);
        count += 1;
    }
    for (age, places) in &places {
        one_place(places).map_err(|problem| format!("age {age}: {problem}"))?;
    }
    Ok(count)
}

/// Checks that an age does not move back and forth faster than processes can fail.
fn one_place(places: &BTreeMap<Duration, Ipv4Addr>) -> Result<(), String> {
    let mut last: Option<(Ipv4Addr, Option<Duration>)> = None;
    for (at, node) in places {
        let Some((known, since)) = last else {
            last = Some((*node, None));
            continue;
        };
        if known == *node {
            continue;
        }
        if since.is_some_and(|since| *at - since < STAY) {
            return Err(format!("both {known} and {node} spoke at {at:?}"));
        }
        last = Some((*node, Some(*at)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64, what: Talking) -> Talk {
        Talk { at: Duration::from_millis(milliseconds), what }
    }

    fn joined(age: usize) -> Talking {
        Talking::Joined { player: 1, age, number: 7 }
    }

    fn said(age: usize, number: u64) -> Talking {
        Talking::Said { speaker: 1, age, number, node: Ipv4Addr::LOCALHOST }
    }

    fn heard(age: usize, number: u64) -> Talking {
        let node = Ipv4Addr::LOCALHOST;
        Talking::Heard { listener: 2, speaker: 1, age, number, node }
    }

    #[test]
    fn a_conversation_passes() {
        let talks = [
            at(0, joined(1)),
            at(100, said(1, 1)),
            at(101, heard(1, 1)),
            at(200, said(1, 2)),
            at(300, said(1, 3)),
            at(301, heard(1, 3)),
            at(9_000, joined(2)),
            // The old age has not yet learnt of the move.
            at(9_500, said(1, 4)),
            at(9_501, heard(1, 4)),
            at(20_000, said(2, 5)),
            at(20_001, heard(2, 5)),
            at(30_000, joined(1)),
            at(30_001, said(1, 6)),
            at(30_002, heard(1, 6)),
        ];
        assert_eq!(check_talks(&talks), Ok(5));
    }

    #[test]
    fn repetitions_and_players_in_two_ages_are_found() {
        let broken = [
            ("nobody said it", vec![at(1, heard(1, 1))]),
            ("another age", vec![at(0, joined(1)), at(1, said(1, 1)), at(2, heard(2, 1))]),
            ("heard before", vec![at(0, joined(1)), at(3, said(1, 1)), at(2, heard(1, 1))]),
            (
                "heard twice",
                vec![at(0, joined(1)), at(1, said(1, 1)), at(2, heard(1, 1)), at(3, heard(1, 1))],
            ),
            (
                "out of order",
                vec![
                    at(0, joined(1)),
                    at(1, said(1, 1)),
                    at(2, said(1, 2)),
                    at(3, heard(1, 2)),
                    at(4, heard(1, 1)),
                ],
            ),
            (
                "in two ages",
                vec![
                    at(0, joined(1)),
                    at(1_000, joined(2)),
                    at(9_000, said(1, 1)),
                    at(9_001, heard(1, 1)),
                ],
            ),
        ];
        for (about, talks) in broken {
            assert!(check_talks(&talks).is_err(), "{about}");
        }
    }

    #[test]
    fn an_age_at_two_processes_is_found() {
        let nodes = [Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST];
        let spoken = |times: &[(u64, usize)]| {
            let talks = (1..).zip(times).flat_map(|(number, (time, node))| {
                let said = Talking::Said { speaker: 1, age: 1, number, node: nodes[*node] };
                [at(*time, said), at(*time + 1, heard(1, number))]
            });
            check_talks(&talks.collect::<Vec<_>>())
        };
        assert_eq!(spoken(&[(100, 0), (200, 0), (4_000, 1), (4_100, 1), (8_000, 0)]), Ok(5));
        let problem = spoken(&[(100, 0), (200, 1), (300, 0), (400, 1)]).unwrap_err();
        assert!(problem.contains("spoke at 300ms"), "{problem}");
    }
}
