//! Decisions about states that clients can observe; `worldwire-client` runs the same tests over
//! sockets.

use std::time::Duration;

use worldwire_core::{Field, Reader};
use worldwire_uru::age::DropKind;
use worldwire_uru::net_message::{NetMessage, SdlState};
use worldwire_uru::sdl::{Blob, ObjectState, Scalar, hook};
use worldwire_uru::types::Uoid;

use crate::world::{A, B, PREFIX, World, broadcast, object, page, state, state_request};

pub(crate) fn two() -> World {
    let mut world = World::new();
    [A, B].into_iter().for_each(|player| world.join(player));
    world.forget();
    world
}

pub(crate) fn the_hook() -> Uoid<'static> {
    hook::object(PREFIX).unwrap()
}

/// The states that a player receives on request, by object and descriptor.
pub(crate) fn asked(
    world: &mut World,
    player: u32,
    pages: &[u16],
) -> Vec<(SdlState<'static>, ObjectState)> {
    world.forget();
    world.send(player, state_request(player, pages));
    let mut states = Vec::new();
    for packet in world.got(player) {
        if let NetMessage::SdlState(state) = packet.decode().unwrap() {
            assert!(state.is_initial_state.is_true());
            let mut reader = Reader::new(state.stream.as_bytes());
            let blob = Blob::decode(&world.descriptors, &mut reader).unwrap();
            let read = ObjectState::of(&blob);
            states.push((state.into_owned(), read));
        }
    }
    states
}

/// A state as B receives it.
fn stored(world: &mut World, of: &Uoid<'_>, descriptor: &str) -> ObjectState {
    let states = asked(world, B, &[]).into_iter();
    let is_it = |(sent, state): &(SdlState<'_>, ObjectState)| {
        sent.object == *of && state.descriptor().name() == descriptor
    };
    states.filter(is_it).map(|(_, state)| state).next().unwrap()
}

#[test]
fn d_16_a_list_of_rooms_limits_the_states() {
    let mut world = two();
    let elsewhere = Uoid { location: page(3), ..object(1, "Gate") };
    world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
    world.send(A, broadcast(A, elsewhere.clone(), world.lever(2)));
    assert_eq!(asked(&mut world, B, &[]).len(), 3);
    let states = asked(&mut world, B, &[3, 9]);
    // The age's own state does not belong to any room.
    let names: Vec<_> = states.iter().map(|(state, _)| state.object.clone()).collect();
    assert_eq!(names, [the_hook(), elsewhere]);
}

#[test]
fn d_20_nested_variables_merge() {
    let mut world = two();
    let descriptor = world.descriptors.newest("band").unwrap();
    let tune = |index: u32, simple: u32, value: i32| {
        use worldwire_uru::schema::Type;
        use worldwire_uru::sdl::{
            Elements, NestedElement, NestedVariable, SimpleFlags, SimpleVariable, StateRecord,
            ValueHeader,
        };
        let simple = SimpleVariable {
            index: simple,
            head: ValueHeader::client(),
            flags: SimpleFlags::Dirty,
            time: None,
            value: Some(Elements::new(Type::Int, &[Scalar::Int(value)]).unwrap()),
        };
        let record = StateRecord { simple: vec![simple], ..StateRecord::default() };
        let nested = NestedVariable {
            index: 0,
            head: ValueHeader::client(),
            flags: 0,
            length: 2,
            elements: vec![NestedElement { index, record }],
        };
        let mut blob = ObjectState::new(descriptor.clone()).to_blob();
        blob.record.nested.push(nested);
        blob.to_bytes().unwrap()
    };
    world.send(A, broadcast(A, object(1, "Band"), tune(0, 0, 5)));
    world.send(A, broadcast(A, object(1, "Band"), tune(1, 0, 6)));
    world.send(A, broadcast(A, object(1, "Band"), tune(0, 1, 7)));
    let stored = stored(&mut world, &object(1, "Band"), "band");
    let element = |index| stored.view().element("players", index).unwrap();
    assert_eq!(element(0).scalar("volume"), Some(Scalar::Int(5)));
    assert_eq!(element(0).scalar("pitch"), Some(Scalar::Int(7)));
    assert_eq!(element(1).scalar("volume"), Some(Scalar::Int(6)));
    assert!(!element(1).is_set("pitch"));
}

#[test]
fn d_21_variables_that_are_not_dirty_are_applied() {
    let mut world = two();
    let mut blob = world.lever(4);
    let mut reader = Reader::new(&blob);
    let mut clean = Blob::decode(&world.descriptors, &mut reader).unwrap().into_owned();
    clean.record.simple[0].flags = worldwire_uru::sdl::SimpleFlags(0);
    clean.record.simple[0].time = None;
    blob = clean.to_bytes().unwrap();
    world.send(A, broadcast(A, object(1, "O"), blob));
    let stored = stored(&mut world, &object(1, "O"), "lever");
    assert_eq!(stored.scalar("place"), Some(Scalar::Int(4)));
}

