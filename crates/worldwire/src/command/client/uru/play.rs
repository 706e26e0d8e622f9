//! Steps in the games of an age.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::timeout;
use worldwire_client::uru::games::{
    GameState, JoinedGame, MarkerGame, PlayError, PlayEvent, PlayerGames, VarSyncGame, VarValue,
};
use worldwire_client::uru::{ClientError, Result};
use worldwire_uru::games::message::any::server::ServerMessage as Any;
use worldwire_uru::games::message::blue_spiral::server::ServerMessage as Spiral;
use worldwire_uru::games::message::heek::HeekChoice;
use worldwire_uru::games::message::heek::server::ServerMessage as Heek;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::marker::server::ServerMessage as Marker;
use worldwire_uru::games::message::var_sync::server::ServerMessage as VarSync;
use worldwire_uru::games::{GameBody, GameType};
use worldwire_uru::types::Uuid;

use super::age::{InAge, Receiver};
use super::play_step::{GAMES, PlayStep};

/// The points of a player who has never played Heek.
const FIRST_POINTS: u32 = 100;
/// How long to wait for the answer to a marker game change. Servers answer as soon as the change is
/// stored, or never.
const EDIT_PATIENCE: Duration = Duration::from_secs(5);
/// The table that game clients use for VarSync. For other games, they use 0.
const VAR_SYNC_TABLE: u32 = 255;

impl PlayStep {
    /// The reason why a server may not answer the step: it drops requests that it does not accept.
    pub(super) fn no_answer(&self) -> Option<&'static str> {
        Some(match self {
            Self::TouchDoor | Self::SolveDoor => "servers ignore a second start within a second",
            Self::PlayRound(_) => "two players must sit at the table and choose",
            Self::StandUp => "you are not sitting at the table",
            step if step.is_edit() => "only the creator of a marker game can change it",
            _ => return None,
        })
    }

    /// Whether the step changes a marker game for all players.
    fn is_edit(&self) -> bool {
        matches!(
            self,
            Self::AddMarker(..)
                | Self::RenameMarker(..)
                | Self::DeleteMarker(_)
                | Self::RenameMarkerGame(_)
                | Self::LimitMarkerGame(_)
        )
    }
}

impl InAge {
    /// Runs a step in a game. Marker games are created and opened by the session, which knows the
    /// vault.
    pub(super) async fn play(&mut self, step: &PlayStep) -> Result<Vec<Json>> {
        match step {
            PlayStep::Games => self.games().map(|games| listed(games)),
            PlayStep::JoinGame(game, table) => {
                let usual = if *game == GameType::VarSync { VAR_SYNC_TABLE } else { 0 };
                self.games()?.join(*game, table.unwrap_or(usual))?;
                self.entered().await
            }
            PlayStep::LeaveGame(game) => {
                self.games()?.leave(*game)?;
                self.flush().await
            }
            PlayStep::TouchDoor => {
                let door = self.games()?.last(GameType::BlueSpiral)?;
                self.touch_door(door).await
            }
            PlayStep::PressCloth(cloth) => self.press_cloth(*cloth).await,
            PlayStep::SolveDoor => self.solve_door().await,
            PlayStep::Sit(seat, points) => self.sit(*seat, points.unwrap_or(FIRST_POINTS)).await,
            PlayStep::Choose(choice) => {
                let table = self.games()?.last(GameType::Heek)?;
                self.games()?.heek(table)?.choose(*choice)?;
                self.flush().await
            }
            PlayStep::PlayRound(choice) => self.play_round(*choice).await,
            PlayStep::StandUp => {
                let table = self.games()?.last(GameType::Heek)?;
                self.games()?.heek(table)?.stand_up()?;
                let is_it = |body: &_| matches!(body, GameBody::HeekServer(Heek::Goodbye(_)));
                self.answer("StandUp", table, is_it).await
            }
            PlayStep::CreateVar(name, value) => {
                let game = self.games()?.last(GameType::VarSync)?;
                self.games()?.var_sync(game)?.create(name, value)?;
                let is_it = |body: &_| match body {
                    GameBody::VarSyncServer(VarSync::StringVarCreated(it)) => {
                        it.name.to_text() == *name
                    }
                    GameBody::VarSyncServer(VarSync::NumericVarCreated(it)) => {
                        it.name.to_text() == *name
                    }
                    _ => false,
                };
                self.answer("CreateVar", game, is_it).await
            }
            PlayStep::SetVar(name, value) => self.set_var(name, value).await,
            PlayStep::Vars => {
                let game = self.games()?.last(GameType::VarSync)?;
                self.games()?.var_sync(game)?.request_all()?;
                let is_it =
                    |body: &_| matches!(body, GameBody::VarSyncServer(VarSync::AllVarsSent(_)));
                self.answer("RequestAllVars", game, is_it).await?;
                Ok(variables(self.games()?.var_sync(game)?.state()))
            }
            step => self.play_markers(step).await,
        }
    }

