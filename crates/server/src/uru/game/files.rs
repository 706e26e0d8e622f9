//! The operator's files about ages: age files (`.age`) and state descriptors (`.sdl`).

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::file::secure::{self, Magic, SecureKey};
use worldwire_uru::schema::Descriptors;

use crate::uru::cluster::FileDigests;

/// The largest file, in bytes.
const LONGEST: u64 = 16 << 20;
/// The maximum number of problems to log.
const MAX_PROBLEMS: usize = 20;

/// The files in a shard's data folder: `ages/NAME.age`, and `secure/SDL/*.sdl`, which clients also
/// download. They can be encrypted as in the client. Changed files take effect when the next age
/// starts; running ages keep the old ones.
#[derive(Debug)]
pub(in crate::uru) struct AgeFiles {
    ages: PathBuf,
    sdl: PathBuf,
    droid: SecureKey,
    loaded: Mutex<Option<(Stamps, Arc<Descriptors>)>>,
    digested: Mutex<Option<(Stamps, FileDigests)>>,
}

/// The lengths and modification times of files.
type Stamps = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

impl AgeFiles {
    /// Opens the files below a shard's data directory and creates missing directories.
    pub(in crate::uru) fn open(data: &Path, droid: SecureKey) -> io::Result<Self> {
        let (ages, sdl) = (data.join("ages"), data.join("secure").join("SDL"));
        fs::create_dir_all(&ages)?;
        fs::create_dir_all(&sdl)?;
        let (loaded, digested) = (Mutex::default(), Mutex::default());
        Ok(Self { ages, sdl, droid, loaded, digested })
    }

    /// The age file with this name, or an empty one if it does not exist. Blocks.
    pub(super) fn age(&self, name: &str) -> AgeFile {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
        if name.is_empty() || !name.chars().all(is_name) {
            return AgeFile::default();
        }
        let path = self.ages.join(format!("{name}.age"));
        match self.read(&path) {
            Ok(text) => {
                let (file, problems) = AgeFile::parse(&path.to_string_lossy(), &text);
                for problem in problems.iter().take(MAX_PROBLEMS) {
                    tracing::warn!(%problem, "problem in an age file");
                }
                file
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = path.display();
                tracing::warn!(%path, "no age file: the age's own state will not be saved");
                AgeFile::default()
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "cannot read an age file");
                AgeFile::default()
            }
        }
    }

    /// All descriptors. Blocks.
    pub(super) fn descriptors(&self) -> Arc<Descriptors> {
        let stamps = self.descriptor_stamps();
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, descriptors)) = &*loaded
            && *known == stamps
        {
            return Arc::clone(descriptors);
        }
        let mut texts = Vec::new();
        for path in stamps.keys() {
            match self.read(path) {
                Ok(text) => texts.push((path.to_string_lossy().into_owned(), text)),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "cannot read descriptors");
                }
            }
        }
        let all =
            Descriptors::load(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        for problem in all.problems().iter().take(MAX_PROBLEMS) {
            tracing::warn!(%problem, "problem in descriptors");
        }
        tracing::info!(files = stamps.len(), descriptors = all.len(), "descriptors loaded");
        let all = Arc::new(all);
        *loaded = Some((stamps, Arc::clone(&all)));
        all
    }

    /// Digests of all these files, by which processes find out whether they have the same files. A
    /// file counts as the same whether it is encrypted or not. Blocks.
    pub(in crate::uru) fn digests(&self) -> FileDigests {
        // Age files are opened by name, so they can be symbolic links.
        let ages = stamps(&self.ages, "age", |entry| fs::metadata(entry.path()));
        let found = [("ages", ages.unwrap_or_default()), ("secure/SDL", self.descriptor_stamps())];
        let all = found.iter().flat_map(|(_, stamps)| stamps);
        let all: Stamps = all.map(|(path, stamp)| (path.clone(), *stamp)).collect();
        let mut digested = self.digested.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, digests)) = &*digested
            && *known == all
        {
            return digests.clone();
        }
        let mut files = Vec::with_capacity(all.len());
        for (place, stamps) in &found {
            for path in stamps.keys() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                // No age uses a file that cannot be read.
                let text = self.read(path).unwrap_or_default();
                files.push((format!("{place}/{name}"), Sha256::digest(text).into()));
            }
        }
        files.sort_unstable();
        let digests = FileDigests::of(files);
        *digested = Some((all, digests.clone()));
        digests
    }

    fn descriptor_stamps(&self) -> Stamps {
        stamps(&self.sdl, "sdl", DirEntry::metadata).unwrap_or_default()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = fs::read(path)?;
        let plain = match Magic::detect(&bytes) {
            Some(_) => secure::open(&bytes, Some(&self.droid), LONGEST)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
                .plain()
                .to_vec(),
            None => bytes,
        };
        // Both languages are ASCII, but comments in old files have different encodings.
        Ok(String::from_utf8_lossy(&plain).into_owned())
    }
}

