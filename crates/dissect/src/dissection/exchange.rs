//! How conversations of a capture learn from each other, whatever the batches are.

use std::collections::BTreeMap;

use super::task::{Show, Task};
use super::{Batch, Dissection};
use crate::sink::Sink;

/// How many conversations may wait for a fact behind their end.
const MOST_LINGERING: usize = 1024;

impl Dissection {
    /// Goes through a batch once more, in capture order: facts become known behind the events that
    /// stated them, and the tasks that stopped because they wait read the rest of their events.
    ///
    /// All other tasks are done. So only what depends on facts is read one after the other, and
    /// only in the batch in which the facts are stated.
    pub(super) fn exchange<S: Sink>(
        &mut self,
        batch: &Batch,
        tasks: &mut Vec<Task<S>>,
        show: &impl Show<S>,
    ) {
        let concerns = |task: &Task<S>| task.waits() || !task.facts.is_empty();
        let is_last = self.is_over && self.lingering > 0;
        if !is_last && !tasks.iter().any(concerns) {
            return;
        }
        // Who learns at once: tasks by the numbers of their conversations.
        let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
        let idle = self.open.iter().filter(|(_, open)| open.waits());
        let idle: Vec<u64> = idle.map(|(stream, _)| *stream).collect();
        for stream in idle {
            tasks.push(Task::new(stream, self.open.remove(&stream)));
        }
        // Every event at which something is stated or may be waited for, with its task.
        let mut moments: Vec<(usize, usize)> = Vec::new();
        for (place, task) in tasks.iter().enumerate() {
            moments.extend(task.facts.iter().map(|(event, _)| (*event, place)));
            if task.waits() {
                let from = task.read.saturating_sub(1);
                let rest = task.events.get(from..).unwrap_or_default();
                moments.extend(rest.iter().map(|event| (*event, place)));
                if task.read == 0 {
                    waiting.insert(task.stream, place);
                }
            }
        }
        moments.sort_unstable();
        moments.dedup();
        let mut order = 0;
        for (event, place) in moments {
            order += 1;
            let task = &mut tasks[place];
            if task.events.get(task.read) == Some(&event) {
                task.step(batch, &self.options, &self.facts, order, show);
                let closes = task.open.as_ref().is_some_and(|open| open.closing.is_some());
                self.lingering += usize::from(closes);
                if closes && self.lingering > MOST_LINGERING {
                    self.lingering -= 1;
                    task.give_up(event, &self.options, &self.facts, order, show);
                }
            } else if task.last_event() == Some(event) {
                task.learn(event, &self.options, &self.facts, order, show);
            }
            if task.last_event() == Some(event) && task.waits() {
                waiting.insert(task.stream, place);
            } else if task.last_event() == Some(event) {
                waiting.remove(&task.stream);
            }
            self.spread(event, place, tasks, &mut waiting, &mut order, show);
        }
        if self.is_over {
            for (_, place) in waiting {
                order += 1;
                let (event, task) = (batch.events.len(), &mut tasks[place]);
                task.give_up(event, &self.options, &self.facts, order, show);
            }
            self.lingering = 0;
        }
    }

    /// Makes known what a task stated at an event, to all that wait; those may state more.
    fn spread<S: Sink>(
        &mut self,
        event: usize,
        place: usize,
        tasks: &mut [Task<S>],
        waiting: &mut BTreeMap<u64, usize>,
        order: &mut u64,
        show: &impl Show<S>,
    ) {
        let mut stating = vec![place];
        while let Some(place) = stating.pop() {
            let own = &mut tasks[place].facts;
            let count = own.iter().take_while(|(at, _)| *at <= event).count();
            if count == 0 {
                continue;
            }
            own.drain(..count).for_each(|(_, fact)| self.facts.state(fact));
            waiting.retain(|_, place| {
                *order += 1;
                let task = &mut tasks[*place];
                task.learn(event, &self.options, &self.facts, *order, show);
                self.lingering -= usize::from(task.closed);
                stating.push(*place);
                task.waits() && !task.closed
            });
        }
    }
}
