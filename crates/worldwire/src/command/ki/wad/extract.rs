//! `worldwire ki wad extract`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use worldwire_ki::file::wad::{Archive, Entry};
use worldwire_ki::object::MAGIC;

use super::Wad;
use super::names::{self, PathCheck, judge, parents};
use crate::cli::{Common, KiWadReading};
use crate::command::ki::loader::Loader;
use crate::command::ki::op::show::Show;
use crate::command::memory::Memory;
use crate::command::work;
use crate::input::title;
use crate::output::{
    Failure, LastFolder, Stages, Taken, complain, counted, occupied, printable, reason, say, shown,
    spent,
};

/// The maximum number of files reported for name conflicts.
const MAX_OCCUPIED: usize = 10;

/// Options for writing files.
pub(super) struct How<'h> {
    pub(super) folder: &'h Path,
    pub(super) force: bool,
    /// Whether to skip files that already exist.
    pub(super) skip_existing: bool,
    pub(super) allow_overlaps: bool,
    /// Whether to refuse names that only Windows forbids.
    pub(super) portable: bool,
    /// How to decode game objects, if requested.
    pub(super) show: Option<&'h Show<'h>>,
}

/// Why a file was not written.
enum Fault {
    /// The file cannot be written, because of the archive or because of a conflicting name.
    File(String),
    /// A file with this name already exists.
    Exists(String),
    /// The system does not allow the file's name.
    Name(String),
    /// No file can be written: the disk is full, or the directory is read-only.
    Output(String),
}

enum Outcome {
    /// This many bytes were written, whether the object was decoded or not.
    Written {
        bytes: usize,
        is_decoded: bool,
    },
    /// The file already existed.
    Existing,
    Unpatched,
    /// The file was not attempted, because an earlier one failed.
    Left,
    Failed(Fault),
}

/// The result of an extraction.
#[derive(Default)]
struct Counts {
    files: u64,
    decoded: u64,
    existing: u64,
    unpatched: u64,
    bytes: u64,
    problems: usize,
    /// The number of problems that are name conflicts.
    occupied: usize,
}

