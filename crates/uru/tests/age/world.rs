//! Two ages with scripted clients in virtual time, and the messages that the clients send.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Field, Writer};
use worldwire_uru::age::{Config, Event, Instance, JoinRefused, Packet, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::net_message::{
    GameMessage, GameMessageDirected, GameStateRequest, LoadClone, MembersListReq, NetFlags,
    NetHeader, NetMessage, OpusPacket, PlayerPage, RelevanceRegions, Room, SdlState, SdlStateBCast,
    SharedState, Stream, TestAndSet, Voice, VoiceFlags,
};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, Child, KiCommand, KiMsg, LoadAvatarMsg, LoadCloneMsg, MessageHeader,
    NotifyMsg, PlasmaMessage, WarpMsg,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Scalar, State};
use worldwire_uru::types::{
    BitVector, Bytes16, ClassIndex, CloneIds, Double, Key, Location, LocationFlags, Matrix44,
    SequenceNumber, UnifiedTime, Uoid,
};

/// The moment at which virtual time begins.
pub(crate) const UNIX: u32 = 1_700_000_000;
/// What the clock of a client says, which is wrong.
pub(crate) const WRONG: UnifiedTime = UnifiedTime { seconds: 5, microseconds: 6 };
/// The prefix of the ages.
pub(crate) const PREFIX: i32 = 120;

pub(crate) const A: u32 = 101;
pub(crate) const B: u32 = 102;
pub(crate) const C: u32 = 103;
pub(crate) const D: u32 = 104;
pub(crate) const P: u32 = 105;

