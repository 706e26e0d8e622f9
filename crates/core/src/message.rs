//! The one declaration of a message.

use core::fmt;
use std::borrow::Cow;

use crate::json::Json;
use crate::{Error, Field, Names, Reader, Result, Sampler, Side, Trace, Writer};

/// A struct whose fields stand one after the other: made by [`record!`](crate::record) and
/// [`messages!`](crate::messages).
pub trait Record<'d>: Field<'d> {
    /// The name in the protocol's own spelling.
    const NAME: &'static str;

    /// What documentation and `codecs` say of the fields.
    fn fields() -> Vec<FieldInfo>;

    /// Reads the fields into the present scope.
    ///
    /// # Errors
    /// Those of the fields, with their names.
    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Writes the fields.
    ///
    /// # Errors
    /// Those of the fields, with their names.
    fn encode_fields(&self, writer: &mut Writer) -> Result<()>;
}

/// The messages that one side sends on one kind of connection: an enum made by
/// [`messages!`](crate::messages).
pub trait Messages<'d>: Sized + Clone + PartialEq + fmt::Debug {
    /// The same messages with their bytes in their own hands.
    type Owned: 'static;

    /// The kind of connection, as it stands in front of the names: `auth`.
    const CONNECTION: &'static str;

    /// Who sends them.
    const SENDER: Side;

    /// All messages in the order of their numbers.
    const INFO: &'static [MessageInfo];

    /// The names of all numbers.
    const NAMES: &'static Names;

    /// Numbers that have a name but no known layout.
    const RESERVED: &'static [(u32, &'static str)];

    /// Reads the fields of the message with this number into the present scope.
    ///
    /// # Errors
    /// Malformed for a number that is not in the table; else those of the fields.
    fn decode_body<'n, T: Trace<'n>>(number: u32, reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Writes the fields.
    ///
    /// # Errors
    /// Those of the fields.
    fn encode_body(&self, writer: &mut Writer) -> Result<()>;

    /// Reads the message of this name from the JSON of its fields.
    ///
    /// # Errors
    /// Value, when there is no such message or its fields are not right.
    fn from_json(name: &str, fields: &Json) -> Result<Self>;

    /// Makes up the message with this number; `None` when there is none.
    fn sample(number: u32, sampler: &mut Sampler) -> Option<Self>;

    /// The number on the wire.
    fn number(&self) -> u32;

    /// The name in the protocol's own spelling.
    fn name(&self) -> &'static str;

    /// Takes its bytes into its own hands.
    fn into_owned(self) -> Self::Owned;

    /// The table row of a number.
    #[must_use]
    fn info(number: u32) -> Option<&'static MessageInfo> {
        Self::INFO.iter().find(|info| info.number == number)
    }

    /// The error for a number that is not in the table.
    #[cold]
    #[must_use]
    fn unknown_number(number: u32) -> Error {
        let reserved = Self::RESERVED.iter().find(|(reserved, _)| *reserved == number);
        let found = match reserved {
            Some((_, name)) => format!("{number} ({name}, whose fields nobody knows)"),
            None => number.to_string(),
        };
        Error::malformed(format!("a message number that a {} sends", Self::SENDER), found)
    }

    /// The error for a name that is not in the table.
    #[cold]
    #[must_use]
    fn unknown_name(name: &str) -> Error {
        let wanted = format!("a message that a {} sends on {}", Self::SENDER, Self::CONNECTION);
        let error = Error::value(wanted, format!("\"{name}\""));
        match crate::nearest(name, Self::INFO.iter().map(|info| info.name)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error,
        }
    }
}

/// A row of a message table.
#[derive(Clone, Copy, Debug)]
pub struct MessageInfo {
    /// The number on the wire.
    pub number: u32,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// Who sends it.
    pub sender: Side,
    /// What it is for.
    pub doc: &'static str,
    /// Its fields.
    pub fields: fn() -> Vec<FieldInfo>,
}

/// A field of a message table.
#[derive(Clone, Debug)]
pub struct FieldInfo {
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The layout: `u32`, `str(64)`.
    pub layout: Cow<'static, str>,
    /// What it is for; may be empty where the name says it all.
    pub doc: &'static str,
}

