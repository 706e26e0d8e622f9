//! Messages that a server sends unprompted.

use tokio::sync::mpsc;
use worldwire_uru::frame::Message;
use worldwire_uru::message::Caps;
use worldwire_uru::message::auth::server::ServerMessage as Auth;
use worldwire_uru::message::file::server::ServerMessage as File;
use worldwire_uru::message::game::server::ServerMessage as Game;
use worldwire_uru::types::{Ipv4, NetError, Uuid};

use super::net_buffer::NetBuffer;

/// A message that a server sends unprompted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notification {
    /// A client saved a node; it may have been this client.
    NodeChanged {
        /// The node.
        node_id: u32,
        /// The ID of the change.
        revision_id: Uuid,
    },
    /// A node was deleted.
    NodeDeleted {
        /// The node.
        node_id: u32,
    },
    /// A node was added below another node.
    NodeAdded {
        /// The upper node.
        parent_id: u32,
        /// The lower node.
        child_id: u32,
        /// The owner of the reference.
        owner_id: u32,
    },
    /// A node was removed from another node.
    NodeRemoved {
        /// The upper node.
        parent_id: u32,
        /// The lower node.
        child_id: u32,
    },
    /// The server's capabilities.
    ServerCaps(Caps),
    /// How to reconnect after losing the connection.
    ServerAddr {
        /// The server to reconnect to.
        address: Ipv4,
        /// The token for the connect packet.
        token: Uuid,
    },
    /// A new build is available; file servers send its number.
    NewBuild(Option<u32>),
    /// A message from the age; a [`Scene`](super::Scene) interprets it.
    NetMessage(NetBuffer),
    /// A message from the game manager or from a game;
    /// [`PlayerGames`](super::games::PlayerGames) interprets it.
    GameManager(Vec<u8>),
    /// The server is kicking this client off and will close the connection.
    KickedOff(NetError),
}

impl Notification {
    /// Converts a message to a notification, if it is one.
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
            Message::GameServer(Game::GameMgrMsg(message)) => {
                Self::GameManager(message.buffer.to_vec())
            }
            Message::AuthServer(Auth::KickedOff(kicked)) => Self::KickedOff(kicked.reason),
            _ => return None,
        })
    }
}

/// A connection's notifications, in order. If you do not need them, drop this; otherwise, read
/// them: the connection ends when more than [`MAX_WAITING`](Self::MAX_WAITING) are queued.
#[derive(Debug)]
pub struct Notifications(pub(super) mpsc::Receiver<Notification>);

impl Notifications {
    /// The maximum number of queued notifications.
    pub const MAX_WAITING: usize = 4096;

    /// Waits for the next notification; `None` when the connection has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Notification> {
        self.0.recv().await
    }

    /// The next notification, if one is queued.
    pub fn try_next(&mut self) -> Option<Notification> {
        self.0.try_recv().ok()
    }
}
