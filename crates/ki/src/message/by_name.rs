//! Messages by field name, for servers and clients that do not know which revision's definitions
//! are loaded.

use worldwire_core::{Error, Reader, Result};

use super::{Fit, RawMessage, Values};
use crate::schema::{FieldDef, Message, Protocols};
use crate::types::{FieldType, FieldValue, Str, WStr};

/// The fields of a message, by name. Fields missing from the definition are 0 or empty.
#[derive(Clone, Debug)]
pub struct Fields<'m> {
    message: &'m Message,
    values: Values<'m>,
}

impl<'m> Fields<'m> {
    /// Reads a payload with at least this many fields. Later ones may all be missing, for example
    /// if the sender has an earlier revision; they then have their defaults. Returns `None` if the
    /// payload does not match the definition.
    #[must_use]
    pub fn read(message: &'m Message, payload: &'m [u8], least: usize) -> Option<Self> {
        let mut values = Values::new();
        if message.decode(&mut Reader::new(payload), &mut values).is_err() {
            let read = values.fields().len();
            let ends = matches!(message.fit(payload), Fit::TooShort { at_boundary: true, .. });
            if !ends || read < least {
                return None;
            }
            let missing = message.fields().iter().skip(read);
            values.fields_mut().extend(missing.map(|field| field.default.clone()));
        }
        Some(Self { message, values })
    }

    /// The tag of the message.
    #[must_use]
    pub fn tag(&self) -> &'m str {
        &self.message.tag
    }

    fn value(&self, name: &str) -> Option<&FieldValue<'m>> {
        let at = self.message.fields().iter().position(|field| *field.name == *name)?;
        self.values.fields().get(at)
    }

    /// The number in a field. A signed number is returned as its bits.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(FieldValue::Gid(number)) => *number,
            Some(FieldValue::Uint(number)) => (*number).into(),
            Some(FieldValue::Int(number)) => number.cast_unsigned().into(),
            Some(FieldValue::Ushrt(number)) => (*number).into(),
            Some(FieldValue::Ubyt(number) | FieldValue::Bool(number)) => (*number).into(),
            _ => 0,
        }
    }

    /// A 32-bit number; larger ones become the maximum.
    #[must_use]
    pub fn word(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).unwrap_or(u32::MAX)
    }

    /// The bytes of a string; a wide string is converted to UTF-8.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        match self.value(name) {
            Some(FieldValue::Str(text)) => text.as_bytes().to_vec(),
            Some(FieldValue::WStr(text)) => text.to_text().into_bytes(),
            _ => Vec::new(),
        }
    }

    /// A string as text. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }
}

/// A value for a field of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// A number, truncated to the field's width.
    Number(u64),
    /// The bytes of a string; for a wide string, UTF-8.
    Bytes(Vec<u8>),
}

impl<N: Into<u64>> From<N> for Put {
    fn from(number: N) -> Self {
        Self::Number(number.into())
    }
}

impl Put {
    /// A text value.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }

    fn as_field(&self, kind: FieldType) -> FieldValue<'static> {
        let bytes = match (self, kind) {
            (Self::Bytes(bytes), FieldType::Str) => {
                return FieldValue::Str(Str::new(bytes.clone()));
            }
            (Self::Bytes(bytes), FieldType::WStr) => {
                return FieldValue::WStr(WStr::from(&*String::from_utf8_lossy(bytes)));
            }
            (Self::Bytes(_), kind) => return FieldValue::zero(kind),
            (Self::Number(number), _) => number.to_le_bytes(),
        };
        let [a, b, c, d, ..] = bytes;
        let word = u32::from_le_bytes([a, b, c, d]);
        match kind {
            FieldType::Byt => FieldValue::Byt(a.cast_signed()),
            FieldType::Ubyt => FieldValue::Ubyt(a),
            FieldType::Bool => FieldValue::Bool(a),
            FieldType::Shrt => FieldValue::Shrt(i16::from_le_bytes([a, b])),
            FieldType::Ushrt => FieldValue::Ushrt(u16::from_le_bytes([a, b])),
            FieldType::Int => FieldValue::Int(word.cast_signed()),
            FieldType::Uint => FieldValue::Uint(word),
            FieldType::Gid => FieldValue::Gid(u64::from_le_bytes(bytes)),
            kind => FieldValue::zero(kind),
        }
    }
}

