//! The rules of tic-tac-toe.

use super::message::tic_tac_toe::client::ClientMessage;
use super::message::tic_tac_toe::server::{
    GameOver, GameStarted, MoveMade, ServerMessage, TicTacToeResult,
};
use super::refused::{Refused, check_range};
use super::table::{Random, Table, below};

/// The player number that stands for the server.
const SERVER: u32 = 0;
const LINES: [[usize; 3]; 8] =
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];

/// A game of tic-tac-toe between two members, or between a member and the server.
#[derive(Debug)]
pub(super) struct TicTacToe {
    /// The number of members that play, 1 or 2.
    players: u8,
    cells: [Option<u32>; 9],
    /// The players in the order of their turns, once the game has started.
    turns: Option<[u32; 2]>,
    moves: usize,
}

/// Whether a game continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    GoesOn,
    Ended,
}

impl TicTacToe {
    pub(super) const fn new(players: u8) -> Self {
        Self { players, cells: [None; 9], turns: None, moves: 0 }
    }

    pub(super) const fn players(&self) -> u8 {
        self.players
    }

    pub(super) const fn has_started(&self) -> bool {
        self.turns.is_some()
    }

    /// Starts the game if all players have joined.
    pub(super) fn after_joined(
        &mut self,
        table: &mut Table<'_>,
        random: &mut Random<'_>,
    ) -> Course {
        if self.has_started() || table.members.len() < usize::from(self.players) {
            return Course::GoesOn;
        }
        let Some(first) = table.members.first().copied() else { return Course::GoesOn };
        let second = table.members.get(1).copied().filter(|_| self.players == 2);
        let mut turns = [first, second.unwrap_or(SERVER)];
        if below(random, 2) == 1 {
            turns.swap(0, 1);
        }
        self.turns = Some(turns);
        for (place, player) in turns.into_iter().enumerate() {
            if player != SERVER {
                let your_turn = (place == 0).into();
                table.send(player, ServerMessage::from(GameStarted { your_turn }));
            }
        }
        self.move_of_server(table, random)
    }

    pub(super) fn receive(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        message: &ClientMessage,
        random: &mut Random<'_>,
    ) -> Result<Course, Refused> {
        let ClientMessage::MakeMove(made) = message;
        if self.next_player() != Some(from) {
            return Err(Refused::state("it is not the sender's turn"));
        }
        let cell = usize::from(made.row) * 3 + usize::from(made.col);
        if self.cells.get(cell) != Some(&None) {
            return Err(Refused::state("the cell is taken"));
        }
        match self.mark(table, from, cell) {
            Course::Ended => Ok(Course::Ended),
            Course::GoesOn => Ok(self.move_of_server(table, random)),
        }
    }

    fn next_player(&self) -> Option<u32> {
        self.turns.and_then(|turns| turns.get(self.moves % 2).copied())
    }

    /// Marks a random free cell for the server, if the server is playing and it is its turn.
    fn move_of_server(&mut self, table: &mut Table<'_>, random: &mut Random<'_>) -> Course {
        if self.next_player() != Some(SERVER) {
            return Course::GoesOn;
        }
        let free: Vec<usize> =
            (0..).zip(&self.cells).filter(|it| it.1.is_none()).map(|it| it.0).collect();
        let count = u32::try_from(free.len()).unwrap_or(1);
        let choice = usize::try_from(below(random, count)).unwrap_or(0);
        free.get(choice).map_or(Course::GoesOn, |cell| self.mark(table, SERVER, *cell))
    }

    fn mark(&mut self, table: &mut Table<'_>, player: u32, cell: usize) -> Course {
        if let Some(place) = self.cells.get_mut(cell) {
            *place = Some(player);
        }
        self.moves += 1;
        let [row, col] = [cell / 3, cell % 3].map(|number| u8::try_from(number).unwrap_or(0));
        table.send_all(ServerMessage::from(MoveMade { player, row, col }));
        let is_theirs = |cell: &usize| self.cells.get(*cell) == Some(&Some(player));
        let (result, winner) = if LINES.iter().any(|line| line.iter().all(is_theirs)) {
            (TicTacToeResult::Winner, player)
        } else if self.moves == self.cells.len() {
            (TicTacToeResult::Tied, 0)
        } else {
            return Course::GoesOn;
        };
        table.send_all(ServerMessage::from(GameOver { result, winner }));
        Course::Ended
    }

    /// Handles a member who left while another one remains.
    pub(super) fn left(&self, table: &mut Table<'_>) -> Course {
        let Some(winner) = table.members.first().copied().filter(|_| self.has_started()) else {
            return Course::GoesOn;
        };
        let result = TicTacToeResult::OtherLeft;
        table.send_all(ServerMessage::from(GameOver { result, winner }));
        Course::Ended
    }
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage) -> Result<(), Refused> {
    let ClientMessage::MakeMove(made) = message;
    check_range("row", "a row from 0 to 2", 0..=2, made.row)?;
    check_range("col", "a column from 0 to 2", 0..=2, made.col)
}
