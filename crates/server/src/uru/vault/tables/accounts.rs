//! Accounts in memory, by ID and by name.

use std::collections::HashMap;

use worldwire_uru::crypt::login::{NAME_UNITS, PasswordHash, PasswordHashes, folded_name};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::Uuid;
use zeroize::Zeroizing;

use crate::store::AccountRow;
use crate::store::seal::ServerKey;

/// An account.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) flags: AccountFlags,
    pub(crate) created: u32,
    /// The digests of the password, sealed; empty if the account has no password.
    pub(crate) secret: Vec<u8>,
}

impl Account {
    pub(crate) fn of(row: AccountRow) -> (Uuid, Self) {
        let AccountRow { id, name, flags, created, secret, .. } = row;
        (Uuid(id), Self { name, flags: AccountFlags(flags), created, secret })
    }

    pub(crate) fn row(&self, id: Uuid) -> AccountRow {
        AccountRow {
            id: id.0,
            name: self.name.clone(),
            folded: found_by(&self.name),
            flags: self.flags.0,
            created: self.created,
            secret: self.secret.clone(),
        }
    }

    pub(in crate::uru::vault) fn hashes(&self, id: Uuid, key: &ServerKey) -> Option<AccountHashes> {
        let plain = key.unseal(&id.0, &self.secret).ok()?;
        let (version, digests) = plain.split_first()?;
        let hashes = |sha0: &[u8; 20], sha1: &[u8; 20]| {
            let [sha0, sha1] = [*sha0, *sha1].map(PasswordHash::from_bytes);
            PasswordHashes { sha0, sha1 }
        };
        match (*version, digests.as_chunks::<20>().0) {
            (SECRET_VERSION, [sha0, sha1]) => {
                Some(AccountHashes { cut: hashes(sha0, sha1), uncut: None })
            }
            (LONG_SECRET_VERSION, [sha0, sha1, long0, long1]) => {
                let uncut = Some(hashes(long0, long1));
                Some(AccountHashes { cut: hashes(sha0, sha1), uncut })
            }
            _ => None,
        }
    }

    pub(in crate::uru::vault) fn is_banned(&self) -> bool {
        self.flags.0 & AccountFlags::Banned.0 != 0
    }
}

/// The digests of a password.
pub(in crate::uru::vault) struct AccountHashes {
    /// The digests of the password's first 15 characters, which most clients send.
    pub(in crate::uru::vault) cut: PasswordHashes,
    /// The digests of the whole password, if it is longer. Some clients send these.
    pub(in crate::uru::vault) uncut: Option<PasswordHashes>,
}

impl AccountHashes {
    /// The plain form of a sealed secret.
    pub(in crate::uru::vault) fn to_secret(&self) -> Zeroizing<Vec<u8>> {
        let version = if self.uncut.is_some() { LONG_SECRET_VERSION } else { SECRET_VERSION };
        let mut secret = Zeroizing::new(vec![version]);
        for hashes in [Some(&self.cut), self.uncut.as_ref()].into_iter().flatten() {
            secret.extend(hashes.sha0.as_bytes());
            secret.extend(hashes.sha1.as_bytes());
        }
        secret
    }
}

/// The first byte of a sealed secret. Both digests follow.
const SECRET_VERSION: u8 = 1;
/// The first byte of a sealed secret in which four digests follow: those of the whole password last.
const LONG_SECRET_VERSION: u8 = 2;

/// All accounts.
#[derive(Default)]
pub(crate) struct Accounts {
    by_id: HashMap<Uuid, Account>,
    by_name: HashMap<String, Uuid>,
}

impl Accounts {
    pub(crate) fn get(&self, id: Uuid) -> Option<&Account> {
        self.by_id.get(&id)
    }

    pub(crate) fn named(&self, name: &str) -> Option<(Uuid, &Account)> {
        let id = *self.by_name.get(&found_by(name))?;
        Some((id, self.by_id.get(&id)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Uuid, &Account)> {
        self.by_id.iter().map(|(id, account)| (*id, account))
    }

    /// All IDs, in the order of the names.
    pub(crate) fn ids(&self) -> Vec<Uuid> {
        let mut ids: Vec<_> = self.by_id.keys().copied().collect();
        ids.sort_unstable_by_key(|id| self.by_id.get(id).map(|account| found_by(&account.name)));
        ids
    }

    /// Adds, replaces or removes an account. Returns the old one.
    pub(crate) fn set(&mut self, id: Uuid, account: Option<Account>) -> Option<Account> {
        let name = account.as_ref().map(|account| found_by(&account.name));
        let old = match account {
            Some(account) => self.by_id.insert(id, account),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = &old {
            self.by_name.remove(&found_by(&old.name));
        }
        if let Some(name) = name {
            self.by_name.insert(name, id);
        }
        old
    }
}

/// The form of a name that is used in lookups: truncated as clients do, with ASCII letters in lower
/// case.
pub(in crate::uru::vault) fn found_by(name: &str) -> String {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= NAME_UNITS
    };
    folded_name(&name.chars().take_while(fits).collect::<String>())
}
