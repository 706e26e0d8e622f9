//! The command line of `worldwire uru`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Target, UruCluster, UruKeys, UruManifest, UruSdl};

#[derive(Debug, Args)]
pub(crate) struct Uru {
    #[command(subcommand)]
    pub(crate) command: UruCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruCommand {
    /// Manage accounts on a shard, whether or not it is running
    #[command(arg_required_else_help = true)]
    Account {
        #[command(subcommand)]
        command: UruAccount,
        #[command(flatten)]
        shard: UruShard,
    },
    /// List, add and remove ages on a shard, whether or not it is running
    #[command(arg_required_else_help = true)]
    Age {
        #[command(subcommand)]
        command: UruAge,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Close a shard for maintenance
    ///
    /// Only administrators, developers and testers can log in until you run `worldwire uru open`. The
    /// change is also made in shard.toml, so it persists across restarts.
    #[command(after_help = "Examples:
  worldwire uru close
  worldwire uru close --kick --server /srv/uru")]
    Close {
        /// Also disconnect everyone else
        #[arg(long)]
        kick: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Clear the stored states of an empty age
    ///
    /// The next player finds the age's objects in their initial states. Values set for all instances
    /// with `worldwire uru sdl set` are kept, and other instances of the age are not changed.
    #[command(after_help = "Examples:
  worldwire uru clear-states Fernhollow
  worldwire uru clear-states 10031 --with-age
  worldwire uru clear-states 3cf36d8a-a5d2-4a0e-9fb6-71a2b0e5d1c8 --server /srv/uru")]
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
    /// Inspect and manage a shard served by several processes
    #[command(subcommand, arg_required_else_help = true)]
    Cluster(UruCluster),
    /// Prepare the files that a shard offers to clients
    #[command(subcommand, arg_required_else_help = true)]
    Files(UruFiles),
    /// Generate and convert a shard's keys
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Kick a player, who can log in again immediately
    ///
    /// The client is notified, and its connections to the shard and to the age are closed. To keep
    /// an account out, use `worldwire uru account ban`.
    #[command(after_help = "Examples:
  worldwire uru kick Yeesha
  worldwire uru kick 10023
  worldwire uru kick ann@example.org --server /srv/uru")]
    Kick {
        /// A player's name or ID, or an account name, to kick all of the account's players
        #[arg(value_name = "PLAYER|ACCOUNT")]
        who: String,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Show a message to players in ages
    ///
    /// Clients show it as chat from an administrator. The shard must be running.
    #[command(after_help = "Examples:
  worldwire uru message \"The shard restarts in ten minutes.\"
  worldwire uru message \"Shorah!\" --age city --from Ann")]
    Message {
        /// Text: one line of at most 1,000 characters
        text: String,
        /// Show the message only in this age: the unique name of an instance, its node ID, or its UUID
        #[arg(long, value_name = "AGE|INSTANCE")]
        age: Option<String>,
        /// Name of the sender, in ASCII
        #[arg(long, value_name = "NAME", default_value = "Shard")]
        from: String,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Open a shard that was closed for maintenance
    #[command(after_help = "Example:
  worldwire uru open")]
    Open {
        #[command(flatten)]
        shard: UruShard,
    },
    /// Create, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
    /// Rename players on a shard, whether or not it is running
    #[command(subcommand, arg_required_else_help = true)]
    Player(UruPlayer),
    /// Check and show state descriptors; decode and compare states
    #[command(subcommand, arg_required_else_help = true)]
    Sdl(UruSdl),
    /// Inspect and change the vault of a shard, whether or not it is running
    #[command(subcommand, arg_required_else_help = true)]
    Vault(UruVault),
    /// Show or change the message that launchers show
    ///
    /// The change is also made in shard.toml, so it persists across restarts.
    #[command(after_help = "Examples:
  worldwire uru welcome
  worldwire uru welcome \"Shorah! The city is open.\"")]
    Welcome {
        /// New message [default: show the current one]
        text: Option<String>,
        #[command(flatten)]
        shard: UruShard,
    },
    /// List the running games: who is playing, where, and since when
    ///
    /// These are the small games in ages, such as the Heek table and marker games, that are enabled in
    /// shard.toml. The shard must be running. Times are in UTC.
    #[command(after_help = "Example:
  worldwire uru games --json")]
    Games {
        #[command(flatten)]
        shard: UruShard,
    },
    /// List who is online, where, and since when
    ///
    /// The shard must be running. Times are in UTC.
    #[command(after_help = "Example:
  worldwire uru who --json")]
    Who {
        #[command(flatten)]
        shard: UruShard,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruFiles {
    /// Build a shard's data directory from a game client's folder
    #[command(
        after_help = "Age files, descriptors (.sdl) and scripts (.pak) are copied to where the shard looks for them; all
other files are compressed with gzip and listed in manifests: External and ThinExternal, ExternalPatcher
for the launcher, and one for each age, which includes the sounds that the age's pages name. Files from an
earlier import are replaced, or removed if the client no longer has them; data/imported.md5 lists them.
Files that you added or changed are not removed. Symbolic links are followed; links that lead out of the
client's folder are reported, because clients can download their targets. Files that can be decrypted only
with another shard's key are skipped.

Examples:
  worldwire uru files import \"/games/Myst Online\"
  worldwire uru files import client --server /srv/uru"
    )]
    Import {
        /// The client's folder, which contains dat and sfx
        folder: PathBuf,
        #[command(flatten)]
        shard: UruShard,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruAge {
    /// List public ages and the shard's own ages, with their instance IDs
    #[command(after_help = "Examples:
  worldwire uru age list
  worldwire uru age list --running
  worldwire uru age list --all --json")]
    List {
        /// Include private ages
        #[arg(long)]
        all: bool,
        /// List only running ages, including private ones, with the players in them
        #[arg(long)]
        running: bool,
    },
    /// Add a public age
    ///
    /// The name must exactly match that of an age file in the shard's data/ages, including upper and
    /// lower case, because clients request an age by its exact name. If there are no age files, any
    /// name is accepted.
    ///
    /// If the shard already has a public instance of the age under other names, a new one needs
    /// --instance or --another.
    #[command(after_help = "Examples:
  worldwire uru age add Fernhollow
  worldwire uru age add Neighborhood --name \"Second Hood\" --another
  worldwire uru age add Kveer --instance 68e219e0-ee25-4df0-b855-0435584e29e2 --name \"K'veer\"")]
    Add {
        /// The age's file name, as in NAME.age
        filename: String,
        /// Instance ID that the game's scripts may link to [default: random]
        #[arg(long, value_name = "UUID")]
        instance: Option<String>,
        /// Name of the instance [default: the file name]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Prefix of the instance's name, such as "Ann's"
        #[arg(long, value_name = "NAME")]
        user_name: Option<String>,
        /// Description
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Add the age even if it has no age file in the shard's data/ages
        #[arg(long)]
        no_check: bool,
        /// Add the age even if the shard has a public instance of it under other names
        #[arg(long)]
        another: bool,
    },
    /// Add the ages in dirtsand's static_ages.ini
    ///
    /// Existing instances are not changed.
    #[command(after_help = "Example:
  worldwire uru age import static_ages.ini")]
    Import {
        /// static_ages.ini; - is standard input
        file: PathBuf,
    },
    /// Remove an empty age that has no owner, along with its states and the links to it
    #[command(after_help = "Examples:
  worldwire uru age remove Fernhollow
  worldwire uru age remove 68e219e0-ee25-4df0-b855-0435584e29e2")]
    Remove {
        /// Age: the unique name of an instance, its Age or AgeInfo node ID, or its UUID
        #[arg(value_name = "AGE|INSTANCE")]
        age: String,
    },
}

/// Selects a shard.
#[derive(Debug, Args)]
pub(crate) struct UruShard {
    /// The shard's directory
    #[arg(
        short = 's',
        long = "server",
        alias = "shard",
        global = true,
        value_name = "FOLDER",
        default_value = "shard"
    )]
    pub(crate) shard: PathBuf,
    /// Write JSON, one value per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The source of a password.
