//! Accounts.

use std::sync::Arc;

use serde::Serialize;
use zeroize::Zeroizing;

use super::password::{Credentials, PasswordHash};
use super::sessions::CloseCause;
use super::{Realm, State};
use crate::mxo::config::{MAX_TEXT, is_server_text};
use crate::mxo::keys::random;
use crate::operators::as_text;
use crate::store::accounts::{
    AccountEntry, BANNED, account_id, is_account_name, nonce, setting_number, unix_now,
};
use crate::store::committed::{Indexed, NotStored};
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, SettingRow};

/// The flag of an account that was never activated, or was deactivated.
const INACTIVE: u32 = 2;

/// The settings that store the next numbers. Numbers are never reused.
const NEXT_USER: &str = "mxo.next-user";
pub(super) const NEXT_CHARACTER: &str = "mxo.next-character";

/// The longest name, in bytes; certificates have no room for more.
const MAX_NAME: usize = 32;
/// The longest password, in bytes; more than clients can send.
const MAX_PASSWORD: usize = 256;

/// Why a request about an account or a character was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// Another account has this name.
    #[error("account {0:?} already exists")]
    Exists(String),
    /// No account has this name.
    #[error("account {0:?} does not exist")]
    Unknown(String),
    /// No character has this name.
    #[error("character {0:?} does not exist")]
    UnknownCharacter(String),
    /// The character is in the world.
    #[error("character {0:?} is in use; disconnect its account first")]
    InUse(String),
    /// The name is not allowed for an account.
    #[error("account {0:?}: a name must have 1 to {MAX_NAME} ASCII characters and no spaces")]
    InvalidName(String),
    /// Clients cannot show this weather.
    #[error(
        "the weather must have 1 to {MAX_TEXT} characters of Windows-1252, and no control characters"
    )]
    InvalidSky,
    /// Clients cannot send this password.
    #[error("a password must have 1 to {MAX_PASSWORD} bytes, and only characters of Windows-1252")]
    InvalidPassword,
    /// The account was replaced in the meantime, or its credentials in the database are damaged.
    #[error("the credentials of account {0:?} cannot be read")]
    Unreadable(String),
    /// The database did not store the change, for this reason.
    #[error("the database does not accept changes: {0}")]
    NotStored(String),
    /// The system cannot supply random numbers, or lacks memory for a password hash.
    #[error("cannot get {0}")]
    System(&'static str),
}

impl From<getrandom::Error> for AccountError {
    fn from(_: getrandom::Error) -> Self {
        Self::System("random numbers")
    }
}

impl From<NotStored> for AccountError {
    fn from(NotStored(reason): NotStored) -> Self {
        Self::NotStored(reason)
    }
}

/// An account, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountSummary {
    /// Its number.
    pub user: u32,
    /// The name, spelled as its owner spells it.
    pub name: String,
    /// Whether it is banned.
    pub banned: bool,
    /// Whether it was never activated, or was deactivated.
    pub inactive: bool,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// Its characters.
    pub characters: Vec<CharacterSummary>,
}

/// A character, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CharacterSummary {
    /// The ID. It is text in JSON, because many programs keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub id: u64,
    /// The name in the game.
    pub name: String,
    /// Whether a client has loaded it.
    pub loaded: bool,
}

impl AccountEntry {
    pub(super) const fn is_inactive(&self) -> bool {
        self.flags & INACTIVE != 0
    }

    /// The credentials, if the server's key decrypts them.
    pub(super) fn credentials(&self, user: u32, key: &ServerKey) -> Option<Credentials> {
        Credentials::from_bytes(&self.unsealed(user, key)?)
    }
}

impl State {
    fn put_setting(&mut self, row: &SettingRow) {
        match (row.name.as_str(), setting_number(row)) {
            (NEXT_USER, Some(number)) => self.accounts.put_next(number),
            (NEXT_CHARACTER, Some(number)) => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                self.next_character = self.next_character.max(number);
            }
            _ => {}
        }
    }
}

impl Indexed for State {
    fn apply(&mut self, changes: &Changes) {
        for change in changes.values() {
            match change {
                Change::PutSetting(row) => self.put_setting(row),
                Change::PutAccount(row) => self.accounts.put(row),
                Change::DeleteAccount(id) => {
                    self.accounts.remove(*id);
                }
                Change::PutCharacter(row) => self.put_character(row.clone()),
                Change::DeleteCharacter(id) => self.remove_character(*id),
                // The other tables belong to vaults.
                _ => {}
            }
        }
    }
}

