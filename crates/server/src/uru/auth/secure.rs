//! Secure files: Python and SDL, encrypted for clients.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use worldwire_core::path::{PathRules, SafePath};
use worldwire_uru::file::manifest::{FileList, FileListEntry};
use worldwire_uru::file::secure::{Magic, SecureFile, SecureKey};
use worldwire_uru::types::{HiLo, ZStr};

use crate::uru::file::within;

/// The directories that clients can list, and the extensions of files in them.
const DIRECTORIES: [(&str, &str); 2] = [("Python", "pak"), ("SDL", "sdl")];
/// The largest file, in bytes.
const LONGEST: u64 = 64 << 20;
/// The maximum size of encrypted files kept in memory, in bytes.
const MAX_CACHED: usize = 128 << 20;
/// The maximum number of files in a list.
const MAX_FILES: usize = 10_000;

/// The directory that contains the secure files. Plain files are encrypted before they are sent.
pub struct SecureFiles {
    root: PathBuf,
    key: SecureKey,
    cache: Mutex<HashMap<PathBuf, Sealed>>,
}

/// An encrypted file, valid until the stamp of the file on disk changes.
type Sealed = (Stamp, Arc<Vec<u8>>);

/// A file's length and modification time.
type Stamp = (u64, Option<SystemTime>);

impl fmt::Debug for SecureFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureFiles").field("root", &self.root).finish_non_exhaustive()
    }
}

impl SecureFiles {
    /// Opens a directory and creates `Python` and `SDL` in it if they are missing.
    pub fn open(root: &Path, key: SecureKey) -> io::Result<Self> {
        for (directory, _) in DIRECTORIES {
            fs::create_dir_all(root.join(directory))?;
        }
        Ok(Self { root: fs::canonicalize(root)?, key, cache: Mutex::default() })
    }

    /// The key for decrypting the files, which clients receive when they log in.
    pub(super) fn key(&self) -> [u32; 4] {
        self.key.words()
    }

    /// Lists the files in a directory. Fails with `NotFound` for any other directory or extension.
    /// Blocks.
    pub(super) fn list(&self, directory: &str, extension: &str) -> io::Result<FileList<'static>> {
        let known = DIRECTORIES.into_iter().find(|(known, files)| {
            known.eq_ignore_ascii_case(directory) && files.eq_ignore_ascii_case(extension)
        });
        let (directory, extension) = known.ok_or(io::ErrorKind::NotFound)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(directory))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_listed(name, extension)) else {
                continue;
            };
            let metadata = entry.metadata()?;
            if !metadata.is_file() || metadata.len() > LONGEST {
                continue;
            }
            let size = match is_sealed(&entry.path())? {
                true => metadata.len(),
                false => sealed_length(metadata.len()),
            };
            let size = u32::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let name = ZStr::from(&*format!("{directory}\\{name}"));
            entries.push(FileListEntry { name, size: HiLo(size) });
            if entries.len() > MAX_FILES {
                let text = format!("{directory}: too many files");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        entries.sort_by_key(|entry| entry.name.to_text());
        Ok(FileList(entries))
    }

    /// Reads and encrypts a file. Fails with `NotFound` for files that no list includes. Blocks.
    pub(super) fn file(&self, name: &str) -> io::Result<Arc<Vec<u8>>> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let name = name.replace('\\', "/");
        let (directory, file) = name.split_once('/').ok_or_else(not_found)?;
        let known =
            DIRECTORIES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(directory));
        let (directory, extension) = known.ok_or_else(not_found)?;
        if !is_listed(file, extension) {
            return Err(not_found());
        }
        let path = within(&self.root, &Path::new(directory).join(file))?;
        let metadata = fs::metadata(&path)?;
        if metadata.len() > LONGEST {
            return Err(not_found());
        }
        let stamp = (metadata.len(), metadata.modified().ok());
        let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = lock().get(&path)
            && *known == stamp
        {
            return Ok(Arc::clone(bytes));
        }
        let mut bytes = fs::read(&path)?;
        if Magic::detect(&bytes).is_none() {
            let plain = SecureFile::new(Magic::NotTheDroids, bytes);
            bytes = plain.seal(&self.key).map_err(io::Error::other)?;
        }
        let bytes = Arc::new(bytes);
        let mut cache = lock();
        let cached: usize = cache.values().map(|(_, bytes)| bytes.len()).sum();
        if cached + bytes.len() > MAX_CACHED {
            cache.clear();
        }
        cache.insert(path, (stamp, Arc::clone(&bytes)));
        Ok(bytes)
    }
}

/// Whether a directory's list includes a file with this name.
fn is_listed(name: &str, extension: &str) -> bool {
    let own = Path::new(name).extension().and_then(|own| own.to_str());
    own.is_some_and(|own| own.eq_ignore_ascii_case(extension))
        && SafePath::parse_str(name, PathRules::DOWNLOAD)
            .is_ok_and(|path| path.parts().count() == 1)
        && name.encode_utf16().count() < 200
}

/// Whether a file on disk is already encrypted.
fn is_sealed(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    fs::File::open(path)?.take(Magic::BYTES as u64).read_to_end(&mut head)?;
    Ok(Magic::detect(&head).is_some())
}

/// The length of a plain file after encryption: a header, then blocks of eight bytes.
fn sealed_length(plain: u64) -> u64 {
    Magic::BYTES as u64 + 4 + plain.div_ceil(8) * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_are_encrypted_and_listed_with_their_encrypted_size() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecureKey::from_words([1, 2, 3, 4]);
        let files = SecureFiles::open(folder.path(), key.clone()).unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        put("SDL/plain.sdl", b"STATEDESC x");
        put("SDL/empty.sdl", b"");
        let sealed = SecureFile::new(Magic::NotTheDroids, b"already".to_vec());
        let sealed = sealed.seal(&key).unwrap();
        put("SDL/sealed.sdl", &sealed);
        put("SDL/other.txt", b"x");
        put("SDL/.hidden.sdl", b"x");
        let list = files.list("sdl", "SDL").unwrap();
        let names: Vec<_> = list.0.iter().map(|entry| entry.name.to_text()).collect();
        assert_eq!(names, ["SDL\\empty.sdl", "SDL\\plain.sdl", "SDL\\sealed.sdl"]);
        for entry in &list.0 {
            let sent = files.file(&entry.name.to_text()).unwrap();
            assert_eq!(sent.len(), entry.size.0 as usize, "{:?}", entry.name);
        }
        let sent = files.file("SDL/plain.sdl").unwrap();
        let opened = worldwire_uru::file::secure::open_with(&sent, &key, 1000).unwrap();
        assert_eq!(opened.plain(), b"STATEDESC x");
        assert_eq!(*files.file("SDL\\sealed.sdl").unwrap(), sealed);
        assert!(Arc::ptr_eq(&sent, &files.file("SDL\\plain.sdl").unwrap()), "kept in memory");
        put("SDL/plain.sdl", b"STATEDESC longer");
        assert_ne!(files.file("SDL\\plain.sdl").unwrap(), sent);
        for bad in [
            "plain.sdl",
            "SDL\\..\\x.sdl",
            "SDL\\.hidden.sdl",
            "SDL\\other.txt",
            "X\\a.sdl",
            "SDL\\SDL\\plain.sdl",
            "..\\SDL\\plain.sdl",
            "SDL\\missing.sdl",
            "SDL",
        ] {
            assert!(files.file(bad).is_err(), "{bad}");
        }
        assert!(files.list("SDL", "pak").is_err() && files.list("..", "sdl").is_err());
        assert!(files.list("Python", "pak").unwrap().0.is_empty());
    }
}
