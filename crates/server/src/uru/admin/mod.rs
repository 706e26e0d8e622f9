//! What operators do with a shard while it runs, and while it does not.
//!
//! [`Admin::open`] finds out which it is: a shard that runs has its folder locked and listens on a
//! [local socket](crate::operators) there; otherwise the database is opened here for as long as the
//! request takes. Either way a [`Request`] is answered by [`perform`].

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

use super::accounts::{AccountSummary, PasswordSet, is_account_name};
use super::config::ShardConfig;
use super::players::ThrownOut;
use super::vault::{Dump, Finding, Named, TreeLine, Vault, VaultError, fields_of};
use super::{CONFIG, ClearError, Cleared};
use crate::config::{self, ConfigError};
use crate::operators::{self, Operated};
use crate::store::lock::{FolderLock, LOCK_FILE};
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, SQLITE_FILE, StoreError};

impl Operated for Vault {
    type Request = Request;

    fn has_lines(request: &Request) -> bool {
        matches!(request, Request::Import { .. })
    }

    async fn perform(&self, request: Request, lines: &[String]) -> Result<Vec<Json>, String> {
        perform(self, request, lines).await
    }
}

/// What an operator wants.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// All accounts, one a line.
    Accounts,
    /// Makes an account.
    AddAccount {
        /// Its name.
        name: String,
        /// Its password.
        password: String,
        /// What it may do.
        flags: u32,
    },
    /// Changes a password.
    SetPassword {
        /// The account.
        name: String,
        /// The password.
        password: String,
    },
    /// Bans an account, or lets it in again.
    Ban {
        /// The account.
        name: String,
        /// Whether it is banned from here on.
        banned: bool,
    },
    /// Throws a player out, or all who are logged in to an account, one a line. They may come back.
    Kick {
        /// The number or name of a player, or the name of an account.
        who: String,
    },
    /// Removes an account with its players.
    DeleteAccount {
        /// The account.
        name: String,
    },
    /// Removes the states of the objects of an age in which nobody is.
    ClearStates {
        /// The number of its Age or AgeInfo node, its instance, or a name that only one age has.
        age: String,
        /// The state of the age itself, too.
        #[serde(default)]
        own_state: bool,
    },
    /// The tree below a node, one node a line.
    Tree {
        /// Its number, the instance of an age, or a name that only one player or age has; the System
        /// node by default.
        node: Option<String>,
        /// How deep.
        depth: u32,
    },
    /// The fields of a node.
    Show {
        /// The node.
        node: u32,
    },
    /// The nodes that have these fields, one number a line.
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
    /// What is set for all instances of an age: a state in hexadecimal digits, if anything is.
    AgeSettings {
        /// The age's name in files.
        age: String,
    },
    /// Sets that.
    SetAgeSettings {
        /// The age's name in files.
        age: String,
        /// A state (SDL) by the descriptor of that name, in hexadecimal digits.
        state: String,
    },
    /// Looks for what cannot be, one finding a line.
    Check,
    /// The whole vault, one line of a [`Dump`] a line.
    Export {
        /// With the digests of passwords, which are as good as passwords: for another server.
        #[serde(default)]
        passwords: bool,
    },
    /// Replaces the whole vault by the dump that follows.
    Import {
        /// Even if there are players.
        replace: bool,
    },
}

impl fmt::Debug for Request {
    /// Without what may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_value(self).unwrap_or_default();
        write!(f, "Request({})", json["request"])
    }
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// It cannot be done, and this is why.
    #[error("{0}")]
    Refused(String),
    /// There is no shard in the folder.
    #[error("{}: is not the folder of a shard; `worldwire serve uru` makes one", .0.display())]
    NoShard(PathBuf),
    /// There is a shard in the folder, and its key is gone.
    #[error("{}: is missing; restore it, or start the shard once", .0.display())]
    NoKey(PathBuf),
    /// A shard has the folder and does not answer.
    #[error("{}: a shard runs there and does not answer: {source}", folder.display())]
    Silent {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file in the folder cannot be used.
    #[error("{}: {source}", file.display())]
    File {
        /// Which one.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `shard.toml` cannot be read.
    #[error("{}: {error}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        error: ConfigError,
    },
    /// The server's key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl AdminError {
    /// What it means that the shard in a folder cannot be asked.
    fn unanswered(folder: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::File { file: operators::file(folder), source },
            _ => Self::Silent { folder: folder.to_owned(), source },
        }
    }
}

/// A shard, as its operator has it.
#[derive(Debug)]
pub struct Admin(Place);

#[derive(Debug)]
enum Place {
    /// It runs: the folder.
    Running(PathBuf),
    /// It does not: its vault is open here.
    Here { vault: Vault, _lock: FolderLock },
}

