//! The plaintext of an encrypted datagram.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field as _, Float, Reader, Result, Sampler, Side, Trace, Value, Writer, wire_flags,
};

use super::rpc::list;
use super::section::{Measuring, Section};
use super::sequence::SequenceWord;
use crate::crypt::UNCOUNTED_BYTES;

wire_flags! {
    /// The flags at the start of a packet's payload.
    ///
    /// Unverified: the meaning of 0x20, which clients sometimes set.
    pub struct RccFlags(u8) {
        /// Always set.
        Always = 0x02,
        /// The sequence state is reset. A server sets it when the world changes, and the client
        /// confirms it.
        Reset = 0x40,
        /// The simulation's time follows, as `f32`.
        SimTime = 0x80,
    }
}

/// A packet: the contents of an encrypted datagram, without padding.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `crc` | `u32` | CRC-32 (zlib) of everything after it |
/// | 4 | `length` | `u16` | bytes from `sequence` on |
/// | 6 | `time` | `u32` | seconds since 1970 |
/// | 10 | `sequence` | [`SequenceWord`] | big-endian |
/// | 14 | `flags` | [`RccFlags`] | |
/// | 15 | `simTime` | `f32` | only with [`RccFlags::SimTime`] |
/// | | `sections` | [`Section`] each | to the end |
///
/// A packet without sections only acknowledges packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'d> {
    /// Seconds since 1970 on the sender's clock.
    pub time: u32,
    /// The packet's number and the sender's acknowledgements.
    pub sequence: SequenceWord,
    /// Whether a time follows and whether the sequence is reset.
    pub flags: RccFlags,
    /// The server simulation's time in seconds, which the server adds to a packet every few
    /// seconds; present with [`RccFlags::SimTime`].
    pub sim_time: Option<Float>,
    /// The contents.
    pub sections: Vec<Section<'d>>,
}

/// The number of bytes before the RCC flags.
pub(crate) const HEAD_BYTES: usize = 14;
/// The fields before the sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// Seconds since 1970.
    pub time: u32,
    /// The sequence word.
    pub sequence: SequenceWord,
    /// The RCC flags.
    pub flags: RccFlags,
    /// The simulation's time.
    pub sim_time: Option<Float>,
}

impl PacketHead {
    /// Reads the fields and checks length and CRC, so the reader must be bounded to one packet.
    pub fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let time = decode_head(reader)?;
        let sequence = SequenceWord::decode(reader, "sequence")?;
        let flags = RccFlags::decode(reader, "flags")?;
        let has_time = flags.contains(RccFlags::SimTime);
        let sim_time = has_time.then(|| Float::decode(reader, "simTime")).transpose()?;
        Ok(Self { time, sequence, flags, sim_time })
    }
}

/// Reads CRC, length and time, and checks them; returns the time.
pub(super) fn decode_head<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<u32> {
    let start = reader.place();
    let crc = reader.shown("crc", |reader| reader.take_array().map(u32::from_le_bytes), hex)?;
    let found = crc32fast::hash(reader.rest());
    let length = reader.u16("length")?;
    let time = reader.u32("time")?;
    if usize::from(length) != reader.remaining() {
        let found = reader.remaining().to_string();
        let error = Error::malformed(format!("{length} bytes after the time"), found);
        return Err(error.at(u64::from(start.byte) + 4).inside("length"));
    }
    if crc != found {
        let error = Error::malformed(format!("CRC-32 {found:08x}"), format!("{crc:08x}"));
        return Err(error.at(start.byte.into()).inside("crc"));
    }
    Ok(time)
}

fn hex<'n>(number: &u32) -> Value<'n> {
    Value::Hex((*number).into())
}

impl<'d> Packet<'d> {
    /// A packet without sections.
    #[must_use]
    pub fn new(time: u32, sequence: SequenceWord) -> Self {
        Self { time, sequence, flags: RccFlags::Always, sim_time: None, sections: Vec::new() }
    }

