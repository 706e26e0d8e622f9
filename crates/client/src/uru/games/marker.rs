//! Marker games, as a player sees them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use worldwire_core::{Double, Error, Field as _};
use worldwire_uru::games::Marker;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::marker::client::{
    AddMarker, CaptureMarker, ChangeGameName, ChangeMarkerName, ChangeTimeLimit, ClientMessage,
    DeleteGame, DeleteMarker, PauseGame, ResetGame, StartGame,
};
use worldwire_uru::games::message::marker::server::ServerMessage;
use worldwire_uru::types::Uuid;

use super::PlayError;
use super::joined::Took;
use super::playing::{Playing, finite, send, text};

/// A marker game: markers in ages, to be found and captured. Each player opens a separate copy; the
/// server stores the markers, and who has captured them.
#[derive(Clone, Debug)]
pub struct MarkerGame {
    template: Uuid,
    /// Whether the player is creating the game.
    is_new: bool,
    name: String,
    marker_type: Option<MarkerGameType>,
    markers: BTreeMap<u32, Marker>,
    captured: BTreeSet<u32>,
    is_playing: bool,
    /// Whether the client has asked to play. The reply to that shows that the server has sent
    /// everything.
    has_asked: bool,
    is_complete: bool,
}

/// The maximum number of markers kept; far more than servers allow.
const MAX_MARKERS: usize = 8_192;

impl MarkerGame {
    /// A game that is being created or one opened from an existing template.
    pub(super) fn new(template: Option<Uuid>) -> Self {
        Self {
            template: template.unwrap_or(Uuid::ZERO),
            is_new: template.is_none(),
            name: String::new(),
            marker_type: None,
            markers: BTreeMap::new(),
            captured: BTreeSet::new(),
            is_playing: false,
            has_asked: false,
            is_complete: false,
        }
    }

    /// The template: the UUID with which any player can open the game.
    #[must_use]
    pub fn template(&self) -> Uuid {
        self.template
    }

    /// The name. The server sends an empty one for a template that it does not know.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type, once the server has sent it.
    #[must_use]
    pub fn marker_type(&self) -> Option<MarkerGameType> {
        self.marker_type
    }

    /// The markers, by ID.
    #[must_use]
    pub fn markers(&self) -> &BTreeMap<u32, Marker> {
        &self.markers
    }

    /// The markers that the player has captured.
    #[must_use]
    pub fn captured(&self) -> &BTreeSet<u32> {
        &self.captured
    }

