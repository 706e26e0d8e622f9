//! Marker games: players find and capture markers in ages.

use worldwire_core::wire_enum;

/// The number of UTF-16 units of names, with the terminator.
pub const NAME_UNITS: usize = 256;
/// The number of UTF-16 units of an age's file name and of a template, with the terminator.
pub const AGE_UNITS: usize = 80;

wire_enum! {
    /// A type of marker game.
    pub enum MarkerGameType(u8) {
        /// Captured by each player alone.
        Quest = 0,
        /// A calibration mission of the Great Zero.
        Cgz = 1,
        /// Two teams capture markers. No client can join one.
        Capture = 2,
        /// Two teams capture and hold markers. No client can join one.
        CaptureAndHold = 3,
    }
}

/// Messages from the member.
pub mod client {
    use worldwire_core::{Double, messages};

    use super::{AGE_UNITS, NAME_UNITS};
    use crate::games::GameText;

    messages! {
        /// Messages of a marker game from its member.
        pub enum ClientMessage<'a>: "Marker", Client;

        /// Starts playing.
        3 StartGame {}

        /// Pauses. There is a reply even if the game is not running.
        4 PauseGame {}

        /// Forgets the player's captures.
        5 ResetGame {}

        /// Renames the game. Only its creator may do this.
        6 ChangeGameName<'a> {
            /// The new name.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// Changes the time limit. Only the game's creator may do this.
        7 ChangeTimeLimit {
            /// The limit in milliseconds.
            time_limit "timeLimit": u32,
        }

        /// Deletes the game.
        8 DeleteGame {}

        /// Adds a marker. Only the game's creator may do this.
        9 AddMarker<'a> {
            /// The position in the age.
            x "x": Double,
            /// The position in the age.
            y "y": Double,
            /// The position in the age.
            z "z": Double,
            /// The marker's text.
            name "name": GameText<'a, NAME_UNITS>,
            /// The age's file name.
            age "age": GameText<'a, AGE_UNITS>,
        }

        /// Deletes a marker. Only the game's creator may do this.
        10 DeleteMarker {
            /// The marker's ID.
            marker "marker": u32,
        }

        /// Changes a marker's text. Only the game's creator may do this.
        11 ChangeMarkerName<'a> {
            /// The marker's ID.
            marker "marker": u32,
            /// The new text.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// Captures a marker.
        12 CaptureMarker {
            /// The marker's ID.
            marker "marker": u32,
        }
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::{Double, messages};

    use super::{AGE_UNITS, MarkerGameType, NAME_UNITS};
    use crate::games::GameText;
    use crate::types::Bool8;

    messages! {
        /// Messages of a marker game from the server.
        pub enum ServerMessage<'a>: "Marker", Server;

        /// A new game was stored. The client saves the template in its vault node.
        4 TemplateCreated<'a> {
            /// The template, as a UUID in lower case.
            template "template": GameText<'a, AGE_UNITS>,
        }

        /// The player's team.
        5 TeamAssigned {
            /// The team: always 1.
            team "team": u8,
        }

        /// The type of the game.
        6 GameType {
            /// The type.
            game_type "type": MarkerGameType,
        }

        /// The player is playing.
        7 GameStarted {}

        /// The player is not playing.
        8 GamePaused {
            /// The remaining milliseconds; 0 for games without a limit.
            time_left "timeLeft": u32,
        }

        /// The player's captures are forgotten.
        9 GameReset {}

        /// The time is up. Never sent for quests and calibration missions.
        10 GameOver {}

        /// The name of the game.
        11 GameNameChanged<'a> {
            /// The name.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// The time limit of the game.
        12 TimeLimitChanged {
            /// The limit in milliseconds.
            time_limit "timeLimit": u32,
        }

        /// The reply to `DeleteGame`.
        13 GameDeleted {
            /// Whether it failed: 0 means that the game is deleted.
            failed "failed": Bool8,
        }

        /// A marker exists.
        14 MarkerAdded<'a> {
            /// The position in the age.
            x "x": Double,
            /// The position in the age.
            y "y": Double,
            /// The position in the age.
            z "z": Double,
            /// The marker's ID.
            marker "marker": u32,
            /// The marker's text.
            name "name": GameText<'a, NAME_UNITS>,
            /// The age's file name.
            age "age": GameText<'a, AGE_UNITS>,
        }

        /// A marker was deleted.
        15 MarkerDeleted {
            /// The marker's ID.
            marker "marker": u32,
        }

        /// A marker's text changed.
        16 MarkerNameChanged<'a> {
            /// The marker's ID.
            marker "marker": u32,
            /// The text.
            name "name": GameText<'a, NAME_UNITS>,
        }

        /// The player has captured a marker.
        17 MarkerCaptured {
            /// The marker's ID.
            marker "marker": u32,
            /// The capturing team.
            team "team": u8,
        }
    }
}
