//! A game connection: a player in an age.

use std::time::{SystemTime, UNIX_EPOCH};

use worldwire_core::{Bytes32, Field, Writer};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::game::client::{
    ClientMessage, GameMgrMsg, JoinAgeRequest, PropagateBuffer,
};
use worldwire_uru::net_message::{
    GameMessage, GameStateRequest, LoadClone, MembersListReq, NetFlags, NetHeader, NetMessage,
    PlayerPage, SdlState, SdlStateBCast, SharedState, Stream, TestAndSet,
};
use worldwire_uru::plasma_message::{
    AvatarInputStateMsg, BroadcastFlags, ChatFlags, Child, InputState, KiCommand, KiMsg,
    LoadAvatarMsg, LoadCloneMsg, MessageHeader, PlasmaMessage,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectState, Scalar};
use worldwire_uru::types::{
    ClassIndex, CloneIds, Double, Key, Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid,
    Uuid,
};

use super::games::PlayerGames;
use super::net_buffer::PHYSICAL;
use super::notification::Notifications;
use super::{Age, ClientError, Link, Result, Scene, SceneEvent, Shard};

/// A player in an age. Clones share the connection. The player leaves when the last clone is
/// dropped, or when the player's auth connection ends.
#[derive(Clone, Debug)]
pub struct Game {
    link: Link,
    player: u32,
}

/// The page that avatars are on, which belongs to no age.
const AVATARS: (i32, u16) = (-6, 1);

impl Game {
    /// Joins an age that [`Auth::age`](super::Auth::age) has located. Messages from others arrive
    /// as [`Notification::NetMessage`](super::Notification::NetMessage); a [`Scene`] interprets
    /// them.
    ///
    /// # Errors
    /// Those of [`Link::connect`]. Refusals include `PlayerNotFound`, `AgeNotFound` and
    /// `ServerBusy`.
    pub async fn join(
        shard: &Shard,
        age: &Age,
        account_id: Uuid,
        player_id: u32,
    ) -> Result<(Self, Notifications)> {
        let host = age.game_server.to_string();
        let (link, notifications) =
            Link::connect_to(shard, Service::Game, &host, shard.port).await?;
        let age_mcp_id = age.mcp_id;
        let request = |trans_id| {
            ClientMessage::from(JoinAgeRequest { trans_id, age_mcp_id, account_id, player_id })
        };
        link.granted(request).await?;
        Ok((Self { link, player: player_id }, notifications))
    }

    /// The underlying link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The player's number.
    #[must_use]
    pub fn player(&self) -> u32 {
        self.player
    }

