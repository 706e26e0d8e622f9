//! The command line of `worldwire mods`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Data;

#[derive(Debug, Args)]
pub(crate) struct Mods {
    #[command(subcommand)]
    pub(crate) command: ModsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModsCommand {
    /// List what mods use, what is missing, and which features will not work
    #[command(after_help = "\
The command starts the mods under Node.js, which must be installed, without a connection. The exit
code is 1 if a mod cannot run.

Examples:
  worldwire mods check mods --data tera-data
  worldwire mods check mods --data tera-data --revision 387463 --json")]
    Check(ModsCheck),
}

#[derive(Debug, Args)]
pub(crate) struct ModsCheck {
    /// Directory that contains the mods
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Write JSON, one line per mod
    #[arg(long)]
    pub(crate) json: bool,
}
