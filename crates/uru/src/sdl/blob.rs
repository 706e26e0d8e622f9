//! Blobs: records with a stream header.

use worldwire_core::json::{FieldsOf, Given, Json, Style, write_children};
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Tree, Value, Writer, wire_flags,
};

use super::damage;
use super::record::StateRecord;
use crate::schema::{Descriptor, Descriptors};
use crate::types::{SafeString, Uoid};

wire_flags! {
    /// Flags of a stream header.
    pub struct StreamFlags(u16) {
        /// The identity of the object follows.
        HasUoid = 1,
        /// Lengths are encoded as described in this module. Always set.
        AddedVarLengthIO = 0x8000,
    }
}

/// The stream header of a blob, which names the descriptor.
///
/// Layout: `u16` [`StreamFlags`], [`SafeString`] name, `u16` version, [`Uoid`] if flag 1. If a blob
/// cannot be read, decoding just its header shows which descriptor is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct BlobHeader<'d> {
    /// The flags.
    pub flags: StreamFlags,
    /// The name of the descriptor; case-insensitive.
    pub name: SafeString<'d>,
    /// The version of the descriptor.
    pub version: u16,
    /// The object, present if and only if its flag is set. Usually the enclosing message names it
    /// instead.
    pub object: Option<Uoid<'d>>,
}

/// The state of an object, or part of it, as sent in game messages and stored in vault nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Blob<'d> {
    /// The stream header.
    pub head: BlobHeader<'d>,
    /// The descriptor named by the header.
    pub descriptor: Descriptor,
    /// The variables present in the blob.
    pub record: StateRecord<'d>,
}

/// The flag that every stream header must have.
const MARKER: &str = "the flag AddedVarLengthIO (0x8000)";

impl<'d> BlobHeader<'d> {
    /// The header of this descriptor's blobs as clients write it, without an object.
    #[must_use]
    pub fn of(descriptor: &Descriptor) -> BlobHeader<'static> {
        BlobHeader {
            flags: StreamFlags::AddedVarLengthIO,
            name: SafeString::from(descriptor.name()),
            version: descriptor.version(),
            object: None,
        }
    }

    /// Reads the header into the current scope: `flags`, `descriptor`, `version`, `object`.
    pub fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position() as u64;
        let flags = StreamFlags::decode(reader, "flags")?;
        if !flags.contains(StreamFlags::AddedVarLengthIO) {
            let found = format!("0x{:04x}", flags.0);
            return Err(Error::malformed(MARKER, found).at(at).inside("flags"));
        }
        Ok(Self {
            flags,
            name: SafeString::decode(reader, "descriptor")?,
            version: reader.u16("version")?,
            object: match flags.contains(StreamFlags::HasUoid) {
                true => Some(Uoid::decode(reader, "object")?),
                false => None,
            },
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if !self.flags.contains(StreamFlags::AddedVarLengthIO) {
            let found = format!("0x{:04x}", self.flags.0);
            return Err(Error::value(MARKER, found).inside("flags"));
        }
        if self.flags.contains(StreamFlags::HasUoid) != self.object.is_some() {
            let found = format!("0x{:04x}", self.flags.0);
            let wanted = match self.object {
                Some(_) => "the flag HasUoid, since there is an object",
                None => "no flag HasUoid, since there is no object",
            };
            return Err(Error::value(wanted, found).inside("flags"));
        }
        writer.u16(self.flags.0);
        self.name.encode(writer).map_err(|error| error.inside("descriptor"))?;
        writer.u16(self.version);
        let object = self.object.as_ref();
        object.map_or(Ok(()), |uoid| uoid.encode(writer)).map_err(|error| error.inside("object"))
    }

    fn into_owned(self) -> BlobHeader<'static> {
        let Self { flags, name, version, object } = self;
        let (name, object) = (name.into_owned(), object.map(Field::into_owned));
        BlobHeader { flags, name, version, object }
    }
}

