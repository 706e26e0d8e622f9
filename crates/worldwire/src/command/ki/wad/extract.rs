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

/// The most files that are named because others have their names.
const MAX_OCCUPIED: usize = 10;

/// How files are written.
pub(super) struct How<'h> {
    pub(super) folder: &'h Path,
    pub(super) force: bool,
    /// Skip files that already exist.
    pub(super) skip_existing: bool,
    pub(super) allow_overlaps: bool,
    /// Refuse names that only Windows forbids.
    pub(super) portable: bool,
    /// How game objects are shown, if they are.
    pub(super) show: Option<&'h Show<'h>>,
}

/// Why a file was not written.
enum Fault {
    /// It cannot be, because of the archive or of what has its name.
    File(String),
    /// There is one of its name.
    Exists(String),
    /// The system has no such name.
    Name(String),
    /// Nothing can be: the disk is full, or the directory is read-only.
    Output(String),
}

/// What became of a file.
enum Outcome {
    /// This many bytes were written, whether the object was decoded or not.
    Written {
        bytes: usize,
        is_decoded: bool,
    },
    /// It was there before.
    Existing,
    Unpatched,
    /// Others failed before it.
    Left,
    Failed(Fault),
}

/// What was done.
#[derive(Default)]
struct Counts {
    files: u64,
    decoded: u64,
    existing: u64,
    unpatched: u64,
    bytes: u64,
    problems: usize,
    /// The problems that are other files of the names.
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
        // As with a single existing file.
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

/// What all threads need.
struct Work<'w> {
    archive: &'w Archive<'w>,
    how: &'w How<'w>,
    stages: &'w Stages,
    /// The names that no decoded file may have.
    taken: HashSet<String>,
    /// The output failed, so the rest is left.
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
            // Streams without a mark could be anything, so whoever says how they are read means
            // all of them.
            Some(show) if file.starts_with(MAGIC) || !show.choices.is_file() => {
                self.decoded(show, name, file, last).map(|bytes| (bytes, true))
            }
            _ => self.keep(name, file, last).map(|()| (file.len(), false)),
        };
        match written {
            Ok((bytes, is_decoded)) => Outcome::Written { bytes, is_decoded },
            // Another run was faster.
            Err(Fault::Exists(_)) if self.how.skip_existing => Outcome::Existing,
            Err(fault) => {
                if matches!(fault, Fault::Output(_)) {
                    self.is_over.store(true, Ordering::Relaxed);
                }
                Outcome::Failed(fault)
            }
        }
    }

    /// Whether there is a file of this name, or of that which a decoded object gets.
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
        // Another file of the archive may be written at the same time, or by another run.
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

/// Whether it is a name that the system does not want, so that others may do.
fn is_of_name(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput)
}

/// Makes the directories of all files, and gives those that cannot be used.
fn make_folders<'n>(
    stages: &Stages,
    home: &Path,
    wanted: &[(&Entry<'_>, &'n str)],
) -> Result<HashSet<&'n str>, Failure> {
    let folders: BTreeSet<&str> = wanted.iter().flat_map(|(_, name)| parents(name)).collect();
    let mut refused = HashSet::new();
    // Parents sort before what is in them.
    for name in folders {
        // What is below a link would be made where the link leads.
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

/// Makes the directory that everything goes to, and those around it.
fn make_home(stages: &Stages, folder: &Path) -> Result<(), Failure> {
    match stages.make_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::Run(format!("{}: exists and is not a directory", shown(folder))))
        }
        made => made.map_err(|error| Failure::io(folder, &error)),
    }
}
