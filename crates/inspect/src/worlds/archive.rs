//! A KI archive to browse: its files by path, in directories.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use worldwire_core::{Error, Limits, Result};
use worldwire_ki::file::wad::{Archive, Entry, Inflater};

/// A KI archive, such as `Root.wad`, that the page shows. Only its own bytes are served, and it is
/// never changed.
pub struct KiArchive {
    name: String,
    bytes: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    /// The files, sorted by path.
    files: Vec<ArchivedFile>,
    /// Where the page may save changed copies.
    copies: Option<PathBuf>,
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedFile {
    /// Its path, for display: not necessarily UTF-8 in the archive, and cut if it is very long.
    pub(crate) path: Box<str>,
    /// Its number in the table of the archive.
    pub(super) entry: u32,
    offset: u32,
    pub(crate) size: u32,
    compressed_size: u32,
    compressed: u8,
    crc: u32,
}

/// A row of a listing: a file, or a directory with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed<'a> {
    /// A file and its number.
    File(usize, &'a ArchivedFile),
    /// A directory: its path, which ends with `/`, and the number of files below it.
    Folder(&'a str, usize),
}

/// Longer paths are cut and not divided into directories.
const MAX_PATH: usize = 4096;
/// The length of a cut path, in characters.
const CUT: usize = 200;

static LIMITS: Limits = Limits::DEFAULT;

impl KiArchive {
    /// Reads the table of an archive. `name` is shown to the user.
    ///
    /// # Errors
    /// Those of [`Archive::parse`].
    pub fn open(
        name: &str,
        bytes: impl Deref<Target = [u8]> + Send + Sync + 'static,
    ) -> Result<Self> {
        let archive = Archive::parse(&bytes, &LIMITS)?;
        let entries = (0..).zip(archive.entries());
        let mut files: Vec<_> = entries.map(|(at, entry)| ArchivedFile::new(at, entry)).collect();
        drop(archive);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { name: name.to_owned(), bytes: Box::new(bytes), files, copies: None })
    }

    /// Lets the page edit game objects, and save changed copies of them and of the archive as new
    /// files in this directory. Nothing that exists is ever overwritten.
    #[must_use]
    pub fn with_copies_in(self, folder: PathBuf) -> Self {
        Self { copies: Some(folder), ..self }
    }

    /// The directory for changed copies, if the page may save any.
    pub(crate) fn copies(&self) -> Option<&Path> {
        self.copies.as_deref()
    }

    /// All bytes of the archive.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The size of the archive in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// All files, by path. The position is the number of a file.
    pub(crate) fn files(&self) -> &[ArchivedFile] {
        &self.files
    }

    /// The contents of a directory, whose path ends with `/`, or of the root for an empty path:
    /// directories first.
    pub(crate) fn folder(&self, path: &str) -> Vec<Listed<'_>> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut next = self.files.partition_point(|file| *file.path < *path);
        while let Some(file) = self.files.get(next)
            && let Some(rest) = file.path.strip_prefix(path)
        {
            let Some(end) = rest.find('/') else {
                files.push(Listed::File(next, file));
                next += 1;
                continue;
            };
            // Files of a directory are next to each other.
            let own = file.path.get(..=path.len() + end).unwrap_or_default();
            let others = self.files.get(next..).unwrap_or_default();
            let count = others.partition_point(|other| other.path.starts_with(own));
            folders.push(Listed::Folder(own, count));
            next += count.max(1);
        }
        folders.append(&mut files);
        folders
    }

    /// The files whose paths contain all words of the text. Case does not matter.
    pub(crate) fn search(&self, text: &str) -> Vec<Listed<'_>> {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut path = String::new();
        let has_all = |(_, file): &(usize, &ArchivedFile)| {
            path.clear();
            if file.path.is_ascii() {
                path.push_str(&file.path);
                path.make_ascii_lowercase();
            } else {
                path.extend(file.path.chars().flat_map(char::to_lowercase));
            }
            words.iter().all(|word| path.contains(word))
        };
        let found = self.files.iter().enumerate().filter(has_all);
        found.map(|(number, file)| Listed::File(number, file)).collect()
    }

    /// The content of a file. `Ok(None)` means that it has not been downloaded yet.
    ///
    /// # Errors
    /// Those of [`Archive::read`].
    pub(crate) fn read<'b>(
        &'b self,
        file: &ArchivedFile,
        inflater: &'b mut Inflater,
    ) -> Result<Option<&'b [u8]>> {
        self.data().read(&file.entry(), inflater).map_err(Error::closed)
    }

    /// The first bytes of a file, at most this many.
    ///
    /// # Errors
    /// Those of [`Archive::head`].
    pub(crate) fn head<'b>(
        &'b self,
        file: &ArchivedFile,
        max: usize,
        inflater: &'b mut Inflater,
    ) -> Result<Option<&'b [u8]>> {
        self.data().head(&file.entry(), max, inflater).map_err(Error::closed)
    }

    fn data(&self) -> Archive<'_> {
        Archive::of_data(&self.bytes, &LIMITS)
    }
}

