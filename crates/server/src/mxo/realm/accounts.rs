//! Accounts.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use super::password::{Credentials, PasswordHash};
use super::{Realm, RealmError, State, folded, unix_now};
use crate::mxo::keys::random;
use crate::store::committed::{Indexed, NotStored};
use crate::store::seal::ServerKey;
use crate::store::{AccountRow, Change, Changes, CharacterRow, Ledger, SettingRow};

/// Flags of an account.
const BANNED: u32 = 1;
const INACTIVE: u32 = 2;

/// Settings with the next numbers. Numbers are never reused.
const NEXT_USER: &str = "mxo.next-user";
pub(super) const NEXT_CHARACTER: &str = "mxo.next-character";

/// The longest name, in bytes: that of certificates.
const MAX_NAME: usize = 32;
/// The longest password, in bytes: that of the client's answer, generously.
const MAX_PASSWORD: usize = 256;

/// Why a request about an account or a character was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// Another account has the name.
    #[error("account {0:?} already exists")]
    Exists(String),
    /// No account has the name.
    #[error("account {0:?} does not exist")]
    Unknown(String),
    /// No character has the name.
    #[error("character {0:?} does not exist")]
    UnknownCharacter(String),
    /// The character is in the world.
    #[error("character {0:?} is in use; disconnect its account first")]
    InUse(String),
    /// An account cannot have the name.
    #[error("account {0:?}: a name must have 1 to {MAX_NAME} ASCII characters and no spaces")]
    InvalidName(String),
    /// A client cannot send the password.
    #[error("a password must have 1 to {MAX_PASSWORD} bytes, and only characters of Windows-1252")]
    InvalidPassword,
    /// The account was replaced meanwhile, or its credentials in the database are damaged.
    #[error("the credentials of account {0:?} cannot be read")]
    Unreadable(String),
    /// The database did not store the change, for this reason.
    #[error("the database does not accept changes: {0}")]
    NotStored(String),
    /// The system has no random numbers, or no memory for a password hash.
    #[error("cannot get {0}")]
    System(&'static str),
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
    /// The name, in its owner's spelling.
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

fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// An account in memory.
#[derive(Clone, Debug)]
pub(super) struct AccountEntry {
    pub(super) name: String,
    flags: u32,
    pub(super) created: u32,
    /// The credentials, sealed.
    secret: Vec<u8>,
}

impl AccountEntry {
    pub(super) fn is_banned(&self) -> bool {
        self.flags & BANNED != 0
    }

    pub(super) fn is_inactive(&self) -> bool {
        self.flags & INACTIVE != 0
    }

    /// The credentials, if the server's key opens them.
    pub(super) fn credentials(&self, user: u32, key: &ServerKey) -> Option<Credentials> {
        let plain = key.unseal(&account_id(user), &self.secret).ok()?;
        Credentials::from_bytes(&plain)
    }

    fn row(&self, user: u32) -> AccountRow {
        AccountRow {
            id: account_id(user),
            name: self.name.clone(),
            folded: folded(&self.name),
            flags: self.flags,
            created: self.created,
            secret: self.secret.clone(),
        }
    }
}

/// The ID of an account in the database.
pub(super) fn account_id(user: u32) -> [u8; 16] {
    u128::from(user).to_be_bytes()
}

/// The account with an ID in the database; `None` for an account of another kind of server.
pub(super) fn user_of(id: [u8; 16]) -> Option<u32> {
    u32::try_from(u128::from_be_bytes(id)).ok().filter(|user| *user != 0)
}

impl State {
    pub(super) async fn load(&mut self, ledger: &dyn Ledger) -> Result<(), RealmError> {
        for row in ledger.settings().await? {
            if !row.name.starts_with("mxo.") {
                return Err(RealmError::Foreign(format!("setting {}", row.name)));
            }
            self.put_setting(&row);
        }
        for row in ledger.accounts().await? {
            if user_of(row.id).is_none() {
                return Err(RealmError::Foreign(format!("account {:?}", row.name)));
            }
            self.put_account(row);
        }
        for row in ledger.characters().await? {
            self.put_character(row);
        }
        Ok(())
    }

    /// Whether credentials were sealed with this key.
    pub(super) fn fits(&self, key: &ServerKey) -> bool {
        let mut sealed = self.accounts.iter();
        sealed
            .next()
            .is_none_or(|(user, entry)| key.unseal(&account_id(*user), &entry.secret).is_ok())
    }

    fn put_setting(&mut self, row: &SettingRow) {
        let number: Option<u32> =
            core::str::from_utf8(&row.value).ok().and_then(|text| text.parse().ok());
        match (row.name.as_str(), number) {
            (NEXT_USER, Some(number)) => self.next_user = self.next_user.max(number),
            (NEXT_CHARACTER, Some(number)) => {
                self.next_character = self.next_character.max(number);
            }
            _ => {}
        }
    }

    fn put_account(&mut self, row: AccountRow) {
        let Some(user) = user_of(row.id) else { return };
        let AccountRow { name, folded, flags, created, secret, .. } = row;
        self.next_user = self.next_user.max(user.saturating_add(1));
        self.by_name.insert(folded, user);
        self.accounts.insert(user, AccountEntry { name, flags, created, secret });
    }

    pub(super) fn owner(row: &CharacterRow) -> Option<u32> {
        user_of(row.account)
    }

    pub(super) fn user_named(&self, name: &str) -> Option<u32> {
        self.by_name.get(&folded(name)).copied()
    }
}

impl Indexed for State {
    fn apply(&mut self, changes: &Changes) {
        for change in changes.values() {
            match change {
                Change::PutSetting(row) => self.put_setting(row),
                Change::PutAccount(row) => self.put_account(row.clone()),
                Change::DeleteAccount(id) => {
                    let user = user_of(*id);
                    if let Some(entry) = user.and_then(|user| self.accounts.remove(&user)) {
                        self.by_name.remove(&folded(&entry.name));
                    }
                }
                Change::PutCharacter(row) => self.put_character(row.clone()),
                Change::DeleteCharacter(id) => self.remove_character(*id),
                // The other tables belong to vaults.
                _ => {}
            }
        }
    }
}

/// A change that stores a number in a setting.
pub(super) fn number_setting(name: &str, number: u32) -> Change {
    let value = number.to_string().into_bytes();
    Change::PutSetting(SettingRow { name: name.to_owned(), value })
}

impl Realm {
    /// All accounts, by name.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountSummary> {
        let state = self.state();
        let summary = |(user, entry): (&u32, &AccountEntry)| AccountSummary {
            user: *user,
            name: entry.name.clone(),
            banned: entry.is_banned(),
            inactive: entry.is_inactive(),
            created: entry.created,
            characters: state.summaries(*user),
        };
        let mut all: Vec<_> = state.accounts.iter().map(summary).collect();
        drop(state);
        all.sort_by_cached_key(|account| folded(&account.name));
        all
    }

    /// Creates an account, and returns its number. On an error, there is no new account.
    pub async fn add_account(
        &self,
        name: &str,
        password: &str,
        inactive: bool,
    ) -> Result<u32, AccountError> {
        check_account_name(name)?;
        if self.state().user_named(name).is_some() {
            return Err(AccountError::Exists(name.to_owned()));
        }
        let hash = self.hash(password).await?;
        let random = random().map_err(|_| AccountError::System("random numbers"))?;
        let key = self.0.hasher.generate(random).await;
        let key = Arc::new(key.ok_or(AccountError::System("an RSA key"))?);
        let secret = Credentials { hash, key }.to_bytes();
        let (created, nonce) = (unix_now(), nonce()?);
        let (realm, owned) = (self.clone(), name.to_owned());
        let flags = if inactive { INACTIVE } else { 0 };
        self.0
            .state
            .change(move |state| {
                if state.user_named(&owned).is_some() {
                    return Err(AccountError::Exists(owned));
                }
                let user = state.next_user;
                let secret = realm.0.key.seal(&account_id(user), &secret, nonce);
                let row = AccountEntry { name: owned, flags, created, secret }.row(user);
                let next = number_setting(NEXT_USER, user.saturating_add(1));
                Ok((vec![Change::PutAccount(row), next], user))
            })
            .await
    }

    /// Changes a password. On an error, the password is unchanged.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<(), AccountError> {
        let unknown = AccountError::Unknown(name.to_owned());
        let user = self.state().user_named(name).ok_or(unknown)?;
        let hash = self.hash(password).await?;
        let (nonce, realm, owned) = (nonce()?, self.clone(), name.to_owned());
        self.edit(name, move |found, entry| {
            // The name may belong to another account by now.
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
        // Clients that connect meanwhile find their account deleted.
        self.kick(name)?;
        let owned = name.to_owned();
        let gone = self.0.state.change(move |state| {
            let user = state.user_named(&owned).ok_or(AccountError::Unknown(owned))?;
            let characters = state.of_user.get(&user).into_iter().flatten();
            let mut changes: Vec<_> = characters.copied().map(Change::DeleteCharacter).collect();
            changes.push(Change::DeleteAccount(account_id(user)));
            Ok::<_, AccountError>((changes, user))
        });
        let user = gone.await?;
        self.close_sessions(user);
        Ok(())
    }

    /// Disconnects an account's clients. Returns how many there were.
    pub fn kick(&self, name: &str) -> Result<usize, AccountError> {
        let unknown = || AccountError::Unknown(name.to_owned());
        let user = self.state().user_named(name).ok_or_else(unknown)?;
        Ok(self.close_sessions(user))
    }

    async fn hash(&self, password: &str) -> Result<PasswordHash, AccountError> {
        let is_plain = worldwire_mxo::types::text::encode(password).is_some();
        if !(1..=MAX_PASSWORD).contains(&password.len()) || !is_plain || password.contains('\0') {
            return Err(AccountError::InvalidPassword);
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|_| AccountError::System("random numbers"))?;
        let hash = self.0.hasher.hash(password, salt).await;
        hash.ok_or(AccountError::System("memory for the password"))
    }

    async fn set_flag(&self, name: &str, flag: u32, is_set: bool) -> Result<(), AccountError> {
        let user = self.edit(name, move |_, entry| {
            match is_set {
                true => entry.flags |= flag,
                false => entry.flags &= !flag,
            }
            Ok(())
        });
        let user = user.await?;
        if is_set {
            self.close_sessions(user);
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
                let found = state.user_named(&owned);
                let found = found.and_then(|user| Some((user, state.accounts.get(&user)?)));
                let (user, entry) = found.ok_or(AccountError::Unknown(owned))?;
                let mut entry = entry.clone();
                edit(user, &mut entry)?;
                Ok((vec![Change::PutAccount(entry.row(user))], user))
            })
            .await
    }
}

fn nonce() -> Result<[u8; 12], AccountError> {
    let mut nonce = [0; 12];
    getrandom::fill(&mut nonce).map_err(|_| AccountError::System("random numbers"))?;
    Ok(nonce)
}

/// Checks the name of a new account.
pub fn check_account_name(name: &str) -> Result<(), AccountError> {
    let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(AccountError::InvalidName(name.to_owned()))
}