    /// The player's avatar with this shape: `male` or `female`.
    #[must_use]
    pub fn avatar(&self, shape: &str) -> Uoid<'static> {
        let name = if shape.eq_ignore_ascii_case("male") { "Male" } else { "Female" };
        let (prefix, page) = AVATARS;
        let sequence_number =
            SequenceNumber::from_page(prefix, page).unwrap_or(SequenceNumber(u32::MAX));
        Uoid {
            location: Location { sequence_number, flags: LocationFlags::Reserved },
            load_mask: None,
            class_index: SCENE_OBJECT,
            object_id: 10,
            name: name.into(),
            clone: Some(CloneIds { id: 1, filler: 0, player_id: self.player }),
        }
    }

    /// The header for this player's messages, with the local time.
    #[must_use]
    pub fn header(&self, more: NetFlags) -> NetHeader {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
        let time = UnifiedTime { seconds, microseconds: since.subsec_micros() };
        NetHeader::from_client(time, self.player, more)
    }

    /// Sends a net message. Fails if the message cannot be encoded or the connection is closed.
    pub async fn send<'m>(&self, message: impl Into<NetMessage<'m>>) -> Result<()> {
        let message: NetMessage<'m> = message.into();
        let buffer = encoded(&message)?;
        let class = buffer.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
        let (type_, buffer) = (ClassIndex(class.into()), Bytes32::new(buffer));
        let message = ClientMessage::from(PropagateBuffer { type_, buffer });
        self.link.send(Message::from(message)).await
    }

    /// Sends what the player's games have queued.
    pub async fn send_games(&self, games: &mut PlayerGames) -> Result<()> {
        while let Some(message) = games.poll_transmit() {
            let buffer = Bytes32::new(message);
            let message = ClientMessage::from(GameMgrMsg { buffer });
            self.link.send(Message::from(message)).await?;
        }
        Ok(())
    }

    /// Arrives as a game client does: shows the avatar, and requests the members and the age's
    /// state. Returns once the server has sent all of these.
    ///
    /// # Errors
    /// A malformed message from the server, a time-out, or a closed connection.
    pub async fn arrive(
        &self,
        shape: &str,
        scene: &mut Scene,
        notifications: &mut Notifications,
    ) -> Result<Vec<SceneEvent>> {
        let request = "GameStateRequest";
        self.send(self.load_avatar(shape)?).await?;
        let object = self.avatar(shape);
        let header = self.header(NetFlags(0));
        self.send(PlayerPage { header, unload: false.into(), object }).await?;
        let system = NetFlags::IsSystemMessage;
        self.send(MembersListReq { header: self.header(system) }).await?;
        let header = self.header(system | NetFlags::InitialAgeStateRequest);
        self.send(GameStateRequest { header, rooms: Vec::new().into() }).await?;
        let mut events = Vec::new();
        let receive_all = async {
            while let Some(notification) = notifications.next().await {
                let news = scene.apply(&notification)?;
                let is_all = news.contains(&SceneEvent::StateComplete);
                events.extend(news);
                if is_all {
                    return Ok(());
                }
            }
            Err(self.link.failure(request))
        };
        let received = tokio::time::timeout(self.link.patience(), receive_all).await;
        received.unwrap_or(Err(ClientError::Timeout { request }))?;
        Ok(events)
    }

    /// The message that shows the avatar to the other players.
    fn load_avatar(&self, shape: &str) -> Result<LoadClone<'static>> {
        let uoid = self.avatar(shape);
        let fixed = |class_index, name: &'static str| {
            let location = Location { sequence_number: SequenceNumber(0), flags: LocationFlags(0) };
            let name = name.into();
            let (load_mask, object_id, clone) = (None, 0, None);
            Key::from(Uoid { location, load_mask, class_index, object_id, name, clone })
        };
        let payload = LoadAvatarMsg {
            clone_msg: LoadCloneMsg {
                message: MessageHeader {
                    receivers: vec![fixed(NET_CLIENT, "kNetClientMgr_KEY")].into(),
                    ..message_header()
                },
                clone: Key::from(uoid.clone()),
                requestor: fixed(AVATAR_MANAGER, "kAvatarMgr_KEY"),
                originating_player_id: self.player,
                user_data: 0,
                valid: true.into(),
                loading: true.into(),
                trigger: Child::NONE,
            },
            is_player: true.into(),
            spawn_point: Key::NONE,
            has_initial_task: false.into(),
            initial_task: None,
            user_string: "".into(),
        };
        Ok(LoadClone {
            header: self.header(NetFlags(0)),
            stream: Stream::new(encoded(&PlasmaMessage::from(payload))?),
            has_delivery_time: false.into(),
            delivery_time: None,
            uoid,
            is_player: true.into(),
            is_loading: true.into(),
            is_initial_state: false.into(),
        })
    }

    /// Sends chat to everyone in the age. `name` must be the player's name.
    pub async fn say(&self, name: &str, text: &str) -> Result<()> {
        let chat = KiMsg {
            message: message_header(),
            command: KiCommand(0),
            user: name.into(),
            player_id: self.player,
            text: text.into(),
            flags: ChatFlags(0),
            delay: 0.0.into(),
            value: 0,
        };
        self.send(self.game_message(&chat.into(), NetFlags(0))?).await
    }

    /// The message that tells others which movement keys are pressed.
    pub fn keys(&self, keys: InputState) -> Result<GameMessage<'static>> {
        let mut message = message_header();
        // The net message's flags repeat this one.
        message.bcast_flags = message.bcast_flags | BroadcastFlags::NetUseRelevanceRegions;
        let pressed = AvatarInputStateMsg { message, state: keys };
        self.game_message(&pressed.into(), NetFlags::UseRelevanceRegions)
    }

    fn game_message(
        &self,
        payload: &PlasmaMessage<'_>,
        flags: NetFlags,
    ) -> Result<GameMessage<'static>> {
        Ok(GameMessage {
            header: self.header(flags),
            stream: Stream::new(encoded(payload)?),
            has_delivery_time: false.into(),
            delivery_time: None,
        })
    }

    /// The message that tells others where the avatar is. Servers may drop it for players who are
    /// too far away or read too slowly. `None` if the shard has no `avatarPhysical` descriptor.
    /// Fails if the descriptor's `position` is not three numbers.
    pub fn position(
        &self,
        shape: &str,
        descriptors: &Descriptors,
        position: [f32; 3],
    ) -> Result<Option<SdlStateBCast<'static>>> {
        let Some(descriptor) = descriptors.newest(PHYSICAL) else { return Ok(None) };
        let mut state = ObjectState::new(descriptor);
        let now = UnifiedTime { seconds: 0, microseconds: 0 };
        let blob = state
            .set("position", &[Scalar::Triple(position)], &now)
            .and_then(|()| state.to_blob().to_bytes())
            .map_err(not_sent)?;
        let flags = NetFlags::UseRelevanceRegions;
        let (mut state, is_avatar) = (self.state(self.avatar(shape), blob), true);
        state.header = self.header(flags);
        (state.persist_on_server, state.is_avatar_state) = (false.into(), is_avatar.into());
        Ok(Some(SdlStateBCast { state }))
    }

    /// Changes the state of an object, for current and future players.
    pub async fn change(&self, object: Uoid<'static>, change: &Blob<'_>) -> Result<()> {
        let blob = change.to_bytes().map_err(not_sent)?;
        self.send(SdlStateBCast { state: self.state(object, blob) }).await
    }

    fn state(&self, object: Uoid<'static>, blob: Vec<u8>) -> SdlState<'static> {
        SdlState {
            header: self.header(NetFlags(0)),
            object,
            stream: Stream::new(blob),
            is_initial_state: false.into(),
            persist_on_server: true.into(),
            is_avatar_state: false.into(),
        }
    }

    /// Requests or releases the lock on an object. The reply to a request is a
    /// [`SceneEvent::Lock`].
    pub async fn lock(&self, object: Uoid<'static>, request: bool) -> Result<()> {
        self.send(TestAndSet {
            header: self.header(NetFlags(0)),
            object,
            stream: Stream::new(encoded(&SharedState::trigger(request))?),
            lock_request: request.into(),
        })
        .await
    }

    /// Leaves the age, after sending what is queued.
    pub async fn leave(self) {
        self.link.close().await;
    }
}

/// The class of scene objects.
const SCENE_OBJECT: u16 = 1;
/// The classes of two objects that every client has.
const NET_CLIENT: u16 = 0x52;
const AVATAR_MANAGER: u16 = 0xf4;

/// The header of a Plasma message to everyone.
fn message_header() -> MessageHeader<'static> {
    MessageHeader {
        sender: Key::NONE,
        receivers: Vec::new().into(),
        timestamp: Double(0.0),
        bcast_flags: BroadcastFlags::NetPropagate | BroadcastFlags::LocalPropagate,
    }
}

fn encoded<'d>(value: &impl Field<'d>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer).map_err(not_sent)?;
    Ok(writer.into_bytes())
}

fn not_sent(error: worldwire_core::Error) -> ClientError {
    ClientError::NotSent { request: "PropagateBuffer", error: error.into() }
}
