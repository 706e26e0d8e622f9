//! A game's members as its rules see them, and how rules send messages.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use super::{GameBody, GameMessage};
use crate::types::TransId;

/// Fills a buffer with random bytes.
pub type Random<'r> = dyn FnMut(&mut [u8]) + 'r;

/// A uniformly distributed number below `bound`, which must not be 0.
pub(super) fn below(random: &mut Random<'_>, bound: u32) -> u32 {
    let bound = bound.max(1);
    // Numbers in the last, incomplete range would make some results too frequent, so the number is
    // then drawn again, but not forever: a source that only returns such numbers must not hang the
    // server.
    let whole = u32::MAX - u32::MAX % bound;
    let mut number = 0;
    for _ in 0..64 {
        let mut bytes = [0; 4];
        random(&mut bytes);
        number = u32::from_le_bytes(bytes);
        if number < whole {
            break;
        }
    }
    number % bound
}

/// A message for a player in the age: the content of a `GameMgrMsg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameDelivery {
    /// The player.
    pub to: u32,
    /// The message.
    pub bytes: Arc<[u8]>,
}

/// A game as its rules see it.
pub(super) struct Table<'t> {
    pub(super) now: Duration,
    pub(super) game_id: u32,
    /// The members, in the order of joining.
    pub(super) members: &'t [u32],
    pub(super) owner: Option<u32>,
    pub(super) out: &'t mut VecDeque<GameDelivery>,
}

impl Table<'_> {
    /// Sends a message to one member.
    pub(super) fn send<'b>(&mut self, to: u32, body: impl Into<GameBody<'b>>) {
        if let Some(bytes) = self.encode(body.into()) {
            self.out.push_back(GameDelivery { to, bytes });
        }
    }

    /// Sends a message to all members.
    pub(super) fn send_all<'b>(&mut self, body: impl Into<GameBody<'b>>) {
        let Some(bytes) = self.encode(body.into()) else { return };
        for to in self.members {
            self.out.push_back(GameDelivery { to: *to, bytes: Arc::clone(&bytes) });
        }
    }

    /// Sends a message to the owner.
    pub(super) fn send_owner<'b>(&mut self, body: impl Into<GameBody<'b>>) {
        if let Some(owner) = self.owner {
            self.send(owner, body);
        }
    }

    pub(super) fn is_owner(&self, player: u32) -> bool {
        self.owner == Some(player)
    }

    /// Rules send only checked texts, so every message can be encoded.
    fn encode(&self, body: GameBody<'_>) -> Option<Arc<[u8]>> {
        let message = GameMessage { trans_id: TransId(0), game_id: self.game_id, body };
        let bytes = message.to_bytes();
        debug_assert!(bytes.is_ok(), "{bytes:?}");
        bytes.ok().map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_below_their_bound() {
        let mut last = 0_u32;
        let mut random = |bytes: &mut [u8]| {
            last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.copy_from_slice(&(last ^ last >> 16).to_le_bytes());
        };
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[below(&mut random, 7) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
        assert_eq!(below(&mut |bytes: &mut [u8]| bytes.fill(0xff), 7), u32::MAX % 7);
    }
}
