//! CK2s: the server's secrets for accounts that have logged in. In memory only.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use worldwire_ki::crypt::login::Secret;

/// How many of an account are kept. More than this within a CK2's life is no person.
const MAX_OF_AN_ACCOUNT: usize = 64;

/// A CK2 of an account.
#[derive(Debug)]
struct Pass {
    ck2: Secret,
    /// The machine it was given to; none for those that a web page was given.
    machine: Option<u64>,
    expires: Duration,
}

/// CK2s of an account, and their machines.
#[derive(Debug, Default)]
pub(super) struct Kept(Vec<(Option<u64>, Secret)>);

/// All CK2s that are good.
#[derive(Debug, Default)]
pub(super) struct Passes {
    of_user: HashMap<u64, VecDeque<Pass>>,
    swept: Duration,
}

impl Passes {
    /// Gives an account one more; the others stay good.
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
            self.of_user.retain(|_, passes| {
                passes.retain(|pass| pass.expires > now);
                !passes.is_empty()
            });
        }
        let passes = self.of_user.entry(user).or_default();
        passes.retain(|pass| pass.expires > now);
        if passes.len() >= MAX_OF_AN_ACCOUNT {
            passes.pop_front();
        }
        passes.push_back(Pass { ck2, machine, expires: now.saturating_add(life) });
    }

    /// Those of an account that are good on a machine.
    pub(super) fn of(&self, user: u64, machine: u64, now: Duration) -> Vec<Secret> {
        let fits =
            |pass: &&Pass| pass.expires > now && pass.machine.is_none_or(|bound| bound == machine);
        let passes = self.of_user.get(&user).into_iter().flatten();
        passes.filter(fits).map(|pass| pass.ck2.clone()).collect()
    }

    /// Those of an account that are good now, to be [renewed](Self::renew) when its client comes
    /// back from a zone.
    pub(super) fn good(&self, user: u64, now: Duration) -> Kept {
        let passes = self.of_user.get(&user).into_iter().flatten();
        let good = passes.filter(|pass| pass.expires > now);
        Kept(good.map(|pass| (pass.machine, pass.ck2.clone())).collect())
    }

    /// Gives an account back what it had.
    pub(super) fn renew(&mut self, user: u64, kept: Kept, now: Duration, life: Duration) {
        for (machine, ck2) in kept.0 {
            if let Some(passes) = self.of_user.get_mut(&user) {
                passes.retain(|pass| !pass.ck2.is(&ck2));
            }
            self.add(user, machine, ck2, now, life);
        }
    }

    /// Takes all of an account away.
    pub(super) fn revoke(&mut self, user: u64) {
        self.of_user.remove(&user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_01_a_ck2_is_good_until_it_expires_and_older_ones_with_it() {
        let mut passes = Passes::default();
        let at = Duration::from_secs;
        let good = |passes: &Passes, user, machine, now| {
            let found = passes.of(user, machine, at(now)).into_iter();
            found.map(|ck2| ck2.as_str().to_owned()).collect::<Vec<_>>()
        };
        passes.add(1, Some(7), Secret::new("a"), at(0), at(300));
        passes.add(1, Some(7), Secret::new("b"), at(100), at(300));
        passes.add(1, None, Secret::new("web"), at(100), at(300));
        passes.add(2, Some(0), Secret::new("c"), at(100), at(300));
        for _ in 0..2 {
            assert_eq!(good(&passes, 1, 7, 299), ["a", "b", "web"]);
        }
        assert_eq!(good(&passes, 1, 8, 299), ["web"]);
        assert_eq!(good(&passes, 1, 7, 300), ["b", "web"]);
        assert_eq!(good(&passes, 2, 0, 300), ["c"]);
        // Whoever was in a zone comes back long after they would have expired.
        let kept = passes.good(1, at(350));
        passes.renew(1, kept, at(9000), at(300));
        assert_eq!(good(&passes, 1, 7, 9299), ["b", "web"]);
        passes.revoke(1);
        assert!(good(&passes, 1, 7, 9000).is_empty());
        for number in 0..200 {
            passes.add(3, None, Secret::new(number.to_string()), at(9700), at(300));
        }
        assert_eq!(good(&passes, 3, 0, 9700).len(), MAX_OF_AN_ACCOUNT);
        assert_eq!(passes.of_user.len(), 1, "those that expired are gone");
    }
}
