//! Heek (Ayoheek): rock, paper, scissors at a table with five seats.

use worldwire_core::wire_enum;

/// The number of UTF-16 units of an avatar's name, with the terminator.
pub const NAME_UNITS: usize = 256;

wire_enum! {
    /// A player's choice, which is also a colour of lights.
    pub enum HeekChoice(u8) {
        /// Beats scissors; blue lights.
        Rock = 0,
        /// Beats rock; green lights.
        Paper = 1,
        /// Beats paper; red lights.
        Scissors = 2,
    }
}

wire_enum! {
    /// A sequence that the owner's client plays.
    pub enum HeekSequence(u8) {
        /// The end of the countdown.
        Countdown = 0,
        /// The animation of the choices.
        Choice = 1,
        /// The animation of the winner.
        GameWin = 2,
    }
}

wire_enum! {
    /// The state of a light.
    pub enum HeekLight(u8) {
        /// The light is on.
        On = 0,
        /// The light is off.
        Off = 1,
        /// The light flashes.
        Flash = 2,
    }
}

wire_enum! {
    /// The state of the countdown.
    pub enum HeekCountdown(u8) {
        /// The countdown starts.
        Start = 0,
        /// The countdown stops, because everybody has chosen or the time is up.
        Stop = 1,
        /// The countdown waits for the next round.
        Idle = 2,
    }
}

/// Messages from a member.
pub mod client {
    use worldwire_core::messages;

    use super::{HeekChoice, HeekSequence, NAME_UNITS};
    use crate::games::GameText;

    messages! {
        /// Messages of Heek from a member.
        pub enum ClientMessage<'a>: "Heek", Client;

        /// Sits down.
        3 PlayGame<'a> {
            /// The seat, 0 to 4.
            position "position": u8,
            /// The player's points, which the client stores.
            points "points": u32,
            /// The avatar's name.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// Stands up without leaving the game.
        4 StandUp {}

        /// Chooses; another choice during the same countdown replaces it.
        5 Choose {
            /// The choice.
            choice "choice": HeekChoice,
        }

        /// A sequence has ended. Only the owner sends it.
        6 SeqFinished {
            /// The sequence.
            sequence "sequence": HeekSequence,
        }
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::messages;

    use super::{HeekChoice, HeekCountdown, HeekLight, NAME_UNITS};
    use crate::games::{Array, GameText};
    use crate::types::Bool8;

    messages! {
        /// Messages of Heek from the server.
        pub enum ServerMessage<'a>: "Heek", Server;

        /// The reply to a request to sit down.
        4 PlayGame {
            /// Whether the player may sit there.
            playing "playing": Bool8,
            /// Whether the player is the only one at the table.
            single "single": Bool8,
            /// Whether the buttons are open.
            enable "enable": Bool8,
        }

        /// The reply to a player who stands up.
        5 Goodbye {}

        /// A player sat down. Sent to all seated players, who see it as a line of chat.
        6 Welcome<'a> {
            /// The player's points.
            points "points": u32,
            /// The player's rank at the table.
            rank "rank": u32,
            /// The avatar's name.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// The player in a seat is gone. Sent to the owner, whose client cleans up the seat.
        7 Drop {
            /// The seat.
            position "position": u8,
        }

        /// The state of a seat. Clients learn it from the age, so this server does not send it.
        8 Setup {
            /// The seat.
            position "position": u8,
            /// Whether the buttons are open.
            buttons "buttons": Bool8,
            /// The lights 0 to 5.
            lights "lights": Array<Bool8, 6>,
        }

        /// A light changed. Sent to the player in the seat.
        9 LightState {
            /// Twice the colour, plus 0 or 1 for the first or second light.
            light "light": u8,
            /// The light's state.
            state "state": HeekLight,
        }

        /// The buttons opened or closed. Sent to all seated players.
        10 InterfaceState {
            /// Whether the buttons are open now.
            enabled "enabled": Bool8,
        }

        /// The countdown changed. Sent to the owner, whose client shows it.
        11 CountdownState {
            /// The countdown's state.
            state "state": HeekCountdown,
        }

        /// The result of a round. Sent to everybody who chose.
        12 WinLose {
            /// Whether the player won the round.
            win "win": Bool8,
            /// The player's own choice.
            choice "choice": HeekChoice,
        }

        /// A player won the game. Sent to the owner, whose client plays the animation.
        13 GameWin {
            /// The colour that reached three.
            choice "choice": HeekChoice,
        }

        /// A player's points changed.
        14 PointUpdate {
            /// Whether to show the points.
            display "display": Bool8,
            /// The points.
            points "points": u32,
            /// The rank at the table.
            rank "rank": u32,
        }
    }
}
