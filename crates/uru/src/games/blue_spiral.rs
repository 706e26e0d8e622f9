//! The rules of the blue spiral.

use core::time::Duration;

use super::Array;
use super::message::blue_spiral::client::ClientMessage;
use super::message::blue_spiral::server::{
    ClothOrder, GameOver, GameStarted, GameWon, ServerMessage, SuccessfulHit,
};
use super::refused::{Refused, check_range};
use super::table::{Random, Table, below};

const CLOTHS: usize = 7;
/// How long the order of the cloths is shown.
const SHOW: Duration = Duration::from_secs(15);
/// The time limit, counted from the start.
const END: Duration = Duration::from_secs(75);
/// The minimum time between two starts.
const RESTART: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// The order is shown.
    Show,
    /// The door spins.
    Spin,
    /// All cloths were touched; the door is open.
    Won,
}

/// A blue spiral. Any member can start it and touch cloths; the owner's client turns the server's
/// messages into animations that everybody sees.
#[derive(Debug, Default)]
pub(super) struct BlueSpiral {
    phase: Phase,
    order: [u8; CLOTHS],
    /// The number of cloths touched in the right order so far.
    next: usize,
    started: Duration,
    deadline: Option<Duration>,
}

impl BlueSpiral {
    pub(super) fn receive(
        &mut self,
        table: &mut Table<'_>,
        message: &ClientMessage,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        match message {
            ClientMessage::StartGame(_) => self.start(table, random),
            ClientMessage::HitCloth(hit) => self.hit(table, hit.cloth),
        }
    }

    fn start(&mut self, table: &mut Table<'_>, random: &mut Random<'_>) -> Result<(), Refused> {
        if self.phase != Phase::Idle {
            if table.now.saturating_sub(self.started) < RESTART {
                return Err(Refused::state("the game has just started"));
            }
            self.end(table);
        }
        self.order = shuffled(random);
        self.next = 0;
        self.started = table.now;
        self.phase = Phase::Show;
        self.deadline = Some(table.now + SHOW);
        table.send_all(ServerMessage::from(ClothOrder { order: Array(self.order) }));
        table.send_all(ServerMessage::from(GameStarted { start_spin: false.into() }));
        Ok(())
    }

    fn hit(&mut self, table: &mut Table<'_>, cloth: u8) -> Result<(), Refused> {
        if !matches!(self.phase, Phase::Show | Phase::Spin) {
            return Err(Refused::state("no cloth can be touched now"));
        }
        if self.order.get(self.next) != Some(&cloth) {
            self.end(table);
            return Ok(());
        }
        self.next += 1;
        table.send_owner(ServerMessage::from(SuccessfulHit {}));
        if self.next == CLOTHS {
            self.phase = Phase::Won;
            self.deadline = Some(self.started + END);
            table.send_owner(ServerMessage::from(GameWon {}));
        }
        Ok(())
    }

    fn end(&mut self, table: &mut Table<'_>) {
        table.send_all(ServerMessage::from(GameOver {}));
        *self = Self::default();
    }

    pub(super) const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn timeout(&mut self, table: &mut Table<'_>) {
        match self.phase {
            Phase::Show => {
                self.phase = Phase::Spin;
                self.deadline = Some(self.started + END);
                table.send_owner(ServerMessage::from(GameStarted { start_spin: true.into() }));
            }
            Phase::Spin | Phase::Won => self.end(table),
            Phase::Idle => self.deadline = None,
        }
    }
}

/// A random order of the cloths.
fn shuffled(random: &mut Random<'_>) -> [u8; CLOTHS] {
    let mut order = [0, 1, 2, 3, 4, 5, 6];
    for (last, left) in (1..CLOTHS).rev().zip((2..=7).rev()) {
        let other = usize::try_from(below(random, left)).unwrap_or(0);
        order.swap(last, other);
    }
    order
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage) -> Result<(), Refused> {
    match message {
        ClientMessage::StartGame(_) => Ok(()),
        ClientMessage::HitCloth(hit) => {
            check_range("cloth", "a cloth from 0 to 6", 0..=6, hit.cloth)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cloth is equally likely in every place, within five standard deviations.
    #[test]
    fn orders_are_uniform() {
        let mut state = 1_u64;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
        };
        let mut seen = [[0_i32; CLOTHS]; CLOTHS];
        for _ in 0..2_000 {
            let order = shuffled(&mut random);
            for (place, cloth) in order.into_iter().enumerate() {
                seen[place][usize::from(cloth)] += 1;
            }
        }
        // 2000 / 7 = 285.7, with a standard deviation of 15.6.
        for count in seen.into_iter().flatten() {
            assert!((count - 286).abs() <= 78, "{seen:?}");
        }
    }
}
