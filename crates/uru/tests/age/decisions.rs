//! Decisions that clients can observe, except decisions about locks. `worldwire-client` runs the
//! same tests over sockets.

use std::time::Duration;

use worldwire_core::{Field, Reader};
use worldwire_uru::age::{Config, DropKind};
use worldwire_uru::net_message::{
    GetSharedState, ListenListUpdate, NetFlags, NetHeader, NetMessage, ObjStateRequest,
    ObjectUpdateFilter, Stream,
};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, Child, ConsoleCommand, ControlEventMsg, InputEventMsg, PlasmaMessage,
};
use worldwire_uru::types::{List, Uuid};

use crate::world::{
    A, B, C, D, Got, WRONG, World, avatar, broadcast, bytes, chat, class_name, clone, directed,
    game, header, ki, load_avatar, load_clone, lock, members_request, message_header, notify,
    object, paging, payload, player_page, position, regions, state, state_request, unknown_class,
    voice, warp,
};

fn three() -> World {
    let mut world = World::new();
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.try_join(1, D).unwrap();
    world.forget();
    world
}

fn dropped(world: &World, kind: DropKind, count: u64) {
    world.inside(|age| assert_eq!(age.counts().dropped(kind), count, "{kind:?}"));
}

/// The content of a clone's message: clone, sender in the header, originator in the payload.
pub(crate) fn clone_of(packet: &Got) -> (String, Option<u32>, u32, bool) {
    let NetMessage::LoadClone(load) = packet.decode().unwrap() else { panic!("not a clone") };
    let payload = payload(packet);
    let payload = PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap();
    let clone = match payload {
        PlasmaMessage::LoadCloneMsg(clone) => clone,
        PlasmaMessage::LoadAvatarMsg(avatar) => avatar.clone_msg,
        other => panic!("{other:?}"),
    };
    let name = load.uoid.name.to_text();
    let is_initial = load.is_initial_state.is_true();
    (name, load.header.player_id, clone.originating_player_id, is_initial)
}

#[test]
fn d_03_the_player_is_the_actual_sender() {
    let mut world = three();
    world.send(A, game(B, &notify(), NetFlags(0)));
    let mut without = game(A, &notify(), NetFlags(0));
    without.header = NetHeader::from_server(WRONG, NetFlags(0));
    world.send(A, without);
    for packet in world.got(B) {
        assert_eq!(packet.decode().unwrap().header().unwrap().player_id, Some(A));
    }
    assert_eq!(world.received(C).len(), 2);
}

