//! Converting several inputs, each to a separate file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::inputs::{self, Input, targets, unsafe_name};
use crate::cli::Common;
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, LastFolder, NewFolder, complain, counted, say, spent};

/// The outcome for one input.
pub(super) enum Converted {
    /// The input has no result.
    Passed,
    /// The result would be the same as before.
    Unchanged,
    /// The problems; those with an empty text have been reported.
    Failed(Vec<String>),
    /// The result and whether it is complete.
    Done(Vec<u8>, bool),
}

/// The outcome for all inputs.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) done: u64,
    pub(super) passed: u64,
    pub(super) unchanged: u64,
    /// The number of results that already existed.
    pub(super) existing: u64,
    pub(super) failed: u64,
    /// The number of bytes written.
    pub(super) bytes: u64,
}

impl Counts {
    /// Counts an outcome and reports its problems; returns the result, if there is one.
    pub(super) fn add(&mut self, input: &Input<'_>, converted: Converted) -> Option<Vec<u8>> {
        let (count, bytes) = match converted {
            Converted::Passed => (&mut self.passed, None),
            Converted::Unchanged => (&mut self.unchanged, None),
            Converted::Failed(lines) => {
                tell(input, &lines);
                (&mut self.failed, None)
            }
            Converted::Done(bytes, true) => (&mut self.done, Some(bytes)),
            Converted::Done(bytes, false) => (&mut self.failed, Some(bytes)),
        };
        *count += 1;
        self.bytes += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        bytes
    }

    /// Prints the counts. Fails if some inputs failed.
    pub(super) fn conclude(&self, verb: &str, start: Instant, quiet: bool) -> Result<(), Failure> {
        let Self { done, passed, unchanged, existing, failed, bytes } = self;
        if !quiet {
            let some = |count: u64, what: &str| match count {
                0 => String::new(),
                count => format!("{count} {what}, "),
            };
            let (unchanged, existing) =
                (some(*unchanged, "unchanged"), some(*existing, "already there"));
            let (size, time) = (counted(*bytes, "byte"), spent(start));
            say(format_args!(
                "{done} {verb}, {unchanged}{passed} skipped, {existing}{failed} failed; {size} in \
                 {time}"
            ));
        }
        if *failed == 0 { Ok(()) } else { Err(Failure::Input) }
    }
}

/// Where the results go.
pub(super) struct Batch<'b> {
    pub(super) folder: &'b Path,
    pub(super) force: bool,
    pub(super) skip_existing: bool,
    /// The names of an archive's files, in lower case. Results must not take these names.
    pub(super) taken: HashSet<String>,
    pub(super) threads: usize,
}

/// The outcome for one input.
enum Stored {
    Existing,
    Converted(Converted),
    /// The number of bytes written, and whether the result is complete.
    Written(u64, bool),
    /// No further output is possible.
    Over(Failure),
}

impl Batch<'_> {
    /// Converts inputs on all threads, which also write the files. `name` returns the names of the
    /// results; `is_wanted` states which inputs have a result. Returns the paths that were written.
    pub(super) fn run(
        &self,
        inputs: &[Input<'_>],
        common: &Common,
        name: impl Fn(&Path) -> PathBuf,
        is_wanted: impl Fn(&Input<'_>) -> bool,
        convert: impl Fn(&Input<'_>, &mut Loader<'_>) -> Converted + Sync,
    ) -> Result<(Counts, Vec<PathBuf>), Failure> {
        let targets = targets(inputs, self.folder, name, is_wanted)?;
        let items: Vec<(&Input<'_>, inputs::Target)> = inputs.iter().zip(targets).collect();
        let folder = NewFolder::new(self.folder, self.force);
        let bar = work::progress(items.len(), common);
        let is_over = AtomicBool::new(false);
        let memory = Memory::new();
        let need = || (Loader::new(&memory, Loader::OBJECT), LastFolder::default());
        let act = |(loader, last): &mut (Loader<'_>, LastFolder),
                   (input, target): &(&Input<'_>, inputs::Target)| {
            let target = match target {
                Ok(Some(target)) if !is_over.load(Ordering::Relaxed) => target,
                Ok(_) => return Stored::Converted(Converted::Passed),
                Err(fault) => return failed((*fault).to_owned()),
            };
            let stored = self.store(input, target, (&folder, last), || convert(input, loader));
            is_over.fetch_or(matches!(stored, Stored::Over(_)), Ordering::Relaxed);
            bar.inc(1);
            stored
        };
        let pool = work::pool(self.threads)?;
        let stored = work::share(&pool, &items, |(input, _)| input.size(), need, act);
        bar.finish_and_clear();
        folder.finish()?;
        let (mut counts, mut written) = (Counts::default(), Vec::new());
        for ((input, target), stored) in items.into_iter().zip(stored) {
            match stored {
                Stored::Existing => counts.existing += 1,
                Stored::Converted(converted) => drop(counts.add(input, converted)),
                Stored::Written(bytes, is_whole) => {
                    *(if is_whole { &mut counts.done } else { &mut counts.failed }) += 1;
                    counts.bytes += bytes;
                    written.extend(target.ok().flatten());
                }
                Stored::Over(failure) => return Err(failure),
            }
        }
        Ok((counts, written))
    }

    fn store(
        &self,
        input: &Input<'_>,
        target: &Path,
        (folder, last): (&NewFolder, &mut LastFolder),
        convert: impl FnOnce() -> Converted,
    ) -> Stored {
        if self.skip_existing && folder.has(target) {
            return Stored::Existing;
        }
        let (bytes, is_whole) = match convert() {
            Converted::Done(bytes, is_whole) => (bytes, is_whole),
            other => return Stored::Converted(other),
        };
        if let Some(fault) = unsafe_name(input) {
            return failed(fault);
        }
        // A result named like another file in the archive would be mistaken for that file.
        let name = target.to_string_lossy();
        if input.entry_name().is_some_and(|own| own != name)
            && self.taken.contains(&name.to_lowercase())
        {
            return failed(format!("not decoded: the archive also contains {name}"));
        }
        match folder.store(last, target, &bytes) {
            Ok(()) => Stored::Written(bytes.len() as u64, is_whole),
            Err(failure) => Stored::Over(failure),
        }
    }
}

fn failed(problem: String) -> Stored {
    Stored::Converted(Converted::Failed(vec![problem]))
}

/// Reports the problems of an input.
pub(super) fn tell(input: &Input<'_>, lines: &[String]) {
    let subject = input.subject();
    lines.iter().filter(|line| !line.is_empty()).for_each(|line| complain(&subject, line));
}
