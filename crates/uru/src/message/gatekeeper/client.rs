//! Messages from the client on a gatekeeper connection.

use crate::types::TransId;
use worldwire_core::{Bytes32, messages};

messages! {
    /// Messages from the client on a gatekeeper connection.
    pub enum ClientMessage<'a>: "gatekeeper", Client;
    reserved {}

    /// Keep-alive, sent right after setup and then every 30 seconds. The server answers immediately
    /// with all fields unchanged.
    ///
    /// This is the declared order of the two numbers. The H'uru client writes its clock before the
    /// transaction number, which goes unnoticed because servers return both numbers in their
    /// original places.
    0 PingRequest<'a> {
        trans_id "transId": TransId,
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        /// Arbitrary data, returned unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// Requests the address of the file server. Launchers always request it.
    1 FileSrvIpAddressRequest {
        trans_id "transId": TransId,
        /// 1 from the launcher; servers ignore it.
        is_patcher "isPatcher": u8,
    }

    /// Requests the address of the auth server.
    2 AuthSrvIpAddressRequest {
        trans_id "transId": TransId,
    }
}
