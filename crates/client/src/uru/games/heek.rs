//! Heek, as a player sees it.

use std::collections::VecDeque;

use worldwire_uru::games::message::heek::client::{
    Choose, ClientMessage, PlayGame, SeqFinished, StandUp,
};
use worldwire_uru::games::message::heek::server::ServerMessage;
use worldwire_uru::games::message::heek::{HeekChoice, HeekCountdown, HeekSequence};

use super::PlayError;
use super::playing::{Playing, send, text};

/// Heek (Ayoheek): rock, paper, scissors at a table with five seats.
#[derive(Clone, Debug, Default)]
pub struct HeekGame {
    /// The seat that the player asked for.
    wanted: Option<u8>,
    seat: Option<u8>,
    is_open: bool,
    score: Option<(u32, u32)>,
}

/// The number of seats.
const SEATS: u8 = 5;

impl HeekGame {
    /// The player's seat, 0 to 4.
    #[must_use]
    pub fn seat(&self) -> Option<u8> {
        self.seat
    }

    /// Whether the player may choose: whether the buttons are open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The player's points and rank at the table, once the server has sent them.
    #[must_use]
    pub fn score(&self) -> Option<(u32, u32)> {
        self.score
    }

    /// Handles a message. The owner's client must report the end of each animation sequence that it
    /// plays. This client plays no animations, so it reports the end immediately.
    pub(super) fn take(
        &mut self,
        message: &ServerMessage<'_>,
        is_owner: bool,
        (game_id, transmit): (u32, &mut VecDeque<Vec<u8>>),
    ) {
        let mut finish = |sequence| {
            if is_owner {
                let sent = send(transmit, game_id, ClientMessage::from(SeqFinished { sequence }));
                debug_assert!(sent.is_ok(), "{sent:?}");
            }
        };
        match message {
            ServerMessage::PlayGame(reply) => {
                let wanted = self.wanted.take();
                if reply.playing.is_true() {
                    self.seat = wanted;
                    self.is_open = reply.enable.is_true();
                }
            }
            ServerMessage::Goodbye(_) => (self.seat, self.is_open) = (None, false),
            ServerMessage::InterfaceState(state) => self.is_open = state.enabled.is_true(),
            ServerMessage::PointUpdate(update) => self.score = Some((update.points, update.rank)),
            ServerMessage::CountdownState(state) if state.state == HeekCountdown::Stop => {
                finish(HeekSequence::Countdown);
            }
            ServerMessage::WinLose(_) => finish(HeekSequence::Choice),
            ServerMessage::GameWin(_) => finish(HeekSequence::GameWin),
            ServerMessage::Welcome(_)
            | ServerMessage::Drop(_)
            | ServerMessage::Setup(_)
            | ServerMessage::LightState(_)
            | ServerMessage::CountdownState(_) => {}
        }
    }
}

impl Playing<'_, HeekGame> {
    /// Asks for a seat, 0 to 4. `points` is the player's score, which clients store and which
    /// starts at 100; `name` is shown to the others.
    pub fn sit(&mut self, seat: u8, points: u32, name: &str) -> Result<(), PlayError> {
        if seat >= SEATS {
            let (field, wanted, found) = ("the seat", "0 to 4", seat.to_string());
            return Err(PlayError::Value { field, wanted, found });
        }
        let name = text("the name", name)?;
        self.send(ClientMessage::from(PlayGame { position: seat, points, name }))?;
        self.state.wanted = Some(seat);
        Ok(())
    }

    /// Makes a choice. Another choice during the same countdown replaces it.
    pub fn choose(&mut self, choice: HeekChoice) -> Result<(), PlayError> {
        self.send(ClientMessage::from(Choose { choice }))
    }

    /// Stands up without leaving the game.
    pub fn stand_up(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(StandUp {}))
    }
}
