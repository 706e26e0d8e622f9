//! Merges the output of a batch's conversations into capture order.

use std::collections::VecDeque;

use super::task::Part;
use crate::sink::Sink;

/// The output of a batch's tasks.
///
/// Nearly every event produces output only in its own conversation, so its task is known and
/// nothing is sorted. If a conversation learns a fact at another conversation's event, its output
/// follows that event's.
pub(super) struct Merge<S: Sink> {
    outputs: Vec<Output<S>>,
    /// Parts that are not the first of their event, with their tasks.
    later: Vec<(Part, usize)>,
}

/// The remaining output of a task.
struct Output<S: Sink> {
    source: S::Source,
    /// Each part, with the sink's length at its end.
    parts: VecDeque<(Part, usize)>,
    /// The length merged so far.
    taken: usize,
}

impl<S: Sink> Default for Merge<S> {
    fn default() -> Self {
        Self { outputs: Vec::new(), later: Vec::new() }
    }
}

impl<S: Sink> Merge<S> {
    /// Adds the output of the next task. Its parts are in order.
    pub(super) fn add(&mut self, sink: S, parts: Vec<(Part, usize)>) {
        let task = self.outputs.len();
        let later = parts.iter().filter(|((_, order), _)| *order > 0);
        self.later.extend(later.map(|(part, _)| (*part, task)));
        self.outputs.push(Output { source: sink.into_source(), parts: parts.into(), taken: 0 });
    }

    /// Appends everything to `out`. `owners` maps each event to the task of its conversation.
    pub(super) fn finish(mut self, owners: &[usize], out: &mut S) {
        self.later.sort_unstable();
        let mut later = self.later.into_iter().peekable();
        for (event, owner) in owners.iter().enumerate() {
            self.outputs[*owner].append((event, 0), out);
            while let Some((part, task)) = later.next_if(|((at, _), _)| *at == event) {
                self.outputs[task].append(part, out);
            }
        }
        for (part, task) in later {
            self.outputs[task].append(part, out);
        }
    }
}

impl<S: Sink> Output<S> {
    /// Appends the output up to this part.
    fn append(&mut self, part: Part, out: &mut S) {
        while let Some((next, end)) = self.parts.front().copied()
            && next <= part
        {
            self.parts.pop_front();
            out.append(&mut self.source, end - self.taken);
            self.taken = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learned_output_follows_the_event() {
        let mut merge = Merge::default();
        let owners = [0, 1, 0, 1];
        // The second task learns at an event of the first and then has more output for its own
        // event.
        merge.add(vec!["a0", "a2"], vec![((0, 0), 1), ((2, 0), 2)]);
        let parts = vec![((1, 0), 1), ((1, 0), 2), ((2, 7), 3), ((3, 0), 4), ((4, 9), 5)];
        merge.add(vec!["b1", "b1 more", "b2", "b3", "b end"], parts);
        // The third task has no event in the batch.
        merge.add(vec!["c2", "c end"], vec![((2, 3), 1), ((4, 8), 2)]);
        let mut out = vec!["before"];
        merge.finish(&owners, &mut out);
        let order = ["before", "a0", "b1", "b1 more", "a2", "c2", "b2", "b3", "c end", "b end"];
        assert_eq!(out, order);
    }
}
