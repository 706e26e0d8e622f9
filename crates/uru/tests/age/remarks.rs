//! Irregularities that, according to the documents, no sender produces: every rule is checked, and
//! ordinary messages yield no remarks.

use worldwire_core::{Field, Limits, Side};
use worldwire_uru::connect::{ConnectData, ConnectPacket};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth;
use worldwire_uru::net_message::{
    GameMessage, GameMessageDirected, GroupOwner, GroupOwnership, InitialAgeStateSent, LoadClone,
    MemberFlags, MemberInfo, MembersList, NetFlags, NetHeader, NetMessage, NetVersion,
    ObjectUpdateFilter, SharedState, Stream, VoiceFlags,
};
use worldwire_uru::plasma_message::{
    ArmatureBrain, AvBrainHuman, AvPushBrainMsg, AvTaskMsg, AvatarObject, BroadcastFlags,
    ChatFlags, Child, EnableMsg, MessageHeader, PlasmaMessage, ReplyType, ServerReplyMsg,
};
use worldwire_uru::safety::lint::{lint, lint_connect, lint_frame};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{
    BitVector, Bytes16, ClientGuid, ClientGuidFlags, CloneIds, Double, Key, LoadMask, Location,
    LocationFlags, NetError, NetGroupFlags, NetGroupId, SafeString, SequenceNumber, Uoid, Uuid,
};

use crate::messages::{
    A, B, SDL, WRONG, avatar, blob, broadcast, bytes, chat, clone_msg, directed, game, header,
    load, load_avatar, lock, members_request, message_header, object, outer, page, paging,
    player_page, regions, state, state_request, voice,
};

/// A flag that no sender sets, the remark's text, and a function that adds the flag's field.
type UnusedFlag<F, T> = (F, &'static str, fn(&mut T));

fn remarks(sender: Side, message: impl Into<NetMessage<'static>>) -> Vec<String> {
    let message = bytes(&message.into());
    lint(outer(&message), &message, sender, &Limits::DEFAULT)
}

/// Checks that a message yields this remark.
#[track_caller]
fn odd(sender: Side, message: impl Into<NetMessage<'static>>, wanted: &str) {
    let found = remarks(sender, message);
    assert!(found.iter().any(|remark| remark.contains(wanted)), "{wanted}: {found:?}");
}

/// A header for a payload without actual receivers.
fn to_nobody() -> MessageHeader<'static> {
    MessageHeader { receivers: Vec::new().into(), ..message_header() }
}

fn enable(message: MessageHeader<'static>) -> PlasmaMessage<'static> {
    let none = || BitVector::from_bits(&[]);
    EnableMsg { message, commands: none(), types: none() }.into()
}

/// A game message with an object as its sender.
fn about(uoid: Uoid<'static>) -> GameMessage<'static> {
    game(A, &enable(MessageHeader { sender: Key::from(uoid), ..to_nobody() }), NetFlags(0))
}

fn chat_to_nobody(flags: ChatFlags) -> PlasmaMessage<'static> {
    let PlasmaMessage::KiMsg(mut message) = chat(flags) else { panic!("not chat") };
    (message.message, message.player_id) = (to_nobody(), A);
    message.into()
}

fn directed_chat(flags: NetFlags) -> GameMessageDirected<'static> {
    directed(A, &chat_to_nobody(ChatFlags(1)), &[B], flags)
}

fn clone_of(uoid: &Uoid<'static>) -> LoadClone<'static> {
    let mut payload = clone_msg(uoid.clone(), A, true);
    payload.message = to_nobody();
    load(A, uoid.clone(), &payload.into(), false, true)
}

fn lever_state() -> Vec<u8> {
    let descriptors = Descriptors::load([("fern.sdl", SDL)]);
    blob(&descriptors, "lever", 1, &[("place", 3)])
}

fn server_header(flags: NetFlags) -> NetHeader {
    NetHeader::from_server(WRONG, flags)
}

fn identity() -> ClientGuid<'static> {
    ClientGuid {
        flags: ClientGuidFlags::PlayerID,
        account_uuid: None,
        player_id: Some(B),
        player_name: None,
        ccr_level: None,
        protected_login: None,
        build_type: None,
        src_addr: None,
        src_port: None,
        reserved: None,
        client_key: None,
    }
}

