//! What a client says on a gatekeeper connection.

use crate::types::TransId;
use worldwire_core::{Bytes32, messages};

messages! {
    /// What a client says on a gatekeeper connection.
    pub enum ClientMessage<'a>: "gatekeeper", Client;
    reserved {}

    /// Keep-alive: sent right after setup and every 30 seconds. The server answers at once with all
    /// fields unchanged.
    ///
    /// The declared order of the two numbers is this one, but the H'uru client writes its clock first
    /// and then the transaction. Since both come back in place, nobody notices.
    0 PingRequest<'a> {
        trans_id "transId": TransId,
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        /// Anything; comes back unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// Asks where the file server is. The launcher always does.
    1 FileSrvIpAddressRequest {
        trans_id "transId": TransId,
        /// 1 from the launcher; servers ignore it.
        is_patcher "isPatcher": u8,
    }

    /// Asks where the auth server is.
    2 AuthSrvIpAddressRequest {
        trans_id "transId": TransId,
    }
}
