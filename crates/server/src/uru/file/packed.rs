//! Files packed with gzip, kept until they change.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use md5::{Digest as _, Md5};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The cache directory with packed files.
#[derive(Debug)]
pub(super) struct Packed {
    folder: PathBuf,
}

/// The digest and size of a file in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) md5: String,
    pub(super) size: u32,
}

/// A file, and its packed form if the packed form is smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Summed {
    pub(super) plain: Sum,
    pub(super) packed: Option<Sum>,
}

/// Extensions of formats that are already compressed.
const COMPRESSED: [&str; 10] =
    ["ogg", "bik", "webm", "jpg", "jpeg", "png", "zip", "gz", "7z", "mp4"];

impl Packed {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Computes a file's digest and packs it, as `name` with `.gz` appended. The result is
    /// deterministic.
    pub(super) fn pack(&self, file: &Path, name: &Path) -> io::Result<Summed> {
        let bytes = fs::read(file)?;
        let plain = sum(&bytes)?;
        let extension = file.extension().map(|extension| extension.to_ascii_lowercase());
        if COMPRESSED.iter().any(|known| extension.as_ref().is_some_and(|own| own == known)) {
            return Ok(Summed { plain, packed: None });
        }
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
        encoder.write_all(&bytes)?;
        let packed = encoder.finish()?;
        if packed.len() >= bytes.len() {
            return Ok(Summed { plain, packed: None });
        }
        self.write(&self.target(name), &packed)?;
        Ok(Summed { plain, packed: Some(sum(&packed)?) })
    }

    /// Whether the packed file still exists with the recorded size.
    pub(super) fn has(&self, summed: &Summed, name: &Path) -> bool {
        summed.packed.as_ref().is_none_or(|packed| {
            let metadata = fs::metadata(self.target(name));
            metadata.is_ok_and(|metadata| metadata.len() == u64::from(packed.size))
        })
    }

    /// Loads a group's saved state; returns the default if there is none.
    pub(super) fn kept<T: DeserializeOwned + Default>(&self, group: &str) -> T {
        let kept = fs::read(self.index(group));
        kept.ok().and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default()
    }

    /// Saves a group's state for the next run.
    pub(super) fn keep<T: Serialize>(&self, group: &str, known: &T) -> io::Result<()> {
        self.write(&self.index(group), &serde_json::to_vec(known)?)
    }

    fn target(&self, name: &Path) -> PathBuf {
        let mut target = self.folder.join(name).into_os_string();
        target.push(".gz");
        target.into()
    }

    /// The file with a group's state. Clients cannot request files that begin with a dot.
    fn index(&self, group: &str) -> PathBuf {
        self.folder.join(format!(".{group}.json"))
    }

    /// Replaces a file atomically, so that downloads in progress keep the old one.
    fn write(&self, target: &Path, bytes: &[u8]) -> io::Result<()> {
        if fs::read(target).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut temporary = target.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let mut out = File::create(&temporary)?;
        out.write_all(bytes)?;
        drop(out);
        fs::rename(&temporary, target)
    }
}

fn sum(bytes: &[u8]) -> io::Result<Sum> {
    let mut md5 = String::new();
    worldwire_core::value::push_hex(&mut md5, &Md5::digest(bytes));
    let size = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    Ok(Sum { md5, size })
}
