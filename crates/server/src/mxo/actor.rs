//! Behaviour of objects: walking along a path, and cycling through values.

use std::time::Duration;

use worldwire_mxo::message::Movement;
use worldwire_mxo::replicator::Point;

/// Walking from point to point in a closed loop.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// The segments between points. The points are relative to the object's position.
    legs: Vec<Leg>,
    /// The duration of one loop, in seconds.
    round: f64,
}

#[derive(Clone, Debug)]
struct Leg {
    from: Point,
    to: Point,
    /// When the segment starts, in seconds since the loop began.
    leaves: f64,
    /// The segment's duration, in seconds.
    takes: f64,
}

/// The position of a walking object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) offset: Point,
    /// The direction; 256 is a full turn.
    pub(super) yaw: u8,
    pub(super) walks: bool,
}

/// The action codes in a movement for standing and walking.
///
/// Unverified: their meaning to the client. They were observed for standing and moving characters.
const ACTIONS: [u8; 2] = [0, 2];

impl Walk {
    pub(super) fn new(points: &[Point], speed: f64, pause: f64) -> Self {
        let mut moment = 0.0;
        let next = points.iter().cycle().skip(1);
        let legs = points.iter().zip(next).map(|(from, to)| {
            let leaves = moment + pause;
            let takes = distance(from, to) / speed;
            moment = leaves + takes;
            Leg { from: *from, to: *to, leaves, takes }
        });
        let legs = legs.collect();
        Self { legs, round: moment }
    }

    /// The position after this time.
    pub(super) fn at(&self, time: Duration) -> Position {
        let mut left = time.as_secs_f64();
        if self.round > 0.0 {
            left %= self.round;
        }
        let behind = |leg: &&Leg| left < leg.leaves + leg.takes;
        let Some(leg) = self.legs.iter().find(behind).or_else(|| self.legs.last()) else {
            return Position { offset: [0.0; 3], yaw: 0, walks: false };
        };
        let part = if leg.takes > 0.0 { (left - leg.leaves) / leg.takes } else { 0.0 };
        let part = part.clamp(0.0, 1.0);
        let offset =
            core::array::from_fn(|at| (leg.to[at] - leg.from[at]).mul_add(part, leg.from[at]));
        let [x, _, z] = [0, 1, 2].map(|at| leg.to[at] - leg.from[at]);
        Position { offset, yaw: turn(x, z), walks: part > 0.0 && part < 1.0 }
    }
}

impl Position {
    /// The movement of an object that started at this position.
    pub(super) fn movement(self, place: Point) -> Movement {
        #[expect(clippy::cast_possible_truncation, reason = "the wire has no more")]
        let position = core::array::from_fn(|at| (place[at] + self.offset[at]) as f32);
        let [stands, walks] = ACTIONS;
        let action = Some(if self.walks { walks } else { stands });
        Movement { action, yaw: Some(self.yaw), position: Some(position), ..Movement::default() }
    }
}

/// A property that cycles through values.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) property: Box<str>,
    values: Vec<Vec<u8>>,
    every: f64,
}

impl Cycle {
    pub(super) fn new(property: &str, values: Vec<Vec<u8>>, every: f64) -> Self {
        Self { property: property.into(), values, every }
    }

    /// The value after this time. `first` is the index at which this object starts.
    pub(super) fn at(&self, time: Duration, first: usize) -> &[u8] {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds since the start are few"
        )]
        let turn = (time.as_secs_f64() / self.every) as usize;
        let at = turn.wrapping_add(first) % self.values.len().max(1);
        self.values.get(at).map_or(&[], Vec::as_slice)
    }
}

fn distance(from: &Point, to: &Point) -> f64 {
    from.iter().zip(to).map(|(from, to)| (to - from).powi(2)).sum::<f64>().sqrt()
}

/// A direction in 256ths of a full turn.
fn turn(x: f64, z: f64) -> u8 {
    let part = x.atan2(z) / core::f64::consts::TAU * 256.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is 0 to 255"
    )]
    let turn = part.round().rem_euclid(256.0) as u8;
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_repeat() {
        let walk = Walk::new(&[[0.0; 3], [100.0, 0.0, 0.0]], 50.0, 1.0);
        let at = |seconds: f64| walk.at(Duration::from_secs_f64(seconds));
        let places = [(0.5, 0.0), (2.0, 50.0), (3.5, 100.0), (5.0, 50.0), (6.0, 0.0), (8.0, 50.0)];
        for (seconds, x) in places {
            assert!((at(seconds).offset[0] - x).abs() < 1e-9, "{seconds}: {:?}", at(seconds));
        }
        assert_eq!((at(2.0).yaw, at(5.0).yaw), (64, 192));
        assert!(at(2.0).walks && !at(0.5).walks);
        // A single point, or identical points, cause no movement.
        for points in [vec![[3.0; 3]], vec![[3.0; 3]; 2]] {
            let walk = Walk::new(&points, 1.0, 0.0);
            assert_eq!(walk.at(Duration::from_secs(7)).offset, [3.0; 3]);
        }
    }

    #[test]
    fn values_cycle() {
        let cycle = Cycle::new("x", vec![vec![1], vec![2]], 2.0);
        let at = |seconds, first| cycle.at(Duration::from_secs(seconds), first)[0];
        assert_eq!([at(0, 0), at(1, 0), at(2, 0), at(4, 0), at(0, 1)], [1, 1, 2, 1, 2]);
    }
}