const SDL: &str = "
STATEDESC Fern { VERSION 1 VAR BOOL open[1] }
STATEDESC Fern { VERSION 2 VAR BOOL open[1] VAR INT tide[1] DEFAULT=3 }
STATEDESC lever { VERSION 1 VAR INT place[1] VAR PLKEY puller[1] }
STATEDESC lever { VERSION 2 VAR INT place[1] VAR PLKEY puller[1] VAR BYTE notes[] }
STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] VAR QUATERNION orientation[1] }
STATEDESC tune { VERSION 1 VAR INT volume[1] VAR INT pitch[1] }
STATEDESC band { VERSION 1 VAR $tune players[] VAR INT tempo[1] }
";

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) ages: Vec<Instance>,
    pub(crate) descriptors: Arc<Descriptors>,
    /// What each player got and nobody looked at.
    inboxes: BTreeMap<u32, Vec<Packet>>,
    /// What the ages reported, but for what was routed.
    pub(crate) events: Vec<Event>,
    pub(crate) admins: Vec<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), "Fern")
    }

    /// Two ages of this name; `Bare` has no state of its own.
    pub(crate) fn with(config: Config, name: &str) -> Self {
        let descriptors = Arc::new(Descriptors::load([("age.sdl", SDL)]));
        assert!(descriptors.problems().is_empty());
        let file = AgeFile { max_capacity: 4, sequence_prefix: PREFIX, ..AgeFile::default() };
        let unix = Duration::from_secs(UNIX.into());
        let age = || {
            let descriptors = Arc::clone(&descriptors);
            Instance::new(Duration::ZERO, unix, name, file.clone(), descriptors, config.clone())
        };
        Self {
            now: Duration::ZERO,
            ages: vec![age(), age()],
            descriptors,
            inboxes: BTreeMap::new(),
            events: Vec::new(),
            admins: Vec::new(),
        }
    }

    pub(crate) fn age(&self) -> &Instance {
        &self.ages[0]
    }

    pub(crate) fn age_mut(&mut self) -> &mut Instance {
        &mut self.ages[0]
    }

    pub(crate) fn try_join(&mut self, age: usize, player_id: u32) -> Result<(), JoinRefused> {
        let mut player = Player::new(player_id, &format!("player {player_id}"));
        player.is_admin = self.admins.contains(&player_id);
        let outcome = self.ages[age].join(self.now, player);
        self.pump();
        outcome
    }

    pub(crate) fn join(&mut self, player_id: u32) {
        self.try_join(0, player_id).unwrap();
    }

    /// Joins, and loads the avatar; what came of it is forgotten.
    pub(crate) fn enter(&mut self, player_id: u32) {
        self.join(player_id);
        self.send(player_id, load_avatar(player_id, true));
        self.forget();
    }

    pub(crate) fn leave(&mut self, player_id: u32) {
        let age = self.age_of(player_id);
        self.ages[age].leave(self.now, player_id);
        self.pump();
    }

    fn age_of(&self, player_id: u32) -> usize {
        let is_in = |age: &Instance| age.members().any(|member| member.player().id == player_id);
        self.ages.iter().position(is_in).unwrap()
    }

    pub(crate) fn send<'m>(&mut self, player_id: u32, message: impl Into<NetMessage<'m>>) {
        self.send_bytes(player_id, &bytes(&message.into()));
    }

    pub(crate) fn send_bytes(&mut self, player_id: u32, message: &[u8]) {
        let age = self.age_of(player_id);
        self.ages[age].receive(self.now, player_id, outer(message), message);
        self.pump();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for age in &mut self.ages {
            while age.poll_timeout().is_some_and(|at| at <= now) {
                age.timeout(now);
            }
        }
        self.pump();
    }

    fn pump(&mut self) {
        for index in 0..self.ages.len() {
            while let Some(event) = self.ages[index].poll_event() {
                for other in (0..self.ages.len()).filter(|other| *other != index) {
                    match &event {
                        Event::Route { packet, players } => {
                            self.ages[other].deliver(packet, players);
                        }
                        Event::RouteToAll { packet } => self.ages[other].deliver_to_all(packet),
                        _ => {}
                    }
                }
                self.events.push(event);
            }
        }
        for age in &mut self.ages {
            while let Some(delivery) = age.poll_delivery() {
                self.inboxes.entry(delivery.to).or_default().push(delivery.packet);
            }
        }
    }

    /// What a player got since the last look.
    pub(crate) fn got(&mut self, player_id: u32) -> Vec<Packet> {
        self.inboxes.remove(&player_id).unwrap_or_default()
    }

    /// The classes of what a player got.
    pub(crate) fn heard(&mut self, player_id: u32) -> Vec<String> {
        self.got(player_id).iter().map(class_name).collect()
    }

    pub(crate) fn forget(&mut self) {
        self.inboxes.clear();
        self.events.clear();
    }

    /// A state with some integers set, as a blob.
    pub(crate) fn blob(&self, name: &str, version: u16, values: &[(&str, i32)]) -> Vec<u8> {
        let mut state = State::new(self.descriptors.get(name, version).unwrap());
        for (name, value) in values {
            state.set(name, &[Scalar::Int(*value)], &WRONG).unwrap();
        }
        state.to_blob().to_bytes().unwrap()
    }

    /// The state of a lever.
    pub(crate) fn lever(&self, place: i32) -> Vec<u8> {
        self.blob("lever", 1, &[("place", place)])
    }
}

pub(crate) fn class_name(packet: &Packet) -> String {
    use worldwire_core::Classes as _;
    NetMessage::NAMES.name(packet.class().0.into()).unwrap_or("another").to_owned()
}

pub(crate) fn outer(message: &[u8]) -> ClassIndex {
    ClassIndex(message.first_chunk().map_or(0, |class| u16::from_le_bytes(*class).into()))
}

pub(crate) fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).unwrap();
    writer.into_bytes()
}

pub(crate) fn header(player_id: u32, flags: NetFlags) -> NetHeader {
    NetHeader::from_client(WRONG, player_id, flags)
}

pub(crate) fn page(number: u16) -> Location {
    let sequence_number = SequenceNumber::from_page(PREFIX, number).unwrap();
    Location { sequence_number, flags: LocationFlags(0) }
}

