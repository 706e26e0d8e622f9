//! The gatekeeper, which tells clients the addresses of the other services.

use worldwire_core::connection::Sender as _;
use worldwire_net::Flow;
use worldwire_uru::connection::Sender;
use worldwire_uru::message::gatekeeper::client::ClientMessage;
use worldwire_uru::message::gatekeeper::server::{
    AuthSrvIpAddressReply, FileSrvIpAddressReply, ServerMessage,
};

use super::sent;

/// Replies to a request with the shard's address, which all services share.
pub(super) fn answer(message: &ClientMessage<'_>, address: &str, sender: &mut Sender) -> Flow {
    let reply: ServerMessage<'_> = match message {
        ClientMessage::PingRequest(_) => return Flow::Continue(()),
        ClientMessage::FileSrvIpAddressRequest(request) => {
            FileSrvIpAddressReply { trans_id: request.trans_id, address: address.into() }.into()
        }
        ClientMessage::AuthSrvIpAddressRequest(request) => {
            AuthSrvIpAddressReply { trans_id: request.trans_id, address: address.into() }.into()
        }
    };
    sent(sender.send(&reply.into()))
}