impl fmt::Debug for KiArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KiArchive").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ArchivedFile {
    fn new(number: u32, entry: &Entry<'_>) -> Self {
        let name = entry.name_lossy();
        let path = match name.len() > MAX_PATH {
            false => name.into_owned(),
            true => {
                let cut = name.chars().take(CUT);
                let cut = cut.map(|c| if c == '/' { '\u{2215}' } else { c });
                cut.chain(['…']).collect()
            }
        };
        Self {
            path: path.into(),
            entry: number,
            offset: entry.offset,
            size: entry.size,
            compressed_size: entry.compressed_size,
            compressed: entry.compressed,
            crc: entry.crc,
        }
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The number of bytes in the archive.
    pub(crate) fn stored_size(&self) -> u32 {
        self.entry().stored_size()
    }

    fn entry(&self) -> Entry<'_> {
        let Self { ref path, offset, size, compressed_size, compressed, crc, .. } = *self;
        let name = path.as_bytes().into();
        Entry { name, terminated: true, offset, size, compressed_size, compressed, crc }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_ki::file::wad::{BuildOptions, build};

    use super::*;

    fn archive(names: &[&str]) -> KiArchive {
        let files = names.iter().map(|name| (*name, name.as_bytes()));
        KiArchive::open("test.wad", build(&BuildOptions::default(), files).unwrap()).unwrap()
    }

    fn shown(listed: &[Listed<'_>]) -> Vec<String> {
        let show = |row: &Listed<'_>| match row {
            Listed::File(_, file) => file.name().to_owned(),
            Listed::Folder(path, count) => format!("{path} {count}"),
        };
        listed.iter().map(show).collect()
    }

    #[test]
    fn directories_are_listed_before_files() {
        let archive = archive(&["b", "a-b", "a", "a/y", "a/x/1", "a/x/2", "Z/ä"]);
        assert_eq!(shown(&archive.folder("")), ["Z/ 1", "a/ 3", "a", "a-b", "b"]);
        assert_eq!(shown(&archive.folder("a/")), ["a/x/ 2", "y"]);
        assert_eq!(shown(&archive.folder("a/x/")), ["1", "2"]);
        assert_eq!(shown(&archive.search("Ä")), ["ä"]);
        assert!(archive.folder("c/").is_empty() && archive.folder("../").is_empty());
        assert_eq!(shown(&archive.search("A X")), ["1", "2"]);
        let mut inflater = Inflater::new();
        let Listed::File(number, file) = archive.search("x/2")[0] else { panic!("a file") };
        assert_eq!(archive.files()[number], *file);
        assert_eq!(archive.read(file, &mut inflater).unwrap().unwrap(), b"a/x/2");
    }

    /// Empty parts and dots are names like any others, because nothing is looked up by path.
    #[test]
    fn hostile_paths_form_a_finite_tree() {
        let long = "x/".repeat(MAX_PATH);
        let names = ["/x", "//x", "a//b", "../up", "C:\\x", "<b>\u{202e}", &long];
        let archive = archive(&names);
        let mut open = vec![String::new()];
        let mut files = 0;
        while let Some(path) = open.pop() {
            for row in archive.folder(&path) {
                match row {
                    Listed::Folder(inner, _) => {
                        assert!(inner.len() > path.len());
                        open.push(inner.to_owned());
                    }
                    Listed::File(_, file) => {
                        assert!(file.path.len() < MAX_PATH);
                        files += 1;
                    }
                }
            }
        }
        assert_eq!(files, names.len());
    }

    #[test]
    fn a_million_names_are_listed_at_once() {
        let files = (0..1_000_000).map(|number| ArchivedFile {
            path: format!("{}/{number:07}", number % 1000).into(),
            entry: number,
            offset: 0,
            size: 0,
            compressed_size: 0,
            compressed: 0,
            crc: 0,
        });
        let mut files: Vec<_> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let bytes = Box::new(Vec::new());
        let archive = KiArchive { name: String::new(), bytes, files, copies: None };
        let root = archive.folder("");
        assert_eq!((root.len(), root[0]), (1000, Listed::Folder("0/", 1000)));
        assert_eq!(archive.search("999/ 7999").len(), 111);
    }
}
