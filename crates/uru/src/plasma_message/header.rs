//! The header of all Plasma messages.

use worldwire_core::wire_flags;

use crate::types::{Double, Key, List};
use crate::walk::{walk_plain, walked_record};

wire_flags! {
    /// How a Plasma message is propagated.
    ///
    /// A receiver sets `LocalPropagate` if `NetPropagate` is set. Clients drop messages that have
    /// neither, so messages created by a server need one of them.
    pub struct BroadcastFlags(u32) {
        /// To objects registered for its type.
        ByType = 0x1,
        /// To the receivers' children.
        PropagateToChildren = 0x4,
        /// To objects registered for exactly its type.
        ByExactType = 0x8,
        /// To the receivers' modifiers.
        PropagateToModifiers = 0x10,
        /// The registrations are forgotten after sending.
        ClearAfterBCast = 0x20,
        /// Over the network.
        NetPropagate = 0x40,
        /// Set after the message was sent over the network.
        NetSent = 0x80,
        /// To players in the relevance regions; the net message then has `UseRelevanceRegions` set.
        NetUseRelevanceRegions = 0x100,
        /// Over the network, even from an object that is not propagated.
        NetForce = 0x200,
        /// The message came over the network; set by the receiving client.
        NetNonLocal = 0x400,
        /// On the local client.
        LocalPropagate = 0x800,
        /// Watched by a debugger.
        MsgWatch = 0x1000,
        /// Starts a cascade of messages.
        NetStartCascade = 0x2000,
        /// Also to players in other ages; the net message has `InterAgeRouting` set.
        NetAllowInterAge = 0x4000,
        /// May be lost.
        NetSendUnreliable = 0x8000,
        /// To all players, from customer service; the net message has `RouteToAllPlayers` set.
        CCRSendToAllPlayers = 0x1_0000,
        /// The message's objects were created by another client.
        NetCreatedRemotely = 0x2_0000,
    }
}

walk_plain! {
    BroadcastFlags;
}

walked_record! {
    /// The header of all Plasma messages.
    pub struct MessageHeader<'a> {
        /// The sending object.
        sender "sender": Key<'a>,
        /// The receiving objects.
        receivers "receivers": List<u32, Key<'a>>,
        /// The delivery time in the sending client's seconds; 0 in practice.
        timestamp "timestamp": Double,
        /// How the message is propagated.
        bcast_flags "bcastFlags": BroadcastFlags,
    }
}
