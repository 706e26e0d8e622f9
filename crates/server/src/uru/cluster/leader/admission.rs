//! Which processes a leader admits.

use std::collections::HashMap;
use std::time::Duration;

use super::super::passport::{Passport, Refusal};

/// How long a member may be silent before another process can have its name. A member that is alive
/// is heard four times a second.
const SILENCE: Duration = Duration::from_secs(1);
/// The number of refusals beyond which all are forgotten.
const MAX_REFUSALS: usize = 256;
/// How many processes of a name are remembered that were replaced.
const MAX_REPLACED: usize = 16;

/// The leader, as processes that join must fit it.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Admission {
    /// The leader's name.
    pub(in super::super) node: String,
    /// The random number of its shard.
    pub(in super::super) shard: u64,
    /// The settings that all processes of the shard share, as JSON.
    pub(in super::super) settings: String,
    /// What the leader would show.
    pub(in super::super) passport: Passport,
}

impl Admission {
    /// Whether a process belongs to the shard.
    pub(super) fn check(&self, name: &str, shown: &Passport) -> Result<(), Refusal> {
        if name == self.node {
            let (node, place) = (name.to_owned(), self.passport.place.clone());
            return Err(Refusal::LeadersName { node, place });
        }
        shown.fits(&self.passport)
    }
}

/// What a member has shown, and which processes had its name before.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) process: u64,
    pub(super) passport: Passport,
    /// The latest processes that were replaced.
    replaced: Vec<u64>,
}

impl Identity {
    pub(super) fn new(process: u64, passport: Passport) -> Self {
        Self { process, passport, replaced: Vec::new() }
    }

    /// Whether a process can take the name of a member, which was heard so long ago: because it is the
    /// same process, or the member has ended. The lock on its folder proves that if the process
    /// uses the same folder. But a process that was replaced before has not ended if it comes
    /// back: then the folders only seem to be the same, as on machines that were cloned.
    pub(super) fn can_replace(&self, member: &Self, silent: Duration) -> bool {
        let has_same_folder =
            self.passport.folder != 0 && self.passport.folder == member.passport.folder;
        let was_replaced = member.replaced.contains(&self.process);
        self.process == member.process || silent > SILENCE || has_same_folder && !was_replaced
    }

    /// The process has replaced a member.
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

/// The refusals that are known, so that each is logged once.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashMap<(String, u64), Refusal>);

impl Refusals {
    /// Whether this is another refusal of a process than its last one. Times do not count.
    pub(super) fn is_news(&mut self, name: &str, process: u64, refusal: &Refusal) -> bool {
        let refusal = refusal.clone().without_times();
        if self.0.len() >= MAX_REFUSALS {
            self.0.clear();
        }
        self.0.insert((name.to_owned(), process), refusal.clone()) != Some(refusal)
    }

    /// The process was admitted.
    pub(super) fn admitted(&mut self, name: &str, process: u64) {
        self.0.remove(&(name.to_owned(), process));
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
            // Restarted.
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
        // However often it was restarted.
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
        let mut refusals = Refusals::default();
        let news = [taken(1), taken(2), Refusal::Full, Refusal::Full, taken(3)]
            .map(|refusal| refusals.is_news("a", 1, &refusal));
        assert_eq!(news, [true, false, true, false, true]);
        assert!(refusals.is_news("a", 2, &taken(3)), "another process");
        refusals.admitted("a", 1);
        assert!(refusals.is_news("a", 1, &taken(3)));
    }
}
