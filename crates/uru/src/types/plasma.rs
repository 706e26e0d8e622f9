//! Strings and times as Plasma's own streams write them.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Error, Field, Form, Names, Place, Reader, Result, Sampler, Trace, Value, Writer, record,
};

/// How a [`SafeString`] is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SafeForm {
    /// The encoding that all current writers use: the count has its high four bits set, and the
    /// bytes are inverted.
    Inverted,
    /// The count has its high four bits set, and the bytes are plain.
    Literal,
    /// The encoding of 2003: the count has none of its high four bits set and is followed by two
    /// meaningless bytes. The text is inverted if its first byte has bit 7 set.
    Old {
        /// The two meaningless bytes.
        skipped: u16,
        /// Whether the bytes are inverted.
        inverted: bool,
    },
    /// Inverted, but the high four bits of the count are neither all set nor all clear.
    Marked {
        /// The high four bits of the count.
        high: u16,
        /// Whether the bytes are inverted.
        inverted: bool,
    },
}

/// A byte string with a 12-bit count, obfuscated by inverting its bytes.
///
/// Layout: `u16` (count in the low 12 bits; writers set the high 4 bits), then the bytes, each
/// inverted by writers. Readers invert all bytes back if the first one has bit 7 set, whatever the
/// others are. At most 4095 bytes; writers send no zero bytes. Current clients use UTF-8, old ones
/// Latin-1.
///
/// If the first byte of the text is 0x80 or higher, its inverse does not have bit 7 set. Writers
/// invert the text anyway, so the client's reader takes the inverted bytes as text. If they are not
/// UTF-8, it crashes ([`Self::crashes_client`]); such bytes are inverted here, because no other
/// reading is possible. Otherwise they are read as clients read them, and [`Self::is_ambiguous`]
/// reports the other reading. The bytes survive in any case.
#[derive(Clone, PartialEq, Eq)]
pub struct SafeString<'d> {
    form: SafeForm,
    /// The bytes as encoded.
    stored: Cow<'d, [u8]>,
}

/// The maximum number of bytes or units in a safe string.
const MAX_SAFE_BYTES: usize = 0xfff;
static FORMS: Names = Names::fixed(&[(0, "inverted"), (1, "literal"), (2, "old"), (3, "marked")]);

impl SafeString<'_> {
    /// The bytes of the text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.inverted() { invert(&self.stored) } else { self.stored.to_vec() }
    }

    /// The text: UTF-8, or Latin-1 if the bytes are not valid UTF-8.
    #[must_use]
    pub fn to_text(&self) -> String {
        match String::from_utf8(self.to_bytes()) {
            Ok(text) => text,
            Err(error) => error.into_bytes().into_iter().map(char::from).collect(),
        }
    }

    /// How the string is encoded.
    #[must_use]
    pub fn form(&self) -> SafeForm {
        self.form
    }

    /// Whether the bytes have a second plausible reading: they were taken as plain text, but
    /// inverted they would be valid UTF-8 too.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        !self.inverted() && core::str::from_utf8(&invert(&self.stored)).is_ok()
    }

    /// Whether the string crashes the client: its reader takes the bytes as plain text because the
    /// first one has bit 7 clear, finds that they are not UTF-8, and throws an exception that
    /// nothing catches.
    ///
    /// Text whose first character is not ASCII is encoded in this way. A server must not forward
    /// such a string.
    #[must_use]
    pub fn crashes_client(&self) -> bool {
        self.stored.first().is_some_and(|first| first & 0x80 == 0)
            && core::str::from_utf8(&self.stored).is_err()
    }

    /// Whether clients read a text other than the one that was written: its first byte is 0x80 or
    /// higher, so its encoding starts without bit 7, and they take all bytes as plain text. If
    /// those are not valid UTF-8, clients crash ([`Self::crashes_client`]); otherwise they show
    /// wrong characters.
    #[must_use]
    pub(crate) fn is_misread(&self) -> bool {
        let taken_as_stored = self.stored.first().is_some_and(|first| first & 0x80 == 0);
        taken_as_stored && (self.inverted() || self.is_ambiguous())
    }

    /// The bytes as encoded.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    fn inverted(&self) -> bool {
        match self.form {
            SafeForm::Inverted => true,
            SafeForm::Literal => false,
            SafeForm::Old { inverted, .. } | SafeForm::Marked { inverted, .. } => inverted,
        }
    }

    fn canonical(&self) -> bool {
        self.form == SafeForm::Inverted
    }
}

