//! A login server's accounts, in memory as they are in its database.

use std::collections::{BTreeMap, HashMap};

use zeroize::Zeroizing;

use super::committed::NotStored;
use super::seal::ServerKey;
use super::{AccountRow, Change, Changes, Ledger, SettingRow, StoreError};

/// Why a login server cannot use its database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Passwords were sealed with another key.
    #[error("server.key is not the key that encrypts the passwords in the database")]
    WrongKey,
    /// The database belongs to another kind of server.
    #[error("the database belongs to another kind of server: it has {0}")]
    Foreign(String),
    /// The system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// An account number, with the size that the protocol uses. 0 is not a valid number.
pub(crate) trait UserNumber: Copy + Ord + Into<u64> + TryFrom<u64> {}

impl UserNumber for u32 {}
impl UserNumber for u64 {}

/// An account.
#[derive(Clone, Debug)]
pub(crate) struct AccountEntry {
    /// The name, spelled as its owner spells it.
    pub(crate) name: String,
    /// [`BANNED`], and flags of each kind of server.
    pub(crate) flags: u32,
    /// The time of its creation, in Unix seconds.
    pub(crate) created: u32,
    /// The sealed data for checking its password.
    pub(crate) secret: Vec<u8>,
}

/// The flag of banned accounts.
pub(crate) const BANNED: u32 = 1;

impl AccountEntry {
    pub(crate) const fn is_banned(&self) -> bool {
        self.flags & BANNED != 0
    }

    /// Sets or clears a flag.
    pub(crate) const fn set_flag(&mut self, flag: u32, is_set: bool) {
        match is_set {
            true => self.flags |= flag,
            false => self.flags &= !flag,
        }
    }

    /// The data for checking its password, if it was sealed with this key.
    pub(crate) fn unsealed(
        &self,
        user: impl UserNumber,
        key: &ServerKey,
    ) -> Option<Zeroizing<Vec<u8>>> {
        key.unseal(&account_id(user), &self.secret).ok()
    }

    /// The change that stores this account.
    pub(crate) fn put(self, user: impl UserNumber) -> Change {
        let Self { name, flags, created, secret } = self;
        let folded = folded(&name);
        Change::PutAccount(AccountRow {
            id: account_id(user),
            name,
            folded,
            flags,
            created,
            secret,
        })
    }
}

/// All accounts, by number and name.
#[derive(Debug)]
pub(crate) struct Accounts<N> {
    entries: BTreeMap<N, AccountEntry>,
    by_name: HashMap<String, N>,
    /// The number of the next account. Numbers are never reused.
    next: u64,
}

impl<N: UserNumber> Accounts<N> {
    pub(crate) fn new() -> Self {
        Self { entries: BTreeMap::new(), by_name: HashMap::new(), next: 1 }
    }

    pub(crate) fn get(&self, user: N) -> Option<&AccountEntry> {
        self.entries.get(&user)
    }

    /// The account with this name, regardless of case.
    pub(crate) fn named(&self, name: &str) -> Option<N> {
        self.by_name.get(&folded(name)).copied()
    }

