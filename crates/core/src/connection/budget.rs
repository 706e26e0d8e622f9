//! A budget for skipping keystream over missing bytes.

use crate::{Error, Result};

/// Limits how much keystream a connection generates for missing bytes, so that forged sequence
/// numbers cannot cause seconds of work each.
///
/// A stream cipher without random access must generate every byte of keystream that a gap covers.
/// The budget starts at 1 MiB, enough for an entire TCP window that the capture missed, and grows
/// by 16 bytes for every byte received. A capture that lost fifteen of every sixteen bytes is
/// therefore still readable.
#[derive(Clone, Copy, Debug)]
pub struct SkipBudget(u64);

/// An entire TCP window.
const INITIAL_BYTES: u64 = 1 << 20;
/// Added for every byte received.
const PER_RECEIVED_BYTE: u64 = 16;

impl Default for SkipBudget {
    fn default() -> Self {
        Self(INITIAL_BYTES)
    }
}

impl SkipBudget {
    /// Adds to the budget for received bytes.
    #[inline]
    pub fn earn(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(PER_RECEIVED_BYTE.saturating_mul(bytes as u64));
    }

    /// Pays for skipping the keystream of this many missing bytes.
    ///
    /// # Errors
    /// The limit on keystream for missing bytes. The budget is then unchanged.
    pub fn spend(&mut self, length: u64) -> Result<()> {
        let left = self.0.checked_sub(length);
        self.0 = left.ok_or_else(|| Error::limit("keystream for missing bytes", self.0, length))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_bytes_pay_for_missing_ones() {
        let mut budget = SkipBudget::default();
        budget.spend(1 << 20).unwrap();
        assert!(budget.spend(1).is_err());
        budget.earn(2);
        budget.spend(32).unwrap();
        let error = budget.spend(1 << 30).unwrap_err();
        assert!(error.to_string().contains("keystream for missing bytes"), "{error}");
    }
}
