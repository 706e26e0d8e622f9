//! The command line of `worldwire ki`.

use core::num::IntErrorKind;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use worldwire_core::Limits;

#[cfg(feature = "network")]
use super::KiServerCommand;
use super::{KiBcd, KiFiles, KiLang, KiNav, KiPoi, KiTypesAction, KiWad, Target, threads};

#[derive(Debug, Args)]
pub(crate) struct Ki {
    #[command(subcommand)]
    pub(crate) command: KiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiCommand {
    /// Compute string IDs and hashes, or look up the text for IDs
    #[command(after_help = "Examples:
  worldwire ki string-id Fire 'class Duel'
  worldwire ki string-id --djb2 m_templateID
  worldwire ki string-id --property 'unsigned int' m_templateID
  worldwire ki string-id --find 996708736
  worldwire ki string-id --find 0x4cb232f6 85019234 --types types.json --in Root.wad

--find compares IDs with string IDs, djb2 hashes, and the property hashes in type lists. --in adds file
names, the lines of .lang and other text files and, with --types, all text in game objects.")]
    StringId(KiStringId),
    /// Build or explain a command line for the graphical client
    #[command(after_help = "Examples:
  worldwire ki client-args --login 127.0.0.1:12000 --user 5:SECRET:Merle --patch 0
  worldwire ki client-args --explain -- -L 127.0.0.1 12000 -V

Arguments marked with * are documented only in the notes of server projects, not in the Kronos Grimoire.")]
    ClientArgs(KiClientArgs),
    #[cfg(feature = "network")]
    #[command(flatten)]
    Server(KiServerCommand),
    /// Check, count, draw and export zone collisions (collision.bcd)
    #[command(subcommand, arg_required_else_help = true)]
    Bcd(KiBcd),
    /// Inspect message definitions and convert tables (DML)
    #[command(subcommand, arg_required_else_help = true)]
    Dml(KiDml),
    /// List and compare the files of a revision (LatestFileList)
    #[command(subcommand, arg_required_else_help = true)]
    Files(KiFiles),
    /// Search, check and convert localised text (.lang)
    #[command(subcommand, arg_required_else_help = true)]
    Lang(KiLang),
    /// Check and draw navigation graphs, and find routes in them (zone.nav, zonemap.nav)
    #[command(subcommand, arg_required_else_help = true)]
    Nav(KiNav),
    /// Search the game objects in archives, directories and files
    #[command(after_help = "Examples:
  worldwire ki find --where 'class WizItemTemplate and m_goldCost > 1000' Root.wad --types types.json
  worldwire ki find --where 'm_name contains \"Nyx\" or m_snacks.m_points > 20' root/ --types types.json
  worldwire ki find --where '*Template and exists(m_adjectives)' *.wad --types types.json --json

The filter language is the same as for `worldwire dissect`. Write a class as `class Name`, Name, or a
pattern with *. Fields are properties of the outermost object; m_list.m_name is a property of any object
in a list. The command searches BINd files and XML objects.")]
    Find(KiFind),
    /// Decode and encode game objects (ObjectProperty, BINd files)
    #[command(subcommand, arg_required_else_help = true)]
    Op(KiOp),
    /// Check and export points of interest (poi.dat)
    #[command(subcommand, arg_required_else_help = true)]
    Poi(KiPoi),
    /// List, extract, create and update archives (KIWAD), such as Root.wad
    #[command(subcommand, arg_required_else_help = true)]
    Wad(KiWad),
}

#[derive(Debug, Args)]
pub(crate) struct KiFind {
    /// Archives, directories, files, or patterns with * and **; ARCHIVE/NAME is one file in an
    /// archive; - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Find objects that match this filter
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: String,
    /// Type list; can be repeated; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Same as --json, but with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

#[derive(Debug, Args)]
pub(crate) struct KiStringId {
    /// Text to convert to a string ID or hash
    #[arg(value_name = "TEXT", required_unless_present = "find")]
    pub(crate) texts: Vec<String>,
    /// Compute djb2 hashes, which are part of property hashes and serve as class tags in Pirate101
    #[arg(long, conflicts_with = "find")]
    pub(crate) djb2: bool,
    /// Compute property hashes for this type; each TEXT is the name of a property
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["find", "djb2"])]
    pub(crate) property: Option<String>,
    /// Find all known words that have this ID or hash
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "texts", value_parser = number)]
    pub(crate) find: Vec<u32>,
    /// File with more words, one per line
    #[arg(long, value_name = "FILE", requires = "find")]
    pub(crate) words: Vec<PathBuf>,
    /// Message definitions whose names are added as words: XML files or directories
    #[arg(short, long, value_name = "PATH", requires = "find")]
    pub(crate) data: Vec<PathBuf>,
    /// Type list whose classes and properties are added as words; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", requires = "find")]
    pub(crate) types: Vec<PathBuf>,
    /// Archives, directories and files whose names and text are added as words
    #[arg(long = "in", value_name = "PATH", num_args = 1.., requires = "find")]
    pub(crate) inside: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiDml {
    /// List protocols and their messages
    #[command(after_help = "Examples:
  worldwire ki dml list
  worldwire ki dml list Root.wad
  worldwire ki dml list LOGIN Messages/")]
    List {
        /// List only the messages of this service, by name or number; a path is treated like one given
        /// with --data
        #[arg(value_name = "SERVICE|PATH")]
        named: Vec<String>,
        /// Message XML: files, directories or archives; ARCHIVE/NAME is one file in an archive
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Show the fields of a message
    #[command(after_help = "Examples:
  worldwire ki dml show LOGIN.MSG_USER_AUTHEN_V3
  worldwire ki dml show 5.36 GameMessages.xml
  worldwire ki dml show 5.36 Root.wad")]
    Show {
        /// SERVICE.MESSAGE, by names or numbers
        message: String,
        /// Message XML, as with --data
        paths: Vec<PathBuf>,
        /// Message XML: files, directories or archives; ARCHIVE/NAME is one file in an archive
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Check message XML and report every problem
    #[command(after_help = "Examples:
  worldwire ki dml check Messages/
  worldwire ki dml check Root.wad
  worldwire ki dml check GameMessages.xml --strict")]
    Check {
        /// Files, directories, archives, or patterns with * and **; ARCHIVE/NAME is one file in an
        /// archive; - is standard input
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Treat quirks as errors, even though a client's loader accepts them
        #[arg(long)]
        strict: bool,
    },
    /// Check whether a payload fits a message, and explain any mismatch
    #[command(after_help = "Example:
  worldwire ki dml fit LOGIN.MSG_USER_ADMIT_IND --hex 0100000000000000")]
    Fit {
        /// SERVICE.MESSAGE, by names or numbers
        message: String,
        /// Payloads, without the header: files, directories, archives, or patterns with * and **;
        /// ARCHIVE/NAME is one file in an archive; - is standard input [default: -]
        #[arg(conflicts_with = "hex")]
        files: Vec<PathBuf>,
        /// Payload as hexadecimal digits
        #[arg(long, value_name = "STRING")]
        hex: Option<String>,
        /// Message XML: files, directories or archives; ARCHIVE/NAME is one file in an archive
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
    },
    /// Convert tables such as LatestFileList.bin
    #[command(after_help = "Examples:
  worldwire ki dml table LatestFileList.bin
  worldwire ki dml table Wizard101/
  worldwire ki dml table LatestFileList.bin --to csv --table Base -o base.csv
  worldwire ki dml table files.json --to bin -o LatestFileList.bin")]
    Table {
        /// Tables as binary, XML, JSON or CSV, or an archive or directory that contains such a file;
        /// ARCHIVE/NAME is one file in an archive; - is standard input
        file: PathBuf,
        /// Output format
        #[arg(long, value_name = "FORM", default_value = "json")]
        to: KiTableForm,
        /// Table to write as CSV
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        /// In JSON output, write integers of more than 53 bits as strings
        #[arg(long)]
        json_safe: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of DML tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiTableForm {
    /// JSON, which preserves everything
    Json,
    /// One table as comma-separated values
    Csv,
    /// The binary format
    Bin,
    /// XML
    Xml,
}

/// The client's arguments by their long names, from the list of all arguments.
#[derive(Debug)]
pub(crate) struct KiClientArgs {
    pub(crate) given: Vec<worldwire_ki::client_args::GivenArgument>,
    /// A command line to explain instead.
    pub(crate) explain: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiOp {
    /// Describe a class in a type list, or list classes
    #[command(after_help = "Examples:
  worldwire ki op types samples/ki-types.json
  worldwire ki op types samples/ki-types.json 'class MadeUpPet'
  worldwire ki op types types.json '*ItemTemplate'
  worldwire ki op types types.json --used-in Root.wad
  worldwire ki op types types.json 350837933 --json")]
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Types {
        #[command(subcommand)]
        action: Option<KiTypesAction>,
        /// Type list
        #[arg(required = true)]
        list: Option<PathBuf>,
        /// Class to describe, by hash or name, with or without `class`; or, to list classes, part of a
        /// name or a pattern with * and ?
        class: Option<String>,
        /// List only the classes of the objects in these archives, directories and files, with the
        /// number of objects per class
        #[arg(long, value_name = "PATH", num_args = 1..)]
        used_in: Vec<PathBuf>,
        /// Another type list; overrides the earlier ones
        #[arg(long, value_name = "LIST")]
        merge: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Decode objects to JSON, XML or text
    #[command(after_help = "Examples:
  worldwire ki op decode samples/ki-pet.xml --types samples/ki-types.json
  worldwire ki op decode Root.wad --types types.json -o decoded/
  worldwire ki op decode pet.xml --types types.json --json-safe | jq .object.m_name
  worldwire ki op decode blob.bin --types types.json --shallow --mask 0x18 --to text --bytes

BINd files are detected automatically and contain their own flags. In directories and archives, all BINd
files are decoded. Without an output directory, several files are written as one JSON object per line.

jq, JavaScript and similar programs store numbers as doubles and change integers of more than 53 bits.
--json-safe writes these integers as strings.")]
    Decode(KiOpDecode),
    /// Encode objects from the JSON or XML that `ki op decode` writes
    #[command(after_help = "Examples:
  worldwire ki op decode samples/ki-pet.xml --types samples/ki-types.json -o pet.json
  worldwire ki op encode pet.json --types samples/ki-types.json -o pet.xml
  worldwire ki op encode decoded/ --types types.json -o Root/
  worldwire ki op encode pet.new.xml --types types.json --form bind --flags 0x7 -o pet.xml

In a directory, objects written by `ki op decode` and `ki wad extract --decode` are encoded; other files
are skipped. Extracted objects that have not been changed are also skipped unless you pass --all.")]
    Encode(KiOpEncode),
    /// Find the format of an object by trying all flags, masks and forms
    #[command(after_help = "Examples:
  worldwire ki op guess blob.bin --types types.json
  worldwire ki op guess Root.wad --types types.json
  worldwire ki op guess --hex e00e100507000000 --types types.json")]
    Guess(KiOpGuess),
}

#[derive(Debug, Args)]
pub(crate) struct KiOpGuess {
    /// Objects: files, directories, archives, or patterns with * and **; ARCHIVE/NAME is one file in
    /// an archive; - is standard input [default: -]
    #[arg(conflicts_with = "hex")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Object as hexadecimal digits
    #[arg(long, value_name = "STRING")]
    pub(crate) hex: Option<String>,
    /// Type list; can be repeated; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    /// TOML file with the block and type of classes in the CoreObject form
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// The format of object streams that do not state it themselves.
#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct KiStream {
    /// Use the deep form: every value is preceded by its size and hash
    #[arg(long, conflicts_with = "shallow")]
    pub(crate) deep: bool,
    /// Use the shallow form: values only, in class order
    #[arg(long)]
    pub(crate) shallow: bool,
    /// Stream flags: 1 flags first, 2 compact, 4 names, 8 zlib, 16 no delta
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) flags: Option<u32>,
    /// Mask of the properties present: 0x18 for the owner, 0x1c for everyone, 1 in files
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) mask: Option<u32>,
    /// Expect an envelope around the stream, as in many message fields
    #[arg(long)]
    pub(crate) envelope: bool,
    /// Expect class tags in the CoreObject form
    #[arg(long)]
    pub(crate) core: bool,
    /// Omit deprecated properties from shallow streams
    #[arg(long)]
    pub(crate) skip_deprecated: bool,
    /// Keep unknown classes, unknown properties and values of unexpected size instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,
    /// TOML file with the block and type of classes in the CoreObject form, and other hints
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KiOpDecode {
    /// Files, directories, archives, or patterns with * and **; ARCHIVE/NAME is one file in an
    /// archive; - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Type list; can be repeated; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) stream: KiStream,
    /// Output format
    #[arg(long, value_name = "FORM", default_value = "json")]
    pub(crate) to: KiObjectForm,
    /// In text output, show the position of every value
    #[arg(long)]
    pub(crate) bytes: bool,
    /// In text output, show the text for codes such as Items_31939071, from locale files, archives or
    /// directories
    #[arg(long, value_name = "PATH")]
    pub(crate) lang: Vec<PathBuf>,
    /// In JSON output, write integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Reject objects with more than 4096 values plus this many per byte; only compressed objects can
    /// have more than 8 values per byte
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::DEFAULT.values_per_byte)]
    pub(crate) values_per_byte: u64,
    /// Skip existing files
    #[arg(long, requires = "output", conflicts_with = "force")]
    pub(crate) skip_existing: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct KiOpEncode {
    /// Files, directories, or patterns with * and **; - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Type list; can be repeated; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) stream: KiStream,
    /// Form to write [default: the one recorded in the input; otherwise a BINd file, or a bare stream
    /// if a stream option is given]
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<KiStreamForm>,
    /// Also encode extracted objects that have not been changed
    #[arg(long)]
    pub(crate) all: bool,
    /// Fill in missing properties with their defaults; shallow streams need all properties
    #[arg(long)]
    pub(crate) complete: bool,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// The format around an object's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiStreamForm {
    /// A file that starts with BINd and its flags
    Bind,
    /// The stream alone, as in message fields
    Bare,
}

/// Forms of decoded objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiObjectForm {
    /// JSON, which preserves everything
    Json,
    /// XML, as clients use it
    Xml,
    /// Human-readable text
    Text,
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
pub(super) fn number(text: &str) -> Result<u32, &'static str> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => "needs a number of at most 32 bits (0xffffffff)",
        _ => "needs a number such as 24 or 0x18",
    })
}
