//! Messages from the client on a game connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{ClassIndex, TransId, Uuid};

messages! {
    /// Messages from the client on a game connection.
    pub enum ClientMessage<'a>: "game", Client;
    reserved {}

    /// Keep-alive, sent right after setup and then every 30 seconds. The server answers immediately
    /// with all fields unchanged.
    0 PingRequest {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Requests to join an age. Only pings may precede it.
    1 JoinAgeRequest {
        trans_id "transId": TransId,
        /// The ID of the age's host on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The account.
        account_id "accountId": Uuid,
        /// The player's KI number.
        player_id "playerId": u32,
    }

    /// A net message, which carries all activity in the age.
    2 PropagateBuffer<'a> {
        /// The class index of the net message; the first two bytes of the buffer repeat it.
        type_ "type": ClassIndex,
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }

    /// A message to the game manager or to one of its games.
    3 GameMgrMsg<'a> {
        /// The message. Servers drop messages of more than 2048 bytes.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }
}