impl Realm {
    /// All accounts, by name.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountSummary> {
        let state = self.state();
        let summary = |(user, entry): (u32, &AccountEntry)| AccountSummary {
            user,
            name: entry.name.clone(),
            banned: entry.is_banned(),
            inactive: entry.is_inactive(),
            created: entry.created,
            characters: state.summaries(user),
        };
        state.accounts.sorted().into_iter().map(summary).collect()
    }

    /// Creates an account and returns its number. On an error, no account is created.
    pub async fn add_account(
        &self,
        name: &str,
        password: &str,
        inactive: bool,
    ) -> Result<u32, AccountError> {
        check_account_name(name)?;
        if self.state().accounts.named(name).is_some() {
            return Err(AccountError::Exists(name.to_owned()));
        }
        let hash = self.hash(password).await?;
        let key = self.0.hasher.generate(random()?).await;
        let key = Arc::new(key.ok_or(AccountError::System("an RSA key"))?);
        let secret = Credentials { hash, key }.to_bytes();
        let (created, nonce) = (unix_now(), nonce()?);
        let (realm, owned) = (self.clone(), name.to_owned());
        let flags = if inactive { INACTIVE } else { 0 };
        self.0
            .state
            .change(move |state| {
                if state.accounts.named(&owned).is_some() {
                    return Err(AccountError::Exists(owned));
                }
                let entry = |user| {
                    let secret = realm.0.key.seal(&account_id(user), &secret, nonce);
                    AccountEntry { name: owned, flags, created, secret }
                };
                let (user, changes) = state.accounts.add(NEXT_USER, entry)?;
                Ok((changes, user))
            })
            .await
    }

    /// Changes a password. On an error, the password is unchanged.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<(), AccountError> {
        let unknown = AccountError::Unknown(name.to_owned());
        let user = self.state().accounts.named(name).ok_or(unknown)?;
        let hash = self.hash(password).await?;
        let (nonce, realm, owned) = (nonce()?, self.clone(), name.to_owned());
        self.edit(name, move |found, entry| {
            // By now, the name may belong to another account.
            let Some(old) = entry.credentials(user, &realm.0.key).filter(|_| found == user) else {
                return Err(AccountError::Unreadable(owned));
            };
            let secret: Zeroizing<Vec<u8>> = Credentials { hash, ..old }.to_bytes();
            entry.secret = realm.0.key.seal(&account_id(user), &secret, nonce);
            Ok(())
        })
        .await
        .map(drop)
    }

    /// Bans an account and disconnects its clients, or lifts its ban. On an error, nothing has
    /// changed.
    pub async fn ban(&self, name: &str, banned: bool) -> Result<(), AccountError> {
        self.set_flag(name, BANNED, banned).await
    }

    /// Deactivates an account and disconnects its clients, or activates it. On an error, nothing has
    /// changed.
    pub async fn deactivate(&self, name: &str, inactive: bool) -> Result<(), AccountError> {
        self.set_flag(name, INACTIVE, inactive).await
    }

    /// Disconnects an account's clients, and deletes it and its characters. On an error, the
    /// account still exists.
    pub async fn delete_account(&self, name: &str) -> Result<(), AccountError> {
        // Clients that connect in the meantime find their account deleted.
        self.disconnect(name, CloseCause::Deleted)?;
        let owned = name.to_owned();
        let gone = self.0.state.change(move |state| {
            let user = state.accounts.named(&owned).ok_or(AccountError::Unknown(owned))?;
            let characters = state.of_user.get(&user).into_iter().flatten();
            let mut changes: Vec<_> = characters.copied().map(Change::DeleteCharacter).collect();
            changes.push(Change::DeleteAccount(account_id(user)));
            Ok::<_, AccountError>((changes, user))
        });
        let user = gone.await?;
        self.close_sessions(user, CloseCause::Deleted);
        Ok(())
    }

    /// Disconnects an account's clients. Returns their number.
    pub fn kick(&self, name: &str) -> Result<usize, AccountError> {
        self.disconnect(name, CloseCause::Kicked)
    }

    /// Changes the weather for everyone in the world, until the server stops.
    pub fn set_sky(&self, sky: &str) -> Result<(), AccountError> {
        if !is_server_text(sky) || sky.is_empty() {
            return Err(AccountError::InvalidSky);
        }
        self.0.sky.send_replace(sky.to_owned());
        Ok(())
    }

    fn disconnect(&self, name: &str, cause: CloseCause) -> Result<usize, AccountError> {
        let unknown = || AccountError::Unknown(name.to_owned());
        let user = self.state().accounts.named(name).ok_or_else(unknown)?;
        Ok(self.close_sessions(user, cause))
    }

    async fn hash(&self, password: &str) -> Result<PasswordHash, AccountError> {
        let is_plain = worldwire_mxo::types::text::encode(password).is_some();
        if !(1..=MAX_PASSWORD).contains(&password.len()) || !is_plain || password.contains('\0') {
            return Err(AccountError::InvalidPassword);
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        let hash = self.0.hasher.hash(password, salt).await;
        hash.ok_or(AccountError::System("memory for the password"))
    }

    async fn set_flag(&self, name: &str, flag: u32, is_set: bool) -> Result<(), AccountError> {
        let user = self.edit(name, move |_, entry| {
            entry.set_flag(flag, is_set);
            Ok(())
        });
        let user = user.await?;
        if is_set {
            let is_ban = flag == BANNED;
            let cause = if is_ban { CloseCause::Banned } else { CloseCause::Deactivated };
            self.close_sessions(user, cause);
        }
        Ok(())
    }

    async fn edit(
        &self,
        name: &str,
        edit: impl FnOnce(u32, &mut AccountEntry) -> Result<(), AccountError> + Send + 'static,
    ) -> Result<u32, AccountError> {
        let owned = name.to_owned();
        self.0
            .state
            .change(move |state| {
                let found = state.accounts.named(&owned);
                let found = found.and_then(|user| Some((user, state.accounts.get(user)?)));
                let (user, entry) = found.ok_or(AccountError::Unknown(owned))?;
                let mut entry = entry.clone();
                edit(user, &mut entry)?;
                Ok((vec![entry.put(user)], user))
            })
            .await
    }
}

/// Checks the name of a new account.
pub fn check_account_name(name: &str) -> Result<(), AccountError> {
    match is_account_name(name, MAX_NAME) {
        true => Ok(()),
        false => Err(AccountError::InvalidName(name.to_owned())),
    }
}