pub(crate) fn object(class_index: u16, name: &'static str) -> Uoid<'static> {
    Uoid {
        location: page(0),
        load_mask: None,
        class_index,
        object_id: 7,
        name: name.into(),
        clone: None,
    }
}

pub(crate) fn clone(name: &'static str, id: u16, player_id: u32) -> Uoid<'static> {
    Uoid { clone: Some(CloneIds { id, filler: 0, player_id }), ..object(1, name) }
}

pub(crate) fn avatar(player_id: u32) -> Uoid<'static> {
    clone("Male", 1, player_id)
}

pub(crate) fn message_header() -> MessageHeader<'static> {
    MessageHeader {
        sender: Key(None),
        receivers: vec![Key(Some(object(0x2d, "Lever")))].into(),
        timestamp: Double(0.0),
        bcast_flags: BroadcastFlags(0x840),
    }
}

pub(crate) fn notify() -> PlasmaMessage<'static> {
    let message = message_header();
    let events = Vec::new().into();
    NotifyMsg { message, notify_type: 0, state: 1.0.into(), id: 0, events }.into()
}

pub(crate) fn warp() -> PlasmaMessage<'static> {
    let matrix = Matrix44 { has_data: false.into(), rows: None };
    WarpMsg { message: message_header(), matrix, warp_flags: 0 }.into()
}

pub(crate) fn ki(command: u8, flags: ChatFlags, user: &'static str) -> PlasmaMessage<'static> {
    KiMsg {
        message: message_header(),
        command: KiCommand(command),
        user: user.into(),
        player_id: 1,
        text: "Shorah".into(),
        flags,
        delay: 0.0.into(),
        value: 0,
    }
    .into()
}

pub(crate) fn chat(flags: ChatFlags) -> PlasmaMessage<'static> {
    ki(0, flags, "Yeesha")
}

pub(crate) fn game(
    player_id: u32,
    payload: &PlasmaMessage<'_>,
    flags: NetFlags,
) -> GameMessage<'static> {
    GameMessage {
        header: header(player_id, flags),
        stream: Stream::new(bytes(payload)),
        has_delivery_time: false.into(),
        delivery_time: None,
    }
}

pub(crate) fn directed(
    player_id: u32,
    payload: &PlasmaMessage<'_>,
    receivers: &[u32],
    flags: NetFlags,
) -> GameMessageDirected<'static> {
    let game = game(player_id, payload, flags);
    GameMessageDirected { game, receivers: receivers.to_vec().into() }
}

pub(crate) fn voice(player_id: u32, receivers: &[u32], flags: NetFlags) -> Voice<'static> {
    Voice {
        header: header(player_id, flags),
        voice_flags: VoiceFlags(5),
        frame_count: 1,
        pcm: None,
        speex: None,
        opus: Some(OpusPacket(Bytes16::new(vec![0, 0, 0, 0, 9, 9]))),
        receivers: receivers.to_vec().into(),
    }
}

pub(crate) fn clone_msg(
    of: Uoid<'static>,
    originating_player_id: u32,
    loading: bool,
) -> LoadCloneMsg<'static> {
    LoadCloneMsg {
        message: message_header(),
        clone: Key(Some(of)),
        requestor: Key(Some(object(0xf4, "kAvatarMgr_KEY"))),
        originating_player_id,
        user_data: 0,
        valid: true.into(),
        loading: loading.into(),
        trigger: Child::NONE,
    }
}

/// A clone that is no avatar.
pub(crate) fn load_clone(
    player_id: u32,
    name: &'static str,
    id: u16,
    loading: bool,
) -> LoadClone<'static> {
    let uoid = clone(name, id, player_id);
    let payload = PlasmaMessage::from(clone_msg(uoid.clone(), player_id, loading));
    load(player_id, uoid, &payload, false, loading)
}

pub(crate) fn load_avatar(player_id: u32, loading: bool) -> LoadClone<'static> {
    let uoid = avatar(player_id);
    let payload = LoadAvatarMsg {
        clone_msg: clone_msg(uoid.clone(), player_id, loading),
        is_player: true.into(),
        spawn_point: Key(Some(object(1, "LinkInPoint"))),
        has_initial_task: false.into(),
        initial_task: None,
        user_string: "".into(),
    };
    load(player_id, uoid, &payload.into(), true, loading)
}

