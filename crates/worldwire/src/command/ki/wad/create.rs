//! `worldwire ki wad create` and `update`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use globset::GlobSet;
use worldwire_core::Error;
use worldwire_ki::file::wad::{Archive, Options, Packed, Packer, Plan, is_stored_kind, safe_path};

use crate::cli::{Common, KiWadPacking, Target};
use crate::command::work;
use crate::input::{self, map};
use crate::output::{Failure, SeekableOutput, complain};

/// The files that are packed at the same time have at most so many bytes, or are one.
const WINDOW_BYTES: u64 = 64 << 20;

/// Where the content of an entry comes from.
enum Content<'d> {
    File(PathBuf, u64),
    Kept(Packed<'d>),
}

impl Content<'_> {
    /// How many bytes are to be compressed.
    fn work(&self) -> u64 {
        match self {
            Self::File(_, size) => *size,
            Self::Kept(_) => 0,
        }
    }
}

type Contents<'d> = BTreeMap<Vec<u8>, Content<'d>>;

pub(super) fn create(
    folder: &Path,
    version: u32,
    flags: u8,
    packing: &KiWadPacking,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let mut contents = Contents::new();
    add_folder(folder, &mut contents)?;
    write(&Options { version, flags, level: packing.level }, contents, packing, target, common)
}

pub(super) fn update(
    path: &Path,
    from: Option<&Path>,
    remove: &[String],
    packing: &KiWadPacking,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let bytes = map::open(path)?;
    let archive: Archive<'_> = super::parse(path, &bytes)?;
    let gone = super::globs(remove)?;
    let mut contents = Contents::new();
    for entry in archive.entries() {
        if !gone.is_match(&*entry.name_lossy()) {
            let kept = archive.packed(entry).map_err(|error| super::bad(path, &error))?;
            if contents.insert(entry.name.to_vec(), Content::Kept(kept)).is_some() {
                complain(&entry.name_lossy(), "is there twice");
                return Err(Failure::Input);
            }
        }
    }
    if let Some(folder) = from {
        add_folder(folder, &mut contents)?;
    }
    let (version, flags) = (archive.table().version, archive.table().flags);
    write(&Options { version, flags, level: packing.level }, contents, packing, target, common)
}

/// All files below a folder, by their names in the archive: names that could not be extracted
/// again are refused. Links are followed, as deep as
/// [`input::files`] goes.
fn add_folder(folder: &Path, contents: &mut Contents<'_>) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(Failure::Run(format!("{}: wanted a folder", folder.display())));
    }
    let mut spellings = HashMap::new();
    for path in input::files(folder)? {
        let below = path.strip_prefix(folder).unwrap_or(&path);
        let parts: Option<Vec<&str>> =
            below.components().map(|part| part.as_os_str().to_str()).collect();
        let Some(parts) = parts else {
            return Err(Failure::Run(format!("{}: its name is no UTF-8", path.display())));
        };
        let name = parts.join("/");
        safe_path(name.as_bytes()).map_err(|error| Failure::Run(format!("refused: {error}")))?;
        let size = path.metadata().map_err(|error| Failure::io(&path, &error))?.len();
        if let Some(other) = spellings.insert(name.to_lowercase(), name.clone()) {
            let problem = "differ only in case, which some systems cannot have";
            return Err(Failure::Run(format!("refused: {other} and {name} {problem}")));
        }
        contents.insert(name.into_bytes(), Content::File(path, size));
    }
    Ok(())
}

fn write(
    options: &Options,
    contents: Contents<'_>,
    packing: &KiWadPacking,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let failed = |error: Error| Failure::Run(error.to_string());
    let stored = super::globs(&packing.store)?;
    let names = contents.keys().map(|name| Cow::Owned(name.clone())).collect();
    let mut plan = Plan::new(options, names).map_err(failed)?;
    let pool = work::pool(packing.threads)?;
    let mut output = SeekableOutput::open(target)?;
    output.skip(plan.table_size())?;
    let bar = super::progress(contents.len(), common);
    let contents: Vec<_> = contents.into_iter().collect();
    let mut rest = &contents[..];
    while !rest.is_empty() {
        let (window, behind) = rest.split_at(window(rest));
        let pack = |packer: &mut _, one| {
            let packed = pack(packer, one, &stored);
            bar.inc(1);
            packed
        };
        let size = |(_, content): &(_, Content<'_>)| content.work();
        let packed = work::share(&pool, window, size, || Packer::new(options.level), pack);
        for packed in packed {
            let packed = packed?;
            plan.add(&packed).map_err(failed)?;
            output.write(&packed.bytes)?;
        }
        rest = behind;
    }
    bar.finish_and_clear();
    output.finish(&plan.finish().map_err(failed)?)
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

fn pack<'c>(
    packer: &mut Result<Packer, Error>,
    (name, content): &'c (Vec<u8>, Content<'c>),
    stored: &GlobSet,
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
    let store = is_stored_kind(name) || stored.is_match(&*String::from_utf8_lossy(name));
    let packed = packer.pack(&file, store);
    let packed = packed.map_err(|error| Failure::Run(format!("{}: {error}", path.display())))?;
    Ok(Packed { bytes: Cow::Owned(packed.bytes.into_owned()), ..packed })
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
