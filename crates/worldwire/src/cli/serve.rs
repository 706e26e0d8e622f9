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
    /// Run an Uru shard (login, vault, files, ages)
    #[command(after_help = "\
The first start creates the folder with its keys, database and shard.toml, writes the options to
shard.toml, and prints the lines that a client's server.ini needs. On later starts, options apply to
that run only. Ctrl-C or SIGTERM stops the shard.

Examples:
  worldwire serve uru
  worldwire serve uru /srv/uru --listen 0.0.0.0:14617 --public-address uru.example.org")]
    Uru(ServeUru),
    /// Run a KI login server (sessions, accounts, characters, queue)
    #[command(after_help = "\
The first start creates the folder with its key, database and ki.toml, and writes the options to
ki.toml. On later starts, options apply to that run only. Ctrl-C or SIGTERM stops the server; SIGUSR1
makes all sessions stale.

Examples:
  worldwire serve ki
  worldwire serve ki /srv/login --listen 0.0.0.0:12000 --public-address ki.example.org
  worldwire serve ki --secrets login-keys.toml")]
    Ki(ServeKi),
    /// Run a small open world of The Matrix Online over UDP
    #[command(after_help = "\
The world contains the objects of a scene: doors that open and close, people who walk. Clients walk and
see what is near them. docs/mxo-world.md describes scenes. There is no login: anyone with the session's
ID and key is admitted. On loopback, the default key is well known. To serve other machines, set
--key; `random` generates one. Ctrl-C or SIGTERM stops the world.

Examples:
  worldwire serve mxo
  worldwire serve mxo square.toml --data mine.objects
  worldwire serve mxo --listen 0.0.0.0:10000 --key random --secrets keys.toml")]
    Mxo(ServeMxo),
}

#[derive(Debug, Args)]
pub(crate) struct ServeUru {
    /// The shard's directory
    #[arg(default_value = "shard")]
    pub(crate) folder: PathBuf,
    /// Address to listen on, with port 14617 unless another is given; except on loopback,
    /// unencrypted connections are refused [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = uru::config::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Address that clients are told to connect to: a name, or an IPv4 address [default: 127.0.0.1]
    #[arg(long, value_name = "HOST", value_parser = uru_host)]
    pub(crate) public_address: Option<String>,
    /// Address of the status page [default: 127.0.0.1:14680]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// Disable the status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// Directory with files for clients [default: data, in the shard's directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// Log every connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Parses an address that Uru clients can connect to.
fn uru_host(text: &str) -> Result<String, SettingError> {
    uru::config::check_public_address(text).map(|()| text.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ServeMxo {
    /// The scene [default: a square with 500 objects]
    pub(crate) scene: Option<PathBuf>,
    /// Tables of game objects that override the built-in ones: files or directories
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10000")]
    pub(crate) listen: SocketAddr,
    /// Address of the status page, which has no password
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10080")]
    pub(crate) status: SocketAddr,
    /// Disable the status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// Twofish key of the session, 32 hexadecimal digits, or `random`; required except on loopback
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// ID of the session, which clients must name
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number)]
    pub(crate) session: SessionId,
    /// Append the session's ID and key to a key file, for decrypting captures
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// Interval between ticks
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(10..=10_000))]
    pub(crate) tick: u64,
    /// Maximum bytes of objects per client and tick
    #[arg(long, value_name = "BYTES", default_value_t = 2_590,
        value_parser = clap::value_parser!(u32).range(1_295..=1_000_000))]
    pub(crate) budget: u32,
    /// Distance within which clients see objects, in units of 1 cm
    #[arg(long, value_name = "UNITS", default_value_t = 10_000.0)]
    pub(crate) reach: f64,
    /// Maximum number of clients
    #[arg(long, value_name = "NUMBER", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) clients: u32,
    /// Maximum number of clients from one address
    #[arg(long, value_name = "NUMBER", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) per_address: u32,
    /// Also log datagrams that belong to no connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
