//! The command line of `worldwire settings`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// List all settings, their values, and where each value comes from
    #[command(after_help = "Examples:
  worldwire settings show
  worldwire settings show game.pcapng
  worldwire settings show --profile wizard --json")]
    Show(SettingsShow),
}

#[derive(Debug, Args)]
pub(crate) struct SettingsShow {
    /// Show the settings for this capture, including those of profiles that match its conversations
    pub(crate) file: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
