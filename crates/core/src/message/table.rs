//! Tables of messages.

/// Declares the messages that one side sends on one kind of connection: a struct for each, an
/// enum over them, and their table ([`Messages`](crate::Messages)).
///
/// The head names the enum, the connection and the sender; `reserved`, which may be missing, lists
/// numbers that have a name but no known layout. A message that borrows text or bytes carries the
/// lifetime of the enum; where no message borrows anything, the enum has none either. A row without
/// fields, `3 Name<'a>;`, adds an existing struct: any [`Record`](crate::Record).
///
/// ```
/// use worldwire_core::{Bytes32, Messages, Reader, messages};
/// messages! {
///     /// Messages from a client.
///     pub enum ClientMessage<'a>: "game", Client;
///     reserved { 7 "Mystery" }
///
///     /// Keep-alive.
///     0 PingRequest {
///         /// The client's clock in milliseconds.
///         ping_time_ms "pingTimeMs": u32,
///     }
///
///     /// A message for everybody in the age.
///     2 PropagateBuffer<'a> {
///         type_ "type": u32,
///         buffer "buffer": Bytes32<'a, 1024>,
///     }
/// }
/// let message = ClientMessage::decode_body(0, &mut Reader::new(&[1, 2, 0, 0]))?;
/// assert_eq!(message, ClientMessage::PingRequest(PingRequest { ping_time_ms: 513 }));
/// messages! {
///     /// Messages from a server.
///     pub enum ServerMessage: "game", Server;
///
///     /// Closes the connection.
///     1 Leave { reason "reason": u8, }
/// }
/// assert_eq!(ServerMessage::from_json("Leave", &worldwire_core::json::json!({"reason": 2}))?.number(), 1);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[macro_export]
macro_rules! messages {
    (
        $(#[doc = $doc:expr])*
        pub enum $enum:ident<$a:lifetime>: $($rest:tt)*
    ) => {
        $crate::__messages! {
            [$($doc)*] $enum [$a] [$a] [$enum<$a>] [$enum<'static>] $($rest)*
        }
    };
    (
        $(#[doc = $doc:expr])*
        pub enum $enum:ident: $($rest:tt)*
    ) => {
        $crate::__messages! { [$($doc)*] $enum [] ['d_] [$enum] [$enum] $($rest)* }
    };
}

/// The struct of a message, unless it already exists.
#[doc(hidden)]
#[macro_export]
macro_rules! __message_struct {
    ([$($doc:expr)*] $name:ident [$($lt:lifetime)?]) => {};
    ([$($doc:expr)*] $name:ident [$($lt:lifetime)?] { $($fields:tt)* }) => {
        $crate::__record! { [$($doc)*] $name [$($lt)?] { $($fields)* } }
    };
}

/// The expansion of [`messages!`](crate::messages). Takes the enum's name, its lifetime if it has
/// one, a lifetime to use even if it has none, its type, and its owned type.
#[doc(hidden)]
#[macro_export]
macro_rules! __messages {
    (
        [$($doc:expr)*] $enum:ident [$($b:lifetime)?] [$a:lifetime] [$self:ty] [$owned:ty]
        $connection:literal, $sender:ident;
        $(reserved { $($reserved:literal $reserved_name:literal)* })?
        $(
            $(#[doc = $mdoc:expr])*
            $number:literal $name:ident $(<$lt:lifetime>)? $({ $($fields:tt)* })? $(;)?
        )*
    ) => {
        $(
            $crate::__message_struct! { [$($mdoc)*] $name [$($lt)?] $({ $($fields)* })? }

            #[allow(clippy::extra_unused_lifetimes, reason = "the enum may borrow nothing")]
            impl<$a> From<$name $(<$lt>)?> for $self {
                fn from(message: $name $(<$lt>)?) -> Self {
                    Self::$name(message)
                }
            }
        )*

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $enum $(<$b>)? {
            $(
                $(#[doc = $mdoc])*
                $name($name $(<$lt>)?),
            )*
        }

        impl<$a> $crate::Messages<$a> for $self {
            type Owned = $owned;
            const CONNECTION: &'static str = $connection;
            const SENDER: $crate::Side = $crate::Side::$sender;
            const RESERVED: &'static [(u32, &'static str)] =
                &[$($(($reserved, $reserved_name)),*)?];
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
                        let subject = $crate::__subject!(
                            $connection,
                            $number,
                            stringify!($name),
                            Some($crate::Side::$sender)
                        );
                        let read = <$name $(<$lt>)? as $crate::Record<$a>>::decode_fields;
                        reader.message(subject, read).map(Self::$name)
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

            fn from_json<'j>(
                name: &str,
                fields: impl Into<$crate::json::Given<'j>>,
            ) -> $crate::Result<Self> {
                let fields = fields.into();
                match name {
                    $(stringify!($name) => {
                        let subject = $crate::__subject!(
                            $connection,
                            $number,
                            stringify!($name),
                            Some($crate::Side::$sender)
                        );
                        <$name $(<$lt>)? as $crate::Field<$a>>::from_json(fields.of(subject))
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

            fn into_owned(self) -> $owned {
                match self {
                    $(Self::$name(message) => {
                        $enum::$name($crate::Field::into_owned(message))
                    })*
                }
            }
        }
    };
}
