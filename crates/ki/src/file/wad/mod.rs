//! KIWAD archives, such as `Root.wad`: a table of contents, followed by the data of the files.
//!
//! | offset | type | meaning |
//! | --- | --- | --- |
//! | 0 | 5 bytes | `KIWAD` |
//! | 5 | `u32` | version: 1 or 2 |
//! | 9 | `u32` | count of entries |
//! | 13 | `u8` | flags, from version 2 on: bit 0 map into memory, bit 1 prefetch |
//!
//! An entry consists of `u32` offset from the start of the archive, `u32` size, `u32` compressed
//! size (`0xFFFF_FFFF` if not compressed), `u8` compressed or not, `u32` CRC of the stored bytes,
//! `u32` count of the name's bytes including its NUL, and the name, in UTF-8 with `/`. Compressed
//! data is zlib.
//!
//! ```
//! use worldwire_core::Limits;
//! use worldwire_ki::file::wad::{Archive, Inflater, BuildOptions, build};
//!
//! let bytes = build(&BuildOptions::default(), [("Root.txt", &b"hello wizard"[..])])?;
//! let archive = Archive::parse(&bytes, &Limits::DEFAULT)?;
//! let mut inflater = Inflater::new();
//! let entry = &archive.entries()[0];
//! assert_eq!(archive.read(entry, &mut inflater)?, Some(&b"hello wizard"[..]));
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! To replace a file, build a new archive: [`Archive::packed`] takes the other files as they are
//! stored, and [`Plan`] lays them out again. The example `edit_object` does this.

mod archive;
mod build;
mod diff;
mod table;

pub use archive::{Archive, Inflater};
pub use build::{
    BuildOptions, DEFAULT_LEVEL, MAX_COMPRESSED, Packed, Packer, Plan, build, is_stored_kind,
};
pub use diff::{Change, EntryPair, diff, pairs};
pub use table::{ArchiveFile, Entry, FLAGS, LATEST_VERSION, STORED_SIZE, Table};

/// The CRC of archives: CRC-32 (reflected, `0xEDB8_8320`), starting at 0, without the final
/// inversion.
///
/// ```
/// assert_eq!(worldwire_ki::file::wad::crc(b"123456789"), 0x2dfd_2d88);
/// ```
#[must_use]
pub fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.finish()
}

/// Computes the [`crc`] of bytes in pieces.
#[derive(Clone, Debug)]
pub struct Crc(crc32fast::Hasher);

impl Crc {
    /// Starts with no bytes.
    #[must_use]
    pub fn new() -> Self {
        // The crate inverts the initial value and the result; undo both inversions.
        Self(crc32fast::Hasher::new_with_initial(u32::MAX))
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The CRC of all pieces.
    #[must_use]
    pub fn finish(self) -> u32 {
        !self.0.finalize()
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}
