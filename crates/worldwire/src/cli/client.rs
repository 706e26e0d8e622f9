//! The command line of `worldwire client`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_uru::connect::BUILD_ID;

use super::ClientKi;
use super::mxo::{SessionId, number};

#[derive(Debug, Args)]
pub(crate) struct Client {
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Log in to a shard of Myst Online: Uru Live, meet others, download files, or put it under load
    #[command(after_help = "\
Steps, with + between them:
  gatekeeper                         where the auth and file servers are
  build                              the newest build, by the file server
  manifest GROUP                     the files of a group, such as External
  download GROUP FOLDER              download what FOLDER lacks; sizes and MD5 are checked
  login                              log in with --account
  players                            the players of the account
  create-player NAME SHAPE           make a player, male or female
  set-player PLAYER                  play a player, by name or number; 0 is none
  delete-player PLAYER               delete a player
  vault [NODE]                       the tree below a node; the player's by default
  node NODE                          all fields of a node
  find FIELD=VALUE...                the nodes with these values, such as NodeType=PlayerInfo
  create-node FIELD=VALUE...         make a node
  save-node NODE FIELD=VALUE...      change fields of a node
  add-node PARENT CHILD              put a node below another one
  remove-node PARENT CHILD           take it away
  send-node NODE PLAYER              put a node into the inbox of a player, by number
  ages FILENAME                      the public instances of an age
  age FILENAME INSTANCE              which game server hosts an instance
  init-age FILENAME INSTANCE [NAME]  find or make the nodes of an instance; zeros let the server choose
  set-public NODE yes|no             list an age among the public ones, or not, by its AgeInfo node
  scores OWNER NAME                  the scores of a node
  high-scores OWNER COUNT NAME       the best scores of this name; owner 0 is everybody
  create-score OWNER NAME TYPE POINTS  make a score: 0 fixed, 1 accumulative, 2 also below 0
  add-points SCORE POINTS            add to a score
  set-points SCORE POINTS            set a fixed score
  transfer-points SCORE SCORE POINTS move points from one score to another
  secure DIRECTORY EXTENSION FOLDER  download secure files and decrypt them, such as SDL sdl
  enter FILENAME [INSTANCE]          go to an age; without an instance to the first public one
  say TEXT                           say something to all who are there
  walk SECONDS                       walk in a circle, and show what happens meanwhile
  lock OBJECT                        ask for the lock of an object, NAME@PAGE as shown
  release OBJECT                     release it
  set-state OBJECT DESCRIPTOR VARIABLE=VALUE...
                                     change the state of an object
  leave                              leave the age
  logout                             hang up; the next login connects anew
  ping                               wait for an echo of the auth server
  wait SECONDS                       show what happens in the age, and what the server says of the vault

A NODE is a number, player, or made for the node that was made last. An INSTANCE is a UUID, or a number
for the one that ends with it.

The password comes from --password-file, from the variable WORLDWIRE_PASSWORD, or is asked for. With
--count, steps up to the login, or up to the word again, are done once and the others again and
again, after a failure with a pause; {} in the account and in steps stands for the number of the
client. A server may limit the connections from one address.

Examples:
  worldwire client uru shard --account ann@example.org
  worldwire client uru server.ini download External game
  worldwire client uru shard --account ann login + create-player Ann female + set-player Ann + vault
  worldwire client uru shard --account ann login + set-player Ann + enter city + say Shorah + wait 60
  worldwire client uru shard --account ann --script steps.txt --json
  worldwire client uru shard --account ann --count 100 --seconds 30 login + ping
  worldwire client uru shard --account load-{} --count 50 \\
    login + set-player Load{} + create-node NodeType=TextNote + again + save-node made Text_1=x")]
    Uru(ClientUru),
    /// Log in to a login server of Wizard101 and Pirate101, and play as far as that goes without a game
    #[command(after_help = "\
Steps, with + between them:
  ping                      wait for an answer of the server
  login                     log in with --account and the password
  token USER CK2            take what another login yielded, as -U or `ki account token` has it
  validate                  connect again with what the login yielded, and wait to be let in
  list                      the characters of the account
  create NAME SCHOOL        make a plain character, of Fire, Ice, Storm, Myth, Life, Death or Balance
  create-from FILE          make a character from a blob
  delete CHARACTER          delete a character, by name or number
  select CHARACTER          select a character; the server ends the connection
  enter                     go where the selection says
  files                     what the patch service offers
  args                      the command line of the graphical client for this login
  wait SECONDS              show what the server says without being asked
  logout                    hang up

The password comes from --password-file, from the variable WORLDWIRE_PASSWORD, or is asked for. In the
account and in steps, {} stands for the number of the client with --count. After enter, validate is
the way back.

Examples:
  worldwire client ki 127.0.0.1:12000 --account merle
  worldwire client ki login --account merle login + create Merle Fire + list + select Merle + enter
  worldwire client ki login --account load-{} --count 100 login + validate + list")]
    Ki(ClientKi),
    /// Walk in a world of The Matrix Online, and see whether replication holds on a bad network
    #[command(after_help = "\
The client says hello, sees what is near its character, and walks about. In the end it stops, and with
--compare asks the server's status page what it should see: everything must be equal once all is at
rest, whatever the network did. --loss, --delay, --reorder and --duplicate make the network bad, in
both directions.

Examples:
  worldwire client mxo
  worldwire client mxo --views --seconds 3
  worldwire client mxo --count 50 --seconds 60 --loss 30 --duplicate 10 --reorder 30 --compare
  worldwire client mxo 192.0.2.7:10000 --key 000102030405060708090a0b0c0d0e0f --session 0x1f2e3d4c")]
    Mxo(ClientMxo),
}

