//! Compares numbers in filters with numbers in messages, without losing precision.

use core::cmp::Ordering;
use core::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Any `u64` or `i64`.
    Whole(i128),
    /// A number with a fraction or an exponent.
    Real(Real),
}

/// A finite floating-point number, in both precisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real {
    double: f64,
    single: f32,
}

/// A number in a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    /// Any `u64` or `i64`.
    Whole(i128),
    Single(f32),
    Double(f64),
}

impl Number {
    /// Parses a whole number, decimal or with `0x`; `None` if no field can hold it.
    pub(super) fn parse_whole(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let size = match hex {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => digits.parse::<u64>().ok()?,
        };
        let value = if negative { -i128::from(size) } else { i128::from(size) };
        (value >= i128::from(i64::MIN)).then_some(Self::Whole(value))
    }

    /// Parses a number with a fraction or an exponent; `None` if it is too large.
    pub(super) fn parse_real(text: &str) -> Option<Self> {
        let double = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        // Parsed from the shortest text, so that the printed number parses as the same number.
        let single = format!("{double:?}").parse().unwrap_or(f32::NAN);
        Some(Self::Real(Real { double, single }))
    }

    /// The order of two numbers in filters.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match self {
            Self::Whole(value) => Count::Whole(*value).compare(other),
            Self::Real(real) => Count::Double(real.double).compare(other),
        }
    }
}

impl Count {
    /// Compares a message's number with a filter's; `None` for NaN.
    ///
    /// A number with a fraction is first rounded to the precision of the field. So `0.1` equals
    /// what the sender stored as `0.1`. All other comparisons are exact.
    pub(super) fn compare(self, with: &Number) -> Option<Ordering> {
        match (self, with) {
            (Self::Whole(a), Number::Whole(b)) => Some(a.cmp(b)),
            (Self::Whole(a), Number::Real(b)) => whole_with_real(a, b.double),
            (Self::Single(a), Number::Real(b)) if b.single.is_finite() => a.partial_cmp(&b.single),
            (Self::Single(a), Number::Real(b)) => f64::from(a).partial_cmp(&b.double),
            (Self::Double(a), Number::Real(b)) => a.partial_cmp(&b.double),
            (Self::Single(a), Number::Whole(b)) => {
                whole_with_real(*b, f64::from(a)).map(Ordering::reverse)
            }
            (Self::Double(a), Number::Whole(b)) => whole_with_real(*b, a).map(Ordering::reverse),
        }
    }
}

/// Compares a whole number with a real one. Exact for every whole number that is a `u64` or an
/// `i64`.
fn whole_with_real(whole: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    let floor = real.floor();
    // A value beyond 128 bits saturates, and still exceeds every whole number.
    #[expect(clippy::cast_possible_truncation, reason = "a floor has no fraction; it saturates")]
    let below = whole.cmp(&(floor as i128));
    Some(if below == Ordering::Equal && real > floor { Ordering::Less } else { below })
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.double.to_bits() == other.double.to_bits()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Real(real) => write!(f, "{:?}", real.double),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse_whole(text).or_else(|| Number::parse_real(text)).unwrap()
    }

    fn order(count: Count, text: &str) -> Option<Ordering> {
        count.compare(&number(text))
    }

    #[test]
    fn the_largest_numbers_stay_exact() {
        use Ordering::{Equal, Greater, Less};
        let most = Count::Whole(i128::from(u64::MAX));
        assert_eq!(order(most, "18446744073709551615"), Some(Equal));
        assert_eq!(order(most, "18446744073709551614"), Some(Greater));
        // As a float this is 2^64, one more than the field's value.
        assert_eq!(order(most, "18446744073709551615.0"), Some(Less));
        assert_eq!(order(Count::Whole(-1), "18446744073709551615"), Some(Less));
        let least = Count::Whole(i128::from(i64::MIN));
        assert_eq!(order(least, "-9223372036854775808"), Some(Equal));
        assert_eq!(order(least, "-9223372036854775808.0"), Some(Equal));
        assert_eq!(order(least, "-1e300"), Some(Greater));
        let even = Count::Double(9_007_199_254_740_992.0);
        assert_eq!(order(even, "9007199254740992"), Some(Equal));
        assert_eq!(order(even, "9007199254740993"), Some(Less));
        assert_eq!(Number::parse_whole("18446744073709551616"), None);
        assert_eq!(Number::parse_whole("-9223372036854775809"), None);
    }

    #[test]
    fn fractions_lie_between_whole_numbers() {
        use Ordering::{Equal, Greater, Less};
        assert_eq!(order(Count::Whole(7), "7.5"), Some(Less));
        assert_eq!(order(Count::Whole(-7), "-7.5"), Some(Greater));
        assert_eq!(order(Count::Whole(0), "-0.0"), Some(Equal));
        assert_eq!(order(Count::Double(2.5), "2"), Some(Greater));
        assert_eq!(order(Count::Double(f64::INFINITY), "18446744073709551615"), Some(Greater));
        assert_eq!(order(Count::Double(f64::NAN), "1"), None);
        assert_eq!(order(Count::Single(f32::NAN), "1.5"), None);
    }

    #[test]
    fn fractions_are_rounded_to_the_precision_of_the_field() {
        assert_eq!(order(Count::Single(0.1), "0.1"), Some(Ordering::Equal));
        assert_eq!(order(Count::Double(0.1_f32.into()), "0.1"), Some(Ordering::Greater));
        assert_eq!(order(Count::Single(f32::INFINITY), "1e300"), Some(Ordering::Greater));
        assert_eq!(order(Count::Single(16_777_216.0), "16777217"), Some(Ordering::Less));
    }
}
