//! Tic-tac-toe, for one or two players.

/// Messages from a member.
pub mod client {
    use worldwire_core::messages;

    messages! {
        /// Messages of tic-tac-toe from a member.
        pub enum ClientMessage: "TicTacToe", Client;

        /// Marks a cell.
        3 MakeMove {
            /// The row, 0 to 2.
            row "row": u8,
            /// The column, 0 to 2.
            col "col": u8,
        }
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::{messages, wire_enum};

    use crate::types::Bool8;

    wire_enum! {
        /// How a game ended.
        pub enum TicTacToeResult(u32) {
            /// A player won.
            Winner = 0,
            /// All cells are marked.
            Tied = 1,
            /// The other player left.
            OtherLeft = 2,
            /// The server failed.
            Error = 3,
        }
    }

    messages! {
        /// Messages of tic-tac-toe from the server.
        pub enum ServerMessage: "TicTacToe", Server;

        /// The game has started.
        4 GameStarted {
            /// Whether the receiver moves first.
            your_turn "yourTurn": Bool8,
        }

        /// The game is over and no longer exists.
        5 GameOver {
            /// The result.
            result "result": TicTacToeResult,
            /// The winner; 0 if nobody won.
            winner "winner": u32,
        }

        /// A cell was marked. Sent to both players.
        6 MoveMade {
            /// The player who marked it; 0 for the server.
            player "player": u32,
            /// The row, 0 to 2.
            row "row": u8,
            /// The column, 0 to 2.
            col "col": u8,
        }
    }
}
