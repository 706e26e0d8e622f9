//! Single elements of variables.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Value, Writer};

use crate::schema::{STRING_BYTES, Type};
use crate::types::{
    Bool8, Creatable, UnifiedTime, Uoid, decode_padded, encode_padded, padded_from_json,
};

/// A decoded element.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'v> {
    /// `INT`.
    Int(i32),
    /// `FLOAT`.
    Float(f32),
    /// `BOOL`: true if the byte is not zero.
    Bool(bool),
    /// `STRING32`: the bytes before the first zero.
    Text(&'v [u8]),
    /// `PLKEY`. The sequence number 0xffffffff means "no object".
    Key(Uoid<'v>),
    /// `CREATABLE`: the class and the bytes of the object, or null.
    Creatable(Option<(u16, &'v [u8])>),
    /// `DOUBLE`.
    Double(f64),
    /// `TIME`.
    Time(UnifiedTime),
    /// `BYTE`.
    Byte(u8),
    /// `SHORT`.
    Short(i16),
    /// `AGETIMEOFDAY`: no bytes.
    AgeTimeOfDay,
    /// `VECTOR3`, `POINT3`, `RGB`.
    Triple([f32; 3]),
    /// `RGBA`, `QUATERNION`.
    Quadruple([f32; 4]),
    /// `RGB8`.
    Triple8([u8; 3]),
    /// `RGBA8`.
    Quadruple8([u8; 4]),
}

impl<'d> Scalar<'d> {
    /// Decodes an element of the given type.
    pub(super) fn decode<'n, T: Trace<'n>>(
        simple: Type,
        reader: &mut Reader<'d, T>,
        name: &'n str,
    ) -> Result<Self> {
        Ok(match simple {
            Type::Int => Self::Int(reader.i32(name)?),
            Type::Float => Self::Float(reader.f32(name)?),
            Type::Bool => Self::Bool(Bool8::decode(reader, name)?.is_true()),
            Type::String32 => {
                let all = decode_padded(reader, name, STRING_BYTES, false)?;
                Self::Text(all.split(|byte| *byte == 0).next().unwrap_or_default())
            }
            Type::Key => Self::Key(Uoid::decode(reader, name)?),
            Type::Creatable => Self::Creatable(creatable(reader, name)?),
            Type::Double => Self::Double(reader.f64(name)?),
            Type::Time => Self::Time(UnifiedTime::decode(reader, name)?),
            Type::Byte => Self::Byte(reader.u8(name)?),
            Type::Short => Self::Short(reader.i16(name)?),
            Type::AgeTimeOfDay => {
                let start = reader.place_if_on();
                reader.leaf_from(name, start, Value::Null);
                Self::AgeTimeOfDay
            }
            Type::Vector3 | Type::Point3 | Type::Rgb => {
                Self::Triple(several(reader, name, |r| r.f32(""))?)
            }
            Type::Rgba | Type::Quaternion => Self::Quadruple(several(reader, name, |r| r.f32(""))?),
            Type::Rgb8 => Self::Triple8(several(reader, name, |r| r.u8(""))?),
            Type::Rgba8 => Self::Quadruple8(several(reader, name, |r| r.u8(""))?),
        })
    }

    /// Decodes an element from its exact bytes.
    pub(super) fn read(simple: Type, bytes: &'d [u8]) -> Option<Self> {
        Self::decode(simple, &mut Reader::new(bytes), "").ok()
    }

    /// Whether an element of this type can hold the value.
    #[must_use]
    pub fn is_of(&self, simple: Type) -> bool {
        match self {
            Self::Int(_) => simple == Type::Int,
            Self::Float(_) => simple == Type::Float,
            Self::Bool(_) => simple == Type::Bool,
            Self::Text(_) => simple == Type::String32,
            Self::Key(_) => simple == Type::Key,
            Self::Creatable(_) => simple == Type::Creatable,
            Self::Double(_) => simple == Type::Double,
            Self::Time(_) => simple == Type::Time,
            Self::Byte(_) => simple == Type::Byte,
            Self::Short(_) => simple == Type::Short,
            Self::AgeTimeOfDay => simple == Type::AgeTimeOfDay,
            Self::Triple(_) => matches!(simple, Type::Vector3 | Type::Point3 | Type::Rgb),
            Self::Quadruple(_) => matches!(simple, Type::Rgba | Type::Quaternion),
            Self::Triple8(_) => simple == Type::Rgb8,
            Self::Quadruple8(_) => simple == Type::Rgba8,
        }
    }

    /// Encodes the element.
    ///
    /// # Errors
    /// `Value` for text that is longer than 32 bytes or contains a zero, and for an object name
    /// that cannot be encoded.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Int(value) => writer.i32(*value),
            Self::Float(value) => writer.f32(*value),
            Self::Bool(value) => writer.u8(u8::from(*value)),
            Self::Text(text) => write_text(text, writer)?,
            Self::Key(uoid) => uoid.encode(writer)?,
            Self::Creatable(None) => Creatable(None).encode(writer)?,
            Self::Creatable(Some((class, bytes))) => write_creatable(*class, bytes, writer)?,
            Self::Double(value) => writer.f64(*value),
            Self::Time(time) => time.encode(writer)?,
            Self::Byte(value) => writer.u8(*value),
            Self::Short(value) => writer.i16(*value),
            Self::AgeTimeOfDay => {}
            Self::Triple(values) => values.iter().for_each(|value| writer.f32(*value)),
            Self::Quadruple(values) => values.iter().for_each(|value| writer.f32(*value)),
            Self::Triple8(values) => writer.bytes(values),
            Self::Quadruple8(values) => writer.bytes(values),
        }
        Ok(())
    }
}

fn several<'d, 'n, T: Trace<'n>, V: Default + Copy, const N: usize>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    mut read: impl FnMut(&mut Reader<'d, T>) -> Result<V>,
) -> Result<[V; N]> {
    reader.list(name, |reader| {
        let mut values = [V::default(); N];
        for (index, value) in values.iter_mut().enumerate() {
            *value = reader.item(index, &mut read)?;
        }
        Ok(values)
    })
}