/// Accepts text of any length; encoding fails if it exceeds 4095 bytes. Zero bytes are accepted as
/// well: they do not occur in real text, but decoded bytes have to survive.
impl From<&str> for SafeString<'_> {
    fn from(text: &str) -> Self {
        Self { form: SafeForm::Inverted, stored: Cow::Owned(invert(text.as_bytes())) }
    }
}

impl fmt::Debug for SafeString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl<'d> Field<'d> for SafeString<'d> {
    type Owned = SafeString<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("SafeString")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let read = |reader: &mut Reader<'d, T>| {
            let head = u16::from_le_bytes(reader.take_array()?);
            let skipped = match head & 0xf000 {
                0 => Some(u16::from_le_bytes(reader.take_array()?)),
                _ => None,
            };
            let stored = reader.take(usize::from(head & 0xfff))?;
            let inverted = is_inverted(stored);
            let form = match (head & 0xf000, skipped) {
                (_, Some(skipped)) => SafeForm::Old { skipped, inverted },
                (0xf000, _) if inverted => SafeForm::Inverted,
                (0xf000, _) => SafeForm::Literal,
                (high, _) => SafeForm::Marked { high, inverted },
            };
            Ok(Self { form, stored: Cow::Borrowed(stored) })
        };
        let value = read(reader).map_err(|error: Error| error.inside(name))?;
        if T::ON {
            value.show(reader, name, start)?;
        }
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Some(count) = u16::try_from(self.stored.len()).ok().filter(|n| *n <= 0xfff) else {
            let found = self.stored.len() as u64;
            return Err(Error::limit("bytes of a safe string", MAX_SAFE_BYTES as u64, found));
        };
        match self.form {
            SafeForm::Inverted | SafeForm::Literal => writer.u16(count | 0xf000),
            SafeForm::Marked { high, .. } => writer.u16(count | (high & 0xf000)),
            SafeForm::Old { skipped, .. } => {
                writer.u16(count);
                writer.u16(skipped);
            }
        }
        writer.bytes(&self.stored);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.get("form").is_none() {
            let bytes = json::text(&json, |text| text.as_bytes().to_vec())?;
            if bytes.len() > MAX_SAFE_BYTES {
                let found = bytes.len() as u64;
                return Err(Error::limit("bytes of a safe string", MAX_SAFE_BYTES as u64, found));
            }
            let stored = invert(&bytes);
            if !is_inverted(&stored) {
                let found = "another character, which readers would misread";
                return Err(Error::value("text that begins with an ASCII character", found));
            }
            return Ok(Self { form: SafeForm::Inverted, stored: Cow::Owned(stored) });
        }
        let mut fields = FieldsOf::new(json)?;
        let bytes = json::text(fields.take("text")?, |text| text.as_bytes().to_vec())?;
        let form = json::named(fields.take("form")?, &FORMS)?;
        let extra = json::integer(fields.take("extra")?, "a whole number from 0 to 65535")?;
        let inverted = fields.take("inverted")?.as_bool().unwrap_or(false);
        fields.end()?;
        let form = match form {
            0 => SafeForm::Inverted,
            1 => SafeForm::Literal,
            2 => SafeForm::Old { skipped: extra, inverted },
            // With none or all of the bits set, it would be one of the other encodings.
            _ if matches!(extra & 0xf000, 0 | 0xf000) => {
                let found = format!("0x{extra:04x}");
                return Err(
                    Error::value("some, but not all, of the high four bits", found).inside("extra")
                );
            }
            _ => SafeForm::Marked { high: extra & 0xf000, inverted },
        };
        let stored = match form {
            SafeForm::Literal => bytes,
            SafeForm::Inverted => invert(&bytes),
            _ if inverted => invert(&bytes),
            _ => bytes,
        };
        Ok(Self { form, stored: Cow::Owned(stored) })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(&*sampler.text(64))
    }

    fn into_owned(self) -> Self::Owned {
        SafeString { form: self.form, stored: Cow::Owned(self.stored.into_owned()) }
    }
}

