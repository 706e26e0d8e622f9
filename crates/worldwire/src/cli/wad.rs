//! The command line of `worldwire ki wad`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_core::Limits;
use worldwire_ki::file::wad::{DEFAULT_LEVEL, LATEST_VERSION, MAX_COMPRESSED};

use super::ki::number;
use super::{KiObjectForm, KiStream, Target, threads};

#[derive(Debug, Subcommand)]
pub(crate) enum KiWad {
    /// List the files in archives
    #[command(after_help = "Examples:
  worldwire ki wad list Root.wad
  worldwire ki wad list Root.wad 'Messages/*.xml' --json")]
    List {
        #[command(flatten)]
        named: KiWadNamed,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Verify every name and CRC, and decompress all data
    #[command(after_help = "Example:
  worldwire ki wad test Root.wad")]
    Test {
        #[command(flatten)]
        named: KiWadNamed,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
        /// Reject an archive whose files share data, without further checks
        #[arg(long)]
        refuse_overlaps: bool,
        #[command(flatten)]
        reading: KiWadReading,
    },
    /// Extract files from archives to a directory
    #[command(after_help = "Examples:
  worldwire ki wad extract Root.wad -C root/
  worldwire ki wad extract Root.wad 'Messages/*.xml' -C messages/
  worldwire ki wad extract Root.wad -C root/ --decode json --json-safe --types types.json

`ki wad update --from` and `ki op encode` turn the output of --decode json or --decode xml back into the
same objects.")]
    Extract(KiWadExtract),
    /// Write individual files from an archive to standard output
    #[command(after_help = "Examples:
  worldwire ki wad cat Root.wad Messages/LoginMessages.xml
  worldwire ki wad cat Root.wad ObjectData/Pet.xml --decode xml --types types.json")]
    Cat {
        /// Archive; - is standard input
        archive: PathBuf,
        /// Files, by their full names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        decoding: KiWadDecoding,
        #[command(flatten)]
        target: Target,
    },
    /// Create an archive from the files in a directory
    #[command(after_help = "Examples:
  worldwire ki wad create root/ -o Root.wad --flags 1 --store '**/*.bik'
  worldwire ki wad create root/ -o Root.wad --types types.json

Symbolic links are followed. Objects that `ki wad extract --decode` or `ki op decode` wrote as JSON or XML
are encoded, as `ki wad update` does with new files.")]
    Create {
        /// Directory to pack
        folder: PathBuf,
        /// Type list for decoded objects; can be repeated; later ones override earlier ones
        #[arg(short, long, value_name = "LIST")]
        types: Vec<PathBuf>,
        /// TOML file with the block and type of classes in the CoreObject form
        #[arg(long, value_name = "FILE", requires = "types")]
        hints: Vec<PathBuf>,
        /// Archive version, 1 or 2; version 1 has no flags
        #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = archive_version)]
        archive_version: u32,
        /// Archive flags: 1 maps the archive into memory, 2 prefetches it
        #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = small_number)]
        flags: u8,
        #[command(flatten)]
        packing: KiWadPacking,
        #[command(flatten)]
        target: KiWadTarget,
    },
    /// Replace, add and remove files; copy all others as stored
    #[command(after_help = "Examples:
  worldwire ki wad update Root.wad --from root/ --types types.json -o Root.new.wad
  worldwire ki wad update Root.wad --from changed/ --remove 'Old/**' -o Root.new.wad

Unchanged files are copied as stored; bytes that belong to no file are dropped. Objects that `ki wad
extract --decode` wrote as JSON or XML are encoded if they have changed; files that are text in the archive
stay text. Every change is listed: + added, - removed, ~ changed.")]
    Update {
        /// Archive; - is standard input
        archive: PathBuf,
        /// Add the files in this directory, replacing files of the same name
        #[arg(long, value_name = "FOLDER")]
        from: Option<PathBuf>,
        /// Type list for decoded objects; can be repeated; later ones override earlier ones
        #[arg(short, long, value_name = "LIST", requires = "from")]
        types: Vec<PathBuf>,
        /// TOML file with the block and type of classes in the CoreObject form
        #[arg(long, value_name = "FILE", requires = "types")]
        hints: Vec<PathBuf>,
        /// Remove files that match this pattern
        #[arg(long, value_name = "GLOB")]
        remove: Vec<String>,
        /// Accept an archive whose files share data; each file gets its own copy, so a small
        /// archive can fill the disk
        #[arg(long)]
        allow_overlaps: bool,
        /// Copy files with a wrong CRC as they are instead of refusing the archive
        #[arg(long)]
        allow_damaged: bool,
        #[command(flatten)]
        packing: KiWadPacking,
        #[command(flatten)]
        target: KiWadTarget,
    },
    /// List files that differ between two archives
    #[command(after_help = "Example:
  worldwire ki wad diff Root.old.wad Root.wad

+ added; - removed; ~ changed; = same contents, compressed differently;
> downloaded only in the second archive; < downloaded only in the first

All data in both archives is read, and wrong CRCs are reported. If several files have the same name, the
first one is compared. The exit code is 1 if the contents of any file differ.")]
    Diff {
        /// First archive; - is standard input
        before: PathBuf,
        /// Second archive; - is standard input
        after: PathBuf,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reading: KiWadReading,
    },
}

/// Selects archives and files in them.
#[derive(Debug, Args)]
pub(crate) struct KiWadNamed {
    /// Archive; - is standard input
    pub(crate) archive: PathBuf,
    /// More archives, and patterns (*, **/, ?, [a-z], {a,b}) that select files; only ** matches
    /// across directories
    #[arg(value_name = "ARCHIVE|GLOB")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct KiWadExtract {
    #[command(flatten)]
    pub(crate) named: KiWadNamed,
    /// Output directory, created if missing
    #[arg(short = 'C', long, value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Skip existing files
    #[arg(long, conflicts_with = "force")]
    pub(crate) skip_existing: bool,
    /// Extract an archive whose files share data; a small one can fill the disk
    #[arg(long)]
    pub(crate) allow_overlaps: bool,
    /// Refuse names that Windows does not allow instead of only reporting them
    #[arg(long)]
    pub(crate) portable: bool,
    #[command(flatten)]
    pub(crate) decoding: KiWadDecoding,
    #[command(flatten)]
    pub(crate) reading: KiWadReading,
}

/// How game objects are decoded when they are extracted.
#[derive(Debug, Args)]
pub(crate) struct KiWadDecoding {
    /// Decode game objects (BINd files) to this format, unless the archive has a file with the
    /// resulting name
    #[arg(long, value_name = "FORM", requires = "types")]
    pub(crate) decode: Option<KiObjectForm>,
    /// Type list for --decode; can be repeated; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", requires = "decode")]
    pub(crate) types: Vec<PathBuf>,
    /// With --decode json, write integers of more than 53 bits as strings
    #[arg(long, requires = "decode")]
    pub(crate) json_safe: bool,
    /// With --decode text, show the position of every value
    #[arg(long, requires = "decode")]
    pub(crate) bytes: bool,
    /// With --decode text, show the text for codes such as Items_31939071, from locale files,
    /// archives or directories
    #[arg(long, value_name = "PATH", requires = "decode")]
    pub(crate) lang: Vec<PathBuf>,
    /// With --decode, reject objects with more than 4096 values plus this many per byte
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::DEFAULT.values_per_byte)]
    pub(crate) values_per_byte: u64,
    #[command(flatten)]
    pub(crate) stream: KiStream,
}

