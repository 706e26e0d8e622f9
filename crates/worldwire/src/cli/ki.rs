//! The command line of `worldwire ki`.

use core::num::IntErrorKind;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use worldwire_core::Limits;

use super::{
    KiAccount, KiBcd, KiFiles, KiLang, KiNav, KiPoi, KiRefresh, KiTypesAction, KiWad, Target,
    threads,
};

#[derive(Debug, Args)]
pub(crate) struct Ki {
    #[command(subcommand)]
    pub(crate) command: KiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiCommand {
    /// Compute the string ids and hashes of texts, or find the texts of ids
    #[command(after_help = "Examples:
  worldwire ki string-id Fire 'class Duel'
  worldwire ki string-id --djb2 m_templateID
  worldwire ki string-id --property 'unsigned int' m_templateID
  worldwire ki string-id --find 996708736
  worldwire ki string-id --find 0x4cb232f6 85019234 --types types.json --in Root.wad

With --find, ids are looked for among string ids, djb2 hashes, and the hashes of the properties of type
lists. The words of --in are the names of files, the lines of .lang files and of text, and with
--types all texts in game objects.")]
    StringId(KiStringId),
    /// Build or explain a command line of the graphical client
    #[command(after_help = "Examples:
  worldwire ki client-args --login 127.0.0.1:12000 --user 5:SECRET:Merle --patch 0
  worldwire ki client-args --explain -- -L 127.0.0.1 12000 -V

Arguments marked with * are not in the Kronos Grimoire, only in the notes of server projects.")]
    ClientArgs(KiClientArgs),
    /// Manage the accounts of a login server, running or not
    #[command(subcommand, arg_required_else_help = true)]
    Account(KiAccount),
    /// Make the sessions of a running login server stale, as when a client connects elsewhere
    #[command(after_help = "Examples:
  worldwire ki refresh
  worldwire ki refresh merle --server /srv/login

The next message of each client is answered with the offer of another session, after which the client
sends it again. The signal SIGUSR1 does the same for all clients.")]
    Refresh(KiRefresh),
    /// Collisions of zones (collision.bcd)
    #[command(subcommand, arg_required_else_help = true)]
    Bcd(KiBcd),
    /// Message definitions and tables (DML)
    #[command(subcommand, arg_required_else_help = true)]
    Dml(KiDml),
    /// The files of a revision (LatestFileList)
    #[command(subcommand, arg_required_else_help = true)]
    Files(KiFiles),
    /// Texts of the game (.lang)
    #[command(subcommand, arg_required_else_help = true)]
    Lang(KiLang),
    /// Navigation graphs (zone.nav, zonemap.nav)
    #[command(subcommand, arg_required_else_help = true)]
    Nav(KiNav),
    /// Search the game objects of archives, directories and files
    #[command(after_help = "Examples:
  worldwire ki find --where 'class WizItemTemplate and m_goldCost > 1000' Root.wad --types types.json
  worldwire ki find --where 'm_name contains \"Nyx\" or m_snacks.m_points > 20' root/ --types types.json
  worldwire ki find --where '*Template and exists(m_adjectives)' *.wad --types types.json --json

The filter language is that of `worldwire dissect`. A class is written `class Name`, Name, or a
pattern with *; fields are the properties of the outermost object, and m_list.m_name a property of any
object in a list. BINd files and objects in XML are searched.")]
    Find(KiFind),
    /// Game objects (ObjectProperty, BINd files)
    #[command(subcommand, arg_required_else_help = true)]
    Op(KiOp),
    /// Points of interest (poi.dat)
    #[command(subcommand, arg_required_else_help = true)]
    Poi(KiPoi),
    /// Archives (KIWAD), such as Root.wad
    #[command(subcommand, arg_required_else_help = true)]
    Wad(KiWad),
}

#[derive(Debug, Args)]
pub(crate) struct KiFind {
    /// Archives, directories, files, patterns with * and **; ARCHIVE/NAME is one file of an archive,
    /// - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Find objects that match
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: String,
    /// Type lists; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Like --json, with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// How many threads to use, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

#[derive(Debug, Args)]
pub(crate) struct KiStringId {
    /// The texts
    #[arg(value_name = "TEXT", required_unless_present = "find")]
    pub(crate) texts: Vec<String>,
    /// Compute djb2 hashes, as tags of Pirate101's classes and parts of property hashes are
    #[arg(long, conflicts_with = "find")]
    pub(crate) djb2: bool,
    /// Compute the hashes of properties of this type, whose names are the texts
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["find", "djb2"])]
    pub(crate) property: Option<String>,
    /// Find the texts that have this id or hash, among all known words
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "texts", value_parser = number)]
    pub(crate) find: Vec<u32>,
    /// More words, one per line
    #[arg(long, value_name = "FILE", requires = "find")]
    pub(crate) words: Vec<PathBuf>,
    /// Message definitions, whose names count as words: XML files or directories
    #[arg(short, long, value_name = "PATH", requires = "find")]
    pub(crate) data: Vec<PathBuf>,
    /// Type lists, whose classes and properties count; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", requires = "find")]
    pub(crate) types: Vec<PathBuf>,
    /// Archives, directories and files, whose names and texts count
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
  worldwire ki dml list LOGIN --data Messages/")]
    List {
        /// List the messages of this service only, given by name or number
        service: Option<String>,
        /// Message XML: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Show the fields of a message
    #[command(after_help = "Examples:
  worldwire ki dml show LOGIN.MSG_USER_AUTHEN_V3
  worldwire ki dml show 5.36 --data GameMessages.xml")]
    Show {
        /// SERVICE.MESSAGE, as names or numbers
        message: String,
        /// Message XML: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Check message XML, and report every problem
    #[command(after_help = "Examples:
  worldwire ki dml check Messages/
  worldwire ki dml check GameMessages.xml --strict")]
    Check {
        /// Files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Report as errors what a client's own loader accepts
        #[arg(long)]
        strict: bool,
    },
    /// Tell whether a payload fits a message and, if not, the likely reason
    #[command(after_help = "Example:
  worldwire ki dml fit LOGIN.MSG_USER_ADMIT_IND --hex 0100000000000000")]
    Fit {
        /// SERVICE.MESSAGE, as names or numbers
        message: String,
        /// The payload, without the header; - or no file is standard input
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// The payload as hexadecimal digits
        #[arg(long, value_name = "STRING")]
        hex: Option<String>,
        /// Message XML: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
    },
    /// Convert tables such as LatestFileList.bin
    #[command(after_help = "Examples:
  worldwire ki dml table LatestFileList.bin
  worldwire ki dml table LatestFileList.bin --to csv --table Base -o base.csv
  worldwire ki dml table files.json --to bin -o LatestFileList.bin")]
    Table {
        /// Tables as binary, XML or JSON; - is standard input
        file: PathBuf,
        /// The output format
        #[arg(long, value_name = "FORM", default_value = "json")]
        to: KiTableForm,
        /// The table to write as CSV
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        /// In JSON, write integers of more than 53 bits as strings
        #[arg(long)]
        json_safe: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of DML tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiTableForm {
    /// JSON, which holds everything
    Json,
    /// One table as comma-separated values
    Csv,
    /// The binary format
    Bin,
    /// XML
    Xml,
}

/// The arguments of the client by their long names, from the list of all of them.
#[derive(Debug)]
pub(crate) struct KiClientArgs {
    pub(crate) given: Vec<worldwire_ki::client_args::GivenArgument>,
    /// A command line to explain instead.
    pub(crate) explain: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiOp {
    /// Explain a class of a type list, or list classes
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
        /// The type list
        #[arg(required = true)]
        list: Option<PathBuf>,
        /// A class: its hash, or its name with or without `class`; or a part of the names of
        /// classes to list, or a pattern with * and ?
        class: Option<String>,
        /// List only classes that the objects of these archives, directories and files have, and
        /// count the objects
        #[arg(long, value_name = "PATH", num_args = 1..)]
        used_in: Vec<PathBuf>,
        /// More type lists, which override the first
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

BINd files are recognised and contain their own flags. Of a directory or an archive, all BINd files
are decoded. Several files without an output directory are written as one JSON object per line.

Programs such as jq and JavaScript keep numbers as doubles and change integers of more than 53 bits.
--json-safe writes those as strings.")]
    Decode(KiOpDecode),
    /// Encode objects from JSON, as `ki op decode` writes it, or from XML
    #[command(after_help = "Examples:
  worldwire ki op decode samples/ki-pet.xml --types samples/ki-types.json -o pet.json
  worldwire ki op encode pet.json --types samples/ki-types.json -o pet.xml
  worldwire ki op encode decoded/ --types types.json -o Root/
  worldwire ki op encode pet.new.xml --types types.json --form bind --flags 0x7 -o pet.xml

Of a directory, the objects that `ki op decode` and `ki wad extract --decode` wrote are encoded, and
other files are skipped. What was extracted and is unchanged is skipped, too, unless --all is given.")]
    Encode(KiOpEncode),
    /// Find out how to read an object, by trying all flags, masks and forms
    #[command(after_help = "Examples:
  worldwire ki op guess blob.bin --types types.json
  worldwire ki op guess Root.wad --types types.json
  worldwire ki op guess --hex e00e100507000000 --types types.json")]
    Guess(KiOpGuess),
}

#[derive(Debug, Args)]
pub(crate) struct KiOpGuess {
    /// Objects: files, directories, archives, patterns with * and **; ARCHIVE/NAME is one file of an
    /// archive, - or no file is standard input
    #[arg(conflicts_with = "hex")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The object as hexadecimal digits
    #[arg(long, value_name = "STRING")]
    pub(crate) hex: Option<String>,
    /// Type lists; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    /// A TOML file with the block and type of classes in the CoreObject form
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    /// How many threads to use, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
}

/// How streams of objects are read and written, where nothing in them says so.
#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct KiStream {
    /// Deep: every value follows its size and hash
    #[arg(long, conflicts_with = "shallow")]
    pub(crate) deep: bool,
    /// Shallow: values only, in the order of the class
    #[arg(long)]
    pub(crate) shallow: bool,
    /// Flags of the stream: 1 flags in front, 2 compact, 4 names, 8 zlib, 16 no delta
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) flags: Option<u32>,
    /// Which properties are present: 0x18 the owner's, 0x1c everybody's, 1 those of files
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) mask: Option<u32>,
    /// The stream is inside an envelope, as in many message fields
    #[arg(long)]
    pub(crate) envelope: bool,
    /// Class tags are in the CoreObject form
    #[arg(long)]
    pub(crate) core: bool,
    /// Shallow streams leave out deprecated properties
    #[arg(long)]
    pub(crate) skip_deprecated: bool,
    /// Keep unknown classes, unknown properties and values of another size, instead of an error
    #[arg(long)]
    pub(crate) lenient: bool,
    /// A TOML file with the block and type of classes in the CoreObject form, and other hints
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KiOpDecode {
    /// Files, directories, archives, patterns with * and **; ARCHIVE/NAME is one file of an archive,
    /// - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Type lists; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) stream: KiStream,
    /// The output format
    #[arg(long, value_name = "FORM", default_value = "json")]
    pub(crate) to: KiObjectForm,
    /// Show the position of every value, in text
    #[arg(long)]
    pub(crate) bytes: bool,
    /// In text, show the texts of codes like Items_31939071: locale files, archives, directories
    #[arg(long, value_name = "PATH")]
    pub(crate) lang: Vec<PathBuf>,
    /// In JSON, write integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Reject objects with more values than this for each of their bytes, and 4096 more; only
    /// compressed objects can have more than 8
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::DEFAULT.values_per_byte)]
    pub(crate) values_per_byte: u64,
    /// Leave existing files as they are
    #[arg(long, requires = "output", conflicts_with = "force")]
    pub(crate) skip_existing: bool,
    /// How many threads to use, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct KiOpEncode {
    /// Files, directories, patterns with * and **; - is standard input
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Type lists; later ones override earlier ones
    #[arg(short, long, value_name = "LIST", required = true)]
    pub(crate) types: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) stream: KiStream,
    /// Write this form, whatever the text says. Without it, text that says nothing becomes a BINd
    /// file or, with an option about the stream, a bare stream
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<KiStreamForm>,
    /// Encode what was extracted and is unchanged, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Fill in missing properties with their defaults. Shallow streams need all properties, which
    /// objects written by hand often lack
    #[arg(long)]
    pub(crate) complete: bool,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    /// How many threads to use, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// What stands around the stream of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiStreamForm {
    /// A file that begins with BINd and its flags
    Bind,
    /// The stream alone, as in fields of messages
    Bare,
}

/// Forms of objects that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiObjectForm {
    /// JSON, which holds everything
    Json,
    /// XML, as clients use it
    Xml,
    /// Text for people
    Text,
}

/// A number in decimal digits, or in hexadecimal ones behind `0x`.
pub(super) fn number(text: &str) -> Result<u32, &'static str> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => "wanted a number of at most 32 bits, 0xffffffff",
        _ => "wanted a number such as 24 or 0x18",
    })
}
