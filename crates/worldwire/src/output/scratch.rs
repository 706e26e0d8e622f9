//! Directories for files that the program writes for its own use while it runs, such as the packets
//! that a page shows.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};

use super::{Failure, reason};

/// A directory that only the user can open. Dropping this value deletes it.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Closed before the directory is deleted, as Windows requires.
    _lock: File,
    folder: TempDir,
}

/// The prefix of these directories' names.
const PREFIX: &str = "worldwire-page-";
/// The file that is locked while the program runs.
const LOCK: &str = "lock";
/// A directory younger than this may not be locked yet.
const NEW: Duration = Duration::from_secs(10);

impl Scratch {
    /// Creates a directory and deletes those of programs that were killed.
    pub(crate) fn create() -> Result<Self, Failure> {
        Self::create_in(&std::env::temp_dir()).map_err(|error| {
            let reason = reason(&error);
            Failure::Run(format!("cannot create a temporary directory for --inspect: {reason}"))
        })
    }

    fn create_in(home: &Path) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(home)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        let own = fs::symlink_metadata(folder.path())?;
        for left in left_behind(home, &own, NEW) {
            tracing::debug!(path = %left.display(), "deleting the directory of a killed program");
            // Another program may be deleting it, too.
            let _ = fs::remove_dir_all(left);
        }
        Ok(Self { _lock: lock, folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The user's directories that no program uses any more.
fn left_behind(home: &Path, own: &Metadata, new: Duration) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let unused = named.map(|entry| entry.path()).filter(|path| {
        let Ok(about) = fs::symlink_metadata(path) else { return false };
        let is_old = || about.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= new));
        let is_unlocked = || File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        about.is_dir() && is_of(&about, own) && is_old() && is_unlocked()
    });
    unused.collect()
}

/// Whether a directory has the same owner as another.
#[cfg(unix)]
fn is_of(about: &Metadata, own: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    about.uid() == own.uid()
}

/// Whether a directory has the same owner as another. Here, temporary directories are private.
#[cfg(not(unix))]
fn is_of(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_killed_programs_left_is_deleted() {
        let home = tempfile::tempdir().expect("there is room");
        let used = Scratch::create_in(home.path()).expect("there is room");
        let own = fs::symlink_metadata(used.path()).expect("it is there");
        let left = home.path().join("worldwire-page-left");
        fs::create_dir(&left).expect("there is room");
        let find = |new| left_behind(home.path(), &own, new);
        // The directory has no lock yet.
        assert!(find(Duration::ZERO).is_empty());
        fs::write(left.join(LOCK), "").expect("there is room");
        fs::create_dir(home.path().join("worldwire-other")).expect("there is room");
        assert!(find(NEW).is_empty());
        assert_eq!(find(Duration::ZERO), [left]);
    }

    #[cfg(unix)]
    #[test]
    fn others_cannot_open_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = tempfile::tempdir().expect("there is room");
        let scratch = Scratch::create_in(home.path()).expect("there is room");
        let mode = fs::metadata(scratch.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
