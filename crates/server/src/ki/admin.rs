//! Administering a login server, whether it is running or not.
//!
//! Requests about connections need a running server; see [`crate::admin`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use worldwire_ki::crypt::login::Secret;
use worldwire_net::Clock;

pub use super::realm::check_account_name;
use super::realm::{AccountError, Privileges, Realm, RealmError};
use super::{KiConfig, Refusal};
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
        /// Whether it is a paying account.
        paying: bool,
        /// Character slots beyond those that every account has.
        slots: u8,
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
    /// Deletes an account and its characters.
    DeleteAccount {
        /// The account.
        name: String,
    },
    /// Issues a CK2 that is valid on any machine, for a web page that starts the game.
    Token {
        /// The account.
        name: String,
    },
    /// Closes an account's connections.
    Kick {
        /// The account.
        name: String,
    },
    /// Marks sessions as stale.
    Refresh {
        /// The account; `None` for all connections.
        name: Option<String>,
    },
    /// Marks a client's sessions as stale because the client has logged in to the server that sends
    /// this request. Unknown accounts have no sessions.
    DropSessions {
        /// `UserID`.
        user: u64,
        /// The account's name, which identifies it if the servers number their accounts separately.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
    },
    /// Redeems the key with which a client enters a zone, on behalf of another program's zone
    /// server.
    Redeem {
        /// `LoginKey`.
        key: String,
        /// `UserID`.
        user: u64,
        /// `CharID`.
        character: u64,
    },
    /// Counts accounts, characters and players.
    Census,
}

impl fmt::Debug for Request {
    /// Leaves out the fields, because they may include a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_request(self, f)
    }
}

/// An operator's access to a login server.
pub type Admin = crate::admin::Admin<Realm>;
/// Why a request to a login server failed.
pub type AdminError = crate::admin::AdminError<RealmError>;

impl Administered for Realm {
    const NAME: &'static str = "login server";
    const COMMAND: &'static str = "worldwire serve ki";

    type LoadError = RealmError;

    fn needs_running(request: &Request) -> bool {
        matches!(
            request,
            Request::Token { .. }
                | Request::Kick { .. }
                | Request::Refresh { .. }
                | Request::DropSessions { .. }
                | Request::Redeem { .. }
        )
    }

    fn check_folder(folder: &Path) -> Result<(), AdminError> {
        if folder.join(KiConfig::FILE).exists() {
            return Ok(());
        }
        Err(Self::missing(folder))
    }

    async fn open_stopped(folder: &Path, lock: &mut FolderLock) -> Result<Self, AdminError> {
        let config: KiConfig = stopped_config(folder)?;
        let (store, key) = stopped_store(folder, &config, lock, Self::NAME).await?;
        let opened = Self::open(Arc::clone(&store) as _, key, config, Clock::start()).await;
        or_close(opened, &*store).await.map_err(AdminError::Load)
    }

    async fn close_stopped(&self) {
        self.close().await;
    }
}

/// Why a login server refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A request about an account.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A zone key that cannot be redeemed.
    #[error("{0}")]
    Redeem(Refusal),
    /// Another process may have taken over the database.
    #[error("the database does not confirm that this process is active: {0}")]
    Unconfirmed(String),
}

impl Operated for Realm {
    type Request = Request;
    type Error = RequestError;

    fn is_failure(error: &RequestError) -> bool {
        matches!(
            error,
            RequestError::Account(AccountError::NotStored(_) | AccountError::Random(_))
                | RequestError::Unconfirmed(_)
        )
    }

    async fn perform(&self, request: Request, _: &[String]) -> Result<Vec<Json>, RequestError> {
        self.confirm_active().await.map_err(RequestError::Unconfirmed)?;
        match request {
            Request::Accounts => Ok(self.accounts().iter().map(|account| json!(account)).collect()),
            Request::AddAccount { name, password, paying, slots } => {
                let privileges = Privileges { paying, slots };
                let user = self.add_account(&name, &password, privileges).await?;
                tracing::info!(name, user, "operator added an account");
                Ok(vec![json!({ "user": user })])
            }
            Request::SetPassword { name, password } => {
                self.set_password(&name, &password).await?;
                tracing::info!(name, "operator changed the password of an account");
                Ok(Vec::new())
            }
            Request::Ban { name, banned } => {
                self.ban(&name, banned).await?;
                match banned {
                    true => tracing::info!(name, "operator banned an account"),
                    false => tracing::info!(name, "operator lifted the ban on an account"),
                }
                Ok(Vec::new())
            }
            Request::DeleteAccount { name } => {
                self.delete_account(&name).await?;
                tracing::info!(name, "operator deleted an account");
                Ok(Vec::new())
            }
            Request::Token { name } => {
                let (user, ck2) = self.token(&name)?;
                Ok(vec![json!({ "user": user, "ck2": ck2.as_str(), "name": name })])
            }
            Request::Kick { name } => {
                let kicked = self.kick(&name, "You were disconnected by an operator.")?;
                tracing::info!(name, connections = kicked, "operator kicked a player");
                Ok(vec![json!({ "connections": kicked })])
            }
            Request::Refresh { name } => {
                Ok(vec![json!({ "connections": self.refresh(name.as_deref())? })])
            }
            Request::DropSessions { user, account } => {
                let dropped = self.drop_sessions(user, account.as_deref());
                Ok(vec![json!({ "connections": dropped })])
            }
            Request::Redeem { key, user, character } => {
                self.redeem(&Secret::new(key), user, character).map_err(RequestError::Redeem)?;
                Ok(Vec::new())
            }
            Request::Census => Ok(vec![json!(self.census())]),
        }
    }
}
