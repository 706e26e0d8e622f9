//! The contents of a new archive.

use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use worldwire_core::path::{PathError, SafePath};
use worldwire_ki::file::wad::{Archive, Entry, Packed};

use super::names::{PathCheck, check_new};
use super::patterns::Patterns;
use crate::cli::Common;
use crate::input::{self, title};
use crate::output::{Failure, FilePlace, complain, counted, shown};

/// Where the content of an entry comes from.
pub(super) enum Content<'d> {
    File(PathBuf, u64),
    /// The bytes of an encoded object.
    Made(Vec<u8>),
    Kept(Packed<'d>),
}

impl Content<'_> {
    /// The number of bytes to compress.
    pub(super) fn work(&self) -> u64 {
        match self {
            Self::File(_, size) => *size,
            Self::Made(bytes) => bytes.len() as u64,
            Self::Kept(_) => 0,
        }
    }
}

/// The new content of each name.
pub(super) type Contents<'d> = BTreeMap<Vec<u8>, Content<'d>>;

/// Keeps the unchanged entries of an archive. Returns the names of the others.
pub(super) fn keep<'d>(
    path: &Path,
    archive: &Archive<'d>,
    remove: &[String],
    contents: &mut Contents<'d>,
) -> Result<Vec<String>, Failure> {
    let gone = Patterns::new(remove, archive.entries().iter().map(Entry::name_lossy))?;
    let entries = archive.entries().iter();
    let removed = gone.choose(entries, |entry| entry.name_lossy(), "in the archive")?;
    let removed = removed.iter().map(|entry| entry.name_lossy().into_owned()).collect();
    for (index, entry) in archive.entries().iter().enumerate() {
        if !gone.is_match(&entry.name_lossy()) {
            if entry.name.is_empty() || entry.name.contains(&0) {
                let problem = match entry.name.is_empty() {
                    true => "has no name; --remove '' removes it",
                    false => "has a name that contains a NUL; --remove with a pattern removes it",
                };
                complain(&title(path), &format!("entry {index} {problem}"));
                return Err(Failure::Input);
            }
            let kept = archive.packed(entry).map_err(|error| super::bad(path, &error))?;
            if contents.insert(entry.name.to_vec(), Content::Kept(kept)).is_some() {
                complain(&entry.name_lossy(), "occurs twice");
                return Err(Failure::Input);
            }
        }
    }
    Ok(removed)
}

/// All files below a directory with their sizes, by their names in the archive, except the new
/// archive itself. Links are followed. Names that could not be extracted again are refused.
pub(super) fn files(
    folder: &Path,
    target: &FilePlace,
    portable: bool,
    common: &Common,
) -> Result<BTreeMap<String, (PathBuf, u64)>, Failure> {
    if !folder.is_dir() {
        return Err(Failure::Run(format!("{}: not a directory", shown(folder))));
    }
    let overwritten = target.overwritten();
    let mut found = BTreeMap::new();
    let (mut check, mut refused) = (PathCheck::new(portable), 0);
    let files = input::all(folder, &|subject, text| common.note(subject, text))?;
    for path in files {
        let about = path.metadata().map_err(|error| Failure::io(&path, &error))?;
        if !about.is_file() {
            let what = kind(about.file_type());
            let message = format!("{}: is {what}, not a regular file", shown(&path));
            return Err(Failure::Run(message));
        }
        let size = about.len();
        // Few files have the same size, so few paths are compared closely.
        if let Some((own, _)) = overwritten.as_ref().filter(|(_, own)| *own == size)
            && fs::canonicalize(&path).is_ok_and(|path| path == *own)
        {
            common.note(&shown(&path), "is the archive to be overwritten; skipped");
            continue;
        }
        match name(folder, &path, &mut check, common) {
            Ok(name) => {
                found.insert(name, (path, size));
            }
            Err(problem) => {
                complain(&shown(&path), &format!("refused: its name {problem}"));
                refused += 1;
            }
        }
    }
    check.finish(&shown(folder), common);
    if refused > 0 {
        let names = counted(refused, "name");
        return Err(Failure::Run(format!(
            "{}: {names} refused; nothing was written",
            shown(folder)
        )));
    }
    Ok(found)
}

/// Adds new entries. Names that would conflict with others on extraction are refused.
pub(super) fn add<'d>(
    new: BTreeMap<String, Content<'d>>,
    contents: &mut Contents<'d>,
) -> Result<(), Failure> {
    let kept: Vec<_> = contents.keys().map(|name| String::from_utf8_lossy(name)).collect();
    check_new(kept.iter().map(|name| &**name), new.keys().map(String::as_str))?;
    contents.extend(new.into_iter().map(|(name, content)| (name.into_bytes(), content)));
    Ok(())
}

/// The archive name of a file in a directory.
fn name(
    folder: &Path,
    path: &Path,
    check: &mut PathCheck,
    common: &Common,
) -> Result<String, PathError> {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let parts: Option<Vec<&str>> =
        below.components().map(|part| part.as_os_str().to_str()).collect();
    let name = parts.ok_or(PathError::Encoding)?.join("/");
    check.note_windows_error(SafePath::parse_str(&name, check.rules())?, common);
    Ok(name)
}

/// Describes an entry that is neither a file nor a directory.
fn kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;

        if kind.is_fifo() {
            return "a FIFO";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    let _ = kind;
    "something else"
}
