//! Messages of scripted clients and the objects they concern.

use core::ops::Range;

use worldwire_core::{Field, Writer};
use worldwire_uru::net_message::{
    GameMessage, GameMessageDirected, GameStateRequest, LoadClone, MembersListReq, NetFlags,
    NetHeader, NetMessage, OpusPacket, PageFlags, PagingRoom, PlayerPage, RelevanceRegions, Room,
    SdlState, SdlStateBCast, SharedState, Stream, TestAndSet, Voice, VoiceFlags,
};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, Child, KiCommand, KiMsg, LoadAvatarMsg, LoadCloneMsg, MessageHeader,
    NotifyMsg, PlasmaMessage, WarpMsg,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{ObjectState, Scalar};
use worldwire_uru::types::{
    BitVector, Bytes16, ClassIndex, CloneIds, Double, Key, List, Location, LocationFlags, Matrix44,
    SequenceNumber, UnifiedTime, Uoid,
};

use crate::world::{Got, World};

/// The time according to a client's wrong clock.
pub(crate) const WRONG: UnifiedTime = UnifiedTime { seconds: 5, microseconds: 6 };
/// The prefix of the ages.
pub(crate) const PREFIX: i32 = 120;

pub(crate) const A: u32 = 20_100;
pub(crate) const B: u32 = 20_200;
pub(crate) const C: u32 = 20_300;
pub(crate) const D: u32 = 20_400;
pub(crate) const P: u32 = 20_500;

/// The descriptors that clients have.
pub(crate) const SDL: &str = "
STATEDESC Fern { VERSION 1 VAR BOOL open[1] }
STATEDESC Fern { VERSION 2 VAR BOOL open[1] VAR INT tide[1] DEFAULT=3 }
STATEDESC lever { VERSION 1 VAR INT place[1] VAR PLKEY puller[1] }
STATEDESC lever { VERSION 2 VAR INT place[1] VAR PLKEY puller[1] VAR BYTE notes[] }
STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] VAR QUATERNION orientation[1] }
STATEDESC tune { VERSION 1 VAR INT volume[1] VAR INT pitch[1] }
STATEDESC band { VERSION 1 VAR $tune players[] VAR INT tempo[1] }
";

/// A state with some integers set, as a blob.
pub(crate) fn blob(
    descriptors: &Descriptors,
    name: &str,
    version: u16,
    values: &[(&str, i32)],
) -> Vec<u8> {
    let mut state = ObjectState::new(descriptors.get(name, version).unwrap());
    for (name, value) in values {
        state.set(name, &[Scalar::Int(*value)], &WRONG).unwrap();
    }
    state.to_blob().to_bytes().unwrap()
}

pub(crate) fn class_name(packet: &Got) -> String {
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
        sender: Key::NONE,
        receivers: vec![Key::from(object(0x2d, "Lever"))].into(),
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
        clone: Key::from(of),
        requestor: Key::from(object(0xf4, "kAvatarMgr_KEY")),
        originating_player_id,
        user_data: 0,
        valid: true.into(),
        loading: loading.into(),
        trigger: Child::NONE,
    }
}

/// A clone that is not an avatar.
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
        spawn_point: Key::from(object(1, "LinkInPoint")),
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

/// The position of an avatar, sent only to players who care.
pub(crate) fn position(world: &World, player_id: u32, x: f32) -> SdlStateBCast<'static> {
    let mut physical = ObjectState::new(world.descriptors.newest("avatarPhysical").unwrap());
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

/// The pages that a client has loaded (0) or unloaded (1).
pub(crate) fn paging(player_id: u32, numbers: Range<u16>, flags: u8) -> PagingRoom<'static> {
    let rooms = numbers.map(|number| Room { location: page(number), name: "fbMill".into() });
    PagingRoom {
        header: header(player_id, NetFlags::IsSystemMessage),
        rooms: List::from(rooms.collect::<Vec<_>>()),
        page_flags: PageFlags(flags),
    }
}

/// A game message of an unknown class.
pub(crate) fn unknown_class(player_id: u32) -> GameMessage<'static> {
    let mut unknown = bytes(&notify());
    unknown[..2].copy_from_slice(&0x0467_u16.to_le_bytes());
    let mut message = game(player_id, &notify(), NetFlags(0));
    message.stream = Stream::new(unknown);
    message
}

/// The payload of a game message or a clone message.
pub(crate) fn payload(packet: &Got) -> Vec<u8> {
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

/// The lock reply in a packet.
pub(crate) fn reply(packet: &Got) -> Option<i32> {
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
