//! `worldwire ki wad create` and `update`.

use std::borrow::Cow;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use indicatif::ProgressBar;
use rayon::ThreadPool;
use worldwire_core::Error;
use worldwire_ki::file::wad::{Archive, BuildOptions, Packed, Packer, Plan, is_stored_kind};

use super::contents::{Content, Contents, add_folder, keep};
use super::patterns::Patterns;
use crate::cli::{Common, KiWadPacking, KiWadTarget};
use crate::command::work;
use crate::input::map;
use crate::output::{Failure, FilePlace, Place, SeekableOutput, printable, shown};

/// The files that are packed at the same time have at most so many bytes, or are one.
const WINDOW_BYTES: u64 = 64 << 20;

pub(super) fn create(
    folder: &Path,
    version: u32,
    flags: u8,
    packing: &KiWadPacking,
    target: &KiWadTarget,
    common: &Common,
) -> Result<(), Failure> {
    let target = place(target)?;
    let mut contents = Contents::new();
    add_folder(folder, &target, &mut contents, common)?;
    write(&BuildOptions { version, flags, level: packing.level }, contents, packing, target, common)
}

pub(super) fn update(
    path: &Path,
    from: Option<&Path>,
    remove: &[String],
    packing: &KiWadPacking,
    target: &KiWadTarget,
    common: &Common,
) -> Result<(), Failure> {
    let target = place(target)?;
    let bytes = map::open(path)?;
    let archive: Archive<'_> = super::parse(path, &bytes, &super::LIMITS)?;
    let mut contents = Contents::new();
    keep(path, &archive, remove, &mut contents)?;
    if let Some(folder) = from {
        add_folder(folder, &target, &mut contents, common)?;
    }
    let (version, flags) = (archive.table().version, archive.table().flags);
    write(&BuildOptions { version, flags, level: packing.level }, contents, packing, target, common)
}

/// Where the archive goes. What is no place for one is refused before anything is read.
fn place(target: &KiWadTarget) -> Result<FilePlace, Failure> {
    Place::file_at(&target.output, target.force)
}

fn write(
    options: &BuildOptions,
    contents: Contents<'_>,
    packing: &KiWadPacking,
    target: FilePlace,
    common: &Common,
) -> Result<(), Failure> {
    let stored = Patterns::new(&packing.store)?;
    let new = contents.iter().filter(|(_, content)| matches!(content, Content::File(..)));
    stored.choose(new, |(name, _)| String::from_utf8_lossy(name), "to be packed")?;
    let names = contents.keys().map(|name| Cow::Owned(name.clone())).collect();
    let plan = Plan::new(options, names).map_err(failed)?;
    let pool = work::pool(packing.threads)?;
    let mut output = SeekableOutput::open(target)?;
    output.skip(plan.table_size())?;
    let bar = super::progress(contents.len(), common);
    let contents: Vec<_> = contents.into_iter().collect();
    let work = Work { pool, level: options.level, stored, bar };
    // A window is written while the next one is packed; no third one waits between them.
    let (sender, receiver) = sync_channel(0);
    let (packed, written) = thread::scope(|scope| {
        let writer = scope.spawn(move || write_windows(plan, output, &receiver));
        let mut rest = &contents[..];
        let mut packed = Ok(());
        while !rest.is_empty() && packed.is_ok() {
            let (window, behind) = rest.split_at(window(rest));
            packed = work.pack(window).map(|window| {
                // Without its reader the writer has failed, and says why.
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
    output.finish(&plan.finish().map_err(failed)?)
}

type Window<'c> = Vec<Packed<'c>>;

/// Writes all windows in their order, behind each other.
fn write_windows<'n>(
    mut plan: Plan<'n>,
    mut output: SeekableOutput,
    windows: &Receiver<Window<'_>>,
) -> Result<(Plan<'n>, SeekableOutput), Failure> {
    for packed in windows.iter().flatten() {
        plan.add(&packed).map_err(failed)?;
        output.write(&packed.bytes)?;
    }
    Ok((plan, output))
}

/// How many of the files are packed at the same time.
fn window(contents: &[(Vec<u8>, Content<'_>)]) -> usize {
    let mut bytes = 0_u64;
    let fits = contents.iter().take_while(|(_, content)| {
        bytes += content.work();
        bytes <= WINDOW_BYTES
    });
    fits.count().max(1)
}

/// What packing takes.
struct Work<'w> {
    pool: ThreadPool,
    level: u8,
    stored: Patterns<'w>,
    bar: ProgressBar,
}

impl Work<'_> {
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
    ) -> Result<Packed<'c>, Failure> {
        let packer = packer.as_mut().map_err(|error| Failure::Run(error.to_string()))?;
        let path = match content {
            Content::File(path, _) => path,
            Content::Kept(packed) => {
                let bytes = Cow::Borrowed(&*packed.bytes);
                return Ok(Packed { bytes, ..*packed });
            }
        };
        let file = map::open(path)?;
        let store = is_stored_kind(name) || self.stored.is_match(&String::from_utf8_lossy(name));
        let packed = packer.pack(&file, store);
        let packed = packed.map_err(|error| Failure::Run(format!("{}: {error}", shown(path))))?;
        Ok(Packed { bytes: Cow::Owned(packed.bytes.into_owned()), ..packed })
    }
}

fn failed(error: Error) -> Failure {
    Failure::Run(printable(&error.to_string()))
}

impl SeekableOutput {
    /// Leaves a gap at the start.
    fn skip(&mut self, size: u64) -> Result<(), Failure> {
        self.with(|file| file.seek(SeekFrom::Start(size)).map(drop))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.with(|file| file.write_all(bytes))
    }

    /// Fills the gap; the archive is complete and gets its name.
    fn finish(mut self, head: &[u8]) -> Result<(), Failure> {
        self.with(|file| -> io::Result<()> {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(head)
        })?;
        self.keep()
    }
}
