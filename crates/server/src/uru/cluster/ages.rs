//! Messages between the leader and nodes that run ages.
//!
//! The leader gives each age a *placement*: a node, its process, and a *fence*, a number that only
//! increases. The node runs the age until the age is empty, the placement is revoked, or the node's
//! time runs out. The vault rejects an age's states unless they carry the fence of its current
//! placement.

use std::net::IpAddr;

use worldwire_core::{Reader, Result, Sampler, Writer};
use worldwire_uru::types::Uuid;

use super::frames::MAX_ORDER;
use crate::uru::vault::ask::{Wire, encoded, unknown, wire_struct, wire_variants};

/// A node's description of itself, sent when it joins and whenever it changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct NodeInfo {
    /// Whether it runs ages.
    pub(in crate::uru) runs_ages: bool,
    /// The IPv4 address or host name that clients are told to connect to.
    pub(in crate::uru) host: String,
    /// How many players its ages are meant to hold; 0 if it should get no new ages.
    pub(in crate::uru) max_players: u32,
}

wire_struct! {
    NodeInfo {
        runs_ages: bool,
        host: String,
        max_players: u32,
    }
}

/// A player who is about to join an age.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct Visit {
    /// The number used to join it.
    pub(in crate::uru) number: u32,
    /// The fence of its placement.
    pub(in crate::uru) fence: u64,
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The Age node; 0 for an age that is not in the vault.
    pub(in crate::uru) age: u32,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// The player.
    pub(in crate::uru) player: u32,
    /// The player's account.
    pub(in crate::uru) account: Uuid,
    /// The player's name.
    pub(in crate::uru) player_name: String,
    /// Whether it is an administrator's account.
    pub(in crate::uru) is_admin: bool,
    /// The number of the player's session at the leader.
    pub(in crate::uru) auth: u64,
    /// The address from which the player will connect.
    pub(in crate::uru) address: IpAddr,
}

wire_struct! {
    Visit {
        number: u32,
        fence: u64,
        filename: String,
        age: u32,
        instance: Uuid,
        player: u32,
        account: Uuid,
        player_name: String,
        is_admin: bool,
        auth: u64,
        address: IpAddr,
    }
}

/// An order to a node that runs ages.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) enum AgeOrder {
    /// Let a player join an age. Answered by [`AgeReport::Expecting`].
    Expect {
        /// The number of this order.
        request: u64,
        /// The player and the age.
        visit: Visit,
    },
    /// Remove a player from an age: the session has ended or has switched players.
    Out {
        /// The age.
        number: u32,
        /// The player.
        player: u32,
        /// The session.
        auth: u64,
    },
    /// Show a message to players.
    Announce {
        /// The instance whose players see the message. If zero, players in all ages see it.
        instance: Uuid,
        /// The sender's name.
        sender: String,
        /// The message.
        text: String,
    },
    /// End an age at once, without saving: the placement has ended.
    Revoke {
        /// The age.
        number: u32,
        /// The fence of the placement.
        fence: u64,
    },
}

wire_variants! {
    AgeOrder {
        0 Expect { request: u64, visit: Visit },
        1 Out { number: u32, player: u32, auth: u64 },
        2 Announce { instance: Uuid, sender: String, text: String },
        3 Revoke { number: u32, fence: u64 },
    }
}

/// A node's reports about itself and its ages.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) enum AgeReport {
    /// The node describes itself.
    Info {
        /// The description.
        info: NodeInfo,
    },
    /// A player is expected.
    Expecting {
        /// The number of the order.
        request: u64,
    },
    /// A player has joined an age. A node that joins the leader repeats this for all its players.
    Arrived {
        /// The age.
        number: u32,
        /// The fence of its placement.
        fence: u64,
        /// The player.
        player: u32,
        /// The number of the player's session at the leader.
        auth: u64,
    },
    /// A player has left an age.
    Departed {
        /// The age.
        number: u32,
        /// The fence of its placement.
        fence: u64,
        /// The player.
        player: u32,
    },
    /// An age was empty and has ended. Its states have been written, and nobody is expected in it.
    /// The node does not start it again under this fence: it ignores orders to expect players under
    /// it. A node that joins the leader repeats this report, even for ages that it was forced to
    /// end.
    Ended {
        /// The age.
        number: u32,
        /// The fence of its placement.
        fence: u64,
    },
    /// An age is running. The node reports this after joining, and every 10 s.
    Running {
        /// The age.
        number: u32,
        /// The fence of its placement.
        fence: u64,
    },
}

wire_variants! {
    AgeReport {
        0 Info { info: NodeInfo },
        1 Expecting { request: u64 },
        2 Arrived { number: u32, fence: u64, player: u32, auth: u64 },
        3 Departed { number: u32, fence: u64, player: u32 },
        4 Ended { number: u32, fence: u64 },
        5 Running { number: u32, fence: u64 },
    }
}

/// Encodes an order or report. Returns `None` if very long names make it exceed the limit.
pub(super) fn encoded_order(order: &impl Wire) -> Option<Vec<u8>> {
    encoded(order).ok().filter(|bytes| bytes.len() <= MAX_ORDER)
}

#[cfg(test)]
mod tests {
    use crate::uru::vault::ask::decoded;

    use super::*;

    fn survives<W: Wire>(seed: u64) {
        let value = W::sample(&mut Sampler::new(seed));
        assert_eq!(decoded::<W>(&encoded(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn orders_and_reports_survive() {
        for seed in 0..200 {
            survives::<AgeOrder>(seed);
            survives::<AgeReport>(seed);
        }
    }

    #[test]
    fn orders_that_no_frame_can_hold_are_refused() {
        let announce = |length| AgeOrder::Announce {
            instance: Uuid::ZERO,
            sender: "Shard".to_owned(),
            text: "x".repeat(length),
        };
        assert!(encoded_order(&announce(4_000)).is_some());
        assert!(encoded_order(&announce(MAX_ORDER)).is_none());
    }
}
