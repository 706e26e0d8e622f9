//! Files in the user's cache directory, which save work and can be deleted at any time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::input;
use crate::output::WholeFile;
use crate::settings::cache_folder;

/// The maximum size of all files. The least recently used ones are deleted.
const MAX_BYTES: u64 = 256 << 20;

/// The content of a cached file, if there is one.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    let path = cache_folder()?.join(name);
    if !path.is_file() {
        return None;
    }
    let bytes = input::read(&path).ok()?;
    if let Ok(file) = File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(bytes)
}

/// Caches a file. Without a cache directory or permission to write to it, nothing is cached.
pub(crate) fn store(name: &str, bytes: &[u8]) {
    let Some(folder) = cache_folder() else { return };
    if std::fs::create_dir_all(&folder).is_ok()
        && WholeFile::store(&folder.join(name), bytes, true).is_ok()
    {
        shrink(&folder, MAX_BYTES);
    }
}

/// Deletes the oldest files until the rest have at most this many bytes.
fn shrink(folder: &Path, max: u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok().filter(|about| about.is_file())?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        })
        .collect();
    // Sorted with the newest first.
    files.sort_by(|one, other| other.cmp(one));
    let mut total = 0_u64;
    for (_, size, path) in files {
        total = total.saturating_add(size);
        if total > max {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_files_are_deleted() {
        let folder = tempfile::tempdir().expect("there is room");
        for (name, age) in [("old", 30), ("new", 10), ("middle", 20)] {
            let path = folder.path().join(name);
            std::fs::write(&path, [0; 100]).expect("there is room");
            let file = File::options().append(true).open(&path).expect("it is there");
            let time = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(time).expect("it is ours");
        }
        shrink(folder.path(), 250);
        let left = |name: &str| folder.path().join(name).is_file();
        assert_eq!([left("new"), left("middle"), left("old")], [true, true, false]);
        shrink(folder.path(), 99);
        assert!(!left("new"));
    }
}
