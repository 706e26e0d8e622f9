//! Reads the capture once, on a separate thread, and fills the index.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec;

use worldwire_capture::Mark;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Checkpoint, Dissection, Item, Overview, Scratch, Sink};

use crate::checkpoints::NewForks;
use crate::index::{NewRow, RowKind};
use crate::state::State;

/// The interval at which conversations that are still open are listed again.
const REFRESH: Duration = Duration::from_millis(250);

/// Reads the whole capture. Rows can be used as soon as their batch is read.
pub(crate) fn run(state: &Arc<State>) {
    let (recording, checkpoints) = (&state.recording, &state.checkpoints);
    let mut refreshed: Option<Instant> = None;
    let note = |dissection: &mut Dissection, rested: Option<(Mark, Checkpoint)>| {
        let mut changed = dissection.take_closed();
        // Conversations that wait for a fact may need one that has just been stated.
        state.learn(dissection);
        if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
            refreshed = Some(Instant::now());
            changed.extend(dissection.overviews().into_iter().cloned());
        }
        let forks = rested
            .map(|(mark, checkpoint)| checkpoints.add(mark, checkpoint, dissection, recording));
        (changed, forks)
    };
    let mut failed = None;
    let take = |found: &Found, (changed, forks): (Vec<Overview>, Option<NewForks>)| {
        if state.is_closed() {
            return ControlFlow::Break(());
        }
        let mut index = state.index_mut();
        for (row, name, text) in found.iter() {
            if let Err(error) = index.push(row, name, text) {
                failed = Some(error.to_string());
                return ControlFlow::Break(());
            }
        }
        changed.iter().for_each(|overview| index.conversations.set(overview));
        if let Some(forks) = forks {
            checkpoints.keep(forks, |stream| index.rows_of(stream));
        }
        ControlFlow::Continue(())
    };
    let is_due = |at| checkpoints.is_due(at, recording);
    let (dissection, progress) = (recording.dissection(), &state.progress);
    let stops = || state.is_closed();
    let fault = recording.read_noting(dissection, progress, Some(&stops), show, is_due, note, take);
    let fault = failed.or_else(|| fault.map(|error| error.to_string()));
    state.index_mut().complete(fault);
}

/// Adds a row for an item.
fn show(item: &Item<'_>, scratch: &mut Scratch, found: &mut Found) {
    let limits = Limits::DEFAULT;
    let start = found.text.len();
    found.text.push_str(&scratch.name);
    let name = start..found.text.len();
    let kind = match (item.note(), item.message()) {
        (Some(note), _) => {
            found.text.push_str(&note.text);
            RowKind::from(note.kind)
        }
        (None, message) => {
            let tree: Tree<'_> = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
            let before = found.text.len();
            item.push_inside(&mut found.text);
            if found.text.len() > before {
                found.text.push_str("  ");
            }
            item.push_info(&scratch.name, &tree, &mut found.text);
            scratch.tree = tree.recycle();
            match message.is_none_or(|message| message.is_message()) {
                true => RowKind::Message,
                false => RowKind::Setup,
            }
        }
    };
    let row = NewRow {
        time: item.stamp.time.0,
        since: i64::try_from(item.stamp.since.as_nanos()).unwrap_or(0),
        packet: item.stamp.packet.unwrap_or(0),
        stream: item.stamp.stream,
        from: item.from,
        family: item.family,
        kind,
        is_problem: item.is_problem(),
        length: item.bytes().len(),
    };
    found.rows.push(FoundRow { row, name: name.len(), text: found.text.len() - name.end });
}

/// The rows of a batch, with their texts in one string.
#[derive(Debug, Default)]
struct Found {
    rows: Vec<FoundRow>,
    text: String,
}

#[derive(Clone, Copy, Debug)]
struct FoundRow {
    row: NewRow,
    /// The length of its name.
    name: usize,
    /// The length of its text, which follows the name.
    text: usize,
}

impl FoundRow {
    fn length(&self) -> usize {
        self.name + self.text
    }
}

impl Found {
    /// Every row with its name and text.
    fn iter(&self) -> impl Iterator<Item = (&NewRow, &str, &str)> {
        let mut at = 0;
        self.rows.iter().map(move |found| {
            let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
            let name = at..at + found.name;
            let text = name.end..name.end + found.text;
            at = text.end;
            (&found.row, part(name), part(text))
        })
    }
}

impl Sink for Found {
    /// The rows, their texts, and the length of the texts merged so far.
    type Source = (vec::IntoIter<FoundRow>, String, usize);

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn truncate(&mut self, length: usize) {
        self.rows.truncate(length);
        // After a panic, an incomplete text may follow the text of the last row.
        let kept = self.rows.iter().map(FoundRow::length).sum();
        self.text.truncate(kept);
    }

    fn into_source(self) -> Self::Source {
        (self.rows.into_iter(), self.text, 0)
    }

    fn append(&mut self, (rows, text, merged): &mut Self::Source, count: usize) {
        for found in rows.take(count) {
            let end = *merged + found.length();
            self.text.push_str(text.get(*merged..end).unwrap_or_default());
            self.rows.push(found);
            *merged = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Side;

    use super::*;

    fn found(names: &[&str]) -> Found {
        let mut found = Found::default();
        for name in names {
            let row = NewRow {
                time: 0,
                since: 0,
                packet: 0,
                stream: 0,
                from: Side::Client,
                family: "uru",
                kind: RowKind::Message,
                is_problem: false,
                length: 0,
            };
            found.text.push_str(name);
            found.text.push_str("text");
            found.rows.push(FoundRow { row, name: name.len(), text: 4 });
        }
        found
    }

    #[test]
    fn merged_rows_keep_their_texts() {
        let mut all = found(&["a", "bb"]);
        let mut source = found(&["ccc", "d", "ee"]).into_source();
        all.append(&mut source, 1);
        all.append(&mut source, 2);
        let names: Vec<_> = all.iter().map(|(_, name, text)| (name, text)).collect();
        let wanted = ["a", "bb", "ccc", "d", "ee"].map(|name| (name, "text"));
        assert_eq!(names, wanted);
    }

    #[test]
    fn an_incomplete_text_is_dropped() {
        let mut all = found(&["a", "bb", "ccc"]);
        all.text.push_str("incomplete");
        all.truncate(2);
        assert_eq!(all.text, "atextbbtext");
        all.text.push_str("incomplete");
        all.truncate(2);
        assert_eq!((all.text.as_str(), all.len()), ("atextbbtext", 2));
    }
}
