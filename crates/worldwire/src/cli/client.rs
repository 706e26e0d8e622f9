//! The command line of `worldwire client`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use worldwire_uru::connect::BUILD_ID;

use super::ClientKi;

#[derive(Debug, Args)]
pub(crate) struct Client {
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Log in to a shard of Myst Online: Uru Live, look around, download files, or put it under load
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
  logout                             hang up; the next login connects anew
  ping                               wait for an echo of the auth server
  wait SECONDS                       show what the server says without being asked

A NODE is a number, player, or made for the node that was made last.

The password comes from --password-file, from the variable WORLDWIRE_PASSWORD, or is asked for. With
--count, steps up to the login, or up to the word again, are done once and the others again and
again; {} in the account and in steps stands for the number of the client. A server may limit the connections from one address.

Examples:
  worldwire client uru shard --account ann@example.org
  worldwire client uru server.ini download External game
  worldwire client uru shard --account ann login + create-player Ann female + set-player Ann + vault
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
  validate                  connect again with what the login yielded, and wait to be let in
  list                      the characters of the account
  create NAME SCHOOL        make a plain character, such as Merle Fire
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
