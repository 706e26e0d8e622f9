//! The files that clients can download.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use worldwire_core::path::{PathRules, SafePath};
use worldwire_uru::file::manifest::Manifest;

use super::blocking;
use super::manifest::{self, Group};
use super::packed::Packed;
use crate::folder::reason;

/// A directory of files for clients, and their manifests.
///
/// | in the directory | what clients see |
/// | --- | --- |
/// | `NAME.mfs` | the manifest `NAME`, unchanged; file names are relative to the directory |
/// | `NAME/`, without `NAME.mfs` | the manifest `NAME`: every file in it, packed with gzip on demand |
///
/// File names use backslashes or slashes. They cannot leave the folder: `..`, absolute paths,
/// hidden files, and links to other places are refused.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    packed: Packed,
    groups: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Group>>>>,
}

/// The error for a directory that cannot be opened or created.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {}", reason(error))]
pub struct LibraryError {
    path: String,
    error: io::Error,
}

/// The source of a manifest.
enum Source {
    List(PathBuf),
    Folder(PathBuf),
}

impl Library {
    /// Opens a directory of files, and a cache directory for packed files. Both are created if they
    /// are missing.
    pub fn open(root: &Path, cache: &Path) -> Result<Self, LibraryError> {
        let made = |path: &Path| {
            fs::create_dir_all(path)
                .and_then(|()| fs::canonicalize(path))
                .map_err(|error| LibraryError { path: path.display().to_string(), error })
        };
        let (root, cache) = (made(root)?, made(cache)?);
        Ok(Self { root, packed: Packed::new(cache), groups: Mutex::default() })
    }

    /// The manifest of a group. It is rebuilt if files have changed; further requests wait until
    /// that is done. Fails with `NotFound` for an unknown group or an invalid name.
    pub(super) async fn manifest(
        self: &Arc<Self>,
        group: &str,
    ) -> io::Result<Arc<Manifest<'static>>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if group.is_empty() || !group.chars().all(is_name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (library, name) = (Arc::clone(self), group.to_owned());
        // Only existing groups are remembered, so clients cannot fill the map.
        blocking(move || library.source(&name).map(drop)).await?;
        let known = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(groups.entry(group.to_owned()).or_default())
        };
        let mut known = known.lock_owned().await;
        let (library, name) = (Arc::clone(self), group.to_owned());
        blocking(move || match library.source(&name)? {
            Source::List(file) => manifest::listed(&mut known, &file),
            Source::Folder(folder) => {
                manifest::of_folder(&mut known, &name, &folder, &library.packed)
            }
        })
        .await
    }

    /// The source of a manifest. Names are case-sensitive, even on file systems that ignore case.
    /// Blocks.
    fn source(&self, group: &str) -> io::Result<Source> {
        let list = format!("{group}.mfs");
        let mut found = Err(io::ErrorKind::NotFound.into());
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name() == *list && entry.path().is_file() {
                return Ok(Source::List(entry.path()));
            }
            if entry.file_name() == *group && entry.path().is_dir() {
                found = Ok(Source::Folder(entry.path()));
            }
        }
        found
    }

    /// The path of a file that a client requests. Fails with `NotFound` if the name leaves the
    /// directory. Blocks.
    pub(super) fn find(&self, name: &str) -> io::Result<PathBuf> {
        let path = SafePath::parse_str(name, PathRules::DOWNLOAD);
        let relative = path.map_err(|_| io::ErrorKind::NotFound)?.to_path_buf();
        match within(&self.root, &relative) {
            Ok(path) => Ok(path),
            Err(_) => within(self.packed.folder(), &relative),
        }
    }
}

/// Finds a file below a canonical root and refuses links that leave it.
pub(in crate::uru) fn within(root: &Path, relative: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(root.join(relative))?;
    if path.starts_with(root) && path.is_file() {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("files"), folder.path().join("cache"));
        let library = Library::open(&root, &cache).unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        fs::write(root.join("open"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("out")).unwrap();
        std::os::unix::fs::symlink("open", root.join("in")).unwrap();
        assert!(library.find("open").is_ok() && library.find("in").is_ok());
        assert!(library.find("out").is_err() && library.find("missing").is_err());
    }
}