/// Declares a struct of fields that stand one after the other: the struct, its decoder, encoder,
/// JSON, samples and documentation table.
///
/// Each field has its Rust name, its name in the protocol's own spelling, and a type that
/// implements [`Field`].
///
/// ```
/// use worldwire_core::{Field, Reader, Sampler, Writer, record};
/// record! {
///     /// An edge of the vault graph.
///     pub struct NodeRef {
///         /// The node above.
///         parent_id "parentId": u32,
///         /// The node below.
///         child_id "childId": u32,
///     }
/// }
/// let edge = NodeRef { parent_id: 1, child_id: 2 };
/// let mut writer = Writer::new();
/// edge.encode(&mut writer)?;
/// assert_eq!(NodeRef::decode(&mut Reader::new(writer.as_bytes()), "edge")?, edge);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(<$lt:lifetime>)? { $($fields:tt)* }
    ) => {
        $crate::__record! { [$($doc)*] $name [$($lt)?] { $($fields)* } }
    };
}

/// Declares the messages that one side sends on one kind of connection: a struct for each, an
/// enum over them, and their table ([`Messages`]).
///
/// The head names the enum, the connection and the sender; `reserved` lists numbers that have a
/// name but no known layout. A message that borrows text or bytes carries the lifetime of the
/// enum.
///
/// ```
/// use worldwire_core::{Bytes32, Messages, Reader, messages};
/// messages! {
///     /// What a client says.
///     pub enum ClientMessage<'a>: "game", Client;
///     reserved { 7 "Mystery" }
///
///     /// Keep-alive.
///     0 PingRequest {
///         /// The client's clock in milliseconds.
///         ping_time_ms "pingTimeMs": u32,
///     }
///
///     /// Something for everybody in the age.
///     2 PropagateBuffer<'a> {
///         type_ "type": u32,
///         buffer "buffer": Bytes32<'a, 1024>,
///     }
/// }
/// let message = ClientMessage::decode_body(0, &mut Reader::new(&[1, 2, 0, 0]))?;
/// assert_eq!(message, ClientMessage::PingRequest(PingRequest { ping_time_ms: 513 }));
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! messages {
    (
        $(#[doc = $doc:literal])*
        pub enum $enum:ident<$a:lifetime>: $connection:literal, $sender:ident;
        reserved { $($reserved:literal $reserved_name:literal)* }
        $(
            $(#[doc = $mdoc:literal])*
            $number:literal $name:ident $(<$lt:lifetime>)? { $($fields:tt)* }
        )*
    ) => {
        $(
            $crate::__record! { [$($mdoc)*] $name [$($lt)?] { $($fields)* } }

            impl<$a> From<$name $(<$lt>)?> for $enum<$a> {
                fn from(message: $name $(<$lt>)?) -> Self {
                    Self::$name(message)
                }
            }
        )*

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $enum<$a> {
            $(
                $(#[doc = $mdoc])*
                $name($name $(<$lt>)?),
            )*
        }

        impl<$a> $crate::Messages<$a> for $enum<$a> {
            type Owned = $enum<'static>;
            const CONNECTION: &'static str = $connection;
            const SENDER: $crate::Side = $crate::Side::$sender;
            const RESERVED: &'static [(u32, &'static str)] =
                &[$(($reserved, $reserved_name)),*];
            const NAMES: &'static $crate::Names =
                &$crate::Names::fixed(&[$(($number, stringify!($name))),*]);
            const INFO: &'static [$crate::MessageInfo] = &[$(
                $crate::MessageInfo {
                    number: $number,
                    name: stringify!($name),
                    sender: $crate::Side::$sender,
                    doc: concat!($($mdoc),*),
                    fields: <$name as $crate::Record<'_>>::fields,
                },
            )*];

            #[inline]
            fn decode_body<'n, T: $crate::Trace<'n>>(
                number: u32,
                reader: &mut $crate::Reader<$a, T>,
            ) -> $crate::Result<Self> {
                match number {
                    $($number => {
                        <$name $(<$lt>)? as $crate::Record<$a>>::decode_fields(reader)
                            .map(Self::$name)
                    })*
                    _ => Err(<Self as $crate::Messages<$a>>::unknown_number(number)),
                }
            }

            #[inline]
            fn encode_body(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                match self {
                    $(Self::$name(message) => $crate::Record::encode_fields(message, writer),)*
                }
            }

            fn from_json(name: &str, fields: &$crate::json::Json) -> $crate::Result<Self> {
                match name {
                    $(stringify!($name) => {
                        <$name $(<$lt>)? as $crate::Field<$a>>::from_json(fields)
                            .map(Self::$name)
                    })*
                    _ => Err(<Self as $crate::Messages<$a>>::unknown_name(name)),
                }
            }

            fn sample(number: u32, sampler: &mut $crate::Sampler) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name($crate::Field::sample(sampler))),)*
                    _ => None,
                }
            }

            #[inline]
            fn number(&self) -> u32 {
                match self {
                    $(Self::$name(_) => $number,)*
                }
            }

            #[inline]
            fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }

            fn into_owned(self) -> $enum<'static> {
                match self {
                    $(Self::$name(message) => {
                        $enum::$name($crate::Field::into_owned(message))
                    })*
                }
            }
        }
    };
}

