//! `worldwire ki wad update`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use worldwire_core::Error;
use worldwire_ki::file::wad::{Archive, BuildOptions, Entry};

use super::changes::{Change, NewFiles};
use super::contents::{self, Content, Contents, keep};
use super::create::{place, write};
use crate::cli::{Common, KiWadPacking, KiWadTarget};
use crate::command::work;
use crate::input::{map, title};
use crate::output::{Failure, complain, counted, print, printable, say, spent};

/// The changes to the archive.
pub(super) struct How<'h> {
    pub(super) remove: &'h [String],
    /// Whether to give each file that shares data its own copy.
    pub(super) allow_overlaps: bool,
    /// Whether to copy files whose data does not match their CRC.
    pub(super) allow_damaged: bool,
    pub(super) packing: &'h KiWadPacking,
    pub(super) target: &'h KiWadTarget,
}

pub(super) fn run(
    path: &Path,
    from: Option<&NewFiles<'_>>,
    &How { remove, allow_overlaps, allow_damaged, packing, target }: &How<'_>,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    if from.is_none() && !packing.text.is_empty() {
        return Err(Failure::Run("--text needs --from".to_owned()));
    }
    let target = place(target)?;
    let bytes = map::open(path)?;
    let archive: Archive<'_> = super::parse_any(path, &bytes, &super::LIMITS, common)?;
    if !allow_overlaps {
        super::refuse_overlaps(path, &archive, "; --allow-overlaps gives each file its own data")?;
    }
    let unused = archive.unused();
    if unused > 0 {
        let (bytes, verb) = (counted(unused, "byte"), if unused == 1 { "is" } else { "are" });
        let text = format!("warning: {bytes} that belong to no file {verb} dropped");
        common.note(&title(path), &text);
    }
    let mut contents = Contents::new();
    let removed = keep(path, &archive, remove, &mut contents)?;
    let mut changes: Vec<(String, Change)> =
        removed.into_iter().map(|name| (name, Change::Removed)).collect();
    let kept = contents.len();
    if let Some(from) = from {
        let new = from.read(&archive, &target, packing, common)?;
        for name in new.keys() {
            let was_there = archive.entries().iter().any(|entry| *entry.name == *name.as_bytes());
            // A file that is removed and added again counts as changed.
            changes.retain(|(other, _)| other != name);
            changes.push((name.clone(), if was_there { Change::Changed } else { Change::Added }));
        }
        contents::add(new, &mut contents)?;
    }
    let damaged = damaged(&archive, &contents, packing.threads)?;
    damaged.iter().for_each(|error| complain(&title(path), &error.to_string()));
    if !damaged.is_empty() && !allow_damaged {
        let (files, them) = match damaged.len() {
            1 => ("1 file is".to_owned(), "it"),
            count => (format!("{count} files are"), "them"),
        };
        let advice = format!(
            "replace {them} with --from, remove {them} with --remove, or copy {them} unchanged with \
             --allow-damaged"
        );
        complain(&title(path), &format!("nothing was written, because {files} damaged; {advice}"));
        return Err(Failure::Input);
    }
    let (version, flags) = (archive.table().version, archive.table().flags);
    let options = BuildOptions { version, flags, level: packing.level };
    let all = contents.len();
    let size = write(&options, contents, packing, target, common)?;
    changes.sort();
    let count = |wanted| changes.iter().filter(|(_, change)| *change == wanted).count();
    let [added, changed, removed] = [Change::Added, Change::Changed, Change::Removed].map(count);
    let mut out = String::new();
    for (name, change) in &changes {
        let _ = writeln!(out, "{} {}", change.sign(), printable(name));
    }
    print(&out)?;
    if !common.quiet {
        let same = all - added - changed.min(kept);
        let (size, time) = (counted(size, "byte"), spent(start));
        say(format_args!(
            "{changed} changed, {added} added, {removed} removed, {same} unchanged; {size} in {time}"
        ));
    }
    Ok(())
}

/// Describes the problems with the data of copied entries.
fn damaged(
    archive: &Archive<'_>,
    contents: &Contents<'_>,
    threads: usize,
) -> Result<Vec<Error>, Failure> {
    let is_kept = |entry: &&Entry<'_>| matches!(contents.get(&*entry.name), Some(Content::Kept(_)));
    let kept: Vec<_> = archive.entries().iter().filter(is_kept).collect();
    let size = |entry: &&Entry<'_>| u64::from(entry.stored_size());
    let check = |(): &mut (), entry: &&Entry<'_>| archive.verified(entry).err();
    let found = work::share(&work::pool(threads)?, &kept, size, || (), check);
    Ok(found.into_iter().flatten().collect())
}
