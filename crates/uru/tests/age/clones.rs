//! Clones: who gets them when, what becomes of them when their owner is gone.

use worldwire_core::{Field, Reader};
use worldwire_uru::age::{AgeBounds, Config, DropKind, Packet};
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::plasma_message::PlasmaMessage;

use crate::world::{
    A, B, C, UNIX, World, avatar, broadcast, bytes, clone, load_avatar, load_clone, lock,
    members_request, object, payload, state, state_request,
};

/// What a clone's message says: clone, sender in the header, originator in the payload.
fn clone_of(packet: &Packet) -> (String, Option<u32>, u32, bool) {
    let NetMessage::LoadClone(load) = packet.decode().unwrap() else { panic!("no clone") };
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
fn d_14_who_joins_gets_the_original_messages_of_clones_and_an_exact_count() {
    let mut world = World::new();
    world.enter(A);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.join(B);
    world.send(B, load_avatar(B, true));
    world.send(B, members_request(B));
    world.forget();
    world.wait(std::time::Duration::from_secs(9));
    world.send(B, state_request(B, &[]));
    let got = world.got(B);
    // Not its own avatar; the state of the age is the third one.
    let clones: Vec<_> = got[..2].iter().map(clone_of).collect();
    assert_eq!(clones[0], ("Crab".into(), Some(A), A, true));
    assert_eq!(clones[1], ("Male".into(), Some(A), A, true));
    let NetMessage::InitialAgeStateSent(sent) = got[3].decode().unwrap() else { panic!() };
    assert_eq!((got.len(), sent.state_count), (4, 3));
    // The spawn point is still there: nothing but time, and the bit that says initial, changed.
    let mut wanted = bytes(&NetMessage::from(load_avatar(A, true)));
    *wanted.last_mut().unwrap() = 1;
    wanted[6..10].copy_from_slice(&(UNIX + 9).to_le_bytes());
    wanted[10..14].fill(0);
    assert_eq!(got[1].bytes(), wanted);
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
    let shown = |packet: &Packet| match packet.decode().unwrap() {
        NetMessage::LoadClone(it) => {
            format!("clone {} {}", it.uoid.name.to_text(), it.header.player_id.unwrap())
        }
        NetMessage::SdlState(it) => format!("state {}", it.object.name.to_text()),
        NetMessage::InitialAgeStateSent(it) => format!("count {}", it.state_count),
        other => panic!("{other:?}"),
    };
    let got: Vec<_> = world.got(C).iter().map(shown).collect();
    let wanted = ["clone Crab 102", "clone Male 101", "clone Male 102", "state AgeSDLHook"];
    assert_eq!(got[..4], wanted);
    assert_eq!(got[4..], ["state Crab", "state O", "count 6"]);
}

#[test]
fn a_repeated_load_takes_the_place_of_the_first() {
    let mut world = World::new();
    world.enter(A);
    let mut again = load_avatar(A, true);
    again.is_initial_state = true.into();
    world.join(B);
    world.forget();
    world.send(A, again);
    // Only the server says what is initial.
    assert!(!clone_of(&world.got(B)[0]).3);
    assert_eq!(world.age().clone_count(), 1);
}

#[test]
fn an_unloaded_clone_is_gone_with_its_states() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.send(A, broadcast(A, clone("Crab", 2, A), world.lever(1)));
    world.send(A, broadcast(A, clone("Claw", 2, A), world.lever(1)));
    world.send(A, broadcast(A, clone("Hen", 3, A), world.lever(1)));
    world.forget();
    world.send(A, load_clone(A, "Crab", 2, false));
    assert_eq!(world.heard(B), ["plNetMsgLoadClone"]);
    let left: Vec<_> = world.age().states().iter().map(|it| it.object.name.to_text()).collect();
    assert_eq!((left, world.age().clone_count()), (vec!["Hen".to_owned()], 2));
    // The avatar, too: and then nobody is told of it any more.
    world.send(A, load_avatar(A, false));
    assert!(world.age().members().next().unwrap().avatar().is_none());
    world.forget();
    world.leave(A);
    assert_eq!(world.heard(B), ["plNetMsgMemberUpdate", "plNetMsgGroupOwner"]);
}

