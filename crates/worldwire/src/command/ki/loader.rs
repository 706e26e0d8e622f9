//! Reading files of archives on several threads, within one bound of memory.

use worldwire_core::Result;
use worldwire_ki::file::wad::{Archive, Entry, Inflater};

use crate::command::memory::{Memory, Share};

/// What a thread takes to read: of large files, only the one at hand is in memory.
#[derive(Debug)]
pub(crate) struct Loader<'m> {
    inflater: Inflater,
    /// What all threads have, unless there is only one.
    memory: Option<&'m Memory>,
    /// How many bytes of memory a byte of a file takes.
    times: u64,
    share: Option<Share<'m>>,
}

impl<'m> Loader<'m> {
    /// How many times its own size an object takes, that is decoded and shown.
    pub(crate) const OBJECT: u64 = 32;

    /// For one of several threads, whose work on a file takes `times` its size.
    pub(crate) fn new(memory: &'m Memory, times: u64) -> Self {
        Self { inflater: Inflater::new(), memory: Some(memory), times, share: None }
    }

    /// For the only one.
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
        /// As much is looked at.
        const HEAD: usize = 4 << 10;
        /// It takes longer to begin twice than to read this to its end.
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

    /// Lets the last file go, and waits until there is memory for one of this size.
    pub(crate) fn make_room(&mut self, size: u64) {
        self.inflater.release();
        self.share = None;
        self.share = self.memory.map(|memory| memory.take(size.saturating_mul(self.times)));
    }
}
