//! The rules of Heek.

mod round;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::GameText;
use super::message::heek::client::{ClientMessage, PlayGame as Sit};
use super::message::heek::server::{
    CountdownState, Drop, Goodbye, InterfaceState, PlayGame, PointUpdate, ServerMessage, Welcome,
};
use super::message::heek::{HeekChoice, HeekCountdown, HeekSequence, NAME_UNITS};
use super::refused::{Refused, RefusedClass, check_range, check_text};
use super::table::Table;

const SEATS: usize = 5;
/// How long players have to choose.
const COUNTDOWN: Duration = Duration::from_secs(7);
/// How long to wait for the countdown to end.
const STOP: Duration = Duration::from_secs(1);
/// How long to wait for the animation of the choices to end.
const ANIMATION: Duration = Duration::from_secs(11);
/// How long to wait for the winner's animation to end.
const WIN: Duration = Duration::from_secs(6);
/// The maximum number of points that a client can claim.
const MAX_CLAIM: u32 = 0x7fff_ffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Phase {
    /// No game is running.
    #[default]
    Idle,
    /// Between the rounds of a game.
    Open,
    /// Players choose.
    Countdown,
    /// Everybody has chosen, or the time is up.
    Stop,
    /// The choices are shown.
    Anim,
    /// The choices that won the game are shown.
    WinAnim,
    /// The winner is shown.
    WinWait,
}

/// A seated player.
#[derive(Debug)]
struct Player {
    points: u32,
    choice: Option<HeekChoice>,
    /// Rounds won, by choice.
    wins: [u32; 3],
    /// The number of the game that the points and wins belong to.
    game: u32,
    /// Whether the player has paid a point in that game.
    has_paid: bool,
    /// The choice that won three rounds.
    candidate: Option<HeekChoice>,
}

/// A table with five seats.
#[derive(Debug, Default)]
pub(super) struct Heek {
    phase: Phase,
    deadline: Option<Duration>,
    /// The number of the running game or of the last one.
    game: u32,
    pool: u32,
    /// Whether several candidates had the same number of wins.
    sudden_death: bool,
    /// The choice that won the game, until the winner is shown.
    won_with: Option<HeekChoice>,
    seats: [Option<u32>; SEATS],
    /// Seated players and players who stood up during the current game.
    players: BTreeMap<u32, Player>,
    /// Seats to be cleaned up by the next owner, because nobody was left to do so.
    drops: BTreeSet<u8>,
}

impl Heek {
    pub(super) fn receive(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        message: &ClientMessage<'_>,
    ) -> Result<(), Refused> {
        match message {
            ClientMessage::PlayGame(sit) => self.sit(table, from, sit),
            ClientMessage::StandUp(_) => self.stand_up(table, from),
            ClientMessage::Choose(choose) => self.choose(table, from, choose.choice),
            ClientMessage::SeqFinished(finished) => {
                self.sequence_finished(table, from, finished.sequence)
            }
        }
    }

    fn sit(&mut self, table: &mut Table<'_>, from: u32, sit: &Sit<'_>) -> Result<(), Refused> {
        let seat = self.seats.get_mut(usize::from(sit.position));
        let is_free = matches!(seat, Some(None));
        if !is_free || self.seat_of(from).is_some() {
            let no = false.into();
            table.send(from, ServerMessage::from(PlayGame { playing: no, single: no, enable: no }));
            return Err(Refused::state("the seat is taken, or the player is already seated"));
        }
        if let Some(seat) = self.seats.get_mut(usize::from(sit.position)) {
            *seat = Some(from);
        }
        let (game, is_running) = (self.game, self.phase != Phase::Idle);
        let known = self.players.get(&from).filter(|player| is_running && player.game == game);
        if known.is_none() {
            let points = if sit.points > MAX_CLAIM { 0 } else { sit.points };
            let (choice, candidate) = (None, None);
            let player = Player { points, choice, wins: [0; 3], game, has_paid: false, candidate };
            self.players.insert(from, player);
        }
        let count = self.seated().count();
        let is_open = matches!(self.phase, Phase::Idle | Phase::Open);
        let reply = PlayGame {
            playing: true.into(),
            single: (count == 1).into(),
            enable: (count >= 2 && is_open).into(),
        };
        table.send(from, ServerMessage::from(reply));
        if count == 2 && is_open {
            for other in self.seated().filter(|player| *player != from) {
                table.send(other, ServerMessage::from(InterfaceState { enabled: true.into() }));
            }
        }
        let (points, rank) = self.score(from);
        let name: GameText<'_, NAME_UNITS> = sit.name.as_bytes().to_vec().into();
        self.send_seated(table, &Welcome { points, rank, name }.into());
        Ok(())
    }

