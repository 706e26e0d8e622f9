//! The blue spiral, as a player sees it.

use worldwire_uru::games::message::blue_spiral::client::{ClientMessage, HitCloth, StartGame};
use worldwire_uru::games::message::blue_spiral::server::ServerMessage;

use super::PlayError;
use super::playing::Playing;

/// The blue spiral: seven cloths that open a door if they are pressed in the right order.
#[derive(Clone, Debug, Default)]
pub struct SpiralGame {
    order: Option<[u8; 7]>,
    hits: u8,
    is_won: bool,
}

/// The number of cloths.
const CLOTHS: u8 = 7;

impl SpiralGame {
    /// The order in which to press the cloths in the current game. `None` if no game is running, or
    /// if it started before the player joined.
    #[must_use]
    pub fn order(&self) -> Option<[u8; 7]> {
        self.order
    }

    /// Whether all cloths have been pressed in the right order. [`is_won`](Self::is_won) may follow
    /// later.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.hits >= CLOTHS
    }

    /// Whether the current game is won. Servers report this to the owner only.
    #[must_use]
    pub fn is_won(&self) -> bool {
        self.is_won
    }

    pub(super) fn take(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::ClothOrder(cloths) => {
                *self = Self { order: Some(cloths.order.0), ..Self::default() };
            }
            ServerMessage::GameWon(_) => self.is_won = true,
            ServerMessage::GameOver(_) => *self = Self::default(),
            ServerMessage::SuccessfulHit(_) => self.hits = self.hits.saturating_add(1),
            ServerMessage::GameStarted(_) => {}
        }
    }
}

impl Playing<'_, SpiralGame> {
    /// Touches the door, which starts the game or restarts it. Servers ignore a restart within a
    /// second.
    pub fn start(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(StartGame {}))
    }

    /// Presses a cloth, 0 to 6. If it is the right one, only the owner receives a reply. A wrong
    /// one ends the game for everybody.
    pub fn press(&mut self, cloth: u8) -> Result<(), PlayError> {
        if cloth >= CLOTHS {
            let (field, wanted, found) = ("the cloth", "0 to 6", cloth.to_string());
            return Err(PlayError::Value { field, wanted, found });
        }
        self.send(ClientMessage::from(HitCloth { cloth }))
    }
}
