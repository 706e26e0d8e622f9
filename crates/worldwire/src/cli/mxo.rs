//! The command line of `worldwire mxo`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Capture, Target};

#[derive(Debug, Args)]
pub(crate) struct Mxo {
    #[command(subcommand)]
    pub(crate) command: MxoCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoCommand {
    /// Check, show and convert tables of game objects
    #[command(subcommand, arg_required_else_help = true)]
    Objects(MxoObjectsCommand),
    /// Show the views that are alive at the end of a capture, or at one of its packets
    #[command(after_help = "Examples:
  worldwire mxo views samples/mxo-world.pcapng --keys samples/mxo-keys.toml
  worldwire mxo views world.pcapng --keys keys.toml --packet 4711 --json")]
    Views(MxoViewsCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoObjectsCommand {
    /// Check tables, and report every problem
    #[command(after_help = "Examples:
  worldwire mxo objects check mine.objects
  worldwire mxo objects check attribute_classes.csv goids.csv")]
    Check {
        /// Tables: files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Show a goobj and its class, or a class, as `convert` writes them
    #[command(after_help = "Examples:
  worldwire mxo objects show 414
  worldwire mxo objects show \"Subway Car Default\"
  worldwire mxo objects show door364 --json")]
    Show {
        /// The number of a goobj, decimal or 0x..., or its name; or the name of a class, which may
        /// be a number too
        object: String,
        /// Tables, over what is built in: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Convert tables to the format of this project
    #[command(after_help = "Examples:
  worldwire mxo objects convert attribute_classes.csv goids.csv -o mine.objects
  worldwire mxo objects convert --built-in -o built-in.objects")]
    Convert {
        /// Tables: files or directories
        #[arg(required_unless_present = "built_in")]
        paths: Vec<PathBuf>,
        /// Begin with the tables that are built in
        #[arg(long)]
        built_in: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MxoViewsCommand {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Only this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// The views behind this packet of the capture, counted from 1: `packet` in JSON and in filters
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) packet: Option<u64>,
    /// Write one JSON object per conversation
    #[arg(long)]
    pub(crate) json: bool,
}

/// The id of a session.
pub(crate) type SessionId = u32;

/// Reads a number, decimal or 0x...
pub(crate) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "wanted a number up to 0xffffffff".to_owned())
}
