//! Writing many files to one directory.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use super::{Failure, Stages, Taken, WholeFile, occupied, shown};

/// A directory that many threads write files to atomically. Subdirectories are created with their
/// first file; the contents of new ones become visible with [`Self::finish`].
#[derive(Debug)]
pub(crate) struct NewFolder {
    home: PathBuf,
    force: bool,
    stages: Stages,
    /// The subdirectories that exist.
    made: RwLock<HashSet<PathBuf>>,
}

/// The directory that a thread wrote to last; consecutive files usually share one.
#[derive(Debug, Default)]
pub(crate) struct LastFolder(Option<Known>);

#[derive(Debug)]
struct Known {
    folder: PathBuf,
    /// Its temporary location, if this run created it.
    place: Option<PathBuf>,
    /// An open handle, on systems that have such handles.
    open: Option<File>,
}

impl LastFolder {
    /// Writes a file in an existing directory, like [`WholeFile::store`].
    pub(crate) fn store(
        &mut self,
        stages: &Stages,
        path: &Path,
        bytes: &[u8],
        force: bool,
    ) -> io::Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return WholeFile::store(path, bytes, force);
        };
        if self.0.as_ref().is_none_or(|last| last.folder != folder) {
            let place = stages.place(folder);
            let open = place.as_deref().unwrap_or(folder);
            let open = cfg!(target_os = "linux") && !open.as_os_str().is_empty();
            let open = open.then(|| File::open(place.as_deref().unwrap_or(folder)).ok()).flatten();
            self.0 = Some(Known { folder: folder.to_owned(), place, open });
        }
        let Some(Known { place, open, .. }) = &self.0 else { return Ok(()) };
        if let Some(place) = place {
            let path = place.join(name);
            return match WholeFile::store_new(open.as_ref(), &path, bytes) {
                Err(error) if force && error.kind() == io::ErrorKind::AlreadyExists => {
                    WholeFile::store(&path, bytes, force)
                }
                stored => stored,
            };
        }
        #[cfg(target_os = "linux")]
        if let Some(open) = open {
            return match WholeFile::store_at(open, path, name, bytes, force) {
                // Another run replaced this directory with its own.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    WholeFile::store(path, bytes, force)
                }
                stored => stored,
            };
        }
        WholeFile::store(path, bytes, force)
    }
}

impl NewFolder {
    /// The directory at this path, which need not exist yet.
    pub(crate) fn new(home: &Path, force: bool) -> Self {
        let taken = if force { Taken::Replace } else { Taken::Refuse };
        let (home, stages) = (home.to_owned(), Stages::new(taken));
        Self { home, force, stages, made: RwLock::default() }
    }

    /// Whether a file or link with this name exists.
    pub(crate) fn has(&self, name: &Path) -> bool {
        let place = self.stages.at(&self.home.join(name));
        std::fs::symlink_metadata(place).is_ok_and(|about| !about.is_dir())
    }

    /// Writes a file whose name is a path in the directory.
    pub(crate) fn store(
        &self,
        last: &mut LastFolder,
        name: &Path,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let path = self.home.join(name);
        self.make(name.parent().unwrap_or_else(|| Path::new("")))?;
        last.store(&self.stages, &path, bytes, self.force).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists if self.stages.at(&path).is_dir() => {
                Failure::Run(format!("{}: is a directory", shown(&path)))
            }
            io::ErrorKind::AlreadyExists => Failure::Run(occupied(&path)),
            _ => Failure::io(&path, &error),
        })
    }

    /// Moves everything written to its final location.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.stages.finish()
    }

    /// Creates a subdirectory. Below a link, it would be created at the link's target.
    fn make(&self, folder: &Path) -> Result<(), Failure> {
        if self.made.read().unwrap_or_else(PoisonError::into_inner).contains(folder) {
            return Ok(());
        }
        // One at a time: otherwise, a thread could mistake this thread's directory for one that
        // another program created.
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        self.stages.make_all(&self.home).map_err(|error| Failure::io(&self.home, &error))?;
        let mut path = self.home.clone();
        for part in folder.components() {
            path.push(part);
            if !self.stages.make(&path).map_err(|error| Failure::io(&path, &error))? {
                let why = "a link or file exists at the path of this directory";
                return Err(Failure::Run(format!("{}: refused: {why}", shown(&path))));
            }
        }
        made.insert(folder.to_owned());
        Ok(())
    }
}
