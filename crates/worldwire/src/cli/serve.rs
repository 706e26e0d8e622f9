//! The command line of `worldwire serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ServeKi;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: ServeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Run a shard of Myst Online: Uru Live (login, vault, files, ages)
    #[command(after_help = "\
The first start makes the folder with its keys, database and shard.toml, and prints the lines that a
client's server.ini needs. What the options say is written to shard.toml then; later they hold for
one run. Ctrl-C stops the shard.

Examples:
  worldwire serve uru
  worldwire serve uru /srv/uru --listen 0.0.0.0:14617 --public-address uru.example.org")]
    Uru(ServeUru),
    /// Run a login server of Wizard101 and Pirate101 (sessions, accounts, characters, queue)
    #[command(after_help = "\
The first start makes the folder with its key, database and ki.toml. What the options say is written to
ki.toml then; later they hold for one run. Ctrl-C stops the server, and SIGUSR1 makes all sessions
stale.

Examples:
  worldwire serve ki
  worldwire serve ki /srv/login --listen 0.0.0.0:12000 --public-address ki.example.org
  worldwire serve ki --secrets login-keys.toml")]
    Ki(ServeKi),
}

#[derive(Debug, Args)]
pub(crate) struct ServeUru {
    /// The folder of the shard
    #[arg(default_value = "shard")]
    pub(crate) folder: PathBuf,
    /// Where clients connect; off loopback, plain connections are refused [127.0.0.1:14617]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// What clients are told to connect to: a name, or an IPv4 address [127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub(crate) public_address: Option<String>,
    /// Where the status page listens [127.0.0.1:14680]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// The folder with files for clients [data, in the folder of the shard]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// Log every connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
