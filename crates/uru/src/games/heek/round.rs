//! Rounds of Heek: the winners of rounds and games.

use super::{ANIMATION, Heek, Phase, WIN};
use crate::games::message::heek::server::{
    GameWin, LightState, PointUpdate, ServerMessage, WinLose,
};
use crate::games::message::heek::{HeekChoice, HeekLight};
use crate::games::table::Table;

/// The number of wins with one choice that can win the game.
const WINS: u32 = 3;

/// Rock beats scissors, scissors beat paper, and paper beats rock.
fn beats(choice: HeekChoice, other: HeekChoice) -> bool {
    matches!(
        (choice, other),
        (HeekChoice::Rock, HeekChoice::Scissors)
            | (HeekChoice::Scissors, HeekChoice::Paper)
            | (HeekChoice::Paper, HeekChoice::Rock)
    )
}

impl Heek {
    /// Plays a round. The score of a choice is the number of choices that it beats, minus the
    /// number that beat it.
    pub(super) fn play_round(&mut self, table: &mut Table<'_>) {
        self.send_interface(table, false);
        let choosers: Vec<_> = self.choosers().collect();
        if choosers.len() < 2 {
            self.reopen(table);
            return;
        }
        let score = |choice: HeekChoice| -> i32 {
            let against = choosers.iter().map(|(_, other)| {
                i32::from(beats(choice, *other)) - i32::from(beats(*other, choice))
            });
            against.sum()
        };
        let best = choosers.iter().map(|(_, choice)| score(*choice)).max();
        for (player, choice) in choosers.iter().copied() {
            let has_won = best > Some(0) && best == Some(score(choice));
            table.send(player, ServerMessage::from(WinLose { win: has_won.into(), choice }));
            if has_won {
                self.win_round(table, player, choice);
            }
        }
        match self.winner() {
            Some((winner, choice)) => self.win_game(table, winner, choice),
            None => self.enter(Phase::Anim, Some(table.now + ANIMATION)),
        }
    }

    fn win_round(&mut self, table: &mut Table<'_>, winner: u32, choice: HeekChoice) {
        let sudden_death = self.sudden_death;
        let Some(player) = self.players.get_mut(&winner) else { return };
        let Some(wins) = player.wins.get_mut(usize::from(choice.0)) else { return };
        *wins = wins.saturating_add(1);
        let second = match *wins {
            1 => 0,
            2 => 1,
            count => {
                if count >= WINS && !sudden_death {
                    player.candidate = Some(choice);
                }
                return;
            }
        };
        let light = LightState { light: choice.0 * 2 + second, state: HeekLight::On };
        table.send(winner, ServerMessage::from(light));
    }

    /// The candidate with the most wins. If several are tied, they play on until one is left.
    fn winner(&mut self) -> Option<(u32, HeekChoice)> {
        let candidates = self.seated().filter_map(|player| {
            let state = self.players.get(&player)?;
            Some((player, state.candidate?, state.wins.iter().sum::<u32>()))
        });
        let mut candidates: Vec<_> = candidates.collect();
        let most = candidates.iter().map(|it| it.2).max();
        candidates.retain(|it| Some(it.2) == most);
        if let [(winner, choice, _)] = *candidates {
            return Some((winner, choice));
        }
        self.sudden_death = !candidates.is_empty();
        for (player, state) in &mut self.players {
            if !candidates.iter().any(|it| it.0 == *player) {
                state.candidate = None;
            }
        }
        None
    }

    fn win_game(&mut self, table: &mut Table<'_>, winner: u32, choice: HeekChoice) {
        let state = HeekLight::Flash;
        for light in [choice.0 * 2, choice.0 * 2 + 1] {
            table.send(winner, ServerMessage::from(LightState { light, state }));
        }
        let pool = core::mem::take(&mut self.pool);
        if let Some(player) = self.players.get_mut(&winner) {
            player.points = player.points.saturating_add(pool);
        }
        self.won_with = Some(choice);
        self.enter(Phase::WinAnim, Some(table.now + ANIMATION));
    }

    /// The owner plays the animation. Everybody who paid for the game gets the new points.
    pub(super) fn show_winner(&mut self, table: &mut Table<'_>) {
        if let Some(choice) = self.won_with.take() {
            table.send_owner(ServerMessage::from(GameWin { choice }));
        }
        for player in self.seated() {
            if self.players.get(&player).is_some_and(|player| player.has_paid) {
                let (points, rank) = self.score(player);
                let display = true.into();
                table.send(player, ServerMessage::from(PointUpdate { display, points, rank }));
            }
        }
        self.enter(Phase::WinWait, Some(table.now + WIN));
    }
}
