//! The command line of `worldwire tera`.

use std::num::{IntErrorKind, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use worldwire_tera::schema::{Dialect, ParseOptions, Patch, Platform};

use super::{From, Target};

#[derive(Debug, Args)]
pub(crate) struct Tera {
    #[command(subcommand)]
    pub(crate) command: TeraCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeraCommand {
    /// Check, show, compare and format definitions; find the one that fits an opcode
    #[command(subcommand, arg_required_else_help = true)]
    Def(TeraDef),
    /// Show, compare and convert maps of opcodes and of system messages; make the map of a new build
    #[command(subcommand, arg_required_else_help = true)]
    Map(TeraMap),
    /// Write the list of client messages that have counter and checksum in a capture
    #[command(after_help = "Examples:
  worldwire tera integrity capture.pcap --data tera-data -o tera-data/integrity/115.json
  worldwire tera integrity capture.pcap --data tera-data -o tera-data/integrity/

In a directory, the file is called by the patch. The list holds the names of the lists given with --data for the build, and the messages that were
found to have counter and checksum without one: those whose counter rises from one message to the
next. Opcodes that the map does not name cannot stand in it: they are reported, with the command that
identifies them, and the exit code is 1.")]
    Integrity {
        /// The capture
        capture: PathBuf,
        #[command(flatten)]
        build: TeraBuild,
        #[command(flatten)]
        target: Target,
    },
}

/// Definitions, and which build they are for.
#[derive(Debug, Args)]
pub(crate) struct TeraBuild {
    /// Definitions and maps: files or directories
    #[arg(short, long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// The revision of the client, which selects the map of opcodes
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// The version of the game, such as 92.04, if no revisions.json has it
    #[arg(long, value_name = "VERSION")]
    pub(crate) patch: Option<Patch>,
}

/// How definitions are read.
#[derive(Debug, Args)]
pub(crate) struct TeraReading {
    /// The dialect of the definitions; by default it is recognised by what they use
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<TeraDialect>,
    /// The version of the game, such as 92.04, for fields that exist only in some patches
    #[arg(long, value_name = "VERSION")]
    patch: Option<Patch>,
    /// The platform, whose own definitions override the general ones
    #[arg(long, value_name = "PLATFORM", default_value = "pc")]
    platform: TeraPlatform,
    /// Skip invalid lines, as older parsers do; the resulting layout may be wrong
    #[arg(long)]
    lenient: bool,
}

impl TeraReading {
    /// As choices for a set.
    pub(crate) fn options(&self) -> ParseOptions {
        ParseOptions {
            dialect: self.dialect.map(|dialect| match dialect {
                TeraDialect::Legacy => Dialect::Legacy,
                TeraDialect::Toolbox => Dialect::Toolbox,
                TeraDialect::Proto => Dialect::Proto,
            }),
            lenient: self.lenient,
            patch: self.patch,
            platform: match self.platform {
                TeraPlatform::Pc => Platform::Pc,
                TeraPlatform::Ps4 => Platform::Ps4,
                TeraPlatform::Xb1 => Platform::Xb1,
            },
        }
    }
}

/// Dialects of the definition language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TeraDialect {
    /// The first dialect, with lines for counts and offsets
    Legacy,
    /// The dialect of tera-toolbox
    Toolbox,
    /// The dialect of tera-proxy in 2020, with patch ranges and includes
    Proto,
}

/// What clients run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TeraPlatform {
    /// Windows
    Pc,
    /// PlayStation 4
    Ps4,
    /// Xbox One
    Xb1,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeraDef {
    /// Check definitions, and report every problem
    #[command(after_help = "Examples:
  worldwire tera def check samples/tera
  worldwire tera def check tera-data/definitions --watch")]
    Check {
        /// Files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write one JSON object per problem
        #[arg(long)]
        json: bool,
        /// Keep running, and check again after every change, until Ctrl-C
        #[arg(long)]
        watch: bool,
    },
    /// Show the fields of a definition and their offsets in a message
    #[command(after_help = "Examples:
  worldwire tera def show S_CHAT --data samples/tera
  worldwire tera def show C_START_SKILL.7 --data tera-data/definitions --header 12")]
    Show {
        /// NAME.VERSION, or NAME for the newest version
        definition: String,
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Size of the header: 12 for messages with counter and checksum
        #[arg(long, value_name = "BYTES", default_value_t = 4)]
        header: u32,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// List the definitions, with the lengths of their messages
    #[command(after_help = "Examples:
  worldwire tera def list --data samples/tera")]
    List {
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write one JSON object per definition, with the paths of its fields
        #[arg(long)]
        json: bool,
    },
    /// Find definitions by a field, the length of a message, or who sends it
    #[command(after_help = "Examples:
  worldwire tera def find --field gameId --data samples/tera
  worldwire tera def find --length 42 --from server --data samples/tera")]
    Find {
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        /// A field whose name contains this, at any depth; upper and lower case are the same
        #[arg(long, value_name = "NAME")]
        field: Option<String>,
        /// The length of a message, header included, that the definition could be of
        #[arg(long, value_name = "BYTES")]
        length: Option<u16>,
        /// Who sends it
        #[arg(long, value_name = "SIDE")]
        from: Option<From>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write one JSON object per definition, with the paths of its fields: with --field, of those
        #[arg(long)]
        json: bool,
    },
    /// Compare two definitions, or the definitions of two directories
    #[command(after_help = "Examples:
  worldwire tera def diff S_CHAT.1 S_CHAT.2 --data samples/tera
  worldwire tera def diff old/S_LOGIN.13.def new/S_LOGIN.14.def
  worldwire tera def diff tera-data-2020/protocol tera-data-2022/definitions")]
    Diff {
        /// A file, a directory, or NAME.VERSION
        old: String,
        /// A file, a directory, or NAME.VERSION
        new: String,
        /// Where to find definitions given as NAME.VERSION: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write one JSON object per change
        #[arg(long)]
        json: bool,
    },
    /// Format definitions in the canonical style
    #[command(after_help = "Examples:
  worldwire tera def fmt tera-data/definitions
  worldwire tera def fmt S_LOGIN.14.def --check
  worldwire tera def fmt - < S_LOGIN.14.def")]
    Fmt {
        /// Files or directories; - reads standard input and writes standard output
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// List the files that would change, and change nothing
        #[arg(long)]
        check: bool,
    },
    /// Identify an unknown opcode by trying every definition on its messages
    #[command(after_help = "Examples:
  worldwire tera def rank 51042 --from samples/tera-login.pcapng --data samples/tera
  worldwire tera def rank 0xc762 --from samples/tera-login.pcapng --data samples/tera
  worldwire tera def rank --from new-build.pcapng --data tera-data --top 3
  worldwire tera def rank 51042 --from new.pcap --data tera-data --write protocol.387486.map --add

Without an opcode, all opcodes without a name are tried. The documentation of worldwire_tera::rank
explains the score.")]
    Rank(TeraRank),
}

#[derive(Debug, Args)]
pub(crate) struct TeraRank {
    /// The opcode, decimal or 0x...; by default all opcodes without a name
    #[arg(value_parser = opcode)]
    pub(crate) opcode: Option<u16>,
    /// The capture
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) from: PathBuf,
    /// Definitions and maps: files or directories
    #[arg(short, long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// The revision of the client, which selects the map of opcodes
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// The version of the game, such as 92.04, if no revisions.json has it
    #[arg(long, value_name = "VERSION")]
    pub(crate) patch: Option<Patch>,
    /// Write a map with the best name of each opcode to this file; ties are left as comments. --data
    /// finds it by its name, protocol.REVISION.map
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Add to that file, if it is there: the names in it stay, and are not proposed for other opcodes
    #[arg(long, requires = "write", conflicts_with = "force")]
    pub(crate) add: bool,
    /// Overwrite that file
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// How many definitions to show per opcode
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    pub(crate) top: NonZeroUsize,
    /// Write one JSON object per definition
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeraMap {
    /// Show the entries of a map
    #[command(after_help = "Examples:
  worldwire tera map show samples/tera/map/protocol.999001.map
  worldwire tera map show data.json --revision 387486 S_LOGIN 51042")]
    Show {
        /// A map as lines or JSON, or a data.json
        file: PathBuf,
        /// Show only these names and numbers, decimal or 0x...
        entries: Vec<String>,
        /// The revision whose map to read from a data.json
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u32>,
        /// Write one JSON object per entry
        #[arg(long)]
        json: bool,
    },
    /// Compare two maps
    #[command(after_help = "Examples:
  worldwire tera map diff protocol.385363.map protocol.387486.map")]
    Diff {
        /// A map as lines or JSON
        old: PathBuf,
        /// A map as lines or JSON
        new: PathBuf,
        /// Write one JSON object per difference
        #[arg(long)]
        json: bool,
    },
    /// Propose the map of a new build, from captures of both and the map of the old one
    #[command(after_help = "Examples:
  worldwire tera map carry --old old.pcap --old-map protocol.385363.map --new new.pcap \\
      --data tera-data -o protocol.387486.map

The map is found with --data by its name: protocol.REVISION.map, with the revision of the new client.

Opcodes are matched by how well definitions fit, by the shape of their messages, and by their place in
the conversation. Each line of the map says how far ahead the name is; that does not decide alone whether
it is sure. What is not sure is a comment. There, ? stands where a name belongs. Only names that the old
capture has messages of are proposed: none of them is left for the opcode, or none fits. Comments at the
end have the commands (tera def rank) that try every definition on such opcodes, and add what they find
to the map.")]
    Carry {
        /// A capture of the old build
        #[arg(long, value_name = "CAPTURE")]
        old: PathBuf,
        /// The map of the old build
        #[arg(long, value_name = "FILE")]
        old_map: PathBuf,
        /// A capture of the new build
        #[arg(long, value_name = "CAPTURE")]
        new: PathBuf,
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        /// The version of the game, such as 92.04, where definitions depend on it
        #[arg(long, value_name = "VERSION")]
        patch: Option<Patch>,
        #[command(flatten)]
        target: Target,
    },
    /// Convert a map to another format
    #[command(after_help = "Examples:
  worldwire tera map convert protocol.387486.map --to json -o protocol.json
  worldwire tera map convert data.json --revision 387486 --to map -o protocol.387486.map")]
    Convert {
        /// A map as lines or JSON, or a data.json
        file: PathBuf,
        /// The output format
        #[arg(long, value_name = "FORM")]
        to: TeraMapForm,
        /// The revision whose map to read from a data.json
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u32>,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TeraMapForm {
    /// Lines of NAME = CODE, in the order of the codes
    Map,
    /// Lines of NAME CODE, as older programs expect them
    Plain,
    /// One JSON object
    Json,
}

/// Reads an opcode, in decimal digits or in hexadecimal ones behind `0x`.
fn opcode(text: &str) -> Result<u16, &'static str> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => "wanted an opcode of at most 65535, 0xffff",
        _ => "wanted an opcode such as 51042 or 0xc762",
    })
}