impl Admin {
    /// Finds the shard in a folder: the one that runs, or else its database.
    ///
    /// # Errors
    /// As [`AdminError`] says.
    pub async fn open(folder: &Path) -> Result<Self, AdminError> {
        let no_shard = || AdminError::NoShard(folder.to_owned());
        let key = folder.join(KEY_FILE);
        if !key.exists() {
            let was_one = [SQLITE_FILE, CONFIG].iter().any(|name| folder.join(name).exists());
            return Err(if was_one { AdminError::NoKey(key) } else { no_shard() });
        }
        let locked = |source| AdminError::File { file: folder.join(LOCK_FILE), source };
        let Some(lock) = FolderLock::take(folder).map_err(locked)? else {
            return Ok(Self(Place::Running(folder.to_owned())));
        };
        let file = folder.join(CONFIG);
        let config = config::read(&file, ShardConfig::parse);
        let config = config.map_err(|error| AdminError::Config { file, error })?;
        let config = config.unwrap_or_default();
        let url = config::database(&config.database);
        if url.is_none() && !folder.join(SQLITE_FILE).exists() {
            return Err(no_shard());
        }
        let store = store::open(folder, url).await?;
        // What every shard has is made here, too, and must be called the same.
        let vault = Vault::open(store, ServerKey::load(&key)?, config.vault()).await?;
        Ok(Self(Place::Here { vault, _lock: lock }))
    }

    /// Does what is asked for. `lines` is the dump of an import, and empty otherwise.
    ///
    /// # Errors
    /// As [`AdminError`] says.
    pub async fn ask(&self, request: Request, lines: &[String]) -> Result<Vec<Json>, AdminError> {
        match &self.0 {
            Place::Here { vault, .. } => {
                perform(vault, request, lines).await.map_err(AdminError::Refused)
            }
            Place::Running(folder) => {
                match operators::ask::<Vault>(folder, &request, lines).await {
                    Ok(answer) => answer.map_err(AdminError::Refused),
                    Err(source) => Err(AdminError::unanswered(folder, source)),
                }
            }
        }
    }

    /// Closes what was opened. The shard that runs goes on.
    pub async fn close(self) {
        if let Place::Here { vault, .. } = self.0 {
            vault.close().await;
        }
    }
}

/// Answers a request, in JSON values of which each is a line. `lines` is the dump of an import.
///
/// # Errors
/// What is wrong, for people.
pub async fn perform(
    vault: &Vault,
    request: Request,
    lines: &[String],
) -> Result<Vec<Json>, String> {
    let about = |name: &str| {
        let name = name.to_owned();
        move |error| format!("account {name:?}: {}", said(error))
    };
    let node_said = |node: u32| move |error| format!("node {node}: {}", said(error));
    match request {
        Request::Accounts => {
            let accounts = vault.accounts().await.map_err(said)?;
            Ok(accounts.iter().map(account_json).collect())
        }
        Request::AddAccount { name, password, flags } => {
            let added = vault.add_account(&name, &password, AccountFlags(flags)).await;
            Ok(vec![password_json(added.map_err(about(&name))?)])
        }
        Request::SetPassword { name, password } => {
            let set = vault.set_password(&name, &password).await;
            Ok(vec![password_json(set.map_err(about(&name))?)])
        }
        Request::Ban { name, banned } => {
            vault.ban_account(&name, banned).await.map_err(about(&name))?;
            tracing::info!(name, banned, "an operator changed who is banned");
            Ok(Vec::new())
        }
        Request::Kick { who } => {
            let thrown_out = vault.throw_out(&who).await.map_err(|error| match error {
                NetError::AccountNotFound => format!("no account or player is called {who:?}"),
                NetError::PlayerNotFound => format!("{who:?} is not logged in"),
                NetError::InvalidParameter => format!(
                    "{who:?} is the name of an account and of a player of another account; \
                     give the number of the player"
                ),
                error => format!("{who:?}: {}", said(error)),
            })?;
            for ThrownOut { account, player, player_name } in &thrown_out {
                let name = player_name.as_deref().unwrap_or_default();
                tracing::info!(account, player, name, "an operator threw a player out");
            }
            Ok(thrown_out.iter().map(thrown_out_json).collect())
        }
        Request::DeleteAccount { name } => {
            vault.delete_account(&name).await.map_err(about(&name))?;
            tracing::info!(name, "an operator deleted an account");
            Ok(Vec::new())
        }
        Request::ClearStates { age, own_state } => {
            let found = vault.ages_called(&age).await.map_err(said)?;
            if let (true, Ok(id)) = (found.is_empty(), age.parse())
                && let Some(what) = described(vault, id).await
            {
                return Err(format!("{id} is {what}, not an age"));
            }
            let node = the_only(&age, "age", found)?;
            let cleared =
                vault.clear_states(node, own_state).await.map_err(|error| match error {
                    ClearError::Vault(error) => format!("{age:?}: {}", said(error)),
                    error => format!("{age:?}: {error}"),
                })?;
            let Cleared { age, title, states, own_state, .. } = &cleared;
            tracing::info!(age, title, states, own_state, "an operator cleared states of an age");
            Ok(vec![cleared_json(&cleared)])
        }
        Request::Tree { node, depth } => {
            let node = match node {
                None => None,
                Some(word) => {
                    let found = vault.nodes_called(&word).await.map_err(said)?;
                    match word.parse() {
                        // Whoever gives a number hears of it.
                        Ok(id) if found.is_empty() => Some(id),
                        _ => Some(the_only(&word, "player or age", found)?),
                    }
                }
            };
            let tree = vault.tree(node, depth).await;
            let tree = tree.map_err(node_said(node.unwrap_or_default()))?;
            let line = |line: TreeLine| {
                json!({
                    "depth": line.depth, "id": line.id, "type": line.kind, "title": line.title,
                    "repeated": line.repeated,
                })
            };
            Ok(tree.into_iter().map(line).collect())
        }
        Request::Show { node } => Ok(vec![vault.show(node).await.map_err(node_said(node))?]),
        Request::Find { fields } => {
            let found = vault.find(fields_of(&(&fields).into())?).await.map_err(said)?;
            Ok(found.into_iter().map(Json::from).collect())
        }
        Request::Set { node, fields } => {
            vault.set(node, fields_of(&(&fields).into())?).await.map_err(node_said(node))?;
            Ok(Vec::new())
        }
        Request::AgeSettings { age } => {
            let state = vault.age_settings(&age).await.map_err(said)?;
            Ok(state.iter().map(|state| json!(hex(state))).collect())
        }
        Request::SetAgeSettings { age, state } => {
            let state = parse_hex(&state).ok_or("wanted a state in hexadecimal digits")?;
            vault.set_age_settings(&age, state).await.map_err(said)?;
            Ok(Vec::new())
        }
        Request::Check => {
            let findings = vault.check().await.map_err(said)?;
            Ok(findings.into_iter().map(finding_json).collect())
        }
        Request::Export { passwords } => {
            let dump = match passwords {
                true => vault.export_with_passwords().await,
                false => vault.export().await,
            };
            let dump = dump.map_err(said)?;
            Ok(dump.lines().map(Json::String).collect())
        }
        Request::Import { replace } => {
            let dump = Dump::read(lines.iter().map(String::as_str));
            let dump = dump.map_err(|error| error.to_string())?;
            let nodes = dump.nodes();
            vault.import(dump, replace).await.map_err(|error| match error {
                NetError::LoggedInElsewhere if replace => {
                    "somebody is logged in, or an age still runs; stop the shard first".to_owned()
                }
                NetError::LoggedInElsewhere => {
                    "there are players already; --replace removes them".to_owned()
                }
                error => said(error),
            })?;
            Ok(vec![json!({ "nodes": nodes })])
        }
    }
}

