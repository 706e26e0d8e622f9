//! Authentication, with a password or a CK2.

use std::time::Duration;

use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, Secret, apply_rec1, ck2, pk3};

use super::{
    Account, Answer, Form, Legacy, Login, LoginEvent, Output, Pending, Phase, Query, QueuePosition,
    Reply,
};
use crate::ki::refusal::Refusal;

/// An attempt to log in with a password.
#[derive(Debug)]
pub(super) struct Claim {
    rec1: Rec1,
    /// The salt of the session it was encrypted for.
    salt: Salt,
    machine: u64,
}

/// A placeholder as long as a password hash. Logins to unknown accounts are checked against it.
const NOBODY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

impl Login {
    /// Handles a login with a password. `salts` belong to the sessions for which it may be
    /// encrypted.
    pub(super) fn authenticate(&mut self, form: Form, rec1: &[u8], machine: u64, salts: &[Salt]) {
        match (form, self.rules.legacy) {
            (Form::V3, _) | (Form::Legacy, Legacy::Accept) => {}
            (Form::Legacy, Legacy::Ignore) => {
                return self.out.push_back(Output::Tell(LoginEvent::Ignored));
            }
            (Form::Legacy, Legacy::Refuse) => {
                return self.refuse_login("", Refusal::AuthenFailed);
            }
        }
        let opened = salts.iter().find_map(|salt| Some((Rec1::open(rec1, *salt).ok()?, *salt)));
        match opened {
            Some((rec1, salt)) => {
                let query = Query::Account(rec1.username.clone());
                self.ask(query, Pending::Account(Claim { rec1, salt, machine }));
            }
            None => self.refuse_login("", Refusal::AuthenFailed),
        }
    }

    /// Checks a password, now that its account has been looked up.
    pub(super) fn proven(
        &mut self,
        claim: Claim,
        found: Option<Account>,
        pause: Duration,
        fresh: Option<[u8; 64]>,
    ) {
        let Claim { rec1, salt, machine } = claim;
        // A CK2 needs random numbers. Without them, no password is checked.
        let Some(fresh) = fresh else {
            return self.refuse_login(&rec1.username, Refusal::Timeout);
        };
        // A login to an unknown account must take as long as one to an existing account.
        let password = found.as_ref().and_then(|account| account.password.clone());
        let exists = password.is_some();
        let password = password.unwrap_or_else(|| Secret::new(NOBODY));
        let fits = rec1.proves(&password, salt) && exists;
        let account = found.filter(|_| fits);
        if account.is_none() {
            // The failure counts before the delay, so a client gains nothing by disconnecting
            // during it.
            self.tell_failure(&rec1.username, Refusal::AuthenFailed);
        }
        // Replies to correct passwords are delayed as well: a fast reply would give them away.
        if !pause.is_zero() {
            self.out.push_back(Output::Pause(pause));
        }
        let Some(account) = account else {
            self.reply_refused(Refusal::AuthenFailed);
            return self.count_failure();
        };
        if let Some(refusal) = self.shut_out(&account, machine) {
            return self.refuse_login(&rec1.username, refusal);
        }
        self.log_in(account.user);
        let ck2 = ck2(&fresh);
        let mut sealed = ck2.as_str().as_bytes().to_vec();
        // The client decrypts it with its current session.
        apply_rec1(self.salt.unwrap_or(salt), &mut sealed);
        let issued = LoginEvent::Issued { user: account.user, name: rec1.username, machine, ck2 };
        self.out.push_back(Output::Tell(issued));
        self.send(Reply::Authenticated {
            outcome: Ok((account.user, sealed)),
            paying: account.paying,
            time: self.time(),
        });
        // Standalone clients continue on this connection. They enter the queue with their first
        // request.
        let place = match self.phase {
            Phase::User { place, .. } => place,
            _ => None,
        };
        self.send(Reply::Admit(place.map_or(0, QueuePosition::position)));
    }

    /// Checks a CK2, now that its account has been looked up.
    pub(super) fn validated(
        &mut self,
        pass_key: &Secret,
        machine: u64,
        salts: &[Salt],
        found: Option<Account>,
        tickets: &[Secret],
    ) {
        // Try all CK2s, or a placeholder if there are none, so that the time taken reveals nothing.
        let nobody = [Secret::new(NOBODY)];
        let tried = if tickets.is_empty() { &nobody[..] } else { tickets };
        let mut fits = false;
        for salt in salts {
            for ck2 in tried {
                fits |= pk3(ck2, *salt).is(pass_key);
            }
        }
        let refusal = match found {
            Some(account) if fits && !tickets.is_empty() => {
                match self.shut_out(&account, machine) {
                    None => return self.let_in(&account),
                    Some(refusal) => refusal,
                }
            }
            _ => Refusal::ValidateFailed,
        };
        self.send(Reply::Validated { outcome: Err(refusal), paying: false, time: self.time() });
        self.failed("", refusal);
    }

    fn let_in(&mut self, account: &Account) {
        self.log_in(account.user);
        let (outcome, paying) = (Ok(account.user), account.paying);
        self.send(Reply::Validated { outcome, paying, time: self.time() });
        self.ask(Query::Enter, Pending::QueuePosition(None));
    }

    /// Why an authenticated client is refused anyway, if it is.
    fn shut_out(&self, account: &Account, machine: u64) -> Option<Refusal> {
        match account {
            _ if self.rules.banned_machines.contains(&machine) => Some(Refusal::MachineBanned),
            Account { banned: true, .. } => Some(Refusal::AccountBanned),
            _ if !self.rules.open => Some(Refusal::AISNoLogin),
            Account { capped: true, .. } => Some(Refusal::FtpCapped),
            _ => None,
        }
    }

    fn log_in(&mut self, user: u64) {
        if let Phase::User { user: before, .. } = self.phase {
            if before == user {
                return;
            }
            self.out.push_back(Output::Tell(LoginEvent::LoggedOut));
        }
        self.phase = Phase::User { user, place: None };
        self.out.push_back(Output::Tell(LoginEvent::LoggedIn(user)));
    }

    fn refuse_login(&mut self, name: &str, why: Refusal) {
        self.reply_refused(why);
        self.failed(name, why);
    }

    fn reply_refused(&mut self, why: Refusal) {
        let time = self.time();
        self.send(Reply::Authenticated { outcome: Err(why), paying: false, time });
    }

    fn failed(&mut self, name: &str, why: Refusal) {
        self.tell_failure(name, why);
        self.count_failure();
    }

    fn tell_failure(&mut self, name: &str, why: Refusal) {
        self.out.push_back(Output::Tell(LoginEvent::Failed { name: name.to_owned(), why }));
    }

    /// Counts a failed attempt on this connection and closes it after the last one allowed.
    fn count_failure(&mut self) {
        self.failures += 1;
        if self.failures >= self.rules.attempts {
            self.close();
        }
    }
}

impl Answer {
    /// The answer to a query for an unknown account.
    #[cfg(test)]
    pub(super) fn nobody() -> Self {
        Self::Account { found: None, pause: Duration::ZERO, fresh: Some([0; 64]) }
    }
}
