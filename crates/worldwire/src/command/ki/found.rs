//! Files of a format, found in files, archives and directories.

use std::path::{Path, PathBuf};

use worldwire_core::{Error, Limits};
use worldwire_ki::file::wad::{Archive, Entry, Inflater};

use super::inside::{self, is_archive};
use crate::cli::Common;
use crate::input::{self, map, title};
use crate::output::{Failure, complain};

/// The limits for decoding these files.
pub(crate) static LIMITS: Limits = Limits::DEFAULT;

/// Limits names in archives, because each line of output for a text may start with one.
const MAX_NAME: usize = 255;

/// A file format and how to recognise it.
pub(crate) struct Kind {
    /// The kind of file, as named in messages.
    pub(crate) what: &'static str,
    /// Whether a file name is typical of the format.
    pub(crate) is_named: fn(&str) -> bool,
    /// Whether bytes are a valid file without irregularities.
    pub(crate) is: fn(&[u8]) -> bool,
}

impl Kind {
    /// The problem with a file. A file without a typical name is most likely something else.
    pub(crate) fn fault(&self, name: &str, error: &Error) -> String {
        match (self.is_named)(name) {
            true => error.to_string(),
            false => format!("is not a {}: {error}", self.what),
        }
    }
}

pub(crate) struct Found<'b> {
    /// The file's name in messages: a path, followed by the file's name in the archive if it is in
    /// one.
    pub(crate) title: String,
    /// The file's name without directories.
    pub(crate) name: String,
    pub(crate) bytes: &'b [u8],
}

/// The only file of its kind.
pub(crate) struct Only {
    title: String,
    name: String,
    bytes: Vec<u8>,
}

impl Only {
    pub(crate) fn found(&self) -> Found<'_> {
        Found { title: self.title.clone(), name: self.name.clone(), bytes: &self.bytes }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    count: usize,
    has_failed: bool,
}

/// Finds all files of a format. A file named on the command line is always accepted. In directories
/// and archives, including archives in directories, files are selected by name or, if none match,
/// by content.
///
/// # Errors
/// If there are none, or if some could not be read. In the latter case, the others are processed
/// first.
pub(crate) fn each(
    paths: &[PathBuf],
    kind: &Kind,
    common: &Common,
    mut act: impl FnMut(Found<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut has_failed = false;
    for path in paths {
        let outcome = one_path(path, kind, common, &mut act)?;
        has_failed |= outcome.has_failed;
        if outcome.count == 0 && !outcome.has_failed {
            complain(&title(path), &format!("contains no {}", kind.what));
            has_failed = true;
        }
    }
    if has_failed { Err(Failure::Input) } else { Ok(()) }
}

/// The single file of a format at a path.
///
/// # Errors
/// If there is none or more than one.
pub(crate) fn only(path: &Path, kind: &Kind, common: &Common) -> Result<Only, Failure> {
    /// The maximum number of files listed to choose from.
    const MAX_NAMED: usize = 3;
    let mut only = None;
    let mut titles = Vec::new();
    each(&[path.to_owned()], kind, common, |Found { title, name, bytes }| {
        only.get_or_insert_with(|| Only { title: title.clone(), name, bytes: bytes.to_vec() });
        titles.push(title);
        Ok(())
    })?;
    if titles.len() > 1 {
        let count = titles.len();
        let more = if count > MAX_NAMED { ", ..." } else { "" };
        titles.truncate(MAX_NAMED);
        let some = titles.join(", ");
        let message = format!("contains {count} files of this kind ({some}{more}); name one");
        complain(&title(path), &message);
        return Err(Failure::Input);
    }
    only.ok_or(Failure::Input)
}

type Act<'a> = dyn FnMut(Found<'_>) -> Result<(), Failure> + 'a;

