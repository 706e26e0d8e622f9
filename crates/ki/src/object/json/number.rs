//! Numbers with a fraction, from JSON and from text.

use worldwire_core::json::{Json, expected};
use worldwire_core::{Field, Result};

use crate::types::{Dbl, Flt};

/// A number of single precision. Infinity comes of its name alone, not of a number too large.
pub(in crate::object) fn single(json: &Json) -> Result<f32> {
    let number = <Flt as Field<'_>>::from_json(json)?.0;
    if number.is_infinite() && !is_named(json) {
        return Err(expected("a number of single precision", json));
    }
    Ok(number)
}

/// A number of double precision, in the same way.
pub(in crate::object) fn double(json: &Json) -> Result<f64> {
    let number = <Dbl as Field<'_>>::from_json(json)?.0;
    if number.is_infinite() && !is_named(json) {
        return Err(expected("a number of double precision", json));
    }
    Ok(number)
}

/// Whether it is no number in digits: `-Infinity`, `inf`, or the bits of one.
fn is_named(json: &Json) -> bool {
    json.as_str().is_some_and(|text| {
        let name = text.trim_start_matches(['+', '-']);
        name.starts_with("0x") || !name.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn infinity_has_a_name() {
        for (good, wanted) in [
            (json!("Infinity"), f32::INFINITY),
            (json!("-Infinity"), f32::NEG_INFINITY),
            (json!("inf"), f32::INFINITY),
            (json!("0xff800000"), f32::NEG_INFINITY),
            (json!(3.402_823_4e38), f32::MAX),
            (json!("-3.4028234e38"), f32::MIN),
        ] {
            assert_eq!(single(&good).unwrap().to_bits(), wanted.to_bits(), "{good}");
        }
        for wrong in [json!(1e39), json!(-1e39), json!("1e39"), json!("-.1e40"), json!("+9e99")] {
            let error = single(&wrong).unwrap_err().to_string();
            assert_eq!(error, format!("wanted a number of single precision, found {wrong}"));
            assert!(double(&wrong).is_ok());
        }
        let error = double(&json!("1e400")).unwrap_err().to_string();
        assert_eq!(error, "wanted a number of double precision, found \"1e400\"");
        assert!(double(&json!("-Infinity")).is_ok());
    }
}
