//! The command line of `worldwire mxo`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[cfg(feature = "network")]
use super::MxoServerCommand;
use super::{Capture, Target};

#[derive(Debug, Args)]
pub(crate) struct Mxo {
    #[command(subcommand)]
    pub(crate) command: MxoCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoCommand {
    #[cfg(feature = "network")]
    #[command(flatten)]
    Server(MxoServerCommand),
    /// Check, show and convert tables of game objects
    #[command(subcommand, arg_required_else_help = true)]
    Objects(MxoObjectsCommand),
    /// Show the views that exist at the end of a capture or after one of its packets
    #[command(after_help = "Examples:
  worldwire mxo views samples/mxo-world.pcapng --keys samples/mxo-keys.toml
  worldwire mxo views world.pcapng --keys keys.toml --packet 4711 --json")]
    Views(Box<MxoViewsCommand>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoObjectsCommand {
    /// Check tables and report every problem
    #[command(after_help = "Examples:
  worldwire mxo objects check mine.objects
  worldwire mxo objects check attribute_classes.csv goids.csv")]
    Check {
        /// Tables: files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Show a goobj and its class, or a class, in the format of `convert`
    #[command(after_help = "Examples:
  worldwire mxo objects show 414
  worldwire mxo objects show \"Subway Car Default\"
  worldwire mxo objects show door364 --json")]
    Show {
        /// A goobj, by number (decimal or 0x...) or name; or a class, by name, even if the name looks
        /// like a number
        object: String,
        /// Tables that override the built-in ones: files or directories
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Convert tables to this project's format
    #[command(after_help = "Examples:
  worldwire mxo objects convert attribute_classes.csv goids.csv -o mine.objects
  worldwire mxo objects convert --built-in -o built-in.objects")]
    Convert {
        /// Tables: files or directories
        #[arg(required_unless_present = "built_in")]
        paths: Vec<PathBuf>,
        /// Start with the built-in tables
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
    /// Show only the conversation with this number
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Show the views after the packet with this number, counted from 1, like `packet` in JSON and in
    /// filters
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) packet: Option<u64>,
    /// Write one JSON object per conversation
    #[arg(long)]
    pub(crate) json: bool,
}