impl Protocols {
    /// Builds a message from these fields. Fields that its definition lacks are ignored; fields
    /// that are not given have their defaults.
    pub fn compose(
        &self,
        service: u8,
        tag: &str,
        given: &[(&str, Put)],
    ) -> Result<RawMessage<'static>> {
        let found = self.service(service).and_then(|known| known.message_tagged(tag));
        let missing = || Error::invalid(format!("service {service} has no message {tag}"));
        found.ok_or_else(missing)?.composed(given)
    }

    /// Like [`Self::compose`], with the message's full name, such as `LOGIN.MSG_USER_ADMIT_IND`;
    /// see [`Self::message_named`].
    pub fn compose_named(&self, name: &str, given: &[(&str, Put)]) -> Result<RawMessage<'static>> {
        let missing = || {
            let error = Error::invalid(format!("unknown message \"{name}\""));
            crate::suggest(error, self.suggest(name))
        };
        self.message_named(name).ok_or_else(missing)?.composed(given)
    }
}

impl Message {
    /// Builds this message from these fields.
    fn composed(&self, given: &[(&str, Put)]) -> Result<RawMessage<'static>> {
        let value = |field: &FieldDef| {
            let put = given.iter().find(|(name, _)| **name == *field.name);
            put.map_or_else(|| field.default.clone(), |(_, put)| put.as_field(field.kind))
        };
        let values = Values::of(self.fields().iter().map(value).collect());
        let payload = self.payload(&values)?;
        Ok(RawMessage { service: self.service, order: self.order, payload: payload.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Mode;

    #[test]
    fn fields_are_set_and_read_by_name_whatever_their_types() {
        let protocols = Protocols::built_in();
        let put = [
            ("Status", Put::from(0x1_0000_0001_u64)),
            ("PositionInQueue", Put::from(7_u32)),
            ("Unknown", Put::text("x")),
        ];
        let raw = protocols.compose(7, "MSG_USER_ADMIT_IND", &put).unwrap();
        assert_eq!((raw.order, &*raw.payload), (20, &[1, 0, 0, 0, 7, 0, 0, 0][..]));
        let message = protocols.message(7, 20).unwrap();
        let fields = Fields::read(message, &raw.payload, 2).unwrap();
        assert_eq!((fields.number("Status"), fields.word("PositionInQueue")), (1, 7));
        assert_eq!((fields.number("Unknown"), fields.text("Status")), (0, String::new()));
        assert!(protocols.compose(7, "MSG_NONE", &[]).is_err());
        assert_eq!(protocols.compose_named("LOGIN.MSG_USER_ADMIT_IND", &put).unwrap(), raw);
        let error = protocols.compose_named("LOGIN.MSG_USER_ADMIT_INDD", &put).unwrap_err();
        assert!(
            error.to_string().ends_with("did you mean \"LOGIN.MSG_USER_ADMIT_IND\"?"),
            "{error}"
        );
    }

    #[test]
    fn k_02_the_loaded_definitions_determine_text_types() {
        let mut protocols = Protocols::built_in();
        let put = [("Message", Put::text("hi"))];
        let raw = protocols.compose(2, "MSG_SERVERMESSAGE", &put).unwrap();
        assert_eq!(&*raw.payload, b"\0\x02\0hi");
        let xml = br#"<Base><_ProtocolInfo><RECORD><ServiceID TYPE="UBYT">2</ServiceID></RECORD>
            </_ProtocolInfo><MSG_SERVERMESSAGE><RECORD><Modal TYPE="UBYT"></Modal>
            <Message TYPE="WSTR"></Message></RECORD></MSG_SERVERMESSAGE></Base>"#;
        protocols.add("Base.xml", xml, Mode::Lenient);
        let raw = protocols.compose(2, "MSG_SERVERMESSAGE", &put).unwrap();
        assert_eq!(&*raw.payload, b"\0\x02\0h\0i\0");
        let message = protocols.message(2, raw.order).unwrap();
        let fields = Fields::read(message, &raw.payload, 0).unwrap();
        assert_eq!(fields.text("Message"), "hi");
    }

    #[test]
    fn k_05_whole_fields_at_the_end_may_be_missing() {
        let protocols = Protocols::built_in();
        let message = protocols.message(7, 15).unwrap();
        let put = [("UserID", Put::from(5_u32)), ("MachineID", Put::from(6_u32))];
        let raw = protocols.compose(7, "MSG_USER_VALIDATE", &put).unwrap();
        // Try it without the last field, then with half of it.
        let short = &raw.payload[..raw.payload.len() - 2];
        let fields = Fields::read(message, short, 4).unwrap();
        assert_eq!((fields.number("UserID"), fields.number("MachineID")), (5, 6));
        assert_eq!(fields.text("PatchClientID"), "");
        assert!(Fields::read(message, short, 5).is_none());
        assert!(Fields::read(message, &raw.payload[..raw.payload.len() - 1], 4).is_none());
        // Fields that a later revision appends are ignored.
        let longer = [&raw.payload[..], &[0, 0]].concat();
        assert!(Fields::read(message, &longer, 5).is_some());
    }
}