    /// Runs a step in a marker game.
    async fn play_markers(&mut self, step: &PlayStep) -> Result<Vec<Json>> {
        let id = self.games()?.last(GameType::Marker)?;
        let mut game = self.games()?.marker(id)?;
        let (request, is_it): (_, fn(&Marker<'_>) -> bool) = match step {
            PlayStep::Markers => return Ok(markers(game.state())),
            // The server does not answer a second start.
            PlayStep::PlayMarkers if game.state().is_playing() => return Ok(Vec::new()),
            PlayStep::PlayMarkers => {
                game.start()?;
                ("StartGame", |it| matches!(it, Marker::GameStarted(_)))
            }
            PlayStep::PauseMarkers => {
                game.pause()?;
                ("PauseGame", |it| matches!(it, Marker::GamePaused(_)))
            }
            PlayStep::ResetMarkers => {
                game.reset()?;
                ("ResetGame", |it| matches!(it, Marker::GameReset(_)))
            }
            PlayStep::CaptureMarker(marker) => {
                game.capture(*marker)?;
                ("CaptureMarker", |it| matches!(it, Marker::MarkerCaptured(_)))
            }
            PlayStep::RenameMarker(marker, name) => {
                game.rename_marker(*marker, name)?;
                ("ChangeMarkerName", |it| matches!(it, Marker::MarkerNameChanged(_)))
            }
            PlayStep::DeleteMarker(marker) => {
                game.delete_marker(*marker)?;
                ("DeleteMarker", |it| matches!(it, Marker::MarkerDeleted(_)))
            }
            PlayStep::RenameMarkerGame(name) => {
                game.rename(name)?;
                ("ChangeGameName", |it| matches!(it, Marker::GameNameChanged(_)))
            }
            PlayStep::LimitMarkerGame(limit) => {
                game.set_time_limit(*limit)?;
                ("ChangeTimeLimit", |it| matches!(it, Marker::TimeLimitChanged(_)))
            }
            PlayStep::DeleteMarkerGame => {
                game.delete()?;
                ("DeleteGame", |it| matches!(it, Marker::GameDeleted(_)))
            }
            PlayStep::AddMarker(x, y, z, name) => {
                let age = self.filename.clone();
                self.games()?.marker(id)?.add([*x, *y, *z], &age, name)?;
                ("AddMarker", |it| matches!(it, Marker::MarkerAdded(_)))
            }
            _ => return Ok(Vec::new()),
        };
        let answers = |body: &_| matches!(body, GameBody::MarkerServer(it) if is_it(it));
        let patience = self.patience;
        if step.is_edit() {
            self.patience = patience.min(EDIT_PATIENCE);
        }
        let answer = self.answer(request, id, answers).await;
        self.patience = patience;
        answer
    }

    /// Creates a marker game and also returns its template.
    pub(super) async fn create_markers(
        &mut self,
        name: &str,
        marker_type: MarkerGameType,
    ) -> Result<(Vec<Json>, Uuid)> {
        self.games()?.create_markers(marker_type, name)?;
        let values = self.entered().await?;
        let id = self.games()?.last(GameType::Marker)?;
        let template = self.games()?.marker(id)?.state().template();
        Ok((values, template))
    }

    /// Opens a marker game.
    pub(super) async fn open_markers(&mut self, template: Uuid) -> Result<Vec<Json>> {
        self.games()?.open_markers(template)?;
        self.entered().await
    }

    /// Starts the blue spiral and waits until all signs have been shown.
    async fn touch_door(&mut self, door: u32) -> Result<Vec<Json>> {
        self.games()?.blue_spiral(door)?.start()?;
        let is_it = |body: &_| matches!(body, GameBody::BlueSpiralServer(Spiral::GameStarted(_)));
        self.answer("StartGame", door, is_it).await
    }

    /// Presses a cloth. The owner receives an answer if the game is running.
    async fn press_cloth(&mut self, cloth: u8) -> Result<Vec<Json>> {
        let door = self.games()?.last(GameType::BlueSpiral)?;
        let mut playing = self.games()?.blue_spiral(door)?;
        playing.press(cloth)?;
        let state = playing.state();
        if !playing.is_owner() || state.order().is_none() || state.is_won() {
            return self.flush().await;
        }
        let (values, ()) = self
            .until("HitCloth", |event, games| match on(event, door)? {
                GameBody::BlueSpiralServer(Spiral::GameOver(_) | Spiral::GameWon(_)) => Some(()),
                // After the last cloth, the server also reports the win.
                GameBody::BlueSpiralServer(Spiral::SuccessfulHit(_)) => {
                    let playing = games.blue_spiral(door).ok()?;
                    (!playing.state().is_complete()).then_some(())
                }
                _ => None,
            })
            .await?;
        Ok(values)
    }

    /// Starts the blue spiral and presses the cloths in the order that is shown.
    async fn solve_door(&mut self) -> Result<Vec<Json>> {
        let door = self.games()?.last(GameType::BlueSpiral)?;
        let mut values = self.touch_door(door).await?;
        let mut playing = self.games()?.blue_spiral(door)?;
        let order = playing.state().order().unwrap_or_default();
        for cloth in order {
            playing.press(cloth)?;
        }
        if !playing.is_owner() {
            values.extend(self.flush().await?);
            values.push(json!({"game": door, "pressed": order}));
            return Ok(values);
        }
        let (more, is_won) = self
            .until("HitCloth", |event, _| match on(event, door)? {
                GameBody::BlueSpiralServer(Spiral::GameWon(_)) => Some(true),
                GameBody::BlueSpiralServer(Spiral::GameOver(_)) => Some(false),
                _ => None,
            })
            .await?;
        values.extend(more);
        values.push(json!({"game": door, "pressed": order, "won": is_won}));
        Ok(values)
    }

    async fn sit(&mut self, seat: u8, points: u32) -> Result<Vec<Json>> {
        let table = self.games()?.last(GameType::Heek)?;
        let name = self.player.name.clone();
        self.games()?.heek(table)?.sit(seat, points, &name)?;
        let (values, sits) = self
            .until("PlayGame", |event, _| match on(event, table)? {
                GameBody::HeekServer(Heek::PlayGame(reply)) => Some(reply.playing.is_true()),
                _ => None,
            })
            .await?;
        if sits { Ok(values) } else { Err(PlayError::SeatTaken(seat).into()) }
    }

    /// Plays a round of Heek: chooses as soon as the buttons are open, then waits until they open
    /// again or another player has left.
    async fn play_round(&mut self, choice: HeekChoice) -> Result<Vec<Json>> {
        let table = self.games()?.last(GameType::Heek)?;
        let mut values = Vec::new();
        let is_win = loop {
            if !self.games()?.heek(table)?.state().is_open() {
                let opened = |event: &_, games: &mut PlayerGames| {
                    on(event, table)?;
                    games.heek(table).ok()?.state().is_open().then_some(())
                };
                values.extend(self.until("InterfaceState", opened).await?.0);
            }
            self.games()?.heek(table)?.choose(choice)?;
            // If the time for this round was already up, or nobody else has chosen, the buttons
            // open again.
            let (more, outcome) = self
                .until("Choose", |event, _| match on(event, table)? {
                    GameBody::HeekServer(Heek::WinLose(outcome)) => Some(Some(outcome.win)),
                    GameBody::HeekServer(Heek::InterfaceState(state)) => {
                        state.enabled.is_true().then_some(None)
                    }
                    _ => None,
                })
                .await?;
            values.extend(more);
            if let Some(win) = outcome {
                break win.is_true();
            }
        };
        let over = |event: &_, _: &mut PlayerGames| match on(event, table)? {
            GameBody::AnyServer(Any::PlayerLeft(_)) => Some(()),
            GameBody::HeekServer(Heek::InterfaceState(state)) => {
                state.enabled.is_true().then_some(())
            }
            _ => None,
        };
        values.extend(self.until("Choose", over).await?.0);
        let score = self.games()?.heek(table)?.state().score();
        let (points, rank) = score.unzip();
        values.push(json!({"game": table, "win": is_win, "points": points, "rank": rank}));
        Ok(values)
    }

    async fn set_var(&mut self, name: &str, value: &VarValue) -> Result<Vec<Json>> {
        let game = self.games()?.last(GameType::VarSync)?;
        let mut playing = self.games()?.var_sync(game)?;
        playing.set(name, value)?;
        let var = playing.state().variables().find(|(_, variable)| variable.name == name);
        let id = var.map(|(id, _)| id);
        let is_it = |body: &_| match body {
            GameBody::VarSyncServer(VarSync::StringVarChanged(it)) => Some(it.var) == id,
            GameBody::VarSyncServer(VarSync::NumericVarChanged(it)) => Some(it.var) == id,
            _ => false,
        };
        self.answer("SetVar", game, is_it).await
    }

    fn games(&mut self) -> Result<&mut PlayerGames> {
        match &mut self.receiver {
            Receiver::Steps(watcher) => Ok(&mut watcher.games),
            // The program refuses such steps.
            Receiver::Task(..) => Err(ClientError::Overflow),
        }
    }

    /// Sends the queued messages.
    async fn flush(&mut self) -> Result<Vec<Json>> {
        if let Receiver::Steps(watcher) = &mut self.receiver {
            self.game.send_games(&mut watcher.games).await?;
        }
        Ok(Vec::new())
    }

    /// Waits until the player is in the requested game.
    async fn entered(&mut self) -> Result<Vec<Json>> {
        let (mut values, entered) = self
            .until("GameInstance", |event, _| match event {
                PlayEvent::Entered { game_id, .. } => Some(Ok(*game_id)),
                PlayEvent::Refused { game_type, result } => {
                    Some(Err(PlayError::Refused { game: *game_type, result: *result }))
                }
                _ => None,
            })
            .await?;
        let id = entered?;
        values.extend(self.games()?.joined().iter().filter(|joined| joined.id() == id).map(joined));
        Ok(values)
    }

    /// Waits for a message from a game.
    async fn answer(
        &mut self,
        request: &'static str,
        game_id: u32,
        is_it: impl Fn(&GameBody<'static>) -> bool,
    ) -> Result<Vec<Json>> {
        let found =
            |event: &_, _: &mut PlayerGames| on(event, game_id).filter(|it| is_it(it)).map(drop);
        Ok(self.until(request, found).await?.0)
    }

    /// Sends the queued messages and processes notifications until `found` returns something. Also
    /// returns the values to print.
    async fn until<T>(
        &mut self,
        request: &'static str,
        mut found: impl FnMut(&PlayEvent, &mut PlayerGames) -> Option<T>,
    ) -> Result<(Vec<Json>, T)> {
        self.flush().await?;
        let Receiver::Steps(watcher) = &mut self.receiver else {
            return Err(ClientError::Overflow);
        };
        let mut values = Vec::new();
        let search = async {
            while let Some(notification) = watcher.notifications.next().await {
                let (more, events) = watcher.take(&self.game, &notification).await?;
                values.extend(more);
                let mut found = events.iter().filter_map(|event| found(event, &mut watcher.games));
                if let Some(found) = found.next() {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        match timeout(self.patience, search).await {
            Ok(Ok(Some(found))) => Ok((values, found)),
            Ok(Ok(None)) => Err(self.over().await),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ClientError::Timeout { request }),
        }
    }
}

/// An event's message, if it comes from this game.
fn on(event: &PlayEvent, game: u32) -> Option<&GameBody<'static>> {
    match event {
        PlayEvent::Message { game_id, body, .. } if *game_id == game => Some(body),
        _ => None,
    }
}

/// The name of a game type in steps.
fn game_name(game: GameType) -> &'static str {
    GAMES.iter().find(|(_, of)| *of == game).map_or("", |(name, _)| name)
}

/// The game types and the games that the player is in.
fn listed(games: &PlayerGames) -> Vec<Json> {
    let types = GameType::ALL.iter();
    let types =
        types.map(|game| json!({"type": game_name(*game), "announced": games.serves(*game)}));
    types.chain(games.joined().iter().map(joined)).collect()
}

/// A game that the player is in.
fn joined(joined: &JoinedGame) -> Json {
    let state = joined.state();
    let mut shown = json!({
        "game": joined.id(),
        "type": game_name(state.game_type()),
        "owner": joined.owner(),
        "members": joined.members().collect::<Vec<_>>(),
    });
    match state {
        GameState::Heek(game) => shown["seat"] = json!(game.seat()),
        GameState::Marker(game) => {
            shown["name"] = json!(game.name());
            shown["template"] = json!(game.template().to_string());
            shown["kind"] = json!(game.marker_type().and_then(|it| it.name()));
            shown["markers"] = json!(game.markers().len());
            shown["captured"] = json!(game.captured().len());
        }
        GameState::VarSync(game) => shown["variables"] = json!(game.variables().len()),
        GameState::BlueSpiral(_) | GameState::Other(_) => {}
    }
    shown
}

fn variables(game: &VarSyncGame) -> Vec<Json> {
    let shown = game.variables().map(|(id, variable)| {
        let value = match &variable.value {
            VarValue::Number(number) => json!(number),
            VarValue::Text(text) => json!(text),
        };
        json!({"var": id, "name": variable.name, "value": value})
    });
    shown.collect()
}

fn markers(game: &MarkerGame) -> Vec<Json> {
    let shown = game.markers().iter().map(|(id, marker)| {
        json!({
            "marker": id,
            "name": marker.name.to_text(),
            "age": marker.age.to_text(),
            "position": marker.position,
            "captured": game.captured().contains(id),
        })
    });
    shown.collect()
}
