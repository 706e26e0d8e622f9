//! The command line of `worldwire client`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_uru::connect::BUILD_ID;

use super::ClientKi;
use super::mxo_server::{SessionId, number};
use crate::command::client::{mxo_emotes, uru_steps};

#[derive(Debug, Args)]
pub(crate) struct Client {
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Log in to an Uru shard, meet other players, download files, or generate load
    #[command(after_help = format!("Steps, separated by +:\n{}{URU_HELP}", uru_steps()))]
    Uru(ClientUru),
    /// Log in to a KI login server, manage characters, or generate load
    #[command(after_help = "\
Steps, separated by +:
  ping                      check that the server responds
  login                     log in with --account and the password
  token USER CK2            use the result of another login, as in -U or from `ki account token`
  validate                  reconnect with the login's result and wait to be admitted
  list                      list the account's characters
  create NAME SCHOOL        create a default character of the school Fire, Ice, Storm, Myth, Life, Death or
                            Balance
  create-from FILE          create a character from a blob
  delete CHARACTER          delete a character, by name or number
  select CHARACTER          select a character; the server then closes the connection
  enter                     connect to the selected character's zone
  files                     show what the patch service offers
  args                      print the graphical client's command line for this login
  wait SECONDS              print unsolicited messages from the server
  logout                    disconnect

The password comes from --password-file or the environment variable WORLDWIRE_PASSWORD; otherwise, the
program prompts for it. With --count, {} in the account and in steps is replaced with the client's number,
counting from 1. After `enter`, `validate` returns to the login server.

Examples:
  worldwire client ki 127.0.0.1:12000 --account merle
  worldwire client ki login --account merle login + create Merle Fire + list + select Merle + enter
  worldwire client ki login --account load-{} --count 100 login + validate + list")]
    Ki(ClientKi),
    /// Log in to a Matrix Online server, manage characters, walk in its world, or generate load
    #[command(after_help = format!("\
With --account, the client runs steps, separated by +:
  login                     log in to the auth server and open a session with the margin server
  list                      list the account's characters as of the login
  create HANDLE             create a character and load it
  load HANDLE               load a character
  delete HANDLE             delete a character
  enter                     enter the world with the loaded character and walk around
  say TEXT                  say something to everyone nearby
  whisper HANDLE TEXT       say something to one player
  emote NAME                play an emote
  travel DISTRICT           go to the district with this number and wait for the character to arrive;
                            `other_districts` in mxo.toml lists the districts of `serve mxo`
  wait SECONDS              print who comes and goes, and what others say and do
  leave                     jack out and end the session; the character leaves after a few seconds

The password comes from --password-file or the environment variable WORLDWIRE_PASSWORD; otherwise, the
program prompts for it. With --count, {{}} in the account and in steps is replaced with the client's
number, counting from 1. With --compare, the views of all clients are compared with the server's after
the last step.

Emotes:
{}

Without --account, the client enters an open world. It receives views of everything near its character
and walks around for the number of seconds that --seconds specifies. If its connection ends, it prints
the reason and reconnects. With --compare, it asks the server's status page what it should see: once the
world has settled, its views must match the response, even on a bad network. --loss, --delay, --reorder and
--duplicate simulate a bad network in both directions.

Examples:
  worldwire client mxo mxo --account neo login + create Neo + enter + say Whoa. + wait 5 + leave
  worldwire client mxo 192.0.2.7 --account load-{{}} --count 100 login + list
  worldwire client mxo
  worldwire client mxo --count 50 --seconds 60 --loss 30 --duplicate 10 --reorder 30 --compare", mxo_emotes()))]
    Mxo(ClientMxo),
}

/// The help after the list of steps.
const URU_HELP: &str = "
A NODE is an ID, `player` for the player's own node, or `made` for the last node created. An INSTANCE is
a UUID, or a number, which stands for the UUID that ends with it. A GAME is blue-spiral, heek, var-sync,
marker, tic-tac-toe or climbing-wall. Steps in a game apply to the game of that type that you joined last.

The password comes from --password-file or the environment variable WORLDWIRE_PASSWORD; otherwise, the
program prompts for it. With --count, the steps up to the login, or up to the word `again`, run once, and
the remaining steps repeat, with a pause after each failure; {} in the account and in steps is replaced
with the client's number, counting from 1. The server may limit the number of connections from one
address.

