//! An Uru player enters an age where another player already is: members, states, a lever, chat.

use std::path::Path;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use worldwire_core::{Bytes32, Field, Writer};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;
use worldwire_uru::message::{auth, game};
use worldwire_uru::net_message::{
    GameMessage, GameMessageDirected, GameStateRequest, InitialAgeStateSent, MemberFlags,
    MemberInfo, MembersList, MembersListReq, NetFlags, NetHeader, NetMessage, SdlState,
    SdlStateBCast, Stream,
};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, KiCommand, KiMsg, MessageHeader, PlasmaMessage,
};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::hook;
use worldwire_uru::types::{
    ClassIndex, ClientGuid, ClientGuidFlags, CloneIds, Double, Key, Location, LocationFlags,
    NetError, SequenceNumber, TransId, UnifiedTime, Uoid,
};

use super::uru::{ACCOUNT, LATER_STATE, PLAYER, Stage, Talk, state};
use super::{Outcome, Tape};

/// The player who is already there.
pub(super) const OTHER: u32 = 10_200;
/// The sequence prefix of the age.
const PREFIX: i32 = 120;
pub(super) const TIME: UnifiedTime = UnifiedTime { seconds: 1_767_225_600, microseconds: 0 };

/// The payload of a pulled lever's message.
const LEVER: &str = r#"{
    "flags": ["AddedVarLengthIO"], "descriptor": "fhLever", "version": 1, "variables": {
        "place": {"hint": "", "flags": ["Dirty"], "value": 2},
        "moving": {"hint": "", "flags": ["SameAsDefault", "Dirty"]},
        "notches": {"hint": "", "flags": ["Dirty"], "value": [-2, 0, 7]}
    }
}"#;

/// Writes `uru-age.pcapng`.
pub(super) fn write(folder: &Path, keys: KeyRing) -> Outcome<()> {
    let texts = [
        ("Fernhollow.sdl", include_str!("../../../../samples/sdl/Fernhollow.sdl")),
        ("things.sdl", include_str!("../../../../samples/sdl/things.sdl")),
    ];
    let descriptors = Descriptors::load(texts);
    let tape = Tape::new(&folder.join("uru-age.pcapng"), Duration::from_micros(350))?;
    let mut stage = Stage::new(tape, keys, ChaCha8Rng::seed_from_u64(7));
    account(&mut stage)?;
    age(&mut stage, &descriptors)
}

/// The auth connection, which contains the player's name.
fn account(stage: &mut Stage) -> Outcome<()> {
    use auth::{server, server::ServerMessage};
    let mut talk = stage.connect(Service::Auth)?;
    let info = server::AcctPlayerInfo {
        trans_id: TransId(1),
        player_id: PLAYER,
        player_name: "Yeesha".into(),
        avatar_shape: "female".into(),
        explorer: 1,
    };
    stage.say(&mut talk, ServerMessage::from(info))?;
    stage.hang_up(talk)
}

