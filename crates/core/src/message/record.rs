//! Structs of consecutive fields.

use crate::{Error, Field, Reader, Result, Trace, Writer};

/// Declares a struct of consecutive fields: the struct, its decoder, encoder,
/// JSON, samples and documentation table.
///
/// Each field has its Rust name, its name in the protocol's own spelling, and a type that
/// implements [`Field`].
///
/// ```
/// use worldwire_core::{Field, Reader, Sampler, Writer, record, wire_flags};
/// wire_flags! {
///     /// What a header holds.
///     pub struct HeaderFlags(u16) {
///         /// A time follows.
///         Time = 1,
///     }
/// }
/// record! {
///     /// What every message begins with.
///     pub struct Header {
///         flags "flags": HeaderFlags,
///         /// Seconds since 1970.
///         time "time": u32 where flags.contains(HeaderFlags::Time),
///     }
/// }
/// record! {
///     /// An edge of the vault graph.
///     pub struct NodeRef {
///         ..header: Header,
///         /// The node above.
///         parent_id "parentId": u32,
///         /// The node below.
///         child_id "childId": u32,
///     }
/// }
/// let header = Header { flags: HeaderFlags::Time, time: Some(5) };
/// let edge = NodeRef { header, parent_id: 1, child_id: 2 };
/// let mut writer = Writer::new();
/// edge.encode(&mut writer)?;
/// assert_eq!(writer.as_bytes(), [1, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
/// assert_eq!(NodeRef::decode(&mut Reader::new(writer.as_bytes()), "edge")?, edge);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
///
/// * `..name: Base` can only be the first entry. It prepends the fields of another record and shows
///   them at the same level as the others.
/// * `name "wire": Type where CONDITION` is present only if the condition holds, so its type is an
///   `Option`. The condition can name earlier fields, by reference or by value, to call methods on
///   them or test their bits. Encoding checks that the value and the condition agree.
/// * A struct with a mask, `pub struct Name: mask u64 { 0 field "wire": Type, ... }`, begins with a
///   number whose bits state which of its fields follow. All fields are `Option`s, absent ones are
///   not shown, and a bit without a field is malformed.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident $(<$lt:lifetime>)? : mask $mask:ident { $($fields:tt)* }
    ) => {
        $crate::__masked! { [$($doc)*] $name [$($lt)?] $mask { $($fields)* } }
    };
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident $(<$lt:lifetime>)? { $($fields:tt)* }
    ) => {
        $crate::__record! { [$($doc)*] $name [$($lt)?] { $($fields)* } }
    };
}

