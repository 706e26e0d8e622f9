//! Each member's share of an age's stored states.

use std::collections::HashMap;

use crate::types::Uuid;

/// The room that each member uses. Players of the same account share a quota.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    taken: HashMap<u32, QuotaUse>,
    /// The first player of each account.
    accounts: HashMap<Uuid, u32>,
    /// Maps further players of an account to its first player.
    first: HashMap<u32, u32>,
}

/// The number of states and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuotaUse {
    pub(super) states: usize,
    pub(super) bytes: usize,
}

impl Quotas {
    /// Records that a player joined.
    pub(super) fn joined(&mut self, player_id: u32, account: Uuid) {
        if account.is_zero() {
            return;
        }
        let first = *self.accounts.entry(account).or_insert(player_id);
        if first != player_id {
            self.first.insert(player_id, first);
        }
    }

    /// The player whose quota this player uses.
    pub(super) fn payer(&self, player_id: u32) -> u32 {
        self.first.get(&player_id).copied().unwrap_or(player_id)
    }

    /// The room used by a player and others of the same account.
    pub(super) fn of(&self, player_id: u32) -> QuotaUse {
        self.taken.get(&self.payer(player_id)).copied().unwrap_or_default()
    }

    /// Records a state sent by a player.
    pub(super) fn take(&mut self, player_id: u32, bytes: usize) {
        let taken = self.taken.entry(self.payer(player_id)).or_default();
        (taken.states, taken.bytes) = (taken.states + 1, taken.bytes + bytes);
    }

    /// Records that a player's state was removed.
    pub(super) fn give_back(&mut self, player_id: u32, bytes: usize) {
        let payer = self.payer(player_id);
        let Some(taken) = self.taken.get_mut(&payer) else { return };
        taken.states = taken.states.saturating_sub(1);
        taken.bytes = taken.bytes.saturating_sub(bytes);
        if taken.states == 0 {
            self.taken.remove(&payer);
        }
    }
}
