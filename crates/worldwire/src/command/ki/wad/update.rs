//! `worldwire ki wad update`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use worldwire_ki::file::wad::{Archive, BuildOptions};

use super::changes::{self, Change};
use super::contents::{self, Contents, keep};
use super::create::{place, write};
use crate::cli::{Common, KiStream, KiWadPacking, KiWadTarget};
use crate::command::ki::op::encoder::Encoder;
use crate::command::ki::op::stream::Choices;
use crate::command::work;
use crate::input::{map, title};
use crate::output::{Failure, counted, print, printable, say, spent};

/// The source of changed files, and the settings for encoding objects.
pub(super) struct ChangedFiles<'f> {
    pub(super) folder: &'f Path,
    pub(super) types: &'f [PathBuf],
    pub(super) hints: &'f [PathBuf],
}

/// The changes to the archive.
pub(super) struct How<'h> {
    pub(super) remove: &'h [String],
    /// Give files that share data a copy each.
    pub(super) allow_overlaps: bool,
    pub(super) packing: &'h KiWadPacking,
    pub(super) target: &'h KiWadTarget,
}

pub(super) fn run(
    path: &Path,
    from: Option<&ChangedFiles<'_>>,
    &How { remove, allow_overlaps, packing, target }: &How<'_>,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    let target = place(target)?;
    let bytes = map::open(path)?;
    let archive: Archive<'_> = super::parse(path, &bytes, &super::LIMITS)?;
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
        let files = contents::files(from.folder, &target, packing.portable, common)?;
        let stream = KiStream { hints: from.hints.to_vec(), ..KiStream::default() };
        let choices = Choices::new(&stream)?;
        let classes = super::classes(from.types, common)?;
        let encoder = Encoder::new(classes.as_deref(), &choices, false, false);
        let pool = work::pool(packing.threads)?;
        let new = changes::new(&archive, files, &encoder, &pool, common)?;
        for name in new.keys() {
            let was_there = archive.entries().iter().any(|entry| *entry.name == *name.as_bytes());
            // A file that is removed and added again counts as changed.
            changes.retain(|(other, _)| other != name);
            changes.push((name.clone(), if was_there { Change::Changed } else { Change::Added }));
        }
        contents::add(new, &mut contents)?;
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
