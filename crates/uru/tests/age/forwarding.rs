//! Forwarding: which messages are left unchanged, changed or refused, and who receives them.

use std::time::Duration;

use worldwire_uru::age::{AgeBounds, CloseReason, Config, DropKind, Event, Importance, SendQueue};
use worldwire_uru::message::game::server::ServerMessage;
use worldwire_uru::net_message::patch::HeaderLayout;
use worldwire_uru::net_message::{NetFlags, NetMessage, ObjStateRequest, Stream};
use worldwire_uru::plasma_message::{AvBrainGeneric, AvatarChild, ChatFlags, Child, PlasmaMessage};
use worldwire_uru::types::{ClassIndex, List, UnifiedTime};

use crate::world::{
    A, B, C, D, UNIX, World, avatar, broadcast, bytes, chat, game, header, ki, load_avatar,
    message_header, notify, object, page, paging, player_page, position, unknown_class, voice,
    warp,
};

fn three() -> World {
    let mut world = World::new();
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.try_join(1, D).unwrap();
    world.forget();
    world
}

fn dropped(world: &World, kind: DropKind) -> u64 {
    world.age().counts().dropped(kind)
}

/// Only the 8 bytes of the time and the 4 bytes of the player change; all receivers share one copy.
#[test]
fn d_01_the_original_bytes_are_forwarded() {
    let mut world = three();
    world.wait(Duration::from_micros(2_500_000));
    let long = "round the mill ".repeat(40);
    let mut text = chat(ChatFlags(0));
    if let PlasmaMessage::KiMsg(chat) = &mut text {
        chat.text = (&*long).into();
    }
    let deflated = game(A, &text, NetFlags(0));
    let mut uncompressed = game(A, &notify(), NetFlags(0));
    uncompressed.stream = Stream::uncompressed(bytes(&notify()));
    for message in [deflated, uncompressed] {
        let sent = bytes(&NetMessage::from(message));
        world.send_bytes(A, &sent);
        let (b, c) = (world.got(B), world.got(C));
        let layout = HeaderLayout::of(&sent).unwrap();
        let got = b[0].bytes();
        assert_eq!(got[layout.end..], sent[layout.end..]);
        assert_eq!(got[..6], sent[..6]);
        assert_eq!((b.len(), c.len()), (1, 1));
        assert!(std::sync::Arc::ptr_eq(&b[0].share(), &c[0].share()));
        let ServerMessage::PropagateBuffer(message) = b[0].message() else { panic!() };
        assert_eq!(message.type_, b[0].class());
    }
}

#[test]
fn d_02_the_server_sets_the_time() {
    let mut world = three();
    world.wait(Duration::from_micros(2_500_000));
    world.send(A, game(A, &notify(), NetFlags(0)));
    let got = world.got(B);
    let message = got[0].decode().unwrap();
    let time = message.header().unwrap().time_sent.clone().unwrap();
    assert_eq!(time, UnifiedTime { seconds: UNIX + 2, microseconds: 500_000 });
    // The server's clock can be set.
    let now = world.now;
    world.age_mut().set_clock(now, Duration::from_secs(2_000_000_000));
    world.send(A, voice(A, &[B], NetFlags(0)));
    let got = world.got(B);
    let time = got[0].decode().unwrap().header().unwrap().time_sent.clone().unwrap();
    assert_eq!(time.seconds, 2_000_000_000);
}

#[test]
fn d_06_strict_rules_refuse_payloads_of_unknown_classes() {
    let mut world = World::with(Config { strict: true, ..Config::default() }, "Fern");
    [A, B].into_iter().for_each(|player| world.join(player));
    world.forget();
    world.send(A, unknown_class(A));
    assert_eq!(world.got(B).len(), 0);
    assert_eq!(dropped(&world, DropKind::Unsafe), 1);
}

#[test]
fn d_17_paging_is_recorded() {
    let bounds = AgeBounds { pages: 3, ..AgeBounds::default() };
    let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
    [A, B].into_iter().for_each(|player| world.join(player));
    world.forget();
    world.send(A, paging(A, 0..2, 0));
    world.send(A, player_page(A));
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
    let member = world.age().members().next().unwrap();
    assert_eq!(member.pages().collect::<Vec<_>>(), [0, 1].map(|it| page(it).sequence_number));
    assert_eq!(member.avatar(), Some(&avatar(A)));
    world.send(A, paging(A, 0..1, 1));
    assert_eq!(world.age().members().next().unwrap().pages().count(), 1);
    world.send(A, paging(A, 0..9, 0));
    assert_eq!(world.age().members().next().unwrap().pages().count(), 3);
    assert_eq!(dropped(&world, DropKind::Limit), 1);
    world.send(A, paging(A, 5..6, 2));
    assert_eq!(world.age().members().next().unwrap().pages().count(), 1);
    // Nobody can claim another player's avatar.
    world.send(B, player_page(A));
    assert_eq!(dropped(&world, DropKind::NotOwner), 1);
}

