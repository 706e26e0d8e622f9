//! The lock on a SQLite database, regardless of the path that leads to it.
//!
//! The lock on a server's directory is not enough, because the same database can also appear in
//! another directory: through a symbolic or hard link, or as a mounted file. On 64-bit Linux, the
//! lock is on the database itself: on bytes far beyond its end, which SQLite does not use. The
//! system releases the lock when the process ends, however it ends. On other systems, and on file
//! systems without such locks, a file next to the database is locked instead, which detects only
//! symbolic links.
//!
//! The lock belongs to its own open file, and so outlives the database's connections. It must be
//! dropped after them: closing any descriptor of a file releases SQLite's locks on it.

use std::fs::File;
use std::io;
use std::path::Path;

use super::StoreError;
use super::lock::LockFile;
use crate::folder::private_file;

/// The lock on a SQLite database. It is released when dropped, or when the process ends.
#[derive(Debug)]
pub(super) enum DatabaseLock {
    /// A lock on the database itself.
    Inside(File),
    /// A lock on a file next to it.
    Beside(LockFile),
}

impl DatabaseLock {
    /// Creates the database's file if it is missing, and locks it. Fails with
    /// [`StoreError::InUse`] if another process holds the lock, and with [`StoreError::Linked`] if
    /// the file has hard links.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::Database(error.into());
        let file = private_file(path).map_err(failed)?;
        let taken = match range::take(&file).map_err(failed)? {
            Taken::Locked => Ok(Self::Inside(file)),
            Taken::By(holder) => Err(holder),
            Taken::Unsupported => Self::beside(path).map_err(failed)?,
        };
        let lock = taken.map_err(|holder| {
            let holder = format!("{holder}, through another path");
            StoreError::InUse { holder }
        })?;
        match names(path).map_err(failed)? {
            1 => Ok(lock),
            names => Err(StoreError::Linked { file: path.to_owned(), names }),
        }
    }

    /// Locks a file next to the database. The inner error is the process that holds the lock.
    fn beside(path: &Path) -> io::Result<Result<Self, String>> {
        let mut name = std::fs::canonicalize(path)?.into_os_string();
        name.push(".lock");
        let lock = LockFile::take(name.as_ref())?;
        Ok(lock.map(Self::Beside).ok_or_else(|| LockFile::holder(name.as_ref())))
    }
}

impl Drop for DatabaseLock {
    /// Releases the lock. Closing the file is not enough while a child process that is just being
    /// started still has a copy of the descriptor.
    fn drop(&mut self) {
        match self {
            Self::Inside(file) => {
                let _ = range::release(file);
            }
            Self::Beside(lock) => lock.release(),
        }
    }
}

/// The outcome of locking a range of a file.
#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64")),
    allow(dead_code, reason = "there are no such locks")
)]
enum Taken {
    Locked,
    /// Another process holds the lock.
    By(String),
    /// The operating system or the file system does not support such locks.
    Unsupported,
}

/// The number of hard links to a file.
#[cfg(unix)]
fn names(path: &Path) -> io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&std::fs::metadata(path)?))
}

