//! Checks the promises about held pieces, for a relay of any family over simulated wires.

use core::fmt;
use std::collections::BTreeMap;
use std::time::Duration;

use super::pair::{Member, Pair};
use crate::Side;
use crate::connection::{Bounds, Connection, Decision, Event, Forward, HoldId, Piece};

/// The family-specific parts of the check.
pub struct Family<'f, C: Connection> {
    /// Connects a client and a server through a relay with these bounds and completes setup.
    pub pair: &'f dyn Fn(Bounds) -> Pair<C>,
    /// Sends the message with this number from the end on this side.
    pub say: &'f dyn Fn(&mut C, Side, u8),
    /// The number of a piece from this side, if it is a message.
    pub number: &'f dyn Fn(Side, &[u8]) -> Option<u8>,
    /// Creates the replacement for a piece, with this number.
    pub replacement: &'f Replacement,
    /// How long two silent ends must stay connected while a message is held.
    pub patience: Duration,
}

/// Makes a message with this number from a side's piece.
pub type Replacement = dyn Fn(Side, &[u8], u8) -> Vec<u8>;

impl<C: Connection> fmt::Debug for Family<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// Checks every promise of [`Forward::hold`], in both directions.
///
/// # Panics
/// If one is broken.
pub fn check<C: Connection<Sender: Forward>>(family: &Family<'_, C>) {
    for side in Side::BOTH {
        family.pieces_leave_in_order(side);
        family.released_pieces_are_replaced_or_dropped(side);
        family.the_ends_stay_connected(side);
        family.a_full_direction_pauses(side);
        family.the_end_of_a_stream_waits(side);
        family.closing_drops_held_pieces(side);
    }
}

const MOMENT: Duration = Duration::from_millis(300);

/// A pair of ends and everything observed so far.
struct Play<'p, 'f, C: Connection> {
    family: &'p Family<'f, C>,
    pair: Pair<C>,
    side: Side,
    /// The held pieces with their bytes.
    held: BTreeMap<u8, (HoldId, Vec<u8>)>,
    /// The numbers received by the relay and by the ends, by the side that sent them.
    relayed: [Vec<u8>; 2],
    received: [Vec<u8>; 2],
    closed: Vec<Member>,
}

impl<'p, 'f, C: Connection<Sender: Forward>> Play<'p, 'f, C> {
    fn new(family: &'p Family<'f, C>, side: Side, bounds: Bounds) -> Self {
        let (pair, held, closed) = ((family.pair)(bounds), BTreeMap::new(), Vec::new());
        let (relayed, received) = Default::default();
        Self { family, pair, side, held, relayed, received, closed }
    }

    /// Sends a message from a side.
    fn say(&mut self, side: Side, numbers: impl IntoIterator<Item = u8>) {
        for number in numbers {
            let end = match side {
                Side::Client => &mut self.pair.client,
                Side::Server => &mut self.pair.server,
            };
            (self.family.say)(end, side, number);
            // Send each one separately.
            self.wait(Duration::from_millis(1));
        }
    }

    /// Advances the time.
    fn wait(&mut self, time: Duration) {
        let end = self.pair.now + time;
        let Self { family, side: held_side, held, relayed, received, closed, .. } = self;
        self.pair.run_until(end, |member, event, sender| match event {
            Event::Received(piece) => {
                let (side, bytes) = (piece.side(), piece.bytes());
                let Some(number) = (family.number)(side, bytes) else { return };
                if member != Member::Relay {
                    return received[side.index()].push(number);
                }
                relayed[side.index()].push(number);
                if side == *held_side && is_to_be_held(number) {
                    let id = sender.hold().expect("the piece was received");
                    held.insert(number, (id, bytes.to_vec()));
                }
            }
            Event::Closed(_) => closed.push(member),
            Event::Fault { error, .. } => panic!("{member:?}: {error}"),
            _ => {}
        });
    }

    fn relay(&mut self) -> &mut C {
        self.pair.relay.as_mut().expect("there is a relay")
    }

    fn release(&mut self, number: u8, decision: Decision<'_>) {
        let (id, _) = self.held.remove(&number).expect("it is held");
        let relay = self.relay().sender();
        relay.release(id, decision).expect("it may be released");
        assert!(relay.release(id, Decision::AsIs).is_err(), "it was released already");
        self.wait(MOMENT);
    }

    /// Checks that the other direction is open despite held pieces.
    fn check_other_direction(&mut self) {
        let other = self.side.other();
        let before = self.received[other.index()].len();
        self.say(other, [50]);
        self.wait(MOMENT);
        assert_eq!(
            self.received[other.index()].len(),
            before + 1,
            "the message of the {other} did not arrive"
        );
    }

