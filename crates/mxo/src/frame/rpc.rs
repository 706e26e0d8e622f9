//! MPM 04: lists of reliable messages.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Error, Field as _, Form, Names, Reader, Result, Sampler, Side, Trace, Value, Writer,
};

use crate::rpc;

/// The maximum size of a message in bytes: the length field has 15 bits.
pub const MAX_RPC_BYTES: usize = 0x7fff;

/// Consecutively numbered messages. If a packet is not acknowledged, its messages are sent again, in
/// the same lists or in others.
///
/// | field | type | |
/// | --- | --- | --- |
/// | `firstSeq` | `u16`, big-endian | the number of the first message; each direction counts from 0 |
/// | `count` | `u8` | |
/// | `messages` | [`RpcMessage`] each | |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcList<'d> {
    /// The number of the first message.
    pub first: u16,
    /// The messages.
    pub messages: Vec<RpcMessage<'d>>,
}

/// A reliable message.
///
/// | field | type | |
/// | --- | --- | --- |
/// | `length` | `u8` below 0x80; else `u16`, big-endian, with the top bit set | bytes of the body |
/// | `opcode` | `u8` below 0x80; else `u16`, big-endian | begins the body |
/// | `fields` | record | the rest of the body, if it matches the opcode's layout: see [`rpc`] |
/// | `data` | bytes | otherwise, the rest of the body |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcMessage<'d> {
    /// Whether the length takes two bytes although one would be enough.
    pub is_long: bool,
    /// Opcode and data, at least one byte.
    pub body: Cow<'d, [u8]>,
}

/// The opcode, without data, with which this project's clients announce that they are leaving. This
/// project's server then removes the character immediately. The game is not known to have such a
/// message: its clients just stop sending.
pub const LEAVE: u16 = 0xffff;

/// The known names of opcodes sent by clients.
pub static CLIENT_RPCS: Names = Names::fixed(&[
    (0x05, "ReadyForSpawn"),
    (0x28, "Chat"),
    (0x29, "Whisper"),
    (0x30, "Emote"),
    (0x33, "StopAnimation"),
    (0x34, "StartAnimation"),
    (0x35, "Mood"),
    (0x40, "CombatStart"),
    (0x44, "CombatEnd"),
    (0x6c, "HardlineStatus"),
    (0x80ae, "LoadAbilities"),
    (0x80b9, "UseAbility"),
    (0x80c2, "Jump"),
    (0x80c4, "HyperjumpEnd"),
    (0x80c7, "UseView"),
    (0x80c8, "ObjectInteraction"),
    (0x80c9, "RegionLoaded"),
    (0x80fc, "LeaveWorld"),
    (0x80fe, "JackOutFinished"),
    (0x8108, "ReadyForNewWorld"),
    (0x8151, "Target"),
    (0x8152, "Who"),
    (0x8154, "WhereAmI"),
    (0x818e, "HardlineTeleport"),
    (0x8192, "PlayerDetails"),
    (0x8194, "OwnBackground"),
    (0x8196, "SetBackground"),
    (0xffff, "Leave"),
]);

/// The known names of opcodes sent by servers.
pub static SERVER_RPCS: Names = Names::fixed(&[
    (0x06, "LoadWorld"),
    (0x2e, "ChatMessage"),
    (0x3a, "ServerOption"),
    (0x7c, "Crew"),
    (0x80b2, "Attribute"),
    (0x80b3, "AttributeGone"),
    (0x80bc, "Ability"),
    (0x80d7, "Friend"),
    (0x80e4, "Info"),
    (0x80e5, "Experience"),
    (0x80e6, "ExperienceGained"),
    (0x80fd, "JackOutDone"),
    (0x8107, "LeaveWorld"),
    (0x8108, "NewWorld"),
    (0x8109, "LoadingArea"),
    (0x813a, "Subway"),
    (0x8154, "YouAreHere"),
    (0x8195, "Background"),
    (0x81a9, "Page"),
]);

static NO_NAMES: Names = Names::fixed(&[]);