#[test]
fn d_04_an_echo_is_sent_on_request() {
    let mut world = three();
    let echo = NetFlags::EchoBackToSender;
    let mut state = broadcast(A, object(1, "O"), world.lever(1));
    state.state.header.flags = state.state.header.flags | echo;
    let mut clone = load_clone(A, "N", 2, true);
    clone.header.flags = clone.header.flags | echo;
    let sent: [NetMessage<'_>; 4] =
        [game(A, &notify(), echo).into(), state.into(), clone.into(), voice(A, &[B], echo).into()];
    for message in sent {
        world.send(A, message);
        assert_eq!((world.got(A).len(), world.got(B).len()), (1, 1));
    }
    // A sender who is on the list also receives the message.
    world.forget();
    world.send(A, directed(A, &notify(), &[A, B, B], NetFlags(0)));
    assert_eq!((world.got(A).len(), world.got(B).len(), world.got(C).len()), (1, 1, 0));
    world.send(A, directed(A, &notify(), &[B], echo));
    assert_eq!((world.got(A).len(), world.got(B).len()), (1, 1));
}

#[test]
fn d_05_only_administrators_reach_all_players() {
    let all = NetFlags::RouteToAllPlayers;
    let mut world = World::new();
    world.admins.push(A);
    [A, B].into_iter().for_each(|player| world.join(player));
    world.try_join(1, D).unwrap();
    world.forget();
    world.send(A, game(A, &chat(ChatFlags(0)), all));
    assert_eq!((world.got(B).len(), world.got(D).len(), world.got(A).len()), (1, 1, 0));
    // Messages from other players and messages of other classes stay in the age, and the flag is
    // cleared.
    world.send(B, game(B, &chat(ChatFlags(0)), all));
    world.send(A, directed(A, &notify(), &[B, A], all));
    let (a, b) = (world.got(A), world.got(B));
    assert_eq!((a.len(), b.len(), world.got(D).len()), (2, 1, 0));
    for packet in a.iter().chain(&b) {
        assert!(!packet.decode().unwrap().header().unwrap().flags.contains(all));
    }
}

#[test]
fn d_06_payloads_of_unknown_classes_are_forwarded() {
    let mut world = three();
    let unknown = bytes(&NetMessage::from(unknown_class(A)));
    world.send_bytes(A, &unknown);
    let got = world.got(B);
    assert!(world.is_forwarded(&got[0], &unknown, A));
    assert_eq!((got.len(), world.got(C).len(), world.got(A).len()), (1, 1, 0));
}

#[test]
fn d_08_only_administrators_chat_as_administrators() {
    let mut world = World::new();
    world.admins.push(C);
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.forget();
    let flags = |packet: &Got| match PlasmaMessage::decode(&mut Reader::new(&payload(packet)), "")
        .unwrap()
    {
        PlasmaMessage::KiMsg(chat) => chat.flags,
        other => panic!("{other:?}"),
    };
    let private = ChatFlags::Admin | ChatFlags::Private;
    world.send(A, game(A, &chat(ChatFlags::Admin), NetFlags(0)));
    world.send(A, directed(A, &chat(private), &[B], NetFlags(0)));
    world.send(C, game(C, &chat(ChatFlags::Admin), NetFlags(0)));
    let got: Vec<_> = world.got(B).iter().map(flags).collect();
    assert_eq!(got, [ChatFlags(0), ChatFlags::Private, ChatFlags::Admin]);
}

#[test]
fn d_09_receivers_set_the_non_local_bit_themselves() {
    let mut world = three();
    world.send(A, game(A, &notify(), NetFlags(0)));
    let payload = payload(&world.got(B)[0]);
    assert_eq!(payload, bytes(&notify()));
    let PlasmaMessage::NotifyMsg(notify) =
        PlasmaMessage::decode(&mut Reader::new(&payload), "").unwrap()
    else {
        panic!("unexpected message")
    };
    assert!(!notify.message.bcast_flags.contains(BroadcastFlags::NetNonLocal));
}

#[test]
fn d_10_directed_messages_leave_the_age_if_flagged_or_private_chat() {
    let private = chat(ChatFlags::Private);
    let mut world = three();
    world.send(A, directed(A, &notify(), &[B, D], NetFlags(0)));
    world.send(A, directed(A, &chat(ChatFlags(0)), &[D], NetFlags(0)));
    assert_eq!((world.got(B).len(), world.got(D).len()), (1, 0));
    world.send(A, directed(A, &notify(), &[D], NetFlags::InterAgeRouting));
    world.send(A, directed(A, &private, &[D, D], NetFlags(0)));
    let got = world.got(D);
    assert_eq!(got.len(), 2);
    assert_eq!(got[1].decode().unwrap().header().unwrap().player_id, Some(A));
    let mut world = World::with(Config { directed_anywhere: true, ..Config::default() }, "Fern");
    world.join(A);
    world.try_join(1, D).unwrap();
    world.forget();
    world.send(A, directed(A, &notify(), &[D], NetFlags(0)));
    assert_eq!(world.got(D).len(), 1);
}

/// A player's pages and avatar concern only the instance: clients cannot handle either message.
#[test]
fn d_17_paging_is_never_forwarded() {
    let mut world = three();
    for flags in [0, 1, 2] {
        world.send(A, paging(A, 0..2, flags));
    }
    world.send(A, player_page(A));
    for player in [A, B, C] {
        assert_eq!(world.received(player), [""; 0]);
    }
}

#[test]
fn d_18_relevance_regions_filter_flagged_messages_if_enabled() {
    let run = |relevance| {
        let mut world = World::with(Config { relevance, ..Config::default() }, "Fern");
        [A, B, C].into_iter().for_each(|player| world.join(player));
        world.send(A, regions(A, &[0, 1], &[1]));
        world.send(B, regions(B, &[0, 2], &[2]));
        world.forget();
        let mut got = Vec::new();
        // Send one message just after A joined, one later, and one without the flag.
        let first = position(&world, A, 1.0);
        world.send(A, first);
        got.push((world.got(B).len(), world.got(C).len()));
        world.wait(Duration::from_secs(11));
        let next = position(&world, A, 2.0);
        world.send(A, next);
        got.push((world.got(B).len(), world.got(C).len()));
        world.send(A, game(A, &notify(), NetFlags(0)));
        got.push((world.got(B).len(), world.got(C).len()));
        got
    };
    assert_eq!(run(true), [(1, 1), (0, 1), (1, 1)]);
    assert_eq!(run(false), [(1, 1), (1, 1), (1, 1)]);
}

/// Everyone cares about region 0, which contains the players who are in no other region; those
/// players care about all regions.
#[test]
fn region_0_is_relevant_for_everyone() {
    let reaches = |mine: &[u32], theirs: &[u32]| {
        let mut world = World::with(Config { relevance: true, ..Config::default() }, "Fern");
        [A, B].into_iter().for_each(|player| world.join(player));
        world.send(A, regions(A, &[9], mine));
        world.send(B, regions(B, &[8], theirs));
        world.wait(Duration::from_secs(11));
        world.forget();
        let next = position(&world, A, 2.0);
        world.send(A, next);
        world.got(B).len() == 1
    };
    assert!(!reaches(&[1], &[2]));
    for region_0 in [&[0][..], &[], &[0, 3]] {
        assert!(reaches(region_0, &[2]) && reaches(&[1], region_0));
    }
}

#[test]
fn d_31_context_and_transaction_are_kept() {
    let mut world = three();
    let flags = NetFlags::HasContext | NetFlags::HasTransactionID | NetFlags::HasAcctUUID;
    let mut message = game(A, &notify(), flags);
    message.header.context = Some(11);
    message.header.transaction_id = Some(12);
    message.header.account_uuid = Some(Uuid([13; 16]));
    let sent = bytes(&NetMessage::from(message));
    world.send_bytes(A, &sent);
    let got = world.got(B);
    assert!(world.is_forwarded(&got[0], &sent, A));
}

/// An empty wide string has no zero unit. A string that has one anyway is accepted and forwarded
/// unchanged. A unit other than zero in its place is malformed.
#[test]
fn d_36_an_empty_wide_text_may_end_in_a_zero_unit() {
    let mut world = three();
    let mut text = chat(ChatFlags(0));
    if let PlasmaMessage::KiMsg(chat) = &mut text {
        chat.text = "".into();
    }
    let payload = bytes(&text);
    let with = |unit: &[u8]| {
        let mut payload = payload.clone();
        // The text ends before the flags, delay and value.
        let place = payload.len() - 12;
        payload.splice(place..place, unit.iter().copied());
        let mut message = game(A, &text, NetFlags(0));
        message.stream = Stream::new(payload);
        bytes(&NetMessage::from(message))
    };
    for unit in [&[][..], &[0, 0]] {
        let sent = with(unit);
        world.send_bytes(A, &sent);
        let got = world.got(B);
        assert_eq!(got.len(), 1, "{unit:?}");
        assert!(world.is_forwarded(&got[0], &sent, A), "{unit:?}");
    }
    for unit in [&[1, 0][..], &[0], &[0, 0, 0, 0]] {
        world.send_bytes(A, &with(unit));
        assert_eq!(world.got(B).len(), 0, "{unit:?}");
    }
}

#[test]
fn d_37_payloads_in_the_wrong_message_are_dropped() {
    let mut world = three();
    let loading = crate::world::clone_msg(avatar(A), A, true);
    world.send(A, game(A, &loading.into(), NetFlags(0)));
    world.send(A, crate::world::load(A, avatar(A), &notify(), true, true));
    assert_eq!(world.got(B).len(), 0);
    dropped(&world, DropKind::Wrapper, 2);
    // The same applies to payloads that contradict their net message.
    let mut other = load_avatar(A, true);
    other.uoid = clone("Female", 1, A);
    let mut unloading = load_avatar(A, true);
    unloading.is_loading = false.into();
    let mut thing = load_avatar(A, true);
    thing.is_player = false.into();
    for message in [other, unloading, thing] {
        world.send(A, message);
    }
    assert_eq!(world.got(B).len(), 0);
    dropped(&world, DropKind::Contradiction, 3);
}

#[test]
fn d_38_a_list_may_have_255_receivers() {
    let mut world = three();
    let mut receivers: Vec<u32> = (1000..1254).collect();
    receivers.push(B);
    world.send(A, directed(A, &notify(), &receivers, NetFlags(0)));
    world.send(A, voice(A, &receivers, NetFlags(0)));
    assert_eq!((world.got(B).len(), world.got(C).len()), (2, 0));
}

#[test]
fn d_40_unhandled_messages_are_decoded_counted_and_ignored() {
    let mut world = three();
    let header = || header(A, NetFlags(0));
    let name = b"TrigState".to_vec();
    let filter = ObjectUpdateFilter {
        header: header(),
        objects: List::default(),
        max_update_frequency: 1.0.into(),
    };
    let listen =
        ListenListUpdate { header: header(), adding: true.into(), receivers: vec![B].into() };
    let shared = GetSharedState {
        header: header(),
        object: object(1, "O"),
        shared_state_name: std::str::from_utf8(&name).unwrap().into(),
    };
    let request = ObjStateRequest { header: header(), object: object(1, "O") };
    let sent: [NetMessage<'_>; 4] = [filter.into(), listen.into(), shared.into(), request.into()];
    for message in sent {
        world.send(A, message);
    }
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
    dropped(&world, DropKind::Unhandled, 4);
    let dropped =
        |age: &worldwire_uru::age::Instance| DropKind::ALL.map(|kind| age.counts().dropped(kind));
    world.inside(|age| assert_eq!(dropped(age).iter().sum::<u64>(), 4));
}

#[test]
fn when_the_owner_leaves_the_next_one_is_notified() {
    let mut world = World::new();
    [A, B, C].into_iter().for_each(|player| world.enter(player));
    world.leave(B);
    assert_eq!(world.received(A), ["plNetMsgLoadClone", "plNetMsgMemberUpdate"]);
    world.inside(|age| assert_eq!(age.owner(), Some(A)));
    world.forget();
    world.leave(A);
    let last = ["plNetMsgLoadClone", "plNetMsgMemberUpdate", "plNetMsgGroupOwner"];
    assert_eq!(world.received(C), last);
    world.inside(|age| assert_eq!(age.owner(), Some(C)));
    world.leave(C);
    world.inside(|age| assert_eq!(age.owner(), None));
    world.forget();
    world.join(B);
    let got = world.got(B);
    let NetMessage::GroupOwner(owner) = got[0].decode().unwrap() else { panic!() };
    assert!(owner.groups[0].owned.is_true());
}

#[test]
fn a_late_joiner_gets_clones_before_states_and_an_exact_count() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(B, load_clone(B, "Crab", 2, true));
    world.send(B, broadcast(B, clone("Crab", 2, B), world.lever(1)));
    let there = position(&world, A, 1.0);
    world.send(A, there);
    // Activity continues between the join and the request; nothing may be lost or counted twice.
    world.join(C);
    world.send(A, load_clone(A, "Hen", 3, true));
    world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
    world.forget();
    world.send(C, members_request(C));
    world.send(C, state_request(C, &[]));
    world.send(A, game(A, &notify(), NetFlags(0)));
    let got = world.got(C);
    let classes: Vec<String> = got.iter().map(class_name).collect();
    let wanted = [
        &["plNetMsgMembersList"][..],
        &["plNetMsgLoadClone"; 4],
        &["plNetMsgSDLState"; 4],
        &["plNetMsgInitialAgeStateSent", "plNetMsgGameMessage"],
    ];
    assert_eq!(classes, wanted.concat());
    let NetMessage::InitialAgeStateSent(sent) = got[9].decode().unwrap() else { panic!() };
    assert_eq!(sent.state_count, 8);
    let initial = got.iter().filter(|packet| match packet.decode().unwrap() {
        NetMessage::LoadClone(load) => load.is_initial_state.is_true(),
        NetMessage::SdlState(state) => state.is_initial_state.is_true(),
        _ => false,
    });
    assert_eq!(initial.count(), 8);
}

#[test]
fn d_14_joining_players_get_original_clone_messages_and_an_exact_count() {
    let mut world = World::new();
    world.enter(A);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.join(B);
    world.send(B, load_avatar(B, true));
    world.send(B, members_request(B));
    world.forget();
    world.wait(Duration::from_secs(9));
    world.send(B, state_request(B, &[]));
    let got = world.got(B);
    // The joining player's own avatar is not sent; the third message is the state of the age.
    let clones: Vec<_> = got[..2].iter().map(clone_of).collect();
    assert_eq!(clones[0], ("Crab".into(), Some(A), A, true));
    assert_eq!(clones[1], ("Male".into(), Some(A), A, true));
    let NetMessage::InitialAgeStateSent(sent) = got[3].decode().unwrap() else { panic!() };
    assert_eq!((got.len(), sent.state_count), (4, 3));
    // The spawn point is kept: only the time and the initial flag changed.
    let mut wanted = bytes(&NetMessage::from(load_avatar(A, true)));
    *wanted.last_mut().unwrap() = 1;
    assert!(world.is_forwarded(&got[1], &wanted, A));
}

#[test]
fn d_15_clones_come_first_and_avatars_after_the_others() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(B, load_clone(B, "Crab", 2, true));
    world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
    world.send(B, broadcast(B, clone("Crab", 2, B), world.lever(2)));
    world.join(C);
    world.send(C, members_request(C));
    world.forget();
    world.send(C, state_request(C, &[]));
    let shown = |packet: &Got| match packet.decode().unwrap() {
        NetMessage::LoadClone(it) => {
            format!("clone {} {}", it.uoid.name.to_text(), it.header.player_id.unwrap())
        }
        NetMessage::SdlState(it) => format!("state {}", it.object.name.to_text()),
        NetMessage::InitialAgeStateSent(it) => format!("count {}", it.state_count),
        other => panic!("{other:?}"),
    };
    let got: Vec<_> = world.got(C).iter().map(shown).collect();
    let wanted = ["clone Crab 20200", "clone Male 20100", "clone Male 20200", "state AgeSDLHook"];
    assert_eq!(got[..4], wanted);
    assert_eq!(got[4..], ["state Crab", "state O", "count 6"]);
}

