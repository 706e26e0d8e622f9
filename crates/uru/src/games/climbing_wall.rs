//! The rules of the climbing wall.
//!
//! Unverified: no known client plays this game. Its messages and their layouts are known; most of
//! these rules are derived from the names of the messages.

use core::time::Duration;

use super::Array;
use super::message::climbing_wall::client::ClientMessage;
use super::message::climbing_wall::server::{
    BlockersChanged, GameOver, NumBlockersChanged, PlayerEntered, Ready, ServerMessage,
    SuitMachineLocked,
};
use super::message::climbing_wall::{MAX_BLOCKERS, WallReady};
use super::refused::{Refused, check_range};
use super::table::Table;

/// How long the result is shown.
const OVER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    /// The teams agree on the number of blockers.
    #[default]
    Count,
    /// The teams place blockers.
    Place,
    /// The players climb.
    Climb,
    /// The result is shown.
    Over,
}

/// A climbing wall.
#[derive(Debug, Default)]
pub(super) struct ClimbingWall {
    phase: Phase,
    count: u8,
    /// Which teams agree on the number of blockers.
    agreed: [bool; 2],
    /// Which teams have placed their blockers.
    placed: [bool; 2],
    blockers: [Vec<u8>; 2],
    /// The player of each team who has entered the wall.
    entered: [Option<u32>; 2],
    deadline: Option<Duration>,
}

impl ClimbingWall {
    pub(super) fn receive(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        message: &ClientMessage,
    ) -> Result<(), Refused> {
        match message {
            ClientMessage::ChangeNumBlockers(change) => {
                self.in_phase(Phase::Count)?;
                let most = i64::try_from(MAX_BLOCKERS).unwrap_or(0);
                let count = (i64::from(self.count) + i64::from(change.amount)).clamp(0, most);
                self.count = u8::try_from(count).unwrap_or(0);
                self.show(table, |wall, local_only| wall.number(local_only));
                if self.agreed != [false; 2] {
                    self.agreed = [false; 2];
                    self.show(table, |wall, local_only| {
                        wall.ready(WallReady::NumBlockers, local_only)
                    });
                }
                Ok(())
            }
            ClientMessage::Ready(ready) => self.set_ready(table, ready.ready_type, ready.team),
            ClientMessage::BlockerChanged(change) => {
                self.in_phase(Phase::Place)?;
                self.change_blocker(table, change.team, change.blocker, change.added.is_true())
            }
            ClientMessage::Reset(_) => {
                let is_climbing = self.phase == Phase::Climb && self.entered != [None; 2];
                if is_climbing || self.phase == Phase::Over {
                    return Err(Refused::state("a player is on the wall"));
                }
                self.start_over(table);
                Ok(())
            }
            ClientMessage::PlayerEntered(entered) => self.enter(table, from, entered.team),
            ClientMessage::FinishedGame(_) => {
                let team = self.climbing(from)?;
                self.end(table, team);
                Ok(())
            }
            ClientMessage::Panic(_) => {
                let team = self.climbing(from)?;
                self.end(table, 1 - team);
                Ok(())
            }
        }
    }

    fn in_phase(&self, phase: Phase) -> Result<(), Refused> {
        if self.phase == phase {
            return Ok(());
        }
        Err(Refused::state("the game is in another phase"))
    }

    /// The team, 0 or 1, of a player who has entered the wall.
    fn climbing(&self, player: u32) -> Result<usize, Refused> {
        self.in_phase(Phase::Climb)?;
        let team = self.entered.iter().position(|entered| *entered == Some(player));
        team.ok_or_else(|| Refused::state("the player is not on the wall"))
    }

    fn set_ready(
        &mut self,
        table: &mut Table<'_>,
        ready_type: WallReady,
        team: u8,
    ) -> Result<(), Refused> {
        let (phase, next, ready) = match ready_type {
            WallReady::NumBlockers => (Phase::Count, Phase::Place, &mut self.agreed),
            _ => (Phase::Place, Phase::Climb, &mut self.placed),
        };
        if self.phase != phase {
            return Err(Refused::state("the game is in another phase"));
        }
        match ready.get_mut(team_index(team)) {
            Some(ready) if !*ready => *ready = true,
            _ => return Err(Refused::state("the team is already ready")),
        }
        if *ready == [true; 2] {
            self.phase = next;
        }
        self.show(table, |wall, local_only| wall.ready(ready_type, local_only));
        Ok(())
    }

    fn change_blocker(
        &mut self,
        table: &mut Table<'_>,
        team: u8,
        blocker: u8,
        is_added: bool,
    ) -> Result<(), Refused> {
        let (index, count) = (team_index(team), usize::from(self.count));
        if self.placed.get(index) == Some(&true) {
            return Err(Refused::state("the team is already ready"));
        }
        let Some(blockers) = self.blockers.get_mut(index) else { return Ok(()) };
        match blockers.iter().position(|other| *other == blocker) {
            None if is_added && blockers.len() < count => blockers.push(blocker),
            Some(at) if !is_added => drop(blockers.remove(at)),
            _ => return Err(Refused::state("the blocker cannot be changed")),
        }
        self.show(table, |wall, local_only| wall.blockers(team, local_only));
        Ok(())
    }

