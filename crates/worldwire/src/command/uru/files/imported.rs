//! The files that imports have stored in a shard's data directory, and the list of these files.
//!
//! The list is in the format of `md5sum`: a digest and a path on each line. It lets an import
//! remove files that the client no longer has, but nothing that an operator stored or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use worldwire_core::path::{PathRules, SafePath};

use super::super::manifest::{md5, store};
use crate::input;
use crate::output::{Failure, shown};

/// The name of the list in the data directory.
pub(super) const LIST: &str = "imported.md5";

/// The files of an import in progress and those of earlier imports.
#[derive(Debug)]
pub(super) struct Imported {
    data: PathBuf,
    /// The list, to which every file is appended before it is stored: it stays complete if the
    /// import is interrupted.
    list: Option<File>,
    has_list: bool,
    /// The digests of earlier files, by path in the data directory.
    old: BTreeMap<String, String>,
    /// The digests of new files, by path in the data directory.
    new: BTreeMap<String, String>,
    /// Paths whose earlier files are still valid.
    kept: BTreeSet<String>,
}

/// What was done with the files that the client no longer has.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// The number of files that were removed.
    pub(super) removed: usize,
    /// Files that stay, because they have changed since their import.
    pub(super) changed: Vec<PathBuf>,
}

impl Imported {
    /// Reads the list of earlier imports, if there is one.
    pub(super) fn read(data: &Path) -> Result<Self, Failure> {
        let file = data.join(LIST);
        let has_list = file.exists();
        let text = if has_list { input::read_text(&file)? } else { String::new() };
        let (data, old) = (data.to_owned(), parse(&text));
        let (new, kept) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { data, list: None, has_list, old, new, kept })
    }

    /// Whether there was an import that left no list of its files.
    pub(super) fn is_unlisted(&self) -> bool {
        !self.has_list && self.data.join("files").join("External.mfs").exists()
    }

    /// Stores a file. Its path is relative to the data directory, with slashes.
    pub(super) fn store(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        let digest = md5(bytes);
        self.append(path, &digest)?;
        store(&self.data.join(path), bytes)?;
        self.new.insert(path.to_owned(), digest);
        Ok(())
    }

    /// Keeps an earlier file that the client still has, although it could not be stored now.
    pub(super) fn keep(&mut self, path: &str) {
        self.kept.insert(path.to_owned());
    }

    /// Removes the unchanged files of earlier imports that were neither stored nor kept, and writes
    /// the new list.
    pub(super) fn finish(mut self) -> Result<Swept, Failure> {
        let mut swept = Swept::default();
        let lower: BTreeMap<String, PathBuf> =
            self.new.keys().map(|name| (name.to_lowercase(), self.data.join(name))).collect();
        for (name, digest) in std::mem::take(&mut self.old) {
            if self.new.contains_key(&name) {
                continue;
            }
            if self.kept.contains(&name) {
                self.new.insert(name, digest);
                continue;
            }
            let path = self.data.join(&name);
            // On some file systems, a name that differs only in case leads to the new file.
            if lower.get(&name.to_lowercase()).is_some_and(|new| is_same(new, &path)) {
                continue;
            }
            match fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::io(&path, &error)),
                Ok(bytes) if md5(&bytes) != digest => swept.changed.push(path),
                Ok(_) => {
                    fs::remove_file(&path).map_err(|error| Failure::io(&path, &error))?;
                    swept.removed += 1;
                }
            }
        }
        let line = |(path, digest): (&String, &String)| format!("{digest}  {path}\n");
        let text: String = self.new.iter().map(line).collect();
        drop(self.list);
        store(&self.data.join(LIST), text.as_bytes())?;
        Ok(swept)
    }

    fn append(&mut self, path: &str, digest: &str) -> Result<(), Failure> {
        let file = self.data.join(LIST);
        let failed = |error| Failure::io(&file, &error);
        if self.list.is_none() {
            fs::create_dir_all(&self.data).map_err(failed)?;
            let opened = OpenOptions::new().create(true).append(true).open(&file);
            let mut list = opened.map_err(failed)?;
            // The last line may be incomplete.
            list.write_all(b"\n").map_err(failed)?;
            self.list = Some(list);
        }
        let line = format!("{digest}  {path}\n");
        self.list.iter_mut().try_for_each(|list| list.write_all(line.as_bytes())).map_err(failed)
    }
}

/// The digests in a list, by path. Paths that lead out of the data directory are ignored.
fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once("  "));
    let lines = lines.filter(|(_, path)| SafePath::parse_str(path, PathRules::DOWNLOAD).is_ok());
    lines.map(|(digest, path)| (path.to_owned(), digest.to_owned())).collect()
}

/// Whether two paths lead to the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

impl Swept {
    /// Describes the files that stay.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (String, &'static str)> {
        let why = "kept: the client no longer has it, but it has changed since its import";
        self.changed.iter().map(move |path| (shown(path), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Imports files with these names and contents, and returns the numbers of others that were
    /// removed and kept.
    fn import(data: &Path, files: &[(&str, &str)]) -> (usize, usize) {
        let mut imported = Imported::read(data).unwrap();
        for (name, content) in files {
            imported.store(name, content.as_bytes()).unwrap();
        }
        let swept = imported.finish().unwrap();
        (swept.removed, swept.changed.len())
    }

    #[test]
    fn only_unchanged_files_of_imports_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let data = &folder.path().join("data");
        let exist = |name: &str| data.join(name).exists();
        assert_eq!(import(data, &[("ages/a", "1"), ("ages/b", "2"), ("ages/c", "3")]), (0, 0));
        fs::write(data.join("ages/own"), "4").unwrap();
        fs::write(data.join("ages/c"), "changed").unwrap();
        assert_eq!(import(data, &[("ages/a", "1")]), (1, 1));
        assert!(exist("ages/a") && !exist("ages/b") && exist("ages/c") && exist("ages/own"));
        // From now on, a changed file belongs to the operator.
        assert_eq!(import(data, &[("ages/d", "5")]), (1, 0));
        assert!(exist("ages/c") && exist("ages/own") && exist("ages/d") && !exist("ages/a"));
        assert_eq!(
            fs::read_to_string(data.join(LIST)).unwrap(),
            format!("{}  ages/d\n", md5(b"5"))
        );
    }

    #[test]
    fn an_interrupted_import_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        fs::write(data.join(LIST), format!("{}  files/to", md5(b"x"))).unwrap();
        let mut imported = Imported::read(data).unwrap();
        imported.store("files/b", b"1").unwrap();
        drop(imported);
        assert_eq!(import(data, &[]), (1, 0));
        assert!(!data.join("files/b").exists());
    }

    #[test]
    fn nothing_outside_the_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (data, outside) = (folder.path().join("data"), folder.path().join("outside"));
        fs::create_dir(&data).unwrap();
        fs::write(&outside, "1").unwrap();
        let digest = md5(b"1");
        let list = format!("{digest}  ../outside\n{digest}  {}\nnonsense\n", outside.display());
        fs::write(data.join(LIST), list).unwrap();
        assert_eq!(import(&data, &[]), (0, 0));
        assert!(outside.exists());
    }

    #[test]
    fn files_that_could_not_be_stored_again_stay() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        import(data, &[("ages/a", "1")]);
        for _ in 0..2 {
            let mut imported = Imported::read(data).unwrap();
            imported.keep("ages/a");
            assert_eq!(imported.finish().unwrap().removed, 0);
        }
        assert_eq!(import(data, &[]), (1, 0));
    }
}
