//! What a server says on a gatekeeper connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{Str, TransId};

messages! {
    /// What a server says on a gatekeeper connection.
    pub enum ServerMessage<'a>: "gatekeeper", Server;
    reserved {}

    /// The answer to a ping, with all fields of the request.
    0 PingReply<'a> {
        trans_id "transId": TransId,
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        /// Anything; comes back unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// Where the file server is.
    1 FileSrvIpAddressReply<'a> {
        trans_id "transId": TransId,
        /// An IPv4 address without a port, or a name with an optional `:port`.
        address "address": Str<'a, 24>,
    }

    /// Where the auth server is.
    2 AuthSrvIpAddressReply<'a> {
        trans_id "transId": TransId,
        /// An IPv4 address without a port, or a name with an optional `:port`.
        address "address": Str<'a, 24>,
    }
}
