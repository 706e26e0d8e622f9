//! Single-value types: numbers whose values or bits have names, and other newtypes.

/// Declares a number on the wire whose values have names: a newtype with constants, so that an
/// undocumented value survives and shows its number.
///
/// ```
/// use worldwire_core::{Field, Reader, wire_enum};
/// wire_enum! {
///     /// Who the client was built for.
///     pub enum BuildType(u32) {
///         /// Development.
///         Dev = 10,
///         /// Live.
///         Live = 50,
///     }
/// }
/// let build = BuildType::decode(&mut Reader::new(&[50, 0, 0, 0]), "buildType")?;
/// assert_eq!(build, BuildType::Live);
/// assert_eq!(BuildType(11).name(), None);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($type:ident) {
            $($(#[$vmeta:meta])* $variant:ident = $value:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub $type);

        #[allow(non_upper_case_globals, reason = "the names are the protocol's own")]
        impl $name {
            $($(#[$vmeta])* pub const $variant: Self = Self($value);)*

            /// All names with their numbers.
            pub const NAMES: &'static $crate::Names =
                &$crate::Names::fixed(&[$(($value, stringify!($variant))),*]);

            /// The name, if the value has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                Self::NAMES.name(i64::from(self.0))
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({})", self.0),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        $crate::__number! {
            $name($type): concat!(stringify!($type), " ", stringify!($name)),
            $crate::Shape::Enum {
                bytes: size_of::<$type>(),
                is_signed: $type::MIN != 0,
                names: Self::NAMES,
            },
            |value| $crate::Value::Enum(i64::from(value), Self::NAMES),
            |json| $crate::json::named(json, Self::NAMES)
        }
    };
}

/// Declares a set of flags on the wire: a newtype with constants whose unknown bits survive.
///
/// ```
/// use worldwire_core::{Field, json::Json, wire_flags};
/// wire_flags! {
///     /// What an account may do.
///     pub struct AccountFlags(u32) {
///         /// An administrator.
///         Admin = 1,
///         /// Banned.
///         Banned = 0x1_0000,
///     }
/// }
/// let flags = AccountFlags::from_json((&worldwire_core::json::json!(["Admin", "0x40"])).into())?;
/// assert_eq!(flags, AccountFlags(0x41));
/// assert!(flags.contains(AccountFlags::Admin));
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! wire_flags {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($type:ident) {
            $($(#[$vmeta:meta])* $flag:ident = $value:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $type);

        #[allow(non_upper_case_globals, reason = "the names are the protocol's own")]
        impl $name {
            $($(#[$vmeta])* pub const $flag: Self = Self($value);)*

            /// All flags with their names.
            pub const NAMES: &'static $crate::Names =
                &$crate::Names::fixed(&[$(($value, stringify!($flag))),*]);

            /// Whether all bits of the other set are in this one.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl ::core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        $crate::__number! {
            $name($type): concat!(stringify!($type), " ", stringify!($name)),
            $crate::Shape::Flags(size_of::<$type>(), Self::NAMES),
            |value| $crate::Value::Flags(u64::from(value), Self::NAMES),
            |json| $crate::json::flags(json, Self::NAMES)
        }
    };
}

/// Declares a single-value type: a newtype over an unsigned number (`as Hex` shows it in
/// hexadecimal), or over bytes that are shown as text.
///
/// ```
/// use std::net::Ipv4Addr;
/// use worldwire_core::{Field, Form, Reader, scalar};
/// scalar! {
///     /// Which request a reply belongs to.
///     pub struct TransId(u32);
/// }
/// scalar! {
///     /// An address, as a little-endian number.
///     #[derive(Debug)]
///     pub struct Address(Ipv4Addr): [u8; 4] as Form::Ipv4, "an address such as 127.0.0.1";
///     read |bytes| Ipv4Addr::from(u32::from_le_bytes(bytes));
///     write |address| u32::from(address).to_le_bytes();
///     parse |text| text.parse().ok();
/// }
/// let bytes = [5, 0, 0, 0, 1, 0, 0, 127];
/// let mut reader = Reader::new(&bytes);
/// assert_eq!(TransId::decode(&mut reader, "transId")?, TransId(5));
/// let address = Address::decode(&mut reader, "address")?;
/// assert_eq!(address.0, Ipv4Addr::LOCALHOST);
/// assert_eq!(Address::from_json((&worldwire_core::json::json!("127.0.0.1")).into())?, address);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! scalar {
    ($(#[$meta:meta])* pub struct $name:ident($type:ident);) => {
        $crate::scalar! { $(#[$meta])* pub struct $name($type) as Unsigned; }
    };
    ($(#[$meta:meta])* pub struct $name:ident($type:ident) as $shape:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub $type);

        impl From<$type> for $name {
            fn from(number: $type) -> Self {
                Self(number)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        $crate::__number! {
            $name($type): concat!(stringify!($type), " ", stringify!($name)),
            $crate::Shape::$shape(size_of::<$type>()),
            |value| $crate::Value::$shape(u64::from(value)),
            |json| $crate::json::unsigned(json)
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident($type:ty): [u8; $size:literal] as $form:expr, $wanted:literal;
        read |$bytes:ident| $read:expr;
        write |$value:ident| $write:expr;
        parse |$text:ident| $parse:expr;
        $(sample |$sampler:ident| $sample:expr;)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $type);

        impl $name {
            /// Parses its text form.
            #[must_use]
            pub fn parse($text: &str) -> Option<Self> {
                $parse.map(Self)
            }
        }

        impl<'d> $crate::Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = $size;

            fn layout() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Owned(stringify!($name).to_lowercase())
            }

            fn shape() -> $crate::Shape {
                $crate::Shape::Fixed($form, $size)
            }

            #[inline]
            fn decode<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<'d, T>,
                name: &'n str,
            ) -> $crate::Result<Self> {
                let start = reader.place_if_on();
                let $bytes: [u8; $size] =
                    reader.take_array().map_err(|error| error.inside(name))?;
                let span = reader.span_behind($form, $size);
                reader.leaf_from(name, start, span);
                Ok(Self($read))
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                let $value = self.0;
                let bytes: [u8; $size] = $write;
                writer.bytes(&bytes);
                Ok(())
            }

            fn from_json(json: $crate::json::Given<'_>) -> $crate::Result<Self> {
                json.as_str()
                    .and_then(Self::parse)
                    .ok_or_else(|| $crate::json::expected($wanted, &json))
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                $(
                    let $sampler = &mut *sampler;
                    if let Some(value) = $sample {
                        return Self(value);
                    }
                )?
                let $bytes: [u8; $size] = $crate::Field::sample(sampler);
                Self($read)
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    };
}

/// The common part of named numbers, flags and newtypes of numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! __number {
    (
        $name:ident($type:ident): $layout:expr, $shape:expr,
        |$value:ident| $show:expr, |$json:ident| $read:expr
    ) => {
        impl<'d> $crate::Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = size_of::<$type>();

            fn layout() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed($layout)
            }

            fn shape() -> $crate::Shape {
                $shape
            }

            #[inline]
            fn decode<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<'d, T>,
                name: &'n str,
            ) -> $crate::Result<Self> {
                reader.shown(
                    name,
                    |reader| reader.take_array().map($type::from_le_bytes).map(Self),
                    |Self($value)| {
                        let $value = *$value;
                        $show
                    },
                )
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                writer.$type(self.0);
                Ok(())
            }

            fn from_json(json: $crate::json::Given<'_>) -> $crate::Result<Self> {
                let $json = json.json();
                let number = $read?;
                $type::try_from(number)
                    .map(Self)
                    .map_err(|_| $crate::json::expected(concat!("a ", stringify!($type)), $json))
            }

            fn sample(sampler: &mut $crate::Sampler) -> Self {
                Self($crate::Field::sample(sampler))
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    };
}
