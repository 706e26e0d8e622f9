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
    /// Make and convert the keys of a shard
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Make, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Make the keys of a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// How to write them
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
    /// Write keys in another spelling
    #[command(after_help = "Examples:
  worldwire uru keys convert dirtsand.ini --to toml -o keys.toml
  worldwire uru keys convert keys.toml --to server-ini")]
    Convert {
        /// Keys in any spelling; - is standard input
        file: PathBuf,
        /// How to write them
        #[arg(long, value_name = "FORMAT")]
        to: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
}

/// Spellings of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyFormat {
    /// worldwire, with the server's secrets
    Toml,
    /// worldwire, only what clients may know
    TomlPublic,
    /// dirtsand.ini, with the server's secrets
    Dirtsand,
    /// moulars, with the server's secrets
    Moulars,
    /// NAGUS, with the server's secrets
    Nagus,
    /// The client's server.ini
    ServerIni,
    /// OpenUru's source, for clients
    OpenUru,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruManifest {
    /// Make a manifest of the files of a folder
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// The folder; files in folders below it are taken too
        folder: PathBuf,
        /// Put this folder in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Pack the files with gzip into this folder, and list those
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files of a folder
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// The manifest
        file: PathBuf,
        /// The folder with what is downloaded or with the plain files
        folder: PathBuf,
        /// This folder stands in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// The manifest, as text (.mfs) or as it goes over the wire
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}