#[test]
fn nobody_touches_the_clones_of_others() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.forget();
    // As A; of A; unloading what A loaded; making something for A; something that is no clone.
    let crab = || clone("Crab", 2, A);
    let load = |by: u32, of, loading| {
        let payload = PlasmaMessage::from(crate::world::clone_msg(of, by, loading));
        (payload, loading)
    };
    let attempts = [
        (crab(), A, true),
        (crab(), B, true),
        (crab(), B, false),
        (clone("Hen", 3, A), B, true),
        (clone("Hen", 3, B), B, false),
    ];
    let count = attempts.len() as u64;
    for (of, by, loading) in attempts {
        let (payload, loading) = load(by, of.clone(), loading);
        world.send(B, crate::world::load(B, of, &payload, false, loading));
    }
    let gate = object(1, "Gate");
    let (payload, loading) = load(B, gate.clone(), true);
    world.send(B, crate::world::load(B, gate, &payload, false, loading));
    let counts = world.age().counts();
    assert_eq!(counts.dropped(DropKind::NotTheirs), count);
    assert_eq!(counts.dropped(DropKind::NoClone), 1);
    assert_eq!((world.got(A).len(), world.age().clone_count()), (0, 3));
}

/// The state of an avatar is its player's, before it is loaded, too; a thing that a player made is
/// anybody's while it is there.
#[test]
fn nobody_sets_a_state_of_the_avatar_of_another() {
    let mut world = World::new();
    world.enter(A);
    world.join(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.forget();
    let hat = |of: u32| clone("hat", 1, of);
    for object in [avatar(A), hat(A), clone("Hen", 3, A), avatar(C)] {
        world.send(B, broadcast(B, object.clone(), world.lever(1)));
        world.send(B, state(B, object.clone(), world.lever(1)));
        assert_eq!(world.age().states().of(&object).len(), 0, "{object:?}");
    }
    assert_eq!(world.age().counts().dropped(DropKind::NotTheirs), 8);
    assert_eq!(world.got(A).len(), 0);
    world.send(B, broadcast(B, clone("Crab", 2, A), world.lever(1)));
    world.send(B, broadcast(B, hat(B), world.lever(1)));
    world.send(A, broadcast(A, hat(A), world.lever(1)));
    assert_eq!((world.got(A).len(), world.got(B).len()), (2, 1));
    // It stays anybody's after it was handed over.
    world.leave(A);
    world.forget();
    world.join(C);
    world.send(C, broadcast(C, clone("Crab", 2, A), world.lever(2)));
    assert_eq!(world.got(B).len(), 2);
}

#[test]
fn who_never_asked_for_members_gets_them_in_front_of_clones() {
    let mut world = World::new();
    world.enter(A);
    world.join(B);
    world.forget();
    world.send(B, state_request(B, &[]));
    let heard = world.heard(B);
    assert_eq!(heard[..2], ["plNetMsgMembersList", "plNetMsgLoadClone"]);
    world.send(B, state_request(B, &[]));
    assert_eq!(world.heard(B)[0], "plNetMsgLoadClone");
}

#[test]
fn d_13_locks_on_a_clone_are_free_when_it_is_unloaded() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    let mut on_claw = lock(B, "Claw", true);
    on_claw.object.clone = clone("Claw", 2, A).clone;
    let claw = on_claw.object.clone();
    world.send(B, on_claw);
    world.send(B, lock(B, "Lever", true));
    assert_eq!(world.age().lock_holder(&claw), Some(B));
    world.send(A, load_clone(A, "Crab", 2, false));
    assert_eq!(world.age().lock_holder(&claw), None);
    assert_eq!(world.age().locks(), 1);
}

/// The owner of a clone crashes; whoever joins later still gets it, in the name of a member.
#[test]
fn d_42_clones_that_are_handed_over_name_their_new_owner() {
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
    assert_eq!(world.heard(C), ["plNetMsgLoadClone"]);
}

#[test]
fn clones_are_bounded() {
    let one = bytes(&NetMessage::from(load_clone(A, "Crab", 2, true))).len();
    let run = |bounds| {
        let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
        world.join(A);
        world.join(B);
        world.forget();
        for id in 2..9 {
            world.send(A, load_clone(A, "Crab", id, true));
        }
        let limit = world.age().counts().dropped(DropKind::Limit);
        (world.age().clone_count(), limit, world.heard(B).len())
    };
    let bounds = AgeBounds { share: 1, ..AgeBounds::default() };
    assert_eq!(run(AgeBounds { clones: 3, ..bounds.clone() }), (3, 4, 3));
    assert_eq!(run(AgeBounds { clone_bytes: 2 * one, ..bounds }), (2, 5, 2));
}