/// The owner of a clone crashes; players who join later still receive it, in the name of a member.
#[test]
fn d_42_handed_over_clones_name_their_new_owner() {
    let mut world = World::new();
    world.enter(B);
    world.enter(A);
    world.send(A, load_clone(A, "Hen", 3, true));
    let mut large = crate::world::clone_msg(clone("Crab", 4, A), A, true);
    large.message.receivers = (0..30).map(|_| large.requestor.clone()).collect::<Vec<_>>().into();
    let large = crate::world::load(A, clone("Crab", 4, A), &large.into(), false, true);
    assert!(large.stream.compression() == worldwire_uru::net_message::Compression::Zlib);
    world.send(A, large);
    world.leave(A);
    world.join(C);
    world.send(C, members_request(C));
    world.forget();
    world.send(C, state_request(C, &[]));
    let clones: Vec<_> = world.got(C)[..3].iter().map(clone_of).collect();
    assert_eq!(clones[0], ("Hen".into(), Some(B), B, true));
    assert_eq!(clones[1], ("Crab".into(), Some(B), B, true));
    assert_eq!(clones[2], ("Male".into(), Some(B), B, true));
    // The new owner may unload it.
    let payload = PlasmaMessage::from(crate::world::clone_msg(clone("Hen", 3, A), B, false));
    world.send(B, crate::world::load(B, clone("Hen", 3, A), &payload, false, false));
    assert_eq!(world.received(C), ["plNetMsgLoadClone"]);
}

