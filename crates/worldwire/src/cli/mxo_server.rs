//! The command line for servers of The Matrix Online: accounts, characters, keys, and the server itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Confirmation, NewPassword, Target};

#[derive(Debug, Subcommand)]
pub(crate) enum MxoServerCommand {
    /// Manage accounts on a server, whether or not it is running
    #[command(subcommand, arg_required_else_help = true)]
    Account(MxoAccount),
    /// Manage characters on a server, whether or not it is running
    #[command(subcommand, arg_required_else_help = true)]
    Character(MxoCharacter),
    /// Export a server's public key for clients
    #[command(subcommand, arg_required_else_help = true)]
    Keys(MxoKeys),
    /// Change the weather on a running server, for everyone in its worlds
    #[command(after_help = "Examples:
  worldwire mxo sky bluesky1
  worldwire mxo sky Halloween_Event,Winter3HalloweenFlyEyeTSEC --server /srv/mxo")]
    Sky {
        /// Names of effects, separated by commas
        sky: String,
        #[command(flatten)]
        server: MxoServerFolder,
    },
}

/// Selects a server.
#[derive(Debug, Args)]
pub(crate) struct MxoServerFolder {
    /// The server's directory
    #[arg(short, long, value_name = "FOLDER", default_value = "mxo")]
    pub(crate) server: PathBuf,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoAccount {
    /// Create an account
    #[command(after_help = "Examples:
  worldwire mxo account add neo
  worldwire mxo account add neo --password-file secret.txt --server /srv/mxo")]
    Add {
        /// Account name: at most 32 ASCII characters without spaces, not case-sensitive
        name: String,
        #[command(flatten)]
        password: NewPassword,
        /// Create an inactive account, which can log in only after `mxo account activate`
        #[arg(long)]
        inactive: bool,
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// List all accounts with their characters
    #[command(after_help = "Example:
  worldwire mxo account list --json")]
    List {
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Ban an account and disconnect its clients
    #[command(after_help = "Examples:
  worldwire mxo account ban smith
  worldwire mxo account ban smith --lift")]
    Ban {
        /// Account name
        name: String,
        /// Lift the ban
        #[arg(long)]
        lift: bool,
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Activate an account, or deactivate it and disconnect its clients
    #[command(after_help = "Examples:
  worldwire mxo account activate neo
  worldwire mxo account activate neo --undo")]
    Activate {
        /// Account name
        name: String,
        /// Deactivate the account
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Change an account's password
    #[command(after_help = "Example:
  worldwire mxo account passwd neo")]
    Passwd {
        /// Account name
        name: String,
        #[command(flatten)]
        password: NewPassword,
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Delete an account and all its characters
    #[command(after_help = "Examples:
  worldwire mxo account delete smith
  worldwire mxo account delete smith --yes")]
    Delete {
        /// Account name
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Disconnect an account's clients
    #[command(after_help = "Example:
  worldwire mxo account kick smith")]
    Kick {
        /// Account name
        name: String,
        #[command(flatten)]
        server: MxoServerFolder,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoCharacter {
    /// List all characters with their accounts
    #[command(after_help = "Example:
  worldwire mxo character list")]
    List {
        #[command(flatten)]
        server: MxoServerFolder,
    },
    /// Delete a character that no client has loaded
    #[command(after_help = "Examples:
  worldwire mxo character delete Smith
  worldwire mxo character delete Smith --yes")]
    Delete {
        /// The character's name in the game
        handle: String,
        #[command(flatten)]
        confirmation: Confirmation,
        #[command(flatten)]
        server: MxoServerFolder,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MxoKeys {
    /// Write a server's pubkey.dat, which clients need
    #[command(after_help = "Examples:
  worldwire mxo keys pubkey -o pubkey.dat
  worldwire mxo keys pubkey --server /srv/mxo -o \"/games/MxO/pubkey.dat\" --force")]
    Pubkey {
        /// The server's directory
        #[arg(short, long, value_name = "FOLDER", default_value = "mxo")]
        server: PathBuf,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeMxo {
    /// The server's directory
    #[arg(default_value = "mxo", conflicts_with = "open_world")]
    pub(crate) folder: PathBuf,
    /// Run only a world, without logins: anyone with the session's ID and key is admitted
    #[arg(long)]
    pub(crate) open_world: bool,
    /// Show connections, figures and the log on a page in the browser (see docs/inspect.md) [default
    /// address: a free port on 127.0.0.1]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0", conflicts_with = "open_world")]
    pub(crate) inspect: Option<SocketAddr>,
    /// The scene [default: a square with 500 objects]
    #[arg(long, value_name = "FILE")]
    pub(crate) scene: Option<PathBuf>,
    /// Tables of game objects that override the built-in ones: files or directories
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Address of the auth server [default: 127.0.0.1:11000]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "open_world")]
    pub(crate) auth_listen: Option<SocketAddr>,
    /// Address of the margin server [default: 127.0.0.1:10000]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "open_world")]
    pub(crate) margin_listen: Option<SocketAddr>,
    /// Address of the world, over UDP [default: 127.0.0.1:10000]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "open_world")]
    pub(crate) game_listen: Option<SocketAddr>,
    /// The world's name, letters only [default: Reality]
    #[arg(long, value_name = "NAME", conflicts_with = "open_world")]
    pub(crate) name: Option<String>,
    /// The weather: names of effects, separated by commas [default: Massive]
    #[arg(long, value_name = "NAMES", conflicts_with = "open_world")]
    pub(crate) sky: Option<String>,
    /// ID of the server's key in pubkey.dat [default: 4]
    #[arg(long, value_name = "NUMBER", value_parser = number, conflicts_with = "open_world")]
    pub(crate) key_id: Option<SessionId>,
    /// Send the server's key even to clients that already have a key with its ID
    #[arg(long, conflicts_with = "open_world")]
    pub(crate) always_send_key: bool,
    /// With --open-world: address to listen on [default: 127.0.0.1:10000]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "open_world")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address of the status page, which has no password [default: 127.0.0.1:10080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// Disable the status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// With --open-world: Twofish key of the session, 32 hexadecimal digits, or `random`; required
    /// except on loopback
    #[arg(long, value_name = "KEY", requires = "open_world")]
    pub(crate) key: Option<String>,
    /// With --open-world: ID of the session, which clients must supply [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = number, requires = "open_world")]
    pub(crate) session: Option<SessionId>,
    /// Append sessions and their keys to a key file, for decrypting captures
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// Interval between ticks [default: 50]
    #[arg(long, value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub(crate) tick: Option<u32>,
    /// Maximum bytes of object data per client and tick [default: 2590]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1_295..=1_000_000))]
    pub(crate) budget: Option<u32>,
    /// Distance within which clients see objects and hear chat, in units of 1 cm [default: 10000]
    #[arg(long, value_name = "UNITS")]
    pub(crate) reach: Option<f64>,
    /// Maximum number of clients in the world [default: 256]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) clients: Option<u32>,
    /// Maximum number of clients from one address [default: 64 in an open world, otherwise 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) per_address: Option<u32>,
    /// Log every connection, and datagrams that belong to no connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The ID of a session.
pub(crate) type SessionId = u32;

/// Parses a number, decimal or 0x...
pub(crate) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "needs a number up to 0xffffffff".to_owned())
}
