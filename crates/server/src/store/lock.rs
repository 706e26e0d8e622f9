//! The lock on a server's directory and on the SQLite database in it. A file in the directory names
//! the process that holds the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::database_lock::DatabaseLock;
use super::{StoreError, process_name};
use crate::folder::blocking;

/// The name of the lock file in a server's directory.
pub const LOCK_FILE: &str = "server.lock";

/// The maximum number of bytes that are read as a process's name.
const MAX_NAME: u64 = 512;

/// The lock on a server's directory. It is released when dropped, or when the process ends.
/// Dropping it also removes the lock file, except on Windows.
#[derive(Debug)]
pub struct FolderLock {
    /// The lock on the SQLite database in the directory, once there is one.
    database: Option<DatabaseLock>,
    lock: LockFile,
    /// The directory, if it was created to be locked.
    new_folder: Option<PathBuf>,
}

impl FolderLock {
    /// Locks the directory. Returns `None` if another process holds the lock.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let lock = LockFile::take(&folder.join(LOCK_FILE))?;
        Ok(lock.map(|lock| Self { database: None, lock, new_folder: None }))
    }

    /// Creates the directory if it is missing, and locks it. Dropping the lock removes the
    /// directory if this call created it and it is still empty.
    pub fn create(folder: &Path) -> io::Result<Option<Self>> {
        let is_new = !folder.exists();
        fs::create_dir_all(folder)?;
        let mut lock = Self::take(folder)?;
        if let Some(lock) = &mut lock {
            lock.new_folder = is_new.then(|| folder.to_owned());
        }
        Ok(lock)
    }

    /// Also locks the SQLite database in the directory, unless it is locked already: other
    /// directories may have links to it. The file is created if it is missing. The database must be
    /// closed before the lock is dropped.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Linked`], or the operating system's error.
    pub(crate) async fn add_database(&mut self, file: &Path) -> Result<(), StoreError> {
        if self.database.is_none() {
            let file = file.to_owned();
            self.database = Some(blocking(move || DatabaseLock::take(&file)).await?);
        }
        Ok(())
    }

    /// The name of the process that holds the lock: `process 4242 on host`, if the lock file can be
    /// read.
    pub fn holder(folder: &Path) -> String {
        LockFile::holder(&folder.join(LOCK_FILE))
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.database = None;
        self.lock.release();
        if let Some(folder) = &self.new_folder {
            // This fails if the directory is not empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A locked file that names the process that holds the lock. It must be
/// [released](Self::release) explicitly.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Creates the file if it is missing, and locks it. Returns `None` if another process holds the
    /// lock.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).write(true).open(path)?;
            match file.try_lock() {
                // The last holder removed the file after it was opened here.
                Ok(()) if !is_at(&file, path)? => {}
                Ok(()) => {
                    let lock = Self { file, path: path.to_owned() };
                    let mut file = &lock.file;
                    let named = file.set_len(0);
                    let named = named.and_then(|()| file.write_all(process_name().as_bytes()));
                    return match named {
                        Ok(()) => Ok(Some(lock)),
                        Err(error) => {
                            lock.release();
                            Err(error)
                        }
                    };
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The name of the process that holds the lock.
    pub(super) fn holder(path: &Path) -> String {
        let mut name = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_NAME).read_to_string(&mut name));
        // Windows does not let other processes read a locked file.
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_control);
        match read {
            Ok(_) if is_name(&name) => name,
            _ => "another process".to_owned(),
        }
    }

    /// Unlocks the file and, except on Windows, removes it. Closing the file is not enough while a
    /// child process that is just being started still has a copy of the descriptor.
    pub(super) fn release(&self) {
        if cfg!(unix) {
            // Remove the file while it is still locked, because afterwards it may belong to another
            // process.
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Whether a path still leads to an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lock files are never removed on this system, so the path still leads to the file.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        assert!(first.is_some());
        assert!(FolderLock::take(folder.path()).unwrap().is_none());
        let named = format!("process {} on ", std::process::id());
        assert!(FolderLock::holder(folder.path()).starts_with(&named));
        // A child process has such a copy of the descriptor between its fork and the start of its
        // program.
        let copy = first.as_ref().unwrap().lock.file.try_clone().unwrap();
        drop(first);
        assert!(FolderLock::take(folder.path()).unwrap().is_some());
        drop(copy);
        // A lock file from an earlier version, and a file that is not a lock file.
        for text in ["", "a\u{1b}[31mb"] {
            fs::write(folder.path().join(LOCK_FILE), text).unwrap();
            assert_eq!(FolderLock::holder(folder.path()), "another process");
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_left_of_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| folder.path().join(name));
        fs::create_dir(&old).unwrap();
        for used in [&new, &old] {
            let lock = FolderLock::create(used).unwrap().unwrap();
            assert!(FolderLock::create(used).unwrap().is_none());
            assert!(used.join(LOCK_FILE).exists());
            drop(lock);
            assert!(!used.join(LOCK_FILE).exists());
        }
        assert!(!new.exists() && old.exists());
        // A directory that has been used is kept.
        let lock = FolderLock::create(&new).unwrap().unwrap();
        fs::write(new.join("shard.toml"), "").unwrap();
        drop(lock);
        assert!(new.join("shard.toml").exists());
    }

    /// A process that opens the file just before the holder removes it must not mistake that file
    /// for the lock.
    #[cfg(unix)]
    #[test]
    fn a_removed_file_is_not_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        let first = FolderLock::take(folder.path()).unwrap().unwrap();
        let opened = File::open(&path).unwrap();
        assert!(is_at(&opened, &path).unwrap());
        drop(first);
        assert!(!is_at(&opened, &path).unwrap());
        let _second = FolderLock::take(folder.path()).unwrap().unwrap();
        assert!(!is_at(&opened, &path).unwrap());
    }
}
