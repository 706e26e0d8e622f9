//! How much keystream may be made for bytes that never came.

use crate::{Error, Result};

/// How much keystream may be passed over for missing bytes, so that forged sequence numbers cannot
/// cost seconds of work each.
///
/// A stream cipher without random access has to make every byte of keystream that a gap covers. The
/// budget grows with the bytes that really came: 1 MiB at first, a whole TCP window of which the
/// capture saw nothing, and 16 bytes for every byte received, so a capture that lost fifteen bytes
/// of sixteen can still be read.
#[derive(Clone, Copy, Debug)]
pub struct SkipBudget(u64);

/// A whole TCP window.
const AT_FIRST: u64 = 1 << 20;
/// For every byte that came.
const A_BYTE: u64 = 16;

impl Default for SkipBudget {
    fn default() -> Self {
        Self(AT_FIRST)
    }
}

impl SkipBudget {
    /// Bytes came.
    #[inline]
    pub fn earn(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(A_BYTE.saturating_mul(bytes as u64));
    }

    /// Bytes are missing, and their keystream is to be passed over.
    ///
    /// # Errors
    /// The limit on keystream for missing bytes; nothing is spent then.
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
    fn what_came_pays_for_what_is_missing() {
        let mut budget = SkipBudget::default();
        budget.spend(1 << 20).unwrap();
        assert!(budget.spend(1).is_err());
        budget.earn(2);
        budget.spend(32).unwrap();
        let error = budget.spend(1 << 30).unwrap_err();
        assert!(error.to_string().contains("keystream for missing bytes"), "{error}");
    }
}
