//! Positions in the world.

use worldwire_core::{Error, Result};

/// A point in the world: x, y (height), z.
pub type Point = [f64; 3];

/// Refuses positions that are not finite.
pub(super) fn check_position(position: &Point) -> Result<()> {
    if position.iter().all(|part| part.is_finite()) {
        return Ok(());
    }
    Err(Error::value("finite coordinates", format!("{position:?}")))
}

/// The square of the distance.
#[inline]
pub(super) fn distance(a: &Point, b: &Point) -> f64 {
    let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    x * x + y * y + z * z
}
