//! The lock on a server's directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The name of the lock's file in a server's directory.
pub const LOCK_FILE: &str = "server.lock";

/// The lock on a server's directory. It is released when dropped, or when the process ends.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
}

impl FolderLock {
    /// Locks the directory. Returns `None` if another process holds the lock.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(folder.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for FolderLock {
    /// Unlocks. Closing the file is not enough while a child process that is just being started
    /// still has a copy of it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
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
        // What a child process has between its fork and the start of its program.
        let copy = first.as_ref().unwrap().file.try_clone().unwrap();
        drop(first);
        assert!(FolderLock::take(folder.path()).unwrap().is_some());
        drop(copy);
    }
}
