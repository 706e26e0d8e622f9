//! Paths that lead into archives: `Root.wad/Spells/Fire.xml` is one file of `Root.wad`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use worldwire_ki::file::wad::{Archive, Entry};

use crate::input::title;
use crate::output::{Failure, complain};

/// Whether these first bytes belong to an archive.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(b"KIWAD")
}

/// Whether a file is an archive, judging by its first bytes.
pub(crate) fn is_archive_file(path: &Path) -> bool {
    let mut head = Vec::new();
    path.is_file()
        && File::open(path).is_ok_and(|file| file.take(8).read_to_end(&mut head).is_ok())
        && is_archive(&head)
}

/// The archive that a path leads through, and the name of the file in it. `None` if the path itself
/// exists or does not lead through an archive.
pub(crate) fn split(path: &Path) -> Option<(PathBuf, String)> {
    if path == Path::new("-") || fs::symlink_metadata(path).is_ok() {
        return None;
    }
    let archive = path.ancestors().skip(1).find(|above| above.is_file())?;
    if !is_archive_file(archive) {
        return None;
    }
    // Verbatim: names in archives need not be normalised.
    let (whole, above) = (path.to_string_lossy(), archive.to_string_lossy());
    let name = whole.strip_prefix(&*above)?.strip_prefix(std::path::is_separator)?;
    let name = if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() };
    Some((archive.to_owned(), name))
}

/// The file with this name, or the first of several. Reports a missing file.
pub(crate) fn entry<'a, 'd>(
    path: &Path,
    archive: &'a Archive<'d>,
    name: &str,
) -> Result<&'a Entry<'d>, Failure> {
    let entries = archive.entries();
    entries.iter().find(|entry| *entry.name == *name.as_bytes()).ok_or_else(|| {
        let all: Vec<_> = entries.iter().map(Entry::name_lossy).collect();
        let near = meant(name, all.iter().map(|name| &**name));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        complain(&title(path), &format!("no file {name}{hint}"));
        Failure::Input
    })
}

/// The most likely intended name: one that differs only in case or separators, or else one in
/// another directory, or else the most similar one.
pub(crate) fn meant<'n>(
    typed: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    let typed = typed.replace('\\', "/").to_lowercase();
    if typed.is_empty() {
        return None;
    }
    // Decoding `Pet.xml` produces `Pet.xml.json`.
    let decoded = [".json", ".xml", ".txt"].into_iter();
    if let Some(name) = decoded.filter_map(|end| typed.strip_suffix(end)).find_map(|own| {
        let below = format!("/{own}");
        let is_own = |name: &&str| {
            let name = name.to_lowercase();
            own.contains('.') && (name == own || name.ends_with(&below))
        };
        names.clone().find(is_own)
    }) {
        return Some(name);
    }
    let same = names.clone().find(|name| name.to_lowercase() == typed);
    let below = format!("/{typed}");
    let below = || names.clone().find(|name| name.to_lowercase().ends_with(&below));
    same.or_else(below).or_else(|| worldwire_core::nearest(&typed, names.clone()))
}
