//! The command line of `worldwire serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_server::{SettingError, uru};

use super::{ServeKi, ServeMxo};

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

With --standby, several processes share a PostgreSQL database. One of them serves the shard; if it fails
or stops, another takes over. Start all of them with --standby, each with its own folder. docs/cluster.md
explains this setup. It also explains how to run fronts, which serve logins and files, and age nodes,
which run ages, on other machines.

Examples:
  worldwire serve uru
  worldwire serve uru /srv/uru --listen 0.0.0.0:14617 --public-address uru.example.org
  worldwire serve uru /srv/uru --standby")]
    Uru(ServeUru),
    /// Run a KI login server (sessions, accounts, characters, queue)
    #[command(after_help = "\
The first start creates the folder with its key, database and ki.toml, and writes the options to
ki.toml. On later starts, options apply to that run only. Ctrl-C or SIGTERM stops the server; SIGUSR1
makes all sessions stale.

With --standby, several processes share a PostgreSQL database. One of them serves the accounts; if it
fails or stops, another takes over. Start all of them with --standby, each with its own folder: see
docs/cluster.md.

Examples:
  worldwire serve ki
  worldwire serve ki /srv/login --listen 0.0.0.0:12000 --public-address ki.example.org
  worldwire serve ki /srv/login --standby
  worldwire serve ki --secrets login-keys.toml")]
    Ki(ServeKi),
    /// Run a Matrix Online server (logins, characters, world)
    #[command(after_help = "\
The first start creates the folder with its keys, database and mxo.toml, writes the options to mxo.toml,
and takes a few seconds to generate the keys. On later starts, options apply to that run only. A client
needs the folder's pubkey.dat and must trust the key that signed it: see docs/mxo-world.md. Ctrl-C or
SIGTERM stops the server.

--open-world runs only a world, over UDP, without a folder and without logins. On loopback, it uses a
well-known key by default. To serve other machines, set --key; `random` generates a key.

A scene defines the world's objects, such as doors that open and close and people who walk around.

Examples:
  worldwire serve mxo
  worldwire serve mxo /srv/mxo --name Reality --secrets keys.toml
  worldwire serve mxo --open-world --scene square.toml --data mine.objects
  worldwire serve mxo --open-world --listen 0.0.0.0:10000 --key random --secrets keys.toml")]
    Mxo(ServeMxo),
}

#[derive(Debug, Args)]
pub(crate) struct ServeUru {
    /// The shard's directory
    #[arg(default_value = "shard")]
    pub(crate) folder: PathBuf,
    /// Address to listen on, with port 14617 unless another is given; unencrypted connections are
    /// refused except on loopback [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = uru::config::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Show connections, figures and the log on a page in the browser (see docs/inspect.md) [default
    /// address: a free port on 127.0.0.1]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0")]
    pub(crate) inspect: Option<SocketAddr>,
    /// Address that clients are told to connect to: a name or an IPv4 address [default: 127.0.0.1]
    #[arg(long, value_name = "HOST", value_parser = uru_host)]
    pub(crate) public_address: Option<String>,
    /// Address of the status page [default: 127.0.0.1:14680]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// Disable the status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// Directory with files for clients [default: data in the shard's directory]
    #[arg(long = "files", alias = "data", value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// Wait while another process serves the shard, and take over when it fails or stops; needs
    /// PostgreSQL
    #[arg(long)]
    pub(crate) standby: bool,
    /// Log every connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Parses an address that Uru clients can connect to.
fn uru_host(text: &str) -> Result<String, SettingError> {
    uru::config::check_public_address(text).map(|()| text.to_owned())
}