impl<'d> Blob<'d> {
    /// Reads a blob into the current scope: the header, then the record as `recordFlags` (unless
    /// 0), `variables` and, if indices do not ascend, `simpleOrder` and `nestedOrder`. Every
    /// variable is a record of `hint` (if present), `flags`, `time` and `value`, or of `length` and
    /// `elements`.
    ///
    /// # Errors
    /// `Malformed`, at the name or version, if the descriptor is not in the set; see also
    /// [`Descriptors::find`]. If records are missing because dirtsand omits them, a hint says so.
    pub fn decode<'n, T: Trace<'n>>(
        descriptors: &'n Descriptors,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let start = reader.position() as u64;
        let before = reader.rest();
        let head = BlobHeader::decode_fields(reader)?;
        let shape = descriptors.shape_of(head.name.to_bytes(), head.version);
        let shape = shape.ok_or_else(|| {
            let unknown = descriptors.unknown(&head.name.to_bytes(), head.version);
            // The version follows the flags and the name.
            let used = before.len() - reader.remaining();
            let object = head.object.as_ref().map_or(0, size_of_encoded);
            match unknown.version {
                None => Error::from(unknown).at(start + 2).inside("descriptor"),
                Some(_) => {
                    let at = start + (used - object).saturating_sub(2) as u64;
                    Error::from(unknown).at(at).inside("version")
                }
            }
        })?;
        let body = reader.rest();
        let record = match StateRecord::decode_fields(shape, reader, 1) {
            Ok(record) => record,
            Err(error) => return Err(damage::explain(error, shape, body)),
        };
        Ok(Self { head, descriptor: descriptors.descriptor_of(shape), record })
    }

    /// Encodes the blob; the exact inverse of decoding.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.head.encode(writer)?;
        let encoded = self.record.encode(self.descriptor.shape(), writer);
        encoded.map_err(|error| error.inside("variables"))
    }

    /// The encoded blob.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Converts from the JSON form of a decoded blob.
    ///
    /// # Errors
    /// `Value` with the path of the invalid field, or for a descriptor that is not in the set.
    pub fn from_json<'j>(
        descriptors: &Descriptors,
        json: impl Into<Given<'j>>,
    ) -> Result<Blob<'static>> {
        let mut fields = FieldsOf::new(json.into())?;
        let flags: StreamFlags = fields.value("flags")?;
        let name = SafeString::from_json(fields.given("descriptor")?)
            .map_err(|error| error.inside("descriptor"))?;
        let version = fields.value("version")?;
        let object = fields.given_optional("object").map(Uoid::from_json).transpose();
        let object = object.map_err(|error| error.inside("object"))?;
        let descriptor = descriptors.find(&name.to_bytes(), version)?;
        let record = StateRecord::from_fields(descriptor.shape(), &mut fields, 1)?;
        fields.end()?;
        let head = BlobHeader { flags, name, version, object };
        Ok(Blob { head, descriptor, record })
    }

    /// The JSON form of the blob.
    pub fn to_json(&self, descriptors: &Descriptors) -> Result<Json> {
        let bytes = self.to_bytes()?;
        let mut reader = Reader::traced("sdl", &bytes, Tree::new());
        Blob::decode(descriptors, &mut reader)?;
        let mut text = String::new();
        write_children(Value::Record, reader.finish().roots(), Style::default(), &mut text);
        serde_json::from_str(&text).map_err(|error| Error::value("JSON", error.to_string()))
    }

    /// Generates a blob for a descriptor, for tests, fuzzing and benchmarks.
    #[must_use]
    pub fn sample(descriptor: &Descriptor, sampler: &mut Sampler) -> Blob<'static> {
        let mut head = BlobHeader::of(descriptor);
        if sampler.below(4) == 0 {
            head.flags = head.flags | StreamFlags::HasUoid;
            let name = SafeString::from("Lever");
            head.object = Some(Uoid { name, ..Uoid::sample(sampler).into_owned() });
        }
        let record = StateRecord::sample(descriptor.shape(), sampler, 1);
        Blob { head, descriptor: descriptor.clone(), record }
    }

    /// Copies borrowed parts.
    #[must_use]
    pub fn into_owned(self) -> Blob<'static> {
        let Self { head, descriptor, record } = self;
        Blob { head: head.into_owned(), descriptor, record: record.into_owned() }
    }
}

fn size_of_encoded(uoid: &Uoid<'_>) -> usize {
    let mut writer = Writer::new();
    // A decoded uoid can always be encoded.
    let _ = uoid.encode(&mut writer);
    writer.len()
}