/// What a node is, if it exists: `a player (Ann)`.
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

/// The only node that a name means.
fn the_only(name: &str, what: &str, found: Vec<Named>) -> Result<u32, String> {
    /// How many are listed.
    const MAX: usize = 20;
    match &found[..] {
        [] => Err(format!("no {what} is called {name:?}")),
        [one] => Ok(one.id),
        several => {
            let listed = several.iter().take(MAX);
            let listed: Vec<_> =
                listed.map(|Named { id, text }| format!("{id} ({text})")).collect();
            let more = several.len().saturating_sub(MAX);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let (count, listed) = (several.len(), listed.join(", "));
            Err(format!("{count} are called {name:?}; give the number of one: {listed}{more}"))
        }
    }
}

/// Checks what an account is to be called, as [`Request::AddAccount`] does.
///
/// # Errors
/// What is wrong with it, for people.
pub fn check_account_name(name: &str) -> Result<(), String> {
    match is_account_name(name) {
        true => Ok(()),
        false => Err(format!("account {name:?}: {}", said(NetError::InvalidParameter))),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(&mut text, bytes);
    text
}

fn finding_json(finding: Finding) -> Json {
    let Finding { problem, id, text } = finding;
    json!({ "problem": problem, "id": id, "text": text })
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

fn thrown_out_json(who: &ThrownOut) -> Json {
    let ThrownOut { account, player, player_name } = who;
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

/// An error of the protocol, in words.
fn said(error: NetError) -> String {
    let text = match error {
        NetError::AccountAlreadyExists => "exists already",
        NetError::AccountNotFound => "does not exist",
        NetError::VaultNodeNotFound => "does not exist",
        NetError::VaultNodeAccessViolation => {
            "numbers, types, makers and times of nodes stay as they are, and so do the names of \
             players and what ages are found by"
        }
        NetError::InvalidParameter => "a value is empty, too long, or not allowed",
        NetError::TimeoutOdbc => "the database did not answer in time",
        NetError::InternalError => "the database failed; the log says more",
        NetError::RemoteShutdown => "the shard is shutting down",
        error => return format!("error {}", error.0),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_somebody_else_is_named() {
        let said = |kind: io::ErrorKind| {
            AdminError::unanswered(Path::new("there"), kind.into()).to_string()
        };
        let file = operators::file(Path::new("there"));
        let wanted = format!("{}: permission denied", file.display());
        assert_eq!(said(io::ErrorKind::PermissionDenied), wanted);
        let silent = said(io::ErrorKind::ConnectionRefused);
        assert!(silent.starts_with("there: a shard runs there and does not answer: "), "{silent}");
    }
}
