//! The header of a message.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

/// Bytes of the header.
pub const HEAD_BYTES: usize = 4;
/// The most bytes of a payload: the length has two bytes and counts the header.
pub const MAX_PAYLOAD: usize = 0xffff - HEAD_BYTES;

/// A message whose fields are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage<'d> {
    /// The protocol.
    pub service: u8,
    /// The message in it.
    pub order: u8,
    /// The fields.
    pub payload: Cow<'d, [u8]>,
}

impl<'d> RawMessage<'d> {
    /// Reads a message of a frame's body into the present scope.
    ///
    /// `is_first_of_large` says that it is the first message of a frame in the large form. Such a
    /// message may be longer than its length can say: if more bytes are there than any length
    /// could count and the length does not fit a message that ends in the frame, it is bounded by
    /// the frame, without a trailer of one byte, and `isBoundByFrame` is shown.
    /// Unverified: nobody has seen how the client treats these. They cannot be encoded.
    ///
    /// # Errors
    /// Incomplete; Malformed for a length below 4.
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
            // What is behind the message would have to be a message.
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

    /// Writes it.
    ///
    /// # Errors
    /// The limit, for a payload of more than [`MAX_PAYLOAD`] bytes, before anything is written.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = u16::try_from(self.payload.len() + HEAD_BYTES).map_err(|_| {
            let (most, asked) = (MAX_PAYLOAD as u64, self.payload.len() as u64);
            Error::limit("bytes of a payload", most, asked).inside("payload")
        })?;
        writer.u8(self.service);
        writer.u8(self.order);
        writer.u16(length);
        writer.bytes(&self.payload);
        Ok(())
    }

    /// Reads it from JSON. `length` may be missing; it is worked out anyway.
    ///
    /// # Errors
    /// Value, when the JSON is something else.
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

    /// Makes it owned.
    #[must_use]
    pub fn into_owned(self) -> RawMessage<'static> {
        RawMessage { payload: self.payload.into_owned().into(), ..self }
    }
}

/// Whether messages, and nothing else but a trailer, stand behind `count` bytes.
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
    fn a_message_too_long_for_its_length_is_bound_by_its_frame() {
        let mut bytes = vec![5, 122, 0x10, 0];
        bytes.resize(70_001, 0xee);
        let message = RawMessage::decode(&mut Reader::new(&bytes), true).unwrap();
        assert_eq!(message.payload.len(), 70_001 - 4 - 1);
        assert!(message.encode(&mut Writer::new()).is_err());
        let message = RawMessage::decode(&mut Reader::new(&bytes), false).unwrap();
        assert_eq!(message.payload.len(), 12);
    }
}
