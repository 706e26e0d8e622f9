//! The command line of login servers of KI: their accounts, running them, and a client of them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use worldwire_server::{SettingError, ki};

use super::NewPassword;

/// Which login server.
#[derive(Debug, Args)]
pub(crate) struct KiServer {
    /// The folder of the login server
    #[arg(short, long, value_name = "FOLDER", default_value = "login")]
    pub(crate) server: PathBuf,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiAccount {
    /// Make an account
    #[command(after_help = "Examples:
  worldwire ki account add merle
  worldwire ki account add merle --password-file secret.txt --paying --slots 2")]
    Add {
        /// The name: ASCII without blanks; upper and lower case are not distinguished
        name: String,
        #[command(flatten)]
        password: NewPassword,
        /// Make it a paying account
        #[arg(long)]
        paying: bool,
        /// Slots for characters beyond the first six
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
    /// Ban an account; whoever is logged in is disconnected
    #[command(after_help = "Examples:
  worldwire ki account ban merle
  worldwire ki account ban merle --lift")]
    Ban {
        /// The name
        name: String,
        /// Let the account in again
        #[arg(long)]
        lift: bool,
        #[command(flatten)]
        server: KiServer,
    },
    /// Change the password of an account
    #[command(after_help = "Example:
  worldwire ki account passwd merle")]
    Passwd {
        /// The name
        name: String,
        #[command(flatten)]
        password: NewPassword,
        #[command(flatten)]
        server: KiServer,
    },
    /// Delete an account with all its characters
    #[command(after_help = "Example:
  worldwire ki account delete merle")]
    Delete {
        /// The name
        name: String,
        #[command(flatten)]
        server: KiServer,
    },
    /// Disconnect an account's clients
    #[command(after_help = "Example:
  worldwire ki account kick merle")]
    Kick {
        /// The name
        name: String,
        #[command(flatten)]
        server: KiServer,
    },
    /// Make a login token, as a web page does that starts the game: the client's -U
    #[command(after_help = "Example:
  worldwire ki account token merle

The token is good for five minutes (ck2_seconds in ki.toml), on any machine. Whoever has it can log in.")]
    Token {
        /// The name
        name: String,
        #[command(flatten)]
        server: KiServer,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KiRefresh {
    /// The account whose sessions are made stale; all sessions by default
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) server: KiServer,
}

#[derive(Debug, Args)]
pub(crate) struct ServeKi {
    /// The folder of the login server
    #[arg(default_value = "login")]
    pub(crate) folder: PathBuf,
    /// Where clients connect [127.0.0.1:12000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// What clients are told to connect to: a name, or an IP address [that of --listen]
    #[arg(long, value_name = "HOST", value_parser = ki_host)]
    pub(crate) public_address: Option<String>,
    /// Where the status page listens [127.0.0.1:12080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// No status page
    #[arg(long, conflicts_with = "status")]
    pub(crate) no_status: bool,
    /// How many players are let in; others wait in a queue (default 2000)
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one())]
    pub(crate) players: Option<usize>,
    /// How many connections are let in from one address (default 32)
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one())]
    pub(crate) per_address: Option<usize>,
    /// How long a client may take to accept a session (default 15)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) accept_time: Option<u32>,
    /// How often to ask whether a client lives (default 60)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_alive: Option<u32>,
    /// How long a client may say nothing (default 900)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) afk: Option<u32>,
    /// How long the secret of a login is good (default 300)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ck2_life: Option<u32>,
    /// Refuse logins from a machine, by its MachineID; can be given more than once
    #[arg(long, value_name = "ID")]
    pub(crate) ban_machine: Vec<u64>,
    /// Append the secrets of logins to a key file, for reading captures of the traffic
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// Log every connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What clients of KI can be told to connect to.
fn ki_host(text: &str) -> Result<String, SettingError> {
    ki::config::check_public_address(text).map(|()| text.to_owned())
}

/// How many of something there are.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

#[derive(Debug, Args)]
pub(crate) struct ClientKi {
    /// Where the login server is: HOST or HOST:PORT, or its folder, whose ki.toml says where
    pub(crate) server: String,
    /// What to do, with + between steps [login + validate + list + args]
    #[arg(value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    /// The account to log in with
    #[arg(short, long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The MachineID
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub(crate) machine: u64,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Let so many clients take the steps at the same time, and show how long it took
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) count: Option<u32>,
    /// How long the server may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) patience: u64,
}
