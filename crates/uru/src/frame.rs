//! Framing: how message numbers and fields are encoded.
//!
//! | connection | header |
//! | --- | --- |
//! | gatekeeper, auth, game | `u16` message number; no length field |
//! | file | `u32` byte count of the whole message, including this header; `u32` message number |
//!
//! Most messages have no length field, so a receiver cannot skip a message with an unknown number.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Messages, Names, Reader, Result, Sampler, Side, Trace, Value, Writer};

use crate::message::{auth, file, game, gatekeeper};
use crate::types::ClassIndex;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Addresses of the other servers.
    Gatekeeper,
    /// Accounts, players, the vault.
    Auth,
    /// An age instance.
    Game,
    /// Manifests and downloads.
    File,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 4] = [Self::Gatekeeper, Self::Auth, Self::Game, Self::File];

    /// The prefix of message names: `auth`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gatekeeper => "gatekeeper",
            Self::Auth => "auth",
            Self::Game => "game",
            Self::File => "file",
        }
    }

    /// The service with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    /// Whether connections are encrypted after setup: all except file connections.
    #[must_use]
    pub const fn is_encrypted(self) -> bool {
        !matches!(self, Self::File)
    }
}

/// The maximum size of a client's message on a file connection; no known message exceeds 536 bytes.
const MAX_FILE_CLIENT_BYTES: u32 = 4096;
/// The maximum size of a server's message on a file connection: a full manifest.
const MAX_FILE_SERVER_BYTES: u32 = 28 + 2 * 1_048_576;
const FILE_HEAD_BYTES: u32 = 8;

macro_rules! services {
    ($($variant:ident: $service:ident, $side:ident, $at:ident::$part:ident::$messages:ident;)*) => {
        /// A message of any service and side.
        ///
        /// The struct of a message converts to the enum of its service and side, and that enum to
        /// this one: `ServerMessage::from(reply).into()`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message<'d> {$(
            #[doc = concat!(
                "A message from the ", stringify!($part), " on a connection of the ",
                stringify!($at), " service."
            )]
            $variant($at::$part::$messages<'d>),
        )*}

        impl<'d> Message<'d> {
            /// The service that the message belongs to.
            #[must_use]
            pub fn service(&self) -> Service {
                match self {
                    $(Self::$variant(_) => Service::$service,)*
                }
            }

            /// The sending side.
            #[must_use]
            pub fn sender(&self) -> Side {
                match self {
                    $(Self::$variant(_) => Side::$side,)*
                }
            }

            /// The message number.
            #[must_use]
            pub fn number(&self) -> u32 {
                match self {
                    $(Self::$variant(message) => message.number(),)*
                }
            }

            /// The name, as spelled by the protocol.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(message) => message.name(),)*
                }
            }

            /// Copies borrowed parts.
            #[must_use]
            pub fn into_owned(self) -> Message<'static> {
                match self {
                    $(Self::$variant(message) => Message::$variant(message.into_owned()),)*
                }
            }

            /// Generates a message with this number; returns `None` if there is no such message.
            #[must_use]
            pub fn sample(
                service: Service,
                sender: Side,
                number: u32,
                sampler: &mut Sampler,
            ) -> Option<Self> {
                match (service, sender) {
                    $((Service::$service, Side::$side) => {
                        Messages::sample(number, sampler).map(Self::$variant)
                    })*
                }
            }

            fn decode_body<'n, T: Trace<'n>>(
                service: Service,
                sender: Side,
                number: u32,
                reader: &mut Reader<'d, T>,
            ) -> Result<Self> {
                match (service, sender) {
                    $((Service::$service, Side::$side) => {
                        Messages::decode_body(number, reader).map(Self::$variant)
                    })*
                }
            }

            fn body_from_json(
                service: Service,
                sender: Side,
                name: &str,
                fields: Given<'_>,
            ) -> Result<Self> {
                match (service, sender) {
                    $((Service::$service, Side::$side) => {
                        Messages::from_json(name, fields).map(Self::$variant)
                    })*
                }
            }

            fn encode_body(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$variant(message) => message.encode_body(writer),)*
                }
            }
        }

        /// The messages that one side sends on connections of one service.
        #[must_use]
        pub fn table(service: Service, sender: Side) -> Table {
            match (service, sender) {
                $((Service::$service, Side::$side) => Table {
                    names: <$at::$part::$messages<'static>>::NAMES,
                    messages: <$at::$part::$messages<'static>>::INFO,
                    reserved: <$at::$part::$messages<'static>>::RESERVED,
                },)*
            }
        }

        $(
            impl<'d> From<$at::$part::$messages<'d>> for Message<'d> {
                fn from(message: $at::$part::$messages<'d>) -> Self {
                    Self::$variant(message)
                }
            }
        )*
    };
}

