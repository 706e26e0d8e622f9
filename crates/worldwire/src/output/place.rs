//! Output targets that `-o` accepts.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{Failure, occupied, shown};
use crate::cli::Target;

/// The target of a result.
#[derive(Debug)]
pub(crate) enum Place {
    /// Standard output.
    Stdout,
    /// A device or a FIFO, which is written to in place.
    Through(PathBuf),
    File(FilePlace),
}

/// A new file, or a replacement. Links in the path are resolved, so a link to the replaced file
/// stays valid.
#[derive(Debug)]
pub(crate) struct FilePlace {
    pub(super) path: PathBuf,
    pub(super) force: bool,
}

impl Place {
    /// The target that the user chose for a result.
    pub(crate) fn of(target: &Target) -> Result<Self, Failure> {
        match &target.output {
            None => Ok(Self::Stdout),
            Some(path) => Self::at(path, target.force),
        }
    }

    /// The target with this name; `-` is standard output. Only files can be overwritten, so only
    /// files need `force`.
    pub(crate) fn at(path: &Path, force: bool) -> Result<Self, Failure> {
        let refuse = |why: &str| Err(Failure::Run(format!("{}: {why}", shown(path))));
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let own = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::File(FilePlace { path: path.to_owned(), force }));
            }
            own => own.map_err(|error| Failure::io(path, &error))?,
        };
        let about = match fs::metadata(path) {
            Err(error) if own.is_symlink() && error.kind() == io::ErrorKind::NotFound => {
                return refuse("is a broken link");
            }
            about => about.map_err(|error| Failure::io(path, &error))?,
        };
        if own.is_symlink() && is_stdout(&about) {
            return Ok(Self::Stdout);
        }
        if about.is_dir() {
            return refuse("is a directory");
        }
        if !about.is_file() {
            return Ok(Self::Through(path.to_owned()));
        }
        if !force {
            return Err(Failure::Run(occupied(path)));
        }
        let path = match own.is_symlink() {
            true => fs::canonicalize(path).map_err(|error| Failure::io(path, &error))?,
            false => path.to_owned(),
        };
        Ok(Self::File(FilePlace { path, force }))
    }

    /// The target for a result that is not written sequentially. It must be a file.
    pub(crate) fn file_at(path: &Path, force: bool) -> Result<FilePlace, Failure> {
        match Self::at(path, force)? {
            Self::File(place) => Ok(place),
            Self::Stdout => Err(Failure::Run("standard output: not a regular file".into())),
            Self::Through(path) => {
                Err(Failure::Run(format!("{}: not a regular file", shown(&path))))
            }
        }
    }
}

/// Whether standard output goes to this file. `/dev/stdout` is a link to it, and other programs may
/// be writing to it, too.
#[cfg(target_os = "linux")]
fn is_stdout(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let stdout = rustix::fs::fstat(io::stdout());
    stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (about.dev(), about.ino()))
}

#[cfg(not(target_os = "linux"))]
fn is_stdout(_: &fs::Metadata) -> bool {
    false
}

impl FilePlace {
    /// The file that would be overwritten: its path with links resolved, and its size.
    pub(crate) fn overwritten(&self) -> Option<(PathBuf, u64)> {
        Some((fs::canonicalize(&self.path).ok()?, fs::metadata(&self.path).ok()?.len()))
    }
}

/// Opens an existing target without creating or truncating anything.
pub(super) fn open_through(path: &Path) -> Result<File, Failure> {
    OpenOptions::new().write(true).open(path).map_err(|error| Failure::io(path, &error))
}
