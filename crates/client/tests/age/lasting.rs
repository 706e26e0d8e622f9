//! Tests that need a shard, because its ages end and start again.

use std::time::Duration;

use crate::merging::asked;
use crate::world::{A, B, World, object, state};

/// While the empty age lingers, it keeps all states. Afterwards, only the persistent one is kept.
#[test]
fn d_26_and_d_32_an_empty_age_lingers_and_then_keeps_persistent_state() {
    let mut world = World::new();
    world.join(A);
    world.send(A, state(A, object(1, "Lever"), world.lever(1)));
    let mut passing = state(A, object(1, "Smoke"), world.lever(2));
    passing.persist_on_server = false.into();
    world.send(A, passing);
    world.leave(A);
    world.wait(Duration::from_secs(170));
    let names = |world: &mut World| {
        let states = asked(world, B, &[]).into_iter();
        states.map(|(state, _)| state.object.name.to_text()).collect::<Vec<_>>()
    };
    world.join(B);
    assert_eq!(names(&mut world), ["AgeSDLHook", "Lever", "Smoke"]);
    world.leave(B);
    world.wait(Duration::from_secs(250));
    world.join(B);
    assert_eq!(names(&mut world), ["AgeSDLHook", "Lever"]);
}

#[test]
fn d_39_messages_for_the_game_manager_are_not_forwarded() {
    let mut world = World::new();
    [A, B].into_iter().for_each(|player| world.join(player));
    world.forget();
    world.ask_game_manager(A);
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
}
