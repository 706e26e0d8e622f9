//! Angles.

use core::f64::consts::PI;

/// Radians in one unit.
const UNIT: f64 = PI / 32_768.0;
/// Units in one radian.
const UNITS: f64 = 32_768.0 / PI;

/// An angle as it is on the wire: in units of pi/32768 radians, from -32768 to 32767.
///
/// Every value converts to radians and back without loss.
///
/// ```
/// use worldwire_tera::types::Angle;
/// assert_eq!(Angle(0x4000).radians(), core::f64::consts::FRAC_PI_2);
/// assert_eq!(Angle::from_radians(core::f64::consts::PI), Some(Angle(-32_768)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Angle(pub i16);

impl Angle {
    /// The angle in radians, in the range -pi..pi.
    #[inline]
    #[must_use]
    pub fn radians(self) -> f64 {
        f64::from(self.0) * UNIT
    }

    /// The nearest unit, rounding halves up, wrapped into the range of the wire: pi itself becomes
    /// -pi. `None` for infinities and NaN.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "reduced to 16 bits just before")]
    pub fn from_radians(radians: f64) -> Option<Self> {
        let units = nearest(radians * UNITS);
        units.is_finite().then(|| {
            let turned = units.rem_euclid(65_536.0);
            Self((turned as u32 as u16).cast_signed())
        })
    }
}

/// A component of `vec3fa` in radians, from units.
#[inline]
#[must_use]
pub fn component_radians(units: f32) -> f64 {
    f64::from(units) * UNIT
}

/// A component of `vec3fa` in units: rounded to an integer, and reduced to less than a full turn.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "below 65536 in size, and whole")]
pub fn component_units(radians: f64) -> f32 {
    (nearest(radians * UNITS) % 65_536.0) as f32
}

/// Whether a component converts to radians and back to the same bits. It does not if it is NaN or
/// infinite, not an integer, or a full turn or more.
#[must_use]
pub fn component_is_whole(units: f32) -> bool {
    // NaN would keep its bits, but cannot be written as radians.
    units.is_finite() && component_units(component_radians(units)).to_bits() == units.to_bits()
}

/// The nearest integer; halves round up, and zero keeps its sign.
fn nearest(number: f64) -> f64 {
    let below = number.floor();
    let whole = if number - below >= 0.5 { below + 1.0 } else { below };
    if whole == 0.0 { whole.copysign(number) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_angle_survives() {
        for units in i16::MIN..=i16::MAX {
            let angle = Angle(units);
            assert_eq!(Angle::from_radians(angle.radians()), Some(angle));
            assert_eq!(Angle::from_radians(angle.radians() + 2.0 * PI), Some(angle));
            assert!(component_is_whole(f32::from(units)));
        }
    }

    #[test]
    fn halves_round_up() {
        assert_eq!(Angle::from_radians(UNIT / 2.0), Some(Angle(1)));
        assert_eq!(Angle::from_radians(-UNIT / 2.0), Some(Angle(0)));
        assert_eq!(Angle::from_radians(f64::INFINITY), None);
        assert_eq!(Angle::from_radians(f64::NAN), None);
    }

    #[test]
    fn components_are_rounded_and_keep_their_sign() {
        assert_eq!(component_units(1.0), 10_430.0);
        assert_eq!(component_units(4.0), 41_722.0);
        assert_eq!(component_units(-0.0).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(component_units(-4.0 * PI - UNIT), -1.0);
        assert!(!component_is_whole(0.5));
        assert!(!component_is_whole(f32::INFINITY));
        assert!(!component_is_whole(f32::NAN));
        assert!(!component_is_whole(65_536.0));
    }
}