#[derive(Debug, Args)]
pub(crate) struct ClientUru {
    /// The server.ini of a client, or the folder of a shard
    pub(crate) shard: PathBuf,
    /// What to do, with + between steps [login + players]
    #[arg(value_name = "STEP", conflicts_with = "script")]
    pub(crate) steps: Vec<String>,
    /// Read the steps from a file, one in a line; # begins a comment; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The account to log in with
    #[arg(short, long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Read the password from the first line of a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Put the shard under load with so many clients, and show how long it takes to answer
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: Option<u32>,
    /// How long to go on with the load when all clients are there
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "count")]
    pub(crate) seconds: u64,
    /// Connect to another place than the configuration says
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) at: Option<String>,
    /// The build of the client
    #[arg(long, value_name = "NUMBER", default_value_t = BUILD_ID)]
    pub(crate) build: u32,
    /// The branch of the client
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) branch: u32,
    /// The product, for shards that are not Myst Online: Uru Live
    #[arg(long, value_name = "UUID")]
    pub(crate) product: Option<String>,
    /// How long the server may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
    /// Send the login without encryption even to another machine, when there are no keys
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClientMxo {
    /// Where the world is: HOST, or HOST:PORT
    #[arg(default_value = "127.0.0.1:10000")]
    pub(crate) server: String,
    /// How many clients to run
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) count: u32,
    /// How long to walk
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Stand still
    #[arg(long)]
    pub(crate) still: bool,
    /// The number of the first character; others follow it (default random)
    #[arg(long, value_name = "NUMBER")]
    pub(crate) character: Option<u64>,
    /// The Twofish key of the session, 32 hexadecimal digits (default the one that everybody knows)
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The id of the session
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number)]
    pub(crate) session: SessionId,
    /// Tables of game objects, as the server has them: files or directories
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Datagrams that get lost, of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) loss: f64,
    /// Datagrams that arrive twice, of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) duplicate: f64,
    /// Datagrams that come late, of a hundred: after up to five times the delay, or 50 ms
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub(crate) reorder: f64,
    /// How long datagrams are under way
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) delay: u64,
    /// Show the views that the first client sees in the end
    #[arg(long)]
    pub(crate) views: bool,
    /// Write views as JSON, one object per client
    #[arg(long, requires = "views")]
    pub(crate) json: bool,
    /// Compare with what the server says that clients should see, by its status page (default port
    /// 10080 of the server)
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) compare: Option<String>,
    /// How long the world may take to come to rest
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) patience: u64,
}

/// Reads a part of a hundred.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(part) if (0.0..=100.0).contains(&part) => Ok(part),
        _ => Err("wanted a number from 0 to 100".to_owned()),
    }
}
