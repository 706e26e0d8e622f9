//! The memory used by an instance.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use worldwire_uru::age::{Config, Instance, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::net_message::{NetFlags, NetMessage};

use crate::world::{A, World, bytes, game, load_avatar, notify, outer};

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Other tests allocate at the same time, so this measures many instances together, with a margin.
#[test]
fn idle_instances_are_small() {
    const COUNT: usize = 64;
    const MAX: usize = 1 << 20;
    let world = World::new();
    let descriptors = Arc::clone(&world.descriptors);
    let clone = bytes(&NetMessage::from(load_avatar(A, true)));
    let message = bytes(&NetMessage::from(game(A, &notify(), NetFlags(0))));
    let before = MEMORY.allocated();
    let instances: Vec<Instance> = (0..COUNT)
        .map(|_| {
            let file = AgeFile { sequence_prefix: 120, ..AgeFile::default() };
            let (descriptors, unix) = (Arc::clone(&descriptors), Duration::from_secs(1));
            let config = Config::default();
            let mut instance =
                Instance::new(Duration::ZERO, unix, "Fern", file, descriptors, config);
            instance.join(Duration::ZERO, Player::new(A, "Yeesha")).unwrap();
            for sent in [&clone, &message] {
                instance.receive(Duration::ZERO, A, outer(sent), sent);
            }
            while instance.poll_delivery().is_some() || instance.poll_event().is_some() {}
            instance.leave(Duration::ZERO, A);
            while instance.poll_delivery().is_some() || instance.poll_event().is_some() {}
            instance
        })
        .collect();
    let each = MEMORY.allocated().saturating_sub(before) / COUNT;
    println!("an idle instance: {each} bytes");
    assert!(each < MAX, "{each}");
    assert!(instances.iter().all(|instance| instance.poll_timeout().is_some()));
}
