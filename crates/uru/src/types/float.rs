//! Numbers with a fraction, kept to the last bit.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Writer, list_from_json};

macro_rules! floats {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $float:ident, $bits:ident, $nan:literal, $wanted:literal;
    )*) => {$(
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
                    Json::Number(number) => {
                        number.to_string().parse().ok().filter(|n: &$float| n.is_finite())
                    }
                    Json::String(text) => match text.as_str() {
                        "NaN" => Some($float::from_bits($nan)),
                        "Infinity" => Some($float::INFINITY),
                        "-Infinity" => Some($float::NEG_INFINITY),
                        text => text
                            .strip_prefix("0x")
                            .and_then(|digits| $bits::from_str_radix(digits, 16).ok())
                            .map($float::from_bits),
                    },
                    _ => None,
                };
                number.map(Self).ok_or_else(|| json::expected($wanted, &json))
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
    /// A number of single precision, little-endian.
    Float: f32, u32, 0x7fc0_0000, "a number of single precision";
    /// A number of double precision, little-endian.
    Double: f64, u64, 0x7ff8_0000_0000_0000, "a number of double precision";
}

/// Exactly `N` numbers of single precision, without a count: points and vectors (x, y, z), colours
/// (red, green, blue, alpha), matrices (row by row).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floats<const N: usize>(pub [Float; N]);

impl<const N: usize> From<[f32; N]> for Floats<N> {
    fn from(numbers: [f32; N]) -> Self {
        Self(numbers.map(Float))
    }
}

impl<'d, const N: usize> Field<'d> for Floats<N> {
    type Owned = Self;
    const LEAST: usize = N * 4;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("f32[{N}]"))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut numbers = [Float::default(); N];
            for (index, number) in numbers.iter_mut().enumerate() {
                *number = reader.item(index, |reader| Float::decode(reader, ""))?;
            }
            Ok(Self(numbers))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.iter().try_for_each(|number| number.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let numbers = list_from_json::<Float>(json)?;
        let found = numbers.len();
        let numbers = numbers.try_into();
        numbers.map(Self).map_err(|_| Error::value(format!("{N} numbers"), found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| Float::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}
