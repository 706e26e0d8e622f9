//! Reads files from archives on several threads, within a shared memory limit.

use worldwire_core::Result;
use worldwire_ki::file::wad::{Archive, Entry, Inflater};

use crate::command::memory::{Memory, Share};

/// A thread's buffer for reading. Only one large file is in memory at a time.
#[derive(Debug)]
pub(crate) struct Loader<'m> {
    inflater: Inflater,
    /// The memory shared by all threads, if there are several.
    memory: Option<&'m Memory>,
    /// The bytes of memory needed per byte of a file.
    times: u64,
    share: Option<Share<'m>>,
}

impl<'m> Loader<'m> {
    /// The memory needed to decode and show an object, as a multiple of its size.
    pub(crate) const OBJECT: u64 = 32;

    /// A loader for one of several threads. Each file needs memory of `times` times its size.
    pub(crate) fn new(memory: &'m Memory, times: u64) -> Self {
        Self { inflater: Inflater::new(), memory: Some(memory), times, share: None }
    }

    /// A loader for a single thread.
    pub(crate) fn alone() -> Self {
        Self { inflater: Inflater::new(), memory: None, times: 1, share: None }
    }

    /// The file of an entry; see [`Archive::read`].
    pub(crate) fn read<'b>(
        &'b mut self,
        archive: &Archive<'b>,
        entry: &Entry<'_>,
    ) -> Result<Option<&'b [u8]>> {
        self.make_room(u64::from(entry.size));
        archive.read(entry, &mut self.inflater)
    }

    /// Like [`read`](Self::read), but only if the first 4 KiB (fewer in shorter files) are
    /// accepted; otherwise `None`.
    pub(crate) fn read_if<'b>(
        &'b mut self,
        archive: &Archive<'b>,
        entry: &Entry<'_>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<&'b [u8]>> {
        /// The number of bytes passed to the check.
        const HEAD: usize = 4 << 10;
        /// Below this size, reading the whole file is faster than starting twice.
        const SMALL: u32 = 64 << 10;
        if entry.size > SMALL {
            let head = archive.head(entry, HEAD, &mut self.inflater)?;
            if !head.is_some_and(&is_wanted) {
                return Ok(None);
            }
            return self.read(archive, entry);
        }
        Ok(self.read(archive, entry)?.filter(|file| is_wanted(file)))
    }

    /// Releases the previous file and waits until there is memory for one of this size.
    pub(crate) fn make_room(&mut self, size: u64) {
        self.inflater.release();
        self.share = None;
        self.share = self.memory.map(|memory| memory.take(size.saturating_mul(self.times)));
    }
}
