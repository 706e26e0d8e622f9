//! Pings and their replies, which the machine can send automatically.

use worldwire_core::Field;

use crate::frame::{Message, Service, number};
use crate::message::{auth, file, game, gatekeeper};
use crate::types::TransId;

/// The reply to a ping: all fields unchanged, in the order in which the client wrote them.
pub(super) fn answer(message: &Message<'_>) -> Option<Message<'static>> {
    Some(match message {
        Message::GatekeeperClient(gatekeeper::client::ClientMessage::PingRequest(ping)) => {
            gatekeeper::server::ServerMessage::PingReply(gatekeeper::server::PingReply {
                trans_id: ping.trans_id,
                ping_time_ms: ping.ping_time_ms,
                payload: ping.payload.clone().into_owned(),
            })
            .into()
        }
        Message::AuthClient(auth::client::ClientMessage::PingRequest(ping)) => {
            auth::server::ServerMessage::PingReply(auth::server::PingReply {
                ping_time_ms: ping.ping_time_ms,
                trans_id: ping.trans_id,
                payload: ping.payload.clone().into_owned(),
            })
            .into()
        }
        Message::GameClient(game::client::ClientMessage::PingRequest(ping)) => {
            let ping_time_ms = ping.ping_time_ms;
            game::server::ServerMessage::PingReply(game::server::PingReply { ping_time_ms }).into()
        }
        Message::FileClient(file::client::ClientMessage::PingRequest(ping)) => {
            let ping_time_ms = ping.ping_time_ms;
            file::server::ServerMessage::PingReply(file::server::PingReply { ping_time_ms }).into()
        }
        _ => return None,
    })
}

/// Whether a message is a ping or a reply to one.
pub(super) fn is_ping(service: Service, bytes: &[u8]) -> bool {
    /// This applies to all services and both sides.
    const NUMBER: u32 = 0;
    number(service, bytes) == Some(NUMBER)
}

/// The ping with which a client stays connected, with its clock in milliseconds.
pub(super) fn ping(service: Service, ping_time_ms: u32) -> Message<'static> {
    match service {
        // The H'uru client writes its clock into the field declared as the transaction ID.
        Service::Gatekeeper => {
            gatekeeper::client::ClientMessage::PingRequest(gatekeeper::client::PingRequest {
                trans_id: TransId(ping_time_ms),
                ping_time_ms: 0,
                payload: Default::default(),
            })
            .into()
        }
        Service::Auth => auth::client::ClientMessage::PingRequest(auth::client::PingRequest {
            ping_time_ms,
            trans_id: TransId::default(),
            payload: Default::default(),
        })
        .into(),
        Service::Game => {
            game::client::ClientMessage::PingRequest(game::client::PingRequest { ping_time_ms })
                .into()
        }
        Service::File => {
            file::client::ClientMessage::PingRequest(file::client::PingRequest { ping_time_ms })
                .into()
        }
    }
}