/// Always 1, because the number cannot be read on this system.
#[cfg(not(unix))]
fn names(_: &Path) -> io::Result<u64> {
    Ok(1)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod range {
    use std::fs::{self, File};
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::Taken;
    use crate::store::process_on_this_host;

    /// Where the range begins. A database has at most 2^48 bytes.
    const START: i64 = 1 << 62;
    /// How many times to look for the process that holds the lock, because that process may release
    /// the lock in the meantime.
    const TRIES: u32 = 10;

    /// Locks the range. The range's length is the process's ID, so that others can name the
    /// process.
    pub(super) fn take(file: &File) -> io::Result<Taken> {
        let length = i64::from(std::process::id()).max(1);
        for _ in 0..TRIES {
            match fcntl(file, FcntlArg::F_OFD_SETLK(&range(libc::F_WRLCK, length)?)) {
                Ok(_) => return Ok(Taken::Locked),
                Err(Errno::EAGAIN | Errno::EACCES) => {}
                Err(Errno::EINVAL | Errno::ENOLCK | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                    return Ok(Taken::Unsupported);
                }
                Err(error) => return Err(error.into()),
            }
            let mut found = range(libc::F_WRLCK, length)?;
            fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
            if i32::from(found.l_type) != libc::F_UNLCK {
                return Ok(Taken::By(named(found.l_len)));
            }
        }
        Ok(Taken::By("another process".to_owned()))
    }

    pub(super) fn release(file: &File) -> io::Result<()> {
        // A length of 0 would mean "to the end of the file".
        fcntl(file, FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, 0)?))?;
        Ok(())
    }

    fn range(kind: i32, length: i64) -> io::Result<libc::flock> {
        let short = |number: i32| i16::try_from(number).map_err(io::Error::other);
        Ok(libc::flock {
            l_type: short(kind)?,
            l_whence: short(libc::SEEK_SET)?,
            l_start: START,
            l_len: length,
            l_pid: 0,
        })
    }

    /// Describes the process with this ID. The process may be on another machine that shares the
    /// file, or in another container, where IDs refer to other processes.
    fn named(id: i64) -> String {
        let program = |id: &str| fs::read_to_string(format!("/proc/{id}/comm")).ok();
        match program(&id.to_string()).is_some_and(|name| Some(name) == program("self")) {
            true => process_on_this_host(id),
            false => format!("process {id} on another machine or in another container"),
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod range {
    use std::fs::File;
    use std::io;

    use super::Taken;

    pub(super) fn take(_: &File) -> io::Result<Taken> {
        Ok(Taken::Unsupported)
    }

    pub(super) fn release(_: &File) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn holder(path: &Path) -> String {
        match DatabaseLock::take(path) {
            Err(StoreError::InUse { holder }) => holder,
            other => panic!("{other:?}"),
        }
    }

    fn two_folders() -> (tempfile::TempDir, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "two"].map(|name| {
            fs::create_dir(folder.path().join(name)).unwrap();
            folder.path().join(name).join("db.sqlite")
        });
        (folder, paths)
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn a_database_is_locked_once_through_all_paths() {
        let (_folder, [file, other]) = two_folders();
        let named = format!("process {} on ", std::process::id());
        let first = DatabaseLock::take(&file).unwrap();
        for is_hard in [false, true] {
            match is_hard {
                true => fs::hard_link(&file, &other).unwrap(),
                false => std::os::unix::fs::symlink(&file, &other).unwrap(),
            }
            for path in [&file, &other] {
                let said = holder(path);
                assert!(said.starts_with(&named) && said.ends_with(", through another path"));
            }
            fs::remove_file(&other).unwrap();
        }
        // A child process has such a copy of the descriptor between its fork and the start of its
        // program.
        let DatabaseLock::Inside(inside) = &first else { panic!("{first:?}") };
        let copy = inside.try_clone().unwrap();
        drop(first);
        drop(DatabaseLock::take(&file).unwrap());
        drop(copy);
        // No file is left behind.
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        // SQLite would keep the latest changes in a separate file next to each name.
        fs::hard_link(&file, &other).unwrap();
        let error = DatabaseLock::take(&file).unwrap_err().to_string();
        assert!(error.contains("has 2 names (hard links)"), "{error}");
        fs::remove_file(&other).unwrap();
        DatabaseLock::take(&file).unwrap();
    }

    /// On some systems, this is the only lock.
    #[cfg(unix)]
    #[test]
    fn a_file_beside_the_database_is_found_through_symbolic_links() {
        let (_folder, [file, other]) = two_folders();
        private_file(&file).unwrap();
        std::os::unix::fs::symlink(&file, &other).unwrap();
        let first = DatabaseLock::beside(&other).unwrap().unwrap();
        for path in [&file, &other] {
            let said = DatabaseLock::beside(path).unwrap().unwrap_err();
            assert!(said.starts_with(&format!("process {} on ", std::process::id())), "{said}");
        }
        drop(first);
        drop(DatabaseLock::beside(&file).unwrap().unwrap());
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    /// SQLite locks other bytes of the file.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[tokio::test]
    async fn the_lock_does_not_hinder_sqlite() {
        use crate::store::{Ledger as _, SqliteStore};

        let (_folder, [file, _]) = two_folders();
        let lock = DatabaseLock::take(&file).unwrap();
        for _ in 0..2 {
            let store = SqliteStore::open(&file, String::new()).await.unwrap();
            let at = store.claim().await.unwrap();
            store.commit(at, Default::default()).await.unwrap();
            store.close().await.unwrap();
            // Closing the database did not release the lock.
            holder(&file);
        }
        drop(lock);
        DatabaseLock::take(&file).unwrap();
    }
}