    /// Handles a player who stands up but stays in the game.
    fn stand_up(&mut self, table: &mut Table<'_>, from: u32) -> Result<(), Refused> {
        let Some(seat) = self.seat_of(from) else {
            return Err(Refused::state("the player is not seated"));
        };
        let is_last = self.seated().count() == 1;
        let pool = if is_last { core::mem::take(&mut self.pool) } else { 0 };
        if let Some(player) = self.players.get_mut(&from) {
            player.points = player.points.saturating_add(pool);
        }
        let (points, rank) = self.score(from);
        let display = (pool > 1).into();
        table.send(from, ServerMessage::from(PointUpdate { display, points, rank }));
        table.send(from, ServerMessage::from(Goodbye {}));
        self.clear_seat(table, from, seat);
        Ok(())
    }

    /// Handles a member who left the game.
    pub(super) fn left(&mut self, table: &mut Table<'_>, player: u32) {
        if let Some(seat) = self.seat_of(player) {
            match u8::try_from(seat) {
                Ok(position) if table.owner.is_some() => {
                    table.send_owner(ServerMessage::from(Drop { position }));
                }
                Ok(position) => drop(self.drops.insert(position)),
                Err(_) => {}
            }
            self.clear_seat(table, player, seat);
        }
        self.players.remove(&player);
    }

    /// Frees a seat. The player's point stays in the pool.
    fn clear_seat(&mut self, table: &mut Table<'_>, player: u32, seat: usize) {
        if let Some(seat) = self.seats.get_mut(seat) {
            *seat = None;
        }
        if let Some(player) = self.players.get_mut(&player) {
            (player.choice, player.candidate) = (None, None);
        }
        match self.seated().count() {
            0 => {
                if matches!(self.phase, Phase::Countdown | Phase::Stop) {
                    let idle = HeekCountdown::Idle;
                    table.send_owner(ServerMessage::from(CountdownState { state: idle }));
                }
                self.pool = 0;
                self.become_idle();
            }
            1 if self.phase < Phase::Anim => self.send_interface(table, false),
            _ => {}
        }
    }

    /// Ends the game: wins no longer matter, and players who stood up are forgotten.
    fn become_idle(&mut self) {
        self.enter(Phase::Idle, None);
        self.sudden_death = false;
        self.won_with = None;
        self.forget_standing();
    }

    fn forget_standing(&mut self) {
        let seats = self.seats;
        self.players.retain(|player, _| seats.contains(&Some(*player)));
    }

    fn choose(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        choice: HeekChoice,
    ) -> Result<(), Refused> {
        let can_choose = self.phase <= Phase::Countdown
            && self.seated().count() >= 2
            && self.seat_of(from).is_some();
        if !can_choose {
            return Err(Refused::state("the player cannot choose now"));
        }
        if self.phase == Phase::Idle {
            self.game = self.game.wrapping_add(1);
            self.pool = 0;
            self.phase = Phase::Open;
            self.forget_standing();
            for player in self.players.values_mut() {
                (player.game, player.has_paid) = (self.game, false);
                (player.wins, player.candidate) = ([0; 3], None);
            }
        }
        if self.phase == Phase::Open {
            self.players.values_mut().for_each(|player| player.choice = None);
            let start = HeekCountdown::Start;
            table.send_owner(ServerMessage::from(CountdownState { state: start }));
            self.enter(Phase::Countdown, Some(table.now + COUNTDOWN));
        }
        let Some(player) = self.players.get_mut(&from) else { return Ok(()) };
        if !player.has_paid {
            player.has_paid = true;
            if player.points > 0 {
                player.points -= 1;
                self.pool = self.pool.saturating_add(1);
            }
            player.choice = Some(choice);
            let (points, rank) = self.score(from);
            let display = false.into();
            table.send(from, ServerMessage::from(PointUpdate { display, points, rank }));
        } else {
            player.choice = Some(choice);
        }
        let have_chosen = self.seated().all(|player| self.choice_of(player).is_some());
        if have_chosen {
            self.stop(table);
        }
        Ok(())
    }

    fn stop(&mut self, table: &mut Table<'_>) {
        let stop = HeekCountdown::Stop;
        table.send_owner(ServerMessage::from(CountdownState { state: stop }));
        self.enter(Phase::Stop, Some(table.now + STOP));
    }

