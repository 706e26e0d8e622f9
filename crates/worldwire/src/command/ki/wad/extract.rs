//! `worldwire ki wad extract`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use worldwire_ki::file::wad::{Archive, Entry, Inflater, safe_path};
use worldwire_ki::object::MAGIC;

use crate::cli::Common;
use crate::command::ki::op::show::Show;
use crate::command::work;
use crate::input::map;
use crate::output::{Failure, WholeFile, complain, reason};

pub(super) fn run(
    path: &Path,
    patterns: &[String],
    folder: &Path,
    force: bool,
    threads: usize,
    show: Option<&Show<'_>>,
    common: &Common,
) -> Result<(), Failure> {
    let bytes = map::open(path)?;
    let archive = super::parse(path, &bytes)?;
    let chosen = super::chosen(&archive, patterns)?;
    let mut problems = 0;
    for (_, index) in archive.overlaps() {
        if let Some(entry) = archive.entries().get(index) {
            let name = shown(&entry.name_lossy());
            complain(&name, "warning: its data begins inside that of another file");
        }
    }
    let mut wanted = Vec::with_capacity(chosen.len());
    let mut seen = HashSet::with_capacity(chosen.len());
    for entry in chosen {
        match safe_path(&entry.name) {
            // Some file systems take names that differ in case for the same.
            Ok(name) if seen.insert(name.to_lowercase()) => wanted.push((entry, name)),
            Ok(name) => {
                problems += 1;
                complain(&shown(name), "refused: the archive has it twice");
            }
            Err(error) => {
                problems += 1;
                let text = error.to_string();
                complain(&path.display().to_string(), &format!("refused: {}", shown(&text)));
            }
        }
    }
    fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
    let folders: BTreeSet<&str> = wanted.iter().flat_map(|(_, name)| parents(name)).collect();
    // Parents sort before what is in them.
    let mut refused = HashSet::new();
    for name in folders {
        // What is below a link would be made where the link leads.
        if parents(name).any(|parent| refused.contains(parent)) {
            refused.insert(name);
        } else if let Err(error) = make_folder(&folder.join(name)) {
            complain(name, &reason(&error));
            refused.insert(name);
        }
    }
    wanted.retain(|(_, name)| {
        let good = !parents(name).any(|parent| refused.contains(parent));
        problems += usize::from(!good);
        good
    });
    let bar = super::progress(wanted.len(), common);
    let write = |inflater: &mut Inflater, (entry, name): &(&Entry<'_>, &str)| {
        let outcome = one(&archive, entry, &folder.join(name), force, show, inflater);
        bar.inc(1);
        outcome.err()
    };
    let size = |(entry, _): &(&Entry<'_>, &str)| u64::from(entry.size);
    let failed = work::share(&work::pool(threads)?, &wanted, size, Inflater::new, write);
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    bar.finish_and_clear();
    for text in &failed {
        complain(&path.display().to_string(), &shown(text));
    }
    if problems + failed.len() > 0 { Err(Failure::Input) } else { Ok(()) }
}

/// Writes one file.
fn one(
    archive: &Archive<'_>,
    entry: &Entry<'_>,
    path: &Path,
    force: bool,
    show: Option<&Show<'_>>,
    inflater: &mut Inflater,
) -> Result<(), String> {
    let Some(file) = archive.read(entry, inflater).map_err(|error| error.to_string())? else {
        complain(&entry.name_lossy(), "skipped: not downloaded yet");
        return Ok(());
    };
    if let Some(show) = show.filter(|_| file.starts_with(MAGIC)) {
        let subject = entry.name_lossy();
        match show.form(file, None, &subject) {
            Ok((text, _)) => return keep(&show.name(path), &text, force),
            Err(lines) => {
                // It stays as it is.
                keep(path, file, force)?;
                return Err(format!("{subject}: {}", lines.join("; ")));
            }
        }
    }
    keep(path, file, force)
}

fn keep(path: &Path, file: &[u8], force: bool) -> Result<(), String> {
    store(path, file, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{}: exists already; --force overwrites it", path.display())
        }
        _ => format!("{}: {}", path.display(), reason(&error)),
    })
}

/// Writes a file, which gets its name when it is whole. What has the name already stays until
/// then. A link there is never followed: a new file takes its place or is refused.
fn store(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut file = WholeFile::create_in(folder)?;
    file.write_all(bytes)?;
    file.keep(path, force)
}

/// Makes a folder whose parent is there. A link in its place is refused: it may lead elsewhere.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.is_dir() {
                return Ok(());
            }
            Err(io::Error::other("refused: a link or file stands where a folder is wanted"))
        }
        other => other,
    }
}

/// `a`, `a/b` for `a/b/c`.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').filter_map(|(at, _)| name.get(..at))
}

fn shown(name: &str) -> String {
    name.escape_debug().to_string()
}
