//! Control messages: session offers and accepts, and keep-alives.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{
    Field, FieldInfo, Form, Reader, Record, Result, Shape, Side, Trace, Writer, record, wire_enum,
};

use crate::crypto_block::{self, CryptoBlock};

wire_enum! {
    /// The type of a control message, `u8`.
    pub enum Opcode(u8) {
        /// The server offers a session.
        SessionOffer = 0,
        /// The first datagram of a UDP conversation. Its contents are unknown.
        UdpHello = 1,
        /// Asks whether the other side is alive.
        KeepAlive = 3,
        /// The response to a keep-alive.
        KeepAliveRsp = 4,
        /// The client accepts the session.
        SessionAccept = 5,
    }
}

/// A control message, without frame and trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control<'d> {
    /// Sent by the server: offers a session.
    SessionOffer(SessionOffer<'d>),
    /// Sent by the client: accepts the session.
    SessionAccept(SessionAccept<'d>),
    /// Sent by either side, at its own intervals.
    KeepAlive(KeepAlive),
    /// The response to a keep-alive, which echoes the request. Some clients send it empty.
    KeepAliveRsp(Option<KeepAlive>),
    /// Any other opcode.
    Other {
        /// The message's opcode.
        opcode: Opcode,
        /// Everything after the frame's header.
        body: Cow<'d, [u8]>,
    },
}

record! {
    /// A time as sent over the wire: Unix seconds in two halves, upper half first, and
    /// milliseconds.
    pub struct SessionTime {
        /// The upper half of the seconds.
        high "timeHigh": i32,
        /// The lower half of the seconds.
        low "timeLow": i32,
        /// Milliseconds within the second.
        millis "millis": u32,
    }
}

impl Copy for SessionTime {}
impl Eq for SessionTime {}

impl SessionTime {
    /// Creates a time from Unix seconds and milliseconds.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "splits the number into halves")]
    pub const fn new(seconds: i64, millis: u32) -> Self {
        Self { high: (seconds >> 32) as i32, low: seconds as i32, millis }
    }

    /// Creates a time from the time since the Unix epoch.
    #[must_use]
    pub fn since_1970(time: core::time::Duration) -> Self {
        Self::new(time.as_secs().cast_signed(), time.subsec_millis())
    }

    /// The Unix seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        ((self.high as i64) << 32) | (self.low.cast_unsigned() as i64)
    }
}

/// A server's first message, which it repeats whenever it wants a new session on the same
/// connection.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `sessionId` | `u16` | 1 to 65535 |
/// | 2 | `timeHigh` | `i32` | |
/// | 6 | `timeLow` | `i32` | |
/// | 10 | `millis` | `u32` | |
/// | 14 | `crypto` | [`CryptoBlock`] | may be missing |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOffer<'d> {
    /// The session ID.
    pub session_id: u16,
    /// The server's clock. All secrets of the login depend on it.
    pub time: SessionTime,
    /// The encryption handshake.
    pub crypto: Option<CryptoBlock<'d>>,
}

/// A client's reply to an offer. Like the offer, it can arrive at any time.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `reserved` | `u16` | 0 |
/// | 2 | `timeHigh` | `i32` | |
/// | 6 | `timeLow` | `i32` | |
/// | 10 | `millis` | `u32` | |
/// | 14 | `sessionId` | `u16` | the offered one |
/// | 16 | `crypto` | [`CryptoBlock`] | may be missing |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionAccept<'d> {
    /// Always 0.
    pub reserved: u16,
    /// The client's own clock, not the offer's.
    pub time: SessionTime,
    /// The offered session ID.
    pub session_id: u16,
    /// The encryption handshake.
    pub crypto: Option<CryptoBlock<'d>>,
}

/// The contents of keep-alives: six bytes, in the form used by the side that sends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// A client's request, and the server's response to it.
    Client {
        /// The session ID.
        session_id: u16,
        /// Milliseconds; not limited to 999 (14097 has been observed).
        millis: u16,
        /// Minutes since the client started the session.
        minutes: u16,
    },
    /// A server's request, and the client's response to it.
    Server {
        /// 0 in place of a session ID.
        session_id: u16,
        /// Milliseconds since the server started.
        uptime_millis: u32,
    },
}