/// The names of a side's opcodes; empty if the side is unknown.
#[must_use]
pub(crate) fn rpc_names(from: Option<Side>) -> &'static Names {
    match from {
        Some(Side::Client) => &CLIENT_RPCS,
        Some(Side::Server) => &SERVER_RPCS,
        None => &NO_NAMES,
    }
}

/// Reads the lists of a section, after its ID: the number of lists, then the lists.
pub(crate) fn decode_lists<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    from: Option<Side>,
) -> Result<Vec<RpcList<'d>>> {
    let start = reader.place_if_on();
    let count = reader.take_array::<1>().map_err(|error| error.inside("lists"))?[0];
    reader.scope_from("lists", Value::List, start, |reader| {
        let mut lists = Vec::with_capacity(reader.capacity(count.into(), 255, 3)?);
        for index in 0..usize::from(count) {
            let read = |reader: &mut Reader<'d, T>| RpcList::decode(reader, from);
            lists.push(reader.item(index, |reader| reader.record("", read))?);
        }
        Ok(lists)
    })
}

pub(super) fn encode_lists(lists: &[RpcList<'_>], writer: &mut Writer) -> Result<()> {
    writer.u8(count_of(lists.len(), "RPC lists")?);
    lists.iter().enumerate().try_for_each(|(index, list)| {
        list.encode(writer).map_err(|error| error.inside_item(index).inside("lists"))
    })
}

fn count_of(count: usize, limit: &'static str) -> Result<u8> {
    u8::try_from(count).map_err(|_| Error::limit(limit, 255, count as u64))
}

impl<'d> RpcList<'d> {
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, from: Option<Side>) -> Result<Self> {
        let first = reader.shown(
            "firstSeq",
            |reader| reader.take_array().map(u16::from_be_bytes),
            |number| Value::Unsigned(u64::from(*number)),
        )?;
        let start = reader.place_if_on();
        let count = reader.take_array::<1>().map_err(|error| error.inside("messages"))?[0];
        let messages = reader.scope_from("messages", Value::List, start, |reader| {
            let mut messages = Vec::with_capacity(reader.capacity(count.into(), 255, 2)?);
            for index in 0..usize::from(count) {
                let read = |reader: &mut Reader<'d, T>| RpcMessage::decode(reader, from);
                messages.push(reader.item(index, |reader| reader.record("", read))?);
            }
            Ok(messages)
        })?;
        Ok(Self { first, messages })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.first.to_be_bytes());
        writer.u8(count_of(self.messages.len(), "messages of an RPC list")?);
        self.messages.iter().enumerate().try_for_each(|(index, message)| {
            message.encode(writer).map_err(|error| error.inside_item(index).inside("messages"))
        })
    }

    fn from_json(json: Given<'_>, from: Option<Side>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let first = if fields.has("firstSeq") { fields.value("firstSeq")? } else { 0 };
        let messages = list(fields.given("messages")?, |json| RpcMessage::from_json(json, from))
            .map_err(|error| error.inside("messages"))?;
        fields.end()?;
        Ok(Self { first, messages })
    }

    /// Each message with its number.
    pub fn numbered(&self) -> impl Iterator<Item = (u16, &RpcMessage<'d>)> {
        let numbers = (0..=u16::MAX).map(|index| self.first.wrapping_add(index));
        numbers.zip(&self.messages)
    }

    fn into_owned(self) -> RpcList<'static> {
        let messages = self.messages.into_iter().map(RpcMessage::into_owned).collect();
        RpcList { first: self.first, messages }
    }

    fn sample(sampler: &mut Sampler) -> RpcList<'static> {
        let count = sampler.length(4);
        RpcList {
            first: u16::sample(sampler),
            messages: (0..count).map(|_| RpcMessage::sample(sampler)).collect(),
        }
    }
}

pub(super) fn lists_from_json(
    json: Given<'_>,
    from: Option<Side>,
) -> Result<Vec<RpcList<'static>>> {
    list(json, |json| RpcList::from_json(json, from).map(RpcList::into_owned))
}

pub(super) fn lists_into_owned(lists: Vec<RpcList<'_>>) -> Vec<RpcList<'static>> {
    lists.into_iter().map(RpcList::into_owned).collect()
}

pub(super) fn sample_lists(sampler: &mut Sampler) -> Vec<RpcList<'static>> {
    let count = sampler.length(3);
    (0..count).map(|_| RpcList::sample(sampler)).collect()
}