/// How the files of archives are read.
#[derive(Debug, Args)]
pub(crate) struct KiWadReading {
    /// Reject files larger than this when decompressed
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.inflated_bytes)]
    pub(crate) max_inflated: u64,
    /// Reject an archive if the total size of its files exceeds this, even if they share data
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.archive_bytes)]
    pub(crate) max_total: u64,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// How files are compressed.
#[derive(Debug, Args)]
pub(crate) struct KiWadPacking {
    /// Compression level, from 1 (fastest) to 12 (smallest)
    #[arg(long, value_name = "1..12", default_value_t = DEFAULT_LEVEL,
          value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) level: u8,
    #[arg(long, value_name = "GLOB", help = format!("\
        Do not compress matching files; .mp3, .ogg and files larger than {MAX_COMPRESSED} bytes \
        are never compressed"))]
    pub(crate) store: Vec<String>,
    /// Keep matching files as text, even if they contain objects in JSON or XML
    #[arg(long, value_name = "GLOB")]
    pub(crate) text: Vec<String>,
    /// Refuse names that Windows does not allow instead of only reporting them
    #[arg(long)]
    pub(crate) portable: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// The output archive.
#[derive(Debug, Args)]
pub(crate) struct KiWadTarget {
    /// Archive to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Overwrite an existing archive
    #[arg(long)]
    pub(crate) force: bool,
}

/// Parses the version of a new archive.
fn archive_version(text: &str) -> Result<u32, &'static str> {
    let version = text.parse().ok().filter(|version| (1..=LATEST_VERSION).contains(version));
    version.ok_or("the known versions are 1 and 2")
}

/// Parses an 8-bit number, like [`number`].
fn small_number(text: &str) -> Result<u8, &'static str> {
    u8::try_from(number(text)?).map_err(|_| "needs a number below 256")
}
