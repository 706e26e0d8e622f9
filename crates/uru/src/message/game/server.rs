//! What a server says on a game connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{ClassIndex, NetError, TransId};

messages! {
    /// What a server says on a game connection.
    pub enum ServerMessage<'a>: "game", Server;
    reserved {}

    /// The answer to a ping, with all fields of the request.
    0 PingReply {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Whether the client is let in.
    1 JoinAgeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
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