/// The elements of a JSON array.
pub(super) fn list<R>(json: Given<'_>, read: impl Fn(Given<'_>) -> Result<R>) -> Result<Vec<R>> {
    let items = json.as_array().ok_or_else(|| json::expected("an array", &json))?;
    let item = |(index, item)| read(json.at(item)).map_err(|error| error.inside_item(index));
    items.iter().enumerate().map(item).collect()
}

impl<'d> RpcMessage<'d> {
    /// A message with this opcode, which is below 0x80 or at least 0x8000.
    #[must_use]
    pub fn new(opcode: u16, data: &[u8]) -> RpcMessage<'static> {
        let mut body = Vec::with_capacity(2 + data.len());
        push_opcode(opcode, &mut body);
        body.extend_from_slice(data);
        RpcMessage { is_long: false, body: body.into() }
    }

    /// A message with this body.
    #[must_use]
    pub fn of(body: &'d [u8]) -> Self {
        Self { is_long: false, body: body.into() }
    }

    /// The opcode, in one or two bytes; 0 if it is missing.
    #[must_use]
    pub fn opcode(&self) -> u16 {
        self.split().0
    }

    /// The bytes after the opcode.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.split().1
    }

    fn split(&self) -> (u16, &[u8]) {
        match &*self.body {
            [high @ (0x80..), low, data @ ..] => (u16::from_be_bytes([*high, *low]), data),
            [opcode, data @ ..] => ((*opcode).into(), data),
            [] => (0, &[]),
        }
    }

    /// The size on the wire in bytes, including the length field.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let is_long = self.is_long || self.body.len() >= 0x80;
        1 + usize::from(is_long) + self.body.len()
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// Incomplete, or malformed if the body does not contain a whole opcode.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
    ) -> Result<Self> {
        let (length, is_long) = decode_length(reader)?;
        let body = reader.rest().get(..length).unwrap_or_default();
        reader.part(length, |reader| {
            let opcode = reader.shown(
                "opcode",
                |reader| match reader.rest() {
                    [(0x80..), ..] => reader.take_array().map(u16::from_be_bytes),
                    _ => reader.take_array().map(|[opcode]: [u8; 1]| opcode.into()),
                },
                |opcode| Value::Enum((*opcode).into(), rpc_names(from)),
            )?;
            // Without a trace, only the body matters.
            if T::ON
                && let Some(from) = from
                && reader.attempt(|reader| rpc::decode_fields(reader, opcode, from)).is_ok()
            {
                return Ok(());
            }
            let (start, length) = (reader.place(), reader.remaining());
            reader.blob("data", start, length, Form::Bytes).map(drop)
        })?;
        Ok(Self { is_long, body: body.into() })
    }

    /// Writes the fields.
    ///
    /// # Errors
    /// A limit error for a message that is too long; a value error if the body does not contain a
    /// whole opcode.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        if matches!(*self.body, [] | [(0x80..)]) {
            let found = format!("{} bytes", self.body.len());
            return Err(Error::value("a whole opcode", found).inside("opcode"));
        }
        encode_length(self.body.len(), self.is_long, writer)?;
        writer.bytes(&self.body);
        Ok(())
    }

    /// Reads the message from JSON. Opcodes are named as for the sending side.
    pub fn from_json(json: Given<'_>, from: Option<Side>) -> Result<RpcMessage<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let is_long = is_long_in_json(&mut fields);
        let opcode = json::named(fields.take("opcode")?, rpc_names(from))
            .map_err(|error| error.inside("opcode"))?;
        let is_opcode = |opcode: &u16| *opcode < 0x80 || *opcode >= 0x8000;
        let Some(opcode) = u16::try_from(opcode).ok().filter(is_opcode) else {
            let wanted = "an opcode from 0 to 0x7f or from 0x8000 to 0xffff";
            return Err(Error::value(wanted, format!("{opcode:#x}")).inside("opcode"));
        };
        let mut body = Vec::new();
        push_opcode(opcode, &mut body);
        match fields.given_optional("fields") {
            Some(inner) => {
                let written = rpc::fields_from_json(inner, opcode, from, body);
                body = written.map_err(|error| error.inside("fields"))?;
            }
            None => {
                let data = fields.given("data")?.bytes();
                body.extend(data.map_err(|error| error.inside("data"))?);
            }
        }
        fields.end()?;
        Ok(RpcMessage { is_long, body: body.into() })
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> RpcMessage<'static> {
        RpcMessage { is_long: self.is_long, body: Cow::Owned(self.body.into_owned()) }
    }

    /// Generates a message.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> RpcMessage<'static> {
        let from = match sampler.below(4) {
            0 => Some(Side::Client),
            1 => Some(Side::Server),
            _ => None,
        };
        if let Some(message) = from.and_then(|from| rpc::sample(sampler, from)) {
            return message;
        }
        let opcode = match sampler.below(3) {
            0 => u16::sample(sampler) | 0x8000,
            _ => u16::sample(sampler) & 0x7f,
        };
        let length = match sampler.below(4) {
            0 => 0x7d + sampler.length(6),
            _ => sampler.length(40),
        };
        let data = sampler.bytes(length);
        RpcMessage { is_long: sampler.below(8) == 0, ..Self::new(opcode, &data) }.canonical()
    }

    /// Clears the flag if the length needs two bytes anyway.
    fn canonical(self) -> Self {
        Self { is_long: self.is_long && self.body.len() < 0x80, ..self }
    }
}

