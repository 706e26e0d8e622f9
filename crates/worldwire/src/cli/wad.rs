//! Arguments of `worldwire ki wad`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_core::Limits;
use worldwire_ki::file::wad::{DEFAULT_LEVEL, MOST_COMPRESSED};

use super::{KiObjectForm, threads};

#[derive(Debug, Subcommand)]
pub(crate) enum KiWad {
    /// List the files of an archive
    #[command(after_help = "Examples:
  worldwire ki wad list Root.wad
  worldwire ki wad list Root.wad 'Messages/*.xml' --json")]
    List {
        /// The archive; - is standard input
        archive: PathBuf,
        /// Only files that match one of these patterns (*, **/, ?, [a-z], {a,b}); only ** goes
        /// into folders
        #[arg(value_name = "GLOB")]
        globs: Vec<String>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Check every name and CRC, and inflate everything
    #[command(after_help = "Example:
  worldwire ki wad test Root.wad")]
    Test {
        /// The archive; - is standard input
        archive: PathBuf,
        /// Only files that match one of these patterns
        #[arg(value_name = "GLOB")]
        globs: Vec<String>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
        /// Refuse an archive in which the data of files overlaps, and look no further
        #[arg(long)]
        refuse_overlaps: bool,
        #[command(flatten)]
        reading: KiWadReading,
    },
    /// Write the files of an archive to a folder
    #[command(after_help = "Examples:
  worldwire ki wad extract Root.wad -C root/
  worldwire ki wad extract Root.wad 'Messages/*.xml' -C messages/
  worldwire ki wad extract Root.wad -C root/ --decode json --types types.json")]
    Extract {
        /// The archive; - is standard input
        archive: PathBuf,
        /// Only files that match one of these patterns
        #[arg(value_name = "GLOB")]
        globs: Vec<String>,
        /// The folder to write to; made if it is not there
        #[arg(short = 'C', long, value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// Overwrite files that are there
        #[arg(long)]
        force: bool,
        /// Write game objects (BINd files) in this form, unless the archive has a file of that
        /// name too
        #[arg(long, value_name = "FORM", requires = "types")]
        decode: Option<KiObjectForm>,
        /// Type lists for --decode; later ones over earlier ones
        #[arg(short, long, value_name = "LIST", requires = "decode")]
        types: Vec<PathBuf>,
        /// Refuse an archive in which the data of files overlaps, instead of a warning
        #[arg(long)]
        refuse_overlaps: bool,
        #[command(flatten)]
        reading: KiWadReading,
    },
    /// Make an archive of the files in a folder
    #[command(after_help = "Example:
  worldwire ki wad create root/ -o Root.wad --flags 1 --store '**/*.bik'

Links are followed.")]
    Create {
        /// The folder
        folder: PathBuf,
        /// The version; flags stand in archives from version 2 on
        #[arg(long, value_name = "NUMBER", default_value_t = 2)]
        archive_version: u32,
        /// The flags: 1 maps the archive into memory, 2 prefetches it
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        flags: u8,
        #[command(flatten)]
        packing: KiWadPacking,
        #[command(flatten)]
        target: KiWadTarget,
    },
    /// Replace, add and remove files, and keep all others as they are stored
    #[command(after_help = "Example:
  worldwire ki wad update Root.wad --from changed/ --remove 'Old/**' -o Root.new.wad")]
    Update {
        /// The archive; - is standard input
        archive: PathBuf,
        /// Files of this folder are added, or take the place of those of the same name
        #[arg(long, value_name = "FOLDER")]
        from: Option<PathBuf>,
        /// Files that match are left out
        #[arg(long, value_name = "GLOB")]
        remove: Vec<String>,
        #[command(flatten)]
        packing: KiWadPacking,
        #[command(flatten)]
        target: KiWadTarget,
    },
    /// Say which files were added, removed and changed from one archive to another
    #[command(after_help = "Example:
  worldwire ki wad diff Root.old.wad Root.wad

+ added, - removed, ~ changed, = the same file, packed in another way,
> downloaded only in the second archive, < downloaded only in the first

All data of both archives is read, and a wrong CRC is a problem. Of files of the same name, the
first counts.")]
    Diff {
        /// The first archive; - is standard input
        before: PathBuf,
        /// The second archive; - is standard input
        after: PathBuf,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reading: KiWadReading,
    },
}

/// How the files of archives are read.
#[derive(Debug, Args)]
pub(crate) struct KiWadReading {
    /// Inflate no file that is larger than this
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.inflated_bytes)]
    pub(crate) most_inflated: u64,
    /// How many threads to use, up to 256; 0 is as many as there are cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// How files are packed.
#[derive(Debug, Args)]
pub(crate) struct KiWadPacking {
    /// From 1, fast, to 12, small
    #[arg(long, value_name = "1..12", default_value_t = DEFAULT_LEVEL,
          value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) level: u8,
    #[arg(long, value_name = "GLOB", help = format!("\
        Files that match are not compressed; .mp3, .ogg and what is larger than {MOST_COMPRESSED} \
        bytes never are"))]
    pub(crate) store: Vec<String>,
    /// How many threads to use, up to 256; 0 is as many as there are cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// Which archive is made.
#[derive(Debug, Args)]
pub(crate) struct KiWadTarget {
    /// The archive to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Overwrite it if it is there
    #[arg(long)]
    pub(crate) force: bool,
}
