//! What a player sees in an age.

use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Field as _, Limits, Reader};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::{GamePayload, NetMessage, SdlState, Stream};
use worldwire_uru::plasma_message::{PlasmaMessage, ReplyType};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{
    Blob, MergePolicy, ObjectState, Scalar, StateChange, StateDb, UpdateOrigin,
};
use worldwire_uru::types::{ClassIndex, SequenceNumber, UnifiedTime, Uoid};

use super::net_buffer::{PHYSICAL, plasma_message};
use super::scene_objects::SeenClasses;
use super::{ClientError, Notification, Result};

/// A client's copy of what is in an age: members, clones and states, and whether this client is the
/// group owner. [`apply`](Self::apply) keeps it up to date.
#[derive(Debug)]
pub struct Scene {
    player: u32,
    descriptors: Arc<Descriptors>,
    members: BTreeMap<u32, String>,
    /// Clones by clone ID and player, unordered.
    clones: Vec<Uoid<'static>>,
    states: StateDb,
    classes: SeenClasses,
    is_owner: bool,
    inflater: Inflater,
}

/// An event that a player sees.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SceneEvent {
    /// A player is in the age, or has just arrived.
    Joined {
        /// The player's number.
        player: u32,
        /// The player's name.
        name: String,
    },
    /// A player has left.
    Left {
        /// The player's number.
        player: u32,
        /// The player's name.
        name: String,
    },
    /// A player said something.
    Chat {
        /// The speaker, as the server knows it.
        player: u32,
        /// The name that the speaker's client sent.
        name: String,
        /// The text.
        text: String,
    },
    /// A clone (an avatar or another object) appeared, or vanished if not `loaded`.
    Clone {
        /// The clone.
        object: Uoid<'static>,
        /// Whether it is a player's avatar.
        is_avatar: bool,
        /// Whether the clone exists now.
        loaded: bool,
    },
    /// A player's avatar moved.
    Moved {
        /// The player.
        player: u32,
        /// The avatar's position; `None` if only its movement keys are known.
        position: Option<[f32; 3]>,
    },
    /// An object's state changed.
    State {
        /// The object.
        object: Uoid<'static>,
        /// The descriptor.
        descriptor: String,
        /// The player who changed it; `None` for the server, or if the state is older than this
        /// player's arrival.
        player: Option<u32>,
        /// The changes; `None` if the descriptor is unknown.
        changes: Option<Vec<StateChange>>,
    },
    /// The reply to a lock request.
    Lock {
        /// The object.
        object: Uoid<'static>,
        /// Whether this player has the lock.
        granted: bool,
    },
    /// Whether this client is now the group owner, which is responsible for objects without an
    /// owner.
    Owner(bool),
    /// The server has sent all state from before this player's arrival.
    StateComplete,
    /// Any other message.
    Other {
        /// The sender; `None` for the server.
        player: Option<u32>,
        /// The message's class.
        class: ClassIndex,
        /// The class of the Plasma message in it.
        payload: Option<u16>,
    },
}

impl Scene {
    /// The scene of a player who has just joined. The descriptors decode states; shards offer them
    /// as secure files.
    #[must_use]
    pub fn new(player: u32, descriptors: Arc<Descriptors>) -> Self {
        Self {
            player,
            descriptors,
            members: BTreeMap::new(),
            clones: Vec::new(),
            states: StateDb::default(),
            classes: SeenClasses::default(),
            is_owner: false,
            inflater: Inflater::new(),
        }
    }