fn control(command: &str) -> PlasmaMessage<'_> {
    ControlEventMsg {
        input: InputEventMsg { message: message_header(), event: 0 },
        control_code: 0,
        activated: true.into(),
        percent: 1.0.into(),
        turn_to: [0.0_f32; 3].into(),
        command: ConsoleCommand(command.into()),
    }
    .into()
}

#[test]
fn d_07_forbidden_messages_are_not_forwarded() {
    let console_commands = vec!["Avatar.Spawn.DontPanic".to_owned()];
    let mut world = World::with(Config { console_commands, ..Config::default() }, "Fern");
    world.admins.push(C);
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.forget();
    let mut trigger = crate::world::clone_msg(clone("N", 2, A), A, true);
    trigger.trigger = Child::from(warp());
    let trigger = PlasmaMessage::from(trigger);
    let nested = crate::world::load(A, clone("N", 2, A), &trigger, false, true);
    let sent: [NetMessage<'_>; 5] = [
        game(A, &warp(), NetFlags(0)).into(),
        game(A, &ki(40, ChatFlags(0), "x"), NetFlags(0)).into(),
        game(A, &control("Game.Quit"), NetFlags(0)).into(),
        directed(A, &warp(), &[B], NetFlags(0)).into(),
        nested.into(),
    ];
    let count = sent.len();
    for message in sent {
        world.send(A, message);
    }
    assert_eq!(world.got(B).len(), 0);
    dropped(&world, DropKind::Unsafe, count as u64);
    world.inside(|age| assert_eq!(age.clones().count(), 0));
    world.send(A, game(A, &control("avatar.spawn.dontpanic"), NetFlags(0)));
    world.send(C, game(C, &warp(), NetFlags(0)));
    assert_eq!(world.got(B).len(), 2);
}

