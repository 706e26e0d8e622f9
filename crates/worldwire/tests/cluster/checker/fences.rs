//! Determines which process ran which age, and when, from the logs of all processes. An age has one
//! owner at a time, later owners have higher fences, and an owner sends nothing to clients after
//! its ownership has ended.
//!
//! All times are from the clock that the processes of a machine share. If an ownership ends while
//! its process is stopped, the process logs the time of the end when it continues. A process that
//! was killed cannot log it; its ownership ended with it at the latest.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::history::{Talk, Talking};

/// A line that the test writes to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A process is about to start.
    Started(Duration),
    /// The process has ended, at this time at the latest.
    Ended(Duration),
}

const STARTED: &str = "-- started at ";
const ENDED: &str = "-- ended at ";

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mark, time) = match self {
            Self::Started(time) => (STARTED, time),
            Self::Ended(time) => (ENDED, time),
        };
        write!(f, "{mark}{}", time.as_nanos())
    }
}

/// The period during which a process was allowed to run an age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) number: u32,
    pub(crate) fence: u64,
    /// The address of the process.
    node: Ipv4Addr,
    begin: Duration,
    end: Duration,
}

/// Checks the logs of processes at these addresses. Returns all ownerships of ages, by age and time.
pub(crate) fn check_fences(logs: &[(Ipv4Addr, String)]) -> Result<Vec<Ownership>, String> {
    let mut found = Vec::new();
    for (node, log) in logs {
        found.extend(ownerships(*node, log).map_err(|problem| format!("{node}: {problem}"))?);
    }
    found.sort_by_key(|one| (one.number, one.begin, one.fence));
    for pair in found.windows(2) {
        let [one, next] = pair else { continue };
        if one.number != next.number {
            continue;
        }
        if next.fence <= one.fence {
            return Err(format!("the fence does not grow: {one:?}, {next:?}"));
        }
        if next.begin < one.end {
            return Err(format!("two owners: {one:?}, {next:?}"));
        }
    }
    Ok(found)
}

/// Checks that every text that players heard was forwarded by an owner of the age. `epoch` is the
/// time at which the talks started. Returns the number of texts heard from owners.
pub(crate) fn check_speakers(
    talks: &[Talk],
    owners: &[Ownership],
    epoch: Duration,
) -> Result<usize, String> {
    let (mut numbers, mut said) = (BTreeMap::new(), BTreeMap::new());
    for talk in talks {
        match talk.what {
            Talking::Joined { age, number, .. } => {
                if numbers.insert(age, number).is_some_and(|known| known != number) {
                    return Err(format!("age {age} has several numbers, {number} is one"));
                }
            }
            Talking::Said { number, .. } => drop(said.insert(number, epoch + talk.at)),
            Talking::Heard { .. } => {}
        }
    }
    let mut of_node = BTreeMap::<(u32, Ipv4Addr), Vec<&Ownership>>::new();
    for owner in owners {
        of_node.entry((owner.number, owner.node)).or_default().push(owner);
    }
    let nodes: Vec<_> = of_node.keys().map(|(_, node)| *node).collect();
    let mut count = 0;
    for talk in talks {
        let Talking::Heard { age, number: text, node, .. } = talk.what else { continue };
        // An age that the leader runs belongs to the leader.
        if !nodes.contains(&node) {
            continue;
        }
        let (Some(number), Some(said)) = (numbers.get(&age), said.get(&text)) else {
            return Err(format!("{talk:?} in an age that nobody joined, or said by nobody"));
        };
        let heard = epoch + talk.at;
        let owned = of_node.get(&(*number, node)).into_iter().flatten();
        if !{ owned }.any(|owner| owner.begin <= heard && owner.end >= *said) {
            return Err(format!(
                "{node} passed on {text}, said at {said:?} and heard at {heard:?}, while it did not \
                 own age {number}"
            ));
        }
        count += 1;
    }
    Ok(count)
}

/// An ownership in a log.
#[derive(Default)]
struct Entry {
    begin: Option<Duration>,
    end: Option<Duration>,
    last_word: Duration,
}

