//! Placements of ages.

use std::collections::{BTreeMap, HashMap};

use worldwire_uru::types::{NetError, Uuid};

use super::VaultState;
use super::undo::Undo;
use crate::store::Change;
use crate::uru::vault::placements::{FIRST_PLACED, Placement};
use crate::uru::vault::session::Outcome;

/// The setting with the number of the next placement.
pub(super) const NEXT_FENCE: &str = "uru.next-fence";

/// Fences are at least the Unix time multiplied by this number, which is a power of two.
const FENCES_PER_SECOND: u32 = 1 << 20;

/// All placements.
#[derive(Debug, Default)]
pub(super) struct Placements {
    by_number: BTreeMap<u32, Placement>,
    /// The numbers of the ages that are not in the vault, by instance.
    temporary: HashMap<Uuid, u32>,
    next_fence: u64,
}

impl Placements {
    /// Adds, replaces or removes a placement.
    pub(super) fn set(&mut self, number: u32, placement: Option<Placement>) {
        if let Some(old) = self.by_number.remove(&number)
            && self.temporary.get(&old.instance) == Some(&number)
        {
            self.temporary.remove(&old.instance);
        }
        if let Some(placement) = placement {
            if number >= FIRST_PLACED {
                self.temporary.insert(placement.instance, number);
            }
            self.by_number.insert(number, placement);
        }
    }

    /// Sets the number of the next placement.
    pub(super) fn set_next_fence(&mut self, next: u64) {
        self.next_fence = next;
    }
}

impl VaultState {
    /// Adds, replaces or removes the placement of an age.
    pub(in crate::uru::vault) fn put_placement(
        &mut self,
        number: u32,
        placement: Option<Placement>,
    ) {
        self.stage(match placement.as_ref().and_then(|placement| placement.row(number)) {
            Some(row) => Change::PutPlacement(row),
            None => Change::DeletePlacement(number),
        });
        self.record(Undo::Placement(number, self.placements.by_number.get(&number).cloned()));
        self.placements.set(number, placement);
    }

    /// The fence of a new placement. It is not below the current time, so that a restored backup
    /// does not reuse fences that age nodes may remember.
    pub(in crate::uru::vault) fn make_fence(&mut self) -> Outcome<u64> {
        let of_now = u64::from(self.now()) << FENCES_PER_SECOND.ilog2();
        let fence = self.placements.next_fence.max(of_now).max(1);
        let next = fence.checked_add(1).ok_or(NetError::InternalError)?;
        self.record(Undo::NextFence(self.placements.next_fence));
        self.placements.next_fence = next;
        self.put_setting(NEXT_FENCE, next.to_string().into_bytes());
        Ok(fence)
    }

    /// Loads a placement.
    pub(in crate::uru::vault) fn load_placement(&mut self, number: u32, placement: Placement) {
        let next = placement.fence.saturating_add(1);
        self.placements.next_fence = self.placements.next_fence.max(next);
        self.placements.set(number, Some(placement));
    }

    /// All placements, by number.
    pub(in crate::uru::vault) fn placements(&self) -> &BTreeMap<u32, Placement> {
        &self.placements.by_number
    }

    /// The placement of an age.
    pub(in crate::uru::vault) fn placement(&self, number: u32) -> Option<&Placement> {
        self.placements.by_number.get(&number)
    }

    /// The number of a placed age that is not in the vault.
    pub(in crate::uru::vault) fn temporary_number(&self, instance: Uuid) -> Option<u32> {
        self.placements.temporary.get(&instance).copied()
    }
}
