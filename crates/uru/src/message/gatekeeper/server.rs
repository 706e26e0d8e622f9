//! Messages from the server on a gatekeeper connection.

use worldwire_core::{Bytes32, messages};

use crate::types::{Str, TransId};

messages! {
    /// Messages from the server on a gatekeeper connection.
    pub enum ServerMessage<'a>: "gatekeeper", Server;
    reserved {}

    /// The reply to a ping, repeating all its fields.
    0 PingReply<'a> {
        trans_id "transId": TransId,
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        /// Arbitrary data, returned unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// The address of the file server.
    1 FileSrvIpAddressReply<'a> {
        trans_id "transId": TransId,
        /// An IPv4 address without a port, or a name with an optional `:port`.
        address "address": Str<'a, 24>,
    }

    /// The address of the auth server.
    2 AuthSrvIpAddressReply<'a> {
        trans_id "transId": TransId,
        /// An IPv4 address without a port, or a name with an optional `:port`.
        address "address": Str<'a, 24>,
    }
}
