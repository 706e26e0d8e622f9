//! The game manager's games, as one player's client plays them, without I/O.
//!
//! ```
//! use worldwire_client::uru::games::{PlayEvent, PlayerGames};
//! use worldwire_uru::games::GameType;
//!
//! # fn exchange(_: Vec<u8>) -> Option<Vec<u8>> { None }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut games = PlayerGames::new(1001, None);
//! games.join(GameType::BlueSpiral, 0)?;
//! while let Some(message) = games.poll_transmit() {
//!     // `Game::send_games` sends it. Answers arrive as `Notification::GameManager`.
//!     let Some(answer) = exchange(message) else { break };
//!     for event in games.receive(&answer)? {
//!         if let PlayEvent::Entered { game_id, .. } = event {
//!             games.blue_spiral(game_id)?.start()?;
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod blue_spiral;
mod error;
mod heek;
mod joined;
mod marker;
mod playing;
mod var_sync;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use worldwire_core::{Error, Reader, Result, Side};
use worldwire_uru::games::message::any::client::{ClientMessage as Any, LeaveGame};
use worldwire_uru::games::message::manager::client::{ClientMessage, CreateGame, JoinGame};
use worldwire_uru::games::message::manager::server::{GameInstance, ServerMessage};
use worldwire_uru::games::message::manager::{GameOptions, GameResult};
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::{
    CreateData, CreateRequest, JoinRequest, MarkerParams, NewGame, TicTacToeParams,
};
use worldwire_uru::games::{GameBody, GameHeader, GameMessage, GameType};
use worldwire_uru::message::Caps;
use worldwire_uru::types::{TransId, Uuid};

pub use blue_spiral::SpiralGame;
pub use error::PlayError;
pub use heek::HeekGame;
pub use joined::{GameState, JoinedGame};
pub use marker::MarkerGame;
pub use playing::Playing;
pub use var_sync::{VarSyncGame, VarValue, Variable};

use joined::Took;
use playing::{not_sent, send, text};

/// The games of one player in one age, without I/O.
///
/// | calls | purpose |
/// | --- | --- |
/// | [`join`](Self::join), [`create_markers`](Self::create_markers), [`open_markers`](Self::open_markers), [`leave`](Self::leave), and the methods of [`Playing`] | commands; each queues a message |
/// | [`receive`](Self::receive) | input |
/// | [`poll_transmit`](Self::poll_transmit) | output; poll until `None` after every command and input |
///
/// Games end when the player leaves the age: use a new `PlayerGames` in the next age.
#[derive(Clone, Debug)]
pub struct PlayerGames {
    player: u32,
    /// What the server announces; `None` if it announces nothing.
    served: Option<BTreeSet<GameType>>,
    last_trans_id: u32,
    /// Unanswered requests, each with the initial state of its game.
    requests: BTreeMap<u32, GameState>,
    /// In the order of joining.
    joined: Vec<JoinedGame>,
    transmit: VecDeque<Vec<u8>>,
}

/// Something that happened in a player's games.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlayEvent {
    /// A message from the server. Every message is reported, before the events that follow from it.
    Message {
        /// The game; 0 for the manager.
        game_id: u32,
        /// The game's type; `None` for the manager, and for a game that the player is not in.
        game_type: Option<GameType>,
        /// The message.
        body: GameBody<'static>,
    },
    /// The player is in a game, and the server has sent everything that a new member receives.
    Entered {
        /// The game.
        game_id: u32,
        /// Its type.
        game_type: GameType,
    },
    /// The server refused a request to join or create a game.
    Refused {
        /// The type of the game.
        game_type: GameType,
        /// The reason.
        result: GameResult,
    },
    /// The server has ended a game.
    Ended {
        /// The game.
        game_id: u32,
        /// Its type.
        game_type: GameType,
    },
}

impl PlayerGames {
    /// The games of a player who has just joined an age. `caps` holds the capabilities that the
    /// server announced on the player's auth connection; if it announced none, this assumes that
    /// the server has all games.
    #[must_use]
    pub fn new(player: u32, caps: Option<&Caps>) -> Self {
        let served = caps.map(|caps| {
            let bits: BTreeSet<u32> = caps.bits.bits().collect();
            GameType::ALL.into_iter().filter(|game| bits.contains(&game.caps_bit())).collect()
        });
        Self {
            player,
            served,
            last_trans_id: 0,
            requests: BTreeMap::new(),
            joined: Vec::new(),
            transmit: VecDeque::new(),
        }
    }