/// The condition for a field that is present if more than a trailer is left in its frame.
pub const MORE_FOLLOWS: &str = "more than a trailer follows";

/// The size of a [`KeepAlive`] in bytes.
const KEEP_ALIVE_BYTES: usize = 6;
/// The size of a trailer in bytes.
const TRAILER_BYTES: usize = 1;

impl<'d> Control<'d> {
    /// The opcode.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::SessionOffer(_) => Opcode::SessionOffer,
            Self::SessionAccept(_) => Opcode::SessionAccept,
            Self::KeepAlive(_) => Opcode::KeepAlive,
            Self::KeepAliveRsp(_) => Opcode::KeepAliveRsp,
            Self::Other { opcode, .. } => *opcode,
        }
    }

    /// The fields of the message with this opcode, from this side.
    #[must_use]
    pub fn fields(opcode: Opcode, from: Side) -> Vec<FieldInfo> {
        let number = |name| FieldInfo::of::<u16>(name, "");
        let alive = |from| match from {
            Side::Client => vec![number("sessionId"), number("millis"), number("minutes")],
            Side::Server => vec![number("sessionId"), FieldInfo::of::<u32>("uptimeMillis", "")],
        };
        let block = Shape::Counted { form: Form::Bytes, count: 4, unit: 1, end: 0 };
        let shape = Shape::Optional(MORE_FOLLOWS, Box::new(block));
        let layout = "u32 count, bytes, or a handshake".into();
        let crypto = FieldInfo { name: "crypto", layout, shape, doc: "" };
        match opcode {
            Opcode::SessionOffer => {
                [vec![number("sessionId")], SessionTime::fields(), vec![crypto]].concat()
            }
            Opcode::SessionAccept => {
                let before = [vec![number("reserved")], SessionTime::fields()].concat();
                [before, vec![number("sessionId"), crypto]].concat()
            }
            Opcode::KeepAlive => alive(from),
            // The response has the form of the request.
            Opcode::KeepAliveRsp => alive(from.other()),
            _ => vec![FieldInfo::in_words("body", "bytes", "")],
        }
    }

    /// Decodes the fields of the message with this opcode into the current scope, from a reader
    /// that ends with the frame's body. One byte, the trailer, may be left over.
    ///
    /// `from` selects between the two forms of keep-alives. Without it, a session ID of 0 means the
    /// server's form.
    pub fn decode<'n, T: Trace<'n>>(
        opcode: Opcode,
        from: Option<Side>,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        Ok(match opcode {
            Opcode::SessionOffer => Self::SessionOffer(SessionOffer {
                session_id: reader.u16("sessionId")?,
                time: SessionTime::decode_fields(reader)?,
                crypto: CryptoBlock::decode(crypto_block::OFFER, reader)?,
            }),
            Opcode::SessionAccept => Self::SessionAccept(SessionAccept {
                reserved: reader.u16("reserved")?,
                time: SessionTime::decode_fields(reader)?,
                session_id: reader.u16("sessionId")?,
                crypto: CryptoBlock::decode(crypto_block::ACCEPT, reader)?,
            }),
            Opcode::KeepAlive => Self::KeepAlive(KeepAlive::decode(from, reader)?),
            Opcode::KeepAliveRsp if reader.remaining() <= TRAILER_BYTES => Self::KeepAliveRsp(None),
            Opcode::KeepAliveRsp => {
                // The response has the form of the request, which the other side sent.
                let asked = from.map(Side::other);
                Self::KeepAliveRsp(Some(KeepAlive::decode(asked, reader)?))
            }
            opcode => {
                let count = reader.remaining();
                Self::Other { opcode, body: reader.bytes("body", count)?.into() }
            }
        })
    }

    /// Encodes the fields, the exact inverse of decoding.
    ///
    /// # Errors
    /// `Value` if a crypto block is too long for its length field.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::SessionOffer(offer) => {
                writer.u16(offer.session_id);
                offer.time.encode(writer)?;
                crypto_block::encode(offer.crypto.as_ref(), writer)
            }
            Self::SessionAccept(accept) => {
                writer.u16(accept.reserved);
                accept.time.encode(writer)?;
                writer.u16(accept.session_id);
                crypto_block::encode(accept.crypto.as_ref(), writer)
            }
            Self::KeepAlive(alive) | Self::KeepAliveRsp(Some(alive)) => {
                alive.encode(writer);
                Ok(())
            }
            Self::KeepAliveRsp(None) => Ok(()),
            Self::Other { body, .. } => {
                writer.bytes(body);
                Ok(())
            }
        }
    }

    /// Reads the message with this opcode from the JSON of its fields.
    pub fn from_json(opcode: Opcode, fields: &Json) -> Result<Self> {
        let mut fields = FieldsOf::new(fields)?;
        let control = match opcode {
            Opcode::SessionOffer => Self::SessionOffer(SessionOffer {
                session_id: fields.value("sessionId")?,
                time: time_from_json(&mut fields)?,
                crypto: CryptoBlock::from_json(crypto_block::OFFER, &mut fields)?,
            }),
            Opcode::SessionAccept => Self::SessionAccept(SessionAccept {
                reserved: fields.value("reserved")?,
                time: time_from_json(&mut fields)?,
                session_id: fields.value("sessionId")?,
                crypto: CryptoBlock::from_json(crypto_block::ACCEPT, &mut fields)?,
            }),
            Opcode::KeepAlive => Self::KeepAlive(KeepAlive::from_json(&mut fields)?),
            Opcode::KeepAliveRsp if fields.is_empty() => Self::KeepAliveRsp(None),
            Opcode::KeepAliveRsp => Self::KeepAliveRsp(Some(KeepAlive::from_json(&mut fields)?)),
            opcode => {
                let body = json::bytes(fields.take("body")?).map_err(|e| e.inside("body"))?;
                Self::Other { opcode, body: body.into() }
            }
        };
        fields.end()?;
        Ok(control)
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> Control<'static> {
        let owned = |crypto: Option<CryptoBlock<'d>>| crypto.map(CryptoBlock::into_owned);
        match self {
            Self::SessionOffer(SessionOffer { session_id, time, crypto }) => {
                Control::SessionOffer(SessionOffer { session_id, time, crypto: owned(crypto) })
            }
            Self::SessionAccept(SessionAccept { reserved, time, session_id, crypto }) => {
                let crypto = owned(crypto);
                Control::SessionAccept(SessionAccept { reserved, time, session_id, crypto })
            }
            Self::KeepAlive(alive) => Control::KeepAlive(alive),
            Self::KeepAliveRsp(alive) => Control::KeepAliveRsp(alive),
            Self::Other { opcode, body } => {
                Control::Other { opcode, body: body.into_owned().into() }
            }
        }
    }
}

