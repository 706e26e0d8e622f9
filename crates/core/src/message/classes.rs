//! Tables of classes: objects that begin with the index of their class.

use core::fmt;
use std::borrow::Cow;

use crate::{FieldInfo, Names, Reader, Result, Trace, Writer};

/// The classes allowed in one place: an enum declared with [`classes!`](crate::classes).
pub trait Classes<'d>: Sized + Clone + PartialEq + fmt::Debug {
    /// All rows of the table, first those with a layout, then those with only a name, each group in
    /// the order of its indices.
    const INFO: &'static [ClassInfo];

    /// The names of all indices.
    const NAMES: &'static Names;

    /// Reads an object of this class, without the index, into the current scope. A class without a
    /// layout takes the rest of the current part.
    fn decode_class<'n, T: Trace<'n>>(class: u32, reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Writes the object, without the index.
    fn encode_class(&self, writer: &mut Writer) -> Result<()>;

    /// The index of its class.
    fn class(&self) -> u32;

    /// The name of its class in the protocol's own spelling, if it has one.
    #[must_use]
    fn class_name(&self) -> Option<&'static str> {
        Self::NAMES.name(i64::from(self.class()))
    }

    /// The row of an index.
    #[must_use]
    fn info(class: u32) -> Option<&'static ClassInfo> {
        Self::INFO.iter().find(|row| row.class == class)
    }
}

/// A row of a table of classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassInfo {
    /// The index on the wire.
    pub class: u32,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The class it derives from.
    pub parent: &'static str,
    /// Its purpose.
    pub doc: &'static str,
    /// Its fields; `None` for a class without a known layout: abstract, unused, or not documented.
    pub fields: Option<fn() -> Vec<FieldInfo>>,
}

/// An object of a class without a known layout: its index and its bytes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct OtherClass<'d> {
    /// The index of the class.
    pub class: u32,
    /// The bytes after the index.
    pub bytes: Cow<'d, [u8]>,
}

impl fmt::Debug for OtherClass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OtherClass(0x{:04x}, {} bytes)", self.class, self.bytes.len())
    }
}

