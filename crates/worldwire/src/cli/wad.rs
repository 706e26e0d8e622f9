//! Arguments of `worldwire ki wad`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{KiObjectForm, Target};

#[derive(Debug, Subcommand)]
pub(crate) enum KiWad {
    /// List the files of an archive
    #[command(after_help = "Examples:
  worldwire ki wad list Root.wad
  worldwire ki wad list Root.wad 'Messages/*.xml' --json")]
    List {
        /// The archive
        archive: PathBuf,
        /// Only files that match one of these patterns (*, **, ?, [a-z], {a,b})
        #[arg(value_name = "GLOB")]
        globs: Vec<String>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Check every CRC and inflate everything
    #[command(after_help = "Example:
  worldwire ki wad test Root.wad")]
    Test {
        /// The archive
        archive: PathBuf,
        /// Only files that match one of these patterns
        #[arg(value_name = "GLOB")]
        globs: Vec<String>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
        /// How many threads to use; 0 is as many as there are cores
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        threads: usize,
    },
    /// Write the files of an archive to a folder
    #[command(after_help = "Examples:
  worldwire ki wad extract Root.wad -C root/
  worldwire ki wad extract Root.wad 'Messages/*.xml' -C messages/
  worldwire ki wad extract Root.wad -C root/ --decode json --types types.json")]
    Extract {
        /// The archive
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
        /// Write game objects (BINd files) in this form
        #[arg(long, value_name = "FORM", requires = "types")]
        decode: Option<KiObjectForm>,
        /// Type lists for --decode; later ones over earlier ones
        #[arg(short, long, value_name = "LIST", requires = "decode")]
        types: Vec<PathBuf>,
        /// How many threads to use; 0 is as many as there are cores
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        threads: usize,
    },
    /// Make an archive of the files in a folder
    #[command(after_help = "Example:
  worldwire ki wad create root/ -o Root.wad --flags 1 --store '*.bik'")]
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
        target: Target,
    },
    /// Replace, add and remove files, and keep all others as they are stored
    #[command(after_help = "Example:
  worldwire ki wad update Root.wad --from changed/ --remove 'Old/**' -o Root.new.wad")]
    Update {
        /// The archive
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
        target: Target,
    },
    /// Say which files were added, removed and changed from one archive to another
    #[command(after_help = "Example:
  worldwire ki wad diff Root.old.wad Root.wad

+ added, - removed, ~ changed, = the same file, packed in another way")]
    Diff {
        /// The first archive
        before: PathBuf,
        /// The second archive
        after: PathBuf,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
}

/// How files are packed.
#[derive(Debug, Args)]
pub(crate) struct KiWadPacking {
    /// From 1, fast, to 12, small
    #[arg(long, value_name = "1..12", default_value_t = worldwire_ki::file::wad::DEFAULT_LEVEL,
          value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) level: u8,
    /// Files that match are not compressed; .mp3 and .ogg never are
    #[arg(long, value_name = "GLOB")]
    pub(crate) store: Vec<String>,
    /// How many threads to use; 0 is as many as there are cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) threads: usize,
}
