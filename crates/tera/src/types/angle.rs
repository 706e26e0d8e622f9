//! Angles.

use core::f64::consts::PI;

/// Radians in one unit.
const UNIT: f64 = PI / 32_768.0;
/// Units in one radian.
const UNITS: f64 = 32_768.0 / PI;

/// An angle as it stands on the wire: units of pi/32768 radians, -32768 to 32767.
///
/// Every one of the 65,536 values survives the way to radians and back.
///
/// ```
/// use worldwire_tera::types::Angle;
/// assert_eq!(Angle(0x4000).radians(), core::f64::consts::FRAC_PI_2);
/// assert_eq!(Angle::from_radians(core::f64::consts::PI), Some(Angle(-32_768)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Angle(pub i16);

impl Angle {
    /// The angle in radians, from -pi up to but without pi.
    #[inline]
    #[must_use]
    pub fn radians(self) -> f64 {
        f64::from(self.0) * UNIT
    }

    /// The nearest unit (of two equally near the upper one), turned into the range of the wire:
    /// pi itself becomes -pi. `None` for infinities and what is not a number.
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

/// A component of `vec3fa` in radians, from the units that stand on the wire.
#[inline]
#[must_use]
pub fn component_radians(units: f32) -> f64 {
    f64::from(units) * UNIT
}

/// The units of a component of `vec3fa`: the nearest whole number, reduced by the remainder of the
/// division by a full turn.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "below 65536 in size, and whole")]
pub fn component_units(radians: f64) -> f32 {
    (nearest(radians * UNITS) % 65_536.0) as f32
}

/// Whether a component comes back from radians with the same bits: not when it is no number, no
/// whole number of units, or a turn or more.
#[must_use]
pub fn component_is_whole(units: f32) -> bool {
    // The bits of what is no number would come back, too, but radians have to be some.
    units.is_finite() && component_units(component_radians(units)).to_bits() == units.to_bits()
}

/// The nearest whole number; halves go up, and the sign of nothing stays.
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
    fn halves_go_up() {
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
