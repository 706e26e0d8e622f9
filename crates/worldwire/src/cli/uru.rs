//! The command line of `worldwire uru`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Target;

#[derive(Debug, Args)]
pub(crate) struct Uru {
    #[command(subcommand)]
    pub(crate) command: UruCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruCommand {
    /// Generate and convert the keys of a shard
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Make, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
    /// Check and show descriptors of states; decode and compare states
    #[command(subcommand, arg_required_else_help = true)]
    Sdl(UruSdl),
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Generate the keys of a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// The output format
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
    /// Convert keys between server formats
    #[command(after_help = "Examples:
  worldwire uru keys convert dirtsand.ini --to toml -o keys.toml
  worldwire uru keys convert keys.toml --to server-ini")]
    Convert {
        /// Keys in any format; - is standard input
        file: PathBuf,
        /// The output format
        #[arg(long, value_name = "FORMAT")]
        to: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
}

/// Formats of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyFormat {
    /// worldwire's own format, with the server's secrets
    Toml,
    /// worldwire's own format, only what clients may know
    TomlPublic,
    /// dirtsand.ini, with the server's secrets
    Dirtsand,
    /// moulars, with the server's secrets
    Moulars,
    /// NAGUS, with the server's secrets
    Nagus,
    /// The client's server.ini
    ServerIni,
    /// Source code of OpenUru clients
    OpenUru,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruManifest {
    /// Make a manifest of the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// The directory; subdirectories are included
        folder: PathBuf,
        /// Put this directory in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Compress the files with gzip into this directory, and list the compressed files
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// The manifest
        file: PathBuf,
        /// The directory with the downloads or with the plain files
        folder: PathBuf,
        /// The client's names begin with this directory
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// The manifest, as text (.mfs) or in wire format
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruSdl {
    /// Check descriptors, and report every problem
    #[command(after_help = "Examples:
  worldwire uru sdl check samples/sdl
  worldwire uru sdl check SDL/*.sdl --json")]
    Check {
        /// Files, or directories with .sdl files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write one JSON object per problem
        #[arg(long)]
        json: bool,
    },
    /// Show descriptors in the canonical style
    #[command(after_help = "Examples:
  worldwire uru sdl show Fernhollow --sdl samples/sdl
  worldwire uru sdl show Fernhollow.2 --sdl samples/sdl --json")]
    Show {
        /// NAME for all its versions, or NAME.VERSION; all descriptors by default
        descriptor: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per descriptor
        #[arg(long)]
        json: bool,
    },
    /// Show a state: the blob of a game message or of a vault node
    #[command(after_help = "Examples:
  worldwire uru sdl decode samples/uru-state.bin --sdl samples/sdl
  worldwire uru sdl decode --hex 008005f0... --sdl samples/sdl --json")]
    Decode {
        /// The blob; - or no file is standard input
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// The blob as hexadecimal digits
        #[arg(long, value_name = "STRING")]
        hex: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write JSON that `worldwire encode uru.sdl` reads
        #[arg(long)]
        json: bool,
        /// Show the position of every field
        #[arg(long, conflicts_with = "json")]
        bytes: bool,
    },
    /// Compare two states, also of different versions
    #[command(after_help = "Example:
  worldwire uru sdl diff samples/uru-state.bin samples/uru-state-later.bin --sdl samples/sdl")]
    Diff {
        /// The older state: a blob, or the JSON of one
        old: PathBuf,
        /// The newer state
        new: PathBuf,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per change
        #[arg(long)]
        json: bool,
    },
}

/// Where the descriptors of states are.
#[derive(Debug, Args)]
pub(crate) struct UruDescriptors {
    /// Descriptors: .sdl files, or directories with some
    #[arg(id = "sdl", short = 'd', long = "sdl", value_name = "PATH", visible_alias = "data")]
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
}
