//! What outlives games.

use worldwire_core::json::json;

use crate::world::{A, World};

#[test]
fn an_age_that_ends_leaves_no_games() {
    let mut world = World::new();
    let game = world.open(A, "", 0);
    world.runs(&[(game, vec![A])]);
    world.send_in(A, 0, game, "Marker.DeleteGame", json!({}));
    let names: Vec<_> = world.take(A).iter().map(|got| got.name()).collect();
    assert_eq!(names.last(), Some(&"GameDeleted"));
}
