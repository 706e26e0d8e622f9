//! Game connections: no ages are hosted, so every join is refused.

use std::net::SocketAddr;

use worldwire_core::Messages as _;
use worldwire_core::connection::Sender as _;
use worldwire_net::Flow;
use worldwire_uru::connection::Sender;
use worldwire_uru::message::game::client::ClientMessage;
use worldwire_uru::message::game::server::{JoinAgeReply, ServerMessage};
use worldwire_uru::types::NetError;

use super::figures::Figures;
use super::sent;

/// Refuses to let a client join: the host is not known. Before a join nothing but that, and pings,
/// is allowed.
pub(super) fn answer(
    message: &ClientMessage<'_>,
    address: SocketAddr,
    figures: &Figures,
    sender: &mut Sender,
) -> Flow {
    match message {
        ClientMessage::PingRequest(_) => Flow::Continue(()),
        ClientMessage::JoinAgeRequest(request) => {
            if let Some(count) = figures.turned_away.count() {
                let player = request.player_id;
                tracing::info!(%address, player, count, "joins refused: no age is hosted");
            }
            let (trans_id, result) = (request.trans_id, NetError::AgeNotFound);
            let reply: ServerMessage<'_> = JoinAgeReply { trans_id, result }.into();
            sent(sender.send(&reply.into()))
        }
        message => {
            let name = message.name();
            if let Some(count) = figures.turned_away.count() {
                tracing::warn!(%address, name, count, "closed: a message before the join");
            }
            Flow::Break(())
        }
    }
}
