//! The rules of marker games.
//!
//! The store holds all data except whether the player is playing. Answers are sent in the order of
//! the messages, so an answer that waits for the store delays later ones.

use std::collections::VecDeque;

use worldwire_core::{Double, Error, Field};

use super::library::{Marker, MarkerAnswer, MarkerRequest, MarkerTemplate};
use super::message::MarkerParams;
use super::message::any::server::{OwnerChange, PlayerJoined, ServerMessage as Any};
use super::message::manager::GameResult;
use super::message::manager::server::{GameInstance, ServerMessage as Manager};
use super::message::marker::client::{AddMarker, ClientMessage};
use super::message::marker::server::{
    GameDeleted, GameNameChanged, GamePaused, GameReset, GameStarted, GameType, MarkerAdded,
    MarkerCaptured, MarkerDeleted, MarkerNameChanged, ServerMessage, TeamAssigned, TemplateCreated,
    TimeLimitChanged,
};
use super::message::marker::{MarkerGameType, NAME_UNITS};
use super::refused::{Refused, RefusedClass, check_finite, check_text};
use super::{GameBody, GameText};
use crate::types::{TransId, Uuid};

/// The team to which every player belongs.
const TEAM: u8 = 1;

/// The number of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(super) u64);

/// A marker game that a player has open.
#[derive(Debug)]
pub(super) struct MarkerGame {
    template: Uuid,
    creator: u32,
    game_type: MarkerGameType,
    is_playing: bool,
    /// The player has deleted the game. It ends as soon as the answer is sent.
    is_deleted: bool,
    answers: VecDeque<Slot>,
}

/// The messages sent in answer to one message.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The transaction of the `GameInstance` among them.
    pub(super) trans_id: TransId,
    pub(super) bodies: Vec<GameBody<'static>>,
    /// Whether the game ends after these messages.
    pub(super) is_last: bool,
}

impl From<Vec<GameBody<'static>>> for Answer {
    fn from(bodies: Vec<GameBody<'static>>) -> Self {
        Self { bodies, ..Self::default() }
    }
}

#[derive(Debug)]
enum Slot {
    Ready(Answer),
    Waiting(Ticket, Box<Asked>),
}

