//! Messages with their header, before their fields are decoded.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

/// The size of the header in bytes.
pub const HEAD_BYTES: usize = 4;
/// The maximum size of a payload in bytes: the length has two bytes and includes the header.
pub const MAX_PAYLOAD: usize = 0xffff - HEAD_BYTES;

/// A message whose fields are not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage<'d> {
    /// The protocol.
    pub service: u8,
    /// The message within the protocol.
    pub order: u8,
    /// The encoded fields.
    pub payload: Cow<'d, [u8]>,
}

impl<'d> RawMessage<'d> {
    /// Decodes a message in a frame's body into the current scope.
    ///
    /// `is_first_of_large` means that it is the first message of a frame in the large form. Such a
    /// message may be longer than its length field can express. If more bytes follow than any
    /// length could count, and the length does not match a message inside the frame, the message
    /// extends to the end of the frame without a one-byte trailer, and `isBoundByFrame` is shown.
    /// Unverified: how the client treats such messages. They cannot be encoded.
    ///
    /// # Errors
    /// `Incomplete` if bytes are missing; `Malformed` for a length below 4.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        is_first_of_large: bool,
    ) -> Result<Self> {
        let all = reader.remaining();
        let service = reader.u8("service")?;
        let order = reader.u8("order")?;
        let at = reader.position() as u64;
        let length = usize::from(reader.u16("length")?);
        let excess = all > usize::from(u16::MAX) + 1;
        let payload = match length.checked_sub(HEAD_BYTES) {
            // Anything after the message must itself be a message.
            Some(count) if !(is_first_of_large && excess && !chains(reader.rest(), count)) => {
                reader.bytes("payload", count)?
            }
            None if !(is_first_of_large && excess) => {
                let error = Error::malformed("a length of at least 4", length.to_string());
                return Err(error.at(at).inside("length"));
            }
            _ => {
                let payload = reader.bytes("payload", reader.remaining() - 1)?;
                let place = reader.place_if_on();
                reader.leaf_from("isBoundByFrame", place, Value::Bool(true));
                payload
            }
        };
        Ok(Self { service, order, payload: Cow::Borrowed(payload) })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// A limit error if the payload exceeds [`MAX_PAYLOAD`]; nothing is written.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = u16::try_from(self.payload.len() + HEAD_BYTES).map_err(|_| {
            let (max, asked) = (MAX_PAYLOAD as u64, self.payload.len() as u64);
            Error::limit("bytes of a payload", max, asked).inside("payload")
        })?;
        writer.u8(self.service);
        writer.u8(self.order);
        writer.u16(length);
        writer.bytes(&self.payload);
        Ok(())
    }

    /// Reads a message from JSON. `length` may be missing, because it is recomputed.
    pub fn from_json(json: &Json) -> Result<RawMessage<'static>> {
        const BYTE: &str = "a whole number from 0 to 255";
        let mut fields = FieldsOf::new(json)?;
        let mut byte = |name| {
            let json = fields.take(name)?;
            json::integer(json, BYTE).map_err(|error| error.inside(name))
        };
        let (service, order) = (byte("service")?, byte("order")?);
        fields.take_optional("length");
        fields.take_optional("isBoundByFrame");
        let payload =
            json::bytes(fields.take("payload")?).map_err(|error| error.inside("payload"))?;
        fields.end()?;
        Ok(RawMessage { service, order, payload: payload.into() })
    }

    /// Copies the payload if it is borrowed.
    #[must_use]
    pub fn into_owned(self) -> RawMessage<'static> {
        RawMessage { payload: self.payload.into_owned().into(), ..self }
    }
}

/// Whether only messages and a trailer follow the first `count` bytes.
fn chains(bytes: &[u8], count: usize) -> bool {
    let mut rest = bytes.get(count..);
    while let Some(bytes) = rest {
        match bytes {
            [] | [_] => return true,
            [_, _, low, high, ..] => {
                let length = usize::from(u16::from_le_bytes([*low, *high]));
                rest = bytes.get(length..).filter(|_| length >= HEAD_BYTES);
            }
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_message_extends_to_the_end_of_its_frame() {
        let mut bytes = vec![5, 122, 0x10, 0];
        bytes.resize(70_001, 0xee);
        let message = RawMessage::decode(&mut Reader::new(&bytes), true).unwrap();
        assert_eq!(message.payload.len(), 70_001 - 4 - 1);
        assert!(message.encode(&mut Writer::new()).is_err());
        let message = RawMessage::decode(&mut Reader::new(&bytes), false).unwrap();
        assert_eq!(message.payload.len(), 12);
    }
}
