//! The climbing wall: two teams place blockers for each other.

use worldwire_core::wire_enum;

/// The number of blockers that a team can have.
pub const MAX_BLOCKERS: usize = 20;

wire_enum! {
    /// The step that a team has completed.
    pub enum WallReady(u8) {
        /// The team agrees to the number of blockers.
        NumBlockers = 0,
        /// The team's blockers are placed.
        Blockers = 1,
    }
}

/// Messages from a member.
pub mod client {
    use worldwire_core::messages;

    use super::WallReady;
    use crate::types::Bool8;

    messages! {
        /// Messages of the climbing wall from a member.
        pub enum ClientMessage: "ClimbingWall", Client;

        /// Changes the number of blockers.
        3 ChangeNumBlockers {
            /// How many more, or fewer if negative.
            amount "amount": i32,
        }

        /// A team is ready.
        4 Ready {
            /// The step that is completed.
            ready_type "readyType": WallReady,
            /// The team, 1 or 2.
            team "team": u8,
        }

        /// A blocker was placed or removed.
        5 BlockerChanged {
            /// The team, 1 or 2.
            team "team": u8,
            /// The place on the wall.
            blocker "blocker": u8,
            /// Whether it was placed.
            added "added": Bool8,
        }

        /// Starts from the beginning.
        6 Reset {}

        /// The player enters the wall.
        7 PlayerEntered {
            /// The player's team, 1 or 2.
            team "team": u8,
        }

        /// The player reached the top.
        8 FinishedGame {}

        /// The player gives up.
        9 Panic {}
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::messages;

    use super::{MAX_BLOCKERS, WallReady};
    use crate::games::Array;
    use crate::types::Bool8;

    messages! {
        /// Messages of the climbing wall from the server.
        pub enum ServerMessage: "ClimbingWall", Server;

        /// The number of blockers.
        4 NumBlockersChanged {
            /// The number.
            count "count": u8,
            /// Whether to change the player's own display only, without telling the others.
            local_only "localOnly": Bool8,
        }

        /// Which teams are ready.
        5 Ready {
            /// The step that is completed.
            ready_type "readyType": WallReady,
            /// Whether team 1 is ready.
            team1 "team1": Bool8,
            /// Whether team 2 is ready.
            team2 "team2": Bool8,
            /// Whether to change the player's own display only, without telling the others.
            local_only "localOnly": Bool8,
        }

        /// The blockers of a team.
        6 BlockersChanged {
            /// The team, 1 or 2.
            team "team": u8,
            /// The places on the wall, in the order of placing; -1 if unused.
            blockers "blockers": Array<i32, MAX_BLOCKERS>,
            /// Whether to change the player's own display only, without telling the others.
            local_only "localOnly": Bool8,
        }

        /// The reply to a player who enters.
        7 PlayerEntered {}

        /// Which suit machines are locked because a player has entered.
        8 SuitMachineLocked {
            /// Whether team 1's machine is locked.
            team1 "team1": Bool8,
            /// Whether team 2's machine is locked.
            team2 "team2": Bool8,
            /// Whether to change the player's own display only, without telling the others.
            local_only "localOnly": Bool8,
        }

        /// The game is over.
        9 GameOver {
            /// The team that won, 1 or 2.
            team_won "teamWon": u8,
            /// The blockers of team 1, then -1.
            team1_blockers "team1Blockers": Array<i32, MAX_BLOCKERS>,
            /// The blockers of team 2, then -1.
            team2_blockers "team2Blockers": Array<i32, MAX_BLOCKERS>,
            /// Whether to change the player's own display only, without telling the others.
            local_only "localOnly": Bool8,
        }
    }
}
