//! What operators do with a login server while it runs, and while it does not.
//!
//! [`Admin::open`] finds out which it is: a server that runs has its folder locked and listens on a
//! [local socket](crate::operators) there; otherwise the database is opened here for as long as the
//! request takes. What is about connections needs a server that runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use worldwire_ki::crypt::login::Secret;
use worldwire_net::Clock;

pub use super::realm::check_account_name;
use super::realm::{Privileges, Realm, RealmError};
use super::{CONFIG, KiConfig, SQLITE_FILE};
use crate::config::{self, ConfigError};
use crate::operators::{self, Operated};
use crate::store::lock::{FolderLock, LOCK_FILE};
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, StoreError};

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
        /// Whether it pays.
        paying: bool,
        /// Slots for characters beyond those that everybody has.
        slots: u8,
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
    /// Removes an account with its characters.
    DeleteAccount {
        /// The account.
        name: String,
    },
    /// A CK2 for an account, good on any machine: for a web page that starts the game.
    Token {
        /// The account.
        name: String,
    },
    /// Throws out an account's connections.
    Kick {
        /// The account.
        name: String,
    },
    /// Makes sessions stale.
    Refresh {
        /// The account; all connections by default.
        name: Option<String>,
    },
    /// Uses up the key with which a client comes to a zone: for zone servers of other programs.
    Redeem {
        /// `LoginKey`.
        key: String,
        /// `UserID`.
        user: u64,
        /// `CharID`.
        character: u64,
    },
    /// How many there are of what.
    Census,
}

impl fmt::Debug for Request {
    /// Without what may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_value(self).unwrap_or_default();
        write!(f, "Request({})", json["request"])
    }
}

impl Request {
    /// Whether it is about connections.
    fn needs_server(&self) -> bool {
        matches!(
            self,
            Self::Token { .. } | Self::Kick { .. } | Self::Refresh { .. } | Self::Redeem { .. }
        )
    }
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// It cannot be done, and this is why.
    #[error("{0}")]
    Refused(String),
    /// There is no login server in the folder.
    #[error("{}: is not the folder of a login server; `worldwire serve ki` makes one", .0.display())]
    NoServer(PathBuf),
    /// It is about connections, and the server does not run.
    #[error("{}: wanted a server that runs, found none", .0.display())]
    NotRunning(PathBuf),
    /// A server has the folder and does not answer.
    #[error("{}: a server runs there and does not answer: {source}", folder.display())]
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
    /// `ki.toml` cannot be read.
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
    /// What is in the database.
    #[error(transparent)]
    Realm(#[from] RealmError),
}

impl AdminError {
    /// What it means that the server in a folder cannot be asked.
    fn unanswered(folder: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::File { file: operators::file(folder), source },
            _ => Self::Silent { folder: folder.to_owned(), source },
        }
    }
}

/// A login server, as its operator has it.
#[derive(Debug)]
pub struct Admin {
    folder: PathBuf,
    /// The realm, when the server does not run.
    here: Option<(Realm, FolderLock)>,
}

impl Admin {
    /// Finds the server in a folder: the one that runs, or else its database.
    ///
    /// # Errors
    /// As [`AdminError`] says.
    pub async fn open(folder: &Path) -> Result<Self, AdminError> {
        let folder = folder.to_owned();
        let file = folder.join(CONFIG);
        if !file.exists() {
            return Err(AdminError::NoServer(folder));
        }
        let lock = FolderLock::take(&folder);
        let locked = |source| AdminError::File { file: folder.join(LOCK_FILE), source };
        let lock = lock.map_err(locked)?;
        let Some(lock) = lock else { return Ok(Self { folder, here: None }) };
        let config = config::read(&file, KiConfig::parse);
        let config = config.map_err(|error| AdminError::Config { file, error })?;
        let config = config.unwrap_or_default();
        let url = config::database(&config.database);
        let store = store::open_file(&folder.join(SQLITE_FILE), url).await?;
        let key = ServerKey::load(&folder.join(KEY_FILE))?;
        let realm = Realm::open(store, key, config, Clock::start()).await?;
        Ok(Self { folder, here: Some((realm, lock)) })
    }

    /// Does what is asked for.
    ///
    /// # Errors
    /// As [`AdminError`] says.
    pub async fn ask(&self, request: Request) -> Result<Vec<Json>, AdminError> {
        let Self { folder, here } = self;
        match here {
            Some(_) if request.needs_server() => Err(AdminError::NotRunning(folder.clone())),
            Some((realm, _)) => realm.perform(request, &[]).await.map_err(AdminError::Refused),
            None => match operators::ask::<Realm>(folder, &request, &[]).await {
                Ok(answer) => answer.map_err(AdminError::Refused),
                Err(source) => Err(AdminError::unanswered(folder, source)),
            },
        }
    }

    /// Closes what was opened. The server that runs goes on.
    pub async fn close(self) {
        if let Some((realm, _)) = self.here {
            realm.close().await;
        }
    }
}

impl Operated for Realm {
    type Request = Request;

    async fn perform(&self, request: Request, _: &[String]) -> Result<Vec<Json>, String> {
        match request {
            Request::Accounts => Ok(self.accounts().iter().map(|account| json!(account)).collect()),
            Request::AddAccount { name, password, paying, slots } => {
                let privileges = Privileges { paying, slots };
                let user = self.add_account(&name, &password, privileges).await?;
                Ok(vec![json!({ "user": user })])
            }
            Request::SetPassword { name, password } => {
                self.set_password(&name, &password).await.map(|()| Vec::new())
            }
            Request::Ban { name, banned } => self.ban(&name, banned).await.map(|()| Vec::new()),
            Request::DeleteAccount { name } => {
                self.delete_account(&name).await.map(|()| Vec::new())
            }
            Request::Token { name } => {
                let (user, ck2) = self.token(&name)?;
                Ok(vec![json!({ "user": user, "ck2": ck2.as_str(), "name": name })])
            }
            Request::Kick { name } => {
                let kicked = self.kick(&name, "You were disconnected by an operator.")?;
                Ok(vec![json!({ "connections": kicked })])
            }
            Request::Refresh { name } => {
                Ok(vec![json!({ "connections": self.refresh(name.as_deref())? })])
            }
            Request::Redeem { key, user, character } => {
                let redeemed = self.redeem(&Secret::new(key), user, character);
                redeemed.map(|()| Vec::new()).map_err(|refusal| refusal.to_string())
            }
            Request::Census => {
                let census = self.census();
                Ok(vec![json!({
                    "accounts": census.accounts,
                    "characters": census.characters,
                    "players": census.seated,
                    "waiting": census.waiting,
                    "playing": census.playing,
                })])
            }
        }
    }
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
        assert!(silent.starts_with("there: a server runs there and does not answer: "), "{silent}");
    }
}
