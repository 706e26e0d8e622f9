//! The command line of `worldwire tera`.

use std::num::{IntErrorKind, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use worldwire_tera::schema::{Dialect, ParseOptions, Patch, Platform};

use super::{Data, SideArg, Target};

#[derive(Debug, Args)]
pub(crate) struct Tera {
    #[command(subcommand)]
    pub(crate) command: TeraCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeraCommand {
    /// Check, show, compare and format definitions, and rank them for an opcode
    #[command(subcommand, arg_required_else_help = true)]
    Def(TeraDef),
    /// Show, compare and convert opcode and system message maps; create the map for a new build
    #[command(subcommand, arg_required_else_help = true)]
    Map(TeraMap),
    /// Write the list of client messages in a capture that have a counter and checksum
    #[command(after_help = "Examples:
  worldwire tera integrity capture.pcap --data tera-data -o tera-data/integrity/115.json
  worldwire tera integrity capture.pcap --data tera-data -o tera-data/integrity/

If the output is a directory, the file is named after the patch. The list combines the build's lists from
--data with messages detected in the capture by a counter that rises from one message to the next. Opcodes
without a name in the map cannot be listed; they are reported, along with the command that identifies
them, and the exit code is then 1.")]
    Integrity {
        /// Capture
        capture: PathBuf,
        #[command(flatten)]
        build: TeraBuild,
        #[command(flatten)]
        target: Target,
    },
}

/// Definitions, and the build that they are for.
#[derive(Debug, Args)]
pub(crate) struct TeraBuild {
    /// Definitions and maps: files or directories
    #[arg(short, long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// Client revision, which selects the opcode map
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// Game version, such as 92.04, if revisions.json does not list the revision
    #[arg(long, value_name = "VERSION")]
    pub(crate) patch: Option<Patch>,
}

impl TeraBuild {
    /// Converts these to the general options.
    pub(crate) fn data(&self) -> Data {
        let Self { data, revision, patch } = self;
        Data { paths: data.clone(), revision: *revision, patch: *patch, pin: Vec::new() }
    }
}

/// How definitions are read.
#[derive(Debug, Args)]
pub(crate) struct TeraReading {
    /// Dialect of the definitions [default: detected from their syntax]
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<TeraDialect>,
    /// Game version, such as 92.04, for fields that exist only in some patches
    #[arg(long, value_name = "VERSION")]
    patch: Option<Patch>,
    /// Platform; definitions specific to it override the general ones
    #[arg(long, value_name = "PLATFORM", default_value = "pc")]
    platform: TeraPlatform,
    /// Skip invalid lines, as older parsers do; the resulting layout may be wrong
    #[arg(long)]
    lenient: bool,
}

impl TeraReading {
    /// The options of a definition set.
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
    /// The original dialect, with lines for counts and offsets
    Legacy,
    /// The dialect of tera-toolbox
    Toolbox,
    /// The dialect of tera-proxy in 2020, with patch ranges and includes
    Proto,
}

/// A platform of the client.
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
    /// Check definitions and report every problem
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
        /// Keep running until Ctrl-C and check again after every change
        #[arg(long)]
        watch: bool,
    },
    /// Show the fields of a definition, with their offsets
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
        /// Header size: 12 for messages with a counter and checksum
        #[arg(long, value_name = "BYTES", default_value_t = 4)]
        header: u32,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// List definitions, with the lengths of their messages
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
    /// Find definitions by field, message length or sender
    #[command(after_help = "Examples:
  worldwire tera def find --field gameId --data samples/tera
  worldwire tera def find --length 42 --from server --data samples/tera")]
    Find {
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        /// Substring of a field name, at any depth, ignoring case
        #[arg(long, value_name = "NAME")]
        field: Option<String>,
        /// Length, including the header, of a message that the definition must fit
        #[arg(long, value_name = "BYTES")]
        length: Option<u16>,
        /// Sender of the message
        #[arg(long, value_name = "SIDE")]
        from: Option<SideArg>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write one JSON object per definition, with the paths of its (matching) fields
        #[arg(long)]
        json: bool,
    },
    /// Compare two definitions, or two directories of definitions
    #[command(after_help = "Examples:
  worldwire tera def diff S_CHAT.1 S_CHAT.2 --data samples/tera
  worldwire tera def diff old/S_LOGIN.13.def new/S_LOGIN.14.def
  worldwire tera def diff tera-data-2020/protocol tera-data-2022/definitions")]
    Diff {
        /// File, directory or NAME.VERSION
        old: String,
        /// File, directory or NAME.VERSION
        new: String,
        /// Definitions in which to look up NAME.VERSION: files or directories
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
        /// Files or directories; - formats standard input to standard output
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// List the files that would change, without changing them
        #[arg(long)]
        check: bool,
    },
    /// Identify an unknown opcode by trying every definition on its messages
    #[command(after_help = "Examples:
  worldwire tera def rank 51042 --from samples/tera-login.pcapng --data samples/tera
  worldwire tera def rank 0xc762 --from samples/tera-login.pcapng --data samples/tera
  worldwire tera def rank --from new-build.pcapng --data tera-data --top 3
  worldwire tera def rank 51042 --from new.pcap --data tera-data --write protocol.387486.map --add

The documentation of worldwire_tera::rank explains the score.")]
    Rank(TeraRank),
}