#[test]
fn d_34_discardable_messages_are_marked_and_discarded_in_order() {
    let mut world = three();
    world.wait(Duration::from_secs(20));
    let mut queue = SendQueue::new(6_000);
    let positions = [position(&world, A, 1.0), position(&world, A, 2.0), position(&world, B, 3.0)];
    world.send(A, voice(A, &[C], NetFlags(0)));
    for (player, position) in [A, A, B].into_iter().zip(positions) {
        world.send(player, position);
    }
    world.send(A, voice(A, &[C], NetFlags(0)));
    world.send(A, game(A, &notify(), NetFlags(0)));
    let got = world.got(C);
    let kinds: Vec<_> = got
        .iter()
        .map(|packet| match packet.importance() {
            Importance::Kept => "kept",
            Importance::Voice => "voice",
            Importance::Position(_) => "position",
        })
        .collect();
    assert_eq!(kinds, ["voice", "position", "position", "position", "voice", "kept"]);
    // Nothing is discarded while there is room.
    for packet in &got {
        queue.push(packet.clone()).unwrap();
    }
    assert_eq!((queue.len(), queue.discarded()), (6, 0));
    // Voice is discarded first, then A's older position; everything else is kept.
    let large = {
        let mut text = chat(ChatFlags(0));
        if let PlasmaMessage::KiMsg(chat) = &mut text {
            chat.text = "x".into();
        }
        world.send(A, game(A, &text, NetFlags(0)));
        world.got(C).remove(0)
    };
    let mut counts = Vec::new();
    while queue.push(large.clone()).is_ok() {
        counts.push(queue.discarded());
    }
    assert!(counts.contains(&1) && counts.contains(&2) && counts.contains(&3), "{counts:?}");
    assert_eq!(counts.iter().max(), Some(&3));
    let kept: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(kept[0], got[2]);
    assert_eq!(kept[1], got[3]);
    assert_eq!(kept[2], got[5]);
    assert!(kept[3..].iter().all(|packet| *packet == large));
    assert_eq!((queue.len(), queue.queued_bytes()), (0, 0));
}

#[test]
fn d_35_sixteen_malformed_messages_in_a_minute_close_the_connection() {
    let mut world = three();
    let closes = |world: &World| {
        let is_close = |event: &&Event| matches!(event, Event::Close { .. });
        world.events.iter().filter(is_close).cloned().collect::<Vec<_>>()
    };
    for _ in 0..40 {
        world.send_bytes(A, &[0x6b, 2, 1]);
        world.wait(Duration::from_secs(5));
    }
    assert_eq!((closes(&world), dropped(&world, DropKind::Malformed)), (vec![], 40));
    world.wait(Duration::from_secs(60));
    for _ in 0..16 {
        assert!(closes(&world).is_empty());
        world.send_bytes(A, &[0x6b, 2, 1]);
    }
    let why = CloseReason::Malformed { messages: 16 };
    assert_eq!(closes(&world), [Event::Close { player_id: A, why }]);
    // From then on, the player's messages are ignored until the server reports that the player
    // left.
    world.send(A, game(A, &notify(), NetFlags(0)));
    assert_eq!((world.got(B).len(), dropped(&world, DropKind::NotAMember)), (0, 1));
    assert_eq!(closes(&world).len(), 1);
    world.leave(A);
    assert_eq!(world.age().owner(), Some(B));
    assert_eq!(why.to_string(), "16 malformed messages within a minute");
}

#[test]
fn d_39_messages_for_the_game_manager_are_counted() {
    let mut world = three();
    assert!(world.age_mut().count_game_message(Duration::from_secs(1), A));
    assert!(!world.age_mut().count_game_message(Duration::from_secs(1), 99));
    assert_eq!(world.age().counts().game_manager, 2);
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
}

/// Messages that the game manager refuses count like malformed messages in the age.
#[test]
fn refused_game_messages_close_the_connection() {
    let mut world = three();
    let now = Duration::from_secs(1);
    for _ in 0..16 {
        assert!(world.age_mut().count_game_message(now, A));
        assert_eq!(world.age_mut().poll_event(), None);
        world.age_mut().count_malformed(now, A);
    }
    let why = CloseReason::Malformed { messages: 16 };
    assert_eq!(world.age_mut().poll_event(), Some(Event::Close { player_id: A, why }));
    assert!(!world.age_mut().count_game_message(now, A));
    world.age_mut().count_malformed(now, A);
    assert_eq!(world.age_mut().poll_event(), None);
}

