//! Frames: how control messages and DML messages are encoded on the wire. TCP and UDP use the same
//! encoding.
//!
//! | offset | field | type | |
//! | --- | --- | --- | --- |
//! | 0 | `magic` | `u16` | 0xF00D |
//! | 2 | `length` | `u16` | bytes of the body, if below 0x8000 |
//! | 4 | | `u32` | bytes of the body otherwise; `length` is then 0x8000 |
//! | | `isControl` | `u8` | 0 for data, otherwise a control message |
//! | | `opcode` | `u8` | of a control message |
//! | | `reserved` | `u16` | 0 |
//! | | | | a [`Control`] message, or a sequence of [DML messages](crate::message) |
//! | | `trailer` | `u8` | usually 0; may be missing |
//!
//! The body is everything after the length, including the trailer.

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Field, Limits, Reader, Result, Side, Trace, Value, Writer};

use crate::control::{Control, Opcode};
use crate::message::RawMessage;
use crate::schema::Protocols;

/// The first two bytes of every frame.
pub const MAGIC: u16 = 0xf00d;
/// The word that means a longer length follows. Readers accept any word that is at least as
/// large.
pub const LARGE: u16 = 0x8000;
/// `isControl`, `opcode`, `reserved`.
pub(crate) const BODY_HEAD_BYTES: usize = 4;

/// How the length of a frame is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FrameForm {
    /// The usual form: small for less than 0x8000 bytes, otherwise large, preceded by [`LARGE`].
    #[default]
    Canonical,
    /// The large form although the small one would do, or with a different word before it.
    Large {
        /// The word, at least [`LARGE`].
        marker: u16,
    },
}

impl FrameForm {
    fn of(marker: u16, length: u32) -> Self {
        if marker == LARGE && length >= u32::from(LARGE) {
            Self::Canonical
        } else {
            Self::Large { marker }
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// How the length is encoded.
    pub form: FrameForm,
    /// The size of the body in bytes.
    pub length: u32,
}

impl FrameHead {
    /// Decodes a header. The magic is checked as soon as it arrives.
    ///
    /// # Errors
    /// `Incomplete` if bytes are missing; `Malformed` if the magic is wrong or the body has fewer
    /// than four bytes; a limit error for too many message bytes.
    #[inline]
    pub fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let [low, high] = reader.shown(
            "magic",
            |reader| match reader.rest() {
                // A single byte can already be wrong.
                [first, ..] if *first != MAGIC.to_le_bytes()[0] => Err(no_magic(reader)),
                [_, second, ..] if *second != MAGIC.to_le_bytes()[1] => Err(no_magic(reader)),
                _ => reader.take_array(),
            },
            |magic| Value::Hex(u64::from(u16::from_le_bytes(*magic))),
        )?;
        debug_assert_eq!(u16::from_le_bytes([low, high]), MAGIC, "the magic was checked");
        let start = reader.place_if_on();
        let first: [u8; 2] = reader.take_array().map_err(|error| error.inside("length"))?;
        let first = u16::from_le_bytes(first);
        let (form, length) = if first < LARGE {
            reader.leaf_from("length", start, Value::Unsigned(u64::from(first)));
            (FrameForm::Canonical, u32::from(first))
        } else {
            reader.leaf_from("marker", start, Value::Hex(u64::from(first)));
            let length = reader.u32("length")?;
            (FrameForm::of(first, length), length)
        };
        if (length as usize) < BODY_HEAD_BYTES {
            let error = Error::malformed("a body of at least 4 bytes", format!("{length}"));
            return Err(reader.place_error(error).inside("length"));
        }
        let max = reader.limits().message_bytes;
        if u64::from(length) > max {
            let error = Error::limit("frame bytes", max, length.into());
            return Err(reader.place_error(error).inside("length"));
        }
        Ok(Self { form, length })
    }

    /// The size of the header in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        let large = self.length >= u32::from(LARGE) || self.form != FrameForm::Canonical;
        if large { 8 } else { 4 }
    }

    /// Whether the length is encoded in the large form.
    #[must_use]
    pub fn is_large(self) -> bool {
        self.bytes() == 8
    }

