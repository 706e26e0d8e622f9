//! What clients did, and when: the checker's input.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To log in or resume its session, and to select its player.
    Enter,
    /// To create a node with this unique title.
    Create { title: String },
    /// To place one of its own nodes below its player.
    Place { parent: u32, child: u32 },
    /// To save a number in a node that only this client changes.
    Save { node: u32, number: u64 },
    /// To read a node that only this client changes.
    Fetch { node: u32 },
    /// To save a unique number in a node that all clients change.
    Write { register: u32, number: u64 },
    /// To read the number in a node that all clients change.
    Read { register: u32 },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call was acknowledged, with the number of the new node or the number that was read.
    Done(u64),
    /// The call was refused or never answered. It may have taken effect, or may still do so.
    Unknown,
    /// The node does not exist.
    NotFound,
}

/// A client's request. Times are relative to the start of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) action: Action,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) outcome: Outcome,
}

impl Call {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_))
    }
}

/// What a player did in an age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Talking {
    Joined {
        player: u32,
        age: usize,
        /// The number that the shard has assigned to the age.
        number: u32,
    },
    /// A text that consists of a unique number was sent to the process at this address.
    Said { speaker: u32, age: usize, number: u64, node: Ipv4Addr },
    Heard {
        listener: u32,
        speaker: u32,
        age: usize,
        number: u64,
        /// The address of the process that forwarded it.
        node: Ipv4Addr,
    },
}

/// What a player did in an age, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Talk {
    pub(crate) at: Duration,
    pub(crate) what: Talking,
}

/// All calls so far, in the order in which they ended.
#[derive(Debug)]
pub(crate) struct History {
    start: Instant,
    /// The start time on the machine's clock.
    epoch: Duration,
    calls: Mutex<Vec<Call>>,
    talks: Mutex<Vec<Talk>>,
}

impl History {
    pub(crate) fn new() -> Self {
        let (start, epoch) = (Instant::now(), clock::now());
        Self { start, epoch, calls: Mutex::default(), talks: Mutex::default() }
    }

    /// The start time on the clock that all processes share.
    pub(crate) fn epoch(&self) -> Duration {
        self.epoch
    }

    /// The time since the start, on a monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Records a call that began at this time and ends now.
    pub(crate) fn record(&self, client: usize, action: Action, began: Duration, outcome: Outcome) {
        let ended = self.now();
        let call = Call { client, action, began, ended, outcome };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Records what a player does now.
    pub(crate) fn talk(&self, what: Talking) {
        let talk = Talk { at: self.now(), what };
        self.talks.lock().unwrap_or_else(PoisonError::into_inner).push(talk);
    }

    pub(crate) fn talks(&self) -> Vec<Talk> {
        self.talks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of players who have heard something that was said after `since`.
    pub(crate) fn heard_since(&self, since: Duration) -> usize {
        let talks = self.talks.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = talks.iter().rev().take_while(|talk| talk.at > since);
        let listeners = recent.filter_map(|talk| match talk.what {
            Talking::Heard { listener, .. } => Some(listener),
            _ => None,
        });
        listeners.collect::<HashSet<_>>().len()
    }

    /// The number of these clients that have received an answer to a call that began after `since`.
    pub(crate) fn served_since(&self, since: Duration, clients: usize) -> usize {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_served = |client: &usize| {
            let recent = calls.iter().rev().take_while(|call| call.ended > since);
            { recent }.any(|call| call.client == *client && call.is_done() && call.began > since)
        };
        (0..clients).filter(is_served).count()
    }
}

/// The longest time for which a client received no answer, from `since` to `until`. `None` if it
/// never received one.
pub(crate) fn longest_silence(
    calls: &[Call],
    client: usize,
    since: Duration,
    until: Duration,
) -> Option<Duration> {
    let answers = calls.iter().filter(|call| call.client == client && call.is_done());
    longest_gap(answers.map(|call| call.ended), since, until)
}

/// The longest time for which a player heard nobody, from `since` to `until`.
pub(crate) fn longest_solitude(
    talks: &[Talk],
    player: u32,
    since: Duration,
    until: Duration,
) -> Option<Duration> {
    let is_heard = |talk: &&Talk| match talk.what {
        Talking::Heard { listener, .. } => listener == player,
        _ => false,
    };
    longest_gap(talks.iter().filter(is_heard).map(|talk| talk.at), since, until)
}

fn longest_gap(
    times: impl Iterator<Item = Duration>,
    since: Duration,
    until: Duration,
) -> Option<Duration> {
    let (mut last, mut longest) = (since, None);
    for time in times.filter(|time| *time > since && *time <= until) {
        longest = longest.max(Some(time.saturating_sub(last)));
        last = time;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(client: usize, milliseconds: u64) -> Call {
        let ended = Duration::from_millis(milliseconds);
        Call { client, action: Action::Enter, began: ended, ended, outcome: Outcome::Done(0) }
    }

    #[test]
    fn silences_are_measured_between_answers() {
        let unanswered = Call { outcome: Outcome::Unknown, ..answered(1, 900) };
        let calls = [answered(1, 100), answered(2, 500), unanswered, answered(1, 1_900)];
        let ms = Duration::from_millis;
        let of = |client, since| longest_silence(&calls, client, ms(since), ms(2_000));
        assert_eq!(of(1, 0), Some(ms(1_800)));
        assert_eq!(of(1, 1_000), Some(ms(900)));
        assert_eq!(of(2, 0), Some(ms(500)));
        assert_eq!(of(2, 600), None);
    }
}