    /// Reads a packet to the end of the input. An object section takes the rest of it: see
    /// [`decode_measured`](Self::decode_measured). `from` selects the names of opcodes.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
    ) -> Result<Self> {
        Self::decode_measured(reader, from, &mut |bytes| Ok(bytes.len()))
    }

    /// Reads a packet to the end of the input. `measure` returns how many of the given bytes an
    /// object section takes, so that the sections after it can be read, too.
    pub fn decode_measured<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        measure: Measuring<'_>,
    ) -> Result<Self> {
        Self::decode_sections(reader, from, measure, false)
    }

    /// Like [`decode_measured`](Self::decode_measured), but for observers: RPC lists that cannot be
    /// read are kept as bytes, together with everything after them. [`Section::rpc_fault`] states
    /// the problem.
    pub fn decode_lenient<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        measure: Measuring<'_>,
    ) -> Result<Self> {
        Self::decode_sections(reader, from, measure, true)
    }

    fn decode_sections<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        measure: Measuring<'_>,
        is_lenient: bool,
    ) -> Result<Self> {
        let PacketHead { time, sequence, flags, sim_time } = PacketHead::decode(reader)?;
        let sections = reader.list("sections", |reader| {
            let mut sections = Vec::new();
            while reader.remaining() > 0 {
                let read = |reader: &mut Reader<'d, T>| {
                    Section::decode(reader, from, &mut *measure, is_lenient)
                };
                let section = reader.item(sections.len(), |reader| reader.record("", read))?;
                sections.push(section);
            }
            Ok(sections)
        })?;
        Ok(Self { time, sequence, flags, sim_time, sections })
    }

    /// Writes the packet, with its length and CRC.
    ///
    /// # Errors
    /// A value error if the flags do not match the simulation's time, or if a section's content
    /// does not match its kind; limit errors for RPC lists and the length.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.flags.contains(RccFlags::SimTime) != self.sim_time.is_some() {
            let found = if self.sim_time.is_some() { "a time" } else { "none" };
            return Err(Error::value("a simTime that matches the flags", found).inside("simTime"));
        }
        let mut body = Writer::new();
        self.sequence.encode(&mut body)?;
        body.u8(self.flags.0);
        if let Some(time) = self.sim_time {
            time.encode(&mut body)?;
        }
        for (index, section) in self.sections.iter().enumerate() {
            let inside = |error: Error| error.inside_item(index).inside("sections");
            section.encode(&mut body).map_err(inside)?;
        }
        encode_head(self.time, body.as_bytes(), writer)
    }

    /// The bytes of the packet.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Reads the packet from JSON; the exact inverse of writing the traced packet as JSON. Length
    /// and CRC are recomputed.
    ///
    /// Parts that a [relay](crate::connection::Sender#additions-of-a-relay) ignores in a packet to
    /// be added can be omitted: the time, the sequence word and the numbers of RPC lists, which
    /// then default to 0, and the flags, which default to [`RccFlags::Always`].
    pub fn from_json<'j>(
        json: impl Into<Given<'j>>,
        from: Option<Side>,
    ) -> Result<Packet<'static>> {
        let mut fields = FieldsOf::new(json)?;
        fields.take_optional("crc");
        fields.take_optional("length");
        let time = if fields.has("time") { fields.value("time")? } else { 0 };
        let sequence = match fields.has("sequence") {
            true => fields.value("sequence")?,
            false => SequenceWord::default(),
        };
        let flags = if fields.has("flags") { fields.value("flags")? } else { RccFlags::Always };
        let sim_time = fields.given_optional("simTime").map(Float::from_json).transpose();
        let sim_time = sim_time.map_err(|error| error.inside("simTime"))?;
        let sections = list(fields.given("sections")?, |json| Section::from_json(json, from))
            .map_err(|error| error.inside("sections"))?;
        fields.end()?;
        Ok(Packet { time, sequence, flags, sim_time, sections })
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> Packet<'static> {
        let Self { time, sequence, flags, sim_time, sections } = self;
        let sections = sections.into_iter().map(Section::into_owned).collect();
        Packet { time, sequence, flags, sim_time, sections }
    }

    /// Generates a packet.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> Packet<'static> {
        let sim_time = (sampler.below(3) == 0).then(|| Float::sample(sampler));
        let flags =
            RccFlags(u8::sample(sampler) & 0x7f | if sim_time.is_some() { 0x80 } else { 0 });
        let count = sampler.length(3);
        Packet {
            time: u32::sample(sampler),
            sequence: SequenceWord::sample(sampler),
            flags,
            sim_time,
            sections: (1..=count).map(|at| Section::sample(sampler, at == count)).collect(),
        }
    }
}

/// Writes CRC, length and time, followed by the body.
pub(crate) fn encode_head(time: u32, body: &[u8], writer: &mut Writer) -> Result<()> {
    let Ok(length) = u16::try_from(body.len()) else {
        return Err(Error::limit("bytes of a packet", u16::MAX.into(), body.len() as u64));
    };
    let mut counted = Writer::append_to(Vec::with_capacity(UNCOUNTED_BYTES + body.len()));
    counted.u16(length);
    counted.u32(time);
    counted.bytes(body);
    writer.u32(crc32fast::hash(counted.as_bytes()));
    writer.bytes(counted.as_bytes());
    Ok(())
}
