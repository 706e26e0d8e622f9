//! Files packed with gzip, kept until they change.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use md5::{Digest as _, Md5};

/// The folder with what is packed.
#[derive(Debug)]
pub(super) struct Packed {
    folder: PathBuf,
}

/// What a manifest says of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) md5: String,
    pub(super) size: u32,
}

/// A file and its packed form, where that is worth it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summed {
    pub(super) plain: Sum,
    pub(super) packed: Option<Sum>,
}

/// Files that are compressed by themselves.
const COMPRESSED: [&str; 10] =
    ["ogg", "bik", "webm", "jpg", "jpeg", "png", "zip", "gz", "7z", "mp4"];

impl Packed {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sums a file up and packs it, as `name` with `.gz` behind it. The same file always makes the
    /// same bytes.
    ///
    /// # Errors
    /// Those of the system.
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
        let mut target = self.folder.join(name).into_os_string();
        target.push(".gz");
        self.write(Path::new(&target), &packed)?;
        Ok(Summed { plain, packed: Some(sum(&packed)?) })
    }

    /// Whoever reads it meanwhile keeps the old one.
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