    /// Handles the end of a sequence, which only the owner may report.
    fn sequence_finished(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        sequence: HeekSequence,
    ) -> Result<(), Refused> {
        if !table.is_owner(from) {
            let error =
                worldwire_core::Error::invalid("only the owner may report the end of a sequence");
            return Err(Refused::new(RefusedClass::NotOwner, error));
        }
        let fits = match self.phase {
            Phase::Stop => sequence == HeekSequence::Countdown,
            Phase::Anim | Phase::WinAnim => sequence == HeekSequence::Choice,
            Phase::WinWait => sequence == HeekSequence::GameWin,
            Phase::Idle | Phase::Open | Phase::Countdown => false,
        };
        if !fits {
            return Err(Refused::state("the game is not waiting for this sequence"));
        }
        self.proceed(table);
        Ok(())
    }

    /// Handles the end of a sequence or of its time limit.
    fn proceed(&mut self, table: &mut Table<'_>) {
        match self.phase {
            Phase::Idle | Phase::Open => self.deadline = None,
            Phase::Countdown if self.choosers().count() >= 2 => self.stop(table),
            Phase::Countdown | Phase::Anim => self.reopen(table),
            Phase::Stop => self.play_round(table),
            Phase::WinAnim => self.show_winner(table),
            Phase::WinWait => {
                self.reopen(table);
                self.become_idle();
            }
        }
    }

    /// Begins the next round.
    fn reopen(&mut self, table: &mut Table<'_>) {
        let idle = HeekCountdown::Idle;
        table.send_owner(ServerMessage::from(CountdownState { state: idle }));
        if self.seated().count() >= 2 {
            self.send_interface(table, true);
        }
        self.enter(Phase::Open, None);
    }

    const fn enter(&mut self, phase: Phase, deadline: Option<Duration>) {
        (self.phase, self.deadline) = (phase, deadline);
    }

    fn send_interface(&self, table: &mut Table<'_>, enabled: bool) {
        self.send_seated(table, &InterfaceState { enabled: enabled.into() }.into());
    }

    fn send_seated(&self, table: &mut Table<'_>, message: &ServerMessage<'static>) {
        for player in self.seated() {
            table.send(player, message.clone());
        }
    }

    /// The players in the order of their seats.
    fn seated(&self) -> impl Iterator<Item = u32> {
        self.seats.into_iter().flatten()
    }

    /// The seated players who have chosen.
    fn choosers(&self) -> impl Iterator<Item = (u32, HeekChoice)> {
        self.seated().filter_map(|player| Some((player, self.choice_of(player)?)))
    }

    fn choice_of(&self, player: u32) -> Option<HeekChoice> {
        self.players.get(&player).and_then(|player| player.choice)
    }

    fn seat_of(&self, player: u32) -> Option<usize> {
        self.seats.iter().position(|seat| *seat == Some(player))
    }

    /// A player's points and rank among the seated players.
    fn score(&self, player: u32) -> (u32, u32) {
        let points = |player: u32| self.players.get(&player).map_or(0, |player| player.points);
        let own = points(player);
        let better = self.seated().filter(|other| points(*other) > own).count();
        (own, u32::try_from(better).unwrap_or(0) + 1)
    }

    /// Cleans up the seats of players who were the last to leave.
    pub(super) fn after_joined(&mut self, table: &mut Table<'_>, joiner: u32) {
        if table.is_owner(joiner) {
            for position in core::mem::take(&mut self.drops) {
                table.send(joiner, ServerMessage::from(Drop { position }));
            }
        }
    }

    /// Returns to the initial state. Only the seats to clean up are remembered.
    pub(super) fn reset(&mut self) {
        *self = Self { drops: core::mem::take(&mut self.drops), ..Self::default() };
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn timeout(&mut self, table: &mut Table<'_>) {
        self.proceed(table);
    }
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage<'_>) -> Result<(), Refused> {
    match message {
        ClientMessage::PlayGame(sit) => {
            check_range("position", "a seat from 0 to 4", 0..=4, sit.position)?;
            check_text("name", &sit.name)
        }
        ClientMessage::StandUp(_) => Ok(()),
        ClientMessage::Choose(choose) => {
            check_range("choice", "a choice from 0 to 2", 0..=2, choose.choice.0)
        }
        ClientMessage::SeqFinished(finished) => {
            check_range("sequence", "a sequence from 0 to 2", 0..=2, finished.sequence.0)
        }
    }
}