/// Variables carry the time of the change by the server's clock, even for players who join later.
#[test]
fn d_22_the_server_sets_the_times() {
    let mut world = two();
    world.wait(Duration::from_secs(7));
    // The client's own timestamp is different.
    world.send(A, broadcast(A, object(1, "O"), world.lever(4)));
    let changed = stored(&mut world, &object(1, "O"), "lever").view().time("place").unwrap();
    assert!(world.is_now(&changed), "{changed:?}");
}

#[test]
fn d_23_an_empty_hint_keeps_the_old_one() {
    let mut world = two();
    let hinted = |world: &World, hint: &str| {
        let bytes = world.lever(4);
        let mut blob =
            Blob::decode(&world.descriptors, &mut Reader::new(&bytes)).unwrap().into_owned();
        blob.record.simple[0].head.hint = Some(hint.into());
        blob.to_bytes().unwrap()
    };
    for hint in ["clanged", ""] {
        let blob = hinted(&world, hint);
        world.send(A, broadcast(A, object(1, "O"), blob));
        let stored = stored(&mut world, &object(1, "O"), "lever");
        assert_eq!(stored.view().hint("place"), "clanged");
    }
    let eowyn = hinted(&world, "\u{c9}owyn");
    world.send(A, broadcast(A, object(1, "O"), eowyn));
    world.inside(|age| assert_eq!(age.counts().dropped(DropKind::Text), 1));
}

#[test]
fn d_24_states_are_decoded_completely_and_forwarded_unchanged() {
    let mut world = two();
    let mut message = broadcast(A, object(1, "O"), world.lever(4));
    message.state.is_initial_state = true.into();
    let blob = message.state.stream.as_bytes().to_vec();
    world.send(A, message);
    let got = world.got(B);
    let NetMessage::SdlStateBCast(state) = got[0].decode().unwrap() else { panic!() };
    assert_eq!(state.state.stream.as_bytes(), blob);
    // Only the server may mark states as initial.
    assert!(!state.state.is_initial_state.is_true());
    // States meant for the server alone are not forwarded.
    world.send(A, crate::world::state(A, object(1, "O"), world.lever(5)));
    assert_eq!(world.got(B).len(), 0);
    let stored = stored(&mut world, &object(1, "O"), "lever");
    assert_eq!(stored.scalar("place"), Some(Scalar::Int(5)));
    // Send one byte too few, then one too many.
    for length in [blob.len() - 1, blob.len() + 1] {
        let mut blob = blob.clone();
        blob.resize(length, 0);
        world.send(A, broadcast(A, object(1, "O"), blob));
    }
    world.inside(|age| assert_eq!(age.counts().dropped(DropKind::Malformed), 2));
    assert_eq!(world.got(B).len(), 0);
}

#[test]
fn d_25_states_with_unknown_descriptors_are_not_forwarded() {
    let mut world = two();
    let mut unknown = world.lever(1);
    unknown[9] = 77;
    let mut misnamed = world.lever(1);
    misnamed[4] = !b'n';
    for blob in [unknown, misnamed] {
        world.send(A, broadcast(A, object(1, "O"), blob));
    }
    // Clients that sent the newer version may not know an older one.
    world.send(A, broadcast(A, object(1, "O"), world.blob("lever", 2, &[("place", 1)])));
    assert_eq!(world.got(B).len(), 1);
    world.send(A, broadcast(A, object(1, "O"), world.lever(1)));
    world.inside(|age| assert_eq!(age.counts().dropped(DropKind::Descriptor), 3));
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
    world.inside(|age| assert_eq!(age.states().len(), 1));
}

/// A different object with the same name is an ordinary object and belongs to its room.
#[test]
fn d_28_the_age_is_identified_by_name_and_page() {
    let mut world = two();
    let (hook, other) = (the_hook(), object(1, "AgeSDLHook"));
    let tide = |value| world.blob("Fern", 2, &[("tide", value)]);
    let blobs = [tide(9), tide(8)];
    for (object, blob) in [hook.clone(), other.clone()].into_iter().zip(blobs) {
        world.send(A, broadcast(A, object, blob));
    }
    let received_states = |world: &mut World, pages: &[u16]| {
        let states = asked(world, B, pages).into_iter();
        let tide = |state: ObjectState| match state.scalar("tide") {
            Some(Scalar::Int(tide)) => tide,
            other => panic!("{other:?}"),
        };
        states.map(|(sent, state)| (sent.object, tide(state))).collect::<Vec<_>>()
    };
    let (age, of_other) = ((hook, 9), (other, 8));
    assert_eq!(received_states(&mut world, &[]), [age.clone(), of_other]);
    // The age's state is not on any page that this client has loaded.
    assert_eq!(received_states(&mut world, &[5]), [age]);
}

#[test]
fn d_27_an_object_has_one_state_per_descriptor() {
    let mut world = two();
    world.send(A, state(A, object(1, "O"), world.lever(1)));
    world.send(A, state(A, object(1, "O"), world.blob("tune", 1, &[("volume", 2)])));
    world.send(A, state(A, object(1, "O"), world.lever(3)));
    world.inside(|age| assert_eq!(age.states().of(&object(1, "O")).len(), 2));
    // Object IDs change when a page is rebuilt.
    let mut other = object(1, "O");
    other.object_id = 9;
    world.send(A, state(A, other, world.lever(4)));
    world.inside(|age| assert_eq!(age.states().len(), 2));
}
