//! Numbers with a fraction, kept to the last bit.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Writer};

macro_rules! floats {
    ($($(#[doc = $doc:literal])* $name:ident: $float:ident, $bits:ident, $nan:literal, $wanted:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Two are equal when their bits are: a NaN equals itself, and 0 is not -0.
        #[derive(Clone, Copy, Default)]
        pub struct $name(pub $float);

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.to_bits() == other.0.to_bits()
            }
        }

        impl Eq for $name {}

        impl From<$float> for $name {
            fn from(number: $float) -> Self {
                Self(number)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.0.is_nan() {
                    write!(f, "NaN({:#x})", self.0.to_bits())
                } else {
                    fmt::Debug::fmt(&self.0, f)
                }
            }
        }

        impl<'d> Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = size_of::<$float>();

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($float))
            }

            #[inline]
            fn decode<'n, T: Trace<'n>>(
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<Self> {
                reader.$float(name).map(Self)
            }

            #[inline]
            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.$float(self.0);
                Ok(())
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                let number = match json.json() {
                    // By way of its text: a detour over the wider type could round twice.
                    Json::Number(number) => number.to_string().parse().ok(),
                    Json::String(text) => match text.as_str() {
                        "NaN" => Some($float::from_bits($nan)),
                        "Infinity" => Some($float::INFINITY),
                        "-Infinity" => Some($float::NEG_INFINITY),
                        text => match text.strip_prefix("0x") {
                            Some(digits) => {
                                $bits::from_str_radix(digits, 16).ok().map($float::from_bits)
                            }
                            None => text.parse().ok(),
                        },
                    },
                    _ => None,
                };
                let number = number.ok_or_else(|| json::expected($wanted, &json))?;
                // Infinity comes of its name alone, not of a number too large.
                if number.is_infinite() && !is_named(&json) {
                    return Err(json::expected($wanted, &json));
                }
                Ok(Self(number))
            }

            #[expect(clippy::allow_attributes, reason = "only one of the types is narrower")]
            #[allow(clippy::cast_possible_truncation)]
            fn sample(sampler: &mut Sampler) -> Self {
                Self($float::from_bits(sampler.number() as $bits))
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

floats! {
    /// `FLT`: a number of single precision.
    Flt: f32, u32, 0x7fc0_0000, "a number of single precision";
    /// `DBL`: a number of double precision.
    Dbl: f64, u64, 0x7ff8_0000_0000_0000, "a number of double precision";
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

    fn single(json: &Json) -> Result<f32> {
        Flt::from_json(json.into()).map(|number| number.0)
    }

    fn double(json: &Json) -> Result<f64> {
        Dbl::from_json(json.into()).map(|number| number.0)
    }

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
