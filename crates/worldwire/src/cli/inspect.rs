//! The command line of `worldwire inspect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Knowledge;

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A pcap or pcapng capture, optionally gzipped, or a KI archive (.wad)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    /// Address and port to listen on; port 0 selects a free port. The page is not encrypted, so use
    /// a tunnel to reach it from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Show packets as they are appended to the file
    #[arg(id = "growing", long = "growing")]
    pub(crate) is_growing: bool,
    /// Allow the page to edit game objects and to save changed copies of a KI archive and its files
    /// as new files in the archive's directory
    #[arg(long)]
    pub(crate) edit: bool,
    /// Open the page in the default browser; needs a terminal
    #[arg(long)]
    pub(crate) open: bool,
}