/// The common part of [`record!`](crate::record), [`messages!`](crate::messages) and
/// [`classes!`](crate::classes). The lifetime is in brackets, which can be empty.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ([$($doc:expr)*] $name:ident [] { $($fields:tt)* }) => {
        $crate::__record! { @struct [$($doc)*] [$name] $name { $($fields)* } }
        $crate::__record! { @impl ['d_] [$name] [$name] $name { $($fields)* } }
        $crate::__record! { @field ['d_] [$name] [$name] $name { $($fields)* } }
    };
    ([$($doc:expr)*] $name:ident [$lt:lifetime] { $($fields:tt)* }) => {
        $crate::__record! { @struct [$($doc)*] [$name<$lt>] $name { $($fields)* } }
        $crate::__record! { @impl [$lt] [$name<$lt>] [$name<'static>] $name { $($fields)* } }
        $crate::__record! { @field [$lt] [$name<$lt>] [$name<'static>] $name { $($fields)* } }
    };
    (
        @struct [$($doc:expr)*] [$($head:tt)*] $name:ident {
            $(..$base:ident: $base_type:ty,)?
            $(
                $(#[doc = $fdoc:expr])*
                $field:ident $wire:literal: $type:ty $(where $condition:expr)?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $($head)* {
            $(
                /// The fields before it.
                pub $base: $base_type,
            )?
            $(
                #[doc = concat!("`", $wire, "`.")]
                $(#[doc = $fdoc])*
                pub $field: $crate::__optional!(@type [$type] $($condition)?),
            )*
        }
    };
    (
        @field [$d:lifetime] [$self:ty] [$owned:ty] $name:ident {
            $(..$base:ident: $base_type:ty,)?
            $(
                $(#[doc = $fdoc:expr])*
                $field:ident $wire:literal: $type:ty $(where $condition:expr)?,
            )*
        }
    ) => {
        #[allow(clippy::disallowed_names, reason = "names are the protocol's own")]
        impl<$d> $crate::Field<$d> for $self {
            type Owned = $owned;
            const LEAST: usize = 0 $(+ <$base_type as $crate::Field<$d>>::LEAST)?
                $(+ $crate::__optional!(@least [$d $type] $($condition)?))*;

            $crate::__record_as_field!([$d] $name);

            fn shape() -> $crate::Shape {
                $crate::Shape::Record(<Self as $crate::Record<$d>>::fields)
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                let _ = &sampler;
                $(let $base = <$base_type as $crate::Field<$d>>::sample(sampler);)?
                $(let $field = $crate::__optional!(@sample sampler [$type] $($condition)?);)*
                Self { $($base,)? $($field,)* }
            }

            fn into_owned(self) -> $owned {
                type Owned = $owned;
                Owned {
                    $($base: $crate::Field::into_owned(self.$base),)?
                    $($field: $crate::__optional!(@owned self.$field, $($condition)?),)*
                }
            }
        }
    };
    (
        @impl [$d:lifetime] [$self:ty] [$owned:ty] $name:ident {
            $(..$base:ident: $base_type:ty,)?
            $(
                $(#[doc = $fdoc:expr])*
                $field:ident $wire:literal: $type:ty $(where $condition:expr)?,
            )*
        }
    ) => {
        #[allow(clippy::disallowed_names, reason = "names are the protocol's own")]
        impl<$d> $crate::Record<$d> for $self {
            const NAME: &'static str = stringify!($name);

            fn fields() -> Vec<$crate::FieldInfo> {
                let rows: Vec<$crate::FieldInfo> = vec![$($crate::FieldInfo {
                    name: $wire,
                    layout: $crate::__optional!(@layout [$d $type] $($condition)?),
                    shape: $crate::__optional!(@shape [$d $type] $($condition)?),
                    doc: concat!($($fdoc),*),
                },)*];
                $(
                    let mut base = <$base_type as $crate::Record<$d>>::fields();
                    base.extend(rows);
                    let rows = base;
                )?
                rows
            }

            #[inline]
            fn decode_fields<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<$d, T>,
            ) -> $crate::Result<Self> {
                let _ = &reader;
                $(let $base = <$base_type as $crate::Record<$d>>::decode_fields(reader)?;)?
                $(
                    let $field =
                        $crate::__optional!(@decode reader $wire [$d $type] $($condition)?)?;
                )*
                Ok(Self { $($base,)? $($field,)* })
            }

            #[inline]
            fn encode_fields(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                let _ = &writer;
                let Self { $($base,)? $($field,)* } = self;
                $($crate::Record::encode_fields($base, writer)?;)?
                $(
                    $crate::__optional!(@encode writer $field, $($condition)?)
                        .map_err(|error| error.inside($wire))?;
                )*
                Ok(())
            }

            fn from_fields(
                fields: &mut $crate::json::FieldsOf<'_>,
            ) -> $crate::Result<Self> {
                let _ = &fields;
                $(let $base = <$base_type as $crate::Record<$d>>::from_fields(fields)?;)?
                $(
                    let $field =
                        $crate::__optional!(@json fields $wire [$d $type] $($condition)?)?;
                )*
                Ok(Self { $($base,)? $($field,)* })
            }
        }
    };
}

/// A field of a record with or without its condition: what to do in either case.
#[doc(hidden)]
#[macro_export]
macro_rules! __optional {
    (@type [$type:ty]) => { $type };
    (@type [$type:ty] $condition:expr) => { Option<$type> };
    (@least [$d:lifetime $type:ty]) => { <$type as $crate::Field<$d>>::LEAST };
    (@least [$d:lifetime $type:ty] $condition:expr) => { 0 };
    (@layout [$d:lifetime $type:ty]) => { <$type as $crate::Field<$d>>::layout() };
    (@layout [$d:lifetime $type:ty] $condition:expr) => {
        ::std::borrow::Cow::Owned(format!(
            "{}, if {}",
            <$type as $crate::Field<$d>>::layout(),
            stringify!($condition),
        ))
    };
    (@shape [$d:lifetime $type:ty]) => { <$type as $crate::Field<$d>>::shape() };
    (@shape [$d:lifetime $type:ty] $condition:expr) => {
        $crate::Shape::Optional(
            stringify!($condition),
            Box::new(<$type as $crate::Field<$d>>::shape()),
        )
    };
    (@sample $sampler:ident [$type:ty]) => { <$type as $crate::Field<'_>>::sample($sampler) };
    (@sample $sampler:ident [$type:ty] $condition:expr) => {
        if $condition { Some(<$type as $crate::Field<'_>>::sample($sampler)) } else { None }
    };
    (@owned $value:expr,) => { $crate::Field::into_owned($value) };
    (@owned $value:expr, $condition:expr) => { $value.map($crate::Field::into_owned) };
    (@decode $reader:ident $wire:literal [$d:lifetime $type:ty]) => {
        <$type as $crate::Field<$d>>::decode($reader, $wire)
    };
    (@decode $reader:ident $wire:literal [$d:lifetime $type:ty] $condition:expr) => {
        $crate::decode_optional::<$type, T>($reader, $wire, $condition)
    };
    (@encode $writer:ident $field:ident,) => { $crate::Field::encode($field, $writer) };
    (@encode $writer:ident $field:ident, $condition:expr) => {
        $crate::encode_optional($writer, $field.as_ref(), $condition, stringify!($condition))
    };
    (@json $fields:ident $wire:literal [$d:lifetime $type:ty]) => {
        $fields.given($wire).and_then(|json| {
            <$type as $crate::Field<$d>>::from_json(json).map_err(|error| error.inside($wire))
        })
    };
    (@json $fields:ident $wire:literal [$d:lifetime $type:ty] $condition:expr) => {
        $fields
            .given_optional($wire)
            .map(<$type as $crate::Field<$d>>::from_json)
            .transpose()
            .map_err(|error| error.inside($wire))
    };
}

/// A struct that begins with a mask: see [`record!`](crate::record).
#[doc(hidden)]
#[macro_export]
macro_rules! __masked {
    ([$($doc:expr)*] $name:ident [] $mask:ident { $($fields:tt)* }) => {
        $crate::__masked! { @all [$($doc)*] ['d_] [$name] [$name] $name $mask { $($fields)* } }
    };
    ([$($doc:expr)*] $name:ident [$lt:lifetime] $mask:ident { $($fields:tt)* }) => {
        $crate::__masked! {
            @all [$($doc)*] [$lt] [$name<$lt>] [$name<'static>] $name $mask { $($fields)* }
        }
    };
    (
        @all [$($doc:expr)*] [$d:lifetime] [$($head:tt)*] [$owned:ty] $name:ident $mask:ident {
            $($(#[doc = $fdoc:expr])* $bit:literal $field:ident $wire:literal: $type:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Default)]
        pub struct $($head)* {$(
            #[doc = concat!("`", $wire, "`, bit ", stringify!($bit), ".")]
            $(#[doc = $fdoc])*
            pub $field: Option<$type>,
        )*}

        #[allow(single_use_lifetimes, reason = "a record may borrow nothing")]
        impl<$d> $($head)* {
            /// The bits and names of all fields.
            pub const FIELDS: &'static [(u32, &'static str)] = &[$(($bit, $wire)),*];

            /// All bits that fields have.
            const KNOWN: $mask = 0 $(| 1 << $bit)*;

            /// The mask of the fields that are present.
            #[must_use]
            pub fn mask(&self) -> $mask {
                0 $(| $mask::from(self.$field.is_some()) << $bit)*
            }
        }

        impl<$d> $crate::Record<$d> for $($head)* {
            const NAME: &'static str = stringify!($name);

            fn fields() -> Vec<$crate::FieldInfo> {
                vec![$($crate::FieldInfo {
                    name: $wire,
                    layout: ::std::borrow::Cow::Owned(format!(
                        "{}, if bit {} is set",
                        <$type as $crate::Field<$d>>::layout(),
                        $bit,
                    )),
                    shape: $crate::Shape::Optional(
                        concat!("bit ", $bit),
                        Box::new(<$type as $crate::Field<$d>>::shape()),
                    ),
                    doc: concat!($($fdoc),*),
                },)*]
            }

            fn decode_fields<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<$d, T>,
            ) -> $crate::Result<Self> {
                let at = reader.position() as u64;
                let mask = $mask::from_le_bytes(reader.take_array()?);
                if mask & !Self::KNOWN != 0 {
                    let found = format!("0x{mask:x}");
                    return Err($crate::Error::malformed("a mask of known fields", found).at(at));
                }
                Ok(Self {$(
                    $field: $crate::decode_optional::<$type, T>(
                        reader,
                        $wire,
                        mask >> $bit & 1 == 1,
                    )?,
                )*})
            }

            fn encode_fields(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                writer.$mask(self.mask());
                $(
                    if let Some(value) = &self.$field {
                        $crate::Field::encode(value, writer)
                            .map_err(|error| error.inside($wire))?;
                    }
                )*
                Ok(())
            }

            fn from_fields(
                fields: &mut $crate::json::FieldsOf<'_>,
            ) -> $crate::Result<Self> {
                Ok(Self {$(
                    $field: fields
                        .given_optional($wire)
                        .map(<$type as $crate::Field<$d>>::from_json)
                        .transpose()
                        .map_err(|error| error.inside($wire))?,
                )*})
            }
        }

        impl<$d> $crate::Field<$d> for $($head)* {
            type Owned = $owned;
            const LEAST: usize = size_of::<$mask>();

            $crate::__record_as_field!([$d] $name);

            fn shape() -> $crate::Shape {
                $crate::Shape::Masked(
                    size_of::<$mask>(),
                    || vec![$(($bit, $crate::FieldInfo {
                        name: $wire,
                        layout: <$type as $crate::Field<$d>>::layout(),
                        shape: <$type as $crate::Field<$d>>::shape(),
                        doc: concat!($($fdoc),*),
                    }),)*],
                )
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                let mask = sampler.bits() & sampler.bits();
                Self {$(
                    $field: (mask & 1 << $bit != 0).then(|| $crate::Field::sample(sampler)),
                )*}
            }

            fn into_owned(self) -> $owned {
                type Owned = $owned;
                Owned { $($field: self.$field.map($crate::Field::into_owned),)* }
            }
        }
    };
}

/// The [`Field`] implementation that all records share.
#[doc(hidden)]
#[macro_export]
macro_rules! __record_as_field {
    ([$d:lifetime] $name:ident) => {
        fn layout() -> ::std::borrow::Cow<'static, str> {
            ::std::borrow::Cow::Borrowed(stringify!($name))
        }

        #[inline]
        fn decode<'n, T: $crate::Trace<'n>>(
            reader: &mut $crate::Reader<$d, T>,
            name: &'n str,
        ) -> $crate::Result<Self> {
            reader.record(name, <Self as $crate::Record<$d>>::decode_fields)
        }

        #[inline]
        fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
            $crate::Record::encode_fields(self, writer)
        }

        fn from_json(json: $crate::json::Given<'_>) -> $crate::Result<Self> {
            let mut fields = $crate::json::FieldsOf::new(json)?;
            let value = <Self as $crate::Record<$d>>::from_fields(&mut fields)?;
            fields.end()?;
            Ok(value)
        }
    };
}

/// Reads a field that is present if a condition holds.
#[doc(hidden)]
#[inline]
pub fn decode_optional<'d, 'n, F: Field<'d>, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    present: bool,
) -> Result<Option<F>> {
    if present { F::decode(reader, name).map(Some) } else { Ok(None) }
}

/// Writes a field that is present if a condition holds. Value and condition must agree.
///
/// # Errors
/// `Value` if they do not; those of the field.
#[doc(hidden)]
#[inline]
pub fn encode_optional<'d, F: Field<'d>>(
    writer: &mut Writer,
    value: Option<&F>,
    present: bool,
    condition: &'static str,
) -> Result<()> {
    match (value, present) {
        (Some(value), true) => value.encode(writer),
        (None, false) => Ok(()),
        (None, true) => Err(Error::invalid(format!("is required if {condition}"))),
        (Some(_), false) => Err(Error::invalid(format!("is allowed only if {condition}"))),
    }
}