/// What [`record!`] and [`messages!`] share. The lifetime comes in brackets and may be missing.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ([$($doc:literal)*] $name:ident [] { $($fields:tt)* }) => {
        $crate::__record! { @struct [$($doc)*] [$name] $name { $($fields)* } }
        $crate::__record! { @impl ['d_] [$name] [$name] $name { $($fields)* } }
    };
    ([$($doc:literal)*] $name:ident [$lt:lifetime] { $($fields:tt)* }) => {
        $crate::__record! { @struct [$($doc)*] [$name<$lt>] $name { $($fields)* } }
        $crate::__record! { @impl [$lt] [$name<$lt>] [$name<'static>] $name { $($fields)* } }
    };
    (
        @struct [$($doc:literal)*] [$($head:tt)*] $name:ident {
            $($(#[doc = $fdoc:literal])* $field:ident $wire:literal: $type:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $($head)* {
            $(
                #[doc = concat!("`", $wire, "`.")]
                $(#[doc = $fdoc])*
                pub $field: $type,
            )*
        }
    };
    (
        @impl [$d:lifetime] [$self:ty] [$owned:ty] $name:ident {
            $($(#[doc = $fdoc:literal])* $field:ident $wire:literal: $type:ty,)*
        }
    ) => {
        impl<$d> $crate::Field<$d> for $self {
            type Owned = $owned;
            const LEAST: usize = 0 $(+ <$type as $crate::Field<$d>>::LEAST)*;

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

            fn from_json(json: &$crate::json::Json) -> $crate::Result<Self> {
                let mut fields = $crate::json::FieldsOf::new(json)?;
                let value = Self {$(
                    $field: <$type as $crate::Field<$d>>::from_json(fields.take($wire)?)
                        .map_err(|error| error.inside($wire))?,
                )*};
                fields.end()?;
                Ok(value)
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                Self { $($field: $crate::Field::sample(sampler),)* }
            }

            fn into_owned(self) -> $owned {
                type Owned = $owned;
                Owned { $($field: $crate::Field::into_owned(self.$field),)* }
            }
        }

        impl<$d> $crate::Record<$d> for $self {
            const NAME: &'static str = stringify!($name);

            fn fields() -> Vec<$crate::FieldInfo> {
                vec![$($crate::FieldInfo {
                    name: $wire,
                    layout: <$type as $crate::Field<$d>>::layout(),
                    doc: concat!($($fdoc),*),
                },)*]
            }

            #[inline]
            fn decode_fields<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<$d, T>,
            ) -> $crate::Result<Self> {
                Ok(Self {
                    $($field: <$type as $crate::Field<$d>>::decode(reader, $wire)?,)*
                })
            }

            #[inline]
            fn encode_fields(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                $(
                    $crate::Field::encode(&self.$field, writer)
                        .map_err(|error| error.inside($wire))?;
                )*
                Ok(())
            }
        }
    };
}