    fn enter(&mut self, table: &mut Table<'_>, from: u32, team: u8) -> Result<(), Refused> {
        self.in_phase(Phase::Climb)?;
        if self.entered.contains(&Some(from)) {
            return Err(Refused::state("the player has already entered"));
        }
        match self.entered.get_mut(team_index(team)) {
            Some(place) if place.is_none() => *place = Some(from),
            _ => return Err(Refused::state("another player on the team has already entered")),
        }
        table.send(from, ServerMessage::from(PlayerEntered {}));
        self.show(table, Self::locks);
        Ok(())
    }

    /// Ends the game with a winner, team 0 or 1.
    fn end(&mut self, table: &mut Table<'_>, team: usize) {
        self.phase = Phase::Over;
        self.deadline = Some(table.now + OVER);
        let team_won = if team == 0 { 1 } else { 2 };
        self.show(table, |wall, local_only| {
            GameOver {
                team_won,
                team1_blockers: wall.places(0),
                team2_blockers: wall.places(1),
                local_only: local_only.into(),
            }
            .into()
        });
    }

    /// Returns to the initial state and shows it to all members.
    fn start_over(&mut self, table: &mut Table<'_>) {
        *self = Self::default();
        for index in 0..Self::STATE.len() {
            self.show(table, |wall, local_only| wall.state(index, local_only));
        }
    }

    /// The messages that show the whole state, in order.
    const STATE: [fn(&Self, bool) -> ServerMessage; 6] = [
        Self::number,
        |wall, local_only| wall.ready(WallReady::NumBlockers, local_only),
        |wall, local_only| wall.ready(WallReady::Blockers, local_only),
        |wall, local_only| wall.blockers(1, local_only),
        |wall, local_only| wall.blockers(2, local_only),
        Self::locks,
    ];

    fn state(&self, index: usize, local_only: bool) -> ServerMessage {
        Self::STATE.get(index).map_or_else(|| self.number(local_only), |of| of(self, local_only))
    }

    /// Sends a message to all members. Members other than the owner change only their own display.
    fn show(&self, table: &mut Table<'_>, message: impl Fn(&Self, bool) -> ServerMessage) {
        for member in table.members {
            let local_only = !table.is_owner(*member);
            table.send(*member, message(self, local_only));
        }
    }

    fn number(&self, local_only: bool) -> ServerMessage {
        NumBlockersChanged { count: self.count, local_only: local_only.into() }.into()
    }

    fn ready(&self, ready_type: WallReady, local_only: bool) -> ServerMessage {
        let [team1, team2] = match ready_type {
            WallReady::NumBlockers => self.agreed,
            _ => self.placed,
        };
        let [team1, team2, local_only] = [team1, team2, local_only].map(Into::into);
        Ready { ready_type, team1, team2, local_only }.into()
    }

    fn blockers(&self, team: u8, local_only: bool) -> ServerMessage {
        let blockers = self.places(team_index(team));
        BlockersChanged { team, blockers, local_only: local_only.into() }.into()
    }

    fn locks(&self, local_only: bool) -> ServerMessage {
        let [team1, team2] = self.entered.map(|player| player.is_some().into());
        SuitMachineLocked { team1, team2, local_only: local_only.into() }.into()
    }

    fn places(&self, index: usize) -> Array<i32, MAX_BLOCKERS> {
        let mut places = [-1; MAX_BLOCKERS];
        for (place, blocker) in
            places.iter_mut().zip(self.blockers.get(index).into_iter().flatten())
        {
            *place = i32::from(*blocker);
        }
        Array(places)
    }

    /// Shows the current state to a joining member, unless the member is the first.
    pub(super) fn after_joined(&self, table: &mut Table<'_>, joiner: u32) {
        if !table.is_owner(joiner) {
            for of in Self::STATE {
                table.send(joiner, of(self, true));
            }
        }
    }

    /// Handles a member who left. A player who leaves the wall forfeits the game.
    pub(super) fn left(&mut self, table: &mut Table<'_>, player: u32) {
        if let Ok(team) = self.climbing(player) {
            self.end(table, 1 - team);
        }
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn timeout(&mut self, table: &mut Table<'_>) {
        self.start_over(table);
    }
}

const fn team_index(team: u8) -> usize {
    if team == 1 { 0 } else { 1 }
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage) -> Result<(), Refused> {
    let check_team = |team| check_range("team", "team 1 or 2", 1..=2, team);
    match message {
        ClientMessage::Ready(ready) => {
            check_range("readyType", "0 or 1", 0..=1, ready.ready_type.0)?;
            check_team(ready.team)
        }
        ClientMessage::BlockerChanged(change) => check_team(change.team),
        ClientMessage::PlayerEntered(entered) => check_team(entered.team),
        ClientMessage::ChangeNumBlockers(_)
        | ClientMessage::Reset(_)
        | ClientMessage::FinishedGame(_)
        | ClientMessage::Panic(_) => Ok(()),
    }
}
