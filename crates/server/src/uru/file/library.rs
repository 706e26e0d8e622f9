//! The files that clients may have.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::file::name::relative;

use super::blocking;
use super::manifest::{self, Group};
use super::packed::Packed;

/// A folder of files for clients, and what is made of them.
///
/// | in the folder | what clients see |
/// | --- | --- |
/// | `NAME.mfs` | the manifest `NAME`, as it stands there; files are named from the folder on |
/// | `NAME/`, without `NAME.mfs` | the manifest `NAME`: every file in it, packed with gzip on demand |
///
/// Names go with backslashes or slashes. What a client names stays in the folder: no `..`, no
/// absolute paths, no hidden files, no links that lead out of it.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    packed: Packed,
    groups: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Group>>>>,
}

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct LibraryError {
    path: String,
    error: io::Error,
}

/// What a manifest is made of.
enum Source {
    List(PathBuf),
    Folder(PathBuf),
}

impl Library {
    /// The files of a folder. What is packed goes to another one. Both are made if they are
    /// missing.
    ///
    /// # Errors
    /// Those of the system, with the folder.
    pub fn open(root: &Path, cache: &Path) -> Result<Self, LibraryError> {
        let made = |path: &Path| {
            fs::create_dir_all(path)
                .and_then(|()| fs::canonicalize(path))
                .map_err(|error| LibraryError { path: path.display().to_string(), error })
        };
        let (root, cache) = (made(root)?, made(cache)?);
        Ok(Self { root, packed: Packed::new(cache), groups: Mutex::default() })
    }

    /// The manifest of a group. It is made anew when its files have changed; whoever asks for it
    /// meanwhile waits.
    ///
    /// # Errors
    /// `NotFound` for a group that is not there or a name that is none; those of the system.
    pub(super) async fn manifest(
        self: &Arc<Self>,
        group: &str,
    ) -> io::Result<Arc<Manifest<'static>>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if group.is_empty() || !group.chars().all(is_name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (library, name) = (Arc::clone(self), group.to_owned());
        // Only groups that are there are remembered, so nobody can make many of them.
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

    /// What a manifest is made of. Names are compared as they stand on the disk, on systems too
    /// that do not care about case. Blocks.
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

    /// Where a file is that a client names. Blocks.
    ///
    /// # Errors
    /// `NotFound`, also for names that lead anywhere else.
    pub(super) fn find(&self, name: &str) -> io::Result<PathBuf> {
        let relative = relative(name).ok_or(io::ErrorKind::NotFound)?;
        match within(&self.root, &relative) {
            Ok(path) => Ok(path),
            Err(_) => within(self.packed.folder(), &relative),
        }
    }
}

/// An existing file below a canonical root; links may not lead out.
fn within(root: &Path, relative: &Path) -> io::Result<PathBuf> {
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
    fn links_do_not_lead_out() {
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