fn members(client: ClientGuid<'static>, flags: MemberFlags) -> MembersList<'static> {
    let member = MemberInfo { flags, client, avatar: avatar(B) };
    let header = server_header(NetFlags::IsSystemMessage);
    MembersList { header, members: vec![member].into() }
}

fn reply(message: MessageHeader<'static>, reply_type: ReplyType) -> GameMessage<'static> {
    let payload = ServerReplyMsg { message, reply_type }.into();
    GameMessage { header: server_header(NetFlags(0)), ..game(A, &payload, NetFlags(0)) }
}

fn reply_header() -> MessageHeader<'static> {
    let bcast_flags = BroadcastFlags::LocalPropagate;
    MessageHeader { bcast_flags, ..message_header() }
}

#[test]
fn usual_messages_yield_no_remarks() {
    let client: [NetMessage<'_>; 14] = [
        members_request(A).into(),
        state_request(A, &[]).into(),
        regions(A, &[0, 1], &[1]).into(),
        player_page(A).into(),
        paging(A, 0..1, 1).into(),
        lock(A, "Lever", true).into(),
        lock(A, "Lever", false).into(),
        voice(A, &[B], NetFlags(0)).into(),
        game(A, &enable(to_nobody()), NetFlags(0)).into(),
        about(avatar(A)).into(),
        directed_chat(NetFlags(0)).into(),
        clone_of(&avatar(A)).into(),
        state(A, object(1, "Lever"), lever_state()).into(),
        ObjectUpdateFilter {
            header: header(A, NetFlags(0)),
            objects: Vec::new().into(),
            max_update_frequency: 5.0.into(),
        }
        .into(),
    ];
    for message in client {
        let name = format!("{message:?}");
        assert_eq!(remarks(Side::Client, message), [""; 0], "{name}");
    }
    let location =
        Location { sequence_number: SequenceNumber(0xff00_0001), flags: LocationFlags::Reserved };
    let group = NetGroupId { location, flags: NetGroupFlags(0) };
    let system = || server_header(NetFlags::IsSystemMessage);
    let groups = vec![GroupOwnership { group, owned: true.into() }].into();
    let server: [NetMessage<'_>; 4] = [
        GroupOwner { header: system(), groups }.into(),
        InitialAgeStateSent { header: system(), state_count: 0 }.into(),
        members(identity(), MemberFlags(0)).into(),
        reply(reply_header(), ReplyType::Affirm).into(),
    ];
    for message in server {
        let name = format!("{message:?}");
        assert_eq!(remarks(Side::Server, message), [""; 0], "{name}");
    }
}

#[test]
fn flags_and_fields_of_the_header() {
    let with = |flags: NetFlags, change: fn(&mut NetHeader)| {
        let mut message = members_request(A);
        message.header.flags = message.header.flags | flags;
        change(&mut message.header);
        message
    };
    let unused: [UnusedFlag<NetFlags, NetHeader>; 9] = [
        (NetFlags::RequestP2P, "RequestP2P", |_| ()),
        (NetFlags::AllowTimeOut, "AllowTimeOut", |_| ()),
        (NetFlags::IndirectMember, "IndirectMember", |_| ()),
        (NetFlags::PublicIPClient, "PublicIPClient", |_| ()),
        (NetFlags::AskVaultForGameState, "AskVaultForGameState", |_| ()),
        (NetFlags::HasContext, "HasContext", |header| header.context = Some(1)),
        (NetFlags::HasTransactionID, "HasTransactionID", |header| {
            header.transaction_id = Some(1);
        }),
        (NetFlags::HasAcctUUID, "HasAcctUUID", |header| header.account_uuid = Some(Uuid::ZERO)),
        (NetFlags::HasVersion, "HasVersion", |header| header.version = Some(NetVersion)),
    ];
    for (flag, name, change) in unused {
        odd(Side::Client, with(flag, change), &format!("the unused flag {name}"));
    }
    for (flag, name) in [
        (NetFlags::HasGameMsgRcvrs, "HasGameMsgRcvrs"),
        (NetFlags::EchoBackToSender, "EchoBackToSender"),
        (NetFlags::NewSDLState, "NewSDLState"),
        (NetFlags::InitialAgeStateRequest, "InitialAgeStateRequest"),
        (NetFlags::UseRelevanceRegions, "UseRelevanceRegions"),
        (NetFlags::InterAgeRouting, "InterAgeRouting"),
        (NetFlags::RouteToAllPlayers, "RouteToAllPlayers"),
    ] {
        let wanted = format!("the flag {name}, which this class does not use");
        odd(Side::Client, with(flag, |_| ()), &wanted);
    }
    odd(Side::Client, with(NetFlags(1 << 30), |_| ()), "unknown flags 0x40000000");
    let both = NetFlags::RouteToAllPlayers | NetFlags::InterAgeRouting;
    odd(Side::Client, directed_chat(both), "InterAgeRouting together with RouteToAllPlayers");
    let to_all = NetFlags::RouteToAllPlayers;
    odd(Side::Client, directed_chat(to_all), "RouteToAllPlayers, which this class does not use");
    let payload = enable(MessageHeader {
        bcast_flags: BroadcastFlags::NetPropagate | BroadcastFlags::NetAllowInterAge,
        ..to_nobody()
    });
    let routed = game(A, &payload, NetFlags::InterAgeRouting);
    odd(Side::Client, routed, "InterAgeRouting, which this class does not use");

    let mut message = members_request(A);
    message.header.flags = NetFlags(message.header.flags.0 & !NetFlags::IsSystemMessage.0);
    odd(Side::Client, message, "without the flag IsSystemMessage");
    let mut message = members_request(A);
    message.header.flags = NetFlags(message.header.flags.0 & !NetFlags::NeedsReliableSend.0);
    odd(Side::Client, message, "without the flag NeedsReliableSend");
    let mut message = about(avatar(A));
    message.header.flags = NetFlags(message.header.flags.0 & !NetFlags::NeedsReliableSend.0);
    odd(Side::Client, message, "without the flag NeedsReliableSend");
    let mut message = state_request(A, &[]);
    message.header.flags = NetFlags(message.header.flags.0 & !NetFlags::InitialAgeStateRequest.0);
    odd(Side::Client, message, "without the flag InitialAgeStateRequest");
    let mut message = lock(A, "Lever", true);
    message.header.flags = message.header.flags | NetFlags::IsSystemMessage;
    odd(Side::Client, message, "the flag IsSystemMessage, which this class does not use");
}

#[test]
fn requests_pages_and_regions() {
    odd(Side::Client, state_request(A, &[1]), "a list of rooms, which should be empty");
    odd(Side::Client, paging(A, 0..0, 0), "without a page");
    odd(Side::Client, paging(A, 0..2, 0), "several pages");
    for flag in [2, 4, 8] {
        odd(Side::Client, paging(A, 0..1, flag), &format!("unused page flags 0x{flag:x}"));
    }
    let mut nowhere = paging(A, 0..1, 0);
    let mut rooms = Vec::from(nowhere.rooms);
    rooms[0].location.sequence_number = SequenceNumber(0xfeff_0021);
    nowhere.rooms = rooms.into();
    odd(Side::Client, nowhere, "page 0xfeff0021 does not exist");
    odd(Side::Client, regions(A, &[1], &[1]), "`careAbout` lacks region 0");
    odd(
        Side::Client,
        regions(A, &[0, 2], &[1]),
        "`careAbout` lacks a region that the player is in",
    );
    odd(Side::Client, regions(A, &[0], &[]), "`in` is empty");
    let mut page = player_page(A);
    page.unload = true.into();
    odd(Side::Client, page, "unloads an avatar, which clients never do");
    let mut page = player_page(A);
    page.object = avatar(B);
    odd(Side::Client, page, "an avatar that the sender did not create");
}

#[test]
fn locks() {
    let mut of_scene_object = lock(A, "Lever", true);
    of_scene_object.object.class_index = 1;
    odd(Side::Client, of_scene_object, "a lock of an object of class 0x0001");
    let mut other = SharedState::trigger(true);
    other.name = "State".into();
    let mut two = SharedState::trigger(true);
    two.variables.push(two.variables[0].clone());
    for state in [SharedState::trigger(false), other, two] {
        let mut contradiction = lock(A, "Lever", true);
        contradiction.stream = Stream::new(bytes(&state));
        odd(Side::Client, contradiction, "a lock request whose state is not TrigState");
    }
    let mut release = lock(A, "Lever", false);
    release.stream = Stream::new(bytes(&SharedState::trigger(true)));
    odd(Side::Client, release, "a lock release whose state is not TrigState with Triggered false");
}

#[test]
fn states() {
    let usual = || state(A, object(1, "Lever"), lever_state());
    let mut initial = usual();
    initial.is_initial_state = true.into();
    odd(Side::Client, initial, "`isInitialState`, which only servers set");
    let mut kept = broadcast(A, avatar(A), lever_state());
    kept.state.is_avatar_state = true.into();
    odd(Side::Client, kept, "an avatar's state that is marked to persist");
    let changed = |at: usize, byte: u8| {
        let mut bytes = lever_state();
        bytes[at] = byte;
        state(A, object(1, "Lever"), bytes)
    };
    // Flags, name and version take 11 bytes.
    odd(Side::Client, changed(0, 2), "unused stream flags 0x2");
    odd(Side::Client, changed(1, 0), "stream.sdl.flags at byte 0: wanted the flag");
    odd(Side::Client, changed(11, 3), "unused record flags 0x2");
    odd(Side::Client, changed(13, 5), "record version 5");
}

#[test]
fn clones() {
    let mut initial = clone_of(&avatar(A));
    initial.is_initial_state = true.into();
    odd(Side::Client, initial, "`isInitialState`, which only servers set");
    let mut player = clone_of(&avatar(A));
    player.is_player = true.into();
    odd(Side::Client, player, "disagree about whether the clone is a player");
    let mut player = load_avatar(A, true);
    player.is_player = false.into();
    odd(Side::Client, player, "disagree about whether the clone is a player");
    let mut loading = clone_of(&avatar(A));
    loading.is_loading = false.into();
    odd(Side::Client, loading, "disagree about loading");
    odd(Side::Client, clone_of(&object(1, "Hen")), "an object that is not a clone");
    let mut routed = clone_of(&avatar(A));
    routed.header.flags = routed.header.flags | NetFlags::InterAgeRouting;
    odd(Side::Client, routed, "InterAgeRouting, which this class does not use");
}

#[test]
fn payloads() {
    let with = |change: fn(&mut MessageHeader<'static>)| {
        let mut message = to_nobody();
        change(&mut message);
        game(A, &enable(message), NetFlags(0))
    };
    odd(Side::Client, with(|it| it.timestamp = Double(1.5)), "a timestamp without a delivery time");
    let local = |it: &mut MessageHeader<'_>| it.bcast_flags = BroadcastFlags::LocalPropagate;
    odd(Side::Client, with(local), "without NetPropagate");
    odd(Side::Client, with(|it| it.bcast_flags = BroadcastFlags(0x42)), "broadcast flags 0x2");
    odd(
        Side::Client,
        with(|it| it.receivers = message_header().receivers),
        "actual receivers without the flag HasGameMsgRcvrs",
    );
    let mut marked = game(A, &enable(to_nobody()), NetFlags::HasGameMsgRcvrs);
    marked.stream = Stream::uncompressed(bytes(&enable(to_nobody())));
    odd(Side::Client, marked, "HasGameMsgRcvrs, but no actual receivers");
    let warp = directed(A, &enable(to_nobody()), &[B], NetFlags(0));
    odd(Side::Client, warp, "a payload that should not be directed");
    let none = directed(A, &chat_to_nobody(ChatFlags(1)), &[], NetFlags(0));
    odd(Side::Client, none, "a directed message without receivers");
    let loud = game(A, &chat_to_nobody(ChatFlags(1 << 20)), NetFlags(0));
    odd(Side::Client, loud, "unused chat flags 0x100000");
    let task_msg = AvTaskMsg { message: to_nobody(), has_task: false.into(), task: None };
    let brain = ArmatureBrain {
        reserved1: 7,
        has_key: false.into(),
        key: None,
        reserved2: 0,
        reserved3: 0.0.into(),
        reserved4: Double(0.0),
    };
    let brain = AvatarObject::from(AvBrainHuman { brain, custom_avatar: false.into() });
    let push = AvPushBrainMsg { task_msg, brain: Child::from(brain) };
    odd(Side::Client, game(A, &push.into(), NetFlags(0)), "reserved fields of a brain");
    let long = vec![0x17; 300];
    let mut zipped = state(A, object(1, "Lever"), long.clone());
    zipped.stream = Stream::deflated(&long[..40]).unwrap();
    odd(Side::Client, zipped, "compressed, although it has at most 255 bytes");
}

#[test]
fn what_only_servers_send() {
    odd(Side::Client, members(identity(), MemberFlags(0)), "clients do not send this class");
    odd(Side::Server, members_request(A), "servers do not send this class");
    odd(Side::Server, members(identity(), MemberFlags(1)), "member flags, which should be 0");
    let mut own = members(identity(), MemberFlags(0));
    own.header.flags = own.header.flags | NetFlags::HasPlayerID;
    own.header.player_id = Some(B);
    odd(Side::Server, own, "a list of members that contains the receiver");
    let unused: [UnusedFlag<ClientGuidFlags, ClientGuid<'static>>; 8] = [
        (ClientGuidFlags::AccountUUID, "account or key", |it| it.account_uuid = Some(Uuid::ZERO)),
        (ClientGuidFlags::ClientKey, "account or key", |it| it.client_key = Some("k".into())),
        (ClientGuidFlags::TempPlayerID, "both permanent and temporary", |_| ()),
        (ClientGuidFlags::ProtectedLogin, "unused field ProtectedLogin", |it| {
            it.protected_login = Some(true.into());
        }),
        (ClientGuidFlags::BuildType, "unused field BuildType", |it| it.build_type = Some(50)),
        (ClientGuidFlags::SrcAddr, "unused field SrcAddr", |it| it.src_addr = Some(1)),
        (ClientGuidFlags::SrcPort, "unused field SrcPort", |it| it.src_port = Some(1)),
        (ClientGuidFlags::Reserved, "unused field Reserved", |it| {
            it.reserved = Some(false.into());
        }),
    ];
    for (flag, wanted, change) in unused {
        let mut client = identity();
        client.flags = client.flags | flag;
        change(&mut client);
        odd(Side::Server, members(client, MemberFlags(0)), wanted);
    }
    let uninit = reply(reply_header(), ReplyType::Uninit);
    odd(Side::Server, uninit, "an uninitialised reply");
    odd(Side::Server, reply(reply_header(), ReplyType(7)), "an unknown reply");
    let sent_by = MessageHeader { sender: Key::from(avatar(A)), ..reply_header() };
    odd(Side::Server, reply(sent_by, ReplyType::Deny), "a server reply with a sender");
    let to_none = MessageHeader { receivers: Vec::new().into(), ..reply_header() };
    odd(Side::Server, reply(to_none, ReplyType::Deny), "without exactly one receiver");
}

/// One server writes the null messages of a brain without the booleans before them.
#[test]
fn brains_without_booleans() {
    let push = |ends: &[u8]| {
        let head = [&0x0367_u16.to_le_bytes()[..], &bytes(&to_nobody())].concat();
        let brain = [&[0x60, 3][..], &[0; 21], &[0; 4], &[0; 13], &[1], ends, &[0; 11]].concat();
        let payload = [&head, &[0][..], &brain].concat();
        GameMessage { stream: Stream::new(payload), ..game(A, &enable(to_nobody()), NetFlags(0)) }
    };
    assert_eq!(remarks(Side::Server, push(&[0, 0])), [""; 0]);
    let bare = remarks(Side::Server, push(&[0, 0x80, 0, 0x80]));
    let wanted = "a brain whose messages are null, without the booleans before them; clients read \
                  it only by chance";
    assert_eq!(bare, [wanted]);
    let other = remarks(Side::Server, push(&[0, 0x81, 0, 0x80]));
    assert_eq!(other, ["stream.payload.brain.hasEndMsg: a boolean that is neither 0 nor 1"]);
}

#[test]
fn voices() {
    // Some clients do not mark the echo of audio that is not encoded.
    for (receivers, flags) in [([A], NetFlags(0)), ([B], NetFlags::EchoBackToSender)] {
        let mut plain = voice(A, &receivers, flags);
        (plain.voice_flags, plain.opus, plain.frame_count) = (VoiceFlags(0), None, 0);
        plain.pcm = Some(Bytes16::new(vec![1, 2]));
        assert_eq!(remarks(Side::Client, plain), [""; 0]);
    }
    let echo = voice(A, &[B], NetFlags::EchoBackToSender);
    odd(Side::Client, echo, "EchoBackToSender, but the sender is not listed");
    odd(Side::Client, voice(A, &[A], NetFlags(0)), "the sender is listed without the flag");
    let mut pcm = voice(A, &[B], NetFlags(0));
    (pcm.voice_flags, pcm.opus) = (VoiceFlags(0), None);
    pcm.pcm = Some(Bytes16::new(vec![1, 2]));
    odd(Side::Client, pcm, "a frame count although the audio is not encoded");
    let mut unmarked = voice(A, &[B], NetFlags(0));
    (unmarked.voice_flags, unmarked.opus) = (VoiceFlags(4), None);
    unmarked.pcm = Some(Bytes16::new(vec![1, 2]));
    odd(Side::Client, unmarked, "unknown voice flags 4");
}

#[test]
fn texts_objects_and_booleans() {
    let on = |number: u32, flags: u16| {
        let sequence_number = SequenceNumber(number);
        let location = Location { sequence_number, flags: LocationFlags(flags) };
        about(Uoid { location, ..object(1, "Lever") })
    };
    for number in [0xfeff_0021, 0xff00_0000, 0xff01_0000, 0xffff_ffff] {
        odd(Side::Client, on(number, 4), &format!("page 0x{number:x}, which does not exist"));
    }
    odd(Side::Client, on(7, 0), "an object that all clients know");
    odd(Side::Client, on(0xff06_0002, 0), "page 0xff060002 without the flag Reserved");
    odd(Side::Client, on(0x78_0021, 4), "page 0x780021 with the flag Reserved");
    odd(Side::Client, on(0x78_0021, 8), "page 0x780021 with the flag BuiltIn");
    odd(Side::Client, on(0x79_001f, 0), "page 0x79001f without the flag BuiltIn");
    odd(Side::Client, on(0x78_0021, 1), "unused page flags 0x1");
    odd(Side::Client, on(0x78_0021, 2), "unused page flags 0x2");
    assert_eq!(remarks(Side::Client, on(0x78_0021, 16)), [""; 0]);
    odd(Side::Client, about(object(0x200, "Lever")), "an object of class 0x0200");
    let always = Uoid { load_mask: Some(LoadMask::ALWAYS), ..object(1, "Lever") };
    odd(Side::Client, about(always), "a load mask that should be left out");
    let clone = |id, filler, player_id| {
        about(Uoid { clone: Some(CloneIds { id, filler, player_id }), ..object(1, "Hen") })
    };
    odd(Side::Client, clone(0, 0, A), "clone IDs with the number 0");
    odd(Side::Client, clone(1, 0, 0), "a clone that no player created");
    odd(Side::Client, clone(1, 9, A), "9 in the reserved field of the clone IDs");
    let named = |bytes: &'static [u8]| {
        let name = SafeString::decode(&mut worldwire_core::Reader::new(bytes), "name").unwrap();
        about(Uoid { name, ..object(1, "") })
    };
    odd(Side::Client, named(b"\x03\xf0\x9e\xff\x9d"), "text with a NUL byte");
    odd(Side::Client, named(b"\x03\xf0abc"), "text that is not encoded as clients encode it");
    odd(Side::Client, named(b"\x01\0\x12\x34\x9e"), "text that is not encoded as clients");
    odd(Side::Client, named(b"\x01\x10\x9e"), "text that is not encoded as clients encode it");
    odd(
        Side::Client,
        named(b"\x02\xf0<V"),
        "stream.payload.sender: the first byte is 0x80 or higher",
    );
    let message = bytes(&NetMessage::from(lock(A, "Lever", true)));
    let end = message.len() - 1;
    let lint_changed = |at: usize| {
        let mut message = message.clone();
        message[at] = 2;
        lint(outer(&message), &message, Side::Client, &Limits::DEFAULT)
    };
    assert_eq!(lint_changed(end), ["lockRequest: a boolean that is neither 0 nor 1"]);
    // The key of the sender follows the class of the payload.
    let message = bytes(&NetMessage::from(about(page_object())));
    let at = message.windows(2).position(|two| two == [0x54, 2]).unwrap() + 2;
    let mut changed = message.clone();
    changed[at] = 3;
    let found = lint(outer(&changed), &changed, Side::Client, &Limits::DEFAULT);
    assert_eq!(found, ["stream.payload.sender: a boolean that is neither 0 nor 1"]);
}

