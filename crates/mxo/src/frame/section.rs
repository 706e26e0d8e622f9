//! MPM sections, the contents of packets.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Error, Form, Names, Place, Reader, Result, Sampler, Side, Trace, Value, Writer,
};

use super::rpc::{
    RpcList, decode_lists, encode_lists, lists_from_json, lists_into_owned, sample_lists,
};

/// A section of a packet: the ID of a handler, and the content for that handler.
///
/// | ID | sender | content |
/// | --- | --- | --- |
/// | 03 | both | [objects](Self::Objects): creates, updates, deletes |
/// | 04 | both | [RPC lists](Self::Rpc): reliable messages in order |
/// | 05 | client | unknown: `05 02 0c 00 00` was seen |
///
/// Sections have no length field. The end of RPC lists follows from their contents. The end of
/// objects can be determined only with the tables of their classes: see [`Measure`]. The length of
/// an unknown section cannot be determined, so it takes the rest of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section<'d> {
    /// 03: views of objects, without the ID and with the terminator.
    Objects(Cow<'d, [u8]>),
    /// 04: RPC lists.
    Rpc(Vec<RpcList<'d>>),
    /// Any other ID, to the end of the packet; also 04 if its lists cannot be read, see
    /// [`Packet::decode_lenient`](super::Packet::decode_lenient).
    Other {
        /// The ID.
        id: u8,
        /// The bytes after the ID.
        bytes: Cow<'d, [u8]>,
    },
}

/// The ID of object sections.
pub const OBJECTS: u8 = 3;
/// The ID of RPC lists.
pub const RPC: u8 = 4;

/// The names of section IDs.
pub static SECTIONS: Names = Names::fixed(&[(3, "Objects"), (4, "Rpc"), (5, "Unknown5")]);

/// Finds the end of object sections, which have no length.
///
/// This requires the views of the connection and the layouts of their classes. [`ToTheEnd`] does
/// without them and takes the rest of the packet.
pub trait Measure: fmt::Debug + Send + Sync {
    /// The number of these bytes that belong to the object section. `bytes` start after its ID and
    /// extend to the end of the packet. Called once for each section, in order of arrival, so that
    /// it can follow the creates and deletes of views.
    ///
    /// # Errors
    /// Any error of the section. A client or server then refuses the packet and does not acknowledge
    /// it, because messages after the section would be lost.
    fn objects(&mut self, from: Side, bytes: &[u8]) -> Result<usize>;
}

/// Takes the rest of the packet as the object section. Correct for peers that put nothing after it,
/// such as the state machines in this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToTheEnd;

impl Measure for ToTheEnd {
    fn objects(&mut self, _: Side, bytes: &[u8]) -> Result<usize> {
        Ok(bytes.len())
    }
}

/// How object sections are measured during a decode.
pub(super) type Measuring<'m> = &'m mut dyn FnMut(&[u8]) -> Result<usize>;

impl<'d> Section<'d> {
    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        from: Option<Side>,
        measure: Measuring<'_>,
        is_lenient: bool,
    ) -> Result<Self> {
        let start = reader.place();
        if let Some((&OBJECTS, behind)) = reader.rest().split_first() {
            let length = measure(behind)
                .map_err(|error| error.based(reader.position() as u64 + 1).inside("objects"))?;
            if T::ON {
                let end = Place { byte: start.byte + 1, ..start };
                reader.trace_mut().leaf("mpm", Value::Enum(OBJECTS.into(), &SECTIONS), start, end);
            }
            // Includes the ID, so that the section can be decoded alone.
            let bytes = reader.blob("objects", start, 1 + length, Form::Bytes)?;
            return Ok(Self::Objects(bytes.get(1..).unwrap_or_default().into()));
        }
        let id = reader.shown(
            "mpm",
            |reader| reader.take_array().map(|[id]: [u8; 1]| id),
            |id| Value::Enum((*id).into(), &SECTIONS),
        )?;
        let (start, left) = (reader.place(), reader.remaining());
        if id == RPC {
            let lists = match is_lenient {
                true => reader.attempt(|reader| decode_lists(reader, from)),
                false => decode_lists(reader, from),
            };
            if !is_lenient || lists.is_ok() {
                return lists.map(Self::Rpc);
            }
        }
        let bytes = reader.blob("bytes", start, left, Form::Bytes)?.into();
        Ok(Self::Other { id, bytes })
    }

    /// Why RPC lists were kept as bytes.
    #[must_use]
    pub fn rpc_fault(&self, from: Option<Side>) -> Option<Error> {
        match self {
            Self::Other { id: RPC, bytes } => {
                decode_lists(&mut Reader::new(bytes), from).map_err(Error::closed).err()
            }
            _ => None,
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Objects(bytes) => {
                writer.u8(OBJECTS);
                writer.bytes(bytes);
            }
            Self::Rpc(lists) => {
                writer.u8(RPC);
                encode_lists(lists, writer)?;
            }
            Self::Other { id, bytes } => {
                if *id == OBJECTS {
                    let error = Error::value("an ID other than 3", id.to_string());
                    return Err(error.inside("mpm"));
                }
                writer.u8(*id);
                writer.bytes(bytes);
            }
        }
        Ok(())
    }

    pub(super) fn from_json(json: Given<'_>, from: Option<Side>) -> Result<Section<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let id = json::named(fields.take("mpm")?, &SECTIONS)
            .and_then(|id| u8::try_from(id).map_err(|_| Error::value("a byte", id.to_string())))
            .map_err(|error| error.inside("mpm"))?;
        let is_blob = fields.has("bytes");
        let mut blob = |name| {
            let bytes = fields.given(name)?.bytes();
            bytes.map(Cow::<[u8]>::Owned).map_err(|error| error.inside(name))
        };
        let section = match id {
            OBJECTS => {
                let bytes = blob("objects")?;
                match bytes.split_first() {
                    Some((&OBJECTS, behind)) => Section::Objects(Cow::Owned(behind.to_vec())),
                    _ => {
                        let found = bytes.first().map_or_else(|| "none".to_owned(), u8::to_string);
                        let error = Error::value("a section that begins with its ID, 3", found);
                        return Err(error.inside("objects"));
                    }
                }
            }
            RPC if !is_blob => {
                let lists = lists_from_json(fields.given("lists")?, from);
                Section::Rpc(lists.map_err(|error| error.inside("lists"))?)
            }
            _ => Section::Other { id, bytes: blob("bytes")? },
        };
        fields.end()?;
        Ok(section)
    }

    /// The ID.
    #[must_use]
    pub fn id(&self) -> u8 {
        match self {
            Self::Objects(_) => OBJECTS,
            Self::Rpc(_) => RPC,
            Self::Other { id, .. } => *id,
        }
    }

    pub(super) fn into_owned(self) -> Section<'static> {
        match self {
            Self::Objects(bytes) => Section::Objects(Cow::Owned(bytes.into_owned())),
            Self::Rpc(lists) => Section::Rpc(lists_into_owned(lists)),
            Self::Other { id, bytes } => {
                Section::Other { id, bytes: Cow::Owned(bytes.into_owned()) }
            }
        }
    }

    /// Generates a section. Only the last one may extend to the end of the packet.
    pub(super) fn sample(sampler: &mut Sampler, is_last: bool) -> Section<'static> {
        let length = sampler.length(40);
        match sampler.below(4) {
            0 if is_last => Section::Objects([&sampler.bytes(length)[..], &[0, 0]].concat().into()),
            1 if is_last => Section::Other { id: 5, bytes: sampler.bytes(length).into() },
            _ => Section::Rpc(sample_lists(sampler)),
        }
    }
}