impl KeepAlive {
    fn decode<'d, 'n, T: Trace<'n>>(
        asked: Option<Side>,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let asked = asked.unwrap_or_else(|| match reader.rest() {
            [0, 0, ..] => Side::Server,
            _ => Side::Client,
        });
        Ok(match asked {
            Side::Client => Self::Client {
                session_id: reader.u16("sessionId")?,
                millis: reader.u16("millis")?,
                minutes: reader.u16("minutes")?,
            },
            Side::Server => Self::Server {
                session_id: reader.u16("sessionId")?,
                uptime_millis: reader.u32("uptimeMillis")?,
            },
        })
    }

    fn encode(self, writer: &mut Writer) {
        let before = writer.len();
        match self {
            Self::Client { session_id, millis, minutes } => {
                writer.u16(session_id);
                writer.u16(millis);
                writer.u16(minutes);
            }
            Self::Server { session_id, uptime_millis } => {
                writer.u16(session_id);
                writer.u32(uptime_millis);
            }
        }
        debug_assert_eq!(writer.len() - before, KEEP_ALIVE_BYTES, "both forms have the same size");
    }

    fn from_json(fields: &mut FieldsOf<'_>) -> Result<Self> {
        if fields.has("uptimeMillis") {
            return Ok(Self::Server {
                session_id: fields.value("sessionId")?,
                uptime_millis: fields.value("uptimeMillis")?,
            });
        }
        Ok(Self::Client {
            session_id: fields.value("sessionId")?,
            millis: fields.value("millis")?,
            minutes: fields.value("minutes")?,
        })
    }
}

fn time_from_json(fields: &mut FieldsOf<'_>) -> Result<SessionTime> {
    Ok(SessionTime {
        high: fields.value("timeHigh")?,
        low: fields.value("timeLow")?,
        millis: fields.value("millis")?,
    })
}
