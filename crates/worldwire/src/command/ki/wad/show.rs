//! `worldwire ki wad list`, `test` and `diff`: what only looks.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_ki::file::wad::{Change, Entry, FLAGS, Inflater, Table, diff as differences};

use crate::cli::Common;
use crate::command::work;
use crate::input::map;
use crate::output::{Failure, complain, print};

pub(super) fn list(path: &Path, patterns: &[String], json: bool) -> Result<(), Failure> {
    let bytes = map::open(path)?;
    let archive = super::parse(path, &bytes)?;
    let chosen = super::chosen(&archive, patterns)?;
    let mut out = String::new();
    let (mut size, mut stored) = (0_u64, 0_u64);
    let (version, flags) = (archive.table().version, flags(archive.table()));
    if json {
        let line = json!({"version": version, "flags": flags, "files": chosen.len()});
        let _ = writeln!(out, "{line}");
    }
    for entry in &chosen {
        size += u64::from(entry.size);
        stored += u64::from(entry.stored_size());
        let name = entry.name_lossy();
        if json {
            let line = json!({
                "name": name, "size": entry.size, "stored_size": entry.stored_size(),
                "compressed": entry.is_compressed(), "crc": entry.crc, "offset": entry.offset,
            });
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(
                out,
                "{:>12} {:>12} {:>6}  {:08x}  {}",
                entry.size,
                entry.stored_size(),
                ratio(u64::from(entry.size), u64::from(entry.stored_size())),
                entry.crc,
                name.escape_debug()
            );
        }
    }
    if !json {
        let flags = if flags.is_empty() { "none".to_owned() } else { flags.join(" ") };
        let _ = writeln!(
            out,
            "{size:>12} {stored:>12} {:>6}  {} files, version {version}, flags {flags}",
            ratio(size, stored),
            chosen.len(),
        );
    }
    print(&out)
}

/// The flags by their names, and those without one as a number.
fn flags(table: &Table<'_>) -> Vec<String> {
    let (names, rest) = FLAGS.flags(u64::from(table.flags));
    let rest = Some(rest).filter(|rest| *rest != 0).map(|rest| format!("0x{rest:x}"));
    names.into_iter().map(str::to_owned).chain(rest).collect()
}

fn ratio(size: u64, stored: u64) -> String {
    match (stored.saturating_mul(1000) + size / 2).checked_div(size) {
        None => "-".to_owned(),
        Some(tenths) => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

pub(super) fn test(
    path: &Path,
    patterns: &[String],
    json: bool,
    threads: usize,
    common: &Common,
) -> Result<(), Failure> {
    let bytes = map::open(path)?;
    let archive = super::parse(path, &bytes)?;
    let chosen = super::chosen(&archive, patterns)?;
    let bar = super::progress(chosen.len(), common);
    let look = |inflater: &mut Inflater, entry: &&Entry<'_>| {
        let outcome = archive.read(entry, inflater);
        bar.inc(1);
        match outcome {
            Ok(Some(_)) => None,
            Ok(None) => {
                Some((entry.name_lossy().into_owned(), "unpatched", "not downloaded yet".into()))
            }
            Err(error) => Some((entry.name_lossy().into_owned(), "error", error.to_string())),
        }
    };
    let size = |entry: &&Entry<'_>| u64::from(entry.size);
    let found = work::share(&work::pool(threads)?, &chosen, size, Inflater::new, look);
    let found: Vec<_> = found.into_iter().flatten().collect();
    bar.finish_and_clear();
    let mut out = String::new();
    let mut errors = 0;
    let mut tell = |name: &str, kind: &str, text: &str| {
        errors += usize::from(kind != "unpatched");
        let _ = if json {
            writeln!(out, "{}", json!({"name": name, "problem": kind, "text": text}))
        } else if kind == "error" {
            writeln!(out, "{}", text.escape_debug())
        } else {
            writeln!(out, "{}: {kind}: {text}", name.escape_debug())
        };
    };
    found.iter().for_each(|(name, kind, text)| tell(name, kind, text));
    let mut seen = HashSet::with_capacity(chosen.len());
    for entry in &chosen {
        if !seen.insert(&*entry.name) {
            tell(&entry.name_lossy(), "twice", "another file before it has the same name");
        }
    }
    for (before, after) in archive.overlaps() {
        let name = |index: usize| archive.entries().get(index).map(Entry::name_lossy);
        if let (Some(before), Some(after)) = (name(before), name(after)) {
            tell(&after, "overlap", &format!("begins inside the data of {before}"));
        }
    }
    print(&out)?;
    if errors > 0 {
        complain(&path.display().to_string(), &format!("{errors} problems"));
        return Err(Failure::Input);
    }
    if !common.quiet {
        anstream::eprintln!("{} files are in order", chosen.len() - found.len());
    }
    Ok(())
}

pub(super) fn diff(before: &Path, after: &Path, json: bool) -> Result<(), Failure> {
    let (old, new) = (map::open(before)?, map::open(after)?);
    let (old, new) = (super::parse(before, &old)?, super::parse(after, &new)?);
    let mut out = String::new();
    let mut inflaters = [Inflater::new(), Inflater::new()];
    for change in differences(old.table(), new.table()) {
        let (mark, kind, entry) = match change {
            Change::Added(entry) => ('+', "added", entry),
            Change::Removed(entry) => ('-', "removed", entry),
            Change::Changed(before, entry) => {
                // The same file may be packed in another way.
                let [one, other] = &mut inflaters;
                let same = before.size == entry.size
                    && match (old.read(before, one), new.read(entry, other)) {
                        (Ok(Some(before)), Ok(Some(after))) => before == after,
                        _ => false,
                    };
                if same { ('=', "repacked", entry) } else { ('~', "changed", entry) }
            }
        };
        let name = entry.name_lossy();
        let _ = if json {
            writeln!(out, "{}", json!({"change": kind, "name": name, "size": entry.size}))
        } else {
            writeln!(out, "{mark} {}", name.escape_debug())
        };
    }
    print(&out)
}
