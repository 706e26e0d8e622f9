//! A folder that many files are written to.

use std::collections::HashSet;
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

impl NewFolder {
    /// The folder of this path, which need not be there yet.
    pub(crate) fn new(home: &Path, force: bool) -> Self {
        Self { home: home.to_owned(), force, made: RwLock::default() }
    }

    /// Writes a file whose name is a path in the folder.
    pub(crate) fn store(&self, name: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.home.join(name);
        if let Some(folder) = path.parent() {
            self.make(folder).map_err(|error| Failure::io(folder, &error))?;
        }
        WholeFile::store(&path, bytes, self.force).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists if path.is_dir() => {
                Failure::Run(format!("{}: is a directory", shown(&path)))
            }
            io::ErrorKind::AlreadyExists => Failure::Run(occupied(&path)),
            _ => Failure::io(&path, &error),
        })
    }

    fn make(&self, folder: &Path) -> io::Result<()> {
        if self.made.read().unwrap_or_else(PoisonError::into_inner).contains(folder) {
            return Ok(());
        }
        std::fs::create_dir_all(folder)?;
        self.made.write().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        Ok(())
    }
}
