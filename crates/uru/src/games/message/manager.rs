//! Messages to and from the game manager itself, through which players create and join games.

use worldwire_core::{wire_enum, wire_flags};

wire_flags! {
    /// How a game is created or joined.
    pub struct GameOptions(u32) {
        /// Anybody may join.
        Public = 1,
        /// Every member may invite.
        AnyoneMayInvite = 2,
        /// The game is found by its type and table, and created if missing.
        Common = 4,
        /// The player only watches.
        Observer = 8,
    }
}

wire_enum! {
    /// Whether the player joined a game.
    pub enum GameResult(i32) {
        /// The player joined.
        Success = 0,
        /// There is no such game.
        NotExist = 1,
        /// The game cannot be created.
        InitFailed = 2,
        /// The game has started.
        GameStarted = 3,
        /// The game is over.
        GameOver = 4,
        /// The game is full.
        MaxPlayers = 5,
        /// The player is already in the game.
        AlreadyJoined = 6,
        /// The player was not invited.
        NoInvite = 7,
    }
}

/// Messages from a player to the game manager.
pub mod client {
    use worldwire_core::messages;

    use crate::games::message::{CreateRequest, JoinRequest};

    messages! {
        /// Messages from a player to the game manager.
        pub enum ClientMessage<'a>: "Manager", Client;

        /// Creates a game and joins it. The reply is `GameInstance`.
        0 CreateGame<'a> {
            ..request: CreateRequest<'a>,
        }

        /// Joins a game. The reply is `GameInstance`.
        1 JoinGame<'a> {
            ..request: JoinRequest<'a>,
        }
    }
}

/// Messages from the game manager.
pub mod server {
    use worldwire_core::messages;

    use super::GameResult;
    use crate::types::Uuid;

    messages! {
        /// Messages from the game manager.
        pub enum ServerMessage: "Manager", Server;

        /// The reply to `CreateGame` and `JoinGame`: the only message from the server with a
        /// transaction number, and the first one about a game.
        0 GameInstance {
            /// The result.
            result "result": GameResult,
            /// The owner of the game; 0 after a failure.
            owner "owner": u32,
            /// The type of the game.
            game_type "gameType": Uuid,
            /// The ID of the game; 0 after a failure.
            game_id "gameId": u32,
        }

        /// An invitation. Never sent, because current clients mistake it for the end of the
        /// connection.
        1 InviteReceived {
            /// The player who invites.
            inviter "inviter": u32,
            /// The type of the game.
            game_type "gameType": Uuid,
            /// The ID of the game.
            game_id "gameId": u32,
        }

        /// A withdrawn invitation. Never sent.
        2 InviteRevoked {
            /// The player who invited.
            inviter "inviter": u32,
            /// The type of the game.
            game_type "gameType": Uuid,
            /// The ID of the game.
            game_id "gameId": u32,
        }
    }
}
