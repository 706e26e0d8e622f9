//! Messages that the server creates.

use worldwire_core::Result;

use super::clones::LoadedClone;
use super::member::Member;
use super::packet::Packet;
use crate::net_message::{
    GameMessage, GroupOwner, GroupOwnership, InitialAgeStateSent, LoadClone, MemberFlags,
    MemberInfo, MemberUpdate, MembersList, NetFlags, NetHeader, SdlState, Stream,
};
use crate::plasma_message::{
    BroadcastFlags, Child, LoadCloneMsg, MessageHeader, PlasmaMessage, ReplyType, ServerReplyMsg,
};
use crate::sdl::{ObjectState, UpdateOrigin};
use crate::types::{
    ClientGuid, ClientGuidFlags, Double, Key, Location, LocationFlags, NetGroupFlags, NetGroupId,
    SequenceNumber, UnifiedTime, Uoid, encoded,
};

/// The maximum length of a player's name in messages to others, in bytes.
const MAX_NAME: usize = 255;

/// Tells a client whether it owns the age's objects; a single group represents all of them.
pub(super) fn group_owner(time: UnifiedTime, owned: bool) -> Result<Packet> {
    let location =
        Location { sequence_number: SequenceNumber(0xff00_0001), flags: LocationFlags::Reserved };
    let group = NetGroupId { location, flags: NetGroupFlags(0) };
    Packet::of(GroupOwner {
        header: NetHeader::from_server(time, NetFlags::IsSystemMessage),
        groups: vec![GroupOwnership { group, owned: owned.into() }].into(),
    })
}

/// A player joined or left.
pub(super) fn member_update(time: UnifiedTime, member: &Member, was_added: bool) -> Result<Packet> {
    Packet::of(MemberUpdate {
        header: NetHeader::from_server(time, NetFlags::IsSystemMessage),
        member: info(member),
        was_added: was_added.into(),
    })
}

/// The members of the age other than the receiver.
pub(super) fn members_list<'m>(
    time: UnifiedTime,
    receiver: u32,
    members: impl Iterator<Item = &'m Member>,
) -> Result<Packet> {
    let others = members.filter(|member| member.player.id != receiver);
    Packet::of(MembersList {
        header: NetHeader::from_client(time, receiver, NetFlags::IsSystemMessage),
        members: others.map(info).collect::<Vec<_>>().into(),
    })
}

/// Ends the reply to a state request: everything has been sent.
pub(super) fn state_sent(time: UnifiedTime, count: u32) -> Result<Packet> {
    Packet::of(InitialAgeStateSent {
        header: NetHeader::from_server(time, NetFlags::IsSystemMessage),
        state_count: count,
    })
}

/// The reply to a lock request. Clients drop it unless `LocalPropagate` is set.
pub(super) fn lock_reply(time: UnifiedTime, object: Uoid<'_>, granted: bool) -> Result<Packet> {
    let reply = ServerReplyMsg {
        message: MessageHeader {
            sender: Key::NONE,
            receivers: vec![Key::from(object)].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags::LocalPropagate,
        },
        reply_type: if granted { ReplyType::Affirm } else { ReplyType::Deny },
    };
    Packet::of(GameMessage {
        header: NetHeader::from_server(time, NetFlags(0)),
        stream: Stream::new(encoded(&PlasmaMessage::from(reply))?),
        has_delivery_time: false.into(),
        delivery_time: None,
    })
}

/// Unloads the avatar of a player who left.
pub(super) fn unload(time: UnifiedTime, clone: &Uoid<'_>, player_id: u32) -> Result<Packet> {
    let fixed = |class_index, name: &'static str| {
        let location = Location { sequence_number: SequenceNumber(0), flags: LocationFlags(0) };
        let name = name.into();
        Key::from(Uoid { location, load_mask: None, class_index, object_id: 0, name, clone: None })
    };
    let payload = LoadCloneMsg {
        message: MessageHeader {
            sender: Key::NONE,
            receivers: vec![fixed(0x52, "kNetClientMgr_KEY")].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags::NetPropagate | BroadcastFlags::LocalPropagate,
        },
        clone: Key::from(clone.clone()),
        requestor: fixed(0xf4, "kAvatarMgr_KEY"),
        originating_player_id: player_id,
        user_data: 0,
        valid: true.into(),
        loading: false.into(),
        trigger: Child::NONE,
    };
    Packet::of(LoadClone {
        header: NetHeader::from_server(time, NetFlags(0)),
        stream: Stream::new(encoded(&PlasmaMessage::from(payload))?),
        has_delivery_time: false.into(),
        delivery_time: None,
        uoid: clone.clone(),
        is_player: true.into(),
        is_loading: false.into(),
        is_initial_state: false.into(),
    })
}

/// A clone for a joining member: the message that loaded it, marked as initial.
pub(super) fn initial_clone(time: UnifiedTime, clone: &LoadedClone) -> Result<Packet> {
    let mut bytes = clone.bytes.to_vec();
    crate::net_message::patch::restamp(&mut bytes, time, clone.owner)?;
    // The last field of the message is `isInitialState`.
    if let Some(is_initial) = bytes.last_mut() {
        *is_initial = 1;
    }
    Ok(Packet::kept(bytes))
}

/// A state: the whole state for a joining member, or a change made by the server.
pub(super) fn state(
    time: UnifiedTime,
    object: &Uoid<'_>,
    state: &ObjectState,
    origin: UpdateOrigin,
    is_initial: bool,
) -> Result<Packet> {
    let blob = state.to_blob().to_bytes()?;
    // Compressing a message for a single receiver takes more time than it saves.
    let stream = if blob.len() > 255 { Stream::uncompressed(blob) } else { Stream::new(blob) };
    Packet::of(SdlState {
        header: NetHeader::from_server(time, NetFlags(0)),
        object: object.clone(),
        stream,
        is_initial_state: is_initial.into(),
        persist_on_server: origin.persist.into(),
        is_avatar_state: origin.avatar.into(),
    })
}

fn info(member: &Member) -> MemberInfo<'_> {
    let name = &member.player.name;
    let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
    let nowhere = Location { sequence_number: SequenceNumber(u32::MAX), flags: LocationFlags(0) };
    MemberInfo {
        flags: MemberFlags(0),
        client: ClientGuid {
            flags: ClientGuidFlags::SHOWN,
            account_uuid: None,
            player_id: Some(member.player.id),
            player_name: Some(name.into()),
            ccr_level: Some(0),
            protected_login: None,
            build_type: None,
            src_addr: None,
            src_port: None,
            reserved: None,
            client_key: None,
        },
        avatar: member.avatar.clone().unwrap_or_else(|| Uoid {
            location: nowhere,
            load_mask: None,
            class_index: 0x8000,
            object_id: 0,
            name: "".into(),
            clone: None,
        }),
    }
}
