//! Which processes a leader admits.

use std::collections::HashMap;
use std::time::Duration;

use super::super::passport::{Passport, Refusal};

/// How long a member must be silent before another process can take its name. A live member is
/// heard from four times a second.
const SILENCE: Duration = Duration::from_secs(1);
/// The maximum number of refusals remembered. When it is exceeded, all are forgotten.
const MAX_REFUSALS: usize = 256;
/// The maximum number of refusals logged for a name per [`NEWS_EVERY`]. A process that is restarted
/// repeatedly has a different number each time.
const MAX_NEWS: usize = 4;
const NEWS_EVERY: Duration = Duration::from_secs(60);
/// The maximum number of replaced processes remembered per name.
const MAX_REPLACED: usize = 16;

/// What a joining process must match.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Admission {
    /// The leader's name.
    pub(in super::super) node: String,
    /// The random number of its shard.
    pub(in super::super) shard: u64,
    /// The settings that all processes of the shard share, as JSON.
    pub(in super::super) settings: String,
    /// The leader's passport.
    pub(in super::super) passport: Passport,
}

impl Admission {
    /// Checks that a process belongs to the shard.
    pub(super) fn check(&self, name: &str, shown: &Passport) -> Result<(), Refusal> {
        if name == self.node {
            let (node, place) = (name.to_owned(), self.passport.place.clone());
            return Err(Refusal::LeadersName { node, place });
        }
        shown.fits(&self.passport)
    }
}

/// A member's process and passport, and the processes that held its name before.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) process: u64,
    pub(super) passport: Passport,
    /// The most recently replaced processes.
    replaced: Vec<u64>,
}

impl Identity {
    pub(super) fn new(process: u64, passport: Passport) -> Self {
        Self { process, passport, replaced: Vec::new() }
    }

    /// Whether this process can take the name of a member that has been silent for `silent`: either
    /// it is the same process, or the member must have ended. If both use the same folder, the lock
    /// on the folder proves that the member has ended. The exception is a process that was itself
    /// replaced earlier and now returns: the folders then only seem to be the same, as on machines
    /// that were cloned.
    pub(super) fn can_replace(&self, member: &Self, silent: Duration) -> bool {
        let has_same_folder =
            self.passport.folder != 0 && self.passport.folder == member.passport.folder;
        let was_replaced = member.replaced.contains(&self.process);
        self.process == member.process || silent > SILENCE || has_same_folder && !was_replaced
    }

    /// Records that this process has replaced a member.
    pub(super) fn replaces(&mut self, member: Self) {
        self.replaced = member.replaced;
        if member.process != self.process {
            self.replaced.retain(|process| *process != self.process);
            if self.replaced.len() == MAX_REPLACED {
                self.replaced.remove(0);
            }
            self.replaced.push(member.process);
        }
    }
}

/// Recent refusals, so that each is logged only once and a flood of them is limited.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    known: HashMap<(String, u64), Refusal>,
    /// The number of refusals logged for each name since this time.
    news: HashMap<String, (Duration, usize)>,
}

impl Refusals {
    /// Whether to log a refusal: it differs from the process's last one, apart from times, and few
    /// processes with this name were refused recently.
    pub(super) fn is_news(
        &mut self,
        now: Duration,
        name: &str,
        process: u64,
        refusal: &Refusal,
    ) -> bool {
        let refusal = refusal.clone().without_times();
        if self.known.len() >= MAX_REFUSALS {
            self.known.clear();
        }
        let known = self.known.insert((name.to_owned(), process), refusal.clone());
        if known == Some(refusal) {
            return false;
        }
        if self.news.len() >= MAX_REFUSALS {
            self.news.retain(|_, (since, _)| now.saturating_sub(*since) < NEWS_EVERY);
        }
        if self.news.len() >= MAX_REFUSALS && !self.news.contains_key(name) {
            return false;
        }
        let (since, count) = self.news.entry(name.to_owned()).or_insert((now, 0));
        if now.saturating_sub(*since) >= NEWS_EVERY {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= MAX_NEWS
    }

    /// Forgets a process's last refusal, because it has been admitted.
    pub(super) fn admitted(&mut self, name: &str, process: u64) {
        self.known.remove(&(name.to_owned(), process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(number: u64, folder: u64) -> Identity {
        Identity::new(number, Passport { folder, ..Passport::default() })
    }

    #[test]
    fn a_name_passes_on_only_when_its_process_has_ended() {
        let recently = Duration::from_millis(250);
        let member = process(1, 7);
        for (other, silent, wanted) in [
            (process(1, 7), recently, true),
            // Restarted from the same folder.
            (process(2, 7), recently, true),
            (process(2, 8), recently, false),
            (process(2, 8), SILENCE, false),
            (process(2, 8), SILENCE + recently, true),
        ] {
            assert_eq!(other.can_replace(&member, silent), wanted, "{other:?} {silent:?}");
        }
        assert!(!process(2, 0).can_replace(&process(1, 0), recently), "unknown folders");
    }

    #[test]
    fn processes_with_folders_that_seem_the_same_do_not_replace_each_other_again_and_again() {
        let recently = Duration::from_millis(250);
        let (first, mut second, mut third) = (process(1, 7), process(2, 7), process(3, 7));
        second.replaces(first.clone());
        assert!(!first.can_replace(&second, recently));
        assert!(third.can_replace(&second, recently));
        third.replaces(second.clone());
        for earlier in [&first, &second] {
            assert!(!earlier.can_replace(&third, recently), "{earlier:?}");
            assert!(earlier.can_replace(&third, SILENCE + recently), "{earlier:?}");
        }
        // This stays true however often the process is restarted.
        let mut last = third;
        for number in 10..100 {
            let mut next = process(number, 7);
            assert!(next.can_replace(&last, recently));
            next.replaces(last);
            last = next;
        }
        assert_eq!(last.replaced.len(), MAX_REPLACED);
    }

    #[test]
    fn refusals_are_news_once() {
        let taken = |heard| Refusal::NameTaken {
            node: "a".to_owned(),
            place: "process 1".to_owned(),
            joined: heard,
            heard,
        };
        let now = Duration::ZERO;
        let mut refusals = Refusals::default();
        let news = [taken(1), taken(2), Refusal::Full, Refusal::Full]
            .map(|refusal| refusals.is_news(now, "a", 1, &refusal));
        assert_eq!(news, [true, false, true, false]);
        assert!(refusals.is_news(now, "a", 2, &taken(3)), "another process");
        refusals.admitted("a", 2);
        assert!(refusals.is_news(now, "a", 2, &taken(3)));
    }

    #[test]
    fn processes_that_are_started_again_and_again_do_not_fill_the_log() {
        let mut refusals = Refusals::default();
        for minute in 0..3 {
            let now = NEWS_EVERY * minute;
            let process = u64::from(minute) * 10_000;
            let is_news = |process: &u64| refusals.is_news(now, "a", *process, &Refusal::Full);
            assert_eq!((process..process + 10_000).filter(is_news).count(), MAX_NEWS);
            assert!(refusals.is_news(now, "b", 1 + process, &Refusal::Full));
        }
        // The number of log lines stays limited however many names there are.
        let names = (0..10_000).map(|name| name.to_string());
        let now = NEWS_EVERY * 10;
        let news = names.filter(|name| refusals.is_news(now, name, 1, &Refusal::Full)).count();
        assert!((MAX_REFUSALS..=MAX_REFUSALS + 2).contains(&news), "{news}");
    }
}
