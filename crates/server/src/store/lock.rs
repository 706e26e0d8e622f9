//! Which process has a server's folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The file of the lock in a server's folder.
pub const LOCK_FILE: &str = "server.lock";

/// A server's folder, taken. Ends when it is dropped, and with the process, however that ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder, unless another process has it: then there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(folder.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        assert!(first.is_some());
        assert!(FolderLock::take(folder.path()).unwrap().is_none());
        drop(first);
        assert!(FolderLock::take(folder.path()).unwrap().is_some());
    }
}
