//! The contents of RPC messages, by opcode and sender.
//!
//! ```
//! use worldwire_mxo::rpc::{ChatScope, Chat, ClientRpc};
//! use worldwire_mxo::types::Str;
//!
//! let chat = Chat { scope: ChatScope::Area, reserved: 0, text: Str::new("Whoa.")? };
//! let message = ClientRpc::from(chat).encode()?;
//! assert_eq!(*message.body, *b"\x28\x10\0\x08\0\0\0\0\x06\0Whoa.\0");
//! let read = ClientRpc::decode(&message.body)?;
//! assert!(matches!(read, Some(ClientRpc::Chat(chat)) if chat.text.text() == "Whoa."));
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! Messages without a known layout are kept as bytes. Some of those have names: see
//! [`CLIENT_RPCS`](crate::frame::CLIENT_RPCS) and [`SERVER_RPCS`](crate::frame::SERVER_RPCS).

mod client;
mod emote;
mod option;
mod point;
mod server;

use worldwire_core::json::Given;
use worldwire_core::{Error, Messages, Reader, Result, Sampler, Side, Trace, Writer};

pub use client::{
    Chat, ChatScope, ClientRpc, Emote, HardlineTeleport, HyperjumpEnd, JackOutFinished, Jump,
    Leave, LeaveWorld, Mood, ObjectInteraction, ReadyForNewWorld, ReadyForSpawn, RegionLoaded,
    SetBackground, StartAnimation, StopAnimation, Target, UseView, WhereAmI, Whisper, WorldExit,
};
pub use emote::EmoteId;
pub use option::OptionValue;
pub use point::{DoublePoint, FloatPoint};
pub use server::{
    Attribute, AttributeGone, Background, ChatMessage, Experience, ExperienceGained, Friend, Info,
    JackOutDone, LoadWorld, Page, ServerOption, ServerRpc, Subway, YouAreHere,
};

use crate::frame::RpcMessage;

macro_rules! rpcs {
    ($($table:ident)*) => {$(
        impl<'d> $table<'d> {
            /// Decodes a body: opcode and data. `None` for an opcode without a known layout.
            ///
            /// # Errors
            /// Incomplete; malformed, also if bytes are left over.
            pub fn decode(body: &'d [u8]) -> Result<Option<Self>> {
                let message = RpcMessage::of(body);
                let opcode = u32::from(message.opcode());
                let Some(info) = Self::info(opcode) else { return Ok(None) };
                let mut reader = Reader::new(body);
                let head = if opcode < 0x80 { 1 } else { 2 };
                let read = reader.take(head).and_then(|_| {
                    let read = Self::decode_body(opcode, &mut reader)?;
                    reader.end()?;
                    Ok(read)
                });
                read.map(Some).map_err(|error| error.closed().about(info.name))
            }

            /// Encodes the message.
            ///
            /// # Errors
            /// A value error for contents that do not fit.
            pub fn encode(&self) -> Result<RpcMessage<'static>> {
                let mut writer = Writer::new();
                let opcode = u16::try_from(self.number()).unwrap_or(0);
                writer.bytes(&RpcMessage::new(opcode, &[]).body);
                self.encode_body(&mut writer).map_err(|error| error.about(self.name()))?;
                Ok(RpcMessage { is_long: false, body: writer.into_bytes().into() })
            }
        }
    )*};
}

rpcs! { ClientRpc ServerRpc }

/// Reads the data after an opcode, to its end, as the record `fields`.
///
/// # Errors
/// Malformed for an opcode without a known layout, and for data that does not match the layout.
pub(crate) fn decode_fields<'n, T: Trace<'n>>(
    reader: &mut Reader<'_, T>,
    opcode: u16,
    from: Side,
) -> Result<()> {
    reader.record("fields", |reader| {
        match from {
            Side::Client => ClientRpc::decode_body(opcode.into(), reader).map(drop)?,
            Side::Server => ServerRpc::decode_body(opcode.into(), reader).map(drop)?,
        }
        reader.end()
    })
}

