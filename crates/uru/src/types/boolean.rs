//! Booleans as Plasma's streams write them.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Field, Reader, Result, Sampler, Shape, Trace, Value, Writer};

macro_rules! booleans {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ident, $wanted:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Writers send 0 or 1; readers treat any non-zero value as true. Other values are kept and
        /// shown as numbers.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name($type);

        impl $name {
            /// Whether the boolean is true, that is, anything but zero.
            #[must_use]
            pub const fn is_true(self) -> bool {
                self.0 != 0
            }

            /// Whether the value is 0 or 1, the only ones that known writers send.
            #[must_use]
            pub const fn is_canonical(self) -> bool {
                self.0 <= 1
            }
        }

        impl From<bool> for $name {
            fn from(truth: bool) -> Self {
                Self($type::from(truth))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    0 => f.write_str("false"),
                    1 => f.write_str("true"),
                    other => write!(f, "true ({other})"),
                }
            }
        }

        impl<'d> Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = size_of::<$type>();

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed(concat!(stringify!($type), " bool"))
            }

            fn shape() -> Shape {
                Shape::Bool(size_of::<$type>())
            }

            #[inline]
            fn decode<'n, T: Trace<'n>>(
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<Self> {
                reader.shown(
                    name,
                    |reader| reader.take_array().map($type::from_le_bytes).map(Self),
                    |value| match value.0 {
                        0 => Value::Bool(false),
                        1 => Value::Bool(true),
                        other => Value::Unsigned(u64::from(other)),
                    },
                )
            }

            #[inline]
            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.$type(self.0);
                Ok(())
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                match json.json() {
                    Json::Bool(truth) => Ok(Self::from(*truth)),
                    other => json::integer(other, $wanted).map(Self),
                }
            }

            fn sample(sampler: &mut Sampler) -> Self {
                Self::from(sampler.below(2) == 1)
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

booleans! {
    /// A boolean in one byte.
    Bool8: u8, "true, false or a whole number from 0 to 255";
    /// A boolean in four little-endian bytes, as input events use it.
    Bool32: u32, "true, false or a whole number from 0 to 4294967295";
}