services! {
    GatekeeperClient: Gatekeeper, Client, gatekeeper::client::ClientMessage;
    GatekeeperServer: Gatekeeper, Server, gatekeeper::server::ServerMessage;
    AuthClient: Auth, Client, auth::client::ClientMessage;
    AuthServer: Auth, Server, auth::server::ServerMessage;
    GameClient: Game, Client, game::client::ClientMessage;
    GameServer: Game, Server, game::server::ServerMessage;
    FileClient: File, Client, file::client::ClientMessage;
    FileServer: File, Server, file::server::ServerMessage;
}

/// The messages that one side sends on connections of one service.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// All names, by message number.
    pub names: &'static Names,
    /// All messages with a known layout.
    pub messages: &'static [worldwire_core::MessageInfo],
    /// Numbers with a name but without a known layout.
    pub reserved: &'static [(u32, &'static str)],
}

impl<'d> Message<'d> {
    /// Decodes one message with its header. A trace contains `name` (spanning the header) and
    /// `fields`.
    ///
    /// # Errors
    /// `Incomplete` if bytes are missing, `Malformed` for an unknown number or a wrong byte count,
    /// or a limit error from a field. All errors carry the message's name.
    #[inline]
    pub fn decode<'n, T: Trace<'n>>(
        service: Service,
        sender: Side,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        if service == Service::File {
            return Self::decode_file(sender, reader);
        }
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let number = reader.take_array().map(u16::from_le_bytes).map(u32::from);
        let number = number.map_err(|error| error.inside("name"))?;
        Self::name_leaf(service, sender, number, start, reader);
        Self::decode_fields(service, sender, number, at, reader)
    }

    fn decode_file<'n, T: Trace<'n>>(sender: Side, reader: &mut Reader<'d, T>) -> Result<Self> {
        let service = Service::File;
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let count = reader.take_array().map(u32::from_le_bytes);
        let count = count.map_err(|error| error.inside("name"))?;
        if count < FILE_HEAD_BYTES {
            let error = Error::malformed("a byte count of at least 8", count.to_string());
            return Err(error.at(at).about("file message"));
        }
        let max = max_file_bytes(sender);
        if count > max {
            let error = Error::limit("bytes of a file message", max.into(), count.into());
            return Err(error.at(at).about("file message"));
        }
        let number = reader.take_array().map(u32::from_le_bytes);
        let number = number.map_err(|error| error.inside("name"))?;
        if table(service, sender).names.name(i64::from(number)).is_none() {
            // The length is known, but the meaning of the message is not.
            return Self::decode_fields(service, sender, number, at + 4, reader);
        }
        Self::name_leaf(service, sender, number, start, reader);
        let body = (count - FILE_HEAD_BYTES) as usize;
        let subject = || subject(service, sender, number);
        reader
            .part(body, |reader| Self::decode_fields(service, sender, number, at + 4, reader))
            .map_err(|error| error.about(subject()))
    }

    #[inline]
    fn name_leaf<'n, T: Trace<'n>>(
        service: Service,
        sender: Side,
        number: u32,
        start: worldwire_core::Place,
        reader: &mut Reader<'d, T>,
    ) {
        if T::ON {
            let names = table(service, sender).names;
            reader.leaf_from("name", start, Value::Enum(i64::from(number), names));
        }
    }

    #[inline]
    fn decode_fields<'n, T: Trace<'n>>(
        service: Service,
        sender: Side,
        number: u32,
        at: u64,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let start = reader.place_if_on();
        // The scope of the fields is for traces only; errors name the message instead.
        let outcome = if T::ON {
            reader.scope_from("fields", Value::Record, start, |reader| {
                Self::decode_body(service, sender, number, reader)
            })
        } else {
            Self::decode_body(service, sender, number, reader)
                .map_err(|error| error.inside("fields"))
        };
        outcome.map_err(|error| error.at(at).about(subject(service, sender, number)))
    }

    /// Encodes the message with its header.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let outcome = if self.service() == Service::File {
            let count = writer.reserve::<4>();
            writer.u32(self.number());
            self.encode_body(writer).map(|()| {
                // The body of a file message is at most 2 MiB long.
                let length = u32::try_from(writer.since(count) + 4).unwrap_or(u32::MAX);
                writer.patch(count, length.to_le_bytes());
            })
        } else {
            writer.u16(u16::try_from(self.number()).unwrap_or(u16::MAX));
            self.encode_body(writer)
        };
        outcome.map_err(|error| {
            error.inside("fields").about(format!("{}.{}", self.service().name(), self.name()))
        })
    }

    /// The encoded message, with its header.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Converts the JSON form of a decoded message:
    /// `{"name": "AcctLoginRequest", "fields": {...}}`.
    pub fn from_json<'j>(
        service: Service,
        sender: Side,
        json: impl Into<Given<'j>>,
    ) -> Result<Self> {
        let mut parts = FieldsOf::new(json)?;
        let name = parts.take("name")?;
        let fields = parts.given("fields")?;
        parts.end()?;
        let Some(name) = name.as_str() else {
            let error = worldwire_core::json::expected("the name of a message", name);
            return Err(error.inside("name"));
        };
        let is_opened = fields.get("buffer").is_some_and(|buffer| buffer.get("message").is_some());
        Self::body_from_json(service, sender, name, fields)
            .and_then(|message| if is_opened { message.of_one_class() } else { Ok(message) })
            .map_err(|error| error.inside("fields").about(format!("{}.{name}", service.name())))
    }

    /// Refuses a net message whose class was changed in only one of the two places where it is
    /// encoded.
    fn of_one_class(self) -> Result<Self> {
        let (outer, buffer) = match &self {
            Self::GameClient(game::client::ClientMessage::PropagateBuffer(message)) => {
                (message.type_, &*message.buffer)
            }
            Self::GameServer(game::server::ServerMessage::PropagateBuffer(message)) => {
                (message.type_, &*message.buffer)
            }
            _ => return Ok(self),
        };
        let inner = buffer.first_chunk().map(|head| ClassIndex(u16::from_le_bytes(*head).into()));
        match inner {
            Some(inner) if inner != outer => {
                let wanted = format!("{inner}, the class of buffer.message");
                Err(Error::value(wanted, outer.to_string()).inside("type"))
            }
            _ => Ok(self),
        }
    }
}

