//! Requests about accounts: logging in, passwords and bans.
//!
//! Both digests that clients use are stored, sealed with the server's key; see
//! [`crypt::login`](worldwire_uru::crypt::login) for their definitions and the reason why neither
//! can be salted. Names are compared ignoring case, and truncated as clients truncate them.

use worldwire_uru::crypt::login::{
    LoginForm, PASSWORD_UNITS, PasswordHash, PasswordHashes, hashes_agree, is_email_name, verify,
};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::session::{ConnectionId, Login, Notice, Outcome, Session, is_staff};
use super::steps::VaultState;
use super::tables::accounts::{Account, AccountHashes};
use super::tables::players::PlayerSummary;
use crate::store::SettingRow;

/// A successful login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The account.
    pub account: Uuid,
    /// Its rights.
    pub flags: AccountFlags,
    /// Its players, by number: never more than five.
    pub players: Vec<PlayerSummary>,
    /// How the client proved its password.
    pub form: LoginForm,
}

/// An account, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSummary {
    /// Its permanent ID.
    pub id: Uuid,
    /// The name, spelled as its owner spells it.
    pub name: String,
    /// Its rights.
    pub flags: AccountFlags,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// Whether it has a password. Imported accounts may have none.
    pub has_password: bool,
    /// Its players, by number.
    pub players: Vec<PlayerSummary>,
}

/// The outcome of setting a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordSet {
    /// The account.
    pub account: Uuid,
    /// Whether all clients compute the same digests. If not, because the name or the password ends
    /// in a character outside ASCII, H'uru clients may be refused.
    pub all_clients: bool,
}

/// The setting by which to recognise the key that seals secrets.
const KEY_CHECK: &str = "uru.server-key";

impl VaultState {
    /// `AcctLoginRequest`. The reply to an unknown name is the same as to a wrong password.
    pub(crate) fn log_in(&mut self, connection: ConnectionId, login: &Login) -> Outcome<LoggedIn> {
        self.session(connection)?;
        let most = self.config().failed_logins;
        if self.failures().are_too_many(login, self.now(), most) {
            return Err(NetError::TooManyFailedLogins.into());
        }
        let found = self.accounts().named(&login.name);
        let hashes = found.and_then(|(id, account)| account.hashes(id, self.key()));
        // Checking an unknown account takes as long as checking an existing one.
        let none = || {
            let [sha0, sha1] = [[0; 20]; 2].map(PasswordHash::from_bytes);
            PasswordHashes { sha0, sha1 }
        };
        let (cut, uncut) = hashes.map_or((None, None), |hashes| (Some(hashes.cut), hashes.uncut));
        let name = found.map_or(login.name.as_str(), |(_, account)| &account.name);
        let challenges = (login.client_challenge, login.server_challenge);
        let verified = |hashes: Option<PasswordHashes>| {
            let fits = hashes.is_some();
            let hashes = hashes.unwrap_or_else(none);
            let form = verify(name, &hashes, challenges.0, challenges.1, &login.proof);
            form.filter(|_| fits)
        };
        let [cut, uncut] = [cut, uncut].map(verified);
        let (Some((id, account)), Some(form)) = (found, cut.or(uncut)) else {
            let now = self.now();
            self.failures_mut().add(login, now);
            return Err(NetError::AuthenticationFailed.into());
        };
        if account.is_banned() {
            return Err(NetError::AccountBanned.into());
        }
        if self.config().restricted && !is_staff(account.flags) {
            return Err(NetError::LoginDenied.into());
        }
        let flags = account.flags;
        self.failures_mut().remember(login);
        self.leave_player(connection)?;
        let session = Session { account: id, flags, ..Session::default() };
        self.put_session(connection, Some(session));
        Ok(LoggedIn { account: id, flags, players: self.players().of(id), form })
    }