pub(super) fn run(
    archives: &[Wad<'_>],
    chosen: &[Vec<&Entry<'_>>],
    how: &How<'_>,
    reading: &KiWadReading,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    for (Wad { path, archive }, chosen) in archives.iter().zip(chosen) {
        let overlaps = super::overlaps(archive, chosen);
        if let Some((entry, text)) = overlaps.first().filter(|_| !how.allow_overlaps) {
            let more = match overlaps.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let name = entry.name_lossy();
            let text = format!("refused: {name}: {text}{more}; --allow-overlaps extracts it");
            complain(&title(path), &text);
            return Err(Failure::Input);
        }
        super::check_total(path, archive, chosen.iter().copied())?;
    }
    let mut counts = Counts::default();
    let stages = Stages::new(match how {
        How { skip_existing: true, .. } => Taken::Skip,
        How { force: true, .. } => Taken::Replace,
        How { .. } => Taken::Refuse,
    });
    for (wad, chosen) in archives.iter().zip(chosen) {
        one(wad, chosen, (how, &stages), reading, common, &mut counts)?;
    }
    stages.finish()?;
    let Counts { files, decoded, existing, unpatched, bytes, problems, occupied } = counts;
    if occupied > MAX_OCCUPIED {
        let more = counted(occupied - MAX_OCCUPIED, "more file");
        let text = format!("{more} already there");
        complain(&shown(how.folder), &text);
    }
    if !common.quiet {
        let mut parts = vec![format!("{} extracted", counted(files, "file"))];
        let more = [
            (decoded, "decoded"),
            (existing, "already there"),
            (unpatched, "not downloaded yet"),
            (problems as u64, "failed"),
        ];
        let more = more.into_iter().filter(|(count, _)| *count > 0);
        parts.extend(more.map(|(count, what)| format!("{count} {what}")));
        let (parts, size) = (parts.join(", "), counted(bytes, "byte"));
        say(format_args!("{parts}; {size} in {}", spent(start)));
    }
    match problems {
        0 => Ok(()),
        // The exit code is the same as for a single existing file.
        _ if problems == occupied && files + existing == 0 => {
            let folder = shown(how.folder);
            Err(Failure::Run(format!("{folder}: nothing was extracted: all files already exist")))
        }
        _ => Err(Failure::Input),
    }
}

/// Extracts one archive.
fn one(
    Wad { path, archive }: &Wad<'_>,
    chosen: &[&Entry<'_>],
    (how, stages): (&How<'_>, &Stages),
    reading: &KiWadReading,
    common: &Common,
    counts: &mut Counts,
) -> Result<(), Failure> {
    for (entry, text) in super::overlaps(archive, chosen) {
        common.note(&entry.name_lossy(), &format!("warning: {text}"));
    }
    let title = title(path);
    let mut wanted = Vec::with_capacity(chosen.len());
    let mut check = PathCheck::new(how.portable);
    for (entry, judged) in chosen.iter().zip(judge(chosen, check.rules())) {
        match judged {
            Ok(path) => {
                check.note_windows_error(path, common);
                wanted.push((*entry, path.as_str()));
            }
            Err(fault) => {
                counts.problems += 1;
                complain(&title, &format!("refused: {}: {fault}", entry.name_lossy()));
            }
        }
    }
    check.finish(&title, common);
    make_home(stages, how.folder)?;
    let refused = make_folders(stages, how.folder, &wanted)?;
    wanted.retain(|(_, name)| {
        let good = !parents(name).any(|parent| refused.contains(parent));
        counts.problems += usize::from(!good);
        good
    });
    let work = Work {
        archive,
        how,
        stages,
        taken: match how.show {
            None => HashSet::new(),
            Some(_) => names::taken(archive.entries().iter().filter_map(names::path)),
        },
        is_over: AtomicBool::new(false),
    };
    let bar = work::progress(wanted.len(), common);
    let memory = Memory::new();
    let times = if how.show.is_some() { Loader::OBJECT } else { 1 };
    let need = || (Loader::new(&memory, times), LastFolder::default());
    let write = |(loader, last): &mut (Loader<'_>, LastFolder),
                 (entry, name): &(&Entry<'_>, &str)| {
        let outcome = work.one(entry, name, loader, last);
        bar.inc(1);
        outcome
    };
    let size = |(entry, _): &(&Entry<'_>, &str)| u64::from(entry.size);
    let pool = work::pool(reading.threads)?;
    let outcomes = work::share(&pool, &wanted, size, need, write);
    bar.finish_and_clear();
    let mut fatal = None;
    for ((_, name), outcome) in wanted.iter().zip(outcomes) {
        match outcome {
            Outcome::Written { bytes, is_decoded } => {
                counts.files += 1;
                counts.decoded += u64::from(is_decoded);
                counts.bytes += bytes as u64;
            }
            Outcome::Left => {}
            Outcome::Existing => counts.existing += 1,
            Outcome::Unpatched => {
                counts.unpatched += 1;
                common.note(name, "skipped: not downloaded yet");
            }
            Outcome::Failed(Fault::File(text) | Fault::Name(text)) => {
                counts.problems += 1;
                complain(&title, &text);
            }
            Outcome::Failed(Fault::Exists(text)) => {
                counts.problems += 1;
                counts.occupied += 1;
                if counts.occupied <= MAX_OCCUPIED {
                    complain(&title, &text);
                }
            }
            Outcome::Failed(Fault::Output(text)) => {
                fatal.get_or_insert(text);
            }
        }
    }
    match fatal {
        Some(text) => Err(Failure::Run(printable(&text))),
        None => Ok(()),
    }
}

/// State shared by all threads.
struct Work<'w> {
    archive: &'w Archive<'w>,
    how: &'w How<'w>,
    stages: &'w Stages,
    /// Names that decoded files must not use.
    taken: HashSet<String>,
    /// Whether writing failed; the remaining files are then skipped.
    is_over: AtomicBool,
}

impl Work<'_> {
    fn one(
        &self,
        entry: &Entry<'_>,
        name: &str,
        loader: &mut Loader<'_>,
        last: &mut LastFolder,
    ) -> Outcome {
        if self.is_over.load(Ordering::Relaxed) {
            return Outcome::Left;
        }
        if self.how.skip_existing && self.exists(name) {
            return Outcome::Existing;
        }
        let file = match loader.read(self.archive, entry) {
            Ok(Some(file)) => file,
            Ok(None) => return Outcome::Unpatched,
            Err(error) => return Outcome::Failed(Fault::File(super::explained(error))),
        };
        let written = match self.how.show {
            // Streams without a magic number could be anything, so if options specify a stream
            // format, they apply to all files.
            Some(show) if file.starts_with(MAGIC) || !show.choices.is_file() => {
                self.decoded(show, name, file, last).map(|bytes| (bytes, true))
            }
            _ => self.keep(name, file, last).map(|()| (file.len(), false)),
        };
        match written {
            Ok((bytes, is_decoded)) => Outcome::Written { bytes, is_decoded },
            // Another run created the file first.
            Err(Fault::Exists(_)) if self.how.skip_existing => Outcome::Existing,
            Err(fault) => {
                if matches!(fault, Fault::Output(_)) {
                    self.is_over.store(true, Ordering::Relaxed);
                }
                Outcome::Failed(fault)
            }
        }
    }

    /// Whether a file exists with this name or with the name of the decoded object.
    fn exists(&self, name: &str) -> bool {
        let exists =
            |name: &Path| fs::symlink_metadata(self.stages.at(&self.how.folder.join(name))).is_ok();
        let plain = Path::new(name);
        exists(plain) || self.how.show.is_some_and(|show| exists(&show.name(plain)))
    }

    /// Writes a decoded game object and returns its size. If it cannot be decoded, it is written
    /// unchanged, under its original name.
    fn decoded(
        &self,
        show: &Show<'_>,
        name: &str,
        file: &[u8],
        last: &mut LastFolder,
    ) -> Result<usize, Fault> {
        let path = show.name(Path::new(name));
        let new = path.to_string_lossy();
        // Another thread or another run may be writing a file with the same name.
        if new != name && self.taken.contains(&new.to_lowercase()) {
            self.keep(name, file, last)?;
            let text = format!("{name}: not decoded: the archive also contains {new}");
            return Err(Fault::File(text));
        }
        match show.form(file, None, name) {
            Ok((text, _)) => match self.keep(&new, &text, last) {
                Err(Fault::Name(text)) if new != name => {
                    self.keep(name, file, last)?;
                    Err(Fault::File(format!("{name}: not decoded: {text}")))
                }
                kept => kept.map(|()| text.len()),
            },
            Err(lines) => {
                self.keep(name, file, last)?;
                Err(Fault::File(format!("{name}: {}", lines.join("; "))))
            }
        }
    }

    fn keep(&self, name: &str, file: &[u8], last: &mut LastFolder) -> Result<(), Fault> {
        let path = self.how.folder.join(name);
        last.store(self.stages, &path, file, self.how.force).map_err(|error| {
            let place = shown(&path);
            let is_folder =
                || fs::symlink_metadata(self.stages.at(&path)).is_ok_and(|it| it.is_dir());
            match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory if is_folder() => {
                    Fault::File(format!("{place}: is a directory"))
                }
                io::ErrorKind::AlreadyExists => {
                    Fault::Exists(format!("{}, or --skip-existing to keep it", occupied(&path)))
                }
                _ if is_of_name(&error) => Fault::Name(format!("{place}: {}", reason(&error))),
                _ => Fault::Output(format!("{place}: {}", reason(&error))),
            }
        })
    }
}

/// Whether the system rejects only this name, so that other files may succeed.
fn is_of_name(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput)
}

/// Creates the directories of all files and returns those that cannot be used.
fn make_folders<'n>(
    stages: &Stages,
    home: &Path,
    wanted: &[(&Entry<'_>, &'n str)],
) -> Result<HashSet<&'n str>, Failure> {
    let folders: BTreeSet<&str> = wanted.iter().flat_map(|(_, name)| parents(name)).collect();
    let mut refused = HashSet::new();
    // Parents sort before their contents.
    for name in folders {
        // Below a link, directories would be created at the link's target.
        if parents(name).any(|parent| refused.contains(parent)) {
            refused.insert(name);
            continue;
        }
        let path = home.join(name);
        match stages.make(&path) {
            Ok(true) => {}
            Ok(false) => {
                complain(name, "refused: a link or file exists at the path of this directory");
                refused.insert(name);
            }
            Err(error) if is_of_name(&error) => {
                complain(name, &reason(&error));
                refused.insert(name);
            }
            Err(error) => return Err(Failure::io(&path, &error)),
        }
    }
    Ok(refused)
}

/// Creates the output directory and its parents.
fn make_home(stages: &Stages, folder: &Path) -> Result<(), Failure> {
    match stages.make_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::Run(format!("{}: exists and is not a directory", shown(folder))))
        }
        made => made.map_err(|error| Failure::io(folder, &error)),
    }
}
