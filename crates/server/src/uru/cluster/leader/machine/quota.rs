//! The number of items that a node may send.

use std::collections::HashMap;
use std::time::Duration;

/// The number of items that a node may send per second: a multiple of what thousands of clients cause.
const PER_SECOND: u32 = 20_000;
/// The number of items that it may send at once, as after a takeover.
const AT_ONCE: u32 = 60_000;
/// The number of names beyond which those that sent nothing lately are forgotten.
const MAX_NAMES: usize = 512;

/// The quotas of all nodes, by name. A node keeps its quota when it joins again, so that leaving does
/// not pay.
#[derive(Debug, Default)]
pub(super) struct Quotas(HashMap<String, Quota>);

/// What a node may still send.
#[derive(Debug)]
struct Quota {
    items: u32,
    at: Duration,
}

impl Quotas {
    /// Counts items from a node. Returns false if there are too many.
    pub(super) fn take(&mut self, now: Duration, name: &str, count: usize) -> bool {
        // Most frames are heartbeats.
        if count == 0 {
            return true;
        }
        let Some(quota) = self.of(now, name) else { return false };
        match u32::try_from(count).ok().and_then(|count| quota.items.checked_sub(count)) {
            Some(left) => {
                quota.items = left;
                true
            }
            None => {
                quota.items = 0;
                false
            }
        }
    }

    /// Whether a node may join: it has not just sent too much.
    pub(super) fn allows(&self, now: Duration, name: &str) -> bool {
        // Nothing is remembered about most names.
        self.0.get(name).is_none_or(|quota| quota.refilled(now) >= PER_SECOND)
    }

    fn of(&mut self, now: Duration, name: &str) -> Option<&mut Quota> {
        // A known name is not allocated again: this happens for every frame with items.
        if !self.0.contains_key(name) {
            if self.0.len() >= MAX_NAMES {
                self.0.retain(|_, quota| quota.refilled(now) < AT_ONCE);
            }
            self.0.insert(name.to_owned(), Quota { items: AT_ONCE, at: now });
        }
        let quota = self.0.get_mut(name)?;
        (quota.items, quota.at) = (quota.refilled(now), now);
        Some(quota)
    }
}

impl Quota {
    fn refilled(&self, now: Duration) -> u32 {
        let more = now.saturating_sub(self.at).as_millis() * u128::from(PER_SECOND) / 1_000;
        let more = u32::try_from(more).unwrap_or(AT_ONCE);
        self.items.saturating_add(more).min(AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_can_send_its_quota_and_not_more() {
        let mut quotas = Quotas::default();
        let mut now = Duration::from_secs(9);
        assert!(quotas.take(now, "a", 50_000) && quotas.take(now, "a", 10_000));
        assert!(!quotas.take(now, "a", 1) && !quotas.allows(now, "a"));
        assert!(quotas.allows(now, "b") && quotas.take(now, "b", 60_000), "of another node");
        now += Duration::from_millis(500);
        assert!(!quotas.allows(now, "a"));
        now += Duration::from_millis(500);
        assert!(quotas.allows(now, "a") && quotas.take(now, "a", 20_000));
        assert!(!quotas.take(now, "a", usize::MAX));
        now += Duration::from_secs(100);
        assert!(quotas.take(now, "a", 60_000) && !quotas.take(now, "a", 1));
    }

    #[test]
    fn a_steady_stream_within_the_quota_never_ends() {
        let mut quotas = Quotas::default();
        for tick in 0..10_000 {
            assert!(quotas.take(Duration::from_millis(10) * tick, "a", 200), "{tick}");
        }
    }

    #[test]
    fn names_that_sent_nothing_lately_are_forgotten() {
        let mut quotas = Quotas::default();
        for number in 0..10_000_u32 {
            quotas.take(Duration::from_millis(10) * number, &number.to_string(), 100);
        }
        assert!(quotas.0.len() <= MAX_NAMES, "{}", quotas.0.len());
    }
}
