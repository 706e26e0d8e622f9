//! Detecting integers that a program rounded because it stores numbers as doubles.

/// Below this number, too many unrounded integers look rounded.
const SMALLEST: u128 = 1 << 56;

/// Whether an integer in JSON looks as if it was written by a program that stores numbers as
/// doubles, such as JavaScript or old versions of `jq`: it is at least 2^56, and it is the text
/// that such programs write for the nearest double. Unrounded integers can look like this, too: one
/// in a thousand of those with 64 bits, but one in eight of the smallest. Below 2^56, up to half of
/// all integers look like this.
///
/// ```
/// use worldwire_ki::object::looks_rounded;
///
/// assert!(!looks_rounded(10_903_862_769_591_682_850));
/// assert!(looks_rounded(10_903_862_769_591_683_000));
/// assert!(!looks_rounded(4_711_000));
/// ```
#[must_use]
pub fn looks_rounded(number: i128) -> bool {
    let size = number.unsigned_abs();
    if size < SMALLEST {
        return false;
    }
    #[expect(clippy::cast_precision_loss, reason = "the loss of precision is what this detects")]
    let double = size as f64;
    // Programs write the fewest digits that identify the double, followed by zeros; or all digits
    // of the double; or 17 digits, followed by zeros.
    let shortest = || double.to_string() == size.to_string();
    let exact = || format!("{double:.0}") == size.to_string();
    let digits = || {
        let text = format!("{double:.16e}");
        let (digits, zeros) = text.split_once('e').unwrap_or((&text, "0"));
        let zeros = zeros.parse::<usize>().unwrap_or(0).saturating_sub(16);
        digits.replace('.', "") + &"0".repeat(zeros) == size.to_string()
    };
    shortest() || exact() || digits()
}

#[cfg(test)]
mod tests {
    use super::looks_rounded;

    #[test]
    fn integers_rounded_by_programs_are_detected() {
        // What node, jq 1.6 and printf("%.0f") write for 10903862769591682850 and
        // 191965934121493239.
        for number in [
            10_903_862_769_591_683_000,
            10_903_862_769_591_683_072,
            191_965_934_121_493_250,
            191_965_934_121_493_248,
            -191_965_934_121_493_250,
        ] {
            assert!(looks_rounded(number), "{number}");
        }
        for number in [
            10_903_862_769_591_682_850,
            191_965_934_121_493_239,
            9_007_199_254_740_993,
            // It is impossible to tell whether these two were rounded.
            9_007_199_254_740_994,
            18_014_398_509_481_982,
            9_007_199_254_740_992,
            0,
            -191_965_934_121_493_239,
        ] {
            assert!(!looks_rounded(number), "{number}");
        }
    }
}
