//! `worldwire ki wad create` and writing archives in general.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;

use indicatif::ProgressBar;
use rayon::ThreadPool;
use worldwire_core::Error;
use worldwire_ki::file::wad::{
    Archive, BuildOptions, Crc, MAX_COMPRESSED, Packed, Packer, Plan, is_stored_kind,
};

use super::changes::NewFiles;
use super::contents::{self, Content, Contents};
use super::patterns::Patterns;
use crate::cli::{Common, KiWadPacking, KiWadTarget};
use crate::command::work;
use crate::input::map;
use crate::output::{
    Failure, FilePlace, Place, SeekableOutput, counted, printable, say, shown, spent,
};

/// Larger files are copied in pieces if they are stored uncompressed.
const COPIED: u64 = 8 << 20;
/// Files compressed at the same time have at most this many bytes in total, unless there is only
/// one.
const WINDOW_BYTES: u64 = 64 << 20;

/// An archive without files. Creating an archive means updating this one.
const EMPTY: &[u8] = b"KIWAD\x01\0\0\0\0\0\0\0";

pub(super) fn create(
    from: &NewFiles<'_>,
    version: u32,
    flags: u8,
    packing: &KiWadPacking,
    target: &KiWadTarget,
    common: &Common,
) -> Result<(), Failure> {
    let start = Instant::now();
    let target = place(target)?;
    let nothing: Archive<'_> = super::parse(Path::new("nothing"), EMPTY, &super::LIMITS)?;
    let mut contents = Contents::new();
    contents::add(from.read(&nothing, &target, packing, common)?, &mut contents)?;
    let count = contents.len();
    let options = BuildOptions { version, flags, level: packing.level };
    let size = write(&options, contents, packing, target, common)?;
    if !common.quiet {
        let (files, size, time) = (counted(count, "file"), counted(size, "byte"), spent(start));
        say(format_args!("{files} packed; {size} in {time}"));
    }
    Ok(())
}

/// The path of the archive. An unusable path is refused before anything is read.
pub(super) fn place(target: &KiWadTarget) -> Result<FilePlace, Failure> {
    Place::file_at(&target.output, target.force)
}