/// Declares the classes allowed in one place: a struct for each, an enum over them, and
/// their table ([`Classes`]). An object of any other class is kept as bytes with its index.
///
/// The head names the enum and the type of the index. `named` lists classes that have a name but
/// no layout; it may be missing. A row has the index, the name in Rust, the name in the protocol's
/// own spelling, the parent and the fields, as [`record!`](crate::record) takes them.
///
/// ```
/// use worldwire_core::{Classes, Field, Reader, Writer, classes, record};
/// record! {
///     /// The common header of all messages.
///     pub struct MessageHeader {
///         /// Who sent it.
///         sender "sender": u32,
///     }
/// }
/// classes! {
///     /// Messages between objects.
///     pub enum Message<'a>: u16;
///     named { 0x0202 "plMessage" in "plCreatable" }
///
///     /// Switches something on or off.
///     0x0254 EnableMsg "plEnableMsg" in "plMessage" {
///         ..message: MessageHeader,
///         /// 0 or 1.
///         enable "enable": u8,
///     }
/// }
/// let bytes = [0x54, 2, 7, 0, 0, 0, 1];
/// let message = Message::decode(&mut Reader::new(&bytes), "message")?;
/// assert!(matches!(&message, Message::EnableMsg(enable) if enable.message.sender == 7));
/// let unknown = Message::decode(&mut Reader::new(&[9, 9, 1, 2, 3]), "message")?;
/// assert_eq!((unknown.class(), unknown.class_name()), (0x0909, None));
/// let mut writer = Writer::new();
/// unknown.encode(&mut writer)?;
/// assert_eq!(writer.as_bytes(), [9, 9, 1, 2, 3]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! classes {
    (
        $(#[doc = $doc:expr])*
        pub enum $enum:ident<$a:lifetime>: $index:ident;
        $(named { $($named:literal $named_name:literal in $named_parent:literal)* })?
        $(
            $(#[doc = $cdoc:expr])*
            $class:literal $name:ident $(<$lt:lifetime>)? $wire:literal in $parent:literal
            { $($fields:tt)* }
        )*
    ) => {
        $(
            $crate::__record! { [$($cdoc)*] $name [$($lt)?] { $($fields)* } }

            impl<$a> From<$name $(<$lt>)?> for $enum<$a> {
                fn from(object: $name $(<$lt>)?) -> Self {
                    Self::$name(object)
                }
            }
        )*

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $enum<$a> {
            $(
                $(#[doc = $cdoc])*
                $name($name $(<$lt>)?),
            )*
            /// An object of a class without a known layout.
            Other($crate::OtherClass<$a>),
        }

        impl<$a> $crate::Classes<$a> for $enum<$a> {
            const NAMES: &'static $crate::Names = &$crate::Names::fixed(&[
                $(($class, $wire),)*
                $($(($named, $named_name),)*)?
            ]);
            const INFO: &'static [$crate::ClassInfo] = &[
                $($crate::ClassInfo {
                    class: $class,
                    name: $wire,
                    parent: $parent,
                    doc: concat!($($cdoc),*),
                    fields: Some(<$name as $crate::Record<'_>>::fields),
                },)*
                $($($crate::ClassInfo {
                    class: $named,
                    name: $named_name,
                    parent: $named_parent,
                    doc: "",
                    fields: None,
                },)*)?
            ];

            fn decode_class<'n, T: $crate::Trace<'n>>(
                class: u32,
                reader: &mut $crate::Reader<$a, T>,
            ) -> $crate::Result<Self> {
                match class {
                    $($class => {
                        let subject = $crate::__subject!(stringify!($enum), $class, $wire, None);
                        let read = <$name $(<$lt>)? as $crate::Record<$a>>::decode_fields;
                        reader.message(subject, read).map(Self::$name)
                    })*
                    _ => {
                        let left = reader.remaining();
                        let bytes = reader.bytes("bytes", left)?;
                        Ok(Self::Other($crate::OtherClass { class, bytes: bytes.into() }))
                    }
                }
            }

            fn encode_class(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                match self {
                    $(Self::$name(object) => $crate::Record::encode_fields(object, writer),)*
                    Self::Other(other) => {
                        writer.bytes(&other.bytes);
                        Ok(())
                    }
                }
            }

            fn class(&self) -> u32 {
                match self {
                    $(Self::$name(_) => $class,)*
                    Self::Other(other) => other.class,
                }
            }
        }

        /// The index of the class, followed by the object.
        impl<$a> $crate::Field<$a> for $enum<$a> {
            type Owned = $enum<'static>;
            const LEAST: usize = size_of::<$index>();

            fn layout() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(concat!(
                    stringify!($index),
                    " class, ",
                    stringify!($enum),
                ))
            }

            fn decode<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<$a, T>,
                name: &'n str,
            ) -> $crate::Result<Self> {
                reader.record(name, |reader| {
                    let class = reader.shown(
                        "class",
                        |reader| reader.take_array().map($index::from_le_bytes),
                        |class| {
                            let names = <Self as $crate::Classes<$a>>::NAMES;
                            $crate::Value::Enum(i64::from(*class), names)
                        },
                    )?;
                    <Self as $crate::Classes<$a>>::decode_class(u32::from(class), reader)
                })
            }

            fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                let class = <Self as $crate::Classes<$a>>::class(self);
                let index = $index::try_from(class).map_err(|_| {
                    $crate::Error::value(
                        concat!("the index of a class (", stringify!($index), ")"),
                        class.to_string(),
                    )
                })?;
                writer.$index(index);
                <Self as $crate::Classes<$a>>::encode_class(self, writer)
            }

            fn from_json(json: $crate::json::Given<'_>) -> $crate::Result<Self> {
                let mut fields = $crate::json::FieldsOf::new(json)?;
                let class = $crate::json::named(
                    fields.take("class")?,
                    <Self as $crate::Classes<$a>>::NAMES,
                )
                .map_err(|error| error.inside("class"))?;
                let object = match class {
                    $($class => {
                        fields.of($crate::__subject!(stringify!($enum), $class, $wire, None));
                        <$name $(<$lt>)? as $crate::Record<$a>>::from_fields(&mut fields)
                            .map(Self::$name)?
                    })*
                    class => {
                        let class = u32::try_from(class).map_err(|_| {
                            $crate::Error::value("the index of a class", class.to_string())
                                .inside("class")
                        })?;
                        let bytes = fields.given("bytes")?.bytes();
                        let bytes = bytes.map_err(|error| error.inside("bytes"))?.into();
                        Self::Other($crate::OtherClass { class, bytes })
                    }
                };
                fields.end()?;
                Ok(object)
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                let rows = <Self as $crate::Classes<$a>>::INFO;
                let row = usize::try_from(sampler.below(rows.len() as u64 + 1)).unwrap_or(0);
                match rows.get(row).map(|row| row.class) {
                    $(Some($class) => Self::$name($crate::Field::sample(sampler)),)*
                    named => {
                        let class = named.unwrap_or_else(|| u32::from($index::MAX));
                        let length = sampler.length(24);
                        let bytes = sampler.bytes(length).into();
                        Self::Other($crate::OtherClass { class, bytes })
                    }
                }
            }

            fn into_owned(self) -> $enum<'static> {
                match self {
                    $(Self::$name(object) => $enum::$name($crate::Field::into_owned(object)),)*
                    Self::Other($crate::OtherClass { class, bytes }) => {
                        let bytes = bytes.into_owned().into();
                        $enum::Other($crate::OtherClass { class, bytes })
                    }
                }
            }
        }
    };
}

/// The message or object that fields belong to, for openers.
#[doc(hidden)]
#[macro_export]
macro_rules! __subject {
    ($connection:expr, $number:expr, $name:expr, $sender:expr) => {
        $crate::opener::Subject {
            connection: $connection,
            number: $number,
            name: $name,
            sender: $sender,
        }
    };
}