    /// Whether the server announces this type of game.
    #[must_use]
    pub fn serves(&self, game: GameType) -> bool {
        self.served.as_ref().is_none_or(|served| served.contains(&game))
    }

    /// The joined games, in the order of joining.
    #[must_use]
    pub fn joined(&self) -> &[JoinedGame] {
        &self.joined
    }

    /// The most recently joined game of a type.
    ///
    /// # Errors
    /// [`PlayError::NotJoined`].
    pub fn last(&self, game: GameType) -> Result<u32, PlayError> {
        let last = self.joined.iter().rev().find(|joined| joined.state.game_type() == game);
        last.map(|joined| joined.id).ok_or(PlayError::NotJoined(game))
    }

    /// Joins the common game of a type at a table. The server creates the game if needed. Game
    /// clients use table 255 for VarSync, and 0 for other games.
    ///
    /// # Errors
    /// [`PlayError::NotServed`]; for marker games, which are never common, [`PlayError::Value`].
    pub fn join(&mut self, game: GameType, table: u32) -> Result<(), PlayError> {
        let data = match game {
            GameType::Marker => {
                let (field, wanted) = ("the game", "one that can be joined");
                let found = "a marker game, which must be created or opened".to_owned();
                return Err(PlayError::Value { field, wanted, found });
            }
            GameType::TicTacToe => CreateData::TicTacToe(TicTacToeParams { players: 2 }),
            // Game clients send no data for Heek, and one byte for the others.
            _ => CreateData::Nothing { filler: game != GameType::Heek },
        };
        let new_game = Some(NewGame { game_type: game.id(), data });
        let request = JoinRequest { game_id: table, options: GameOptions::Common, new_game };
        self.request(GameState::common(game), ClientMessage::from(JoinGame { request }))
    }

    /// Creates a marker game with this name. [`MarkerGame::template`] then lets others open it.
    pub fn create_markers(
        &mut self,
        marker_type: MarkerGameType,
        name: &str,
    ) -> Result<(), PlayError> {
        self.markers(None, marker_type, name)
    }

    /// Opens an existing marker game and starts playing it, as game clients do.
    pub fn open_markers(&mut self, template: Uuid) -> Result<(), PlayError> {
        self.markers(Some(template), MarkerGameType::Quest, "")
    }

    fn markers(
        &mut self,
        template: Option<Uuid>,
        marker_type: MarkerGameType,
        name: &str,
    ) -> Result<(), PlayError> {
        let name = text("the name", name)?;
        let given = template.map_or_else(String::new, |template| template.to_string());
        let params =
            MarkerParams { marker_type, name, time_limit: 0, template: given.as_str().into() };
        let (game_type, options) = (GameType::Marker.id(), GameOptions(0));
        let request =
            CreateRequest { game_type, options, data: CreateData::Marker(Box::new(params)) };
        let state = GameState::Marker(Box::new(MarkerGame::new(template)));
        self.request(state, ClientMessage::from(CreateGame { request }))
    }

    /// Sends a request, in a new transaction.
    fn request(&mut self, first: GameState, body: ClientMessage<'_>) -> Result<(), PlayError> {
        let game = first.game_type();
        if !self.serves(game) {
            return Err(PlayError::NotServed(game));
        }
        // 0 means "no transaction".
        let trans_id = self.last_trans_id.checked_add(1).unwrap_or(1);
        let message = GameMessage { trans_id: TransId(trans_id), game_id: 0, body: body.into() };
        self.transmit.push_back(message.to_bytes().map_err(not_sent)?);
        self.last_trans_id = trans_id;
        self.requests.insert(trans_id, first);
        Ok(())
    }

    /// Leaves a game. The server does not reply.
    ///
    /// # Errors
    /// [`PlayError::NotJoined`] if the server has not confirmed that the player is in it.
    pub fn leave(&mut self, game: GameType) -> Result<u32, PlayError> {
        let game_id = self.last(game)?;
        let is_it = |joined: &&JoinedGame| joined.id == game_id && joined.is_member;
        self.joined.iter().find(is_it).ok_or(PlayError::NotJoined(game))?;
        send(&mut self.transmit, game_id, Any::from(LeaveGame {}))?;
        self.joined.retain(|joined| joined.id != game_id);
        Ok(game_id)
    }

