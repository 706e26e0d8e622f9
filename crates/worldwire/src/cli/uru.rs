//! The command line of `worldwire uru`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Target;

#[derive(Debug, Args)]
pub(crate) struct Uru {
    #[command(subcommand)]
    pub(crate) command: UruCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruCommand {
    /// Manage the accounts of a shard, running or not
    #[command(subcommand, arg_required_else_help = true)]
    Account(UruAccount),
    /// Clear the stored states of an age in which nobody is
    ///
    /// Its objects are as they were at first when the next player comes. What was set for all
    /// instances with `worldwire uru sdl set` stays, and so do other instances of the age.
    #[command(after_help = "Examples:
  worldwire uru clear-states Fernhollow
  worldwire uru clear-states 10031 --with-age
  worldwire uru clear-states 3cf36d8a-a5d2-4a0e-9fb6-71a2b0e5d1c8 --shard /srv/uru")]
    ClearStates {
        /// The age: a name that only one instance has, the number of its Age or AgeInfo node, or the
        /// instance
        #[arg(value_name = "AGE|INSTANCE")]
        age: String,
        /// Clear the state of the age itself, too
        #[arg(long)]
        with_age: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Generate and convert the keys of a shard
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Throw out a player, who may come back at once
    ///
    /// The client is told that it was kicked, and its connections to the shard and to the age end.
    /// `worldwire uru account ban` keeps an account out.
    #[command(after_help = "Examples:
  worldwire uru kick Yeesha
  worldwire uru kick 10023
  worldwire uru kick ann@example.org --shard /srv/uru")]
    Kick {
        /// The name or number of a player, or the name of an account: all who are logged in to it
        #[arg(value_name = "PLAYER|ACCOUNT")]
        who: String,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Make, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
    /// Check and show descriptors of states; decode and compare states
    #[command(subcommand, arg_required_else_help = true)]
    Sdl(UruSdl),
    /// Look into the vault of a shard, running or not, and change it
    #[command(subcommand, arg_required_else_help = true)]
    Vault(UruVault),
}

/// Which shard.
#[derive(Debug, Args)]
pub(crate) struct UruShard {
    /// The folder of the shard
    #[arg(short, long, value_name = "FOLDER", default_value = "shard")]
    pub(crate) shard: PathBuf,
    /// Write JSON, one value per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a password comes from.
#[derive(Debug, Args)]
pub(crate) struct NewPassword {
    /// Read the password from the first line of a file; - is standard input. Asked for by default
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruAccount {
    /// Make an account
    #[command(after_help = "Examples:
  worldwire uru account add ann@example.org
  worldwire uru account add ann --password-file secret.txt --role admin")]
    Add {
        /// The name; clients do not distinguish upper and lower case
        name: String,
        #[command(flatten)]
        password: NewPassword,
        /// What the account may do; can be given more than once
        #[arg(long, value_name = "ROLE", default_value = "user")]
        role: Vec<AccountRole>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// List all accounts with their players
    #[command(after_help = "Example:
  worldwire uru account list --json")]
    List {
        #[command(flatten)]
        shard: UruShard,
    },
    /// Ban an account; whoever is logged in is disconnected
    #[command(after_help = "Examples:
  worldwire uru account ban ann
  worldwire uru account ban ann --lift")]
    Ban {
        /// The name
        name: String,
        /// Let the account in again
        #[arg(long)]
        lift: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Change the password of an account
    #[command(after_help = "Example:
  worldwire uru account passwd ann")]
    Passwd {
        /// The name
        name: String,
        #[command(flatten)]
        password: NewPassword,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Delete an account with all its players
    #[command(after_help = "Example:
  worldwire uru account delete ann")]
    Delete {
        /// The name
        name: String,
        #[command(flatten)]
        shard: UruShard,
    },
}

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccountRole {
    /// Nothing special
    User,
    /// Everything: all nodes, kicking players
    Admin,
    /// Log in while logins are restricted
    Developer,
    /// Log in while logins are restricted
    BetaTester,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruVault {
    /// Show the tree below a node
    #[command(after_help = "Examples:
  worldwire uru vault tree
  worldwire uru vault tree 10023 --depth 2
  worldwire uru vault tree Yeesha
  worldwire uru vault tree \"DRC(1) Hood\"")]
    Tree {
        /// The number of the node, the name of a player, or the name or instance of an age; the
        /// System node by default
        #[arg(value_name = "NODE|PLAYER|AGE")]
        node: Option<String>,
        /// How deep to go
        #[arg(long, value_name = "LEVELS", default_value_t = 8)]
        depth: u32,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Show all fields of a node
    #[command(after_help = "Example:
  worldwire uru vault show 10023 --json")]
    Show {
        /// The node
        node: u32,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Find the nodes that have all given values
    #[command(after_help = "Examples:
  worldwire uru vault find NodeType=PlayerInfo IString64_1=ann
  worldwire uru vault find NodeType=AgeInfo String64_2=Neighborhood --json")]
    Find {
        /// FIELD=VALUE, as `show` names the fields
        #[arg(required = true, value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Change fields of a node; players who see it are told
    ///
    /// What a node is stays: its number, type, maker and times, the names of players, and what ages
    /// are found by.
    #[command(after_help = "Example:
  worldwire uru vault set 10031 \"Text_1=The gate is open\" Int32_2=1")]
    Set {
        /// The node
        node: u32,
        /// FIELD=VALUE, as `show` names the fields
        #[arg(required = true, value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Look for damage: cycles, missing nodes, players and ages without their parts, players of one
    /// name
    #[command(after_help = "Example:
  worldwire uru vault check")]
    Check {
        #[command(flatten)]
        shard: UruShard,
    },
    /// Write the whole vault as JSON lines, without passwords; or for another server, with them
    #[command(
        after_help = "What another server cannot keep is listed. Accounts keep their passwords, so the file is a secret.
dirtsand: statements for psql, which replace everything in a database whose tables are there.
moulars: the database file.

Examples:
  worldwire uru vault export -o vault.jsonl
  worldwire uru vault export --to dirtsand -o dirtsand.sql
  worldwire uru vault export --to moulars -o vault.db"
    )]
    Export {
        /// Write the database of another server instead
        #[arg(long, value_name = "SERVER")]
        to: Option<OtherServer>,
        /// The folder of the shard
        #[arg(short, long, value_name = "FOLDER", default_value = "shard")]
        shard: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Replace the whole vault by an exported one
    #[command(
        after_help = "The file is checked first, as `check` does, and read whole or not at all. Accounts that are there
stay; others are made without a password. Nobody may be logged in.

Accounts keep their passwords. What cannot be taken over is listed. dirtsand: the text that
pg_dump --column-inserts writes. moulars: the database file, while moulars does not run.

Examples:
  worldwire uru vault import vault.jsonl
  worldwire uru vault import --from dirtsand dirtsand.sql
  worldwire uru vault import --from moulars vault.db"
    )]
    Import {
        /// The exported vault; - is standard input
        file: PathBuf,
        /// Take over the accounts and the vault of another server instead
        #[arg(long, value_name = "SERVER")]
        from: Option<OtherServer>,
        /// Descriptors (.sdl files) that states of another server are checked by, or directories of
        /// them; those of the shard by default
        #[arg(long, value_name = "PATH", requires = "from")]
        sdl: Vec<PathBuf>,
        /// Even if the vault has players, who are lost
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        shard: UruShard,
    },
}

/// A server that shards can move from and to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OtherServer {
    /// H-uru/dirtsand, as a dump
    Dirtsand,
    /// zrax/moulars, as its SQLite file
    Moulars,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Generate the keys of a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// The output format
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
    /// Convert keys between server formats
    #[command(after_help = "Examples:
  worldwire uru keys convert dirtsand.ini --to toml -o keys.toml
  worldwire uru keys convert keys.toml --to server-ini")]
    Convert {
        /// Keys in any format; - is standard input
        file: PathBuf,
        /// The output format
        #[arg(long, value_name = "FORMAT")]
        to: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
}

/// Formats of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyFormat {
    /// worldwire's own format, with the server's secrets
    Toml,
    /// worldwire's own format, only what clients may know
    TomlPublic,
    /// dirtsand.ini, with the server's secrets
    Dirtsand,
    /// moulars, with the server's secrets
    Moulars,
    /// NAGUS, with the server's secrets
    Nagus,
    /// The client's server.ini
    ServerIni,
    /// Source code of OpenUru clients
    OpenUru,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruManifest {
    /// Make a manifest of the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// The directory; subdirectories are included
        folder: PathBuf,
        /// Put this directory in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Compress the files with gzip into this directory, and list the compressed files
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// The manifest
        file: PathBuf,
        /// The directory with the downloads or with the plain files
        folder: PathBuf,
        /// The client's names begin with this directory
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// The manifest, as text (.mfs) or in wire format
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruSdl {
    /// Check descriptors, and report every problem
    #[command(after_help = "Examples:
  worldwire uru sdl check samples/sdl
  worldwire uru sdl check SDL/*.sdl --json")]
    Check {
        /// Files, or directories with .sdl files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write one JSON object per problem
        #[arg(long)]
        json: bool,
    },
    /// Set variables for all instances of an age on a shard
    ///
    /// They count where the instance has not changed them later. Players who are there see it at once.
    #[command(after_help = "Examples:
  worldwire uru sdl set Fernhollow fhGateOpen=true
  worldwire uru sdl set city islmFireworks=1 --shard /srv/uru")]
    Set {
        /// The age's name in files, which is that of its descriptor
        age: String,
        /// VARIABLE=VALUE, the value as JSON
        #[arg(required = true, value_name = "VARIABLE=VALUE")]
        variables: Vec<String>,
        /// Descriptors (.sdl files), or directories of them; those of the shard by default
        #[arg(long, value_name = "PATH")]
        sdl: Vec<PathBuf>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Show descriptors in the canonical style
    #[command(after_help = "Examples:
  worldwire uru sdl show Fernhollow --sdl samples/sdl
  worldwire uru sdl show Fernhollow.2 --sdl samples/sdl --json")]
    Show {
        /// NAME for all its versions, or NAME.VERSION; all descriptors by default
        descriptor: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per descriptor
        #[arg(long)]
        json: bool,
    },
    /// Show a state: the blob of a game message or of a vault node
    #[command(after_help = "Examples:
  worldwire uru sdl decode samples/uru-state.bin --sdl samples/sdl
  worldwire uru sdl decode --hex 008005f0... --sdl samples/sdl --json")]
    Decode {
        /// The blob; - or no file is standard input
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// The blob as hexadecimal digits
        #[arg(long, value_name = "STRING")]
        hex: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write JSON that `worldwire encode uru.sdl` reads
        #[arg(long)]
        json: bool,
        /// Show the position of every field
        #[arg(long, conflicts_with = "json")]
        bytes: bool,
    },
    /// Compare two states, also of different versions
    #[command(after_help = "Example:
  worldwire uru sdl diff samples/uru-state.bin samples/uru-state-later.bin --sdl samples/sdl")]
    Diff {
        /// The older state: a blob, or the JSON of one
        old: PathBuf,
        /// The newer state
        new: PathBuf,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per change
        #[arg(long)]
        json: bool,
    },
}

/// Where the descriptors of states are.
#[derive(Debug, Args)]
pub(crate) struct UruDescriptors {
    /// Descriptors: .sdl files, or directories with some
    #[arg(id = "sdl", short = 'd', long = "sdl", value_name = "PATH", visible_alias = "data")]
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
}
