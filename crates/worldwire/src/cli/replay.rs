//! The command line of `worldwire replay`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::quantity::parse_time;
use super::{Data, SideArg};

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A pcap or pcapng capture, optionally gzipped
    pub(crate) file: PathBuf,
    /// Replay the conversation with this number; several conversations are replayed one after
    /// another, and all of them stay open until the last one ends [default: the only one]
    #[arg(short, long, value_name = "NUMBER,...", value_delimiter = ',')]
    pub(crate) stream: Vec<u64>,
    /// Side to play
    #[arg(id = "as", long = "as", value_name = "SIDE")]
    pub(crate) own: SideArg,
    /// With --as client: the live server, on the recorded port unless another is given
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        required_if_eq("as", "client"),
        conflicts_with = "listen"
    )]
    pub(crate) to: Option<String>,
    /// With --as server: address to listen on for the live client [default: 127.0.0.1 and the
    /// recorded port]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Key file that decrypts the capture; can be repeated; see `worldwire dissect --help`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// Key file for the live connection, such as a server.ini; can be repeated [default: --keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) live_keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Log in to this account instead of the recorded one (KI, Uru)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE", requires = "account")]
    pub(crate) password_file: Option<PathBuf>,
    /// Continue a login with its secret, the CK2 from `worldwire client ki` (KI)
    #[arg(long, value_name = "CK2")]
    pub(crate) token: Option<String>,
    /// Apply the rules in this file to the live conversation, as a proxy does
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Ignore matching messages from the live peer, whether recorded or not; can be repeated
    #[arg(long, value_name = "FILTER")]
    pub(crate) ignore: Vec<String>,
    /// When to send messages: as soon as possible, or no sooner than in the recording
    #[arg(long, value_name = "PACE", default_value = "fast")]
    pub(crate) pace: PaceArg,
    /// Time limit for each message from the live peer: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    pub(crate) patience: Duration,
    /// Write events as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every message to standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// When the replay sends its messages.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PaceArg {
    /// As soon as everything recorded before them has happened
    Fast,
    /// At least the recorded interval after the previous message
    Recorded,
}