/// A brain in a message in a message is checked too.
#[test]
fn d_07_messages_inside_brains_are_checked() {
    use worldwire_uru::plasma_message::{ArmatureBrain, AvPushBrainMsg, AvTaskMsg, AvatarObject};
    use worldwire_uru::types::{Double, Key};
    let brain = |end: PlasmaMessage<'static>| {
        AvatarObject::from(AvBrainGeneric {
            brain: ArmatureBrain {
                reserved1: 0,
                has_key: false.into(),
                key: None,
                reserved2: 0,
                reserved3: 0.0.into(),
                reserved4: Double(0.0),
            },
            stages: List::default(),
            cur_stage: 0,
            brain_type: 0,
            exit_flags: 0,
            mode: 0,
            forward: true.into(),
            has_start_msg: false.into(),
            start_msg: None,
            has_end_msg: true.into(),
            end_msg: Some(Child::from(end)),
            fade_in: 1.0.into(),
            fade_out: 1.0.into(),
            move_mode: 0,
            body_usage: 0,
            recipient: Key::NONE,
        })
    };
    let push = |end| {
        let task = AvTaskMsg { message: message_header(), has_task: false.into(), task: None };
        PlasmaMessage::from(AvPushBrainMsg { task_msg: task, brain: AvatarChild::from(brain(end)) })
    };
    let mut world = three();
    world.send(A, game(A, &push(notify()), NetFlags(0)));
    assert_eq!(world.got(B).len(), 1);
    world.send(A, game(A, &push(warp()), NetFlags(0)));
    assert_eq!((world.got(B).len(), dropped(&world, DropKind::Unsafe)), (0, 1));
}

/// Clients may not send messages reserved for servers, and the outer class must equal the inner
/// one.
#[test]
fn clients_cannot_send_server_messages() {
    let mut world = three();
    let sent = worldwire_uru::net_message::InitialAgeStateSent {
        header: header(A, NetFlags::IsSystemMessage),
        state_count: 3,
    };
    world.send(A, sent);
    assert_eq!(dropped(&world, DropKind::ServerOnly), 1);
    let now = world.now;
    let message = bytes(&NetMessage::from(game(A, &notify(), NetFlags(0))));
    world.age_mut().receive(now, A, ClassIndex::plNetMsgVoice, &message);
    world.age_mut().receive(now, A, ClassIndex(0x025e), &[0x5e, 2, 0, 0, 0, 0]);
    assert_eq!(dropped(&world, DropKind::Malformed), 2);
    world.age_mut().receive(now, 9, ClassIndex::plNetMsgGameMessage, &message);
    assert_eq!(dropped(&world, DropKind::NotAMember), 1);
}

/// The texts that appear in logs.
#[test]
fn dropped_messages_give_a_reason() {
    let mut world = three();
    world.send(A, game(A, &warp(), NetFlags(0)));
    world.send(A, game(A, &ki(0, ChatFlags(0), "\u{c9}owyn"), NetFlags(0)));
    world.send_bytes(A, &[0x6b, 2, 1]);
    let mut unknown = world.lever(1);
    unknown[9] = 77;
    world.send(A, broadcast(A, object(1, "O"), unknown));
    let mut other = load_avatar(A, true);
    other.uoid = crate::world::clone("Female", 1, A);
    world.send(A, other);
    world.send(A, load_avatar(B, true));
    world.send(A, ObjStateRequest { header: header(A, NetFlags(0)), object: object(1, "O") });
    let texts = world.events.iter().filter_map(|event| match event {
        Event::Dropped { why, .. } => Some(format!("{}: {why}", why.kind().name())),
        _ => None,
    });
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"), @"
    unsafe: stream.payload.class at byte 27: wanted a class that may be forwarded, found plWarpMsg (0x0255)
    text: stream.payload.user at byte 68: wanted text that the client can read, found bytes that are not UTF-8
    malformed: plNetMsgGameMessage: flags at byte 2: wanted 4 bytes, found 1
    descriptor: wanted versions 1, 2 of lever, found 77
    contradiction: message and payload contradict each other: clone
    not_theirs: the clone does not belong to the sender
    unhandled: servers do not handle plNetMsgObjStateRequest (0x0286)
    ");
}
