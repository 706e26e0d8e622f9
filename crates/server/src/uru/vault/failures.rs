//! Limits on failed logins.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::session::Login;
use super::tables::accounts::found_by;

/// Failed logins of the last minute: for a name from an address, for an address, and for a name.
/// Guessing must not lock out the account's owner, so the limit for a name does not apply to
/// addresses that have logged in to it before.
#[derive(Debug, Default)]
pub(super) struct Failures {
    counts: HashMap<Source, (u32, u32)>,
    /// Names, each with addresses that sent the right password for it.
    known: HashSet<(String, IpAddr)>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Source {
    Pair(String, Option<IpAddr>),
    Address(IpAddr),
    Name(String),
}

impl Failures {
    const WINDOW: u32 = 60;
    /// The maximum number of names and addresses to remember.
    const MAX: usize = 65_536;
    /// The limits for an address alone and for a name alone, relative to the limit for both
    /// combined.
    const TOGETHER: u32 = 4;

    /// The sources that a failure counts against, and the relative limit of each.
    fn sources(login: &Login) -> impl Iterator<Item = (Source, u32)> {
        let name = found_by(&login.name);
        let pair = Source::Pair(name.clone(), login.address);
        let address = login.address.map(|address| (Source::Address(address), Self::TOGETHER));
        let name = (Source::Name(name), Self::TOGETHER);
        [Some((pair, 1)), address, Some(name)].into_iter().flatten()
    }

    fn knows(&self, login: &Login) -> bool {
        login.address.is_some_and(|it| self.known.contains(&(found_by(&login.name), it)))
    }

    /// Remembers the address of a successful login.
    pub(super) fn remember(&mut self, login: &Login) {
        if let Some(address) = login.address {
            if self.known.len() >= Self::MAX {
                self.known.clear();
            }
            self.known.insert((found_by(&login.name), address));
        }
    }

    /// Whether a login must be refused.
    pub(super) fn are_too_many(&self, login: &Login, now: u32, most: u32) -> bool {
        let known = self.knows(login);
        let exceeds = |(source, times): (Source, u32)| {
            let (since, count) = self.counts.get(&source).copied().unwrap_or_default();
            let recent = if now.saturating_sub(since) < Self::WINDOW { count } else { 0 };
            let forgiven = known && matches!(source, Source::Name(_));
            !forgiven && recent >= most.saturating_mul(times)
        };
        most != 0 && Self::sources(login).any(exceeds)
    }

    /// Counts a failed login.
    pub(super) fn add(&mut self, login: &Login, now: u32) {
        if self.counts.len() >= Self::MAX {
            self.counts.retain(|_, (since, _)| now.saturating_sub(*since) < Self::WINDOW);
            if self.counts.len() >= Self::MAX {
                self.counts.clear();
            }
        }
        for (source, _) in Self::sources(login) {
            let (since, count) = self.counts.entry(source).or_insert((now, 0));
            if now.saturating_sub(*since) >= Self::WINDOW {
                (*since, *count) = (now, 0);
            }
            *count += 1;
        }
    }
}
