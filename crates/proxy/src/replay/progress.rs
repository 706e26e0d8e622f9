//! A replay's progress through its script.

use std::collections::{HashMap, VecDeque};

use worldwire_core::Side;

use super::script::Step;

/// When the replay sends its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As soon as everything recorded before them has happened.
    #[default]
    Fast,
    /// At least the recorded interval after the previous message.
    Recorded,
}

/// The next thing to happen; the numbers are indices of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A message to send.
    Send(usize),
    /// A message from the peer.
    Expect(usize),
    /// Nothing.
    Done,
}

/// The steps of a script, and which of them are done.
#[derive(Debug)]
pub(super) struct Progress {
    own: Side,
    steps: Vec<Step>,
    done: Vec<bool>,
    /// All steps before it are done.
    cursor: usize,
    /// Skipped messages from the peer that the replay can learn from, by name.
    learnable: HashMap<String, VecDeque<usize>>,
}

/// The maximum number of the peer's messages that can overtake another.
const MAX_OVERTAKING: usize = 256;
/// The maximum number of recorded messages examined to find those that can be overtaken.
const MAX_EXAMINED: usize = 4_096;

/// What to do with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Play,
    Skip,
    /// The step is skipped, but a live message with the same name is compared with it.
    Learn,
}

impl Progress {
    /// Starts before the first step. Also returns the number of skipped steps.
    pub(super) fn new(
        own: Side,
        steps: Vec<Step>,
        treat: impl Fn(&Step) -> Treatment,
    ) -> (Self, u64) {
        let treatments: Vec<Treatment> = steps.iter().map(treat).collect();
        let mut learnable: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            if treatments.get(index) == Some(&Treatment::Learn) {
                learnable.entry(step.name.clone()).or_default().push_back(index);
            }
        }
        let done: Vec<bool> = treatments.iter().map(|it| *it != Treatment::Play).collect();
        let skipped = done.iter().filter(|done| **done).count() as u64;
        (Self { own, steps, done, cursor: 0, learnable }, skipped)
    }

    pub(super) fn next(&mut self) -> Next {
        while self.done.get(self.cursor) == Some(&true) {
            self.cursor += 1;
        }
        match self.steps.get(self.cursor) {
            None => Next::Done,
            Some(step) if step.from == self.own => Next::Send(self.cursor),
            Some(_) => Next::Expect(self.cursor),
        }
    }

    /// The first few expected messages from the peer, up to the next one to send.
    pub(super) fn expected(&self) -> impl Iterator<Item = (usize, &Step)> {
        let rest = self.steps.iter().enumerate().skip(self.cursor).take(MAX_EXAMINED);
        let open = rest.filter(|(index, _)| self.done.get(*index) == Some(&false));
        open.take_while(|(_, step)| step.from != self.own).take(MAX_OVERTAKING)
    }

    pub(super) fn mark(&mut self, index: usize) {
        if let Some(done) = self.done.get_mut(index) {
            *done = true;
        }
    }

    /// The skipped message with which a live one of this name can be compared. Each is returned
    /// once.
    pub(super) fn learnable(&mut self, name: &str) -> Option<&Step> {
        let index = self.learnable.get_mut(name)?.pop_front()?;
        self.steps.get(index)
    }

    pub(super) fn step(&self, index: usize) -> Option<&Step> {
        self.steps.get(index)
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// `c` and `s` are messages of client and server, `-` is skipped, `+` is learnt from.
    fn progress(script: &str) -> Progress {
        let steps = script.split(' ').zip(1..).map(|(word, number)| Step {
            number,
            since: Duration::ZERO,
            packet: None,
            from: if word.starts_with('c') { Side::Client } else { Side::Server },
            name: word.to_owned(),
            body: Vec::new(),
            is_ignored: false,
            kept: None,
        });
        let treat = |step: &Step| match step.name.chars().last() {
            Some('-') => Treatment::Skip,
            Some('+') => Treatment::Learn,
            _ => Treatment::Play,
        };
        Progress::new(Side::Client, steps.collect(), treat).0
    }

    #[test]
    fn own_messages_wait_for_everything_before_them() {
        let mut progress = progress("c s- s1 s2 c s3");
        assert_eq!(progress.next(), Next::Send(0));
        progress.mark(0);
        assert_eq!(progress.next(), Next::Expect(2));
        let expected: Vec<&str> = progress.expected().map(|(_, step)| &*step.name).collect();
        assert_eq!(expected, ["s1", "s2"]);
        progress.mark(3);
        assert_eq!(progress.next(), Next::Expect(2));
        progress.mark(2);
        assert_eq!(progress.next(), Next::Send(4));
        assert_eq!(progress.expected().count(), 0);
        progress.mark(4);
        assert_eq!(progress.next(), Next::Expect(5));
        progress.mark(5);
        assert_eq!(progress.next(), Next::Done);
    }

    #[test]
    fn skipped_messages_are_learnt_from_once() {
        let mut progress = progress("s+ s+ c");
        assert_eq!(progress.next(), Next::Send(2));
        let number = |step: Option<&Step>| step.map(|step| step.number);
        assert_eq!(number(progress.learnable("s+")), Some(1));
        assert_eq!(number(progress.learnable("s+")), Some(2));
        assert_eq!(number(progress.learnable("s+")), None);
        assert_eq!(number(progress.learnable("s")), None);
    }
}
