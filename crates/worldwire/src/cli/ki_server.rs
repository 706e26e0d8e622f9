//! The command line for KI login servers: their accounts, the server itself and its client.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use worldwire_server::{SettingError, ki};

use super::{Confirmation, NewPassword};

#[derive(Debug, Subcommand)]
pub(crate) enum KiServerCommand {
    /// Manage accounts on a login server, whether or not it is running
    #[command(subcommand, arg_required_else_help = true)]
    Account(KiAccount),
    /// Make a running login server's sessions stale so that clients accept new ones
    #[command(after_help = "Examples:
  worldwire ki refresh
  worldwire ki refresh merle --server /srv/login

The server answers each client's next message with a new session offer, and the client resends the
message. Sending the server the signal SIGUSR1 has the same effect for all clients.")]
    Refresh(KiRefresh),
}

/// Selects a login server.
#[derive(Debug, Args)]
pub(crate) struct KiServer {
    /// The login server's directory
    #[arg(short, long, value_name = "FOLDER", default_value = "login")]
    pub(crate) server: PathBuf,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiAccount {
    /// Create an account
    #[command(after_help = "Examples:
  worldwire ki account add merle
  worldwire ki account add merle --password-file secret.txt --paying --slots 2")]
    Add {
        /// Account name: ASCII without spaces, not case-sensitive
        name: String,
        #[command(flatten)]
        password: NewPassword,
        /// Create a paying account
        #[arg(long)]
        paying: bool,
        /// Character slots beyond the first six
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        slots: u8,
        #[command(flatten)]
        server: KiServer,
    },
    /// List all accounts with their characters
    #[command(after_help = "Example:
  worldwire ki account list --json")]
    List {
        #[command(flatten)]
        server: KiServer,
    },
    /// Ban an account and disconnect its clients
    #[command(after_help = "Examples:
  worldwire ki account ban merle
  worldwire ki account ban merle --lift")]
    Ban {
        /// Account name
        name: String,
        /// Lift the ban
        #[arg(long)]
        lift: bool,
        #[command(flatten)]
        server: KiServer,
    },
    /// Change an account's password
    #[command(after_help = "Example:
  worldwire ki account passwd merle")]
    Passwd {
        /// Account name
        name: String,
        #[command(flatten)]
        password: NewPassword,
        #[command(flatten)]
        server: KiServer,
    },
    /// Delete an account and all its characters
    #[command(after_help = "Examples:
  worldwire ki account delete merle
  worldwire ki account delete merle --yes")]
    Delete {
        /// Account name
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
        #[command(flatten)]
        server: KiServer,
    },
    /// Disconnect an account's clients
    #[command(after_help = "Example:
  worldwire ki account kick merle")]
    Kick {
        /// Account name
        name: String,
        #[command(flatten)]
        server: KiServer,
    },
    /// Create a login token for the client's -U option, as a web page that starts the game does
    #[command(after_help = "Example:
  worldwire ki account token merle

The token is valid for five minutes (ck2_seconds in ki.toml), on any machine. Anyone who has it can log
in.")]
    Token {
        /// Account name
        name: String,
        #[command(flatten)]
        server: KiServer,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KiRefresh {
    /// Account whose sessions become stale [default: all accounts]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) server: KiServer,
}

#[derive(Debug, Args)]
pub(crate) struct ServeKi {
    /// The login server's directory
    #[arg(default_value = "login")]
    pub(crate) folder: PathBuf,
    /// Address to listen on [default: 127.0.0.1:12000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Show connections, figures and the log on a page in the browser (see docs/inspect.md) [default
    /// address: a free port on 127.0.0.1]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0")]
    pub(crate) inspect: Option<SocketAddr>,
    /// Address for clients that use UDP [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) udp_listen: Option<SocketAddr>,
    /// Directory of another server on this machine that drops a client's sessions when the client logs
    /// in here; can be repeated
    #[arg(long, value_name = "FOLDER")]
    pub(crate) other_server: Vec<PathBuf>,
    /// Address that clients are told to connect to: a name or an IP address [default: the --listen
    /// address]
    #[arg(long, value_name = "HOST", value_parser = ki_host)]
    pub(crate) public_address: Option<String>,
    /// Address of the status page [default: 127.0.0.1:12080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// Disable the status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// Maximum number of players; others wait in a queue [default: 2000]
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one())]
    pub(crate) players: Option<usize>,
    /// Maximum number of connections from one address [default: 32]
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one())]
    pub(crate) per_address: Option<usize>,
    /// Time limit for a client to accept a session [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) accept_time: Option<u32>,
    /// Interval between keep-alives [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_alive: Option<u32>,
    /// Time without a message after which a client is disconnected [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) afk: Option<u32>,
    /// Lifetime of a CK2, the secret of a login [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ck2_life: Option<u32>,
    /// Refuse logins from the machine with this MachineID; can be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) ban_machine: Vec<u64>,
    /// Append login secrets to a key file, for decrypting captures
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// Wait while another process serves the accounts, and take over when it fails or stops; needs
    /// PostgreSQL
    #[arg(long)]
    pub(crate) standby: bool,
    /// Log every connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Parses an address that KI clients can connect to.
fn ki_host(text: &str) -> Result<String, SettingError> {
    ki::config::check_public_address(text).map(|()| text.to_owned())
}

/// Parses a count.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

#[derive(Debug, Args)]
pub(crate) struct ClientKi {
    /// Login server: HOST, HOST:PORT, or its directory, whose ki.toml contains the address
    pub(crate) server: String,
    /// Steps to run, separated by + [default: login + validate + list + args]
    #[arg(value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    /// Account to log in with
    #[arg(short, long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Use UDP, including for connections to zones; lost datagrams are not resent
    #[arg(long)]
    pub(crate) udp: bool,
    /// MachineID to send
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub(crate) machine: u64,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Run the steps with this many clients concurrently and print the elapsed time
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) count: Option<u32>,
    /// Time limit for each reply from the server
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) patience: u64,
}
