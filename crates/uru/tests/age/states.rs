//! The states of objects and of the age.

use std::time::Duration;

use worldwire_core::Reader;
use worldwire_uru::age::{AgeBounds, Config, DropKind, Event, Player};
use worldwire_uru::sdl::{Blob, ObjectState, Scalar};
use worldwire_uru::types::{UnifiedTime, Uuid};

use crate::merging::{asked, the_hook, two};
use crate::world::{
    A, B, C, UNIX, World, avatar, broadcast, clone, object, position, state, state_request,
};

fn at(seconds: u32) -> Option<UnifiedTime> {
    Some(UnifiedTime { seconds: UNIX + seconds, microseconds: 0 })
}

fn stored(events: &[Event]) -> Vec<(String, bool)> {
    let state = |event: &Event| match event {
        Event::StoreState { object, blob, .. } => Some((object.name.to_text(), blob.is_some())),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

#[test]
fn d_26_persistent_states_are_stored() {
    let mut world = two();
    let mut gone = state(A, object(1, "gone"), world.lever(1));
    gone.persist_on_server = false.into();
    let mut body = state(A, object(1, "body"), world.lever(1));
    body.is_avatar_state = true.into();
    let mut volatile =
        Blob::decode(&world.descriptors, &mut Reader::new(&world.lever(1))).unwrap().into_owned();
    volatile.record.flags = worldwire_uru::sdl::RecordFlags::Volatile;
    let volatile = state(A, object(1, "volatile"), volatile.to_bytes().unwrap());
    let part = state(A, clone("part", 3, A), world.lever(1));
    let kept = || state(A, object(1, "kept"), world.lever(1));
    let (kept, again) = (kept(), kept());
    for message in [gone, body, volatile, part, kept, again] {
        world.send(A, message);
    }
    assert_eq!(stored(&world.events), []);
    world.wait(Duration::from_secs(1));
    assert_eq!(stored(&world.events), [("kept".to_owned(), true)]);
    let Some(Event::StoreState { object: name, descriptor, blob }) = world.events.last().cloned()
    else {
        panic!("nothing is stored")
    };
    // The sender no longer wants the state to be kept.
    world.forget();
    let mut gone = state(A, object(1, "kept"), world.lever(2));
    gone.persist_on_server = false.into();
    world.send(A, gone);
    world.wait(Duration::from_secs(1));
    assert_eq!(stored(&world.events), [("kept".to_owned(), false)]);

    // After a restart, exactly the stored states are back.
    let mut world = World::new();
    world.age_mut().restore(name, &blob.unwrap()).unwrap();
    assert_eq!(descriptor, "lever");
    world.join(A);
    let states = asked(&mut world, A, &[]);
    assert_eq!(states.len(), 2);
    assert_eq!(states[1].1.scalar("place"), Some(Scalar::Int(1)));
    assert!(states[1].0.persist_on_server.is_true());
}

#[test]
fn d_28_the_state_of_the_age_is_stored_separately() {
    let mut world = two();
    let blob = || world.blob("Fern", 2, &[("tide", 9)]);
    let (hook, other) = (blob(), blob());
    world.send(A, broadcast(A, the_hook(), hook));
    assert!(world.age().states().is_empty());
    assert_eq!(world.age().age_state().unwrap().scalar("tide"), Some(Scalar::Int(9)));
    world.send(A, broadcast(A, object(1, "AgeSDLHook"), other));
    assert_eq!(world.age().states().len(), 1);
    // Both messages were forwarded.
    assert_eq!(world.got(B).len(), 2);
    world.wait(Duration::from_secs(1));
    let ages = world.events.iter().filter(|event| matches!(event, Event::StoreAge { .. }));
    assert_eq!(ages.count(), 1);
}

#[test]
fn d_29_the_later_of_instance_and_shard_applies() {
    let mut world = two();
    let stamped = |world: &World, tide: i32, open: Option<bool>, seconds: u32| {
        let time = at(seconds).unwrap();
        let mut state = ObjectState::new(world.descriptors.newest("Fern").unwrap());
        state.set("tide", &[Scalar::Int(tide)], &time).unwrap();
        if let Some(open) = open {
            state.set("open", &[Scalar::Bool(open)], &time).unwrap();
        }
        state.to_blob().to_bytes().unwrap()
    };
    let tide = |world: &World| match world.age().age_state().unwrap().scalar("tide") {
        Some(Scalar::Int(tide)) => tide,
        other => panic!("{other:?}"),
    };
    let (instance, shard) = (stamped(&world, 1, None, 10), stamped(&world, 2, Some(true), 20));
    world.age_mut().restore_age(&instance).unwrap();
    let now = world.now;
    world.age_mut().set_shard_state(now, &shard).unwrap();
    world.wait(Duration::ZERO);
    assert_eq!(tide(&world), 2);
    assert_eq!(world.age().age_state().unwrap().scalar("open"), Some(Scalar::Bool(true)));
    // Members are notified once.
    assert_eq!(world.received(A), ["plNetMsgSDLState"]);
    world.age_mut().set_shard_state(now, &shard).unwrap();
    world.wait(Duration::ZERO);
    assert_eq!(world.got(A).len(), 0);
    // After a later change by a client, the instance's value applies; the shard's own node is left
    // unchanged.
    world.wait(Duration::from_secs(30));
    world.send(A, broadcast(A, the_hook(), world.blob("Fern", 2, &[("tide", 3)])));
    assert_eq!(tide(&world), 3);
    assert_eq!(world.age().age_state().unwrap().scalar("open"), Some(Scalar::Bool(true)));
    // With equal times, the instance's value applies.
    let equal = stamped(&world, 4, None, 30);
    world.age_mut().set_shard_state(now, &equal).unwrap();
    assert_eq!(tide(&world), 3);
    world.wait(Duration::ZERO);
    // Joining players see the same state.
    let states = asked(&mut world, B, &[]);
    assert_eq!(states[0].1.scalar("tide"), Some(Scalar::Int(3)));
}

#[test]
fn edits_in_the_vault_change_the_age() {
    let mut world = two();
    let blob = |world: &World, tide: i32, open: bool| {
        let mut state = ObjectState::new(world.descriptors.newest("Fern").unwrap());
        let never = UnifiedTime { seconds: 0, microseconds: 0 };
        state.set("tide", &[Scalar::Int(tide)], &never).unwrap();
        state.set("open", &[Scalar::Bool(open)], &never).unwrap();
        state.to_blob().to_bytes().unwrap()
    };
    let (first, second) = (blob(&world, 1, false), blob(&world, 2, false));
    let edit = |world: &mut World, blob: &[u8]| {
        let now = world.now;
        world.age_mut().edit_age(now, blob).unwrap();
        world.wait(Duration::ZERO);
        (world.got(A).len(), world.got(B).len())
    };
    assert_eq!(edit(&mut world, &first), (1, 1));
    world.wait(Duration::from_secs(5));
    assert_eq!(edit(&mut world, &first), (0, 0));
    assert_eq!(edit(&mut world, &second), (1, 1));
    let state = world.age().age_state().unwrap();
    assert_eq!(state.view().time("open"), at(0));
    assert_eq!(state.view().time("tide"), at(5));
    let lever = world.lever(1);
    let now = world.now;
    let error = world.age_mut().edit_age(now, &lever).unwrap_err();
    assert_eq!(error.to_string(), "wanted a state of this age, found a state of lever");
}

#[test]
fn an_older_state_of_the_age_is_upgraded() {
    let mut world = World::new();
    let old = world.blob("Fern", 1, &[]);
    world.age_mut().restore_age(&old).unwrap();
    assert_eq!(world.age().age_state().unwrap().descriptor().version(), 2);
    let error = world.age_mut().restore(object(1, "O"), &[1, 2, 3]).unwrap_err();
    assert!(!error.to_string().is_empty());
}

#[test]
fn the_state_of_an_avatar_is_removed_with_it() {
    let mut world = World::new();
    world.enter(A);
    world.enter(B);
    let there = position(&world, A, 1.0);
    world.send(A, there);
    let mut hat = state(A, object(1, "hat"), world.lever(1));
    hat.is_avatar_state = true.into();
    world.send(A, hat);
    world.send(A, state(A, object(1, "O"), world.lever(1)));
    assert_eq!(world.age().states().of(&avatar(A)).len(), 1);
    world.leave(A);
    let left: Vec<_> = world.age().states().iter().map(|it| it.object.name.to_text()).collect();
    assert_eq!(left, ["O"]);
    // The state of the other object remains, and its bytes are still counted.
    assert!(world.age().state_bytes() > 0);
    world.wait(Duration::ZERO);
    world.join(C);
    assert_eq!(asked(&mut world, C, &[]).len(), 2);
}

#[test]
fn states_are_bounded() {
    let bounds = AgeBounds { states: 3, share: 1, state_requests: 2, ..AgeBounds::default() };
    let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
    world.join(A);
    for name in ["a", "b", "c", "d", "e"] {
        world.send(A, state(A, object(1, name), world.lever(1)));
    }
    assert_eq!((world.age().states().len(), world.age().counts().dropped(DropKind::Limit)), (3, 2));
    for _ in 0..3 {
        world.send(A, state_request(A, &[]));
    }
    assert_eq!(world.age().counts().dropped(DropKind::Limit), 3);
    world.wait(Duration::from_secs(60));
    world.send(A, state_request(A, &[]));
    assert_eq!(world.age().counts().dropped(DropKind::Limit), 3);

    let bounds = AgeBounds { state_bytes: 2_000, share: 1, ..AgeBounds::default() };
    let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
    world.join(A);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        world.send(A, state(A, object(1, name), world.lever(1)));
    }
    assert!(world.age().state_bytes() <= 2_000);
    assert!(world.age().counts().dropped(DropKind::Limit) > 0);
}

/// Returning as another player of the same account does not free any room.
#[test]
fn players_of_an_account_share_a_quota() {
    let bounds = AgeBounds { states: 8, share: 4, ..AgeBounds::default() };
    let mut world = World::with(Config { bounds, ..Config::default() }, "Fern");
    for (player, account) in [(A, 1), (B, 1), (C, 2)] {
        let player = Player { account: Uuid([account; 16]), ..Player::new(player, "x") };
        let now = world.now;
        world.age_mut().join(now, player).unwrap();
    }
    world.send(A, state(A, object(1, "a"), world.lever(1)));
    for name in ["b", "c"] {
        world.send(B, state(B, object(1, name), world.lever(1)));
    }
    assert_eq!((world.age().states().len(), world.age().counts().dropped(DropKind::Limit)), (2, 1));
    // Both players may change the states they already have.
    world.send(B, state(B, object(1, "a"), world.lever(2)));
    world.send(C, state(C, object(1, "d"), world.lever(1)));
    assert_eq!((world.age().states().len(), world.age().counts().dropped(DropKind::Limit)), (3, 1));
}

/// Objects that exist on one client only are not accepted from the network.
#[test]
fn local_objects_have_no_state() {
    let mut world = two();
    let mut local = object(1, "O");
    local.location.sequence_number.0 = 5;
    world.send(A, broadcast(A, local.clone(), world.lever(1)));
    assert_eq!(world.age().counts().dropped(DropKind::LocalObject), 1);
    // States cannot refer to them either.
    let mut state = ObjectState::new(world.descriptors.get("lever", 1).unwrap());
    state.set("puller", &[Scalar::Key(local)], &at(0).unwrap()).unwrap();
    world.send(A, broadcast(A, object(1, "O"), state.to_blob().to_bytes().unwrap()));
    assert_eq!(world.age().counts().dropped(DropKind::LocalObject), 2);
    assert_eq!(world.got(B).len(), 0);
}