    /// A game of the blue spiral.
    pub fn blue_spiral(&mut self, game_id: u32) -> Result<Playing<'_, SpiralGame>, PlayError> {
        self.playing(game_id, GameType::BlueSpiral, |state| match state {
            GameState::BlueSpiral(game) => Some(game),
            _ => None,
        })
    }

    /// A game of Heek.
    pub fn heek(&mut self, game_id: u32) -> Result<Playing<'_, HeekGame>, PlayError> {
        self.playing(game_id, GameType::Heek, |state| match state {
            GameState::Heek(game) => Some(game),
            _ => None,
        })
    }

    /// A VarSync game.
    pub fn var_sync(&mut self, game_id: u32) -> Result<Playing<'_, VarSyncGame>, PlayError> {
        self.playing(game_id, GameType::VarSync, |state| match state {
            GameState::VarSync(game) => Some(game),
            _ => None,
        })
    }

    /// A marker game.
    pub fn marker(&mut self, game_id: u32) -> Result<Playing<'_, MarkerGame>, PlayError> {
        self.playing(game_id, GameType::Marker, |state| match state {
            GameState::Marker(game) => Some(&mut **game),
            _ => None,
        })
    }

    fn playing<S>(
        &mut self,
        game_id: u32,
        game: GameType,
        of: impl FnOnce(&mut GameState) -> Option<&mut S>,
    ) -> Result<Playing<'_, S>, PlayError> {
        let Self { player, joined, transmit, .. } = self;
        let found = joined.iter_mut().find(|joined| joined.id == game_id && joined.is_member);
        let JoinedGame { owner, state, .. } = found.ok_or(PlayError::NotJoined(game))?;
        let state = of(state).ok_or(PlayError::NotJoined(game))?;
        Ok(Playing { game_id, player: *player, owner: *owner, state, transmit })
    }

    /// Handles the content of a `GameMgrMsg` and queues the client's automatic replies.
    ///
    /// # Errors
    /// Malformed messages and limits on what the client keeps.
    pub fn receive(&mut self, buffer: &[u8]) -> Result<Vec<PlayEvent>> {
        let game_id = GameHeader::of(buffer).map_or(0, |header| header.game_id);
        let at = self.joined.iter().position(|joined| joined.id == game_id && game_id != 0);
        let game_type = at.and_then(|at| self.joined.get(at)).map(|it| it.state.game_type());
        let message = GameMessage::decode(game_type, Side::Server, &mut Reader::new(buffer));
        let GameMessage { trans_id, game_id, body } = message.map_err(Error::closed)?.into_owned();
        let mut events = Vec::new();
        if let GameBody::ManagerServer(ServerMessage::GameInstance(instance)) = &body {
            events.extend(self.answered(trans_id, instance)?);
        }
        if let (Some(at), Some(game_type)) = (at, game_type)
            && let Some(joined) = self.joined.get_mut(at)
        {
            match joined.take(self.player, &body, &mut self.transmit)? {
                Took::Message => {}
                Took::Entered => events.push(PlayEvent::Entered { game_id, game_type }),
                Took::Ended => {
                    self.joined.remove(at);
                    events.push(PlayEvent::Ended { game_id, game_type });
                }
            }
        }
        events.insert(0, PlayEvent::Message { game_id, game_type, body });
        Ok(events)
    }

    /// Handles the reply to a request. Other replies have no effect.
    fn answered(
        &mut self,
        trans_id: TransId,
        instance: &GameInstance,
    ) -> Result<Option<PlayEvent>> {
        let Some(first) = self.requests.remove(&trans_id.0) else { return Ok(None) };
        let game_type = first.game_type();
        let result = instance.result;
        if result != GameResult::Success {
            return Ok(Some(PlayEvent::Refused { game_type, result }));
        }
        let known = self.joined.iter_mut().find(|joined| joined.id == instance.game_id);
        let is_other = known.as_ref().is_some_and(|known| known.state.game_type() != game_type);
        if is_other || instance.game_type != game_type.id() || instance.game_id == 0 {
            let found = format!("game {} of type {}", instance.game_id, instance.game_type);
            let error = Error::malformed(format!("a game of {}", game_type.name()), found);
            return Err(error.inside("GameInstance"));
        }
        match known {
            Some(joined) => joined.rejoin(),
            None => self.joined.push(JoinedGame::new(instance.game_id, first)),
        }
        Ok(None)
    }

    /// The next message to send to the server, in a `GameMgrMsg`.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }
}
