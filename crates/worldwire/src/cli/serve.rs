//! The command line of `worldwire serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_server::{SettingError, uru};

use super::ServeKi;
use super::mxo::{SessionId, number};

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
one run. Ctrl-C or SIGTERM stops the shard.

Examples:
  worldwire serve uru
  worldwire serve uru /srv/uru --listen 0.0.0.0:14617 --public-address uru.example.org")]
    Uru(ServeUru),
    /// Run a login server of Wizard101 and Pirate101 (sessions, accounts, characters, queue)
    #[command(after_help = "\
The first start makes the folder with its key, database and ki.toml. What the options say is written to
ki.toml then; later they hold for one run. Ctrl-C or SIGTERM stops the server, and SIGUSR1 makes all
sessions stale.

Examples:
  worldwire serve ki
  worldwire serve ki /srv/login --listen 0.0.0.0:12000 --public-address ki.example.org
  worldwire serve ki --secrets login-keys.toml")]
    Ki(ServeKi),
    /// Run a small open world of The Matrix Online over UDP
    #[command(after_help = "\
The world has the objects of a scene: doors that open and close, people who walk. Clients see what is
near them and walk. docs/mxo-world.md describes scenes. There is no login: who knows the session's id
and key is let in. On this machine the key is one that everybody knows; elsewhere give one, or let one
be made with --key random. Ctrl-C or SIGTERM stops the world.

Examples:
  worldwire serve mxo
  worldwire serve mxo square.toml --data mine.objects
  worldwire serve mxo --listen 0.0.0.0:10000 --key random --secrets keys.toml")]
    Mxo(ServeMxo),
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
    #[arg(long, value_name = "HOST", value_parser = uru_host)]
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

/// What clients of Uru can be told to connect to.
fn uru_host(text: &str) -> Result<String, SettingError> {
    uru::config::check_public_address(text).map(|()| text.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ServeMxo {
    /// The scene (default a square with 500 objects)
    pub(crate) scene: Option<PathBuf>,
    /// Tables of game objects, over what is built in: files or directories
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10000")]
    pub(crate) listen: SocketAddr,
    /// Where the status page listens; it has no password
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10080")]
    pub(crate) status: SocketAddr,
    /// No status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// The Twofish key of the session, 32 hexadecimal digits, or `random`; needed off loopback
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The id of the session, which clients name
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number)]
    pub(crate) session: SessionId,
    /// Append the session's id and key to a key file, so that captures can be read
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// The time from tick to tick
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(10..=10_000))]
    pub(crate) tick: u64,
    /// The most bytes of objects for one client in one tick
    #[arg(long, value_name = "BYTES", default_value_t = 2_590,
        value_parser = clap::value_parser!(u32).range(1_295..=1_000_000))]
    pub(crate) budget: u32,
    /// A client gets a view of what is this close, in world units: 100 are a metre
    #[arg(long, value_name = "UNITS", default_value_t = 10_000.0)]
    pub(crate) reach: f64,
    /// How many clients are let in
    #[arg(long, value_name = "NUMBER", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) clients: u32,
    /// How many of them from one address
    #[arg(long, value_name = "NUMBER", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) per_address: u32,
    /// Log every datagram that begins no connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