fn write_text(text: &[u8], writer: &mut Writer) -> Result<()> {
    if text.contains(&0) {
        return Err(Error::value("text without NUL bytes", "a NUL byte"));
    }
    encode_padded(text, STRING_BYTES, false, writer)
}

fn creatable<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
) -> Result<Option<(u16, &'d [u8])>> {
    let start = reader.place_if_on();
    let head = reader.rest().first_chunk().map(|head| u16::from_le_bytes(*head));
    if head == Some(NO_CLASS) {
        reader.take(2)?;
        reader.leaf_from(name, start, Value::Null);
        return Ok(None);
    }
    reader.record(name, |reader| {
        let class = reader.shown(
            "class",
            |reader| reader.take_array().map(u16::from_le_bytes),
            |class| Value::Hex(u64::from(*class)),
        )?;
        let start = reader.place_if_on();
        let count = reader.take_array().map(u32::from_le_bytes);
        let count = count.map_err(|error| error.inside("bytes"))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Some((class, reader.blob("bytes", start, count, Form::Bytes)?)))
    })
}

/// The class index for "no object".
const NO_CLASS: u16 = 0x8000;

fn write_creatable(class: u16, bytes: &[u8], writer: &mut Writer) -> Result<()> {
    if class == NO_CLASS {
        return Err(Error::value("a class index, or null instead of the object", "0x8000"));
    }
    writer.u16(class);
    let length = writer.reserve::<4>();
    writer.bytes(bytes);
    writer.patch_length(length)
}

/// Encodes an element given as JSON.
pub(super) fn encode_json(simple: Type, json: Given<'_>, writer: &mut Writer) -> Result<()> {
    match simple {
        Type::Int => i32::from_json(json)?.encode(writer),
        Type::Short => i16::from_json(json)?.encode(writer),
        Type::Byte => u8::from_json(json)?.encode(writer),
        Type::Float => {
            writer.f32(json::single(&json)?);
            Ok(())
        }
        Type::Double => {
            writer.f64(json::double(&json)?);
            Ok(())
        }
        Type::Bool => Bool8::from_json(json)?.encode(writer),
        Type::Time => UnifiedTime::from_json(json)?.encode(writer),
        Type::Key => Uoid::from_json(json)?.encode(writer),
        Type::AgeTimeOfDay if json.is_null() => Ok(()),
        Type::AgeTimeOfDay => Err(json::expected("null", &json)),
        Type::String32 => {
            writer.bytes(&padded_from_json(json, STRING_BYTES, false)?);
            Ok(())
        }
        Type::Creatable if json.is_null() => Creatable(None).encode(writer),
        Type::Creatable => {
            let mut fields = FieldsOf::new(json)?;
            let class = json::integer(fields.take("class")?, "a whole number from 0 to 65535")
                .map_err(|error| error.inside("class"))?;
            let bytes = fields.given("bytes")?.bytes().map_err(|error| error.inside("bytes"))?;
            fields.end()?;
            write_creatable(class, &bytes, writer)
        }
        Type::Vector3 | Type::Point3 | Type::Rgb => floats(3, json, writer),
        Type::Rgba | Type::Quaternion => floats(4, json, writer),
        Type::Rgb8 => bytes(3, json, writer),
        Type::Rgba8 => bytes(4, json, writer),
    }
}

fn items(count: usize, json: &Json) -> Result<&[Json]> {
    match json {
        Json::Array(items) if items.len() == count => Ok(items),
        other => Err(json::expected(format!("a list of {count} numbers"), other)),
    }
}

fn floats(count: usize, json: Given<'_>, writer: &mut Writer) -> Result<()> {
    for (index, item) in items(count, json.json())?.iter().enumerate() {
        writer.f32(json::single(item).map_err(|error| error.inside_item(index))?);
    }
    Ok(())
}

fn bytes(count: usize, json: Given<'_>, writer: &mut Writer) -> Result<()> {
    for (index, item) in items(count, json.json())?.iter().enumerate() {
        let byte = json::integer(item, "a whole number from 0 to 255");
        writer.u8(byte.map_err(|error| error.inside_item(index))?);
    }
    Ok(())
}

/// Encodes a generated element.
pub(super) fn sample(simple: Type, sampler: &mut Sampler, writer: &mut Writer) {
    let fits = match simple {
        Type::String32 => {
            let text = sampler.text(8);
            write_text(text.as_bytes(), writer)
        }
        Type::Key => Uoid::sample(sampler).encode(writer),
        Type::Creatable if sampler.below(2) == 0 => Creatable(None).encode(writer),
        Type::Creatable => {
            let length = sampler.length(6);
            let bytes = sampler.bytes(length);
            write_creatable(0x0206, &bytes, writer)
        }
        Type::Bool => Bool8::sample(sampler).encode(writer),
        other => {
            let bytes = sampler.bytes(other.size().unwrap_or(0));
            writer.bytes(&bytes);
            Ok(())
        }
    };
    debug_assert!(fits.is_ok(), "generated elements are short");
}
