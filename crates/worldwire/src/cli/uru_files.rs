//! The command line of `worldwire uru` for files: keys, manifests, and state descriptors.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Target, UruShard};

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Generate keys for a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// Output format
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
        /// Output format
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
    /// worldwire's own format, with public keys only
    TomlPublic,
    /// dirtsand.ini, with the server's secrets
    Dirtsand,
    /// moulars, with the server's secrets
    Moulars,
    /// NAGUS, with the server's secrets
    Nagus,
    /// The client's server.ini
    ServerIni,
    /// Source code for OpenUru clients
    OpenUru,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruManifest {
    /// Create a manifest of the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// Directory; subdirectories are included
        folder: PathBuf,
        /// Prefix the client's file names with this directory
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Write gzipped files to this directory and list them as downloads
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// Manifest
        file: PathBuf,
        /// Directory with the downloads or the uncompressed files
        folder: PathBuf,
        /// Directory prefix of the client's file names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// Manifest, in text (.mfs) or wire format
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruSdl {
    /// Check descriptors and report every problem
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
    /// Set variables for all instances of an age on a shard
    ///
    /// The values apply to every instance. An instance that changes the variable later keeps its own
    /// value. Players in the age see the change immediately.
    #[command(after_help = "Examples:
  worldwire uru sdl set Fernhollow fhGateOpen=true
  worldwire uru sdl set city islmFireworks=1 --server /srv/uru")]
    Set {
        /// Age, by its file name, which is also its descriptor's name
        age: String,
        /// VARIABLE=VALUE, with the value as JSON
        #[arg(required = true, value_name = "VARIABLE=VALUE")]
        variables: Vec<String>,
        /// Descriptors: .sdl files or directories [default: the shard's]
        #[arg(long, value_name = "PATH")]
        sdl: Vec<PathBuf>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Show descriptors in the canonical style
    #[command(after_help = "Examples:
  worldwire uru sdl show Fernhollow --sdl samples/sdl
  worldwire uru sdl show Fernhollow.2 --sdl samples/sdl --json")]
    Show {
        /// NAME for all its versions, or NAME.VERSION [default: all descriptors]
        descriptor: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per descriptor
        #[arg(long)]
        json: bool,
    },
    /// Decode a state from a game message or a vault node
    #[command(after_help = "Examples:
  worldwire uru sdl decode samples/uru-state.bin --sdl samples/sdl
  worldwire uru sdl decode --hex 008005f0... --sdl samples/sdl --json")]
    Decode {
        /// File with the blob; - is standard input [default: -]
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// Blob as hexadecimal digits
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
    /// Compare two states, even if their versions differ
    #[command(after_help = "Example:
  worldwire uru sdl diff samples/uru-state.bin samples/uru-state-later.bin --sdl samples/sdl")]
    Diff {
        /// Older state: a blob, or its JSON
        old: PathBuf,
        /// Newer state: a blob, or its JSON
        new: PathBuf,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per change
        #[arg(long)]
        json: bool,
    },
}

/// The state descriptors.
#[derive(Debug, Args)]
pub(crate) struct UruDescriptors {
    /// Descriptors: .sdl files or directories
    #[arg(id = "sdl", short = 'd', long = "sdl", value_name = "PATH", visible_alias = "data")]
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
}
