//! Large files as bytes: mapped into memory, or read where that is not possible.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memmap2::Mmap;

use crate::output::Failure;

/// The bytes of a file.
pub(crate) enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

/// Opens a file whose size is bounded by its format only: 4 GiB and a table.
pub(crate) fn open(path: &Path) -> Result<Bytes, Failure> {
    const MOST: u64 = 8 << 30;
    /// Reading less than this takes less time than mapping it.
    const LARGE: u64 = 128 << 10;
    let fail = |error| Failure::io(path, &error);
    if path.is_dir() {
        return Err(Failure::Run(format!("{}: is a folder, wanted a file", path.display())));
    }
    let file = File::open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    if about.is_file() && (LARGE..=MOST).contains(&about.len()) {
        #[expect(
            unsafe_code,
            reason = "files are mapped for reading only; one that somebody \
                 shortens meanwhile ends the program, as it does with every tool that maps"
        )]
        let mapped = unsafe { Mmap::map(&file) };
        if let Ok(mapped) = mapped {
            // Advice may be refused without harm.
            #[cfg(unix)]
            let _ = mapped.advise(memmap2::Advice::Sequential);
            return Ok(Bytes::Mapped(mapped));
        }
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len().min(LARGE)).unwrap_or(0));
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::Run(format!("{}: larger than {MOST} bytes", path.display())));
    }
    Ok(Bytes::Read(bytes))
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
