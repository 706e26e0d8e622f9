//! Times, sizes and other limits on the command line.

use core::str::FromStr;
use core::time::Duration;

/// Parses a time: a number and a unit.
pub(super) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    /// A day.
    const MAX_MILLIS: u64 = 86_400_000;
    let wanted = "needs a time from 1ms to 24h, such as 500ms, 10s or 2m";
    let split = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split).ok_or(wanted)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wanted),
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match millis.filter(|millis| (1..=MAX_MILLIS).contains(millis)) {
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err(wanted),
    }
}

/// Parses a size in bytes: a number and a unit.
pub(super) fn parse_size(text: &str) -> Result<u64, &'static str> {
    let wanted = "needs a size, such as 500kB, 100MB or 2GB";
    let split = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split).ok_or(wanted)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(wanted),
    };
    let size = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    size.filter(|size| *size > 0).ok_or(wanted)
}

/// When a live capture stops by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopAfter {
    Packets(u64),
    /// Captured bytes.
    Bytes(u64),
    /// Time since the start.
    Time(Duration),
}

impl FromStr for StopAfter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "needs a number of packets (1000), a size (100MB) or a time (10m)";
        if let Ok(packets) = text.parse() {
            return if packets > 0 { Ok(Self::Packets(packets)) } else { Err(wanted) };
        }
        let of_time = || parse_time(text).map(Self::Time).map_err(|_| wanted);
        parse_size(text).map(Self::Bytes).or_else(|_| of_time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_says_what_is_limited() {
        let time = |seconds| Ok(StopAfter::Time(Duration::from_secs(seconds)));
        for (text, expected) in [
            ("1000", Ok(StopAfter::Packets(1000))),
            ("100MB", Ok(StopAfter::Bytes(100_000_000))),
            ("2GiB", Ok(StopAfter::Bytes(2 << 30))),
            ("1b", Ok(StopAfter::Bytes(1))),
            ("30s", time(30)),
            ("10m", time(600)),
            ("24h", time(86_400)),
        ] {
            assert_eq!(text.parse::<StopAfter>(), expected, "{text}");
        }
        assert_eq!(parse_time("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_time("2").is_err() && parse_size("5").is_err());
        for text in ["", "0", "0MB", "-1", "10x", "MB", "99999999999GB", "25h"] {
            assert!(text.parse::<StopAfter>().is_err(), "{text}");
        }
    }
}