/// Whether the header shows that no message begins here. [`Message::decode`] fails on such bytes
/// too, but only after it has built an error, which is too slow for a search at every offset.
#[inline]
pub(crate) fn cannot_begin(service: Service, sender: Side, bytes: &[u8]) -> bool {
    if service == Service::File
        && let Some(count) = bytes.first_chunk().map(|head| u32::from_le_bytes(*head))
        && !(FILE_HEAD_BYTES..=max_file_bytes(sender)).contains(&count)
    {
        return true;
    }
    number(service, bytes)
        .is_some_and(|number| table(service, sender).names.name(number.into()).is_none())
}

/// The maximum size of a message on a file connection.
const fn max_file_bytes(sender: Side) -> u32 {
    match sender {
        Side::Client => MAX_FILE_CLIENT_BYTES,
        Side::Server => MAX_FILE_SERVER_BYTES,
    }
}

/// The message number at the beginning of the bytes.
pub(crate) fn number(service: Service, bytes: &[u8]) -> Option<u32> {
    if service == Service::File {
        bytes.get(4..)?.first_chunk().map(|head| u32::from_le_bytes(*head))
    } else {
        bytes.first_chunk().map(|head| u32::from(u16::from_le_bytes(*head)))
    }
}

#[cold]
fn subject(service: Service, sender: Side, number: u32) -> String {
    let table = table(service, sender);
    let reserved = || table.reserved.iter().find(|row| row.0 == number).map(|row| row.1);
    match table.names.name(i64::from(number)).or_else(reserved) {
        Some(name) => format!("{}.{name}", service.name()),
        None => format!("{} message from the {sender}", service.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::ErrorKind;

    #[test]
    fn file_messages_must_match_their_byte_count() {
        let decode = |bytes: &[u8]| {
            Message::decode(Service::File, Side::Client, &mut Reader::new(bytes))
                .map(Message::into_owned)
        };
        let ping = [12, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(decode(&ping).unwrap().name(), "PingRequest");
        let short = [11, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        assert_eq!(decode(&short).unwrap_err().kind(), ErrorKind::Malformed);
        let long = [13, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5];
        let error = decode(&long).unwrap_err();
        assert_eq!(
            error.to_string(),
            "file.PingRequest: at byte 12: wanted the end, found 1 more byte"
        );
        let huge = [0xff, 0xff, 0xff, 0x7f, 20, 0, 0, 0];
        assert!(matches!(decode(&huge).unwrap_err().kind(), ErrorKind::Limit { .. }));
    }

    #[test]
    fn headers_without_a_message_are_those_that_cannot_be_decoded() {
        let mut refused = 0;
        for service in Service::ALL {
            for sender in Side::BOTH {
                for count in [0, 7, 8, 12, 4096, 4097, 2_097_180, 2_097_181, u32::MAX] {
                    for number in 0..=300_u16 {
                        let mut bytes = count.to_le_bytes().to_vec();
                        bytes.extend(u32::from(number).to_le_bytes());
                        bytes.extend([0xa5; 64]);
                        if service != Service::File {
                            bytes.splice(..8, number.to_le_bytes());
                        }
                        for end in 0..=bytes.len().min(10) {
                            let decoded =
                                Message::decode(service, sender, &mut Reader::new(&bytes[..end]));
                            let fails = decoded.is_err_and(|error| error.needed().is_none());
                            let cannot = cannot_begin(service, sender, &bytes[..end]);
                            assert!(
                                !cannot || fails,
                                "{service:?} {sender} {count} {number} {end}"
                            );
                            refused += usize::from(cannot);
                        }
                    }
                }
            }
        }
        assert!(refused > 100_000, "{refused}");
    }

    #[test]
    fn reserved_numbers_are_reported_by_name() {
        let error = Message::decode(Service::Auth, Side::Client, &mut Reader::new(&[4, 0]))
            .map(Message::into_owned)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "auth.AcctSetEulaVersion: fields at byte 0: wanted the number of a client \
             message, found 4 (AcctSetEulaVersion), which is reserved: its layout is unknown"
        );
    }
}