pub(crate) fn load(
    player_id: u32,
    uoid: Uoid<'static>,
    payload: &PlasmaMessage<'_>,
    is_player: bool,
    loading: bool,
) -> LoadClone<'static> {
    LoadClone {
        header: header(player_id, NetFlags(0)),
        stream: Stream::new(bytes(payload)),
        has_delivery_time: false.into(),
        delivery_time: None,
        uoid,
        is_player: is_player.into(),
        is_loading: loading.into(),
        is_initial_state: false.into(),
    }
}

pub(crate) fn lock(player_id: u32, name: &'static str, request: bool) -> TestAndSet<'static> {
    TestAndSet {
        header: header(player_id, NetFlags(0)),
        object: object(0x2d, name),
        stream: Stream::new(bytes(&SharedState::trigger(request))),
        lock_request: request.into(),
    }
}

pub(crate) fn state(player_id: u32, object: Uoid<'static>, blob: Vec<u8>) -> SdlState<'static> {
    SdlState {
        header: header(player_id, NetFlags(0)),
        object,
        stream: Stream::new(blob),
        is_initial_state: false.into(),
        persist_on_server: true.into(),
        is_avatar_state: false.into(),
    }
}

pub(crate) fn broadcast(
    player_id: u32,
    object: Uoid<'static>,
    blob: Vec<u8>,
) -> SdlStateBCast<'static> {
    SdlStateBCast { state: state(player_id, object, blob) }
}

/// Where an avatar is: only for those who care.
pub(crate) fn position(world: &World, player_id: u32, x: f32) -> SdlStateBCast<'static> {
    let mut physical = State::new(world.descriptors.newest("avatarPhysical").unwrap());
    physical.set("position", &[Scalar::Triple([x, 0.0, 0.0])], &WRONG).unwrap();
    let mut message =
        broadcast(player_id, avatar(player_id), physical.to_blob().to_bytes().unwrap());
    message.state.header.flags = message.state.header.flags | NetFlags::UseRelevanceRegions;
    message.state.persist_on_server = false.into();
    message.state.is_avatar_state = true.into();
    message
}

pub(crate) fn members_request(player_id: u32) -> MembersListReq {
    MembersListReq { header: header(player_id, NetFlags::IsSystemMessage) }
}

pub(crate) fn state_request(player_id: u32, pages: &[u16]) -> GameStateRequest<'static> {
    let rooms = pages.iter().map(|number| Room { location: page(*number), name: "page".into() });
    GameStateRequest {
        header: header(player_id, NetFlags::IsSystemMessage | NetFlags::InitialAgeStateRequest),
        rooms: rooms.collect::<Vec<_>>().into(),
    }
}

pub(crate) fn regions(player_id: u32, cares: &[u32], is_in: &[u32]) -> RelevanceRegions {
    RelevanceRegions {
        header: header(player_id, NetFlags(0)),
        care_about: BitVector::from_bits(cares),
        in_: BitVector::from_bits(is_in),
    }
}

pub(crate) fn player_page(player_id: u32) -> PlayerPage<'static> {
    let header = header(player_id, NetFlags(0));
    PlayerPage { header, unload: false.into(), object: avatar(player_id) }
}

/// The payload of a game message or a clone.
pub(crate) fn payload(packet: &Packet) -> Vec<u8> {
    let mut inflater = worldwire_uru::inflate::Inflater::new();
    let limits = worldwire_core::Limits::DEFAULT;
    let stream = |bytes: worldwire_core::Result<&[u8]>| bytes.unwrap().to_vec();
    match packet.decode().unwrap() {
        NetMessage::GameMessage(it) => stream(it.stream.payload(&mut inflater, &limits)),
        NetMessage::GameMessageDirected(it) => {
            stream(it.game.stream.payload(&mut inflater, &limits))
        }
        NetMessage::LoadClone(it) => stream(it.stream.payload(&mut inflater, &limits)),
        other => panic!("{other:?}"),
    }
}

/// The lock reply that a packet is.
pub(crate) fn reply(packet: &Packet) -> Option<i32> {
    use worldwire_core::Reader;
    if packet.class() != ClassIndex::plNetMsgGameMessage {
        return None;
    }
    let payload = payload(packet);
    match PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap() {
        PlasmaMessage::ServerReplyMsg(reply) => Some(reply.reply_type.0),
        _ => None,
    }
}