#[derive(Debug, Args)]
pub(crate) struct NewPassword {
    /// Read the password from the first line of a file; - is standard input [default: the environment
    /// variable WORLDWIRE_PASSWORD, or a prompt]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

/// Whether to ask before data is lost.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Confirmation {
    /// Skip the confirmation prompt, which needs a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
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
    /// Change an account's roles, even while it is logged in
    #[command(after_help = "Examples:
  worldwire uru account role ann admin
  worldwire uru account role ann user")]
    Role {
        /// Account name
        name: String,
        /// Its new roles, which replace the old ones
        #[arg(required = true, value_name = "ROLE")]
        role: Vec<AccountRole>,
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
    /// Delete an account and all its players
    #[command(after_help = "Examples:
  worldwire uru account delete ann
  worldwire uru account delete ann --yes")]
    Delete {
        /// Account name
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruPlayer {
    /// Rename a player everywhere and notify the players who see the name
    ///
    /// The names of the player's Relto and of other ages named after the player also change. A player
    /// who is logged in sees the old name until the next login.
    ///
    /// A name must begin with an ASCII character, have at least 3 characters other than spaces, and
    /// be at most 39 UTF-16 code units long.
    #[command(after_help = "Examples:
  worldwire uru player rename Éowyn Eowyn
  worldwire uru player rename 10023 \"Ann of Ae'gura\" --server /srv/uru")]
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
    /// All privileges, including changing any node and kicking players
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
        /// Node ID, player name, or the name or instance ID of an age [default: the System node]
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
    ///
    /// Use the field names that `show` prints or, if NodeType is among the fields, the game's names.
    #[command(after_help = "Examples:
  worldwire uru vault find NodeType=PlayerInfo PlayerName=ann
  worldwire uru vault find NodeType=AgeInfo AgeFilename=Neighborhood IsPublic=1
  worldwire uru vault find NodeType=AgeInfo String64_2=Neighborhood --json")]
    Find {
        /// FIELD=VALUE
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
    /// Check the vault for cycles, missing nodes, incomplete players and ages, and invalid names
    ///
    /// Findings of the same kind are summarised in one line. --details and --json list all of them.
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
    /// Remove nodes that players deleted or never linked to another node
    ///
    /// Without --apply, the command only shows how many nodes of each type would be removed. Nodes of
    /// players who are online and nodes changed within the last hour are kept. All nodes are removed
    /// in one transaction, even on a running shard. Make a backup first.
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
    /// Copy a stopped shard's database to PostgreSQL or to a SQLite file
    ///
    /// Everything, including IDs and passwords, is copied in one transaction and compared afterwards.
    /// The new database must be empty. shard.toml is not changed.
    #[command(
        after_help = "Copying needs as much memory as the database takes up. To keep a PostgreSQL user's password off the
command line, put it in PGPASSWORD or ~/.pgpass.

Examples:
  worldwire uru vault copy --to postgres://uru@db.example.org/shard
  worldwire uru vault copy --to copy.sqlite --server /srv/uru"
    )]
    Copy {
        /// The new database: a URL that starts with postgres://, or a SQLite file
        #[arg(long, value_name = "URL|FILE")]
        to: String,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Export the whole vault as JSON lines, or for another server
    #[command(
        after_help = "JSON lines contain no passwords. Exports for other servers contain password digests: treat them like
passwords. Data that the other server cannot store is listed. For dirtsand, the export is an SQL script for
psql that replaces all contents of a database whose tables already exist; for moulars, it is the database
file.

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
        #[arg(
            short = 's',
            long = "server",
            alias = "shard",
            value_name = "FOLDER",
            default_value = "shard"
        )]
        shard: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Replace the whole vault with an exported one
    #[command(
        after_help = "The file is checked first, as with `vault check`, and imported completely or not at all. Existing accounts are
kept; the others are created without a password. No player may be logged in.

With --from, accounts keep their passwords, and data that cannot be imported is listed. The shard must be
stopped: the import also sets the city, the neighbourhood and other public ages in the [ages] section of
shard.toml. Keys are not imported; convert them with `worldwire uru keys convert`. For dirtsand, FILE is
the output of pg_dump --column-inserts; for moulars, the database file, with moulars stopped.

Examples:
  worldwire uru vault import vault.jsonl
  worldwire uru vault import --from dirtsand dirtsand.sql
  worldwire uru vault import --from moulars vault.db"
    )]
    Import {
        /// Exported vault; - is standard input
        file: PathBuf,
        /// Import the accounts and the vault from another server
        #[arg(long, value_name = "SERVER")]
        from: Option<OtherServer>,
        /// Descriptors for checking the other server's states: .sdl files or directories [default:
        /// the shard's]
        #[arg(long, value_name = "PATH", requires = "from")]
        sdl: Vec<PathBuf>,
        /// Import even if the vault has players, and delete those players
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        shard: UruShard,
    },
}

/// A server to import from or export to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OtherServer {
    /// H-uru/dirtsand, as a dump
    Dirtsand,
    /// zrax/moulars, as its SQLite file
    Moulars,
}