fn one_path(
    path: &Path,
    kind: &Kind,
    common: &Common,
    act: &mut Act<'_>,
) -> Result<Outcome, Failure> {
    if let Some((path, name)) = inside::split(path) {
        return in_archive_named(&path, &name, act);
    }
    if !path.is_dir() {
        let bytes = map::open(path)?;
        if is_archive(&bytes) {
            return in_archive(path, &bytes, kind, common, act);
        }
        act(file(path, &bytes))?;
        return Ok(Outcome { count: 1, has_failed: false });
    }
    let files = input::files(path, &|subject, text| common.note(subject, text))?;
    let mut outcome = Outcome::default();
    let mut others = Vec::new();
    for file_path in &files {
        let name = file_name(file_path);
        if (kind.is_named)(&name) {
            let bytes = map::open(file_path)?;
            act(file(file_path, &bytes))?;
            outcome.count += 1;
        } else if has_ending(&name, "wad") {
            let bytes = map::open(file_path)?;
            if is_archive(&bytes) {
                let inside = in_archive(file_path, &bytes, kind, common, act)?;
                outcome.count += inside.count;
                outcome.has_failed |= inside.has_failed;
            }
        } else {
            others.push(file_path);
        }
    }
    if outcome.count == 0 {
        for file_path in others {
            let bytes = map::open(file_path)?;
            if (kind.is)(&bytes) {
                act(file(file_path, &bytes))?;
                outcome.count += 1;
            }
        }
    }
    Ok(outcome)
}

/// A file in an archive, named on the command line.
fn in_archive_named(path: &Path, name: &str, act: &mut Act<'_>) -> Result<Outcome, Failure> {
    let bytes = map::open(path)?;
    let fail = |error: &Error| {
        complain(&title(path), &error.to_string());
        Failure::Input
    };
    let archive = Archive::parse(&bytes, &LIMITS).map_err(|error| fail(&error))?;
    let entry = inside::entry(path, &archive, name)?;
    let mut inflater = Inflater::new();
    match archive.read(entry, &mut inflater).map_err(|error| fail(&error))? {
        Some(bytes) => {
            let last = name.rsplit('/').next().unwrap_or_default().to_owned();
            act(Found { title: in_archive_title(path, name), name: last, bytes })?;
            Ok(Outcome { count: 1, has_failed: false })
        }
        None => {
            complain(&title(path), &format!("{name}: not downloaded yet"));
            Ok(Outcome { count: 0, has_failed: true })
        }
    }
}

/// The title of a file in an archive, in a form that can be used on the command line.
fn in_archive_title(path: &Path, name: &str) -> String {
    format!("{}/{name}", title(path))
}

fn in_archive(
    path: &Path,
    bytes: &[u8],
    kind: &Kind,
    common: &Common,
    act: &mut Act<'_>,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let archive = match Archive::parse(bytes, &LIMITS) {
        Ok(archive) => archive,
        Err(error) => {
            complain(&title(path), &error.to_string());
            return Ok(Outcome { count: 0, has_failed: true });
        }
    };
    let named: Vec<&Entry<'_>> =
        archive.entries().iter().filter(|entry| (kind.is_named)(&entry.name_lossy())).collect();
    let by_name = !named.is_empty();
    let chosen = if by_name { named } else { archive.entries().iter().collect() };
    if let Err(error) = archive.check_total(chosen.iter().copied()) {
        complain(&title(path), &error.to_string());
        return Ok(Outcome { count: 0, has_failed: true });
    }
    let mut inflater = Inflater::new();
    for entry in chosen {
        if entry.name.len() > MAX_NAME {
            let found = entry.name.len();
            complain(&title(path), &format!("an entry has a name of {found} bytes; skipped"));
            outcome.has_failed = true;
            continue;
        }
        let name = entry.name_lossy();
        match archive.read(entry, &mut inflater) {
            Ok(Some(bytes)) if by_name || (kind.is)(bytes) => {
                let title = in_archive_title(path, &name);
                let name = name.rsplit('/').next().unwrap_or_default().to_owned();
                act(Found { title, name, bytes })?;
                outcome.count += 1;
            }
            Ok(Some(_)) => {}
            Ok(None) => common.note(&name, "not downloaded yet; skipped"),
            Err(error) if by_name => {
                complain(&title(path), &error.to_string());
                outcome.has_failed = true;
            }
            // The file is of another kind.
            Err(_) => {}
        }
    }
    Ok(outcome)
}

fn file<'b>(path: &Path, bytes: &'b [u8]) -> Found<'b> {
    Found { title: title(path), name: file_name(path), bytes }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a name has this extension, ignoring case.
pub(crate) fn has_ending(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(ending))
}