/// The ownerships of the processes that wrote a log, one after the other.
fn ownerships(node: Ipv4Addr, log: &str) -> Result<Vec<Ownership>, String> {
    let mut found = Vec::new();
    let mut entries = BTreeMap::<(u32, u64), Entry>::new();
    for line in log.lines() {
        if line.starts_with(STARTED) {
            if !entries.is_empty() {
                return Err(format!("a process has started before the last one has ended: {line}"));
            }
        } else if let Some(time) = line.strip_prefix(ENDED) {
            let time = nanoseconds(time).ok_or_else(|| format!("not a time: {line}"))?;
            for ((number, fence), entry) in std::mem::take(&mut entries) {
                let about = format!("age {number}, fence {fence}");
                let (begin, end) = (entry.begin, entry.end.unwrap_or(time));
                if entry.last_word > end {
                    let late = entry.last_word - end;
                    return Err(format!("{about}: said something {late:?} after its end"));
                }
                // If the end precedes the beginning, or there is no beginning, the age never ran.
                if let Some(begin) = begin.filter(|begin| *begin <= end) {
                    found.push(Ownership { number, fence, node, begin, end });
                }
            }
        } else if let Some((_, text)) = line.split_once("uru::cluster::tenure: ") {
            let (event, number, fence, at) =
                parse(text).ok_or_else(|| format!("cannot be read: {line}"))?;
            let entry = entries.entry((number, fence)).or_default();
            match event {
                Event::Owns if entry.end.is_some() => {
                    return Err(format!("an ownership begins after its end: {line}"));
                }
                Event::Owns => entry.begin = Some(entry.begin.unwrap_or(at)),
                Event::Over => entry.end = Some(entry.end.unwrap_or(at).min(at)),
                Event::Said => entry.last_word = entry.last_word.max(at),
            }
        }
    }
    match entries.is_empty() {
        true => Ok(found),
        false => Err("the last process has not ended".to_owned()),
    }
}

enum Event {
    Owns,
    Over,
    Said,
}

/// Reads a line such as `owns number=7 fence=9 at=123`.
fn parse(text: &str) -> Option<(Event, u32, u64, Duration)> {
    let (event, fields) = text.split_once(' ')?;
    let event = match event {
        "owns" => Event::Owns,
        "over" => Event::Over,
        "said" => Event::Said,
        _ => return None,
    };
    let field = |name: &str| {
        let mut fields = fields.split(' ').filter_map(|field| field.split_once('='));
        fields.find(|(of, _)| *of == name).map(|(_, value)| value)
    };
    let (number, fence) = (field("number")?.parse().ok()?, field("fence")?.parse().ok()?);
    Some((event, number, fence, nanoseconds(field("at")?)?))
}

