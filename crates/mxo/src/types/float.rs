//! Reads floating-point numbers from JSON exactly.

use worldwire_core::Result;
use worldwire_core::json::{self, Json};

/// A single-precision number.
pub(super) fn single(json: &Json) -> Result<f32> {
    strict(json, "a single-precision number", json::single)
}

/// A double-precision number.
pub(super) fn double(json: &Json) -> Result<f64> {
    strict(json, "a double-precision number", json::double)
}

/// Rejects `inf` and `nan`, which Rust parses but JSON does not allow as numbers.
fn strict<F>(json: &Json, wanted: &'static str, read: fn(&Json) -> Result<F>) -> Result<F> {
    let is_spelled = |text: &str| {
        let name = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
        !matches!(text, "NaN" | "Infinity" | "-Infinity")
            && matches!(&*name, "inf" | "infinity" | "nan")
    };
    match read(json) {
        Ok(number) if !json.as_str().is_some_and(is_spelled) => Ok(number),
        _ => Err(json::expected(wanted, json)),
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::json;

    use super::*;

    #[test]
    fn non_finite_numbers_are_names_or_bits() {
        for (good, wanted) in [
            (json!("Infinity"), f32::INFINITY),
            (json!("-Infinity"), f32::NEG_INFINITY),
            (json!("0xff800000"), f32::NEG_INFINITY),
            (json!(-0.0), -0.0),
            (json!(3), 3.0),
            (json!("3.5"), 3.5),
        ] {
            assert_eq!(single(&good).unwrap().to_bits(), wanted.to_bits(), "{good}");
        }
        assert_eq!(single(&json!("0x7fc00001")).unwrap().to_bits(), 0x7fc0_0001);
        for wrong in [json!(1e39), json!("1e39"), json!("inf"), json!("nan"), json!(null)] {
            let error = single(&wrong).unwrap_err().to_string();
            assert_eq!(error, format!("wanted a single-precision number, found {wrong}"));
        }
        assert!(double(&json!(1e39)).is_ok() && double(&json!("1e400")).is_err());
    }
}
