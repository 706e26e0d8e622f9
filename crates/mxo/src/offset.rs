//! Records with offsets: numbers that state where a later field of their message begins.

use worldwire_core::{Error, Patch, Result, Writer};

/// An offset that was read but has not been compared with its field's position yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    name: &'static str,
    at: u64,
    value: u64,
}

impl Offset {
    /// An offset that was read from this position.
    pub(crate) fn new(name: &'static str, at: usize, value: impl Into<u64>) -> Self {
        Self { name, at: at as u64, value: value.into() }
    }

    /// Whether the field is absent.
    pub(crate) const fn is_none(self) -> bool {
        self.value == 0
    }

    /// Compares it with the position of its field.
    pub(crate) fn check(self, position: usize) -> Result<()> {
        if self.value == position as u64 {
            return Ok(());
        }
        let wanted = format!("{position}, the offset of the field");
        Err(Error::malformed(wanted, self.value.to_string()).at(self.at).inside(self.name))
    }
}

/// Space reserved for an offset.
pub(crate) trait OffsetSpace {
    /// Writes the offset of a field that begins here.
    fn fill(self, writer: &mut Writer, origin: usize) -> Result<()>;
}

macro_rules! offset_spaces {
    ($($size:literal $number:ident;)*) => {$(
        impl OffsetSpace for Patch<$size> {
            fn fill(self, writer: &mut Writer, origin: usize) -> Result<()> {
                let offset = writer.len().wrapping_sub(origin);
                let most = u64::from($number::MAX);
                let number = $number::try_from(offset);
                let number = number.map_err(|_| Error::limit("offset", most, offset as u64))?;
                writer.patch(self, number.to_le_bytes());
                Ok(())
            }
        }
    )*};
}

offset_spaces! {
    2 u16;
    4 u32;
}

