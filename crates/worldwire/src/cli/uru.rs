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
    /// Manage a shard's accounts, running or not
    #[command(arg_required_else_help = true)]
    Account {
        #[command(subcommand)]
        command: UruAccount,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Clear the stored states of an empty age
    ///
    /// The next player finds the age's objects in their initial state. Values set for all instances
    /// with `worldwire uru sdl set` are kept, and other instances of the age are not changed.
    #[command(after_help = "Examples:
  worldwire uru clear-states Fernhollow
  worldwire uru clear-states 10031 --with-age
  worldwire uru clear-states 3cf36d8a-a5d2-4a0e-9fb6-71a2b0e5d1c8 --shard /srv/uru")]
    ClearStates {
        /// Age: the unique name of an instance, its Age or AgeInfo node ID, or its UUID
        #[arg(value_name = "AGE|INSTANCE")]
        age: String,
        /// Also clear the state of the age itself
        #[arg(long)]
        with_age: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Generate and convert a shard's keys
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Kick a player, who can log in again at once
    ///
    /// The client is notified, and its connections to the shard and to the age are closed. To keep
    /// an account out, use `worldwire uru account ban`.
    #[command(after_help = "Examples:
  worldwire uru kick Yeesha
  worldwire uru kick 10023
  worldwire uru kick ann@example.org --shard /srv/uru")]
    Kick {
        /// A player's name or ID, or an account name, which kicks all its players
        #[arg(value_name = "PLAYER|ACCOUNT")]
        who: String,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Create, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
    /// Rename a shard's players, running or not
    #[command(subcommand, arg_required_else_help = true)]
    Player(UruPlayer),
    /// Check and show state descriptors; decode and compare states
    #[command(subcommand, arg_required_else_help = true)]
    Sdl(UruSdl),
    /// Inspect and change a shard's vault, running or not
    #[command(subcommand, arg_required_else_help = true)]
    Vault(UruVault),
}

/// Selects a shard.
#[derive(Debug, Args)]
pub(crate) struct UruShard {
    /// The shard's directory
    #[arg(short, long, global = true, value_name = "FOLDER", default_value = "shard")]
    pub(crate) shard: PathBuf,
    /// Write JSON, one value per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The source of a password.
#[derive(Debug, Args)]
pub(crate) struct NewPassword {
    /// Read the password from the first line of a file; - is standard input [default: ask]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruAccount {
    /// Create an account
    #[command(after_help = "Examples:
  worldwire uru account add ann@example.org
  worldwire uru account add ann --password-file secret.txt --role admin")]
    Add {
        /// Account name, not case-sensitive
        name: String,
        #[command(flatten)]
        password: NewPassword,
        /// Role of the account; can be repeated
        #[arg(long, value_name = "ROLE", default_value = "user")]
        role: Vec<AccountRole>,
    },
    /// List all accounts with their players
    #[command(after_help = "Example:
  worldwire uru account list --json")]
    List,
    /// Ban an account and disconnect its clients
    #[command(after_help = "Examples:
  worldwire uru account ban ann
  worldwire uru account ban ann --lift")]
    Ban {
        /// Account name
        name: String,
        /// Lift the ban
        #[arg(long)]
        lift: bool,
    },
    /// Change an account's password
    #[command(after_help = "Example:
  worldwire uru account passwd ann")]
    Passwd {
        /// Account name
        name: String,
        #[command(flatten)]
        password: NewPassword,
    },
    /// Delete an account with all its players
    #[command(after_help = "Example:
  worldwire uru account delete ann")]
    Delete {
        /// Account name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruPlayer {
    /// Rename a player in all places, and notify the players who see the name
    ///
    /// The name of the player's Relto and of other ages named after the player changes, too. A
    /// player who is logged in keeps the old name on the screen until the next login.
    ///
    /// A name must begin with an ASCII character, have at least 3 characters other than spaces, and
    /// be at most 39 UTF-16 units long.
    #[command(after_help = "Examples:
  worldwire uru player rename Éowyn Eowyn
  worldwire uru player rename 10023 \"Ann of Ae'gura\" --shard /srv/uru")]
    Rename {
        /// Player's name or ID
        player: String,
        /// New name
        name: String,
        #[command(flatten)]
        shard: UruShard,
    },
}

/// The privileges of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccountRole {
    /// No privileges
    User,
    /// All privileges: changes any node, kicks players
    Admin,
    /// Can log in while logins are restricted
    Developer,
    /// Can log in while logins are restricted
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
        /// Node ID, player name, or the name or instance of an age [default: the System node]
        #[arg(value_name = "NODE|PLAYER|AGE")]
        node: Option<String>,
        /// Maximum depth
        #[arg(long, value_name = "LEVELS", default_value_t = 8)]
        depth: u32,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Show all fields of a node
    #[command(after_help = "Example:
  worldwire uru vault show 10023 --json")]
    Show {
        /// Node ID
        node: u32,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Find nodes by field values; all must match
    #[command(after_help = "Examples:
  worldwire uru vault find NodeType=PlayerInfo IString64_1=ann
  worldwire uru vault find NodeType=AgeInfo String64_2=Neighborhood --json")]
    Find {
        /// FIELD=VALUE, with field names as in `show`
        #[arg(required = true, value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Change fields of a node and notify the players who see it
    ///
    /// Fields that identify a node cannot be changed: its ID, type, creator and times, the names of
    /// players, and the fields that identify ages.
    #[command(after_help = "Example:
  worldwire uru vault set 10031 \"Text_1=The gate is open\" Int32_2=1")]
    Set {
        /// Node ID
        node: u32,
        /// FIELD=VALUE, with field names as in `show`
        #[arg(required = true, value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Check the vault: cycles, missing nodes, incomplete players and ages, names of players
    ///
    /// Findings of one kind are summarized in one line. --details and --json list all of them.
    #[command(after_help = "Examples:
  worldwire uru vault check
  worldwire uru vault check --details")]
    Check {
        /// List every finding
        #[arg(long)]
        details: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Remove nodes that players deleted or never placed
    ///
    /// Without --apply, only shows how many nodes of each type would be removed. Nodes of players
    /// who are online, and nodes changed within the last hour, are kept. Everything is removed in
    /// one transaction, also on a running shard. Make a backup first.
    #[command(after_help = "Examples:
  worldwire uru vault prune
  worldwire uru vault prune --apply")]
    Prune {
        /// Remove the nodes
        #[arg(long)]
        apply: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Export the whole vault as JSON lines, or for another server
    #[command(
        after_help = "JSON lines contain no passwords. Exports for other servers contain password digests: treat them like
passwords. Data that the other server cannot store is listed. For dirtsand, the export is SQL for psql
that replaces all contents of a database whose tables exist; for moulars, it is the database file.

Examples:
  worldwire uru vault export -o vault.jsonl
  worldwire uru vault export --to dirtsand -o dirtsand.sql
  worldwire uru vault export --to moulars -o vault.db"
    )]
    Export {
        /// Export for another server
        #[arg(long, value_name = "SERVER")]
        to: Option<OtherServer>,
        /// The shard's directory
        #[arg(short, long, value_name = "FOLDER", default_value = "shard")]
        shard: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Replace the whole vault with an exported one
    #[command(
        after_help = "The file is checked first, as by `check`, and imported completely or not at all. Existing accounts are
kept; others are created without a password. No player may be logged in.

With --from, accounts keep their passwords, and data that cannot be imported is listed. The shard must be
stopped: the import also sets the city, the neighbourhood and other public ages in [ages] of shard.toml.
Keys are not imported; convert them with `worldwire uru keys convert`. For dirtsand, FILE is the output of
pg_dump --column-inserts; for moulars, the database file, with moulars stopped.

Examples:
  worldwire uru vault import vault.jsonl
  worldwire uru vault import --from dirtsand dirtsand.sql
  worldwire uru vault import --from moulars vault.db"
    )]
    Import {
        /// Exported vault; - is standard input
        file: PathBuf,
        /// Import the accounts and the vault of another server
        #[arg(long, value_name = "SERVER")]
        from: Option<OtherServer>,
        /// Descriptors for checking the other server's states: .sdl files or directories [default:
        /// the shard's]
        #[arg(long, value_name = "PATH", requires = "from")]
        sdl: Vec<PathBuf>,
        /// Import even if the vault has players, and delete them
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        shard: UruShard,
    },
}

/// A server to import from and export to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OtherServer {
    /// H-uru/dirtsand, as a dump
    Dirtsand,
    /// zrax/moulars, as its SQLite file
    Moulars,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Generate keys for a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// Output format
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
        /// Output format
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
    /// worldwire's own format, public keys only
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
    /// Create a manifest of the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// Directory; subdirectories are included
        folder: PathBuf,
        /// Prefix the client's file names with this directory
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Write gzipped files to this directory, and list those
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files in a directory
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// Manifest
        file: PathBuf,
        /// Directory with the downloads or with the plain files
        folder: PathBuf,
        /// Directory prefix of the client's file names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// Manifest, as text (.mfs) or in wire format
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruSdl {
    /// Check descriptors and report every problem
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
    /// The values apply to every instance that has not changed the variable since. Players in the
    /// age see the change at once.
    #[command(after_help = "Examples:
  worldwire uru sdl set Fernhollow fhGateOpen=true
  worldwire uru sdl set city islmFireworks=1 --shard /srv/uru")]
    Set {
        /// Age, by its file name, which is also that of its descriptor
        age: String,
        /// VARIABLE=VALUE, with the value as JSON
        #[arg(required = true, value_name = "VARIABLE=VALUE")]
        variables: Vec<String>,
        /// Descriptors: .sdl files or directories [default: the shard's]
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
        /// NAME for all its versions, or NAME.VERSION [default: all descriptors]
        descriptor: Option<String>,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per descriptor
        #[arg(long)]
        json: bool,
    },
    /// Decode a state from a game message or a vault node
    #[command(after_help = "Examples:
  worldwire uru sdl decode samples/uru-state.bin --sdl samples/sdl
  worldwire uru sdl decode --hex 008005f0... --sdl samples/sdl --json")]
    Decode {
        /// File with the blob; - is standard input [default: -]
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// Blob as hexadecimal digits
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
    /// Compare two states, even of different versions
    #[command(after_help = "Example:
  worldwire uru sdl diff samples/uru-state.bin samples/uru-state-later.bin --sdl samples/sdl")]
    Diff {
        /// Older state: a blob, or its JSON
        old: PathBuf,
        /// Newer state: a blob, or its JSON
        new: PathBuf,
        #[command(flatten)]
        descriptors: UruDescriptors,
        /// Write one JSON object per change
        #[arg(long)]
        json: bool,
    },
}

/// The state descriptors.
#[derive(Debug, Args)]
pub(crate) struct UruDescriptors {
    /// Descriptors: .sdl files or directories
    #[arg(id = "sdl", short = 'd', long = "sdl", value_name = "PATH", visible_alias = "data")]
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
}