/// The files in a directory whose names have this extension.
fn stamps(
    folder: &Path,
    extension: &str,
    about: impl Fn(&DirEntry) -> io::Result<Metadata>,
) -> io::Result<Stamps> {
    let mut stamps = Stamps::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_meant = path.extension().is_some_and(|end| end.eq_ignore_ascii_case(extension));
        // Ignore a file that is gone by now.
        let Ok(metadata) = about(&entry) else { continue };
        if is_meant && metadata.is_file() && metadata.len() <= LONGEST {
            stamps.insert(path, (metadata.len(), metadata.modified().ok()));
        }
    }
    Ok(stamps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecureKey::from_words([1, 2, 3, 4]);
        let files = AgeFiles::open(folder.path(), key.clone()).unwrap();
        assert_eq!(files.descriptors().len(), 0);
        let sdl = folder.path().join("secure/SDL/Fern.sdl");
        fs::write(&sdl, "STATEDESC Fern { VERSION 1 VAR BOOL open[1] }").unwrap();
        let first = files.descriptors();
        assert_eq!(first.len(), 1);
        assert!(Arc::ptr_eq(&first, &files.descriptors()));
        let two =
            b"STATEDESC Fern { VERSION 1 VAR BOOL open[1] } STATEDESC F { VERSION 1 VAR INT x[1] }";
        let sealed = secure::SecureFile::new(Magic::NotTheDroids, two.to_vec());
        fs::write(&sdl, sealed.seal(&key).unwrap()).unwrap();
        assert_eq!((files.descriptors().len(), first.len()), (2, 1));

        assert_eq!(files.age("Fern"), AgeFile::default());
        fs::write(folder.path().join("ages/Fern.age"), "LingerTime=7\nSequencePrefix=9\n").unwrap();
        let age = files.age("Fern");
        assert_eq!((age.linger_time, age.sequence_prefix), (7, 9));
        // Names cannot leave the directory.
        fs::write(folder.path().join("Out.age"), "LingerTime=7\n").unwrap();
        assert_eq!(files.age("../Out"), AgeFile::default());
    }
    #[test]
    fn digests_tell_whether_processes_have_the_same_files() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = SecureKey::from_words([1, 2, 3, 4]);
        let open = |folder: &Path| AgeFiles::open(folder, key.clone()).unwrap();
        let (here, there) = (open(one.path()), open(other.path()));
        assert_eq!(here.digests(), there.digests());
        let sdl = b"STATEDESC Fern { VERSION 1 VAR BOOL open[1] }";
        fs::write(one.path().join("secure/SDL/Fern.sdl"), sdl).unwrap();
        assert_ne!(here.digests(), there.digests());
        let sealed = secure::SecureFile::new(Magic::NotTheDroids, sdl.to_vec());
        let file = other.path().join("secure/SDL/Fern.sdl");
        fs::write(file, sealed.seal(&key).unwrap()).unwrap();
        assert_eq!(here.digests(), there.digests(), "encrypted or not");
        fs::write(one.path().join("ages/Fern.age"), "LingerTime=7\n").unwrap();
        let with_age = here.digests();
        assert_ne!(with_age, there.digests());
        fs::write(one.path().join("ages/Fern.fni"), "other files do not count").unwrap();
        assert_eq!(here.digests(), with_age);
        #[cfg(unix)]
        {
            let (file, link) =
                (one.path().join("ages/Fern.age"), other.path().join("ages/Fern.age"));
            std::os::unix::fs::symlink(file, link).unwrap();
            assert_eq!(with_age, there.digests(), "age files can be links");
        }
    }
}
