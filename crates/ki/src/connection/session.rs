//! The IDs of a server's live sessions.

use worldwire_core::{Error, Result};

/// Allocates session IDs from 1 to 65535, each for one live session, and never reuses one
/// immediately.
///
/// IDs rotate: each allocation takes the first free ID after the previous one.
///
/// ```
/// use worldwire_ki::connection::SessionIds;
/// let mut ids = SessionIds::new();
/// let first = ids.allocate()?;
/// ids.release(first);
/// assert_ne!(ids.allocate()?, first);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SessionIds {
    /// A bit for every ID, set while the ID is in use.
    taken: Box<[u64; WORDS]>,
    live: u32,
    next: u16,
}

const WORDS: usize = 1 << 10;

/// The maximum number of live sessions on one server.
pub const MAX_SESSIONS: u32 = 65_535;

impl Default for SessionIds {
    fn default() -> Self {
        Self::new()
    }
}

impl SessionIds {
    /// Creates an allocator without live sessions.
    #[must_use]
    pub fn new() -> Self {
        let mut taken = Box::new([0; WORDS]);
        // 0 is not a valid session ID.
        taken[0] = 1;
        Self { taken, live: 0, next: 1 }
    }

    /// Allocates an ID for a new session.
    ///
    /// # Errors
    /// A limit error if there are already [`MAX_SESSIONS`] live sessions.
    pub fn allocate(&mut self) -> Result<u16> {
        self.find().ok_or_else(|| {
            Error::limit("live sessions", MAX_SESSIONS.into(), u64::from(MAX_SESSIONS) + 1)
        })
    }

    fn find(&mut self) -> Option<u16> {
        // Search from `next` and wrap around to it, so the first word is examined twice.
        let (word, bit) = place(self.next);
        let found = (0..=WORDS).find_map(|step| {
            let at = (word + step) % WORDS;
            let before = if step == 0 { (1u64 << bit) - 1 } else { 0 };
            let free = !self.taken.get(at)? & !before;
            let bit = u16::try_from(free.trailing_zeros()).ok().filter(|_| free != 0)?;
            Some(u16::try_from(at).ok()? * 64 + bit)
        })?;
        let (word, bit) = place(found);
        if let Some(word) = self.taken.get_mut(word) {
            *word |= 1 << bit;
        }
        self.live += 1;
        self.next = found.checked_add(1).unwrap_or(1);
        Some(found)
    }

    /// Frees the ID of a session that is over. IDs that are already free are ignored.
    pub fn release(&mut self, id: u16) {
        if id != 0 && self.is_live(id) {
            let (word, bit) = place(id);
            if let Some(word) = self.taken.get_mut(word) {
                *word &= !(1 << bit);
            }
            self.live -= 1;
        }
    }

    /// Whether a live session has this ID.
    #[must_use]
    pub fn is_live(&self, id: u16) -> bool {
        let (word, bit) = place(id);
        id != 0 && self.taken.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// The number of live sessions.
    #[must_use]
    pub fn live(&self) -> u32 {
        self.live
    }
}

fn place(id: u16) -> (usize, u32) {
    (usize::from(id / 64), u32::from(id % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_except_zero_is_allocated_once() {
        let mut ids = SessionIds::new();
        let mut seen = vec![false; 65_536];
        for _ in 0..MAX_SESSIONS {
            let id = ids.allocate().expect("there is one left");
            assert!(!core::mem::replace(&mut seen[usize::from(id)], true), "{id} twice");
        }
        assert!(!seen[0]);
        let error = ids.allocate().expect_err("all live");
        assert_eq!(error.to_string(), "wanted at most 65535 (live sessions), found 65536");
        assert_eq!(ids.live(), MAX_SESSIONS);
        ids.release(0);
        assert!(ids.allocate().is_err());
        ids.release(777);
        ids.release(777);
        assert_eq!(ids.allocate().ok(), Some(777));
        assert!(ids.allocate().is_err());
    }

    #[test]
    fn an_id_is_reused_only_after_all_others() {
        let mut ids = SessionIds::new();
        for round in 0..3u32 {
            for wanted in 1..=u16::MAX {
                let id = ids.allocate().expect("all are free");
                assert_eq!(id, wanted, "in round {round}");
                ids.release(id);
            }
        }
    }
}
