//! Decisions about locks. `worldwire-client` runs the same tests over sockets.

use crate::world::{A, B, World, lock, object, reply};

#[test]
fn d_11_a_release_is_not_answered() {
    let mut world = World::new();
    [A, B].into_iter().for_each(|player| world.join(player));
    world.send(A, lock(A, "O", true));
    world.forget();
    world.send(B, lock(B, "O", false));
    world.send(A, lock(A, "O", false));
    world.send(A, lock(A, "O", false));
    assert_eq!((world.got(A).len(), world.got(B).len()), (0, 0));
    world.inside(|age| assert_eq!(age.lock_holders().count(), 0));
}

#[test]
fn d_12_a_holder_is_granted_its_lock_again() {
    let mut world = World::new();
    [A, B].into_iter().for_each(|player| world.join(player));
    for _ in 0..2 {
        world.send(A, lock(A, "O", true));
        world.send(B, lock(B, "O", true));
    }
    assert_eq!(answers(&mut world, A), [1, 1]);
    assert_eq!(answers(&mut world, B), [0, 0]);
    // A single release is enough.
    world.send(A, lock(A, "O", false));
    world.send(B, lock(B, "O", true));
    assert_eq!(answers(&mut world, B), [1]);
}

#[test]
fn exactly_one_of_two_requests_for_a_lock_wins() {
    for first in [A, B] {
        let mut world = World::new();
        [A, B].into_iter().for_each(|player| world.join(player));
        let second = A + B - first;
        for round in 0..5 {
            let (winner, loser) = if round % 2 == 0 { (first, second) } else { (second, first) };
            world.forget();
            world.send(winner, lock(winner, "O", true));
            world.send(loser, lock(loser, "O", true));
            assert_eq!(answers(&mut world, winner), [1]);
            assert_eq!(answers(&mut world, loser), [0]);
            // The loser cannot release it.
            world.send(loser, lock(loser, "O", false));
            world.inside(|age| assert_eq!(age.lock_holder(&object(0x2d, "O")), Some(winner)));
            world.send(winner, lock(winner, "O", false));
        }
    }
}

#[test]
fn d_13_leaving_releases_all_locks() {
    let mut world = World::new();
    [A, B].into_iter().for_each(|player| world.join(player));
    world.send(A, lock(A, "O", true));
    world.send(A, lock(A, "Other", true));
    world.send(B, lock(B, "Third", true));
    world.leave(A);
    world.forget();
    world.inside(|age| assert_eq!(age.lock_holders().collect::<Vec<_>>(), [B]));
    world.send(B, lock(B, "O", true));
    assert_eq!(answers(&mut world, B), [1]);
}

/// The replies to a player's lock requests.
fn answers(world: &mut World, player: u32) -> Vec<i32> {
    world.got(player).iter().filter_map(reply).collect()
}