    /// The offset of the frame's contents, after opcode and `reserved`.
    #[must_use]
    pub(crate) fn body(self) -> usize {
        self.bytes() + BODY_HEAD_BYTES
    }

    /// The size of the whole frame in bytes.
    #[must_use]
    pub fn frame_bytes(self) -> usize {
        self.bytes() + self.length as usize
    }

    pub(crate) fn encode(self, writer: &mut Writer) {
        writer.u16(MAGIC);
        match (self.form, u16::try_from(self.length)) {
            (FrameForm::Canonical, Ok(length)) if length < LARGE => writer.u16(length),
            (form, _) => {
                writer.u16(match form {
                    FrameForm::Canonical => LARGE,
                    FrameForm::Large { marker } => marker,
                });
                writer.u32(self.length);
            }
        }
    }
}

#[cold]
fn no_magic<'n, T: Trace<'n>>(reader: &Reader<'_, T>) -> Error {
    let found = reader.rest().get(..2).unwrap_or_else(|| reader.rest());
    let found = found.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    reader.place_error(Error::malformed("the start of a frame, 0d f0", found))
}

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'d> {
    /// How the frame's length is encoded.
    pub form: FrameForm,
    /// 0 for data; 1 or any other number for a control message.
    pub is_control: u8,
    /// The opcode of a control message; 0 in data frames.
    pub opcode: Opcode,
    /// Always 0.
    pub reserved: u16,
    /// The frame's contents.
    pub body: Body<'d>,
    /// The last byte, usually 0.
    pub trailer: Option<u8>,
}

/// The contents of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'d> {
    /// A control message.
    Control(Control<'d>),
    /// DML messages, usually one.
    Data(Vec<RawMessage<'d>>),
}

/// The header and position of a DML message in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    /// The protocol.
    pub service: u8,
    /// The message within the protocol.
    pub order: u8,
    /// The range of header and payload, relative to the start of the frame.
    pub range: core::ops::Range<usize>,
}

/// Whether bytes begin with a frame, beyond reasonable doubt; `None` if there are too few of them.
#[must_use]
pub fn recognize(bytes: &[u8], max: u64) -> Option<bool> {
    // Most conversations belong to other protocols, so no error is built for them.
    if bytes.first_chunk().is_some_and(|magic| *magic != MAGIC.to_le_bytes()) {
        return Some(false);
    }
    let limits = Limits { message_bytes: max, ..Limits::DEFAULT };
    let mut reader = Reader::within(bytes, &limits);
    match FrameHead::decode(&mut reader) {
        Ok(_) => match reader.rest() {
            [0, 0, 0, 0, _, order, ..] => Some(*order > 0),
            [0, ..] if reader.remaining() < 6 => None,
            [1, opcode, 0, 0, ..] => Some(Opcode(*opcode).name().is_some()),
            [1, ..] if reader.remaining() < BODY_HEAD_BYTES => None,
            [] => None,
            _ => Some(false),
        },
        Err(error) if error.needed().is_some() => None,
        Err(_) => Some(false),
    }
}

/// Finds two consecutive frames in bytes whose beginning is missing. The second need not be
/// complete.
#[must_use]
pub fn find(bytes: &[u8], max: u64) -> Option<usize> {
    let begins = |at: &usize| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let limits = Limits { message_bytes: max, ..Limits::DEFAULT };
        let is_frame = rest.starts_with(&MAGIC.to_le_bytes()) && recognize(rest, max) == Some(true);
        let head = is_frame.then(|| FrameHead::decode(&mut Reader::within(rest, &limits)).ok());
        let next = head.flatten().and_then(|head| rest.get(head.frame_bytes()..));
        next.is_some_and(|next| recognize(next, max) == Some(true))
    };
    (0..bytes.len()).find(begins)
}

/// The opcode, if bytes begin with a control message, which may be incomplete.
#[must_use]
pub fn control_opcode(bytes: &[u8]) -> Option<Opcode> {
    let mut reader = Reader::new(bytes);
    FrameHead::decode(&mut reader).ok()?;
    match reader.rest() {
        [0, ..] => None,
        [_, opcode, ..] => Some(Opcode(*opcode)),
        _ => None,
    }
}

