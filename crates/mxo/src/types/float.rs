//! Reads floating-point numbers from JSON exactly.

use worldwire_core::Result;
use worldwire_core::json::{self, Json};

macro_rules! floats {
    ($($(#[doc = $doc:literal])* $name:ident: $float:ident, $bits:ident, $nan:literal, $wanted:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// A value error for other JSON, and numbers that are too large.
        pub(super) fn $name(json: &Json) -> Result<$float> {
            let number = match json {
                // Parse the text: going through a wider type could round twice.
                Json::Number(number) => number.to_string().parse().ok().filter(finite),
                Json::String(text) => match &**text {
                    "NaN" => Some($float::from_bits($nan)),
                    "Infinity" => Some($float::INFINITY),
                    "-Infinity" => Some($float::NEG_INFINITY),
                    text => match text.strip_prefix("0x") {
                        Some(digits) => {
                            $bits::from_str_radix(digits, 16).ok().map($float::from_bits)
                        }
                        // JSON has no spelling for `inf` and `nan`.
                        None => text.parse().ok().filter(finite),
                    },
                },
                _ => None,
            };
            fn finite(number: &$float) -> bool {
                number.is_finite()
            }
            number.ok_or_else(|| json::expected($wanted, json))
        }
    )*};
}

floats! {
    /// A single-precision number.
    single: f32, u32, 0x7fc0_0000, "a single-precision number";
    /// A double-precision number.
    double: f64, u64, 0x7ff8_0000_0000_0000, "a double-precision number";
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