/// Writes the data after an opcode, given the JSON of a record `fields`. If only the opcode was
/// changed, the fields keep the layout of the message that they come from.
pub(crate) fn fields_from_json(
    json: Given<'_>,
    opcode: u16,
    from: Option<Side>,
    body: Vec<u8>,
) -> Result<Vec<u8>> {
    fn written<'d, M: Messages<'d>>(
        json: Given<'_>,
        opcode: u16,
        body: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let own = M::info(opcode.into());
        let read = own.ok_or_else(unknown).and_then(|info| M::from_json(info.name, json));
        let message = read.or_else(|error| {
            let mut others = M::INFO.iter().filter_map(|info| M::from_json(info.name, json).ok());
            others.next().ok_or(error)
        })?;
        let mut writer = Writer::append_to(body);
        message.encode_body(&mut writer)?;
        Ok(writer.into_bytes())
    }
    match from {
        Some(Side::Client) => written::<ClientRpc<'_>>(json, opcode, body),
        Some(Side::Server) => written::<ServerRpc<'_>>(json, opcode, body),
        None => Err(unknown()),
    }
}

#[cold]
fn unknown() -> Error {
    Error::value("`data`, because this opcode has no known layout", "`fields`")
}

/// Generates a message of known layout.
pub(crate) fn sample(sampler: &mut Sampler, from: Side) -> Option<RpcMessage<'static>> {
    fn pick<'d, M: Messages<'d>>(sampler: &mut Sampler) -> Option<M> {
        let count = M::INFO.len() as u64;
        let index = usize::try_from(sampler.below(count)).unwrap_or(0);
        M::sample(M::INFO.get(index)?.number, sampler)
    }
    match from {
        Side::Client => pick::<ClientRpc<'_>>(sampler)?.encode().ok(),
        Side::Server => pick::<ServerRpc<'_>>(sampler)?.encode().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CLIENT_RPCS, SERVER_RPCS};

    #[test]
    fn every_opcode_has_one_name() {
        let rows = ClientRpc::INFO.iter().map(|row| (row, &CLIENT_RPCS));
        for (row, names) in rows.chain(ServerRpc::INFO.iter().map(|row| (row, &SERVER_RPCS))) {
            let name = names.name(row.number.into()).unwrap();
            assert_eq!(row.name, name);
        }
    }

    #[test]
    fn a_changed_opcode_keeps_the_data() {
        use worldwire_core::json::json;

        let fields = json!({"attribute": 0x4e, "value": 2, "unknown1": {"$hex": "0802"}});
        let read = |opcode: u16, fields: &worldwire_core::json::Json| {
            let json = json!({"opcode": opcode, "fields": fields.clone()});
            RpcMessage::from_json((&json).into(), Some(Side::Server)).map(|it| it.body.to_vec())
        };
        assert_eq!(read(0x80b2, &fields).unwrap(), b"\x80\xb2\x4e\0\x02\0\x08\x02");
        assert_eq!(read(46, &fields).unwrap(), b"\x2e\x4e\0\x02\0\x08\x02");
        let error = read(0x80b2, &json!({"attribute": 5, "valu": 2})).unwrap_err();
        assert_eq!(error.to_string(), "fields.value: is missing; is \"valu\" a misspelling of it?");
    }

    #[test]
    fn a_body_that_does_not_match_its_layout_is_refused() {
        assert_eq!(ClientRpc::decode(&[0x7f]).unwrap(), None);
        assert_eq!(ClientRpc::decode(&[]).unwrap(), None);
        for body in [&[5, 0][..], &[0x28], &[0x80, 0xc8, 0, 0, 0], &[0x80, 0xfc]] {
            assert!(ClientRpc::decode(body).is_err(), "{body:x?}");
        }
        let error = ServerRpc::decode(b"\x3a\x05\0\x09\0\x01\0\0\0\0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "ServerOption: valueOffset at byte 3: wanted 8, the offset of the field, found 9"
        );
    }
}
