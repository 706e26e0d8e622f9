//! A database restored from a backup. Its epoch and its fences are lower than those that nodes
//! know, as if its machine's clock had been set back.

use std::time::Duration;

use worldwire_core::Sampler;

use super::nodes::Node;
use super::{BACK_WITHIN, Bug, Outcome, PLAYERS, World};
use crate::uru::cluster::link::machine::RESTORED_AFTER;
use crate::uru::cluster::memory::Faults;
use crate::uru::cluster::simulation::{NODES, TICK, require};
use crate::uru::vault::placements::Placement;
use crate::uru::vault::testing::TestVault;

/// The epoch of the lost database's leader, and of the restored database's first leader.
const LOST: u64 = 11;
const RESTORED: u64 = 5;
/// When the backup is made, when the leader fails, and when another leader starts with the restored
/// database.
const BACKUP: Duration = Duration::from_secs(3);
const FAILURE: Duration = Duration::from_secs(8);
const RESTORE: Duration = Duration::from_secs(12);
/// When all nodes follow the new leader.
const FOLLOWED: Duration = RESTORE.saturating_add(RESTORED_AFTER).saturating_add(HALF_A_SECOND);
const HALF_A_SECOND: Duration = Duration::from_millis(500);
/// If the lost database's leader was only suspended: when it resumes, and when it has discovered
/// that it no longer leads.
const WAKES: Duration = Duration::from_secs(22);
const ENDS: Duration = Duration::from_secs(23);

impl World {
    /// A shard that has been in use for a while, and whose database has been replaced by a backup.
    fn restored(seed: u64, faults: Faults) -> Result<Self, String> {
        let mut world = Self::with(Sampler::new(seed), faults, Bug::None);
        world.epoch = LOST - 1;
        world.new_leader();
        world.run_until(BACKUP)?;
        let backup = world.vault.placements();
        world.run_until(FAILURE)?;
        require!(world.vault.placements() != backup, "nothing has happened since the backup");
        world.leaders.iter_mut().for_each(|leader| leader.silent_at = FAILURE);
        world.run_until(RESTORE)?;
        require!(world.nodes.iter().all(|node| node.ages.is_empty()), "ages have not ended");
        world.vault = TestVault::restored(&world.instances, PLAYERS, &backup);
        let fence = |(number, placement): &(u32, Placement)| (*number, placement.fence);
        world.fences = backup.iter().map(fence).collect();
        world.epoch = RESTORED - 1;
        world.new_leader();
        Ok(world)
    }

    fn run_until(&mut self, end: Duration) -> Outcome {
        while self.now < end {
            self.now += TICK;
            if self.sampler.below(20) == 0 {
                self.wander();
            }
            self.step()?;
        }
        Ok(())
    }

    /// The epochs that nodes follow; 0 for a node that is not a member.
    fn epochs(&self) -> Vec<u64> {
        let epoch = |node: &Node| node.machine.membership().map_or(0, |(epoch, ..)| epoch);
        self.nodes.iter().map(epoch).collect()
    }

    /// Continues while players stay where they are, and checks that all end up in an age.
    fn settle(&mut self) -> Outcome {
        let end = self.now + BACK_WITHIN;
        while self.now < end {
            self.now += TICK;
            self.step()?;
        }
        self.check_end()
    }
}

fn frozen() -> Faults {
    let leader = NODES + 1;
    Faults { delay: TICK, paused: vec![(leader, FAILURE..WAKES)], ..Faults::default() }
}

#[test]
fn nodes_follow_the_leader_of_a_restored_database() {
    for seed in 0..40 {
        let loss = (seed % 4) * 10;
        let faults = Faults { loss, delay: TICK, ..Faults::default() };
        let outcome = World::restored(seed, faults).and_then(|mut world| {
            world.run_until(RESTORE + RESTORED_AFTER - TICK)?;
            require!(world.epochs() == [0; NODES], "too early: {:?}", world.epochs());
            world.run_until(FOLLOWED + HALF_A_SECOND)?;
            require!(world.epochs() == [RESTORED; NODES], "{:?}", world.epochs());
            require!(world.restored == NODES as u64, "{} times", world.restored);
            world.settle()
        });
        outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// The frozen leader announces itself before it learns that it no longer leads, but it also
/// announces that its lease is over.
#[test]
fn a_frozen_leader_of_the_lost_database_does_not_win() {
    for seed in 0..20 {
        let outcome = World::restored(seed, frozen()).and_then(|mut world| {
            world.leaders[1].silent_at = ENDS;
            world.run_until(FOLLOWED)?;
            let members: Vec<_> =
                world.nodes.iter().map(|node| node.machine.membership()).collect();
            let of =
                |member: &Option<(u64, u64, u64)>| member.map(|(epoch, number, _)| (epoch, number));
            let members: Vec<_> = members.iter().map(of).collect();
            require!(world.epochs() == [RESTORED; NODES], "{:?}", world.epochs());
            while world.now < ENDS + HALF_A_SECOND {
                world.run_until(world.now + TICK)?;
                let now = world.nodes.iter().map(|node| of(&node.machine.membership()));
                require!(
                    now.eq(members.iter().copied()),
                    "{:?} at {:?}",
                    world.epochs(),
                    world.now
                );
            }
            world.settle()
        });
        outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// Without a lease, the frozen leader learns that it no longer leads only when its first change is
/// rejected.
#[test]
fn a_frozen_leader_without_a_lease_is_not_believed_for_long() {
    for seed in 0..20 {
        let outcome = World::restored(seed, frozen()).and_then(|mut world| {
            world.leaders[1].silent_at = ENDS;
            world.leaders[1].machine.set_failing(false);
            world.run_until(WAKES + HALF_A_SECOND)?;
            require!(world.epochs() == [LOST; NODES], "{:?}", world.epochs());
            world.run_until(ENDS + RESTORED_AFTER + HALF_A_SECOND)?;
            require!(world.epochs() == [RESTORED; NODES], "{:?}", world.epochs());
            require!(world.restored == 2 * NODES as u64, "{} times", world.restored);
            world.settle()
        });
        outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
