//! Clones: who receives them and when, and what happens to them after their owner has left.

use worldwire_uru::age::{AgeBounds, Config, DropKind};
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::plasma_message::PlasmaMessage;

use crate::decisions::clone_of;
use crate::world::{
    A, B, C, World, avatar, broadcast, bytes, clone, load_avatar, load_clone, lock, object, state,
    state_request,
};

#[test]
fn a_repeated_load_replaces_the_first() {
    let mut world = World::new();
    world.enter(A);
    let mut again = load_avatar(A, true);
    again.is_initial_state = true.into();
    world.join(B);
    world.forget();
    world.send(A, again);
    // Only the server may mark messages as initial.
    assert!(!clone_of(&world.got(B)[0]).3);
    assert_eq!(world.age().clones().count(), 1);
}

#[test]
fn unloading_a_clone_removes_its_states() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.send(A, broadcast(A, clone("Crab", 2, A), world.lever(1)));
    world.send(A, broadcast(A, clone("Claw", 2, A), world.lever(1)));
    world.send(A, broadcast(A, clone("Hen", 3, A), world.lever(1)));
    world.forget();
    world.send(A, load_clone(A, "Crab", 2, false));
    assert_eq!(world.received(B), ["plNetMsgLoadClone"]);
    let left: Vec<_> = world.age().states().iter().map(|it| it.object.name.to_text()).collect();
    assert_eq!((left, world.age().clones().count()), (vec!["Hen".to_owned()], 2));
    // The same applies to the avatar, and no later message mentions the avatar.
    world.send(A, load_avatar(A, false));
    assert!(world.age().members().next().unwrap().avatar().is_none());
    world.forget();
    world.leave(A);
    assert_eq!(world.received(B), ["plNetMsgMemberUpdate", "plNetMsgGroupOwner"]);
}

#[test]
fn players_cannot_change_the_clones_of_others() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    world.send(A, load_clone(A, "Crab", 2, true));
    world.forget();
    // B loads A's clone in A's name and in its own, unloads it, creates a clone for A, and unloads
    // a clone that was never loaded; finally, it loads an object that is not a clone.
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
    assert_eq!(counts.dropped(DropKind::NotOwner), count);
    assert_eq!(counts.dropped(DropKind::NotAClone), 1);
    assert_eq!((world.got(A).len(), world.age().clones().count()), (0, 3));
}

/// An avatar's state belongs to its player, even before it is loaded. Anyone may set the states of
/// a player's other clones while they are loaded.
#[test]
fn players_cannot_set_states_of_other_avatars() {
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
    assert_eq!(world.age().counts().dropped(DropKind::NotOwner), 8);
    assert_eq!(world.got(A).len(), 0);
    world.send(B, broadcast(B, clone("Crab", 2, A), world.lever(1)));
    world.send(B, broadcast(B, hat(B), world.lever(1)));
    world.send(A, broadcast(A, hat(A), world.lever(1)));
    assert_eq!((world.got(A).len(), world.got(B).len()), (2, 1));
    // Anyone may still do so after the clone has been handed over.
    world.leave(A);
    world.forget();
    world.join(C);
    world.send(C, broadcast(C, clone("Crab", 2, A), world.lever(2)));
    assert_eq!(world.got(B).len(), 2);
}

#[test]
fn members_are_sent_before_clones_even_without_a_request() {
    let mut world = World::new();
    world.enter(A);
    world.join(B);
    world.forget();
    world.send(B, state_request(B, &[]));
    let received = world.received(B);
    assert_eq!(received[..2], ["plNetMsgMembersList", "plNetMsgLoadClone"]);
    world.send(B, state_request(B, &[]));
    assert_eq!(world.received(B)[0], "plNetMsgLoadClone");
}

#[test]
fn d_13_unloading_a_clone_releases_its_locks() {
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
    assert_eq!(world.age().lock_holders().count(), 1);
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
        (world.age().clones().count(), limit, world.received(B).len())
    };
    let bounds = AgeBounds { share: 1, ..AgeBounds::default() };
    assert_eq!(run(AgeBounds { clones: 3, ..bounds.clone() }), (3, 4, 3));
    assert_eq!(run(AgeBounds { clone_bytes: 2 * one, ..bounds }), (2, 5, 2));
}