fn nanoseconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 6), Ipv4Addr::new(127, 0, 0, 7)];

    fn line(text: &str) -> String {
        format!(
            "2026-01-02T03:04:05.000006Z DEBUG worldwire_server::uru::cluster::tenure: {text}\n"
        )
    }

    fn owns(fence: u64, at: u64) -> String {
        line(&format!("owns number=7 fence={fence} at={at}"))
    }

    fn over(fence: u64, at: u64) -> String {
        line(&format!("over number=7 fence={fence} at={at} late=1.5ms"))
    }

    fn said(fence: u64, at: u64) -> String {
        line(&format!("said number=7 fence={fence} at={at} player=9"))
    }

    fn started(at: u64) -> String {
        format!("{}\n", Mark::Started(Duration::from_nanos(at)))
    }

    fn ended(at: u64) -> String {
        format!("{}\n", Mark::Ended(Duration::from_nanos(at)))
    }

    /// The logs of two processes.
    fn check(one: &[String], other: &[String]) -> Result<Vec<(u64, u64)>, String> {
        let logs = [(NODES[0], one.concat()), (NODES[1], other.concat())];
        let found = check_fences(&logs)?;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
        Ok(found.iter().map(|one| (nanos(one.begin), nanos(one.end))).collect())
    }

    #[test]
    fn ages_that_move_pass() {
        // The age moves away and comes back.
        let one = [
            started(1),
            "2026-01-02T03:04:05.000006Z  INFO another line\n".to_owned(),
            owns(1, 10),
            said(1, 19),
            over(1, 20),
            owns(5, 40),
            // The age restarts under the same fence.
            owns(5, 45),
            over(5, 50),
            ended(60),
        ];
        let other = [started(1), owns(3, 20), said(3, 25), over(3, 30), ended(60)];
        assert_eq!(check(&one, &other), Ok(vec![(10, 20), (20, 30), (40, 50)]));
    }

    #[test]
    fn killed_and_stopped_processes_pass() {
        // One process is killed and started again.
        let one = [started(1), owns(1, 10), ended(20), started(25), owns(4, 60), ended(70)];
        // The other one was stopped from 30 to 65. Then it notices that its ownership ended at 40.
        let other = [started(1), owns(2, 21), said(2, 29), over(2, 40), ended(70)];
        assert_eq!(check(&one, &other), Ok(vec![(10, 20), (21, 40), (60, 70)]));
        // An age whose ownership ended before it began, and one whose ownership never began.
        let one = [started(1), owns(1, 10), over(1, 5), over(2, 11), ended(20)];
        assert_eq!(check(&one, &[]), Ok(vec![]));
    }

    #[test]
    fn broken_promises_are_found() {
        let node = |lines: &[String]| [&[started(1)], lines, &[ended(100)]].concat();
        let broken = [
            ("two owners", vec![owns(1, 10), over(1, 30)], vec![owns(2, 29), over(2, 40)]),
            (
                "an owner inside the time of another one",
                vec![owns(1, 10), over(1, 50)],
                vec![owns(2, 20), over(2, 30)],
            ),
            ("an owner that does not end", vec![owns(1, 10)], vec![owns(2, 50), over(2, 60)]),
            ("two owners at once", vec![owns(1, 10)], vec![owns(2, 10)]),
            ("an older fence", vec![owns(2, 10), over(2, 20)], vec![owns(1, 30), over(1, 40)]),
            ("one fence for two", vec![owns(1, 10), over(1, 20)], vec![owns(1, 30), over(1, 40)]),
            ("a last word after the end", vec![owns(1, 10), over(1, 20), said(1, 21)], vec![]),
            ("a last word of an age that never ran", vec![over(1, 20), said(1, 21)], vec![]),
            ("an owner again", vec![owns(1, 10), over(1, 20), owns(1, 30)], vec![]),
            ("no time", vec![line("owns number=7 fence=1")], vec![]),
            ("no event", vec![line("own number=7 fence=1 at=1")], vec![]),
        ];
        for (about, one, other) in broken {
            assert!(check(&node(&one), &node(&other)).is_err(), "{about}");
        }
        assert!(check(&[started(1), owns(1, 10)], &[]).is_err(), "no end");
        let twice = [started(1), owns(1, 10), started(20), ended(30)];
        assert!(check(&twice, &[]).is_err(), "two processes at once");
    }

    fn talks(said: u64, heard: u64, node: Ipv4Addr) -> Vec<Talk> {
        let at = |nanos, what| Talk { at: Duration::from_nanos(nanos), what };
        vec![
            at(0, Talking::Joined { player: 1, age: 0, number: 7 }),
            at(said, Talking::Said { speaker: 1, age: 0, number: 1, node }),
            at(heard, Talking::Heard { listener: 2, speaker: 1, age: 0, number: 1, node }),
        ]
    }

    #[test]
    fn texts_that_others_pass_on_are_found() {
        let logs = [
            (NODES[0], [started(1), owns(1, 110), over(1, 120), ended(190)].concat()),
            (NODES[1], [started(1), owns(2, 140), over(2, 150), ended(190)].concat()),
        ];
        let owners = check_fences(&logs).unwrap();
        let check = |said, heard, node| {
            check_speakers(&talks(said, heard, node), &owners, Duration::from_nanos(100))
        };
        // The text was in transit when the ownership began or ended.
        for (said, heard) in [(11, 12), (5, 11), (19, 30), (20, 20)] {
            assert_eq!(check(said, heard, NODES[0]), Ok(1), "{said} {heard}");
        }
        for (said, heard) in [(21, 60), (5, 9), (45, 46)] {
            assert!(check(said, heard, NODES[0]).is_err(), "{said} {heard}");
        }
        // The leader's own ages have no fences.
        assert_eq!(check(21, 60, Ipv4Addr::LOCALHOST), Ok(0));
    }
}
