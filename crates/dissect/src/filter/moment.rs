//! Dates and times in filters.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::item::Time;

/// Parses a date: `2026-01-01` or `2026-01-01 12:30:00.5`. It can have a `T` in the middle and `Z`
/// or an offset at the end. The default is UTC.
pub(super) fn date(text: &str) -> Option<Time> {
    let moment = text.parse::<Timestamp>().ok().or_else(|| {
        let civil = text.parse::<DateTime>().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    i64::try_from(moment.as_nanosecond()).ok().map(Time)
}

/// Seconds since 1970, as the number that their decimal form parses to.
pub(super) fn seconds(time: Time) -> f64 {
    /// Every whole number up to here is exact.
    const EXACT: u64 = 1 << 53;
    let micros = time.0 / 1000;
    if time.0 % 1000 == 0 && micros.unsigned_abs() < EXACT {
        #[expect(clippy::cast_precision_loss, reason = "it is small enough")]
        return micros as f64 / 1e6;
    }
    time.to_string().parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_parse_in_every_output_form() {
        let moment = Time(1_767_225_600_631_500_000);
        for text in [
            "2026-01-01 00:00:00.631500",
            "2026-01-01T00:00:00.6315",
            "2026-01-01T00:00:00.631500000Z",
            "2026-01-01 01:30:00.631500+01:30",
        ] {
            assert_eq!(date(text), Some(moment), "{text}");
        }
        assert_eq!(date("2026-01-01"), Some(Time(1_767_225_600_000_000_000)));
        for text in ["", "yesterday", "2026", "2026-13-01", "9999-12-31", "12:30"] {
            assert_eq!(date(text), None, "{text}");
        }
        for nanos in [0, 1, -1, 1_767_225_600_631_500_000, 1_767_225_600_631_500_123, i64::MIN] {
            let time = Time(nanos);
            assert_eq!(seconds(time), time.to_string().parse::<f64>().unwrap(), "{nanos}");
        }
    }
}
