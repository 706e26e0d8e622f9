//! Packets that are not encrypted.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Field, Form, Names, Reader, Result, Sampler, Trace, Value, Writer};

/// A packet whose first byte is 0.
///
/// The first bytes and the length determine the kind:
///
/// | kind | sender | layout |
/// | --- | --- | --- |
/// | `Hello` | client | `00 00 00 00 00 00 03 08 00 00 00`, a [`Hello`]: 43 bytes |
/// | `Answer` | server | `00 00 00 00 00 00 05`: 7 bytes |
/// | `Ping` | client | `00 00 00 00 00 01 04 08`, `u32`: 12 bytes |
/// | `Other` | | anything else |
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plain<'d> {
    /// Asks a server to start the session.
    Hello(Hello),
    /// Confirms that the session has started. The server sends five.
    Answer,
    /// A keep-alive; the server returns it unchanged.
    ///
    /// Unverified: that only clients send it. In this crate, servers never send one of their own,
    /// and clients do not return one.
    Ping(u32),
    /// An unknown packet, including its first byte.
    Other(Cow<'d, [u8]>),
}

/// A client's first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// `characterUid`: the character, as the margin server named it.
    pub character_uid: u64,
    /// `unknown`. Unverified: 0x384 was seen.
    pub unknown: u64,
    /// `encryptedSession`: a block of 16 bytes, encrypted with the session's key: see
    /// [`SessionKey::open_block`](crate::crypt::SessionKey::open_block). Its first `u32` is the
    /// session's ID, which the margin server assigned. The rest is unknown.
    pub encrypted_session: [u8; 16],
}

/// The number of answers that a server sends to a hello.
pub const ANSWERS: usize = 5;

const HELLO: [u8; 11] = [0, 0, 0, 0, 0, 0, 3, 8, 0, 0, 0];
const ANSWER: [u8; 7] = [0, 0, 0, 0, 0, 0, 5];
const PING: [u8; 8] = [0, 0, 0, 0, 0, 1, 4, 8];
/// The size of a hello in bytes.
const HELLO_BYTES: usize = 43;
const PING_BYTES: usize = 12;

static KINDS: Names =
    Names::fixed(&[(0, "Other"), (1, "Hello"), (2, "Answer"), (3, "Ping")]).words();

impl<'d> Plain<'d> {
    /// Reads a packet that extends to the end of the input.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let bytes = reader.rest();
        if bytes.first() != Some(&0) {
            let found = bytes.first().map_or_else(|| "none".into(), |byte| format!("{byte:02x}"));
            return Err(reader.place_error(Error::malformed("the byte 00", found)));
        }
        let (kind, head) = match bytes.len() {
            HELLO_BYTES if bytes.starts_with(&HELLO) => (1, HELLO.len()),
            7 if bytes == ANSWER => (2, ANSWER.len()),
            PING_BYTES if bytes.starts_with(&PING) => (3, PING.len()),
            _ => (0, 0),
        };
        reader.shown("kind", |reader| reader.take(head), |_| Value::Enum(kind, &KINDS))?;
        Ok(match kind {
            1 => Self::Hello(Hello {
                character_uid: reader.u64("characterUid")?,
                unknown: reader.u64("unknown")?,
                encrypted_session: Field::decode(reader, "encryptedSession")?,
            }),
            2 => Self::Answer,
            3 => Self::Ping(reader.u32("value")?),
            _ => {
                let (start, length) = (reader.place(), bytes.len());
                Self::Other(reader.blob("bytes", start, length, Form::Bytes)?.into())
            }
        })
    }

    /// Writes the packet.
    ///
    /// # Errors
    /// A value error if an [`Other`](Self::Other) does not begin with 0 or has the layout of a
    /// known kind.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Hello(hello) => {
                writer.bytes(&HELLO);
                writer.u64(hello.character_uid);
                writer.u64(hello.unknown);
                writer.bytes(&hello.encrypted_session);
            }
            Self::Answer => writer.bytes(&ANSWER),
            Self::Ping(value) => {
                writer.bytes(&PING);
                writer.u32(*value);
            }
            Self::Other(bytes) => {
                if !matches!(Plain::decode(&mut Reader::new(bytes)), Ok(Plain::Other(_))) {
                    let found = format!(
                        "{} bytes that decode as a known packet, or not at all",
                        bytes.len()
                    );
                    return Err(Error::value("an unknown plain packet", found).inside("bytes"));
                }
                writer.bytes(bytes);
            }
        }
        Ok(())
    }

    /// The bytes of the packet.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Reads the packet from JSON; the exact inverse of writing the traced packet as JSON.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let kind = json::named(fields.take("kind")?, &KINDS);
        let plain = match kind.map_err(|error| error.inside("kind"))? {
            1 => Self::Hello(Hello {
                character_uid: fields.value("characterUid")?,
                unknown: fields.value("unknown")?,
                encrypted_session: fields.value("encryptedSession")?,
            }),
            2 => Self::Answer,
            3 => Self::Ping(fields.value("value")?),
            0 => {
                let bytes = fields.given("bytes")?.bytes();
                Self::Other(bytes.map_err(|error| error.inside("bytes"))?.into())
            }
            other => {
                let error = Error::value("a kind of plain packet", other.to_string());
                return Err(error.inside("kind"));
            }
        };
        fields.end()?;
        Ok(plain)
    }

    /// Whether bytes look like a damaged hello, answer or ping: most of the first bytes match.
    #[must_use]
    pub fn resembles_setup(bytes: &[u8]) -> bool {
        /// The number of bytes that may differ.
        const MAX_WRONG: usize = 2;
        [&HELLO[..], &ANSWER, &PING].into_iter().any(|head| {
            let wrong = head.iter().zip(bytes).filter(|(head, byte)| head != byte).count();
            bytes.len() >= head.len() && wrong <= MAX_WRONG
        })
    }

    /// The name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "Hello",
            Self::Answer => "Answer",
            Self::Ping(_) => "Ping",
            Self::Other(_) => "Other",
        }
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> Plain<'static> {
        match self {
            Self::Hello(hello) => Plain::Hello(hello),
            Self::Answer => Plain::Answer,
            Self::Ping(value) => Plain::Ping(value),
            Self::Other(bytes) => Plain::Other(Cow::Owned(bytes.into_owned())),
        }
    }

    /// Generates a packet.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> Plain<'static> {
        match sampler.below(4) {
            0 => Plain::Hello(Hello {
                character_uid: sampler.number(),
                unknown: 0x384,
                encrypted_session: Field::sample(sampler),
            }),
            1 => Plain::Answer,
            2 => Plain::Ping(Field::sample(sampler)),
            _ => {
                let length = sampler.length(24);
                Plain::Other([&[0][..], &sampler.bytes(length)].concat().into())
            }
        }
    }
}
