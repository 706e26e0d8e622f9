//! Writes the lines of a dissection one by one, as required by `--limit`, `--last`, `--numbers` and
//! `--time delta`.

use std::collections::VecDeque;

use worldwire_dissect::{Item, NoteKind, Time};

use super::time::delta;
use crate::cli::{TimeForm, View};
use crate::output::{Failure, Output};

/// The output for one item.
#[derive(Clone)]
pub(super) struct ShownLine {
    time: Time,
    text: String,
    /// Whether it is a problem or a gap.
    is_problem: bool,
    is_message: bool,
    /// Whether it is a heading, which has no time.
    is_heading: bool,
}

impl ShownLine {
    pub(super) fn of(item: &Item<'_>, text: String) -> Self {
        let is_gap = item.note().is_some_and(|note| note.kind == NoteKind::Gap);
        let (is_problem, is_message) = (item.is_problem() || is_gap, item.message().is_some());
        Self { time: item.stamp.time, text, is_problem, is_message, is_heading: false }
    }

    /// A line without a time.
    pub(super) fn heading(item: &Item<'_>, text: String) -> Self {
        Self { is_heading: true, ..Self::of(item, text) }
    }
}

/// The width of message numbers, and of the spaces that replace them before notes.
pub(super) const NUMBER_WIDTH: usize = 7;

/// Writes lines: all of them, or only the first or the last ones.
pub(super) struct Lines {
    output: Output,
    /// The number of further lines to write; `None` for all.
    limit: Option<u64>,
    /// The number of lines to keep until the end.
    last: Option<usize>,
    kept: VecDeque<ShownLine>,
    /// The number of messages before the next line, if lines begin with message numbers.
    messages: Option<u64>,
    /// The time of the last line, if lines begin with the time since the previous line.
    delta: Option<Option<Time>>,
    /// Whether a line that was written is a problem.
    has_problem: bool,
}

impl Lines {
    /// The lines of a view. `is_timed` states whether they begin with a time: lines of tables and
    /// JSON do not.
    pub(super) fn new(view: &View, is_timed: bool, output: Output) -> Self {
        Self {
            last: view.last.map(|last| usize::try_from(last).unwrap_or(usize::MAX)),
            messages: view.numbers.then_some(0),
            ..Self::limited(view.limit, is_timed && view.time == TimeForm::Delta, output)
        }
    }

    /// All lines, or this many. With `is_delta`, they begin with the time since the previous line.
    pub(super) fn limited(limit: Option<u64>, is_delta: bool, output: Output) -> Self {
        let (last, kept, messages) = (None, VecDeque::new(), None);
        let delta = is_delta.then_some(None);
        Self { output, limit, last, kept, messages, delta, has_problem: false }
    }

    /// Takes the lines of a batch.
    ///
    /// # Errors
    /// [`Failure::Pipe`] after the last line. This ends reading.
    pub(super) fn add(&mut self, lines: &[ShownLine]) -> Result<(), Failure> {
        if let Some(last) = self.last {
            let all = lines;
            let lines = all.get(all.len().saturating_sub(last)..).unwrap_or_default();
            let excess = (self.kept.len() + lines.len()).saturating_sub(last);
            if let Some(messages) = &mut self.messages {
                let dropped = all.iter().take(all.len() - lines.len());
                let dropped = self.kept.iter().take(excess).chain(dropped);
                *messages += dropped.filter(|line| line.is_message).count() as u64;
            }
            self.kept.drain(..excess);
            self.kept.extend(lines.iter().cloned());
            return Ok(());
        }
        for line in lines {
            self.write(line)?;
            if let Some(limit) = &mut self.limit {
                *limit -= 1;
                if *limit == 0 {
                    return Err(Failure::Pipe);
                }
            }
        }
        self.output.flush()
    }

    /// Whether the last line was written before the end of the input.
    pub(super) fn is_complete(&self) -> bool {
        self.limit == Some(0)
    }

    /// Ends the output early. The rest of the input was not read, so the lines that were written
    /// decide the exit code.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.output.finish()?;
        if self.has_problem { Err(Failure::Input) } else { Ok(()) }
    }

    /// Writes the kept lines and returns the output.
    pub(super) fn into_output(mut self) -> Result<Output, Failure> {
        for line in core::mem::take(&mut self.kept) {
            self.write(&line)?;
        }
        Ok(self.output)
    }

    fn write(&mut self, line: &ShownLine) -> Result<(), Failure> {
        if let Some(messages) = &mut self.messages {
            let number = match line.is_message {
                true => {
                    *messages += 1;
                    messages.to_string()
                }
                false => String::new(),
            };
            self.output.write(format!("{number:>NUMBER_WIDTH$}").as_bytes())?;
        }
        if let Some(last) = self.delta.as_mut().filter(|_| !line.is_heading) {
            self.output.write(delta(last.replace(line.time), line.time).as_bytes())?;
        }
        self.has_problem |= line.is_problem;
        self.output.write(line.text.as_bytes())
    }
}