    /// `AcctChangePasswordRequest`. Clients send only P0, which is useless for names other than
    /// e-mail addresses.
    pub(crate) fn change_password(
        &mut self,
        connection: ConnectionId,
        name: &str,
        sha0: [u8; 20],
    ) -> Outcome<()> {
        let own = self.logged_in(connection)?.account;
        let (id, account) = self.accounts().named(name).ok_or(NetError::AccountNotFound)?;
        if id != own {
            return Err(NetError::ServiceForbidden.into());
        }
        if !is_email_name(&account.name) {
            return Err(NetError::InvalidParameter.into());
        }
        // A random digest, which matches no password.
        let sha1 = self.random_bytes();
        let [sha0, sha1] = [sha0, sha1].map(PasswordHash::from_bytes);
        self.set_hashes(id, PasswordHashes { sha0, sha1 }, None);
        Ok(())
    }

    /// Whether passwords are sealed with the server's key. This is checked with a setting that is
    /// sealed, too. The setting is created if it is missing and no password contradicts it.
    pub(crate) fn check_key(&mut self, settings: &[SettingRow]) -> bool {
        let check = settings.iter().find(|row| row.name == KEY_CHECK);
        if let Some(row) = check
            && self.key().unseal(KEY_CHECK.as_bytes(), &row.value).is_ok()
        {
            return true;
        }
        let secrets = |(_, account): &(_, &Account)| !account.secret.is_empty();
        let is_used = self.accounts().iter().any(|entry| secrets(&entry));
        let opens = |(id, account): (Uuid, &Account)| account.hashes(id, self.key()).is_some();
        let fits = check.is_none() && self.accounts().iter().filter(secrets).any(opens);
        if is_used && !fits {
            return false;
        }
        let nonce = self.random_bytes();
        let value = self.key().seal(KEY_CHECK.as_bytes(), &[], nonce);
        self.put_setting(KEY_CHECK, value);
        true
    }

    /// Creates an account.
    pub(crate) fn add_account(
        &mut self,
        name: &str,
        password: &str,
        flags: AccountFlags,
    ) -> Outcome<PasswordSet> {
        if !is_account_name(name) {
            return Err(NetError::InvalidParameter.into());
        }
        if self.accounts().named(name).is_some() {
            return Err(NetError::AccountAlreadyExists.into());
        }
        let id = self.random_uuid();
        let created = self.now();
        let account = Account { name: name.to_owned(), flags, created, secret: Vec::new() };
        self.put_account(id, Some(account));
        self.set_password(name, password)
    }

    /// Changes a password.
    pub(crate) fn set_password(&mut self, name: &str, password: &str) -> Outcome<PasswordSet> {
        let (id, account) = self.accounts().named(name).ok_or(NetError::AccountNotFound)?;
        let name = account.name.clone();
        let is_long = password.encode_utf16().count() > PASSWORD_UNITS;
        let uncut = is_long.then(|| PasswordHashes::uncut(&name, password));
        self.set_hashes(id, PasswordHashes::new(&name, password), uncut);
        Ok(PasswordSet { account: id, all_clients: hashes_agree(&name, password) })
    }

    /// Sets the only digest that other servers store: P0 for an e-mail name, P1 otherwise.
    pub(crate) fn set_digest(&mut self, id: Uuid, digest: [u8; 20]) {
        let Some(account) = self.accounts().get(id) else { return };
        let is_email = is_email_name(&account.name);
        // A random digest, which matches no password.
        let unknown = self.random_bytes();
        let (sha0, sha1) = if is_email { (digest, unknown) } else { (unknown, digest) };
        let [sha0, sha1] = [sha0, sha1].map(PasswordHash::from_bytes);
        self.set_hashes(id, PasswordHashes { sha0, sha1 }, None);
    }

    /// The digest that [`set_digest`](Self::set_digest) takes, if the account has a password.
    pub(crate) fn known_digest(&self, id: Uuid) -> Option<[u8; 20]> {
        let account = self.accounts().get(id)?;
        let hashes = account.hashes(id, self.key())?.cut;
        let known = if is_email_name(&account.name) { hashes.sha0 } else { hashes.sha1 };
        Some(*known.as_bytes())
    }

