//! Administering a shard, whether it is running or not; see [`crate::admin`].

mod copy;
mod error;
mod live;
mod relay;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

pub use copy::copy_database;
pub use error::RequestError;
pub(super) use live::ClusterControl;
pub use live::Control;
pub(super) use relay::Relay;

use super::Cleared;
use super::config::FixedAge;
use super::vault::{
    AccountSummary, Dump, Kicked, Named, PasswordSet, Pruned, Renamed, TreeLine, Vault, VaultError,
    fields_of, is_account_name,
};
use crate::operators::debug_request;

/// A request by an operator.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Lists all accounts, one per line.
    Accounts,
    /// Creates an account.
    AddAccount {
        /// Its name.
        name: String,
        /// Its password.
        password: String,
        /// Its rights, as [`AccountFlags`].
        flags: u32,
    },
    /// Changes a password.
    SetPassword {
        /// The account.
        name: String,
        /// Its new password.
        password: String,
    },
    /// Bans an account, or lifts its ban.
    Ban {
        /// The account.
        name: String,
        /// Whether to ban it.
        banned: bool,
    },
    /// Disconnects a player, or everyone logged in to an account, and lists those disconnected, one
    /// per line. They can log in again.
    Kick {
        /// A player's number or name, or an account's name.
        who: String,
    },
    /// Renames a player everywhere.
    RenamePlayer {
        /// The player's number or name.
        who: String,
        /// The new name.
        name: String,
    },
    /// Replaces an account's rights, except whether it is banned.
    SetRoles {
        /// The account.
        name: String,
        /// Its rights, as [`AccountFlags`].
        flags: u32,
    },
    /// Lists the clients that are logged in, one per line.
    Online,
    /// Lists the small games that players are in, one per line.
    Games,
    /// Lists the processes of the shard, the one with the vault first, one per line.
    Nodes,
    /// Drains a process, or lets it serve clients again. A drained process closes its clients'
    /// connections and gets no new ages, so that it can be stopped.
    Drain {
        /// The process's name in the cluster.
        node: String,
        /// Whether it should serve clients again.
        #[serde(default)]
        undo: bool,
    },
    /// Ends the process that serves the shard, so that a standby takes over, and lists the standbys,
    /// one per line.
    HandOver,
    /// Shows the text that a client's `server.ini` needs, with the port that the shard uses, and
    /// the address and port on which the shard listens.
    ServerIni,
    /// Shows whether all players may log in.
    Openness,
    /// Lists ages, one per line.
    Ages {
        /// Whether to include ages that are neither public nor the shard's own.
        all: bool,
        /// Whether to list only running ages.
        running: bool,
    },
    /// Creates a public age that belongs to the shard, unless one with these names exists.
    AddAge {
        /// The age.
        age: FixedAge,
        /// If no instance is given, whether to create one even if the shard has a public instance
        /// of the age under other names.
        #[serde(default)]
        another: bool,
    },
    /// Removes an empty age that nobody owns.
    RemoveAge {
        /// The number of its Age or AgeInfo node, its instance, or a unique name.
        age: String,
    },
    /// Shows a message to players in ages.
    Message {
        /// The name that appears as the sender.
        sender: String,
        /// The text.
        text: String,
        /// The number of an Age or AgeInfo node, an instance, or a unique name; `None` for all
        /// ages.
        age: Option<String>,
    },
    /// Shows or changes the message that launchers display.
    Welcome {
        /// The new message.
        text: Option<String>,
    },
    /// Closes the shard to everyone but administrators, developers and testers, or opens it again.
    Restrict {
        /// Whether to close it.
        closed: bool,
        /// Whether to disconnect everyone else.
        kick: bool,
    },
    /// Deletes an account and its players.
    DeleteAccount {
        /// The account.
        name: String,
    },
    /// Removes the states of all objects in an empty age.
    ClearStates {
        /// The number of its Age or AgeInfo node, its instance, or a unique name.
        age: String,
        /// Whether to remove the state of the age itself, too.
        #[serde(default)]
        own_state: bool,
    },
    /// Lists the tree below a node, one node per line.
    Tree {
        /// The node's number, an age's instance, or the unique name of a player or age. The default
        /// is the System node.
        node: Option<String>,
        /// The number of levels to list.
        depth: u32,
    },
    /// Shows the fields of a node.
    Show {
        /// The node.
        node: u32,
    },
    /// Finds nodes by their fields and lists their numbers, one per line.
    Find {
        /// Fields by name.
        fields: Json,
    },
    /// Changes fields of a node.
    Set {
        /// The node.
        node: u32,
        /// Fields by name.
        fields: Json,
    },
    /// Shows the state that is set for all instances of an age, in hexadecimal digits, if there is
    /// one.
    AgeSettings {
        /// The age's filename.
        age: String,
    },
    /// Sets the state for all instances of an age.
    SetAgeSettings {
        /// The age's filename.
        age: String,
        /// An SDL state of the age's descriptor, in hexadecimal digits.
        state: String,
    },
    /// Checks the vault for inconsistencies and lists them, one per line.
    Check,
    /// Removes nodes that belong to no tree, and lists the number of nodes of each type.
    Prune {
        /// Whether to count them without removing them.
        #[serde(default)]
        dry_run: bool,
    },
    /// Exports the whole vault as the lines of a [`Dump`].
    Export {
        /// Whether to include password digests, for import into another server. They can be used
        /// like passwords.
        #[serde(default)]
        passwords: bool,
    },
    /// Replaces the whole vault with the dump that follows.
    Import {
        /// Whether to remove existing players.
        replace: bool,
    },
}

