//! A folder that many files are written to.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use super::{Failure, WholeFile, occupied, shown};

/// A folder that many threads write files to, each of which is whole or absent. Folders are made
/// when the first file is to stand in them.
#[derive(Debug)]
pub(crate) struct NewFolder {
    home: PathBuf,
    force: bool,
    /// The folders in it that are there.
    made: RwLock<HashSet<PathBuf>>,
}

/// The folder that a thread wrote to last, open: neighbours mostly go to the same.
#[derive(Debug, Default)]
pub(crate) struct LastFolder(Option<(PathBuf, File)>);

impl LastFolder {
    /// Writes a file inside a folder that is there, as [`WholeFile::store`] does.
    pub(crate) fn store(&mut self, path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && !folder.as_os_str().is_empty()
        {
            if self.0.as_ref().is_none_or(|(last, _)| last != folder) {
                self.0 = File::open(folder).ok().map(|open| (folder.to_owned(), open));
            }
            if let Some((_, open)) = &self.0 {
                return WholeFile::store_at(open, path, name, bytes, force);
            }
        }
        WholeFile::store(path, bytes, force)
    }
}

impl NewFolder {
    /// The folder of this path, which need not be there yet.
    pub(crate) fn new(home: &Path, force: bool) -> Self {
        Self { home: home.to_owned(), force, made: RwLock::default() }
    }

    /// Whether there is a file, or a link, of this name.
    pub(crate) fn has(&self, name: &Path) -> bool {
        std::fs::symlink_metadata(self.home.join(name)).is_ok_and(|about| !about.is_dir())
    }

    /// Writes a file whose name is a path in the folder.
    pub(crate) fn store(
        &self,
        last: &mut LastFolder,
        name: &Path,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let path = self.home.join(name);
        self.make(name.parent().unwrap_or_else(|| Path::new("")))?;
        last.store(&path, bytes, self.force).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists if path.is_dir() => {
                Failure::Run(format!("{}: is a directory", shown(&path)))
            }
            io::ErrorKind::AlreadyExists => Failure::Run(occupied(&path)),
            _ => Failure::io(&path, &error),
        })
    }

    /// Makes a folder in this one. What is below a link would be made where the link leads.
    fn make(&self, folder: &Path) -> Result<(), Failure> {
        if self.made.read().unwrap_or_else(PoisonError::into_inner).contains(folder) {
            return Ok(());
        }
        std::fs::create_dir_all(&self.home).map_err(|error| Failure::io(&self.home, &error))?;
        let mut path = self.home.clone();
        for part in folder.components() {
            path.push(part);
            let made = match std::fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    std::fs::symlink_metadata(&path).map(|about| about.is_dir())
                }
                made => made.map(|()| true),
            };
            if !made.map_err(|error| Failure::io(&path, &error))? {
                let why = "a link or file is in the place of this directory";
                return Err(Failure::Run(format!("{}: refused: {why}", shown(&path))));
            }
        }
        self.made.write().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        Ok(())
    }
}
