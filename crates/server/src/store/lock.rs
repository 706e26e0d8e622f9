//! The lock on a server's directory. Its file names the process that holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::process_name;

/// The name of the lock's file in a server's directory.
pub const LOCK_FILE: &str = "server.lock";

/// The longest name of a process that is read, in bytes.
const MAX_NAME: u64 = 512;

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
            Ok(()) => {
                let mut lock = Self { file };
                lock.file.set_len(0)?;
                lock.file.write_all(process_name().as_bytes())?;
                Ok(Some(lock))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The process that holds the lock, for people: `process 4242 on host`, as far as its file can
    /// be read.
    pub fn holder(folder: &Path) -> String {
        let mut name = String::new();
        let file = File::open(folder.join(LOCK_FILE));
        let read = file.and_then(|file| file.take(MAX_NAME).read_to_string(&mut name));
        // Windows does not let others read a locked file.
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_control);
        match read {
            Ok(_) if is_name(&name) => name,
            _ => "another process".to_owned(),
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
        let named = format!("process {} on ", std::process::id());
        assert!(FolderLock::holder(folder.path()).starts_with(&named));
        // What a child process has between its fork and the start of its program.
        let copy = first.as_ref().unwrap().file.try_clone().unwrap();
        drop(first);
        assert!(FolderLock::take(folder.path()).unwrap().is_some());
        drop(copy);
        // A lock of an earlier version, and a file that is not a lock's.
        for text in ["", "a\u{1b}[31mb"] {
            std::fs::write(folder.path().join(LOCK_FILE), text).unwrap();
            assert_eq!(FolderLock::holder(folder.path()), "another process");
        }
    }
}