impl fmt::Debug for Request {
    /// Leaves out the fields, because they may include a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_request(self, f)
    }
}

/// An operator's access to a shard.
pub type Admin = crate::admin::Admin<Control>;
/// Why a request to a shard failed.
pub type AdminError = crate::admin::AdminError<VaultError>;

/// Handles a request about the vault.
async fn perform(
    vault: &Vault,
    request: Request,
    lines: &[String],
) -> Result<Vec<Json>, RequestError> {
    let about = |name: &str| {
        let name = name.to_owned();
        move |error| RequestError::account(&name, error)
    };
    let about_node =
        |id: u32| move |error| RequestError::Vault { what: format!("node {id}"), error };
    match request {
        Request::Accounts => Ok(vault.accounts().await?.iter().map(account_json).collect()),
        Request::AddAccount { name, password, flags } => {
            let added = vault.add_account(&name, &password, AccountFlags(flags)).await;
            let added = added.map_err(about(&name))?;
            tracing::info!(name, flags, "operator added an account");
            Ok(vec![password_json(added)])
        }
        Request::SetPassword { name, password } => {
            let set = vault.set_password(&name, &password).await.map_err(about(&name))?;
            tracing::info!(name, "operator changed the password of an account");
            Ok(vec![password_json(set)])
        }
        Request::Ban { name, banned } => {
            vault.ban_account(&name, banned).await.map_err(about(&name))?;
            match banned {
                true => tracing::info!(name, "operator banned an account"),
                false => tracing::info!(name, "operator lifted the ban on an account"),
            }
            Ok(Vec::new())
        }
        Request::Kick { who } => {
            let kicked = vault.kick(&who).await.map_err(|error| match error {
                NetError::AccountNotFound => RequestError::NoPlayer(who),
                NetError::PlayerNotFound => RequestError::NotLoggedIn(who),
                NetError::InvalidParameter => RequestError::NotOnePlayer(who),
                error => error.into(),
            })?;
            for Kicked { account, player, player_name } in &kicked {
                let name = player_name.as_deref().unwrap_or_default();
                tracing::info!(account, player, name, "operator kicked a player");
            }
            Ok(kicked.iter().map(kicked_json).collect())
        }
        Request::RenamePlayer { who, name } => {
            let renamed = vault.rename_player(&who, &name).await;
            let renamed = renamed.map_err(|error| match error {
                NetError::PlayerNotFound => RequestError::UnknownPlayer(who),
                NetError::PlayerNameInvalid => RequestError::PlayerName(name),
                NetError::PlayerAlreadyExists => RequestError::PlayerNameTaken(name),
                error => error.into(),
            })?;
            let Renamed { player, old, new, ages, online } = renamed;
            tracing::info!(player, old, new, "operator renamed a player");
            Ok(vec![json!({
                "player": player, "old": old, "new": new, "ages": ages, "online": online,
            })])
        }
        Request::DeleteAccount { name } => {
            vault.delete_account(&name).await.map_err(about(&name))?;
            tracing::info!(name, "operator deleted an account");
            Ok(Vec::new())
        }
        Request::ClearStates { age, own_state } => {
            let found = vault.ages_called(&age).await?;
            if let (true, Ok(id)) = (found.is_empty(), age.parse())
                && let Some(what) = described(vault, id).await
            {
                return Err(RequestError::NotAnAge { id, what });
            }
            let node = the_only(&age, "age", found)?;
            let cleared = vault.clear_states(node, own_state).await;
            let cleared = cleared.map_err(|error| RequestError::Age { age, error })?;
            let Cleared { age, title, states, own_state, .. } = &cleared;
            tracing::info!(age, title, states, own_state, "operator cleared the states of an age");
            Ok(vec![cleared_json(&cleared)])
        }
        Request::Tree { node, depth } => {
            let node = match node {
                None => None,
                Some(word) => {
                    let found = vault.nodes_called(&word).await?;
                    match word.parse() {
                        // The tree itself reports that there is no such node.
                        Ok(id) if found.is_empty() => Some(id),
                        _ => Some(the_only(&word, "player or age", found)?),
                    }
                }
            };
            let tree = vault.tree(node, depth).await;
            let tree = tree.map_err(about_node(node.unwrap_or_default()))?;
            Ok(tree.iter().map(|line| json!(line)).collect())
        }
        Request::Show { node } => Ok(vec![vault.show(node).await.map_err(about_node(node))?]),
        Request::Find { fields } => {
            let found = vault.find(fields_of(&(&fields).into())?).await?;
            Ok(found.into_iter().map(Json::from).collect())
        }
        Request::Set { node, fields } => {
            vault.set(node, fields_of(&(&fields).into())?).await.map_err(about_node(node))?;
            tracing::info!(node, "operator changed a node");
            Ok(Vec::new())
        }
        Request::AgeSettings { age } => {
            let state = vault.age_settings(&age).await?;
            Ok(state.iter().map(|state| json!(hex(state))).collect())
        }
        Request::SetAgeSettings { age, state } => {
            let state = parse_hex(&state).ok_or(RequestError::NotHex)?;
            vault.set_age_settings(&age, state).await?;
            tracing::info!(age, "operator changed the settings of an age");
            Ok(Vec::new())
        }
        Request::Check => Ok(vault.check().await?.iter().map(|finding| json!(finding)).collect()),
        Request::Prune { dry_run } => {
            let Pruned { nodes, refs, kept } = vault.prune(dry_run).await?;
            let count: usize = nodes.values().sum();
            if !dry_run {
                tracing::info!(nodes = count, refs, "operator pruned the vault");
            }
            Ok(vec![json!({
                "dryRun": dry_run, "nodes": count, "types": nodes, "refs": refs, "kept": kept,
            })])
        }
        Request::Export { passwords } => {
            let dump = match passwords {
                true => vault.export_with_passwords().await,
                false => vault.export().await,
            };
            Ok(dump?.lines().map(Json::String).collect())
        }
        Request::Import { replace } => {
            let dump = Dump::read(lines.iter().map(String::as_str))?;
            let nodes = dump.nodes();
            vault.import(dump, replace).await.map_err(|error| match error {
                NetError::LoggedInElsewhere if replace => RequestError::Busy,
                NetError::LoggedInElsewhere => RequestError::HasPlayers,
                error => error.into(),
            })?;
            tracing::info!(nodes, "operator imported a vault");
            Ok(vec![json!({ "nodes": nodes })])
        }
        // Requests that concern more than the vault.
        _ => Err(NetError::NotSupported.into()),
    }
}

