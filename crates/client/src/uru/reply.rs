//! Matches messages from the server with requests.

use worldwire_uru::frame::Message;
use worldwire_uru::message::{auth, file, game, gatekeeper};
use worldwire_uru::types::NetError;

use auth::server::ServerMessage as Auth;
use file::server::ServerMessage as File;
use game::server::ServerMessage as Game;
use gatekeeper::server::ServerMessage as Gatekeeper;

/// The reply that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A reply with this transaction number.
    Transaction(u32),
    /// The echo of a ping.
    Ping(u32),
    /// The only kind of reply without a transaction number.
    Register,
}

/// The bit that distinguishes pings that a caller requested from keep-alive pings, which carry the
/// time in milliseconds in the same field.
pub(super) const OWN_PING: u32 = 1 << 31;

macro_rules! replies {
    ($($service:ident: $($name:ident)*;)*) => {
        /// The request that a message answers; `None` for notifications.
        pub(super) fn key(message: &Message<'_>) -> Option<Key> {
            Some(match message {
                Message::AuthServer(Auth::PingReply(pong)) => Key::Ping(pong.trans_id.0),
                Message::GatekeeperServer(Gatekeeper::PingReply(pong)) => {
                    Key::Ping(pong.trans_id.0)
                }
                Message::FileServer(File::PingReply(pong)) => Key::Ping(pong.ping_time_ms),
                Message::GameServer(Game::PingReply(pong)) => Key::Ping(pong.ping_time_ms),
                Message::AuthServer(Auth::ClientRegisterReply(_)) => Key::Register,
                Message::AuthServer(Auth::AcctPlayerInfo(info)) => {
                    Key::Transaction(info.trans_id.0)
                }
                Message::GatekeeperServer(Gatekeeper::FileSrvIpAddressReply(reply)) => {
                    Key::Transaction(reply.trans_id.0)
                }
                Message::GatekeeperServer(Gatekeeper::AuthSrvIpAddressReply(reply)) => {
                    Key::Transaction(reply.trans_id.0)
                }
                $($(replies!(@pattern $service $name reply) => {
                    Key::Transaction(reply.trans_id.0)
                })*)*
                _ => return None,
            })
        }

        /// The result in a message. Servers confuse the message numbers of replies that contain
        /// only a result, and clients match replies by their transaction alone.
        pub(super) fn result(message: &Message<'_>) -> Option<NetError> {
            match message {
                $($(replies!(@pattern $service $name reply) => Some(reply.result),)*)*
                _ => None,
            }
        }
    };
    (@pattern Auth $name:ident $reply:ident) => { Message::AuthServer(Auth::$name($reply)) };
    (@pattern File $name:ident $reply:ident) => { Message::FileServer(File::$name($reply)) };
    (@pattern Game $name:ident $reply:ident) => { Message::GameServer(Game::$name($reply)) };
}

replies! {
    Auth:
        AcctLoginReply AcctSetPlayerReply AcctCreateReply AcctChangePasswordReply
        AcctSetRolesReply AcctSetBillingTypeReply AcctActivateReply AcctCreateFromKeyReply
        PlayerCreateReply PlayerDeleteReply UpgradeVisitorReply SetPlayerBanStatusReply
        ChangePlayerNameReply SendFriendInviteReply VaultNodeCreated VaultNodeFetched
        VaultNodeRefsFetched VaultInitAgeReply VaultNodeFindReply VaultSaveNodeReply
        VaultAddNodeReply VaultRemoveNodeReply AgeReply FileListReply FileDownloadChunk
        PublicAgeList ScoreCreateReply ScoreDeleteReply ScoreGetScoresReply ScoreAddPointsReply
        ScoreTransferPointsReply ScoreSetPointsReply ScoreGetRanksReply AccountExistsReply
        AgeReplyEx ScoreGetHighScoresReply;
    File: BuildIdReply ManifestReply FileDownloadReply;
    Game: JoinAgeReply;
}

/// Extracts the reply of one type from a message.
macro_rules! reply {
    ($request:expr, $message:expr, $service:ident, $part:ident :: $name:ident) => {
        match $message {
            worldwire_uru::frame::Message::$service(
                worldwire_uru::message::$part::server::ServerMessage::$name(reply),
            ) => Ok(reply),
            other => {
                Err($crate::uru::ClientError::Unexpected { request: $request, found: other.name() })
            }
        }
    };
}
pub(super) use reply;

/// Sends a request to a service, waits for its only reply, and extracts it. A refusal is an error.
macro_rules! ask {
    ($link:expr, auth::$($message:tt)*) => { ask!(@ $link, AuthServer auth $($message)*) };
    ($link:expr, file::$($message:tt)*) => { ask!(@ $link, FileServer file $($message)*) };
    ($link:expr, gatekeeper::$($message:tt)*) => {
        ask!(@ $link, GatekeeperServer gatekeeper $($message)*)
    };
    (@ $link:expr, $service:ident $part:ident $Request:ident {
        $($fields:tt)*
    } => $Reply:ident) => {{
        use worldwire_uru::message::$part::client;
        let request = |trans_id| {
            let request = client::$Request { trans_id, $($fields)* };
            worldwire_uru::frame::Message::from(client::ClientMessage::from(request)).into_owned()
        };
        let (request, reply) = $link.granted(request).await?;
        $crate::uru::reply::reply!(request, reply, $service, $part::$Reply)
    }};
}
pub(super) use ask;