/// The purpose of a request to the store.
#[derive(Debug)]
pub(super) enum Asked {
    Add(Box<Marker>),
    Delete(u32),
    Rename(u32, GameText<'static, NAME_UNITS>),
    RenameGame(GameText<'static, NAME_UNITS>),
    SetTimeLimit(u32),
    Capture(u32),
    Forget,
    Remove,
    /// The member asked to join again, in this transaction.
    Reopen(TransId),
}

/// The outcome of a message to a marker game.
pub(super) enum Step {
    /// An answer.
    Answer(Answer),
    /// A request to the store. The outcome depends on the store's answer.
    Ask(MarkerRequest, Asked),
}

impl MarkerGame {
    pub(super) fn new(template: Uuid, opened: &MarkerTemplate) -> Self {
        Self {
            template,
            creator: opened.creator,
            game_type: opened.game_type,
            is_playing: false,
            is_deleted: false,
            answers: VecDeque::new(),
        }
    }

    pub(super) const fn template(&self) -> Uuid {
        self.template
    }

    pub(super) const fn game_type(&self) -> MarkerGameType {
        self.game_type
    }

    pub(super) const fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// The number of answers that are waiting.
    pub(super) fn waiting(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn receive(
        &mut self,
        from: u32,
        is_admin: bool,
        message: ClientMessage<'_>,
    ) -> Result<Step, Refused> {
        let (template, creator) = (self.template, self.creator);
        let is_creator = creator == from && from != 0;
        let edits = matches!(
            message,
            ClientMessage::ChangeGameName(_)
                | ClientMessage::ChangeTimeLimit(_)
                | ClientMessage::AddMarker(_)
                | ClientMessage::DeleteMarker(_)
                | ClientMessage::ChangeMarkerName(_)
        );
        if edits && !is_creator && !is_admin {
            let error = Error::invalid("only the game's creator may change it");
            return Err(Refused::new(RefusedClass::NotCreator, error));
        }
        Ok(match message {
            ClientMessage::StartGame(_) => {
                let was_playing = core::mem::replace(&mut self.is_playing, true);
                let started = (!was_playing).then(|| body(GameStarted {}));
                Step::Answer(started.into_iter().collect::<Vec<_>>().into())
            }
            ClientMessage::PauseGame(_) => {
                self.is_playing = false;
                Step::Answer(vec![body(GamePaused { time_left: 0 })].into())
            }
            ClientMessage::ResetGame(_) => {
                self.is_playing = false;
                Step::Ask(MarkerRequest::Forget { template, player: from }, Asked::Forget)
            }
            ClientMessage::ChangeGameName(change) => {
                let name = change.name.into_owned();
                let request = MarkerRequest::RenameGame { template, creator, name: name.clone() };
                Step::Ask(request, Asked::RenameGame(name))
            }
            ClientMessage::ChangeTimeLimit(change) => {
                let time_limit = change.time_limit;
                let request = MarkerRequest::SetTimeLimit { template, creator, time_limit };
                Step::Ask(request, Asked::SetTimeLimit(time_limit))
            }
            ClientMessage::DeleteGame(_) => {
                self.is_deleted = true;
                if is_creator && self.game_type == MarkerGameType::Cgz {
                    Step::Ask(MarkerRequest::Remove { template, creator }, Asked::Remove)
                } else {
                    Step::Answer(last(true))
                }
            }
            ClientMessage::AddMarker(AddMarker { x, y, z, name, age }) => {
                let position = [x.0, y.0, z.0];
                let (name, age) = (name.into_owned(), age.into_owned());
                let marker = Box::new(Marker { position, name, age });
                let request = MarkerRequest::Add { template, creator, marker: marker.clone() };
                Step::Ask(request, Asked::Add(marker))
            }
            ClientMessage::DeleteMarker(delete) => {
                let marker = delete.marker;
                Step::Ask(
                    MarkerRequest::Delete { template, creator, marker },
                    Asked::Delete(marker),
                )
            }
            ClientMessage::ChangeMarkerName(change) => {
                let (marker, name) = (change.marker, change.name.into_owned());
                let request =
                    MarkerRequest::Rename { template, creator, marker, name: name.clone() };
                Step::Ask(request, Asked::Rename(marker, name))
            }
            ClientMessage::CaptureMarker(capture) => {
                let marker = capture.marker;
                let request = MarkerRequest::Capture { template, player: from, marker };
                Step::Ask(request, Asked::Capture(marker))
            }
        })
    }

    pub(super) fn push_answer(&mut self, answer: Answer) {
        self.answers.push_back(Slot::Ready(answer));
    }

    pub(super) fn push_waiting(&mut self, ticket: Ticket, asked: Asked) {
        self.answers.push_back(Slot::Waiting(ticket, Box::new(asked)));
    }

    /// Handles the store's answer to a request.
    ///
    /// # Errors
    /// Fails if one of the store's bounds is reached.
    pub(super) fn answered(
        &mut self,
        ticket: Ticket,
        answer: &MarkerAnswer,
        (member, game_id): (u32, u32),
    ) -> Result<(), Refused> {
        let waiting = |slot: &&mut Slot| matches!(slot, Slot::Waiting(of, _) if *of == ticket);
        let Some(slot) = self.answers.iter_mut().find(waiting) else { return Ok(()) };
        let Slot::Waiting(_, asked) = core::mem::replace(slot, Slot::Ready(Answer::default()))
        else {
            return Ok(());
        };
        let is_done = *answer == MarkerAnswer::Done;
        let answer: Vec<GameBody<'static>> = match (*asked, answer) {
            (Asked::Add(marker), MarkerAnswer::Added { marker: id }) => vec![added(*id, &marker)],
            (Asked::Add(_), MarkerAnswer::Full) => {
                let error = Error::invalid("the game already has the maximum number of markers");
                return Err(Refused::new(RefusedClass::Limit, error));
            }
            (Asked::Delete(marker), _) if is_done => vec![body(MarkerDeleted { marker })],
            (Asked::Rename(marker, name), _) if is_done => {
                vec![body(MarkerNameChanged { marker, name })]
            }
            (Asked::RenameGame(name), _) if is_done => vec![body(GameNameChanged { name })],
            (Asked::SetTimeLimit(time_limit), _) if is_done => {
                vec![body(TimeLimitChanged { time_limit })]
            }
            (Asked::Capture(marker), _) if is_done => {
                vec![body(MarkerCaptured { marker, team: TEAM })]
            }
            (Asked::Forget, _) if is_done => vec![body(GameReset {})],
            (Asked::Remove, _) => {
                *slot = Slot::Ready(last(is_done));
                return Ok(());
            }
            (Asked::Reopen(trans_id), MarkerAnswer::Opened { template, captured }) => {
                let mut bodies = vec![instance(member, game_id)];
                bodies.extend(opened_again(member, template, captured.iter().copied()));
                *slot = Slot::Ready(Answer { trans_id, bodies, is_last: false });
                return Ok(());
            }
            _ => Vec::new(),
        };
        *slot = Slot::Ready(answer.into());
        Ok(())
    }

    /// The next answer, if it is complete.
    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        match self.answers.pop_front()? {
            Slot::Ready(answer) => Some(answer),
            waiting @ Slot::Waiting(..) => {
                self.answers.push_front(waiting);
                None
            }
        }
    }
}

/// The answer after which a game ends.
fn last(is_deleted: bool) -> Answer {
    let failed = (!is_deleted).into();
    Answer { bodies: vec![body(GameDeleted { failed })], is_last: true, ..Answer::default() }
}

/// The first message about a game that its member has opened.
pub(super) fn instance(member: u32, game_id: u32) -> GameBody<'static> {
    let game_type = crate::games::GameType::Marker.id();
    let result = GameResult::Success;
    GameBody::from(Manager::from(GameInstance { result, owner: member, game_type, game_id }))
}

