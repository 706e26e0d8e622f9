//! Numbers on the wire whose values or bits have names.

/// Declares a number on the wire whose values have names: a newtype with constants, so that a
/// value nobody documented survives and shows its number.
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

        impl<'d> $crate::Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = size_of::<$type>();

            fn layout() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(concat!(stringify!($type), " ", stringify!($name)))
            }

            #[inline]
            fn decode<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<'d, T>,
                name: &'n str,
            ) -> $crate::Result<Self> {
                reader.shown(
                    name,
                    |reader| reader.take_array().map($type::from_le_bytes).map(Self),
                    |value| $crate::Value::Enum(i64::from(value.0), Self::NAMES),
                )
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                writer.$type(self.0);
                Ok(())
            }

            fn from_json(json: &$crate::json::Json) -> $crate::Result<Self> {
                let number = $crate::json::named(json, Self::NAMES)?;
                $type::try_from(number)
                    .map(Self)
                    .map_err(|_| $crate::json::expected(concat!("a ", stringify!($type)), json))
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

/// Declares a set of flags on the wire: a newtype with constants whose unknown bits survive.
///
/// ```
/// use worldwire_core::{Field, json::Json, wire_flags};
/// wire_flags! {
///     /// What an account may do.
///     pub struct AccountFlags(u32) {
///         /// An administrator.
///         Admin = 1,
///         /// Not let in.
///         Banned = 0x1_0000,
///     }
/// }
/// let flags = AccountFlags::from_json(&serde_json::json!(["Admin", "0x40"]))?;
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

        impl<'d> $crate::Field<'d> for $name {
            type Owned = Self;
            const LEAST: usize = size_of::<$type>();

            fn layout() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(concat!(stringify!($type), " ", stringify!($name)))
            }

            #[inline]
            fn decode<'n, T: $crate::Trace<'n>>(
                reader: &mut $crate::Reader<'d, T>,
                name: &'n str,
            ) -> $crate::Result<Self> {
                reader.shown(
                    name,
                    |reader| reader.take_array().map($type::from_le_bytes).map(Self),
                    |value| $crate::Value::Flags(u64::from(value.0), Self::NAMES),
                )
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer) -> $crate::Result<()> {
                writer.$type(self.0);
                Ok(())
            }

            fn from_json(json: &$crate::json::Json) -> $crate::Result<Self> {
                let bits = $crate::json::flags(json, Self::NAMES)?;
                $type::try_from(bits)
                    .map(Self)
                    .map_err(|_| $crate::json::expected(concat!("a ", stringify!($type)), json))
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