    /// Whether the player is playing; otherwise the game is paused.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.is_playing
    }

    /// Whether the server has sent everything that it stores about the game.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Handles a message. Returns whether the game has ended.
    ///
    /// # Errors
    /// A limit error if there are too many markers.
    pub(super) fn take(
        &mut self,
        message: &ServerMessage<'_>,
        (game_id, transmit): (u32, &mut VecDeque<Vec<u8>>),
    ) -> Result<Took, Error> {
        match message {
            ServerMessage::TemplateCreated(created) => {
                let text = created.template.to_text();
                let error = || Error::malformed("a UUID", format!("{text:?}")).inside("template");
                self.template = Uuid::parse(&text).ok_or_else(error)?;
            }
            ServerMessage::GameType(change) => self.marker_type = Some(change.game_type),
            ServerMessage::GameNameChanged(change) => {
                self.name = change.name.to_text();
                self.named(game_id, transmit);
            }
            ServerMessage::GameStarted(_) => {
                self.is_playing = true;
                self.is_complete |= self.has_asked;
            }
            ServerMessage::GamePaused(_) | ServerMessage::GameOver(_) => self.is_playing = false,
            ServerMessage::GameReset(_) => {
                self.is_playing = false;
                self.captured.clear();
            }
            ServerMessage::GameDeleted(deleted) if !deleted.failed.is_true() => {
                return Ok(Took::Ended);
            }
            ServerMessage::MarkerAdded(added) => {
                let has_room = self.markers.len() < MAX_MARKERS;
                if !has_room && !self.markers.contains_key(&added.marker) {
                    let most = MAX_MARKERS as u64;
                    return Err(Error::limit("markers of a game", most, most + 1));
                }
                let position = [added.x.0, added.y.0, added.z.0];
                let (name, age) = (added.name.clone().into_owned(), added.age.clone().into_owned());
                self.markers.insert(added.marker, Marker { position, name, age });
            }
            ServerMessage::MarkerDeleted(deleted) => {
                self.markers.remove(&deleted.marker);
                self.captured.remove(&deleted.marker);
            }
            ServerMessage::MarkerNameChanged(change) => {
                if let Some(marker) = self.markers.get_mut(&change.marker) {
                    marker.name = change.name.clone().into_owned();
                }
            }
            ServerMessage::MarkerCaptured(captured) => {
                if self.markers.contains_key(&captured.marker) {
                    self.captured.insert(captured.marker);
                }
            }
            ServerMessage::TeamAssigned(_)
            | ServerMessage::TimeLimitChanged(_)
            | ServerMessage::GameDeleted(_) => {}
        }
        Ok(Took::Message)
    }

    /// Handles the name, which is the last message about a new game. For an existing game, the
    /// captures follow, and nothing marks their end. Game clients start playing at this point, and
    /// the reply to that arrives after the captures.
    fn named(&mut self, game_id: u32, transmit: &mut VecDeque<Vec<u8>>) {
        if self.is_new {
            self.is_complete = true;
        } else if !self.has_asked {
            self.has_asked = true;
            let sent = send(transmit, game_id, ClientMessage::from(StartGame {}));
            debug_assert!(sent.is_ok(), "{sent:?}");
        }
    }

    fn marker(&self, marker: u32) -> Result<&Marker, PlayError> {
        self.markers.get(&marker).ok_or(PlayError::NoMarker(marker))
    }
}

/// Edits have no effect unless the player created the game.
impl Playing<'_, MarkerGame> {
    /// Starts to play.
    pub fn start(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(StartGame {}))
    }

    /// Pauses the game until the next start.
    pub fn pause(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(PauseGame {}))
    }

    /// Forgets what the player has captured.
    pub fn reset(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(ResetGame {}))
    }

    /// Captures a marker.
    pub fn capture(&mut self, marker: u32) -> Result<(), PlayError> {
        self.state.marker(marker)?;
        if self.state.captured.contains(&marker) {
            return Err(PlayError::Captured(marker));
        }
        self.send(ClientMessage::from(CaptureMarker { marker }))
    }

    /// Adds a marker at a position in an age, given by its file name.
    pub fn add(&mut self, position: [f64; 3], age: &str, name: &str) -> Result<(), PlayError> {
        let [x, y, z] = position;
        let x = Double(finite("x", x)?);
        let y = Double(finite("y", y)?);
        let z = Double(finite("z", z)?);
        let (name, age) = (text("the marker's text", name)?, text("the age", age)?);
        self.send(ClientMessage::from(AddMarker { x, y, z, name, age }))
    }

    /// Changes a marker's text.
    pub fn rename_marker(&mut self, marker: u32, name: &str) -> Result<(), PlayError> {
        self.state.marker(marker)?;
        let name = text("the marker's text", name)?;
        self.send(ClientMessage::from(ChangeMarkerName { marker, name }))
    }

    /// Deletes a marker, for all players.
    pub fn delete_marker(&mut self, marker: u32) -> Result<(), PlayError> {
        self.state.marker(marker)?;
        self.send(ClientMessage::from(DeleteMarker { marker }))
    }

    /// Renames the game.
    pub fn rename(&mut self, name: &str) -> Result<(), PlayError> {
        let name = text("the name", name)?;
        self.send(ClientMessage::from(ChangeGameName { name }))
    }

    /// Changes the time limit, in milliseconds.
    pub fn set_time_limit(&mut self, time_limit: u32) -> Result<(), PlayError> {
        self.send(ClientMessage::from(ChangeTimeLimit { time_limit }))
    }

    /// Deletes the game. The server keeps a quest's template, which other players may have.
    pub fn delete(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(DeleteGame {}))
    }
}
