//! The blue spiral: seven cloths, touched in the right order, open a door.

/// Messages from a member.
pub mod client {
    use worldwire_core::messages;

    messages! {
        /// Messages of the blue spiral from a member.
        pub enum ClientMessage: "BlueSpiral", Client;

        /// The door was touched: starts or restarts the game.
        3 StartGame {}

        /// A cloth was touched.
        4 HitCloth {
            /// The cloth, 0 to 6.
            cloth "cloth": u8,
        }
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::messages;

    use crate::games::Array;
    use crate::types::Bool8;

    messages! {
        /// Messages of the blue spiral from the server.
        pub enum ServerMessage: "BlueSpiral", Server;

        /// The order of the cloths for the new game. Sent to all members.
        4 ClothOrder {
            /// A permutation of 0 to 6; the first one must be touched first.
            order "order": Array<u8, 7>,
        }

        /// The right cloth was touched. Sent to the owner.
        5 SuccessfulHit {}

        /// The last cloth was touched. Sent to the owner, whose client opens the door.
        6 GameWon {}

        /// The game is over, because of a wrong cloth, the time limit, a restart, or the end of a
        /// game that was won. Sent to all members.
        7 GameOver {}

        /// The game has started.
        8 GameStarted {
            /// False, sent to all members: show the order. True, sent to the owner 15 seconds
            /// later: let the door spin.
            start_spin "startSpin": Bool8,
        }
    }
}