/// Whether a complete frame is a control message.
pub(crate) fn is_control(frame: &[u8], head: FrameHead) -> bool {
    frame.get(head.bytes()).is_some_and(|byte| *byte != 0)
}

/// The control message in the bytes of a complete frame.
pub(crate) fn control_in_frame(frame: &[u8], from: Option<Side>) -> Result<Control<'_>> {
    let mut reader = Reader::new(frame);
    let head = FrameHead::decode(&mut reader)?;
    reader.part(head.length as usize, |reader| {
        let (_, opcode, _) = decode_body_head(reader)?;
        let control = Control::decode(opcode, from, reader)?;
        decode_trailer(reader)?;
        Ok(control)
    })
}

/// The DML messages in the bytes of a complete data frame.
pub(crate) fn spans(frame: &[u8], head: FrameHead) -> Result<Vec<MessageSpan>> {
    let mut found = Vec::with_capacity(1);
    let mut at = head.body();
    while let Some(span) = span_at(frame, head, at, found.len())? {
        at = span.range.end;
        found.push(span);
    }
    Ok(found)
}

/// The DML message at this offset of a complete data frame; `index` is its position among the
/// messages. Returns `None` after the last one.
pub(crate) fn span_at(
    frame: &[u8],
    head: FrameHead,
    at: usize,
    index: usize,
) -> Result<Option<MessageSpan>> {
    let mut reader = Reader::new(frame);
    reader.take(at)?;
    if reader.remaining() <= 1 {
        return Ok(None);
    }
    let message = RawMessage::decode(&mut reader, head.is_large() && index == 0)
        .map_err(|error| error.closed().inside_item(index).inside("messages"))?;
    let (service, order) = (message.service, message.order);
    Ok(Some(MessageSpan { service, order, range: at..reader.position() }))
}

fn decode_body_head<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<(u8, Opcode, u16)> {
    let is_control = reader.u8("isControl")?;
    let opcode = match is_control {
        0 => Opcode(reader.u8("opcode")?),
        _ => Opcode::decode(reader, "opcode")?,
    };
    Ok((is_control, opcode, reader.u16("reserved")?))
}

fn decode_messages<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    head: FrameHead,
    mut read: impl FnMut(&mut Reader<'d, T>, bool) -> Result<RawMessage<'d>>,
) -> Result<Vec<RawMessage<'d>>> {
    let mut messages = Vec::with_capacity(1);
    while reader.remaining() > 1 {
        let first = head.is_large() && messages.is_empty();
        let message = reader
            .item(messages.len(), |reader| reader.record("", |reader| read(reader, first)))?;
        messages.push(message);
    }
    Ok(messages)
}

