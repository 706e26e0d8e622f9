//! Leaders with a vault: they place ages on nodes, save them, and replace each other.

use std::time::Duration;

use worldwire_uru::types::NetError;

use super::players::{BACK_OFF, Player};
use super::{Bug, Outcome, World};
use crate::uru::cluster::leader::machine::{LeaderEvent, LeaderMachine, RemoteSession};
use crate::uru::cluster::leader::scheduler::{Scheduler, Task};
use crate::uru::cluster::simulation::{NODES, require, time};
use crate::uru::cluster::subjects::Subjects;
use crate::uru::vault::age_states::Owner;

/// How long a leader must fail to renew its lease before another one takes over.
pub(super) const LEASE: Duration = Duration::from_millis(1_500);

/// A leader, which controls the vault while its epoch is the latest.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) machine: LeaderMachine,
    pub(super) scheduler: Scheduler,
    epoch: u64,
    /// When it stops serving nodes because it could not renew its lease.
    pub(super) silent_at: Duration,
    /// Saves that the vault has not yet carried out.
    saves: Vec<Save>,
}

/// A request to save an age.
#[derive(Clone, Copy, Debug)]
struct Save {
    at: Duration,
    from: RemoteSession,
    request: u64,
    number: u32,
    fence: u64,
}

impl World {
    /// Makes another process the leader. The old leader serves nodes for as long as it may.
    pub(super) fn new_leader(&mut self) {
        self.epoch += 1;
        let silent_at = (self.now + self.hold.max(Duration::from_secs(1))).saturating_sub(LEASE);
        for old in &mut self.leaders {
            old.silent_at = old.silent_at.min(silent_at);
            // Its lease has ended.
            old.machine.set_failing(true);
        }
        let machine = LeaderMachine::new(Subjects::of("sim"), self.epoch, self.now);
        self.bus.subscribe(NODES + self.leaders.len(), machine.subscription());
        let scheduler = Scheduler::new(self.now, self.vault.placements(), self.hold);
        let (epoch, silent_at) = (self.epoch, Duration::MAX);
        let saves = Vec::new();
        self.leaders.push(Leader { machine, scheduler, epoch, silent_at, saves });
        // Sessions have ended with the old leader.
        let at = self.now + BACK_OFF;
        for player in &mut self.players {
            if matches!(player, Player::Asking { .. }) {
                *player = Player::Idle { at, over: None };
            }
        }
    }

    pub(super) fn leader_events(&mut self, index: usize) -> Outcome {
        while let Some(event) = self.leaders[index].machine.poll_event() {
            let leader = &mut self.leaders[index];
            let (scheduler, now) = (&mut leader.scheduler, self.now);
            match event {
                LeaderEvent::Joined { node, incarnation, process, folder } => {
                    scheduler.joined(now, node, incarnation, (process, folder));
                }
                LeaderEvent::Left { incarnation, heard, reason, .. } => {
                    scheduler.left(heard, incarnation, reason.has_no_ages());
                }
                LeaderEvent::AgesReported { incarnation, report } => {
                    scheduler.reported(now, incarnation, report);
                }
                LeaderEvent::Requested { from, number, body, .. } => {
                    // Some saves are delayed for a long time.
                    let is_late = self.sampler.below(20) == 0;
                    let most = Duration::from_millis(if is_late { 6_000 } else { 40 });
                    leader.saves.push(Save {
                        at: now + time(&mut self.sampler, most),
                        from,
                        request: number,
                        number: u32::from_le_bytes(body[..4].try_into().unwrap()),
                        fence: u64::from_le_bytes(body[4..].try_into().unwrap()),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Carries out the saves that ages requested.
    pub(super) fn run_saves(&mut self, index: usize) -> Outcome {
        let leader = &mut self.leaders[index];
        let leads = leader.epoch == self.epoch;
        let saves = std::mem::take(&mut leader.saves).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = saves.partition(|save| save.at <= self.now);
        leader.saves = later;
        for Save { from, request, number, fence, .. } in due {
            let last = self.fences[&number];
            // With the bug, the save always uses the latest fence.
            let given = if self.bug == Bug::NoFence { last } else { fence };
            let is_saved = leads && self.vault.save(Owner { number, fence: given });
            require!(!is_saved || fence == last, "{fence} saved age {number} after {last}");
            self.saved += u64::from(is_saved);
            self.refused += u64::from(!is_saved);
            let outcome = if is_saved { Ok(Vec::new()) } else { Err(NetError::AgeNotFound) };
            leader.machine.reply(from, request, 0, outcome);
        }
        Ok(())
    }

    pub(super) fn leader_tasks(&mut self, index: usize) {
        let leads = self.leaders[index].epoch == self.epoch;
        self.leaders[index].scheduler.timeout(self.now);
        while let Some(task) = self.leaders[index].scheduler.poll_task() {
            let leader = &mut self.leaders[index];
            match task {
                Task::Order { incarnation, order } => {
                    leader.machine.order(incarnation, &order);
                }
                Task::Answer { request, outcome } => self.answered(index, request, outcome),
                // If this is not the current leader, the database rejects it.
                Task::End(over) if leads => {
                    self.vault.end(&over);
                    leader.scheduler.have_ended(&over);
                }
                _ => {}
            }
        }
    }
}