/// Like [`record!`](worldwire_core::record), declares a struct of consecutive fields, some of which
/// are preceded by their offsets.
///
/// Offsets count from the first byte of the message. `after N` states how many bytes of it precede
/// the record. `@ u16 "name" of field;` before a field is the offset of that field or of a later
/// one. `[at]` marks a field that has an offset; `[opt]` marks one that is absent if its offset is
/// 0.
///
/// Offsets are not part of the struct: reading compares them with the positions of their fields, and
/// writing computes them. JSON may contain them, but they are ignored.
macro_rules! offset_record {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident after $head:literal { $($fields:tt)* }
    ) => {
        $crate::offset::offset_record! {
            @all [$($doc)*] ['d_] [$name] [$name] $name $head { $($fields)* }
        }
    };
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident<$lt:lifetime> after $head:literal { $($fields:tt)* }
    ) => {
        $crate::offset::offset_record! {
            @all [$($doc)*] [$lt] [$name<$lt>] [$name<'static>] $name $head { $($fields)* }
        }
    };
    (
        @all [$($doc:expr)*] [$d:lifetime] [$($self:tt)*] [$owned:ty] $name:ident $head:literal {
            $(
                $(@ $width:ident $offset:literal of $target:ident;)*
                $(#[doc = $fdoc:expr])*
                $([$mark:ident])? $field:ident $wire:literal: $type:ty,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $($self)* {$(
            #[doc = concat!("`", $wire, "`.")]
            $(#[doc = $fdoc])*
            pub $field: $crate::offset::offset_field!(@type [$type] $($mark)?),
        )*}

        impl<$d> ::worldwire_core::Record<$d> for $($self)* {
            const NAME: &'static str = stringify!($name);

            fn fields() -> Vec<::worldwire_core::FieldInfo> {
                vec![$(
                    $(::worldwire_core::FieldInfo {
                        name: $offset,
                        layout: stringify!($width).into(),
                        shape: <$width as ::worldwire_core::Field<$d>>::shape(),
                        doc: concat!(" The offset of `", stringify!($target), "`."),
                    },)*
                    ::worldwire_core::FieldInfo {
                        name: $wire,
                        layout: $crate::offset::offset_field!(@layout [$d $type] $($mark)?),
                        shape: $crate::offset::offset_field!(@shape [$d $type] $field $($mark)?),
                        doc: concat!($($fdoc),*),
                    },
                )*]
            }

            fn decode_fields<'n, T: ::worldwire_core::Trace<'n>>(
                reader: &mut ::worldwire_core::Reader<$d, T>,
            ) -> ::worldwire_core::Result<Self> {
                let origin = reader.position().wrapping_sub($head);
                $(
                    $(
                        let at = reader.position();
                        let $target =
                            $crate::offset::Offset::new($offset, at, reader.$width($offset)?);
                    )*
                    let $field = $crate::offset::offset_field!(
                        @decode [$d $type] reader origin $field $wire $($mark)?
                    );
                )*
                Ok(Self { $($field),* })
            }

            fn encode_fields(
                &self,
                writer: &mut ::worldwire_core::Writer,
            ) -> ::worldwire_core::Result<()> {
                let origin = writer.len().wrapping_sub($head);
                $(
                    $(let $target = writer.reserve::<{ $width::BITS as usize / 8 }>();)*
                    $crate::offset::offset_field!(
                        @encode self writer origin $field $wire $($mark)?
                    );
                )*
                Ok(())
            }

            fn from_fields(
                fields: &mut ::worldwire_core::json::FieldsOf<'_>,
            ) -> ::worldwire_core::Result<Self> {
                $(
                    $(fields.take_optional($offset);)*
                    let $field = $crate::offset::offset_field!(
                        @json [$d $type] fields $wire $($mark)?
                    );
                )*
                Ok(Self { $($field),* })
            }
        }

        impl<$d> ::worldwire_core::Field<$d> for $($self)* {
            type Owned = $owned;
            const LEAST: usize = 0 $(
                $(+ $width::BITS as usize / 8)*
                + $crate::offset::offset_field!(@least [$d $type] $($mark)?)
            )*;

            ::worldwire_core::__record_as_field!([$d] $name);

            fn shape() -> ::worldwire_core::Shape {
                ::worldwire_core::Shape::Record(<Self as ::worldwire_core::Record<$d>>::fields)
            }

            fn sample(sampler: &mut ::worldwire_core::Sampler) -> Self {
                Self {$(
                    $field: $crate::offset::offset_field!(@sample [$d $type] sampler $($mark)?),
                )*}
            }

            fn into_owned(self) -> $owned {
                type Owned = $owned;
                Owned {$(
                    $field: $crate::offset::offset_field!(@owned self $field $($mark)?),
                )*}
            }
        }
    };
}

/// What [`offset_record!`] does with a field, by its mark.
macro_rules! offset_field {
    (@type [$type:ty] opt) => { Option<$type> };
    (@type [$type:ty] $($at:ident)?) => { $type };
    (@layout [$d:lifetime $type:ty] opt) => {
        ::std::borrow::Cow::Owned(format!(
            "{}, if its offset is not 0",
            <$type as ::worldwire_core::Field<$d>>::layout(),
        ))
    };
    (@layout [$d:lifetime $type:ty] $($at:ident)?) => {
        <$type as ::worldwire_core::Field<$d>>::layout()
    };
    (@shape [$d:lifetime $type:ty] $field:ident opt) => {
        ::worldwire_core::Shape::Optional(
            concat!("offset of ", stringify!($field)),
            Box::new(<$type as ::worldwire_core::Field<$d>>::shape()),
        )
    };
    (@shape [$d:lifetime $type:ty] $field:ident $($at:ident)?) => {
        <$type as ::worldwire_core::Field<$d>>::shape()
    };
    (@least [$d:lifetime $type:ty] opt) => { 0 };
    (@least [$d:lifetime $type:ty] $($at:ident)?) => {
        <$type as ::worldwire_core::Field<$d>>::LEAST
    };
    (@sample [$d:lifetime $type:ty] $sampler:ident opt) => {
        ($sampler.below(3) > 0).then(|| <$type as ::worldwire_core::Field<$d>>::sample($sampler))
    };
    (@sample [$d:lifetime $type:ty] $sampler:ident $($at:ident)?) => {
        <$type as ::worldwire_core::Field<$d>>::sample($sampler)
    };
    (@owned $self:ident $field:ident opt) => {
        $self.$field.map(::worldwire_core::Field::into_owned)
    };
    (@owned $self:ident $field:ident $($at:ident)?) => {
        ::worldwire_core::Field::into_owned($self.$field)
    };
    (@decode [$d:lifetime $type:ty] $reader:ident $origin:ident $field:ident $wire:literal) => {
        <$type as ::worldwire_core::Field<$d>>::decode($reader, $wire)?
    };
    (@decode [$d:lifetime $type:ty] $reader:ident $origin:ident $field:ident $wire:literal at) => {{
        $field.check($reader.position().wrapping_sub($origin))?;
        <$type as ::worldwire_core::Field<$d>>::decode($reader, $wire)?
    }};
    (@decode [$d:lifetime $type:ty] $reader:ident $origin:ident $field:ident $wire:literal opt) => {
        if $field.is_none() {
            None
        } else {
            $field.check($reader.position().wrapping_sub($origin))?;
            Some(<$type as ::worldwire_core::Field<$d>>::decode($reader, $wire)?)
        }
    };
    (@encode $self:ident $writer:ident $origin:ident $field:ident $wire:literal) => {
        ::worldwire_core::Field::encode(&$self.$field, $writer)
            .map_err(|error| error.inside($wire))?;
    };
    (@encode $self:ident $writer:ident $origin:ident $field:ident $wire:literal at) => {
        $crate::offset::OffsetSpace::fill($field, $writer, $origin)
            .and_then(|()| ::worldwire_core::Field::encode(&$self.$field, $writer))
            .map_err(|error| error.inside($wire))?;
    };
    (@encode $self:ident $writer:ident $origin:ident $field:ident $wire:literal opt) => {
        if let Some(value) = &$self.$field {
            $crate::offset::OffsetSpace::fill($field, $writer, $origin)
                .and_then(|()| ::worldwire_core::Field::encode(value, $writer))
                .map_err(|error| error.inside($wire))?;
        }
    };
    (@json [$d:lifetime $type:ty] $fields:ident $wire:literal opt) => {
        $fields
            .given_optional($wire)
            .map(<$type as ::worldwire_core::Field<$d>>::from_json)
            .transpose()
            .map_err(|error| error.inside($wire))?
    };
    (@json [$d:lifetime $type:ty] $fields:ident $wire:literal $($at:ident)?) => {
        $fields.given($wire).and_then(|json| {
            <$type as ::worldwire_core::Field<$d>>::from_json(json)
                .map_err(|error| error.inside($wire))
        })?
    };
}

pub(crate) use {offset_field, offset_record};