fn page_object() -> Uoid<'static> {
    Uoid { location: page(1), ..object(1, "Lever") }
}

#[test]
fn messages_of_other_services() {
    let found = |sender, message: Message<'_>| {
        let bytes = message.to_bytes().unwrap();
        lint_frame(message.service(), sender, &bytes, &Limits::DEFAULT)
    };
    use auth::client::{ClientMessage, KickPlayer};
    use auth::server::{AgeReply, ServerMessage, VaultNodeDeleted};
    let kick = ClientMessage::from(KickPlayer { player_id: A });
    assert_eq!(found(Side::Client, kick.into()), ["clients do not send this message"]);
    let deleted = ServerMessage::from(VaultNodeDeleted { node_id: 5 });
    assert_eq!(found(Side::Server, deleted.into()), ["servers do not send this message"]);
    let reply = |result| {
        let mut sampler = worldwire_core::Sampler::new(1);
        let reply = AgeReply { result, ..AgeReply::sample(&mut sampler) };
        found(Side::Server, ServerMessage::from(reply).into())
    };
    assert_eq!(reply(NetError::Success), [""; 0]);
    assert_eq!(reply(NetError::Pending), ["the result Pending, which should never be sent"]);
    let misread = "the result VaultNodeNotFound, which clients mistake for success here";
    assert_eq!(reply(NetError::VaultNodeNotFound), [misread]);
}

#[test]
fn connect_packets() {
    for service in Service::ALL {
        assert_eq!(lint_connect(&ConnectPacket::new(service)), [""; 0]);
    }
    let mut file = ConnectPacket::new(Service::File);
    file.build_id = 918;
    if let ConnectData::File(data) = &mut file.data {
        data.server_type = 1;
    }
    assert_eq!(
        lint_connect(&file),
        [
            "a server type, which clients should send as 0",
            "a build number, which should be 0 on file connections"
        ]
    );
    let mut gatekeeper = ConnectPacket::new(Service::Gatekeeper);
    if let ConnectData::Gatekeeper(data) = &mut gatekeeper.data {
        data.token = Uuid([1; 16]);
    }
    let token = "a token, which should be zero on gatekeeper connections";
    assert_eq!(lint_connect(&gatekeeper), [token]);
    let mut defunct = ConnectPacket::new(Service::Auth);
    defunct.data = ConnectData::Csr;
    assert_eq!(lint_connect(&defunct), ["a defunct connection type"]);
}
