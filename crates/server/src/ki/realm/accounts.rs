//! Accounts.

use serde::Serialize;
use worldwire_ki::crypt::login::{Secret, password_hash};

use super::{Realm, Shared, State};
use crate::ki::refusal::Refusal;
use crate::operators::as_text;
use crate::store::accounts::{
    AccountEntry, BANNED, account_id, is_account_name, nonce, setting_number, unix_now,
};
use crate::store::committed::Indexed;
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, SettingRow};

/// Flags of an account besides [`BANNED`]: whether it is a paying account and, in bits 8 to 15, the
/// number of additional character slots.
const PAYING: u32 = 2;
const SLOTS: u32 = 8;

/// The settings that store the next numbers. Numbers are never reused.
const NEXT_USER: &str = "ki.next-user";
pub(super) const NEXT_CHARACTER: &str = "ki.next-character";

/// The longest name, in bytes.
const MAX_NAME: usize = 64;

/// Why a request about an account was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// Another account has this name.
    #[error("account {0:?} already exists")]
    Exists(String),
    /// No account has this name.
    #[error("account {0:?} does not exist")]
    Unknown(String),
    /// The account is banned.
    #[error("account {0:?} is banned")]
    Banned(String),
    /// The name is not allowed for an account.
    #[error("account {0:?}: a name must have 1 to {MAX_NAME} ASCII characters and no spaces")]
    InvalidName(String),
    /// The database did not store the change, for this reason.
    #[error("the database does not accept changes: {0}")]
    NotStored(String),
    /// The system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// The privileges of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// Whether it is a paying account.
    pub paying: bool,
    /// Character slots beyond those that every account has.
    pub slots: u8,
}

/// An account, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountSummary {
    /// `UserID`.
    pub user: u64,
    /// The name, spelled as its owner spells it.
    pub name: String,
    /// Whether it is banned.
    pub banned: bool,
    /// Whether it is a paying account.
    pub paying: bool,
    /// Character slots beyond those that every account has.
    pub slots: u32,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// Its characters.
    pub characters: Vec<CharacterSummary>,
}

/// A character, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CharacterSummary {
    /// `CharID`. It is text in JSON, because many programs keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub id: u64,
    /// The name, or the indices of its parts.
    pub name: String,
}

impl AccountEntry {
    pub(super) const fn is_paying(&self) -> bool {
        self.flags & PAYING != 0
    }

    pub(super) const fn purchased(&self) -> u32 {
        self.flags >> SLOTS & 0xff
    }

