//! The toy's messages, as in a family crate's `types` and `message`.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{
    Bytes32, Error, Field, Form, Messages, Names, Reader, Result, Sampler, Side, Trace,
    TreeBuilder, Value, Writer, classes, messages, record, scalar, wire_flags,
};

scalar! {
    /// The number of a session.
    pub struct SessionId(u32) as Hex;
}

wire_flags! {
    /// The tone of a message.
    pub struct Moods(u8) {
        /// Loudly.
        Loud = 1,
        /// To one player only.
        Private = 2,
    }
}

/// UTF-8 after a one-byte count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'d>(Cow<'d, [u8]>);

impl<'d> Text<'d> {
    /// Wraps a text.
    pub fn new(text: &'d str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl<'d> Field<'d> for Text<'d> {
    type Owned = Text<'static>;
    const LEAST: usize = 1;

    fn layout() -> Cow<'static, str> {
        "u8 count, text".into()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let [count] = reader.take_array().map_err(|error| error.inside(name))?;
        reader.blob(name, start, count.into(), Form::Utf8).map(|bytes| Self(bytes.into()))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = u8::try_from(self.0.len())
            .map_err(|_| Error::limit("bytes of a text", 255, self.0.len() as u64))?;
        writer.u8(count);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(given: Given<'_>) -> Result<Self> {
        let read = |json: &Json| json::text(json, |text| text.as_bytes().to_vec());
        given.blob(read).map(|bytes| Self(bytes.into()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let text = sampler.text(40);
        // A one-byte count limits the length. Cut at a character boundary.
        let end = (0..=text.len().min(255)).rfind(|end| text.is_char_boundary(*end));
        Self(text.get(..end.unwrap_or(0)).unwrap_or("").as_bytes().to_vec().into())
    }

    fn into_owned(self) -> Text<'static> {
        Text(self.0.into_owned().into())
    }
}

record! {
    /// The first fields of most messages.
    pub struct Head {
        moods "moods": Moods,
        /// The recipient.
        target "target": u16 where moods.contains(Moods::Private),
    }
}

classes! {
    /// A player's action.
    pub enum Action<'a>: u8;
    named { 9 "Fly" in "Action" }

    /// Waves.
    1 Wave "Wave" in "Action" {
        /// 0 is the left hand.
        hand "hand": u8,
    }

    /// Calls a player.
    2 Call<'a> "Call" in "Action" {
        text "text": Text<'a>,
    }
}

messages! {
    /// Messages from a client over TCP.
    pub enum ClientMessage<'a>: "toy", Client;
    reserved { 9 "Mystery" }

    /// Chat.
    1 Say<'a> {
        ..head: Head,
        text "text": Text<'a>,
    }

    /// An action.
    2 Act<'a> {
        ..head: Head,
        action "action": Action<'a>,
    }
}

messages! {
    /// Messages from a server over TCP.
    pub enum ServerMessage<'a>: "toy", Server;

    /// A player's chat.
    1 Heard<'a> {
        who "who": u16,
        text "text": Text<'a>,
    }

    /// The key for the datagrams of a session.
    2 DatagramKey {
        session "session": SessionId,
        key "key": [u8; 4],
    }

    /// Data in another format: flags that a definition file names, and a text.
    3 Parcel<'a> {
        content "content": Bytes32<'a, 256>,
    }
}

messages! {
    /// Messages from a client in datagrams.
    pub enum ClientStep<'a>: "step", Client;

    /// A step by this player.
    1 Step<'a> {
        x "x": i16,
        y "y": i16,
        why "why": Text<'a>,
    }
}

messages! {
    /// Messages from a server in datagrams.
    pub enum ServerStep: "step", Server;

    /// A step by another player.
    1 Moved {
        who "who": u16,
        x "x": i16,
        y "y": i16,
    }
}

