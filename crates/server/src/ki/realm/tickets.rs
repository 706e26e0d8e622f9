//! CK2s: secrets issued to accounts that have logged in. They are kept in memory only.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use worldwire_ki::crypt::login::Secret;

/// The maximum number of CK2s kept per account. Nobody logs in this often while a CK2 is valid.
const MAX_OF_AN_ACCOUNT: usize = 64;

/// An account's CK2.
#[derive(Debug)]
struct Ticket {
    ck2: Secret,
    /// The machine it was issued to; `None` if it was issued to a web page.
    machine: Option<u64>,
    expires: Duration,
}

/// An account's CK2s and their machines, set aside while its client is in a zone.
#[derive(Debug, Default)]
pub(super) struct SavedTickets(Vec<(Option<u64>, Secret)>);

/// All CK2s that are valid.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    of_user: HashMap<u64, VecDeque<Ticket>>,
    swept: Duration,
}

impl Tickets {
    /// Adds a CK2 to an account. Its other CK2s stay valid.
    pub(super) fn add(
        &mut self,
        user: u64,
        machine: Option<u64>,
        ck2: Secret,
        now: Duration,
        life: Duration,
    ) {
        if now.saturating_sub(self.swept) >= life {
            self.swept = now;
            self.of_user.retain(|_, tickets| {
                tickets.retain(|ticket| ticket.expires > now);
                !tickets.is_empty()
            });
        }
        let tickets = self.of_user.entry(user).or_default();
        tickets.retain(|ticket| ticket.expires > now);
        if tickets.len() >= MAX_OF_AN_ACCOUNT {
            tickets.pop_front();
        }
        tickets.push_back(Ticket { ck2, machine, expires: now.saturating_add(life) });
    }

    /// An account's CK2s that are valid on a machine.
    pub(super) fn of(&self, user: u64, machine: u64, now: Duration) -> Vec<Secret> {
        let fits = |ticket: &&Ticket| {
            ticket.expires > now && ticket.machine.is_none_or(|bound| bound == machine)
        };
        let tickets = self.of_user.get(&user).into_iter().flatten();
        tickets.filter(fits).map(|ticket| ticket.ck2.clone()).collect()
    }

    /// An account's CK2s that are valid now, to be [renewed](Self::renew) when its client returns
    /// from a zone.
    pub(super) fn valid(&self, user: u64, now: Duration) -> SavedTickets {
        let tickets = self.of_user.get(&user).into_iter().flatten();
        let valid = tickets.filter(|ticket| ticket.expires > now);
        SavedTickets(valid.map(|ticket| (ticket.machine, ticket.ck2.clone())).collect())
    }

    /// Makes an account's CK2s valid for another lifetime.
    pub(super) fn renew(&mut self, user: u64, kept: SavedTickets, now: Duration, life: Duration) {
        for (machine, ck2) in kept.0 {
            if let Some(tickets) = self.of_user.get_mut(&user) {
                tickets.retain(|ticket| !ticket.ck2.is(&ck2));
            }
            self.add(user, machine, ck2, now, life);
        }
    }

    /// Revokes all of an account's CK2s.
    pub(super) fn revoke(&mut self, user: u64) {
        self.of_user.remove(&user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_01_each_ck2_is_valid_until_it_expires() {
        let mut tickets = Tickets::default();
        let at = Duration::from_secs;
        let valid = |tickets: &Tickets, user, machine, now| {
            let found = tickets.of(user, machine, at(now)).into_iter();
            found.map(|ck2| ck2.as_str().to_owned()).collect::<Vec<_>>()
        };
        tickets.add(1, Some(7), Secret::new("a"), at(0), at(300));
        tickets.add(1, Some(7), Secret::new("b"), at(100), at(300));
        tickets.add(1, None, Secret::new("web"), at(100), at(300));
        tickets.add(2, Some(0), Secret::new("c"), at(100), at(300));
        for _ in 0..2 {
            assert_eq!(valid(&tickets, 1, 7, 299), ["a", "b", "web"]);
        }
        assert_eq!(valid(&tickets, 1, 8, 299), ["web"]);
        assert_eq!(valid(&tickets, 1, 7, 300), ["b", "web"]);
        assert_eq!(valid(&tickets, 2, 0, 300), ["c"]);
        // A client can return from a zone long after its CK2s would have expired.
        let kept = tickets.valid(1, at(350));
        tickets.renew(1, kept, at(9000), at(300));
        assert_eq!(valid(&tickets, 1, 7, 9299), ["b", "web"]);
        tickets.revoke(1);
        assert!(valid(&tickets, 1, 7, 9000).is_empty());
        for number in 0..200 {
            tickets.add(3, None, Secret::new(number.to_string()), at(9700), at(300));
        }
        assert_eq!(valid(&tickets, 3, 0, 9700).len(), MAX_OF_AN_ACCOUNT);
        assert_eq!(tickets.of_user.len(), 1, "expired ones are removed");
    }
}
