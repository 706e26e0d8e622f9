//! Why a shard refused an operator's request.

use worldwire_uru::types::NetError;

use crate::config::ConfigError;
use crate::operators::Rejection;
use crate::uru::ClearError;
use crate::uru::config::CONFIG;
use crate::uru::game::MAX_TEXT;
use crate::uru::vault::{DumpError, NAME_RULE, Named, RemoveError};

/// Why a shard refused a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The vault refused a request about an account, a node, or the vault as a whole.
    #[error("{what} {}", words(*error))]
    Vault {
        /// The subject of the request, such as `node 10023`.
        what: String,
        /// The reason that the vault gave.
        error: NetError,
    },
    /// The vault refused a request about an age.
    #[error("age {age:?} {}", match error {
        ClearError::Vault(error) => words(*error),
        error => error.to_string(),
    })]
    Age {
        /// The age, as the operator named it.
        age: String,
        /// Why its states were not removed.
        error: ClearError,
    },
    /// The age cannot be created.
    #[error("the age {0}")]
    NewAge(String),
    /// This would create a second public instance of an age, which the operator did not request
    /// explicitly.
    #[error(
        "the shard already has a public instance of {filename}: {instance} ({title}); give the new \
        one an --instance, or use --another to add one more"
    )]
    AnotherAge {
        /// The age's filename.
        filename: String,
        /// The name of the existing instance.
        title: String,
        /// The existing instance.
        instance: String,
    },
    /// The age was not removed.
    #[error("age {age:?} {}", match error {
        RemoveError::Clear(ClearError::Vault(error)) => words(*error),
        error => error.to_string(),
    })]
    RemoveAge {
        /// The age, as the operator named it.
        age: String,
        /// Why it was not removed.
        error: RemoveError,
    },
    /// Clients cannot show the message.
    #[error(
        "a message must have 1 to {MAX_TEXT} characters and no line breaks, and its sender's name \
         must have 1 to 39 ASCII characters"
    )]
    Message,
    /// The configuration cannot be read or changed.
    #[error("{CONFIG}: {0}")]
    Config(#[from] ConfigError),
    /// No account or player has this name.
    #[error("there is no account or player named {0:?}")]
    NoPlayer(String),
    /// The player is not online.
    #[error("{0:?} is not logged in")]
    NotLoggedIn(String),
    /// No player has this number or name.
    #[error("there is no player with the number or name {0:?}")]
    UnknownPlayer(String),
    /// The name is not allowed for a player.
    #[error("a player cannot be called {0:?}: a name {NAME_RULE}")]
    PlayerName(String),
    /// Another player has this name.
    #[error("another player is already called {0:?}")]
    PlayerNameTaken(String),
    /// An account has this name, and so does a player of another account.
    #[error(
        "{0:?} is the name of both an account and another account's player; give the player's \
         number"
    )]
    NotOnePlayer(String),
    /// No node of the required kind has this name.
    #[error("there is no {what} named {name:?}")]
    NoNode {
        /// `age`, or `player or age`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Several nodes have this name.
    #[error("{} nodes are named {name:?}; specify one by its number: {}", nodes.len(), list(nodes))]
    SeveralNodes {
        /// The name.
        name: String,
        /// The nodes.
        nodes: Vec<Named>,
    },
    /// The node with this number is not an age.
    #[error("{id} is {what}, not an age")]
    NotAnAge {
        /// The node.
        id: u32,
        /// The kind of node that it is instead.
        what: String,
    },
    /// A node cannot have these fields, or the message cannot be encoded.
    #[error(transparent)]
    Fields(#[from] worldwire_core::Error),
    /// The state does not consist of hexadecimal digits.
    #[error("a state must be in hexadecimal")]
    NotHex,
    /// The dump cannot be imported.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The process cannot reach its leader.
    #[error("the leader, which has the vault, cannot be reached; see the log")]
    NoLeader,
    /// The leader failed before it replied.
    #[error(
        "the leader ended or became unreachable before it replied; the command may have taken \
         effect"
    )]
    Unanswered,
    /// The leader does not take operators' requests from other processes.
    #[error(
        "the leader accepts no commands from other processes: node_commands in [cluster] of its \
         {CONFIG} is false, or the leader runs an older version; run the command in the leader's \
         folder"
    )]
    NotTaken,
    /// The node has too many open requests with the leader.
    #[error("the leader is still busy with {0} commands from this node; try again later")]
    Crowded(usize),
    /// The dump or the reply is too large for the bus.
    #[error(
        "more than {0} MiB cannot be sent to or from another process; run the command in the leader's folder"
    )]
    TooLarge(usize),
    /// The leader did not carry out the request, for this reason.
    #[error("{}", .0.problem)]
    Elsewhere(Rejection),
    /// The request was made to a standby that has no bus.
    #[error(
        "this process is a standby; run the command where the shard is served{}, or set bus in [cluster] of {CONFIG}",
        active.as_ref().map(|active| format!(": {active}")).unwrap_or_default()
    )]
    Standby {
        /// The process that serves the shard, if it is known.
        active: Option<String>,
    },
    /// No other process can take over the shard.
    #[error("the shard was started without --standby, so no other process can take over")]
    NotShared,
    /// No process has this name.
    #[error("{0:?} is not a node of this shard; `worldwire uru cluster list` lists them")]
    NoSuchNode(String),
    /// The process that serves the shard.
    #[error(
        "{0:?} is the leader, which cannot be drained; make a standby the leader with `worldwire uru cluster lead`, then stop {0:?}"
    )]
    DrainsLeader(String),
    /// The process is a standby.
    #[error("{0:?} is a standby, which has no clients and no ages; stop it without draining it")]
    DrainsStandby(String),
    /// No process can take over now.
    #[error("no standby is connected to the database; start one with --standby first")]
    NoStandby,
    /// A standby that is connected to the database but has not joined the leader.
    #[error(
        "a standby is connected to the database, but has not joined this process; see its \
         `/health` and its log for the reason"
    )]
    NotAdmitted,
    /// The vault is in use, so it cannot be replaced by an import.
    #[error("a player is logged in, or an age is still running; stop the shard first")]
    Busy,
    /// The vault already has players, so an import does not replace it.
    #[error("the vault already has players; --replace removes them")]
    HasPlayers,
}

