//! A game that a player has joined.

use std::collections::{BTreeSet, VecDeque};

use worldwire_core::{Error, Result};
use worldwire_uru::games::message::any::server::ServerMessage as Any;
use worldwire_uru::games::message::tic_tac_toe::server::ServerMessage as TicTacToe;
use worldwire_uru::games::{GameBody, GameType};

use super::blue_spiral::SpiralGame;
use super::heek::HeekGame;
use super::marker::MarkerGame;
use super::var_sync::VarSyncGame;

/// What is known about a game that a player has joined.
#[derive(Clone, Debug)]
pub struct JoinedGame {
    pub(super) id: u32,
    pub(super) owner: Option<u32>,
    pub(super) state: GameState,
    members: BTreeSet<u32>,
    /// Whether the server has said that the player is a member.
    pub(super) is_member: bool,
    has_entered: bool,
}

/// What is known about a game.
#[derive(Clone, Debug)]
pub enum GameState {
    /// The blue spiral.
    BlueSpiral(SpiralGame),
    /// Heek.
    Heek(HeekGame),
    /// A marker game.
    Marker(Box<MarkerGame>),
    /// VarSync.
    VarSync(VarSyncGame),
    /// A game of another type. Only its members are known.
    Other(GameType),
}

/// What a message led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// The message neither completed the player's entry nor ended the game.
    Message,
    /// The server has sent everything that a new member receives.
    Entered,
    /// The game has ended.
    Ended,
}

/// The maximum number of members kept; more than servers allow.
const MAX_MEMBERS: usize = 1_024;

impl GameState {
    /// The initial state of a common game.
    pub(super) fn common(game: GameType) -> Self {
        match game {
            GameType::BlueSpiral => Self::BlueSpiral(SpiralGame::default()),
            GameType::Heek => Self::Heek(HeekGame::default()),
            GameType::VarSync => Self::VarSync(VarSyncGame::default()),
            other => Self::Other(other),
        }
    }

    /// The type of the game.
    #[must_use]
    pub fn game_type(&self) -> GameType {
        match self {
            Self::BlueSpiral(_) => GameType::BlueSpiral,
            Self::Heek(_) => GameType::Heek,
            Self::Marker(_) => GameType::Marker,
            Self::VarSync(_) => GameType::VarSync,
            Self::Other(game) => *game,
        }
    }

    /// Whether the server has sent the part of a join that depends on the game's type.
    fn is_complete(&self) -> bool {
        match self {
            Self::Marker(game) => game.is_complete(),
            Self::VarSync(game) => game.is_complete(),
            Self::BlueSpiral(_) | Self::Heek(_) | Self::Other(_) => true,
        }
    }
}

impl JoinedGame {
    pub(super) fn new(id: u32, state: GameState) -> Self {
        let (owner, members) = (None, BTreeSet::new());
        Self { id, owner, state, members, is_member: false, has_entered: false }
    }

    /// Resets this record, because a member is joining again and the server repeats everything that
    /// it sends to new members.
    pub(super) fn rejoin(&mut self) {
        (self.is_member, self.has_entered, self.owner) = (false, false, None);
    }

    /// The ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The owner; `None` until the server has sent it.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The player, and the members who joined later. Servers do not name those who joined earlier.
    pub fn members(&self) -> impl ExactSizeIterator<Item = u32> {
        self.members.iter().copied()
    }

    /// What is known about the game.
    #[must_use]
    pub fn state(&self) -> &GameState {
        &self.state
    }

    /// Handles a message to this game and queues the client's automatic replies.
    ///
    /// # Errors
    /// Malformed fields and limits on what the client keeps.
    pub(super) fn take(
        &mut self,
        player: u32,
        body: &GameBody<'_>,
        transmit: &mut VecDeque<Vec<u8>>,
    ) -> Result<Took> {
        let is_owner = self.owner == Some(player);
        let (id, out) = (self.id, transmit);
        let took = match (&mut self.state, body) {
            (_, GameBody::AnyServer(message)) => {
                self.membership(player, message)?;
                Took::Message
            }
            (GameState::BlueSpiral(game), GameBody::BlueSpiralServer(message)) => {
                game.take(message);
                Took::Message
            }
            (GameState::Heek(game), GameBody::HeekServer(message)) => {
                game.take(message, is_owner, (id, out));
                Took::Message
            }
            (GameState::Marker(game), GameBody::MarkerServer(message)) => {
                game.take(message, (id, out))?
            }
            (GameState::VarSync(game), GameBody::VarSyncServer(message)) => {
                game.take(message)?;
                Took::Message
            }
            (GameState::Other(_), GameBody::TicTacToeServer(TicTacToe::GameOver(_))) => Took::Ended,
            _ => Took::Message,
        };
        let is_in = self.is_member && self.owner.is_some() && self.state.is_complete();
        if took == Took::Message && is_in && !self.has_entered {
            self.has_entered = true;
            return Ok(Took::Entered);
        }
        Ok(took)
    }

    fn membership(&mut self, player: u32, message: &Any) -> Result<()> {
        match message {
            Any::PlayerJoined(joined) => {
                self.is_member |= joined.player == player;
                self.members.insert(joined.player);
                if self.members.len() > MAX_MEMBERS {
                    let most = MAX_MEMBERS as u64;
                    return Err(Error::limit("members of a game", most, most + 1));
                }
            }
            Any::PlayerLeft(left) => drop(self.members.remove(&left.player)),
            Any::OwnerChange(change) => self.owner = Some(change.owner),
            Any::InviteFailed(_) => {}
        }
        Ok(())
    }
}
