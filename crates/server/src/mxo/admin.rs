//! Administration of a server with logins, whether or not it is running; see [`crate::admin`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tracing::info;
use worldwire_net::Clock;

use super::MxoConfig;
pub use super::realm::{AccountError, check_account_name};
use super::realm::{Realm, RealmError};
use crate::admin::{Administered, stopped_config, stopped_store};
use crate::config::ServerConfig as _;
use crate::operators::{Operated, debug_request};
use crate::start::or_close;
use crate::store::lock::FolderLock;

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
        /// Whether it must be activated before it can log in.
        inactive: bool,
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
    /// Deactivates an account or activates it again.
    Deactivate {
        /// The account.
        name: String,
        /// Whether to deactivate it.
        inactive: bool,
    },
    /// Deletes an account and its characters.
    DeleteAccount {
        /// The account.
        name: String,
    },
    /// Deletes a character.
    DeleteCharacter {
        /// The character's name in the game.
        handle: String,
    },
    /// Closes an account's connections.
    Kick {
        /// The account.
        name: String,
    },
    /// Changes the weather.
    SetSky {
        /// Names of effects, separated by commas.
        sky: String,
    },
    /// Counts accounts, characters and sessions.
    Census,
}

impl fmt::Debug for Request {
    /// Leaves out the fields, because they may include a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_request(self, f)
    }
}

/// An operator's access to a server.
pub type Admin = crate::admin::Admin<Realm>;
/// Why a request to a server failed.
pub type AdminError = crate::admin::AdminError<RealmError>;

impl Administered for Realm {
    const NAME: &'static str = "server for The Matrix Online";
    const COMMAND: &'static str = "worldwire serve mxo";

    type LoadError = RealmError;

    fn needs_running(request: &Request) -> bool {
        matches!(request, Request::Kick { .. } | Request::SetSky { .. })
    }

    fn check_folder(folder: &Path) -> Result<(), AdminError> {
        if folder.join(MxoConfig::FILE).exists() {
            return Ok(());
        }
        Err(Self::missing(folder))
    }

    async fn open_stopped(folder: &Path, lock: &mut FolderLock) -> Result<Self, AdminError> {
        let config: MxoConfig = stopped_config(folder)?;
        let (store, key) = stopped_store(folder, &config, lock, Self::NAME).await?;
        let opened = Self::open(Arc::clone(&store) as _, key, config, Clock::start()).await;
        or_close(opened, &*store).await.map_err(AdminError::Load)
    }

    async fn close_stopped(&self) {
        self.close().await;
    }
}

impl Operated for Realm {
    type Request = Request;
    type Error = AccountError;

    fn is_failure(error: &AccountError) -> bool {
        matches!(error, AccountError::NotStored(_) | AccountError::System(_))
    }

    async fn perform(&self, request: Request, _: &[String]) -> Result<Vec<Json>, AccountError> {
        match request {
            Request::Accounts => {
                return Ok(self.accounts().iter().map(|account| json!(account)).collect());
            }
            Request::AddAccount { name, password, inactive } => {
                let user = self.add_account(&name, &password, inactive).await?;
                info!(name, user, "operator added an account");
                return Ok(vec![json!({ "user": user })]);
            }
            Request::Kick { name } => {
                let kicked = self.kick(&name)?;
                info!(name, connections = kicked, "operator kicked a player");
                return Ok(vec![json!({ "connections": kicked })]);
            }
            Request::SetSky { sky } => self.set_sky(&sky)?,
            Request::Census => return Ok(vec![json!(self.census())]),
            Request::SetPassword { name, password } => {
                self.set_password(&name, &password).await?;
                info!(name, "operator changed the password of an account");
            }
            Request::Ban { name, banned } => {
                self.ban(&name, banned).await?;
                match banned {
                    true => info!(name, "operator banned an account"),
                    false => info!(name, "operator lifted the ban on an account"),
                }
            }
            Request::Deactivate { name, inactive } => {
                self.deactivate(&name, inactive).await?;
                match inactive {
                    true => info!(name, "operator deactivated an account"),
                    false => info!(name, "operator activated an account"),
                }
            }
            Request::DeleteAccount { name } => {
                self.delete_account(&name).await?;
                info!(name, "operator deleted an account");
            }
            Request::DeleteCharacter { handle } => {
                self.delete_character(&handle).await?;
                info!(handle, "operator deleted a character");
            }
        }
        Ok(Vec::new())
    }
}