impl SafeString<'_> {
    /// Traces the string: as plain text if it has the usual encoding, otherwise as a record that
    /// shows how it differs.
    fn show<'d, 'n, T: Trace<'n>>(
        &self,
        reader: &mut Reader<'d, T>,
        name: &'n str,
        start: Place,
    ) -> Result<()> {
        let form = if self.inverted() { Form::InvertedUtf8 } else { Form::Utf8 };
        let span = reader.span_behind(form, self.stored.len());
        if self.canonical() {
            reader.leaf_from(name, start, span);
            return Ok(());
        }
        let (number, extra) = match self.form {
            SafeForm::Inverted => (0, 0),
            SafeForm::Literal => (1, 0),
            SafeForm::Old { skipped, .. } => (2, skipped),
            SafeForm::Marked { high, .. } => (3, high),
        };
        reader.scope_from(name, Value::Record, start, |reader| {
            reader.leaf_from("text", start, span);
            reader.leaf_from("form", start, Value::Enum(number, &FORMS));
            reader.leaf_from("extra", start, Value::Hex(u64::from(extra)));
            reader.leaf_from("inverted", start, Value::Bool(self.inverted()));
            Ok(())
        })
    }
}

/// Whether stored bytes are read as inverted. An empty string has nothing to invert; it counts as
/// inverted, as writers send it.
fn is_inverted(stored: &[u8]) -> bool {
    let is_plain = stored.first().is_some_and(|first| first & 0x80 == 0);
    !is_plain || core::str::from_utf8(stored).is_err()
}

pub(super) fn invert(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

record! {
    /// A point in time (`plUnifiedTime`).
    pub struct UnifiedTime {
        /// Seconds since 1970, UTC.
        seconds "seconds": u32,
        /// Millionths of a second.
        microseconds "microseconds": u32,
    }
}

/// The header of a serialised object: its class index, or 0x8000 for null. What follows depends on
/// the class and has no length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creatable(pub Option<u16>);

impl<'d> Field<'d> for Creatable {
    type Owned = Self;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("creatable header")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.shown(
            name,
            |reader| {
                let class = u16::from_le_bytes(reader.take_array()?);
                Ok(Self((class != 0x8000).then_some(class)))
            },
            |value| value.0.map_or(Value::Null, |class| Value::Hex(u64::from(class))),
        )
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u16(self.0.unwrap_or(0x8000));
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.is_null() {
            return Ok(Self(None));
        }
        let class = json::integer(&json, "a class index or null")?;
        if class == 0x8000 {
            return Err(Error::value("null", "0x8000"));
        }
        Ok(Self(Some(class)))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(Some(u16::sample(sampler)).filter(|class| *class != 0x8000))
    }

    fn into_owned(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(hex: &str) -> SafeString<'static> {
        let bytes = worldwire_core::value::parse_hex(hex).unwrap();
        SafeString::decode(&mut Reader::new(&bytes), "text").unwrap().into_owned()
    }

    /// Bit 7 of later bytes does not matter: both encodings stand for the same text.
    #[test]
    fn the_first_byte_selects_the_form() {
        let inverted = read("07f0 be979190913c56");
        let literal = read("07f0 41686e6f6ec3a9");
        assert_eq!(inverted.to_text(), "Ahnon\u{e9}");
        assert_eq!(literal.to_bytes(), inverted.to_bytes());
        assert_eq!((literal.form(), inverted.form()), (SafeForm::Literal, SafeForm::Inverted));
        // The stored bytes are not UTF-8, so they can only be inverted text.
        assert_eq!(read("06f0 3c7b8b8d8a8c").to_text(), "\u{c4}trus");
    }
}
