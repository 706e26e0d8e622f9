//! What a server says without being asked.

use tokio::sync::mpsc;
use worldwire_uru::frame::Message;
use worldwire_uru::message::Caps;
use worldwire_uru::message::auth::server::ServerMessage as Auth;
use worldwire_uru::message::file::server::ServerMessage as File;
use worldwire_uru::message::game::server::ServerMessage as Game;
use worldwire_uru::types::{Ipv4, NetError, Uuid};

use super::game::NetBuffer;

/// What a server says without being asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notification {
    /// A node was saved, by whomever.
    NodeChanged {
        /// The node.
        node_id: u32,
        /// Names this change.
        revision_id: Uuid,
    },
    /// A node is gone.
    NodeDeleted {
        /// The node.
        node_id: u32,
    },
    /// A node was put below another one.
    NodeAdded {
        /// The node above.
        parent_id: u32,
        /// The node below.
        child_id: u32,
        /// Whose reference it is.
        owner_id: u32,
    },
    /// A node was taken away from below another one.
    NodeRemoved {
        /// The node above.
        parent_id: u32,
        /// The node below.
        child_id: u32,
    },
    /// What the server can do.
    ServerCaps(Caps),
    /// Where to come back to after a lost connection, and with which token.
    ServerAddr {
        /// The server to come back to.
        address: Ipv4,
        /// For the connect packet.
        token: Uuid,
    },
    /// There is a new build; file servers say which.
    NewBuild(Option<u32>),
    /// What happens in the age; a [`Scene`](super::Scene) makes sense of it.
    NetMessage(NetBuffer),
    /// The server throws the client out; the connection is about to end.
    KickedOff(NetError),
}

impl Notification {
    /// What a message tells, if it is a notification.
    pub(super) fn of(message: &Message<'_>) -> Option<Self> {
        Some(match message {
            Message::AuthServer(Auth::VaultNodeChanged(changed)) => {
                Self::NodeChanged { node_id: changed.node_id, revision_id: changed.revision_id }
            }
            Message::AuthServer(Auth::VaultNodeDeleted(deleted)) => {
                Self::NodeDeleted { node_id: deleted.node_id }
            }
            Message::AuthServer(Auth::VaultNodeAdded(added)) => Self::NodeAdded {
                parent_id: added.parent_id,
                child_id: added.child_id,
                owner_id: added.owner_id,
            },
            Message::AuthServer(Auth::VaultNodeRemoved(removed)) => {
                Self::NodeRemoved { parent_id: removed.parent_id, child_id: removed.child_id }
            }
            Message::AuthServer(Auth::ServerCaps(caps)) => {
                Self::ServerCaps(caps.caps.decode().ok()?)
            }
            Message::AuthServer(Auth::ServerAddr(address)) => {
                Self::ServerAddr { address: address.server_address, token: address.token }
            }
            Message::AuthServer(Auth::NotifyNewBuild(_)) => Self::NewBuild(None),
            Message::FileServer(File::BuildIdUpdate(update)) => {
                Self::NewBuild(Some(update.build_id))
            }
            Message::GameServer(Game::PropagateBuffer(message)) => {
                let (class, bytes) = (message.type_, message.buffer.to_vec());
                Self::NetMessage(NetBuffer { class, bytes })
            }
            Message::AuthServer(Auth::KickedOff(kicked)) => Self::KickedOff(kicked.reason),
            _ => return None,
        })
    }
}

/// The notifications of a connection, in order. Whoever does not want them drops this; whoever
/// keeps it must take them: with [`MAX_WAITING`](Self::MAX_WAITING) of them waiting, one more
/// ends the connection.
#[derive(Debug)]
pub struct Notifications(pub(super) mpsc::Receiver<Notification>);

impl Notifications {
    /// How many may wait.
    pub const MAX_WAITING: usize = 4096;

    /// Waits for the next one; none when the connection is over. Nothing is lost when the future
    /// is dropped.
    pub async fn next(&mut self) -> Option<Notification> {
        self.0.recv().await
    }

    /// The next one, if there is one already.
    pub fn try_next(&mut self) -> Option<Notification> {
        self.0.try_recv().ok()
    }
}
