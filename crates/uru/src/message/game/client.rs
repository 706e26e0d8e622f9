//! What a client says on a game connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{ClassIndex, TransId, Uuid};

messages! {
    /// What a client says on a game connection.
    pub enum ClientMessage<'a>: "game", Client;
    reserved {}

    /// Keep-alive: sent right after setup and every 30 seconds. The server answers at once with all
    /// fields unchanged.
    0 PingRequest {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Asks to be let into an age. Only pings may come before it.
    1 JoinAgeRequest {
        trans_id "transId": TransId,
        /// The host of the age on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
        /// The player's number (KI number).
        player_id "playerId": u32,
    }

    /// A net message for the age: the heart of the game.
    2 PropagateBuffer<'a> {
        /// The class index of the net message; the first two bytes of the buffer repeat it.
        type_ "type": ClassIndex,
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }

    /// For the game manager, which today's servers do not have.
    3 GameMgrMsg<'a> {
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }
}