    /// The other players in the age, with their names.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, &str)> {
        self.members.iter().map(|(player, name)| (*player, name.as_str()))
    }

    /// The clones of other players.
    #[must_use]
    pub fn clones(&self) -> &[Uoid<'static>] {
        &self.clones
    }

    /// The states of all objects, including the age's own.
    #[must_use]
    pub fn states(&self) -> &StateDb {
        &self.states
    }

    /// The classes of the objects with this name on a page, in ascending order, as far as they are
    /// known from messages. A scene object and its modifiers can share a name.
    pub fn classes_of(&self, page: SequenceNumber, name: &str) -> impl Iterator<Item = u16> + '_ {
        self.classes.of(page, name)
    }

    /// Whether this client is the group owner.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// Updates the scene from a notification and returns what the player sees.
    ///
    /// # Errors
    /// [`Malformed`](ClientError::Malformed) if a net message is unreadable.
    pub fn apply(&mut self, notification: &Notification) -> Result<Vec<SceneEvent>> {
        let Notification::NetMessage(buffer) = notification else { return Ok(Vec::new()) };
        let malformed = ClientError::malformed("PropagateBuffer");
        let message = buffer.decode().map_err(&malformed)?;
        self.take(buffer.class, &message).map_err(malformed)
    }

    fn take(
        &mut self,
        class: ClassIndex,
        message: &NetMessage<'_>,
    ) -> worldwire_core::Result<Vec<SceneEvent>> {
        let player = message.header().and_then(|header| header.player_id);
        Ok(match message {
            NetMessage::MembersList(list) => {
                let members = list.members.iter().filter_map(|member| {
                    let name = member.client.player_name.as_ref();
                    Some((member.client.player_id?, name.map(|name| name.to_text())))
                });
                let now: BTreeMap<u32, String> = members
                    .map(|(player, name)| (player, name.unwrap_or_default()))
                    .filter(|(player, _)| *player != self.player)
                    .collect();
                let before = core::mem::replace(&mut self.members, now);
                let came = self.members.iter().filter(|(player, _)| !before.contains_key(player));
                let mut seen: Vec<SceneEvent> =
                    came.map(|(player, name)| joined_or_left(*player, name, true)).collect();
                let went = before.iter().filter(|(player, _)| !self.members.contains_key(player));
                seen.extend(went.map(|(player, name)| joined_or_left(*player, name, false)));
                seen
            }
            NetMessage::MemberUpdate(update) => {
                let client = &update.member.client;
                let Some(player) = client.player_id else { return Ok(Vec::new()) };
                let name = client.player_name.as_ref();
                let name = name.map(|name| name.to_text()).unwrap_or_default();
                let came = update.was_added.is_true();
                let seen = joined_or_left(player, &name, came);
                match came {
                    true => drop(self.members.insert(player, name)),
                    false => drop(self.members.remove(&player)),
                }
                vec![seen]
            }
            NetMessage::GroupOwner(owner) => {
                self.is_owner = owner.groups.first().is_some_and(|group| group.owned.is_true());
                vec![SceneEvent::Owner(self.is_owner)]
            }
            NetMessage::InitialAgeStateSent(_) => vec![SceneEvent::StateComplete],
            NetMessage::LoadClone(load) => {
                let object = load.uoid.clone().into_owned();
                self.classes.see(&object);
                let (is_avatar, loaded) = (load.is_player.is_true(), load.is_loading.is_true());
                let was_there = self.clones.contains(&object);
                match loaded {
                    true if !was_there => self.clones.push(object.clone()),
                    true => return Ok(Vec::new()),
                    false => {
                        self.clones.retain(|known| *known != object);
                        self.states.remove(&object);
                    }
                }
                vec![SceneEvent::Clone { object, is_avatar, loaded }]
            }
            NetMessage::SdlState(state) => vec![self.state(state, None)?],
            NetMessage::SdlStateBCast(broadcast) => vec![self.state(&broadcast.state, player)?],
            NetMessage::GameMessage(game) => vec![self.game(class, player, &game.stream)?],
            NetMessage::GameMessageDirected(directed) => {
                vec![self.game(class, player, &directed.game.stream)?]
            }
            _ => vec![SceneEvent::Other { player, class, payload: None }],
        })
    }

    fn state(
        &mut self,
        state: &SdlState<'_>,
        player: Option<u32>,
    ) -> worldwire_core::Result<SceneEvent> {
        let object = state.object.clone().into_owned();
        self.classes.see(&object);
        let bytes = state.stream.payload(&mut self.inflater, &LIMITS)?;
        let mut reader = Reader::within(bytes, &LIMITS);
        let blob = match Blob::decode(&self.descriptors, &mut reader) {
            Ok(blob) => blob,
            Err(error) => {
                let mut reader = Reader::within(bytes, &LIMITS);
                let Ok(head) = worldwire_uru::sdl::BlobHeader::decode_fields(&mut reader) else {
                    return Err(error.closed());
                };
                let descriptor = head.name.to_text();
                return Ok(SceneEvent::State { object, descriptor, player, changes: None });
            }
        };
        let descriptor = blob.descriptor.name().to_owned();
        let is_position = descriptor.eq_ignore_ascii_case(PHYSICAL);
        let before = self.states.get(&object, &descriptor).map(|stored| stored.state.clone());
        let before = before.unwrap_or_else(|| ObjectState::new(blob.descriptor.clone()));
        let origin = UpdateOrigin {
            persist: state.persist_on_server.is_true(),
            avatar: state.is_avatar_state.is_true(),
            player_id: player.unwrap_or(0),
        };
        let never = UnifiedTime { seconds: 0, microseconds: 0 };
        let applied = self.states.apply(&object, &blob, origin, MergePolicy::CLIENT, &never);
        let Ok(stored) = applied else {
            // The descriptor is an older version, or there is no room for more states.
            return Ok(SceneEvent::State { object, descriptor, player, changes: None });
        };
        if is_position && let Some(ids) = object.clone {
            let position = match stored.state.scalar("position") {
                Some(Scalar::Triple(position)) => Some(position),
                _ => None,
            };
            return Ok(SceneEvent::Moved { player: ids.player_id, position });
        }
        let changes = Some(before.diff(&stored.state));
        Ok(SceneEvent::State { object, descriptor, player, changes })
    }

    fn game(
        &mut self,
        class: ClassIndex,
        player: Option<u32>,
        stream: &Stream<'_, GamePayload>,
    ) -> worldwire_core::Result<SceneEvent> {
        let bytes = stream.payload(&mut self.inflater, &LIMITS)?;
        let other = SceneEvent::Other { player, class, payload: stream.class() };
        let payload = plasma_message(bytes);
        if let Ok(message) = &payload {
            self.classes.see_ends(message);
        }
        Ok(match (payload, player) {
            (Ok(PlasmaMessage::KiMsg(chat)), Some(player)) if chat.command.0 == 0 => {
                let (name, text) = (chat.user.to_text(), chat.text.to_text());
                SceneEvent::Chat { player, name, text }
            }
            (Ok(PlasmaMessage::AvatarInputStateMsg(_)), Some(player)) => {
                SceneEvent::Moved { player, position: None }
            }
            (Ok(PlasmaMessage::ServerReplyMsg(reply)), _) => {
                let receiver = reply.message.receivers.iter().find_map(|key| key.uoid().cloned());
                let Some(object) = receiver.map(Uoid::into_owned) else { return Ok(other) };
                SceneEvent::Lock { object, granted: reply.reply_type == ReplyType::Affirm }
            }
            _ => other,
        })
    }
}

static LIMITS: Limits = Limits::DEFAULT;

fn joined_or_left(player: u32, name: &str, came: bool) -> SceneEvent {
    let name = name.to_owned();
    if came { SceneEvent::Joined { player, name } } else { SceneEvent::Left { player, name } }
}