/// A message of any of the four tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// From a client over TCP.
    Client(ClientMessage<'a>),
    /// From a server over TCP.
    Server(ServerMessage<'a>),
    /// From a client in a datagram.
    ClientStep(ClientStep<'a>),
    /// From a server in a datagram.
    ServerStep(ServerStep),
    /// A message with an unknown number.
    Unknown(u8, Cow<'a, [u8]>),
}

/// The kind of connection: TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// TCP.
    Stream,
    /// UDP.
    Steps,
}

impl<'a> Message<'a> {
    /// Reads the number and the message after it. The fields of every message are below `fields`,
    /// where filters and JSON lines find them.
    pub fn decode<'n, T: Trace<'n>>(
        channel: Channel,
        side: Side,
        reader: &mut Reader<'a, T>,
    ) -> Result<Self> {
        let number = reader.u8("number")?;
        let of = u32::from(number);
        let known = names(channel, side).name(number.into()).is_some();
        reader.record("fields", |reader| match (channel, side) {
            _ if !known => {
                let left = reader.remaining();
                reader.bytes("payload", left).map(|bytes| Self::Unknown(number, bytes.into()))
            }
            (Channel::Stream, Side::Client) => {
                ClientMessage::decode_body(of, reader).map(Self::Client)
            }
            (Channel::Stream, Side::Server) => {
                ServerMessage::decode_body(of, reader).map(Self::Server)
            }
            (Channel::Steps, Side::Client) => {
                ClientStep::decode_body(of, reader).map(Self::ClientStep)
            }
            (Channel::Steps, Side::Server) => {
                ServerStep::decode_body(of, reader).map(Self::ServerStep)
            }
        })
    }

    /// The number and the fields in wire format.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        let number = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        match self {
            Self::Client(message) => {
                writer.u8(number(message.number()));
                message.encode_body(&mut writer)?;
            }
            Self::Server(message) => {
                writer.u8(number(message.number()));
                message.encode_body(&mut writer)?;
            }
            Self::ClientStep(message) => {
                writer.u8(number(message.number()));
                message.encode_body(&mut writer)?;
            }
            Self::ServerStep(message) => {
                writer.u8(number(message.number()));
                message.encode_body(&mut writer)?;
            }
            Self::Unknown(number, payload) => {
                writer.u8(*number);
                writer.bytes(payload);
            }
        }
        Ok(writer.into_bytes())
    }

    /// Reads the message of this number from the JSON of its fields.
    pub fn from_json(channel: Channel, side: Side, number: u8, fields: Given<'_>) -> Result<Self> {
        let Some(name) = names(channel, side).name(number.into()) else {
            let mut fields = FieldsOf::new(fields)?;
            let payload = fields.given("payload")?.bytes()?;
            fields.end()?;
            return Ok(Self::Unknown(number, payload.into()));
        };
        match (channel, side) {
            (Channel::Stream, Side::Client) => {
                ClientMessage::from_json(name, fields).map(Self::Client)
            }
            (Channel::Stream, Side::Server) => {
                ServerMessage::from_json(name, fields).map(Self::Server)
            }
            (Channel::Steps, Side::Client) => {
                ClientStep::from_json(name, fields).map(Self::ClientStep)
            }
            (Channel::Steps, Side::Server) => {
                ServerStep::from_json(name, fields).map(Self::ServerStep)
            }
        }
    }

    /// A random message that this side sends.
    pub fn sample(channel: Channel, side: Side, sampler: &mut Sampler) -> Self {
        let names = names(channel, side);
        let pick = usize::try_from(sampler.below(names.iter().count() as u64)).unwrap_or(0);
        let number = names.iter().nth(pick).map_or(1, |(number, _)| number);
        let number = u32::try_from(number).unwrap_or(1);
        let made = match (channel, side) {
            (Channel::Stream, Side::Client) => {
                ClientMessage::sample(number, sampler).map(Self::Client)
            }
            (Channel::Stream, Side::Server) => {
                ServerMessage::sample(number, sampler).map(Self::Server)
            }
            (Channel::Steps, Side::Client) => {
                ClientStep::sample(number, sampler).map(Self::ClientStep)
            }
            (Channel::Steps, Side::Server) => {
                ServerStep::sample(number, sampler).map(Self::ServerStep)
            }
        };
        made.unwrap_or_else(|| Self::Unknown(0, (&[]).into()))
    }
}

/// The names of a table's messages.
pub fn names(channel: Channel, side: Side) -> &'static Names {
    match (channel, side) {
        (Channel::Stream, Side::Client) => ClientMessage::NAMES,
        (Channel::Stream, Side::Server) => ServerMessage::NAMES,
        (Channel::Steps, Side::Client) => ClientStep::NAMES,
        (Channel::Steps, Side::Server) => ServerStep::NAMES,
    }
}

/// The user's names for the flags in a parcel. Also opens parcels.
#[derive(Clone, Debug)]
pub struct ParcelFlags(pub Names);

impl Default for ParcelFlags {
    fn default() -> Self {
        Self(Names::from_pairs([(1, "Fragile".into())]))
    }
}

fn is_parcel(site: Site<'_>) -> bool {
    site.message.connection == "toy" && site.message.name == "Parcel" && site.field == "content"
}

impl<'n> Opener<'n> for ParcelFlags {
    fn opens(&self, site: Site<'_>, _: &[u8]) -> bool {
        is_parcel(site)
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        reader.shown(
            "flags",
            |reader| reader.take_array::<1>(),
            |[flags]| Value::Flags(u64::from(*flags), &self.0),
        )?;
        let left = reader.remaining();
        reader.span("label", left, Form::Utf8).map(drop)
    }
}

impl Closer for ParcelFlags {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let (Some(flags), Some(label)) = (json.get("flags"), json.get("label")) else {
            return Ok(None);
        };
        if !is_parcel(site) {
            return Err(Error::value("a parcel", site.field.to_owned()));
        }
        let flags = json::flags(flags, &self.0).map_err(|error| error.inside("flags"))?;
        let flags = u8::try_from(flags)
            .map_err(|_| Error::value("flags of 8 bits", flags.to_string()).inside("flags"))?;
        let mut bytes = vec![flags];
        bytes.extend(json::text(label, |text| text.as_bytes().to_vec())?);
        Ok(Some(bytes))
    }
}