    fn set_hashes(&mut self, id: Uuid, cut: PasswordHashes, uncut: Option<PasswordHashes>) {
        let Some(mut account) = self.accounts().get(id).cloned() else { return };
        let plain = AccountHashes { cut, uncut }.to_secret();
        let nonce = self.random_bytes();
        account.secret = self.key().seal(&id.0, &plain, nonce);
        self.put_account(id, Some(account));
    }

    /// Bans an account and ends its sessions, or lifts its ban.
    pub(crate) fn ban_account(&mut self, name: &str, banned: bool) -> Outcome<Uuid> {
        let (id, account) = self.accounts().named(name).ok_or(NetError::AccountNotFound)?;
        let mut account = account.clone();
        let flag = AccountFlags::Banned.0;
        let flags = if banned { account.flags.0 | flag } else { account.flags.0 & !flag };
        account.flags = AccountFlags(flags);
        self.put_account(id, Some(account));
        if banned {
            self.kick_account(id, NetError::AccountBanned)?;
        }
        Ok(id)
    }

    /// Replaces the rights of an account and of its sessions. Whether it is banned does not change.
    pub(crate) fn set_roles(&mut self, name: &str, flags: AccountFlags) -> Outcome<Uuid> {
        let (id, account) = self.accounts().named(name).ok_or(NetError::AccountNotFound)?;
        let mut account = account.clone();
        let banned = AccountFlags::Banned.0;
        account.flags = AccountFlags(account.flags.0 & banned | flags.0 & !banned);
        let flags = account.flags;
        self.put_account(id, Some(account));
        let sessions = self.sessions().iter().filter(|(_, session)| session.account == id);
        let sessions: Vec<_> =
            sessions.map(|(connection, session)| (*connection, Session::clone(session))).collect();
        for (connection, session) in sessions {
            self.put_session(connection, Some(Session { flags, ..session }));
        }
        Ok(id)
    }

    /// Ends an account's sessions, and deletes the account and its players.
    pub(crate) fn delete_account(&mut self, name: &str) -> Outcome<Uuid> {
        let (id, _) = self.accounts().named(name).ok_or(NetError::AccountNotFound)?;
        self.kick_account(id, NetError::AccountNotFound)?;
        for player in self.players().of(id) {
            self.remove_player(player.id);
        }
        self.put_account(id, None);
        Ok(id)
    }

    pub(crate) fn list_accounts(&self) -> Vec<AccountSummary> {
        let ids = self.accounts().ids().into_iter();
        ids.filter_map(|id| {
            let account = self.accounts().get(id)?;
            Some(AccountSummary {
                id,
                name: account.name.clone(),
                flags: account.flags,
                created: account.created,
                has_password: !account.secret.is_empty(),
                players: self.players().of(id),
            })
        })
        .collect()
    }

    fn kick_account(&mut self, account: Uuid, reason: NetError) -> Outcome<()> {
        let sessions = self.sessions().iter().filter(|(_, session)| session.account == account);
        let connections: Vec<_> = sessions.map(|(connection, _)| *connection).collect();
        for connection in connections {
            self.kick(connection, reason)?;
        }
        Ok(())
    }

    /// Logs a session out and notifies it of the reason.
    pub(crate) fn kick(&mut self, connection: ConnectionId, reason: NetError) -> Outcome<()> {
        self.leave_player(connection)?;
        self.put_session(connection, Some(Session::default()));
        self.tell(connection, Notice::KickedOff { reason });
        Ok(())
    }
}

/// Whether an account can have this name.
pub(crate) fn is_account_name(name: &str) -> bool {
    let unfit = |c: char| c.is_control() || c == '\u{fffd}';
    !name.is_empty() && name.trim() == name && !name.contains(unfit)
}