Examples:
  worldwire client uru shard --account ann@example.org
  worldwire client uru server.ini download External game
  worldwire client uru shard --account ann login + create-player Ann female + set-player Ann + vault
  worldwire client uru shard --account ann login + set-player Ann + enter city + say Shorah + wait 60
  worldwire client uru shard --account ann --script steps.txt --json
  worldwire client uru shard --account ann --count 100 --seconds 30 login + ping
  worldwire client uru shard --account load-{} --count 50 \\
    login + set-player Load{} + create-node NodeType=TextNote + again + save-node made Text_1=x
  worldwire client uru shard --account ann login + set-player Ann + enter city \\
    + join-game blue-spiral + solve-door
  worldwire client uru shard --account ann login + set-player Ann + enter city \\
    + create-marker-game Hunt + add-marker 12.5 -3 0 fountain + markers";

#[derive(Debug, Args)]
pub(crate) struct ClientUru {
    /// A client's server.ini, or a shard's directory
    pub(crate) shard: PathBuf,
    /// Steps to run, separated by + [default: login + players]
    #[arg(value_name = "STEP", conflicts_with = "script", allow_negative_numbers = true)]
    pub(crate) steps: Vec<String>,
    /// Read the steps from a file, one per line; # starts a comment; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Account to log in with
    #[arg(short, long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Generate load with this many clients and print response times
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: Option<u32>,
    /// How long to generate load once all clients are connected
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "count")]
    pub(crate) seconds: u64,
    /// Connect to this address instead of the configured one
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) at: Option<String>,
    /// Build number that the client reports
    #[arg(long, value_name = "NUMBER", default_value_t = BUILD_ID)]
    pub(crate) build: u32,
    /// Branch number that the client reports
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) branch: u32,
    /// Product, for shards other than Myst Online: Uru Live
    #[arg(long, value_name = "UUID")]
    pub(crate) product: Option<String>,
    /// Time limit for each reply from the server
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
    /// If the shard's keys are unknown, log in without encryption, even to a shard on another
    /// machine
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClientMxo {
    /// Server: HOST or HOST:PORT of the world or, with --account, of the auth server; or the server's
    /// directory, whose mxo.toml contains the addresses [default: 127.0.0.1]
    pub(crate) server: Option<String>,
    /// Steps to run, separated by + [default: login + list]
    #[arg(value_name = "STEP", requires = "account")]
    pub(crate) steps: Vec<String>,
    /// Account to log in with
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["character", "key", "session"])]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE", requires = "account")]
    pub(crate) password_file: Option<PathBuf>,
    /// The server's public key [default: pubkey.dat in the server's directory, or else whatever key the
    /// server sends]
    #[arg(long, value_name = "FILE", requires = "account")]
    pub(crate) pubkey: Option<PathBuf>,
    /// Address of the margin server [default: port 10000 on the auth server's host]
    #[arg(long, value_name = "HOST:PORT", requires = "account")]
    pub(crate) margin: Option<String>,
    /// Address of the world [default: that of the margin server]
    #[arg(long, value_name = "HOST:PORT", requires = "account")]
    pub(crate) game: Option<String>,
    /// Number of clients [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) count: Option<u32>,
    /// How long to walk [default: 10]
    #[arg(long, value_name = "SECONDS", conflicts_with = "account")]
    pub(crate) seconds: Option<u64>,
    /// Stand still
    #[arg(long)]
    pub(crate) still: bool,
    /// Number of the first character; the others are numbered consecutively [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) character: Option<u64>,
    /// Twofish key of the session, 32 hexadecimal digits [default: the well-known key]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// ID of the session [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) session: Option<SessionId>,
    /// The tables of game objects that the server uses: files or directories
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Share of datagrams to drop
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) loss: f64,
    /// Share of datagrams to duplicate
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) duplicate: f64,
    /// Share of datagrams to deliver late, by up to four times the delay or 50 ms, whichever is longer
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) reorder: f64,
    /// Delay of all datagrams
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) delay: u64,
    /// Print the final views of the first client
    #[arg(long)]
    pub(crate) views: bool,
    /// Write views and the results of steps as JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare the views with those on the server's status page [default: port 10080 on the server]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub(crate) compare: Option<String>,
    /// Time limit for the world to settle and for each reply from the server
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
}

/// Parses a percentage.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(part) if (0.0..=100.0).contains(&part) => Ok(part),
        _ => Err("needs a number from 0 to 100".to_owned()),
    }
}
