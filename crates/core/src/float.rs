//! Floating-point numbers that keep every bit.

use core::fmt;
use std::borrow::Cow;

use crate::json::{self, Given};
use crate::{Field, Reader, Result, Sampler, Shape, Trace, Writer};

macro_rules! floats {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $float:ident, $bits:ident, $read:ident;
    )*) => {$(
        $(#[doc = $doc])*
        ///
        /// Compares bits: a NaN equals itself, and 0 is not -0.
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

            fn shape() -> Shape {
                Shape::Float(size_of::<$float>())
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
                json::$read(&json).map(Self)
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
    /// A single-precision number, little-endian.
    Float: f32, u32, single;
    /// A double-precision number, little-endian.
    Double: f64, u64, double;
}
