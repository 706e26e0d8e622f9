//! Messages from the server on a game connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{ClassIndex, NetError, TransId};

messages! {
    /// Messages from the server on a game connection.
    pub enum ServerMessage<'a>: "game", Server;
    reserved {}

    /// The reply to a ping, repeating all its fields.
    0 PingReply {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Whether the client may join.
    1 JoinAgeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// A net message, which carries all activity in the age.
    2 PropagateBuffer<'a> {
        /// The class index of the net message; the first two bytes of the buffer repeat it.
        type_ "type": ClassIndex,
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }

    /// A message from the game manager or from one of its games.
    3 GameMgrMsg<'a> {
        /// The message: its layout depends on the game.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }
}
