//! The command line of `sanitize`.

use std::path::PathBuf;

use clap::Args;

use super::Knowledge;

#[derive(Debug, Args)]
pub(crate) struct SanitizeArguments {
    /// A pcap or pcapng capture, optionally gzipped
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    /// Capture to write: .pcapng
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Derive all replacements and keys from this number, for repeatable results; anyone who
    /// guesses the number can check guesses about the original values [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}
