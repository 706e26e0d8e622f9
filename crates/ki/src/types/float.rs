//! Numbers with a fraction, kept to the last bit.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Json};
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Writer};

macro_rules! floats {
    ($($(#[doc = $doc:literal])* $name:ident: $float:ident, $bits:ident, $nan:literal;)*) => {$(
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

            fn from_json(json: &Json) -> Result<Self> {
                let number = match json {
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
                number.map(Self).ok_or_else(|| json::expected("a number", json))
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
    Flt: f32, u32, 0x7fc0_0000;
    /// `DBL`: a number of double precision.
    Dbl: f64, u64, 0x7ff8_0000_0000_0000;
}