    /// All accounts, by name.
    pub(crate) fn sorted(&self) -> Vec<(N, &AccountEntry)> {
        let mut all: Vec<_> = self.entries.iter().map(|(user, entry)| (*user, entry)).collect();
        all.sort_by_cached_key(|(_, entry)| folded(&entry.name));
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the accounts' data was sealed with this key.
    pub(crate) fn fit(&self, key: &ServerKey) -> bool {
        let mut sealed = self.entries.iter().filter(|(_, entry)| !entry.secret.is_empty());
        sealed.next().is_none_or(|(user, entry)| entry.unsealed(*user, key).is_some())
    }

    /// Applies a row that was stored.
    pub(crate) fn put(&mut self, row: &AccountRow) {
        let Some(user) = user_of(row.id) else { return };
        let AccountRow { name, folded, flags, created, secret, .. } = row.clone();
        self.reserve(user);
        self.by_name.insert(folded, user);
        self.entries.insert(user, AccountEntry { name, flags, created, secret });
    }

    /// Applies the deletion of an account. Returns its number.
    pub(crate) fn remove(&mut self, id: [u8; 16]) -> Option<N> {
        let user = user_of(id)?;
        let entry = self.entries.remove(&user)?;
        self.by_name.remove(&folded(&entry.name));
        Some(user)
    }

    /// Applies the setting with the next number.
    pub(crate) fn put_next(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    fn reserve(&mut self, user: N) {
        self.put_next(user.into().saturating_add(1));
    }

    /// The number of a new account, and the changes that store the account. `setting` stores the
    /// number that comes after it.
    pub(crate) fn add(
        &self,
        setting: &str,
        entry: impl FnOnce(N) -> AccountEntry,
    ) -> Result<(N, Vec<Change>), NotStored> {
        let exhausted = |_| NotStored("all account numbers are in use".to_owned());
        let user = N::try_from(self.next).map_err(exhausted)?;
        let next = number_setting(setting, self.next.saturating_add(1));
        Ok((user, vec![entry(user).put(user), next]))
    }
}

/// Reads all rows, as the changes that would store them. A row of another kind of server is an error:
/// a setting whose name does not begin with `prefix`, or an account that has no number.
pub(crate) async fn stored<N: UserNumber>(
    ledger: &dyn Ledger,
    prefix: &str,
) -> Result<Changes, RealmError> {
    let mut changes = Changes::new();
    let mut put = |change: Change| changes.insert(change.key(), change);
    for row in ledger.settings().await? {
        if !row.name.starts_with(prefix) {
            return Err(RealmError::Foreign(format!("setting {}", row.name)));
        }
        put(Change::PutSetting(row));
    }
    for row in ledger.accounts().await? {
        if user_of::<N>(row.id).is_none() {
            return Err(RealmError::Foreign(format!("account {:?}", row.name)));
        }
        put(Change::PutAccount(row));
    }
    for row in ledger.characters().await? {
        put(Change::PutCharacter(row));
    }
    Ok(changes)
}

/// The ID of an account in the database.
pub(crate) fn account_id(user: impl UserNumber) -> [u8; 16] {
    u128::from(user.into()).to_be_bytes()
}

/// The account with this ID in the database; `None` for an account of another kind of server.
pub(crate) fn user_of<N: UserNumber>(id: [u8; 16]) -> Option<N> {
    let user = u64::try_from(u128::from_be_bytes(id)).ok().filter(|user| *user != 0)?;
    N::try_from(user).ok()
}

/// A change that stores a number in a setting.
pub(crate) fn number_setting(name: &str, number: u64) -> Change {
    let value = number.to_string().into_bytes();
    Change::PutSetting(SettingRow { name: name.to_owned(), value })
}

/// The number in a setting.
pub(crate) fn setting_number(row: &SettingRow) -> Option<u64> {
    core::str::from_utf8(&row.value).ok()?.parse().ok()
}

/// Whether an account can have this name: printable ASCII without spaces.
pub(crate) fn is_account_name(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The form of a name that is used in lookups.
pub(crate) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The current time in Unix seconds.
pub(crate) fn unix_now() -> u32 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// A nonce for sealing.
pub(crate) fn nonce() -> Result<[u8; 12], getrandom::Error> {
    let mut nonce = [0; 12];
    getrandom::fill(&mut nonce)?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> AccountEntry {
        AccountEntry { name: name.to_owned(), flags: 0, created: 7, secret: Vec::new() }
    }

    fn apply(accounts: &mut Accounts<u32>, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::PutAccount(row) => accounts.put(&row),
                Change::PutSetting(row) => accounts.put_next(setting_number(&row).unwrap()),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn numbers_are_not_reused_and_names_fold() {
        let mut accounts = Accounts::<u32>::new();
        let (first, changes) = accounts.add("next", |_| entry("Neo")).unwrap();
        apply(&mut accounts, changes);
        assert_eq!((first, accounts.named("NEO")), (1, Some(1)));
        assert_eq!(accounts.remove(account_id(first)), Some(1));
        assert_eq!((accounts.named("neo"), accounts.len()), (None, 0));
        let (second, changes) = accounts.add("next", |_| entry("Smith")).unwrap();
        apply(&mut accounts, changes);
        assert_eq!(second, 2);
        // A number that the protocol cannot carry is refused, and the accounts stay unchanged.
        accounts.put_next(u64::from(u32::MAX) + 1);
        assert!(accounts.add("next", |_| entry("Late")).is_err());
        assert_eq!(accounts.sorted().len(), 1);
    }

    #[test]
    fn ids_of_other_servers_are_no_numbers() {
        assert_eq!(user_of::<u64>([0; 16]), None);
        assert_eq!(user_of::<u64>([1; 16]), None);
        assert_eq!(user_of::<u32>(account_id(1_u64 << 32)), None);
        assert_eq!(user_of::<u64>(account_id(1_u64 << 32)), Some(1 << 32));
    }

    #[test]
    fn account_names_are_plain() {
        for (name, fits) in
            [("", false), ("a", true), ("a b", false), ("é", false), ("abcd", false)]
        {
            assert_eq!(is_account_name(name, 3), fits, "{name}");
        }
    }
}
