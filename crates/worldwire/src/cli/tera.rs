//! The command line of `worldwire tera`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use worldwire_tera::schema::{Dialect, Options, Patch, Platform};

use super::Target;

#[derive(Debug, Args)]
pub(crate) struct Tera {
    #[command(subcommand)]
    pub(crate) command: TeraCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeraCommand {
    /// Definitions: check, show, compare, format them, and find the one that fits
    #[command(subcommand, arg_required_else_help = true)]
    Def(TeraDef),
    /// Maps of opcodes and of system messages
    #[command(subcommand, arg_required_else_help = true)]
    Map(TeraMap),
}

/// How definitions are read.
#[derive(Debug, Args)]
pub(crate) struct TeraReading {
    /// Their dialect; told by what they use, if nobody says
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<TeraDialect>,
    /// The version of the game, such as 92.04, for fields that exist in some patches only
    #[arg(long, value_name = "VERSION")]
    patch: Option<Patch>,
    /// Whose files replace the general ones
    #[arg(long, value_name = "PLATFORM", default_value = "pc")]
    platform: TeraPlatform,
    /// Skip lines that cannot be read, as older parsers do; what comes out may be a wrong layout
    #[arg(long)]
    lenient: bool,
}

impl TeraReading {
    /// As choices for a set.
    pub(crate) fn options(&self) -> Options {
        Options {
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
    /// The first one, with lines for counts and offsets
    Legacy,
    /// The one of tera-toolbox
    Toolbox,
    /// The one of tera-proxy in 2020, with patch ranges and includes
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
    /// Read definitions, and say all that is wrong with them
    #[command(after_help = "Examples:
  worldwire tera def check samples/tera
  worldwire tera def check tera-data/definitions --watch")]
    Check {
        /// Files, or folders of them
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write a JSON object for each problem
        #[arg(long)]
        json: bool,
        /// Go on, and check again whatever changes, until Ctrl-C
        #[arg(long)]
        watch: bool,
    },
    /// Show the fields of a definition and where in a message they stand
    #[command(after_help = "Examples:
  worldwire tera def show S_CHAT --data samples/tera
  worldwire tera def show C_START_SKILL.7 --data tera-data/definitions --header 12")]
    Show {
        /// NAME or NAME.VERSION; the newest, if there is no version
        definition: String,
        /// Definitions: files, or folders of them
        #[arg(short, long, value_name = "PATH", required = true)]
        data: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Bytes of the header: 12 for messages with counter and checksum
        #[arg(long, value_name = "BYTES", default_value_t = 4)]
        header: u32,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Say how two definitions differ, or the definitions of two folders
    #[command(after_help = "Examples:
  worldwire tera def diff S_CHAT.1 S_CHAT.2 --data samples/tera
  worldwire tera def diff old/S_LOGIN.13.def new/S_LOGIN.14.def
  worldwire tera def diff tera-data-2020/protocol tera-data-2022/definitions")]
    Diff {
        /// A file, a folder, or NAME.VERSION
        old: String,
        /// A file, a folder, or NAME.VERSION
        new: String,
        /// Definitions that are given as NAME.VERSION: files, or folders of them
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        #[command(flatten)]
        reading: TeraReading,
        /// Write a JSON object for each change
        #[arg(long)]
        json: bool,
    },
    /// Write definitions in the one way that everybody can agree on
    #[command(after_help = "Examples:
  worldwire tera def fmt tera-data/definitions
  worldwire tera def fmt S_LOGIN.14.def --check
  worldwire tera def fmt - < S_LOGIN.14.def")]
    Fmt {
        /// Files, or folders of them; - is standard input, written to standard output
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Only name the files that would change
        #[arg(long)]
        check: bool,
    },
    /// Find the definition of an unknown opcode: try all of them on every message
    #[command(after_help = "Examples:
  worldwire tera def rank 51042 --from samples/tera-login.pcapng --data samples/tera
  worldwire tera def rank --from new-build.pcapng --data tera-data --top 3

Without an opcode it tries all that have no name. The score is explained in the documentation of
worldwire_tera::rank.")]
    Rank(TeraRank),
}

#[derive(Debug, Args)]
pub(crate) struct TeraRank {
    /// The opcode; every one without a name, if there is none
    pub(crate) opcode: Option<u16>,
    /// The capture
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) from: PathBuf,
    /// Definitions and maps: files, or folders of them
    #[arg(short, long, value_name = "PATH", required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// The revision of the client, which chooses the map of opcodes
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// The version of the game, such as 92.04, where no revisions.json tells
    #[arg(long, value_name = "VERSION")]
    pub(crate) patch: Option<Patch>,
    /// How many definitions to show
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) top: usize,
    /// Write a JSON object for each of them
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
        /// A map, as lines or JSON, or a data.json
        file: PathBuf,
        /// Only these names and numbers
        entries: Vec<String>,
        /// Which map of a data.json
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u32>,
        /// Write a JSON object for each entry
        #[arg(long)]
        json: bool,
    },
    /// Write a map in another form
    #[command(after_help = "Examples:
  worldwire tera map convert protocol.387486.map --to json -o protocol.json
  worldwire tera map convert data.json --revision 387486 --to map -o protocol.387486.map")]
    Convert {
        /// A map, as lines or JSON, or a data.json
        file: PathBuf,
        /// The form to write
        #[arg(long, value_name = "FORM")]
        to: TeraMapForm,
        /// Which map of a data.json
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
    /// Lines of NAME CODE, as older programs want them
    Plain,
    /// One JSON object
    Json,
}
