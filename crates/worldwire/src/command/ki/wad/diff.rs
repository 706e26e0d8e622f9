//! `worldwire ki wad diff`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_core::Error;
use worldwire_ki::file::wad::{Archive, Entry, EntryPair, Inflater, pairs};

use crate::cli::{Common, KiWadReading};
use crate::command::memory::Memory;
use crate::command::work;
use crate::input::{map, title};
use crate::output::{Failure, complain, print};

/// A symbol for text output and a word for JSON.
type Kind = (char, &'static str);

const ADDED: Kind = ('+', "added");
const REMOVED: Kind = ('-', "removed");
const CHANGED: Kind = ('~', "changed");
const REPACKED: Kind = ('=', "repacked");
/// The data was added.
const PATCHED: Kind = ('>', "patched");
/// The data was removed.
const UNPATCHED: Kind = ('<', "unpatched");

/// The difference to report for a name.
#[derive(Default)]
struct Finding {
    kind: Option<Kind>,
    /// The problems in the first archive and in the second.
    problems: [Option<String>; 2],
}

/// How to list the differences.
pub(in crate::command) struct Form<'f> {
    pub(in crate::command) json: bool,
    pub(in crate::command) colour: bool,
    /// Compares changed files and appends the differences: lines of text, or the members of an open
    /// JSON object.
    pub(in crate::command) objects: Option<&'f CompareObjects<'f>>,
}

/// Compares two files with the same name.
pub(in crate::command) type CompareObjects<'f> = dyn Fn(&str, [&[u8]; 2], &mut String) + 'f;

pub(in crate::command) fn run(
    before: &Path,
    after: &Path,
    form: &Form<'_>,
    reading: &KiWadReading,
    common: &Common,
) -> Result<(), Failure> {
    if [before, after].iter().all(|path| *path == Path::new("-")) {
        return Err(Failure::Run("only one of the two archives can be standard input".to_owned()));
    }
    let limits = super::limits(reading);
    let (old, new) = (map::open(before)?, map::open(after)?);
    let old = super::parse_any(before, &old, &limits, common)?;
    let new = super::parse_any(after, &new, &limits, common)?;
    for (path, archive) in [(before, &old), (after, &new)] {
        super::check_total(path, archive, archive.entries())?;
        tell_doubles(path, archive, common);
    }
    let pairs = pairs(old.table(), new.table());
    let bar = work::progress(pairs.len(), common);
    let size = |pair: &EntryPair<'_>| {
        let sides = [pair.before, pair.after].into_iter().flatten();
        sides.map(|entry| u64::from(entry.size)).sum()
    };
    let need = || [Inflater::new(), Inflater::new()];
    let memory = Memory::new();
    let look = |inflaters: &mut [Inflater; 2], pair: &EntryPair<'_>| {
        let _share = memory.take(size(pair));
        let found = compare(&old, &new, pair, inflaters);
        inflaters.iter_mut().for_each(Inflater::release);
        bar.inc(1);
        found
    };
    let found = work::share(&work::pool(reading.threads)?, &pairs, size, need, look);
    bar.finish_and_clear();
    let mut out = String::new();
    let mut inflaters = [Inflater::new(), Inflater::new()];
    for (pair, Finding { kind, .. }) in pairs.iter().zip(&found) {
        let (Some((sign, kind)), Some(entry)) = (kind, pair.after.or(pair.before)) else {
            continue;
        };
        let name = entry.name_lossy();
        let mut inside = String::new();
        if let (Some(objects), CHANGED) = (form.objects, (*sign, *kind))
            && let (Some(first), Some(second)) = (pair.before, pair.after)
        {
            let [one, other] = &mut inflaters;
            if let (Ok(Some(one)), Ok(Some(other))) =
                (old.read(first, one), new.read(second, other))
            {
                objects(&name, [one, other], &mut inside);
            }
        }
        if form.json {
            let mut line = json!({"change": kind, "name": name, "size": entry.size}).to_string();
            line.pop();
            let _ = writeln!(out, "{line}{inside}}}");
            continue;
        }
        let (on, off) = match *sign {
            _ if !form.colour => ("", ""),
            '+' => ("\x1b[32m", "\x1b[0m"),
            '-' => ("\x1b[31m", "\x1b[0m"),
            _ => ("\x1b[33m", "\x1b[0m"),
        };
        let _ = writeln!(out, "{on}{sign} {}{off}", name.escape_debug());
        out.push_str(&inside);
    }
    print(&out)?;
    let is_other = |finding: &Finding| finding.kind.is_some_and(|kind| kind != REPACKED);
    let mut outcome = if found.iter().any(is_other) { Err(Failure::Input) } else { Ok(()) };
    for Finding { problems, .. } in &found {
        for (path, problem) in [before, after].iter().zip(problems) {
            if let Some(problem) = problem {
                complain(&title(path), problem);
                outcome = Err(Failure::Input);
            }
        }
    }
    outcome
}

fn tell_doubles(path: &Path, archive: &Archive<'_>, common: &Common) {
    let mut seen = HashSet::with_capacity(archive.entries().len());
    let mut told = HashSet::new();
    for Entry { name, .. } in archive.entries() {
        if !seen.insert(name) && told.insert(name) {
            let name = String::from_utf8_lossy(name);
            let text = format!("warning: has several files named {name}; the first one is used");
            common.note(&title(path), &text);
        }
    }
}

fn compare(
    old: &Archive<'_>,
    new: &Archive<'_>,
    pair: &EntryPair<'_>,
    inflaters: &mut [Inflater; 2],
) -> Finding {
    match (pair.before, pair.after) {
        (Some(before), Some(after)) if pair.change().is_none() => {
            let (one, other) = (old.verified(before), new.verified(after));
            let kind = match (&one, &other) {
                // Bytes can differ even if their CRCs match.
                (Ok(Some(one)), Ok(Some(other))) => Some(CHANGED).filter(|_| one != other),
                (Ok(None), Ok(Some(_))) => Some(PATCHED),
                (Ok(Some(_)), Ok(None)) => Some(UNPATCHED),
                _ => None,
            };
            Finding { kind, problems: [problem(one), problem(other)] }
        }
        (Some(before), Some(after)) => {
            let [one, other] = inflaters;
            let (one, other) = (old.read(before, one), new.read(after, other));
            let kind = match (&one, &other) {
                // The same file may be compressed differently.
                (Ok(Some(one)), Ok(Some(other))) if one == other => REPACKED,
                _ => CHANGED,
            };
            Finding { kind: Some(kind), problems: [problem(one), problem(other)] }
        }
        (Some(before), None) => {
            let problems = [problem(old.verified(before)), None];
            Finding { kind: Some(REMOVED), problems }
        }
        (None, Some(after)) => {
            let problems = [None, problem(new.verified(after))];
            Finding { kind: Some(ADDED), problems }
        }
        (None, None) => Finding::default(),
    }
}

fn problem<T>(outcome: Result<T, Error>) -> Option<String> {
    outcome.err().map(super::explained)
}