fn push_opcode(opcode: u16, body: &mut Vec<u8>) {
    match u8::try_from(opcode) {
        Ok(opcode @ ..0x80) => body.push(opcode),
        _ => body.extend(opcode.to_be_bytes()),
    }
}

/// Reads a length of one or two bytes, and whether it takes two although one would be enough. Such
/// a length is shown as `longLength`.
pub(crate) fn decode_length<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
) -> Result<(usize, bool)> {
    let start = reader.place_if_on();
    let (length, is_long) = match reader.rest() {
        [(0x80..), ..] => {
            let length = reader.take_array().map_err(|error| error.inside("length"))?;
            let length = u16::from_be_bytes(length) & 0x7fff;
            (length, length < 0x80)
        }
        _ => {
            let [length] = reader.take_array().map_err(|error| error.inside("length"))?;
            (u16::from(length), false)
        }
    };
    let name = if is_long { "longLength" } else { "length" };
    reader.leaf_from(name, start, Value::Unsigned(length.into()));
    Ok((length.into(), is_long))
}

/// Writes a length, in two bytes if it needs them or `is_long` is set.
pub(crate) fn encode_length(length: usize, is_long: bool, writer: &mut Writer) -> Result<()> {
    match u16::try_from(length) {
        Ok(length @ ..0x80) if !is_long => writer.bytes(&length.to_be_bytes()[1..]),
        Ok(length @ ..0x8000) => writer.bytes(&(length | 0x8000).to_be_bytes()),
        _ => {
            let most = MAX_RPC_BYTES as u64;
            return Err(Error::limit("bytes of a message", most, length as u64).inside("length"));
        }
    }
    Ok(())
}

/// Takes the length from JSON. Only `longLength` matters; the number follows from the body.
pub(crate) fn is_long_in_json(fields: &mut FieldsOf<'_>) -> bool {
    fields.take_optional("length");
    fields.take_optional("longLength").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_have_one_byte_or_two() {
        for (opcode, body) in [(0x28, &[0x28, 9][..]), (0x80c9, &[0x80, 0xc9, 9])] {
            let message = RpcMessage::new(opcode, &[9]);
            assert_eq!(
                (&*message.body, message.opcode(), message.data()),
                (body, opcode, &[9][..])
            );
        }
        let mut writer = Writer::new();
        for body in [&[][..], &[0x80]] {
            let error = RpcMessage::of(body).encode(&mut writer).unwrap_err();
            assert!(error.to_string().starts_with("opcode: wanted a whole opcode"), "{error}");
        }
        let error = RpcMessage::decode(&mut Reader::new(&[1, 0x80, 5]), None).unwrap_err();
        assert_eq!(error.to_string(), "opcode at byte 1: wanted 2 bytes, found 1");
    }
}
