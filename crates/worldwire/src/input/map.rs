//! Large files as bytes: mapped into memory, or read if mapping is not possible.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memmap2::Mmap;
use worldwire_core::Limits;

use crate::output::{Failure, shown};

pub(crate) enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

/// The maximum size of a file. The size of archives is limited only by the format: 4 GiB plus a
/// table.
const MAX: u64 = 8 << 30;
/// The first bytes of an archive.
const ARCHIVE: &[u8] = b"KIWAD";
/// Below this size, reading is faster than mapping.
const LARGE: u64 = 128 << 10;

/// Opens a large file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Bytes, Failure> {
    let fail = |error| Failure::io(path, &error);
    if path == Path::new("-") {
        return read(std::io::stdin().lock(), 0, path);
    }
    if path.is_dir() {
        return Err(Failure::Run(format!("{}: is a directory, not a file", shown(path))));
    }
    let file = File::open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    if about.len() > MAX {
        return Err(too_large(path, MAX));
    }
    if about.is_file() && about.len() >= LARGE {
        #[expect(
            unsafe_code,
            reason = "files are mapped for reading only; if one is truncated \
                 in the meantime, the program exits with a message, see `output::signals`"
        )]
        let mapped = unsafe { Mmap::map(&file) };
        if let Ok(mapped) = mapped {
            // If the system refuses the advice, no harm is done.
            #[cfg(unix)]
            let _ = mapped.advise(memmap2::Advice::Sequential);
            return Ok(Bytes::Mapped(mapped));
        }
    }
    read(file, about.len(), path)
}

/// Reads files that cannot be mapped, or are too small for it. Input of unknown size may be
/// endless, so it is limited to the largest archive.
fn read(mut from: impl Read, size: u64, path: &Path) -> Result<Bytes, Failure> {
    let fail = |error| Failure::io(path, &error);
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(LARGE)).unwrap_or(0));
    from.by_ref().take(ARCHIVE.len() as u64).read_to_end(&mut bytes).map_err(fail)?;
    let most = match size > 0 || bytes == ARCHIVE {
        true => MAX,
        false => Limits::DEFAULT.file_bytes,
    };
    let rest = (most + 1).saturating_sub(bytes.len() as u64);
    from.take(rest).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > most { Err(too_large(path, most)) } else { Ok(Bytes::Read(bytes)) }
}

fn too_large(path: &Path, most: u64) -> Failure {
    Failure::Run(format!("{}: larger than {most} bytes (file bytes)", super::title(path)))
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::{Bytes, read};

    #[test]
    fn endless_input_is_refused() {
        let Err(failure) = read(io::repeat(0), 0, Path::new("-")) else { panic!("it has no end") };
        let text = format!("{failure:?}");
        assert!(text.contains("standard input: larger than 268435456 bytes"), "{text}");
        let Ok(Bytes::Read(bytes)) = read(&b"ab"[..], 0, Path::new("x")) else { panic!("bytes") };
        assert_eq!(bytes, b"ab");
    }
}
