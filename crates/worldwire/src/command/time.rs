//! Timestamps of output lines.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use worldwire_dissect::Time;

use crate::cli::TimeForm;
use crate::output::Failure;

/// Writes the time at the start of lines, unless the library already does.
#[derive(Debug)]
pub(crate) enum Times {
    /// The library or another program writes the time.
    Elsewhere,
    In(TimeZone),
}

impl Times {
    pub(crate) fn of(form: TimeForm) -> Result<Self, Failure> {
        Ok(match form {
            TimeForm::Relative | TimeForm::Delta => Self::Elsewhere,
            TimeForm::Utc => Self::In(TimeZone::UTC),
            TimeForm::Local => Self::In(TimeZone::try_system().map_err(|error| {
                Failure::Run(format!("--time local: {error}; set TZ, or use --time utc"))
            })?),
        })
    }

    /// Whether times are written as dates.
    pub(crate) fn are_dates(&self) -> bool {
        matches!(self, Self::In(_))
    }

    /// Writes the prefix of a line.
    pub(crate) fn write(&self, time: Time, out: &mut String) {
        let Self::In(zone) = self else { return };
        // Every time in a capture is representable.
        let Ok(moment) = Timestamp::from_nanosecond(time.0.into()) else { return };
        // Displayed times can be used in filters, so no digit may be lost.
        let is_fine = time.0 % 1000 != 0;
        let form = match (zone == &TimeZone::UTC, is_fine) {
            (true, false) => "%Y-%m-%d %H:%M:%S.%6f",
            (true, true) => "%Y-%m-%d %H:%M:%S.%9f",
            (false, false) => "%Y-%m-%d %H:%M:%S.%6f%:z",
            (false, true) => "%Y-%m-%d %H:%M:%S.%9f%:z",
        };
        out.push_str(&moment.to_zoned(zone.clone()).strftime(form).to_string());
    }
}

/// Seconds since the previous line, in the same width as those since the first packet.
pub(crate) fn delta(last: Option<Time>, time: Time) -> String {
    let since = time.since(last.unwrap_or(time));
    format!("{:5}.{:06}", since.as_secs(), since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_all_their_digits() {
        let written = |times: &Times, nanos| {
            let mut out = String::new();
            times.write(Time(nanos), &mut out);
            out
        };
        let utc = Times::of(TimeForm::Utc).expect("it is known");
        assert_eq!(written(&utc, 1_767_225_600_631_500_000), "2026-01-01 00:00:00.631500");
        assert_eq!(written(&utc, 1_767_225_600_000_000_001), "2026-01-01 00:00:00.000000001");
        assert_eq!(written(&utc, -1_000), "1969-12-31 23:59:59.999999");
        assert!(!written(&utc, i64::MIN).is_empty());
        let zone = Times::In(TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(written(&zone, 1_767_225_600_631_500_000), "2026-01-01 02:00:00.631500+02:00");
        assert_eq!(delta(None, Time(5)), "    0.000000");
        assert_eq!(delta(Some(Time(5)), Time(1_500_000_005)), "    1.500000");
        assert_eq!(delta(Some(Time(5)), Time(0)), "    0.000000");
    }
}
