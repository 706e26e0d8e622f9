//! Players who come and go, and compete for the same things.

use std::collections::BTreeMap;
use std::time::Duration;

use worldwire_core::{Field, Reader};
use worldwire_uru::age::{
    AgeBounds, Capacity, Config, DropKind, Event, JoinRefused, Overflow, Player, SendQueue,
};
use worldwire_uru::net_message::{NetFlags, NetMessage};
use worldwire_uru::types::{NetError, SafeString};

use crate::merging::two;
use crate::world::{
    A, B, C, D, P, World, broadcast, bytes, game, load_avatar, load_clone, lock, notify, object,
    outer, reply, voice,
};

/// The replies to a player's lock requests.
fn answers(world: &mut World, player: u32) -> Vec<i32> {
    world.got(player).iter().filter_map(reply).collect()
}

#[test]
fn locks_are_bounded() {
    let bounds = AgeBounds { locks: 2, ..AgeBounds::default() };
    let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
    world.join(A);
    for name in ["a", "b", "c"] {
        world.send(A, lock(A, name, true));
    }
    assert_eq!(answers(&mut world, A), [1, 1, 0]);
    assert_eq!(world.age().counts().dropped(DropKind::Limit), 1);
    world.send(A, lock(A, "a", false));
    world.send(A, lock(A, "c", true));
    assert_eq!(answers(&mut world, A), [1]);
}

#[test]
fn locks_need_a_page_of_an_age() {
    let mut world = two();
    for number in [5, 0xfeff_0021, 0xff00_0001, u32::MAX] {
        let mut request = lock(A, "Lever", true);
        request.object.location.sequence_number.0 = number;
        world.send(A, request);
    }
    assert_eq!(answers(&mut world, A), [0; 0]);
    assert_eq!(world.age().counts().dropped(DropKind::LocalObject), 4);
}

/// Readers treat both encodings of the name as the same text, so both identify the same object.
#[test]
fn a_name_in_another_spelling_is_the_same_lock() {
    let mut world = two();
    world.send(A, lock(A, "Ahnon\u{e9}", true));
    assert_eq!(answers(&mut world, A), [1]);
    let mut literal = lock(B, "", true);
    let name = b"\x07\xf0Ahnon\xc3\xa9";
    literal.object.name = SafeString::decode(&mut Reader::new(name), "name").unwrap();
    world.send(B, literal);
    assert_eq!(answers(&mut world, B), [0]);
}

#[test]
fn d_19_silent_members_do_not_become_owner() {
    let mut world = World::new();
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.wait(Duration::from_secs(100));
    let now = world.now;
    world.age_mut().mark_active(now, C);
    world.wait(Duration::from_secs(50));
    // B has been silent for 150 s; C has sent a ping.
    world.leave(A);
    assert_eq!(world.age().owner(), Some(C));
    // If everyone was silent, the longest-standing member becomes the owner.
    let mut world = World::new();
    [A, B, C].into_iter().for_each(|player| world.join(player));
    world.wait(Duration::from_secs(150));
    world.leave(A);
    assert_eq!(world.age().owner(), Some(B));
}

#[test]
fn d_32_an_empty_age_lingers() {
    let mut world = World::new();
    world.enter(A);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
    world.leave(A);
    // States to be kept are reported immediately.
    assert!(world.events.iter().any(|event| matches!(event, Event::StoreState { .. })));
    world.wait(Duration::from_secs(179));
    world.enter(B);
    world.wait(Duration::from_secs(1_000));
    assert!(!world.age().is_over());
    // Clones disappeared with their owners; states remain.
    assert_eq!((world.age().states().len(), world.age().clones().count()), (1, 1));
    world.leave(B);
    world.forget();
    world.wait(Duration::from_secs(180));
    assert!(world.events.contains(&Event::Over));
    assert!(world.age().is_over());
    assert_eq!(world.age().poll_timeout(), None);
    assert_eq!(world.try_join(0, A), Err(JoinRefused::Over));
}

#[test]
fn an_age_that_nobody_joins_ends_too() {
    let mut world = World::new();
    world.wait(Duration::from_secs(180));
    assert_eq!(world.events, [Event::Over, Event::Over]);
}

#[test]
fn d_33_a_full_age_refuses_or_warns() {
    let players = [A, B, C, D];
    let capacity = Capacity::Refuse;
    let mut world = World::with(Config { capacity, ..Config::default() }, "Fern");
    players.into_iter().for_each(|player| world.join(player));
    world.forget();
    assert_eq!(world.try_join(0, P), Err(JoinRefused::Full { capacity: 4 }));
    assert_eq!(world.got(A).len() + world.got(P).len(), 0);
    assert_eq!(JoinRefused::Full { capacity: 4 }.result(), NetError::ServerBusy);
    // By default, the age only warns.
    let mut world = World::new();
    players.into_iter().for_each(|player| world.join(player));
    assert_eq!(world.events, []);
    world.join(P);
    assert_eq!(world.events, [Event::OverCapacity { members: 5, capacity: 4 }]);
}

#[test]
fn a_player_can_join_only_once() {
    let mut world = World::new();
    world.join(A);
    assert_eq!(world.try_join(0, A), Err(JoinRefused::AlreadyJoined));
    assert_eq!(world.try_join(0, 0), Err(JoinRefused::NoPlayer));
    world.leave(A);
    world.join(A);
    // Removing a player who is not a member is harmless.
    let now = world.now;
    world.age_mut().leave(now, B);
    assert_eq!(world.age().members().count(), 1);
}

/// A server: an age and a queue per client, with one client that does not read.
#[test]
fn a_slow_reader_is_disconnected_without_delaying_others() {
    let mut world = World::new();
    let now = Duration::from_secs(20);
    let mut queues: BTreeMap<u32, SendQueue> = BTreeMap::new();
    for player in [A, B, C] {
        queues.insert(player, SendQueue::new(20_000));
        world.age_mut().join(Duration::ZERO, Player::new(player, "x")).unwrap();
    }
    let message = bytes(&NetMessage::from(game(A, &notify(), NetFlags(0))));
    let avatar = bytes(&NetMessage::from(load_avatar(A, true)));
    let noise = bytes(&NetMessage::from(voice(A, &[B, C], NetFlags(0))));
    let (mut read, mut cut, mut most) = (0, None, 0);
    for round in 0..2_000_u32 {
        for sent in [&message, &avatar, &noise] {
            world.age_mut().receive(now, A, outer(sent), sent);
        }
        let mut slow = Vec::new();
        while let Some(delivery) = world.age_mut().poll_delivery() {
            let Some(queue) = queues.get_mut(&delivery.to) else { continue };
            if let Err(Overflow { limit, queued }) = queue.push(delivery.packet) {
                assert!(queued > limit);
                slow.push(delivery.to);
            }
        }
        for player in slow {
            cut = Some((player, round));
            queues.remove(&player);
            world.age_mut().leave(now, player);
        }
        // A and B read everything queued.
        for player in [A, B] {
            let queue = queues.get_mut(&player).unwrap();
            most = most.max(queue.queued_bytes());
            read += core::iter::from_fn(|| queue.pop()).filter(|_| player == B).count();
            assert_eq!(queue.discarded(), 0);
        }
    }
    let (player, round) = cut.unwrap();
    assert_eq!(player, C);
    assert!(round < 100, "{round}");
    assert!(most < 2_000, "{most}");
    // The queue holds all of A's messages, the group, and the joins and leaves.
    assert_eq!(read, 6_000 + 3);
    assert_eq!(world.age().members().count(), 2);
}
