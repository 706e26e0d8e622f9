//! What all Plasma messages begin with.

use worldwire_core::wire_flags;

use crate::types::{Double, Key, List};
use crate::walk::{walk_plain, walked_record};

wire_flags! {
    /// How a Plasma message is delivered.
    ///
    /// A client drops what arrives without `LocalPropagate` or `NetPropagate`, which makes the
    /// receiver set the former. So messages that a server makes need one of them.
    pub struct BroadcastFlags(u32) {
        /// To whom asked for its type.
        ByType = 0x1,
        /// To the receivers' children.
        PropagateToChildren = 0x4,
        /// To whom asked for exactly its type.
        ByExactType = 0x8,
        /// To the receivers' modifiers.
        PropagateToModifiers = 0x10,
        /// Forget who asked, after it was sent.
        ClearAfterBCast = 0x20,
        /// Over the network.
        NetPropagate = 0x40,
        /// It was sent over the network.
        NetSent = 0x80,
        /// To those in the relevance regions; the net message has its bit `UseRelevanceRegions`.
        NetUseRelevanceRegions = 0x100,
        /// Over the network, even from an object that is not propagated.
        NetForce = 0x200,
        /// It came over the network: the receiver's client sets it.
        NetNonLocal = 0x400,
        /// On this client.
        LocalPropagate = 0x800,
        /// Tell a debugger.
        MsgWatch = 0x1000,
        /// It begins a cascade of messages.
        NetStartCascade = 0x2000,
        /// Also to players in other ages; the net message has its bit `InterAgeRouting`.
        NetAllowInterAge = 0x4000,
        /// It may be lost.
        NetSendUnreliable = 0x8000,
        /// To all players, by customer service; the net message has its bit `RouteToAllPlayers`.
        CCRSendToAllPlayers = 0x1_0000,
        /// Its objects were made by another client.
        NetCreatedRemotely = 0x2_0000,
    }
}

walk_plain! {
    BroadcastFlags;
}

walked_record! {
    /// What all Plasma messages begin with.
    pub struct MessageHeader<'a> {
        /// The object that sent it.
        sender "sender": Key<'a>,
        /// The objects that it is for.
        receivers "receivers": List<u32, Key<'a>>,
        /// When it is due, in the seconds of the sending client; 0 on the wire in practice.
        timestamp "timestamp": Double,
        /// How it is delivered.
        bcast_flags "bcastFlags": BroadcastFlags,
    }
}
