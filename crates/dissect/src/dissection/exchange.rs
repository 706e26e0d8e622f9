//! Passes facts between conversations, independently of batch boundaries.

use std::collections::BTreeMap;

use super::task::{Show, Task};
use super::{Batch, Dissection};
use crate::sink::Sink;

/// The maximum number of closed conversations that wait for a fact.
const MAX_LINGERING: usize = 1024;

impl Dissection {
    /// Goes through a batch a second time, in capture order. Facts take effect after the events
    /// that stated them, and tasks that stopped to wait for a fact read the rest of their events.
    ///
    /// All other tasks are done by then. So only the conversations that depend on facts are read
    /// sequentially, and only in batches with facts.
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
        self.restart_outdated(batch, tasks, show);
        // The tasks that learn new facts immediately, by conversation number.
        let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
        let idle = self.open.iter().filter(|(_, open)| open.waits());
        let idle: Vec<u64> = idle.map(|(stream, _)| *stream).collect();
        for stream in idle {
            tasks.push(Task::new(stream, self.open.remove(&stream)));
        }
        // Every event that states a fact or may have to wait for one, with its task.
        let mut events: Vec<(usize, usize)> = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            events.extend(task.facts.iter().map(|(event, _)| (*event, index)));
            if task.waits() {
                let from = task.read.saturating_sub(1);
                let rest = task.events.get(from..).unwrap_or_default();
                events.extend(rest.iter().map(|event| (*event, index)));
                if task.read == 0 {
                    waiting.insert(task.stream, index);
                }
            }
        }
        events.sort_unstable();
        events.dedup();
        let mut order = 0;
        for (event, index) in events {
            order += 1;
            let task = &mut tasks[index];
            if task.events.get(task.read) == Some(&event) {
                task.step(batch, &self.options, &self.facts, order, show);
                let closes = task.open.as_ref().is_some_and(|open| open.closing.is_some());
                self.lingering += usize::from(closes);
                if closes && self.lingering > MAX_LINGERING {
                    self.lingering -= 1;
                    task.give_up(event, &self.options, &self.facts, order, show);
                }
            } else if task.last_event() == Some(event) {
                task.learn(event, &self.options, &self.facts, order, show);
            }
            if task.last_event() == Some(event) && task.waits() && !task.closed {
                waiting.insert(task.stream, index);
            } else if task.last_event() == Some(event) {
                waiting.remove(&task.stream);
            }
            self.spread(event, index, tasks, &mut waiting, &mut order, show);
        }
        if self.is_over {
            for (_, index) in waiting {
                order += 1;
                let (event, task) = (batch.events.len(), &mut tasks[index]);
                task.give_up(event, &self.options, &self.facts, order, show);
            }
            self.lingering = 0;
        }
    }

    /// Restarts the tasks that missed a fact: those that learned only the facts of earlier batches,
    /// after an event of this batch had already stated a new one. They stop at the first event
    /// after which they wait for a fact.
    fn restart_outdated<S: Sink>(&self, batch: &Batch, tasks: &mut [Task<S>], show: &impl Show<S>) {
        let stated = tasks.iter().flat_map(|task| &task.facts);
        let new = stated.filter(|(_, fact)| self.facts.is_new(fact)).map(|(event, _)| *event);
        let Some(first) = new.min() else { return };
        for task in tasks.iter_mut() {
            if task.learned_early.is_some_and(|event| event > first) {
                task.restart();
                task.run(batch, &self.options, &self.facts, show);
            }
        }
    }

    /// Publishes the facts that a task stated at an event. Waiting tasks learn them and may state
    /// more.
    fn spread<S: Sink>(
        &mut self,
        event: usize,
        index: usize,
        tasks: &mut [Task<S>],
        waiting: &mut BTreeMap<u64, usize>,
        order: &mut u64,
        show: &impl Show<S>,
    ) {
        let mut stating = vec![index];
        while let Some(index) = stating.pop() {
            let own = &mut tasks[index].facts;
            let count = own.iter().take_while(|(at, _)| *at <= event).count();
            if count == 0 {
                continue;
            }
            own.drain(..count).for_each(|(_, fact)| self.facts.state(fact));
            waiting.retain(|_, index| {
                *order += 1;
                let task = &mut tasks[*index];
                task.learn(event, &self.options, &self.facts, *order, show);
                self.lingering -= usize::from(task.closed);
                stating.push(*index);
                task.waits() && !task.closed
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use worldwire_capture::SyntheticTcp;
    use worldwire_core::Side;
    use worldwire_core::connection::Input;

    use super::super::tests::dissect_frames;
    use super::*;
    use crate::Scratch;
    use crate::families::Families;
    use crate::family::{Family, Opening, Start, Verdict};
    use crate::item::{Item, ItemBody, Note, Stamp};
    use crate::knowledge::{Fact, Facts};
    use crate::session::Session;
    use crate::vocabulary::Vocabulary;

    /// A family whose conversations send one word each. A word that begins with `s` states a fact
    /// of that name; a conversation that sends any other word waits for any fact.
    #[derive(Debug)]
    struct Letters;

    #[derive(Debug, Default)]
    struct Letter {
        states: Vec<Fact>,
        waits: bool,
    }

    impl Family for Letters {
        fn name(&self) -> &'static str {
            "letters"
        }

        fn vocabulary(&self) -> &dyn Vocabulary {
            self
        }

        fn recognize(&self, _: &Opening<'_>) -> Verdict {
            Verdict::Yes
        }

        fn session(&self, _: &Start<'_>) -> Box<dyn Session> {
            Box::new(Letter::default())
        }
    }

    impl Vocabulary for Letters {}

    fn note(text: &str, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let body = ItemBody::Note(Note::warning(text.to_owned()));
        out(Item::new(stamp, "letters", Side::Client, 0..0, body));
    }

    impl Session for Letter {
        fn input(
            &mut self,
            stamp: Stamp,
            from: Side,
            input: Input<'_>,
            out: &mut dyn FnMut(Item<'_>),
        ) {
            match input {
                Input::Bytes(word) if word.starts_with(b"s") => {
                    let name = String::from_utf8_lossy(word).into_owned();
                    self.states.push(Fact { family: "letters", name, value: Arc::new(()) });
                }
                Input::Bytes(_) => self.waits = true,
                Input::End if self.waits && from == Side::Client => {
                    note("never learned", stamp, out)
                }
                _ => {}
            }
        }

        fn facts(&mut self) -> Vec<Fact> {
            core::mem::take(&mut self.states)
        }

        fn waits(&self) -> bool {
            self.waits
        }

        fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
            self.waits = false;
            let count = facts.all::<()>("letters").count();
            note(&format!("learned {count}"), stamp, out);
        }
    }

    /// The notes of conversations that send these words and close, one after another.
    fn notes_of(letters: &[&str], batch: usize) -> Vec<(u64, String)> {
        let fresh = AtomicUsize::new(0);
        let mut packets = Vec::new();
        for (number, letter) in (1_u16..).zip(letters) {
            let client = format!("192.0.2.1:{number}").parse().unwrap();
            let mut talk = SyntheticTcp::new(client, "192.0.2.2:9".parse().unwrap());
            packets.extend(talk.open());
            packets.extend(talk.data(Side::Client, letter.as_bytes()));
            packets.extend(talk.close());
        }
        let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<(u64, String)>| {
            if let Some(note) = item.note() {
                fresh.fetch_add(usize::from(!scratch.is_repeated), Relaxed);
                out.push((item.stamp.stream, note.text.clone()));
            }
        };
        let families = Families::new(&[&Letters]);
        let (mut out, dissection) = dissect_frames(families, &packets, batch, &show);
        assert_eq!((dissection.open.len(), dissection.lingering), (0, 0));
        assert_eq!(dissection.summary().conversations, letters.len() as u64);
        assert_eq!(fresh.into_inner(), out.len(), "in batches of {batch} packets");
        out.retain(|(_, text)| text.contains("learned"));
        out
    }

    #[test]
    fn closed_conversations_still_learn() {
        for batch in [1, 2, 5, usize::MAX] {
            let line = |stream, text: &str| (stream, text.to_owned());
            let early = notes_of(&["a", "b", "s", "c"], batch);
            let learned = [0, 1, 3].map(|stream| line(stream, "learned 1"));
            assert_eq!(early, learned, "{batch}");
            let never = notes_of(&["b", "c"], batch);
            assert_eq!(never, [0, 1].map(|stream| line(stream, "never learned")), "{batch}");
        }
        // Only the first ones are kept.
        let many = vec!["w"; MAX_LINGERING + 2];
        let never = notes_of(&many, 1000);
        assert_eq!(never.len(), many.len());
        assert_eq!(never[0].0, MAX_LINGERING as u64);
    }

    #[test]
    fn facts_apply_in_packet_order_whatever_the_batches() {
        let words = ["s1", "w", "s2", "w", "s2", "w", "s3", "s4", "w", "w"];
        let wanted = [(1, 1), (3, 2), (5, 2), (8, 4), (9, 4)];
        let wanted = wanted.map(|(stream, count)| (stream, format!("learned {count}")));
        for batch in (1..100).chain([usize::MAX]) {
            assert_eq!(notes_of(&words, batch), wanted, "in batches of {batch} packets");
        }
    }
}
