//! What a player can do in one game.

use std::collections::VecDeque;

use worldwire_core::Error;
use worldwire_uru::games::{GameBody, GameMessage, GameText};
use worldwire_uru::types::TransId;

use super::PlayError;

/// A player in a game that the player has joined. The methods depend on the type of the game; each
/// queues one message, and the server's reply arrives as a [`PlayEvent`](super::PlayEvent).
#[derive(Debug)]
pub struct Playing<'g, S> {
    pub(super) game_id: u32,
    pub(super) player: u32,
    pub(super) owner: Option<u32>,
    pub(super) state: &'g mut S,
    pub(super) transmit: &'g mut VecDeque<Vec<u8>>,
}

impl<S> Playing<'_, S> {
    /// The state of the game, as far as it is known.
    #[must_use]
    pub fn state(&self) -> &S {
        self.state
    }

    /// Whether the player owns the game.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.owner == Some(self.player)
    }

    pub(super) fn send<'b>(&mut self, body: impl Into<GameBody<'b>>) -> Result<(), PlayError> {
        send(self.transmit, self.game_id, body)
    }
}

/// Queues a message to a game.
pub(super) fn send<'b>(
    transmit: &mut VecDeque<Vec<u8>>,
    game_id: u32,
    body: impl Into<GameBody<'b>>,
) -> Result<(), PlayError> {
    let message = GameMessage { trans_id: TransId(0), game_id, body: body.into() };
    transmit.push_back(message.to_bytes().map_err(not_sent)?);
    Ok(())
}

pub(super) fn not_sent(error: Error) -> PlayError {
    PlayError::NotSent(error.into())
}

/// Text that leaves room for its terminator. Servers drop messages whose text has none.
pub(super) fn text<'t, const N: usize>(
    field: &'static str,
    text: &'t str,
) -> Result<GameText<'t, N>, PlayError> {
    let text = GameText::from(text);
    let found = text.units();
    if found >= N {
        return Err(PlayError::TooLong { field, most: N - 1, found });
    }
    Ok(text)
}

/// A number that servers accept.
pub(super) fn finite(field: &'static str, number: f64) -> Result<f64, PlayError> {
    if number.is_finite() {
        return Ok(number);
    }
    Err(PlayError::Value { field, wanted: "a finite number", found: number.to_string() })
}
