//! Messages common to all games, which have the lowest numbers on each side.

/// Messages from a member of any game.
pub mod client {
    use worldwire_core::messages;

    messages! {
        /// Messages from a member of any game.
        pub enum ClientMessage: "AnyGame", Client;

        /// Leaves the game. There is no reply.
        0 LeaveGame {}

        /// Invites a player. No client can be invited, so the server replies with `InviteFailed`.
        1 Invite {
            /// The player to invite.
            player "player": u32,
        }

        /// Withdraws an invitation. Ignored.
        2 Uninvite {
            /// The invited player.
            player "player": u32,
        }
    }
}

/// Messages from the server in any game.
pub mod server {
    use worldwire_core::{messages, wire_enum};

    wire_enum! {
        /// Why a player could not be invited.
        pub enum InviteError(u32) {
            /// No error.
            None = 0,
            /// The sender is not the owner.
            NotOwner = 1,
            /// The player was already invited.
            AlreadyInvited = 2,
            /// The player is already in the game.
            AlreadyJoined = 3,
            /// The game has started.
            GameStarted = 4,
            /// The game is over.
            GameOver = 5,
            /// The game is full.
            GameFull = 6,
            /// Nobody can join now.
            NoJoin = 7,
        }
    }

    messages! {
        /// Messages from the server in any game.
        pub enum ServerMessage: "AnyGame", Server;

        /// A player joined. Sent to every member, including the new one: its client acts as a
        /// member only after this message.
        0 PlayerJoined {
            /// The new member.
            player "player": u32,
        }

        /// A player left. Sent to the remaining members.
        1 PlayerLeft {
            /// The former member.
            player "player": u32,
        }

        /// The reply to an invitation.
        2 InviteFailed {
            /// The player who was not invited.
            invitee "invitee": u32,
            /// The failed operation. Unverified: 1 stands for an invitation, like the number of
            /// `Invite`; no source shows this message on the wire.
            operation "operation": u32,
            /// The reason.
            error "error": InviteError,
        }

        /// The owner of the game. Sent to a player who joins, and to all members when it changes.
        3 OwnerChange {
            /// The owner.
            owner "owner": u32,
        }
    }
}