fn body<'b>(message: impl Into<ServerMessage<'b>>) -> GameBody<'b> {
    GameBody::from(message.into())
}

fn added(id: u32, marker: &Marker) -> GameBody<'static> {
    let [x, y, z] = marker.position.map(Double);
    let (name, age) = (marker.name.clone(), marker.age.clone());
    body(MarkerAdded { x, y, z, marker: id, name, age })
}

fn joined(player: u32) -> [GameBody<'static>; 3] {
    [
        body(TeamAssigned { team: TEAM }),
        GameBody::from(Any::from(PlayerJoined { player })),
        GameBody::from(Any::from(OwnerChange { owner: player })),
    ]
}

/// The messages after `GameInstance` when a player has created a game. `PlayerJoined` must come
/// after the template and the type, because scripts start playing when they have all three.
pub(super) fn opened_new(
    player: u32,
    template: Uuid,
    opened: &MarkerTemplate,
) -> Vec<GameBody<'static>> {
    let mut messages = vec![
        body(TemplateCreated { template: template.to_string().as_str().into() }),
        body(GameType { game_type: opened.game_type }),
        body(GameNameChanged { name: opened.name.clone() }),
    ];
    messages.extend(joined(player));
    messages
}

/// The messages after `GameInstance` when a player opens an existing game. The name precedes the
/// captures: it restarts the count of a calibration mission, and completes loading for other
/// clients.
pub(super) fn opened_again(
    player: u32,
    opened: &MarkerTemplate,
    captured: impl Iterator<Item = u32>,
) -> Vec<GameBody<'static>> {
    let mut messages: Vec<GameBody<'static>> = joined(player).into();
    messages.push(body(GameType { game_type: opened.game_type }));
    messages.extend(opened.markers.iter().map(|(id, marker)| added(*id, marker)));
    messages.push(body(GameNameChanged { name: opened.name.clone() }));
    let captured = captured.filter(|marker| opened.markers.contains_key(marker));
    messages.extend(captured.map(|marker| body(MarkerCaptured { marker, team: TEAM })));
    messages
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage<'_>) -> Result<(), Refused> {
    match message {
        ClientMessage::ChangeGameName(change) => check_text("name", &change.name),
        ClientMessage::ChangeMarkerName(change) => check_text("name", &change.name),
        ClientMessage::AddMarker(add) => {
            for (field, number) in [("x", add.x), ("y", add.y), ("z", add.z)] {
                check_finite(field, number.0)?;
            }
            check_text("name", &add.name)?;
            check_text("age", &add.age)
        }
        ClientMessage::StartGame(_)
        | ClientMessage::PauseGame(_)
        | ClientMessage::ResetGame(_)
        | ClientMessage::ChangeTimeLimit(_)
        | ClientMessage::DeleteGame(_)
        | ClientMessage::DeleteMarker(_)
        | ClientMessage::CaptureMarker(_) => Ok(()),
    }
}

/// Checks the data for creating a game. Returns its template, or `None` to create one.
pub(super) fn check_params(params: &MarkerParams<'_>) -> Result<Option<Uuid>, Refused> {
    if !matches!(params.marker_type, MarkerGameType::Quest | MarkerGameType::Cgz) {
        return Err(Refused::value("type", "0 (quest) or 1 (CGZ)", params.marker_type));
    }
    check_text("name", &params.name)?;
    check_text("template", &params.template)?;
    if params.template.is_empty() {
        return Ok(None);
    }
    let text = params.template.to_text();
    let template = Uuid::parse(&text).filter(|_| text.len() == 36);
    let Some(template) = template else {
        let error = Error::malformed("a UUID in 36 characters", format!("{text:?}"));
        return Err(Refused::new(RefusedClass::BadTemplateId, error.inside("template")));
    };
    Ok((!template.is_zero()).then_some(template))
}