impl From<NetError> for RequestError {
    fn from(error: NetError) -> Self {
        Self::Vault { what: "the request".to_owned(), error }
    }
}

impl RequestError {
    pub(super) fn account(name: &str, error: NetError) -> Self {
        Self::Vault { what: format!("account {name:?}"), error }
    }

    /// Whether the vault failed or could not be reached, instead of refusing the request.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::NoLeader | Self::Unanswered | Self::NotTaken | Self::Crowded(_) => return true,
            Self::Standby { .. } => return true,
            Self::Elsewhere(rejection) => return rejection.is_failure,
            _ => {}
        }
        let (Self::Vault { error, .. }
        | Self::Age { error: ClearError::Vault(error), .. }
        | Self::RemoveAge { error: RemoveError::Clear(ClearError::Vault(error)), .. }) = self
        else {
            return false;
        };
        [NetError::TimeoutOdbc, NetError::InternalError, NetError::RemoteShutdown].contains(error)
    }
}

/// The first nodes of a list, for display.
fn list(nodes: &[Named]) -> String {
    const MAX: usize = 20;
    let listed = nodes.iter().take(MAX).map(|Named { id, text }| format!("{id} ({text})"));
    let mut text = listed.collect::<Vec<_>>().join(", ");
    if let more @ 1.. = nodes.len().saturating_sub(MAX) {
        text.push_str(&format!(", and {more} more"));
    }
    text
}

/// The text of a protocol error, as the end of a sentence about the request.
fn words(error: NetError) -> String {
    let text = match error {
        NetError::AccountAlreadyExists => "already exists",
        NetError::AccountNotFound | NetError::VaultNodeNotFound => "does not exist",
        NetError::VaultNodeAccessViolation => {
            "cannot be changed this way: the number, type, creator and times of a node are fixed, \
             and so are the names of players and the names and instances of ages"
        }
        NetError::InvalidParameter => "has a value that is empty, too long, or not allowed",
        NetError::TimeoutOdbc => "failed: the database did not respond in time",
        NetError::InternalError => "failed: the database reported an error; see the log",
        NetError::RemoteShutdown => "failed: the shard is shutting down",
        error => return format!("failed with error {}", error.0),
    };
    text.to_owned()
}
