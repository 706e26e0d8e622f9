//! The command line of `diff`.

use std::path::PathBuf;

use clap::Args;

use super::Knowledge;

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// First input; CAPTURE:17 is message 17 of a capture, as counted by `dissect --message 17`
    pub(crate) before: PathBuf,
    /// Second input, of the same kind
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    /// Compare only messages that match this filter, such as 'auth.*'; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Compare only the conversation with this number in both captures
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Compare the matching message with this number, counted from 1, in both captures
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) message: Option<u64>,
    /// Ignore fields whose paths end in one of these names; * matches any part of a name:
    /// transId,auth.AcctLoginRequest.challenge,m_*Time
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// Type list for game objects in archives; can be repeated
    #[arg(short, long, value_name = "LIST")]
    pub(crate) types: Vec<PathBuf>,
    /// Write one JSON object per difference
    #[arg(long)]
    pub(crate) json: bool,
}
