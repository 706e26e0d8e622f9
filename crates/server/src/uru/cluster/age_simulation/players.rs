//! Players: they enter one age after another, and lose their connections when ages end.

use std::time::Duration;

use super::{AGES, Outcome, PLAYERS, World};
use crate::uru::cluster::ages::{AgeReport, Visit};
use crate::uru::cluster::leader::scheduler::{Choice, NotExpected};
use crate::uru::cluster::simulation::{NODES, TICK, require};
use crate::uru::vault::placements::Placement;

/// How long a player waits after a failure.
pub(super) const BACK_OFF: Duration = Duration::from_millis(500);

/// A player. It enters one age after another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Player {
    /// Will ask for an age at this time. `over` is a placement that has ended.
    Idle { at: Duration, over: Option<(u32, u64)> },
    /// Is waiting for a leader's answer to a request.
    Asking { leader: usize, request: u64, place: (usize, u32, u64) },
    /// Is in an age on a node, given by its number and fence.
    Inside { node: usize, number: u32, fence: u64 },
}

impl World {
    /// Makes a random player want another age, and leave the current one.
    pub(super) fn wander(&mut self) {
        let player = usize::try_from(self.sampler.below(PLAYERS)).unwrap();
        self.wishes[player] = usize::try_from(self.sampler.below(AGES.into())).unwrap();
        if let Player::Inside { node, .. } = self.players[player]
            && self.is_running(node)
        {
            self.leave(player);
        }
    }

    /// Makes a player take the next step.
    pub(super) fn play(&mut self, player: usize) -> Outcome {
        match self.players[player] {
            Player::Idle { at, over } if self.now >= at => self.ask(player, over),
            _ => Ok(()),
        }
    }

    /// Passes the answer to a request on to the player.
    pub(super) fn answered(
        &mut self,
        leader: usize,
        request: u64,
        outcome: Result<(), NotExpected>,
    ) {
        let is_meant = |player: &Player| {
            matches!(player, Player::Asking { leader: of, request: it, .. }
                if (*of, *it) == (leader, request))
        };
        let Some(player) = self.players.iter().position(is_meant) else { return };
        let Player::Asking { place: (index, number, fence), .. } = self.players[player] else {
            return;
        };
        let at = self.now + BACK_OFF;
        self.players[player] = match outcome {
            Ok(()) if self.join(index, player as u64, number, fence) => {
                self.entered += 1;
                Player::Inside { node: index, number, fence }
            }
            Err(NotExpected::Over) => Player::Idle { at: self.now, over: Some((number, fence)) },
            _ => Player::Idle { at, over: None },
        };
    }

    /// Makes a player leave its age.
    pub(super) fn leave(&mut self, player: usize) {
        let Player::Inside { node: index, number, fence } = self.players[player] else { return };
        self.players[player] = Player::Idle { at: self.now, over: None };
        let others = self.players.iter();
        let is_there = |other: &Player| matches!(other, Player::Inside { node, number: it, .. } if (*node, *it) == (index, number));
        let is_empty = !others.clone().any(is_there);
        let node = &mut self.nodes[index];
        let id = u32::try_from(player).unwrap();
        node.machine.report_ages(&AgeReport::Departed { number, fence, player: id });
        let is_expecting = node.expected.values().any(|place| *place == (number, fence));
        if is_empty && !is_expecting {
            node.ages.remove(&number);
            node.ended.insert(number, fence);
            node.machine.report_ages(&AgeReport::Ended { number, fence });
        }
    }

    /// Disconnects the players in some of a node's ages.
    pub(super) fn throw_out(&mut self, index: usize, from: impl Fn(u32) -> bool) {
        let at = self.now + BACK_OFF;
        for player in &mut self.players {
            if let Player::Inside { node, number, .. } = *player
                && node == index
                && from(number)
            {
                *player = Player::Idle { at, over: None };
                self.removed += 1;
            }
        }
    }

    /// Makes a player ask the current leader for the age that it wants.
    fn ask(&mut self, player: usize, over: Option<(u32, u64)>) -> Outcome {
        let later = |at| Player::Idle { at, over };
        let index = self.leaders.len() - 1;
        let is_paused = self.bus.is_paused(NODES + index, self.now);
        let choice = self.leaders[index].scheduler.choose();
        let Choice::Node(candidate) = choice else {
            // In this simulation, the leader runs no ages.
            self.players[player] = later(self.now + TICK * 5);
            return Ok(());
        };
        if is_paused {
            self.players[player] = later(self.now + TICK);
            return Ok(());
        }
        let session = player as u64 + 1;
        let instance = self.instances[self.wishes[player]];
        let placed = self.vault.place(session, instance, over, Some(&candidate));
        let (identity, (number, placement)) = (placed.identity.unwrap(), placed.placed.unwrap());
        let fence = placement.fence;
        let last = self.fences.entry(number).or_default();
        require!(fence >= *last, "age {number} got fence {fence} after {last}");
        *last = fence;
        let visit = Visit {
            number,
            fence,
            filename: placement.filename.clone(),
            age: placed.found.age,
            instance,
            player: u32::try_from(player).unwrap(),
            account: identity.account,
            player_name: identity.name,
            is_admin: false,
            auth: session,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let request = self.leaders[index].scheduler.expect(self.now, &placement, visit);
        // A placement's process is always one of these nodes.
        let node = self.node_of(&placement);
        let place = (node, number, fence);
        self.players[player] = Player::Asking { leader: index, request, place };
        Ok(())
    }

    fn node_of(&self, placement: &Placement) -> usize {
        self.nodes.iter().position(|node| node.process == placement.process).unwrap()
    }

    /// Lets a player join an age on a node. Returns whether that was possible.
    fn join(&mut self, index: usize, player: u64, number: u32, fence: u64) -> bool {
        let is_running = self.is_running(index) && self.now < self.nodes[index].until;
        let node = &mut self.nodes[index];
        if !is_running || node.expected.remove(&player) != Some((number, fence)) {
            return false;
        }
        node.ages.insert(number, fence);
        let (id, auth) = (u32::try_from(player).unwrap(), player + 1);
        node.machine.report_ages(&AgeReport::Arrived { number, fence, player: id, auth });
        true
    }
}