    /// The hash of its password, if it was sealed with this key.
    pub(super) fn password(&self, user: u64, key: &ServerKey) -> Option<Secret> {
        let plain = self.unsealed(user, key)?;
        Some(Secret::new(core::str::from_utf8(&plain).ok()?))
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
                    if let Some(user) = self.accounts.remove(*id) {
                        self.revoke(user);
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

impl Realm {
    /// All accounts, by name.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountSummary> {
        let state = self.state();
        let summary = |(user, entry): (u64, &AccountEntry)| AccountSummary {
            user,
            name: entry.name.clone(),
            banned: entry.is_banned(),
            paying: entry.is_paying(),
            slots: entry.purchased(),
            created: entry.created,
            characters: state.summaries(user),
        };
        state.accounts.sorted().into_iter().map(summary).collect()
    }

    /// Creates an account and returns its `UserID`. On an error, no account is created.
    pub async fn add_account(
        &self,
        name: &str,
        password: &str,
        privileges: Privileges,
    ) -> Result<u64, AccountError> {
        check_account_name(name)?;
        if self.state().accounts.named(name).is_some() {
            return Err(AccountError::Exists(name.to_owned()));
        }
        let hash = password_hash(password);
        let Privileges { paying, slots } = privileges;
        let flags = if paying { PAYING } else { 0 } | u32::from(slots) << SLOTS;
        let (created, nonce) = (unix_now(), nonce()?);
        let (realm, owned) = (self.clone(), name.to_owned());
        let made = self.change(move |state| {
            if state.accounts.named(&owned).is_some() {
                return Err(Refusal::InvalidName);
            }
            let entry = |user| {
                let secret = seal(&realm.0, user, &hash, nonce);
                AccountEntry { name: owned, flags, created, secret }
            };
            let (user, changes) = state.accounts.add(NEXT_USER, entry)?;
            Ok((changes, user))
        });
        made.await.map_err(|refusal| self.account_error(name, refusal))
    }

    /// Changes a password and revokes the account's CK2s. On an error, the password is unchanged.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<(), AccountError> {
        let (hash, nonce, shared) = (password_hash(password), nonce()?, self.clone());
        let user = self.edit(name, move |user, entry| {
            entry.secret = seal(&shared.0, user, &hash, nonce);
        });
        let user = user.await?;
        self.state().revoke(user);
        Ok(())
    }

    /// Bans an account and disconnects its clients, or lifts its ban. On an error, nothing has
    /// changed.
    pub async fn ban(&self, name: &str, banned: bool) -> Result<(), AccountError> {
        let user = self.edit(name, move |_, entry| entry.set_flag(BANNED, banned));
        let user = user.await?;
        if banned {
            self.state().revoke(user);
            self.kick(name, "This account is banned.")?;
        }
        Ok(())
    }

    /// Disconnects an account's clients, and deletes it and its characters. On an error, the
    /// account still exists.
    pub async fn delete_account(&self, name: &str) -> Result<(), AccountError> {
        // Clients that connect in the meantime find their account deleted.
        self.kick(name, "This account was deleted.")?;
        let owned = name.to_owned();
        let gone = self.change(move |state| {
            let user = state.accounts.named(&owned).ok_or(Refusal::UnknownCharacter)?;
            let characters = state.of_user.get(&user).into_iter().flatten();
            let mut changes: Vec<_> = characters.copied().map(Change::DeleteCharacter).collect();
            changes.push(Change::DeleteAccount(account_id(user)));
            Ok((changes, ()))
        });
        gone.await.map_err(|refusal| self.account_error(name, refusal))
    }

    /// Issues the values for the client's `-U` option: the `UserID`, and a CK2 that is valid on any
    /// machine. For web pages and launchers.
    pub fn token(&self, name: &str) -> Result<(u64, Secret), AccountError> {
        let mut fresh = [0; 64];
        getrandom::fill(&mut fresh)?;
        let user = {
            let state = self.state();
            let unknown = || AccountError::Unknown(name.to_owned());
            let user = state.accounts.named(name).ok_or_else(unknown)?;
            if state.accounts.get(user).is_some_and(AccountEntry::is_banned) {
                return Err(AccountError::Banned(name.to_owned()));
            }
            user
        };
        let ck2 = worldwire_ki::crypt::login::ck2(&fresh);
        self.issue(user, None, ck2.clone());
        Ok((user, ck2))
    }

    async fn edit(
        &self,
        name: &str,
        edit: impl FnOnce(u64, &mut AccountEntry) + Send + 'static,
    ) -> Result<u64, AccountError> {
        let owned = name.to_owned();
        let edited = self.change(move |state| {
            let user = state.accounts.named(&owned).ok_or(Refusal::UnknownCharacter)?;
            let mut entry = state.accounts.get(user).ok_or(Refusal::UnknownCharacter)?.clone();
            edit(user, &mut entry);
            Ok((vec![entry.put(user)], user))
        });
        edited.await.map_err(|refusal| self.account_error(name, refusal))
    }

    /// The error for a refused change to an account.
    fn account_error(&self, name: &str, refusal: Refusal) -> AccountError {
        match refusal {
            Refusal::InvalidName => AccountError::Exists(name.to_owned()),
            Refusal::UnknownCharacter => AccountError::Unknown(name.to_owned()),
            _ => AccountError::NotStored(self.0.state.not_stored().0),
        }
    }
}

fn seal(shared: &Shared, user: u64, hash: &Secret, nonce: [u8; 12]) -> Vec<u8> {
    shared.key.seal(&account_id(user), hash.as_str().as_bytes(), nonce)
}

/// Checks the name of a new account.
pub fn check_account_name(name: &str) -> Result<(), AccountError> {
    // In the login message, spaces delimit the name.
    match is_account_name(name, MAX_NAME) {
        true => Ok(()),
        false => Err(AccountError::InvalidName(name.to_owned())),
    }
}