#[derive(Debug, Args)]
pub(crate) struct TeraRank {
    /// Opcode, decimal or 0x... [default: all opcodes without a name]
    #[arg(value_parser = opcode)]
    pub(crate) opcode: Option<u16>,
    /// Capture that contains messages with the opcode
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) from: PathBuf,
    #[command(flatten)]
    pub(crate) build: TeraBuild,
    /// Write a map with the best name for each opcode, and ties as comments, to this file; --data
    /// finds it if it is named protocol.REVISION.map
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Append to an existing map, whose names are kept and not proposed for other opcodes
    #[arg(long, requires = "write", conflicts_with = "force")]
    pub(crate) add: bool,
    /// Overwrite an existing map
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Number of definitions to show per opcode
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
        /// Map as lines or JSON, or a data.json file
        file: PathBuf,
        /// Names and numbers to show, decimal or 0x... [default: all]
        entries: Vec<String>,
        /// Revision of the map to read from a data.json file
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
        /// Map as lines or JSON
        old: PathBuf,
        /// Map as lines or JSON
        new: PathBuf,
        /// Write one JSON object per difference
        #[arg(long)]
        json: bool,
    },
    /// Propose a map for a new build from the old map and captures of both builds
    #[command(after_help = "Examples:
  worldwire tera map carry --old old.pcap --old-map protocol.385363.map --new new.pcap \\
      --data tera-data -o protocol.387486.map

--data finds the map if it is named protocol.REVISION.map, with the new client's revision.

Opcodes are matched by how well definitions fit, by the shape of their messages, and by their position in
the conversation. The percentage in each line of the map is the best name's lead over the next best; a
high percentage alone does not make a match certain. Uncertain matches are written as comments; ? marks
opcodes for which no name is proposed. Only names with messages in the old capture are proposed. For
opcodes that fit none of the remaining names, comments at the end list the commands (tera def rank) that
try every definition on them and add the results to the map.")]
    Carry {
        /// Capture of the old build
        #[arg(long, value_name = "CAPTURE")]
        old: PathBuf,
        /// Map of the old build
        #[arg(long, value_name = "FILE")]
        old_map: PathBuf,
        /// Capture of the new build
        #[arg(long, value_name = "CAPTURE")]
        new: PathBuf,
        /// Definitions: files or directories
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        /// Game version, such as 92.04, for definitions that depend on it
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
        /// Map as lines or JSON, or a data.json file
        file: PathBuf,
        /// Output format
        #[arg(long, value_name = "FORM")]
        to: TeraMapForm,
        /// Revision of the map to read from a data.json file
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
    /// Lines of NAME CODE, as older programs expect
    Plain,
    /// One JSON object
    Json,
}

/// Parses an opcode, decimal or, after `0x`, hexadecimal.
fn opcode(text: &str) -> Result<u16, &'static str> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => "needs an opcode of at most 65535 (0xffff)",
        _ => "needs an opcode such as 51042 or 0xc762",
    })
}