/// Writes an archive and returns its size.
pub(super) fn write(
    options: &BuildOptions,
    contents: Contents<'_>,
    packing: &KiWadPacking,
    target: FilePlace,
    common: &Common,
) -> Result<u64, Failure> {
    let names = contents.keys().map(|name| String::from_utf8_lossy(name));
    let stored = Patterns::new(&packing.store, names)?;
    let new = contents.iter().filter(|(_, content)| !matches!(content, Content::Kept(_)));
    stored.choose(new, |(name, _)| String::from_utf8_lossy(name), "to be packed")?;
    let names = contents.keys().map(|name| Cow::Owned(name.clone())).collect();
    let plan = Plan::new(options, names).map_err(failed)?;
    let pool = work::pool(packing.threads)?;
    let bar = work::progress(contents.len(), common);
    let contents: Vec<_> = contents.into_iter().collect();
    let work = Work { pool, level: options.level, stored, bar };
    work.check_size(plan.table_size(), &contents)?;
    let mut output = SeekableOutput::open(target)?;
    output.skip(plan.table_size())?;
    // One window is written while the next one is compressed; a third is never queued.
    let (sender, receiver) = sync_channel(0);
    let (packed, written) = thread::scope(|scope| {
        let writer = scope.spawn(move || write_windows(plan, output, &receiver));
        let mut rest = &contents[..];
        let mut packed = Ok(());
        while !rest.is_empty() && packed.is_ok() {
            let (window, behind) = rest.split_at(window(rest));
            packed = work.pack(window).map(|window| {
                // If the receiver is gone, the writer has failed and returns the reason.
                rest = if sender.send(window).is_ok() { behind } else { &[] };
            });
        }
        drop(sender);
        let written = writer.join();
        (packed, written.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    work.bar.finish_and_clear();
    packed?;
    let (plan, output) = written?;
    let size = plan.size();
    output.finish(&plan.finish().map_err(failed)?)?;
    Ok(size)
}

/// A file prepared for the archive.
enum Part<'c> {
    Packed(Packed<'c>),
    /// Stored uncompressed and too large to hold in memory.
    Copied(&'c Path, u64),
}

type Window<'c> = Vec<Part<'c>>;

fn write_windows<'n>(
    mut plan: Plan<'n>,
    mut output: SeekableOutput,
    windows: &Receiver<Window<'_>>,
) -> Result<(Plan<'n>, SeekableOutput), Failure> {
    for part in windows.iter().flatten() {
        match part {
            Part::Packed(packed) => {
                plan.add(&packed).map_err(failed)?;
                output.write(&packed.bytes)?;
            }
            Part::Copied(path, size) => {
                let crc = copy(path, size, &mut output)?;
                plan.add_stored(size, crc).map_err(failed)?;
            }
        }
    }
    Ok((plan, output))
}

/// Copies a file in pieces and returns its CRC.
fn copy(path: &Path, size: u64, output: &mut SeekableOutput) -> Result<u32, Failure> {
    /// The number of bytes read at a time.
    const PIECE: usize = 1 << 20;
    let fail = |error| Failure::io(path, &error);
    let mut file = File::open(path).map_err(fail)?.take(size);
    let (mut crc, mut left, mut room) = (Crc::new(), size, vec![0; PIECE]);
    while left > 0 {
        let count = file.read(&mut room).map_err(fail)?;
        let piece = room.get(..count).filter(|piece| !piece.is_empty()).ok_or_else(|| {
            let found = size - left;
            Failure::Run(format!("{}: wanted {size} bytes, found {found}", shown(path)))
        })?;
        crc.update(piece);
        output.write(piece)?;
        left -= piece.len() as u64;
    }
    Ok(crc.finish())
}

/// The number of files to compress at the same time.
fn window(contents: &[(Vec<u8>, Content<'_>)]) -> usize {
    let mut bytes = 0_u64;
    let fits = contents.iter().take_while(|(_, content)| {
        bytes += content.work();
        bytes <= WINDOW_BYTES
    });
    fits.count().max(1)
}

/// Shared state of the compressing threads.
struct Work<'w> {
    pool: ThreadPool,
    level: u8,
    stored: Patterns<'w>,
    bar: ProgressBar,
}

impl Work<'_> {
    /// Refuses files, before reading them, that cannot fit into an archive at any compression.
    fn check_size(&self, table: u64, contents: &[(Vec<u8>, Content<'_>)]) -> Result<(), Failure> {
        let mut end = table;
        for (name, content) in contents {
            let stored = match content {
                Content::File(_, size) if self.is_stored(name, *size) => *size,
                Content::File(..) | Content::Made(_) => 0,
                Content::Kept(packed) => packed.bytes.len() as u64,
            };
            let most = u64::from(u32::MAX);
            if stored >= most || end > most {
                let subject = printable(&String::from_utf8_lossy(name));
                let (what, found) = match stored >= most {
                    true => ("a file of less than 4 GiB", stored),
                    false => ("an archive whose last file begins below 4 GiB", end),
                };
                return Err(Failure::Run(format!("{subject}: wanted {what}, found {found}")));
            }
            end = end.saturating_add(stored);
        }
        Ok(())
    }

    /// Whether a file is stored uncompressed regardless of its content.
    fn is_stored(&self, name: &[u8], size: u64) -> bool {
        size > MAX_COMPRESSED || self.is_chosen(name)
    }

    fn is_chosen(&self, name: &[u8]) -> bool {
        is_stored_kind(name) || self.stored.is_match(&String::from_utf8_lossy(name))
    }

    fn pack<'c>(&self, window: &'c [(Vec<u8>, Content<'c>)]) -> Result<Window<'c>, Failure> {
        let size = |(_, content): &(Vec<u8>, Content<'_>)| content.work();
        let pack = |packer: &mut Result<Packer, Error>, (name, content): &'c (Vec<u8>, _)| {
            let packed = self.one(packer, name, content);
            self.bar.inc(1);
            packed
        };
        let packed = work::share(&self.pool, window, size, || Packer::new(self.level), pack);
        packed.into_iter().collect()
    }

    fn one<'c>(
        &self,
        packer: &mut Result<Packer, Error>,
        name: &[u8],
        content: &'c Content<'c>,
    ) -> Result<Part<'c>, Failure> {
        let packer = packer.as_mut().map_err(|error| Failure::Run(error.to_string()))?;
        let mapped;
        let file: &[u8] = match content {
            Content::Kept(packed) => {
                let bytes = Cow::Borrowed(&*packed.bytes);
                return Ok(Part::Packed(Packed { bytes, ..*packed }));
            }
            Content::File(path, size) if *size > COPIED && self.is_stored(name, *size) => {
                return Ok(Part::Copied(path, *size));
            }
            Content::File(path, _) => {
                mapped = map::open(path)?;
                &mapped
            }
            Content::Made(bytes) => bytes,
        };
        let packed = packer.pack(file, self.is_chosen(name)).map_err(|error| {
            let name = printable(&String::from_utf8_lossy(name));
            Failure::Run(format!("{name}: {error}"))
        })?;
        let bytes = Cow::Owned(packed.bytes.into_owned());
        Ok(Part::Packed(Packed { bytes, ..packed }))
    }
}

fn failed(error: Error) -> Failure {
    Failure::Run(printable(&error.to_string()))
}

impl SeekableOutput {
    /// Reserves space for the table at the start.
    fn skip(&mut self, size: u64) -> Result<(), Failure> {
        self.with(|file| file.seek(SeekFrom::Start(size)).map(drop))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.with(|file| file.write_all(bytes))
    }

    /// Writes the table into the reserved space and gives the complete archive its name.
    fn finish(mut self, head: &[u8]) -> Result<(), Failure> {
        self.with(|file| -> io::Result<()> {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(head)
        })?;
        self.keep()
    }
}