/// Checks the name of a new account, as [`Request::AddAccount`] does.
pub fn check_account_name(name: &str) -> Result<(), RequestError> {
    match is_account_name(name) {
        true => Ok(()),
        false => Err(RequestError::account(name, NetError::InvalidParameter)),
    }
}

/// A description of a node, if it exists: `a player (Ann)`.
async fn described(vault: &Vault, id: u32) -> Option<String> {
    let TreeLine { kind, title, .. } = vault.tree(Some(id), 0).await.ok()?.into_iter().next()?;
    let mut what = match &*kind {
        "Player" => "a player".to_owned(),
        kind => format!("a node of type {kind}"),
    };
    if !title.is_empty() {
        what = format!("{what} ({title})");
    }
    Some(what)
}

/// The node that a name identifies, if the name is unique.
fn the_only(name: &str, what: &'static str, nodes: Vec<Named>) -> Result<u32, RequestError> {
    let name = name.to_owned();
    match &nodes[..] {
        [] => Err(RequestError::NoNode { what, name }),
        [one] => Ok(one.id),
        _ => Err(RequestError::SeveralNodes { name, nodes }),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(&mut text, bytes);
    text
}

fn account_json(account: &AccountSummary) -> Json {
    let players = account.players.iter();
    let players: Vec<_> =
        players.map(|player| json!({ "id": player.id, "name": player.name })).collect();
    json!({
        "id": account.id.to_string(),
        "name": account.name,
        "flags": account.flags.0,
        "banned": account.flags.0 & AccountFlags::Banned.0 != 0,
        "created": account.created,
        "hasPassword": account.has_password,
        "players": players,
    })
}

fn kicked_json(who: &Kicked) -> Json {
    let Kicked { account, player, player_name } = who;
    let player = (*player != 0).then(|| json!({ "id": player, "name": player_name }));
    json!({ "account": account, "player": player })
}

fn cleared_json(cleared: &Cleared) -> Json {
    let Cleared { age, instance, filename, title, states, own_state } = cleared;
    json!({
        "age": age, "instance": instance.to_string(), "filename": filename, "name": title,
        "states": states, "ownState": own_state,
    })
}

fn password_json(set: PasswordSet) -> Json {
    json!({ "id": set.account.to_string(), "allClients": set.all_clients })
}