fn age(stage: &mut Stage, descriptors: &Descriptors) -> Outcome<()> {
    use game::{client, client::ClientMessage, server, server::ServerMessage};
    let mut talk = stage.connect(Service::Game)?;
    let t = &mut talk;
    let (trans_id, player_id) = (TransId(2), PLAYER);
    let join = client::JoinAgeRequest { trans_id, age_mcp_id: 7, account_id: ACCOUNT, player_id };
    stage.say(t, ClientMessage::from(join))?;
    let joined = server::JoinAgeReply { trans_id, result: NetError::Success };
    stage.say(t, ServerMessage::from(joined))?;

    let from_player = |more| NetHeader::from_client(TIME, PLAYER, more);
    let from_server = |more| NetHeader::from_server(TIME, more);
    let system = NetFlags::IsSystemMessage;
    from_client(stage, t, MembersListReq { header: from_player(system) })?;
    let members = vec![member(OTHER, "Atrus")].into();
    let header = NetHeader::from_client(TIME, PLAYER, system);
    from_age(stage, t, MembersList { header, members })?;
    let header = from_player(system | NetFlags::InitialAgeStateRequest);
    from_client(stage, t, GameStateRequest { header, rooms: Vec::new().into() })?;

    let hook = hook::object(PREFIX).ok_or("an age with this prefix")?;
    let sent = |object, blob, initial: bool| SdlState {
        header: from_server(NetFlags(0)),
        object,
        stream: Stream::new(blob),
        is_initial_state: initial.into(),
        persist_on_server: true.into(),
        is_avatar_state: false.into(),
    };
    from_age(stage, t, sent(hook, state(descriptors, LATER_STATE)?, true))?;
    let header = from_server(system);
    from_age(stage, t, InitialAgeStateSent { header, state_count: 1 })?;

    let mut pulled = sent(lever(), state(descriptors, LEVER)?, false);
    pulled.header = from_player(NetFlags(0));
    from_client(stage, t, SdlStateBCast { state: pulled })?;
    let game = GameMessage {
        header: from_player(NetFlags::HasGameMsgRcvrs),
        stream: Stream::new(encoded(&hello())?),
        has_delivery_time: false.into(),
        delivery_time: None,
    };
    from_client(stage, t, GameMessageDirected { game, receivers: vec![OTHER].into() })?;
    stage.hang_up(talk)
}

fn hello() -> PlasmaMessage<'static> {
    KiMsg {
        message: MessageHeader {
            sender: Key::NONE,
            receivers: Vec::new().into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags::NetPropagate | BroadcastFlags::ByExactType,
        },
        command: KiCommand::HACKChatMsg,
        user: "Yeesha".into(),
        player_id: PLAYER,
        text: "Shorah!".into(),
        flags: ChatFlags::Private,
        delay: 0.0.into(),
        value: 0,
    }
    .into()
}

pub(super) fn member(player_id: u32, name: &str) -> MemberInfo<'static> {
    MemberInfo {
        flags: MemberFlags(0),
        client: ClientGuid {
            flags: ClientGuidFlags::SHOWN,
            account_uuid: None,
            player_id: Some(player_id),
            player_name: Some(name.into()),
            ccr_level: Some(0),
            protected_login: None,
            build_type: None,
            src_addr: None,
            src_port: None,
            reserved: None,
            client_key: None,
        },
        avatar: object(1, "Male", Some(CloneIds { id: 1, filler: 0, player_id })),
    }
}

pub(super) fn lever() -> Uoid<'static> {
    object(0x2d, "FernLever", None)
}

pub(super) fn object(
    class_index: u16,
    name: &'static str,
    clone: Option<CloneIds>,
) -> Uoid<'static> {
    let sequence_number = SequenceNumber::from_page(PREFIX, 0).unwrap_or(SequenceNumber(0));
    let location = Location { sequence_number, flags: LocationFlags(0) };
    Uoid { location, load_mask: None, class_index, object_id: 7, name: name.into(), clone }
}

pub(super) fn encoded<'d>(value: &impl Field<'d>) -> Outcome<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

/// The class of a net message and its bytes.
fn buffer<'m>(message: impl Into<NetMessage<'m>>) -> Outcome<(ClassIndex, Vec<u8>)> {
    let bytes = encoded(&message.into())?;
    let class = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
    Ok((ClassIndex(class.into()), bytes))
}

pub(super) fn from_client<'m>(
    stage: &mut Stage,
    talk: &mut Talk,
    message: impl Into<NetMessage<'m>>,
) -> Outcome<()> {
    let (type_, bytes) = buffer(message)?;
    let buffer = Bytes32::new(bytes);
    let message = game::client::PropagateBuffer { type_, buffer };
    stage.say(talk, game::client::ClientMessage::from(message))
}

pub(super) fn from_age<'m>(
    stage: &mut Stage,
    talk: &mut Talk,
    message: impl Into<NetMessage<'m>>,
) -> Outcome<()> {
    let (type_, bytes) = buffer(message)?;
    let buffer = Bytes32::new(bytes);
    let message = game::server::PropagateBuffer { type_, buffer };
    stage.say(talk, game::server::ServerMessage::from(message))
}