fn messages_from_json(json: Given<'_>, protocols: &Protocols) -> Result<Vec<RawMessage<'static>>> {
    let items = json.as_array().ok_or_else(|| json::expected("an array", &json))?;
    let read = |(index, item)| {
        RawMessage::from_named_json(json.at(item), protocols)
            .map_err(|error: Error| error.inside_item(index))
    };
    items.iter().enumerate().map(read).collect()
}

fn optional<F: for<'a> Field<'a>>(
    fields: &mut FieldsOf<'_>,
    name: &'static str,
) -> Result<Option<F>> {
    let json = fields.given_optional(name);
    json.map(F::from_json).transpose().map_err(|error| error.inside(name))
}

fn decode_trailer<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Option<u8>> {
    match reader.remaining() {
        0 => Ok(None),
        _ => reader.u8("trailer").map(Some),
    }
}

impl<'d> Frame<'d> {
    /// A frame with a control message, as today's servers and clients send it.
    #[must_use]
    pub fn control(control: Control<'d>) -> Self {
        Self {
            form: FrameForm::Canonical,
            is_control: 1,
            opcode: control.opcode(),
            reserved: 0,
            body: Body::Control(control),
            trailer: Some(0),
        }
    }

    /// A frame with a DML message, as today's servers and clients send it.
    #[must_use]
    pub fn message(message: RawMessage<'d>) -> Self {
        Self {
            form: FrameForm::Canonical,
            is_control: 0,
            opcode: Opcode(0),
            reserved: 0,
            body: Body::Data(vec![message]),
            trailer: Some(0),
        }
    }

    /// Decodes a frame. Shows the fields of a control message in `fields`, and DML messages in
    /// `messages`. `from` selects between the two forms of keep-alives.
    ///
    /// # Errors
    /// `Incomplete` if bytes are missing; `Malformed` if they are not a frame or do not hold whole
    /// messages.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
    ) -> Result<Self> {
        Self::decode_with(reader, from, RawMessage::decode)
    }

    fn decode_with<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        read: impl FnMut(&mut Reader<'d, T>, bool) -> Result<RawMessage<'d>>,
    ) -> Result<Self> {
        let head = FrameHead::decode(reader)?;
        reader.part(head.length as usize, |reader| {
            let (is_control, opcode, reserved) = decode_body_head(reader)?;
            let body = if is_control == 0 {
                Body::Data(reader.list("messages", |reader| decode_messages(reader, head, read))?)
            } else {
                let fields = |reader: &mut Reader<'d, T>| Control::decode(opcode, from, reader);
                Body::Control(reader.record("fields", fields)?)
            };
            let trailer = decode_trailer(reader)?;
            Ok(Self { form: head.form, is_control, opcode, reserved, body, trailer })
        })
    }

    /// Decodes a frame like [`Frame::decode`], with the names and fields of the definitions.
    /// Messages that have no definition or do not match it are shown as bytes.
    pub fn decode_named<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        protocols: &'n Protocols,
    ) -> Result<Self> {
        Self::decode_with(reader, from, |reader, first| {
            reader
                .attempt(|reader| RawMessage::decode_named(reader, first, protocols))
                .or_else(|_| RawMessage::decode(reader, first))
        })
    }

    /// Reads a frame from JSON, the exact inverse of writing the traced frame as JSON. Message
    /// names are taken from the definitions.
    pub fn from_json<'j>(json: impl Into<Given<'j>>, protocols: &Protocols) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        // These fields are derived from the rest.
        fields.take_optional("magic");
        fields.take_optional("length");
        let marker: Option<u16> = optional(&mut fields, "marker")?;
        let is_control: u8 = optional(&mut fields, "isControl")?.unwrap_or(0);
        let reserved = optional(&mut fields, "reserved")?.unwrap_or(0);
        let trailer = optional(&mut fields, "trailer")?;
        let opcode: Option<Opcode> = optional(&mut fields, "opcode")?;
        let body = if is_control == 0 {
            let messages = fields.given("messages")?;
            Body::Data(
                messages_from_json(messages, protocols)
                    .map_err(|error| error.inside("messages"))?,
            )
        } else {
            let missing = || Error::invalid("is missing in a control message").inside("opcode");
            let opcode = opcode.ok_or_else(missing)?;
            let control = Control::from_json(opcode, fields.take("fields")?);
            Body::Control(control.map_err(|error| error.inside("fields"))?)
        };
        fields.end()?;
        let opcode = opcode.unwrap_or_default();
        let form = FrameForm::Canonical;
        let mut frame = Self { form, is_control, opcode, reserved, body, trailer };
        if let Some(marker) = marker {
            let length = frame.to_bytes()?.len() - 4;
            // The usual form may be omitted.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let large = length >= u32::from(LARGE);
            frame.form = FrameForm::of(marker, if large { length } else { 0 });
        }
        Ok(frame)
    }

    /// Encodes the frame, the exact inverse of decoding.
    ///
    /// # Errors
    /// `Value` if a message is too long for its length field.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let mut body = Writer::new();
        body.u8(self.is_control);
        body.u8(self.opcode.0);
        body.u16(self.reserved);
        match &self.body {
            Body::Control(control) => control.encode(&mut body)?,
            Body::Data(messages) => {
                for (index, message) in messages.iter().enumerate() {
                    message
                        .encode(&mut body)
                        .map_err(|error| error.inside_item(index).inside("messages"))?;
                }
            }
        }
        if let Some(trailer) = self.trailer {
            body.u8(trailer);
        }
        let length = u32::try_from(body.len()).map_err(|_| {
            Error::value("a body of at most 4294967295 bytes", body.len().to_string())
        })?;
        FrameHead { form: self.form, length }.encode(writer);
        writer.bytes(body.as_bytes());
        Ok(())
    }

    /// Encodes the frame to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }
}
