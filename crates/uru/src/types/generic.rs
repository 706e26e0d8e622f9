//! Dynamically typed values.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Field, Names, Reader, Result, Sampler, Trace, Value, Writer};

use super::{Bool8, Double, Float, SafeString};

macro_rules! generic {
    ($($(#[doc = $doc:literal])* $code:literal $variant:ident $name:literal $(($type:ty))?;)*) => {
        /// A value with its type (`plGenericType`): a `u8` type code, then the value.
        ///
        /// In one of the published documents, the codes of `any`, `uint` and `double` are too low
        /// by one. A value of unknown type cannot be skipped, so it is refused.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GenericType<'d> {$(
            $(#[doc = $doc])*
            $variant $(($type))?,
        )*}

        impl GenericType<'_> {
            /// The names of the types, by code.
            pub const NAMES: &'static Names = &Names::fixed(&[$(($code, $name)),*]);

            /// The code of the value's type.
            #[must_use]
            pub fn code(&self) -> u8 {
                match self {
                    $(generic!(@any $variant $(($type))?) => $code,)*
                }
            }
        }

        impl<'d> Field<'d> for GenericType<'d> {
            type Owned = GenericType<'static>;
            const LEAST: usize = 1;

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed("plGenericType")
            }

            fn decode<'n, T: Trace<'n>>(
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<Self> {
                reader.record(name, |reader| {
                    let at = reader.position() as u64;
                    let code = reader.shown(
                        "type",
                        |reader| reader.take_array().map(u8::from_le_bytes),
                        |code| Value::Enum(i64::from(*code), Self::NAMES),
                    )?;
                    match code {
                        $($code => generic!(@decode reader $variant $(($type))?),)*
                        other => Err(Error::malformed("a type from 0 to 7, or 255", other.to_string())
                            .at(at)
                            .inside("type")),
                    }
                })
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.u8(self.code());
                match self {
                    $(generic!(@bind value $variant $(($type))?) => {
                        generic!(@encode value writer $(($type))?)
                    })*
                }
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                let mut fields = FieldsOf::new(json)?;
                let code = json::named(fields.take("type")?, Self::NAMES)
                    .map_err(|error| error.inside("type"))?;
                let value = match code {
                    $($code => generic!(@json fields $variant $(($type))?),)*
                    other => {
                        let found = other.to_string();
                        return Err(Error::value("a known type", found).inside("type"));
                    }
                };
                fields.end()?;
                Ok(value)
            }

            fn sample(sampler: &mut Sampler) -> Self {
                let codes = [$($code),*];
                let pick = usize::try_from(sampler.below(codes.len() as u64)).unwrap_or(0);
                match codes.get(pick).copied().unwrap_or(255_u8) {
                    $($code => generic!(@sample sampler $variant $(($type))?),)*
                    _ => Self::None,
                }
            }

            fn into_owned(self) -> Self::Owned {
                match self {
                    $(generic!(@bind value $variant $(($type))?) => {
                        generic!(@owned value $variant $(($type))?)
                    })*
                }
            }
        }
    };
    (@any $variant:ident) => { Self::$variant };
    (@any $variant:ident ($type:ty)) => { Self::$variant(_) };
    (@bind $value:ident $variant:ident) => { Self::$variant };
    (@bind $value:ident $variant:ident ($type:ty)) => { Self::$variant($value) };
    (@decode $reader:ident $variant:ident) => { Ok(Self::$variant) };
    (@decode $reader:ident $variant:ident ($type:ty)) => {
        <$type>::decode($reader, "value").map(Self::$variant)
    };
    (@encode $value:ident $writer:ident) => { Ok(()) };
    (@encode $value:ident $writer:ident ($type:ty)) => {
        $value.encode($writer).map_err(|error| error.inside("value"))
    };
    (@json $fields:ident $variant:ident) => { Self::$variant };
    (@json $fields:ident $variant:ident ($type:ty)) => {
        $fields
            .given("value")
            .and_then(|json| <$type>::from_json(json).map_err(|error| error.inside("value")))
            .map(Self::$variant)?
    };
    (@sample $sampler:ident $variant:ident) => { Self::$variant };
    (@sample $sampler:ident $variant:ident ($type:ty)) => {
        Self::$variant(Field::sample($sampler))
    };
    (@owned $value:ident $variant:ident) => { GenericType::$variant };
    (@owned $value:ident $variant:ident ($type:ty)) => {
        GenericType::$variant(Field::into_owned($value))
    };
}

generic! {
    /// A signed integer.
    0 Int "int" (i32);
    /// A single-precision float.
    1 Float "float" (Float);
    /// A boolean.
    2 Bool "bool" (Bool8);
    /// Text.
    3 String "string" (SafeString<'d>);
    /// A byte.
    4 Char "char" (u8);
    /// Text that may represent a value of any type.
    5 Any "any" (SafeString<'d>);
    /// An unsigned integer.
    6 UInt "uint" (u32);
    /// A double-precision float.
    7 Double "double" (Double);
    /// No value.
    255 None "none";
}