#[test]
fn d_30_versions_other_than_12_6_are_malformed() {
    let mut world = three();
    let mut message = game(A, &notify(), NetFlags::HasVersion);
    message.header.version = Some(worldwire_uru::net_message::NetVersion);
    let mut sent = bytes(&NetMessage::from(message));
    world.send_bytes(A, &sent);
    assert_eq!(world.got(B).len(), 1);
    sent[7] = 7;
    world.send_bytes(A, &sent);
    assert_eq!(world.got(B).len(), 0);
    dropped(&world, DropKind::Malformed, 1);
}

/// Text whose inverted first byte lacks bit 7 crashes clients, in any field.
#[test]
fn d_41_text_that_crashes_clients_is_not_forwarded() {
    let mut world = three();
    let eowyn = "\u{c9}owyn";
    world.send(A, game(A, &ki(0, ChatFlags(0), eowyn), NetFlags(0)));
    world.send(A, broadcast(A, object(1, eowyn), world.lever(1)));
    world.send(A, state(A, object(1, eowyn), world.lever(1)));
    world.send(A, lock(A, eowyn, true));
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
    dropped(&world, DropKind::Text, 4);
    world.inside(|age| assert!(age.states().is_empty()));
    // An accent in any other position is harmless.
    world.send(A, game(A, &ki(0, ChatFlags(0), "E\u{f3}wyn"), NetFlags(0)));
    assert_eq!(world.got(B).len(), 1);
}