    fn check_received(&self, wanted: &[u8]) {
        assert_eq!(self.received[self.side.index()], wanted, "from the {}", self.side);
    }
}

/// Whether the relay holds the message with this number: 10, 20, 30 and so on.
fn is_to_be_held(number: u8) -> bool {
    number.is_multiple_of(10)
}

impl<C: Connection<Sender: Forward>> Family<'_, C> {
    fn pieces_leave_in_order(&self, side: Side) {
        let mut play = Play::new(self, side, Bounds::default());
        play.say(side, [1, 10, 11, 20, 21, 30]);
        play.wait(MOMENT);
        play.check_received(&[1]);
        assert_eq!(play.relayed[side.index()], [1, 10, 11, 20, 21, 30], "all are reported");
        assert!(play.relay().kept_bytes(side) > 0 && !play.relay().is_paused(side));
        play.check_other_direction();
        play.release(20, Decision::AsIs);
        play.check_received(&[1]);
        play.release(10, Decision::AsIs);
        play.check_received(&[1, 10, 11, 20, 21]);
        play.check_other_direction();
        play.release(30, Decision::AsIs);
        play.say(side, [31]);
        play.wait(MOMENT);
        play.check_received(&[1, 10, 11, 20, 21, 30, 31]);
        assert_eq!(play.relay().kept_bytes(side), 0);
    }

    fn released_pieces_are_replaced_or_dropped(&self, side: Side) {
        let mut play = Play::new(self, side, Bounds::default());
        play.say(side, [10, 11, 20, 21]);
        play.wait(MOMENT);
        let (id, bytes) = play.held[&10].clone();
        let refused = play.relay().sender().release(id, Decision::instead(b"no message"));
        assert!(refused.is_err(), "it is not a message");
        play.wait(MOMENT);
        play.check_received(&[]);
        let other = (self.replacement)(side, &bytes, 12);
        play.release(10, Decision::instead(other));
        play.check_received(&[12, 11]);
        play.release(20, Decision::Drop);
        play.check_received(&[12, 11, 21]);
    }

    /// Timers keep running, and so do keep-alives where the family has them.
    fn the_ends_stay_connected(&self, side: Side) {
        let mut play = Play::new(self, side, Bounds::default());
        play.say(side, [10]);
        play.wait(self.patience);
        assert_eq!(play.closed, [], "while the {side} is held");
        play.check_received(&[]);
        play.release(10, Decision::AsIs);
        play.say(side, [11]);
        play.wait(MOMENT);
        play.check_received(&[10, 11]);
        play.wait(self.patience);
        assert_eq!(play.closed, []);
    }

    fn a_full_direction_pauses(&self, side: Side) {
        let bounds = Bounds { queued_messages: 5, ..Bounds::default() };
        let mut play = Play::new(self, side, bounds);
        play.say(side, 10..19);
        play.wait(MOMENT);
        assert!(play.relay().is_paused(side) && !play.relay().is_paused(side.other()));
        assert!(play.relayed[side.index()].len() <= 5, "{:?}", play.relayed);
        play.check_received(&[]);
        play.check_other_direction();
        play.release(10, Decision::AsIs);
        play.check_received(&(10..19).collect::<Vec<_>>());
        assert!(!play.relay().is_paused(side) && play.relay().kept_bytes(side) == 0);
    }

    fn the_end_of_a_stream_waits(&self, side: Side) {
        let mut play = Play::new(self, side, Bounds::default());
        play.say(side, [10, 11]);
        play.wait(MOMENT);
        let (end, other) = match side {
            Side::Client => (Member::Client, Member::Server),
            Side::Server => (Member::Server, Member::Client),
        };
        play.pair.member(end).expect("the end exists").close();
        play.wait(MOMENT);
        assert_eq!(play.closed, [end], "the end waits for the held piece");
        play.check_received(&[]);
        play.release(10, Decision::AsIs);
        play.wait(MOMENT);
        play.check_received(&[10, 11]);
        assert_eq!(play.closed, [end, other, Member::Relay]);
    }

    fn closing_drops_held_pieces(&self, side: Side) {
        let mut play = Play::new(self, side, Bounds::default());
        play.say(side, [1, 10, 11]);
        play.wait(MOMENT);
        play.relay().close();
        let (id, _) = play.held[&10].clone();
        assert!(play.relay().sender().release(id, Decision::AsIs).is_err(), "it is gone");
        play.wait(MOMENT);
        play.check_received(&[1]);
        assert_eq!(play.closed.first(), Some(&Member::Relay));
    }
}
