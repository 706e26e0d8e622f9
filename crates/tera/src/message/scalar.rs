//! Values of fixed size: from bytes and to bytes.

use worldwire_core::{Error, Result};

use super::Leniency;
use super::fault::Fault;
use super::value::Value;
use crate::types::{Angle, Scalar};

/// Reads a value of fixed size; `None` when there are too few bytes.
// Inlined, so that who looks at the value does not have to ask which kind it is once more.
#[inline(always)]
pub(super) fn read_scalar(scalar: Scalar, data: &[u8]) -> Option<Value<'static>> {
    let floats = |data: &[u8; 12]| {
        let mut numbers = [0.0; 3];
        for (number, bytes) in numbers.iter_mut().zip(data.as_chunks().0) {
            *number = f32::from_le_bytes(*bytes);
        }
        numbers
    };
    Some(match scalar {
        Scalar::Bool => Value::Bool(*data.first()? != 0),
        Scalar::Byte => Value::Unsigned((*data.first()?).into()),
        Scalar::Int16 => Value::Signed(i16::from_le_bytes(*data.first_chunk()?).into()),
        Scalar::Uint16 => Value::Unsigned(u16::from_le_bytes(*data.first_chunk()?).into()),
        Scalar::Int32 => Value::Signed(i32::from_le_bytes(*data.first_chunk()?).into()),
        Scalar::Uint32 => Value::Unsigned(u32::from_le_bytes(*data.first_chunk()?).into()),
        Scalar::Int64 => Value::Signed(i64::from_le_bytes(*data.first_chunk()?)),
        Scalar::Uint64 => Value::Unsigned(u64::from_le_bytes(*data.first_chunk()?)),
        Scalar::Float => Value::Float(f32::from_le_bytes(*data.first_chunk()?)),
        Scalar::Double => Value::Double(f64::from_le_bytes(*data.first_chunk()?)),
        Scalar::Angle => Value::Angle(Angle(i16::from_le_bytes(*data.first_chunk()?))),
        Scalar::Vec3 => Value::Vec3(floats(data.first_chunk()?)),
        Scalar::Vec3fa => Value::Vec3fa(floats(data.first_chunk()?)),
        Scalar::SkillId => Value::Skill(u64::from_le_bytes(*data.first_chunk()?)),
        Scalar::SkillId32 => Value::Skill(u32::from_le_bytes(*data.first_chunk()?).into()),
        Scalar::Customize => Value::Customize(*data.first_chunk()?),
    })
}

/// Writes a value of fixed size to the beginning of `out`, which is zero there.
#[inline]
pub(super) fn write_scalar(
    scalar: Scalar,
    value: &Value<'_>,
    leniency: Leniency,
    out: &mut [u8],
) -> Result<()> {
    macro_rules! whole {
        ($number:ty) => {
            match value {
                Value::Signed(number) => <$number>::try_from(*number).ok(),
                Value::Unsigned(number) => <$number>::try_from(*number).ok(),
                _ => None,
            }
            .is_some_and(|number| put(out, number.to_le_bytes()))
        };
    }
    // What nearly all values are: of the kind that their field's bytes become.
    let written = match scalar {
        Scalar::Bool => match value {
            Value::Bool(value) => put(out, [u8::from(*value)]),
            _ => false,
        },
        Scalar::Byte => whole!(u8),
        Scalar::Int16 => whole!(i16),
        Scalar::Uint16 => whole!(u16),
        Scalar::Int32 => whole!(i32),
        Scalar::Uint32 => whole!(u32),
        Scalar::Int64 => whole!(i64),
        Scalar::Uint64 => whole!(u64),
        Scalar::Float => match value {
            Value::Float(value) => put(out, value.to_le_bytes()),
            _ => false,
        },
        Scalar::Double => match value {
            Value::Double(value) => put(out, value.to_le_bytes()),
            _ => false,
        },
        Scalar::Angle => match value {
            Value::Angle(Angle(units)) => put(out, units.to_le_bytes()),
            _ => false,
        },
        Scalar::Vec3 | Scalar::Vec3fa => match (scalar, value) {
            (Scalar::Vec3, Value::Vec3(numbers)) | (Scalar::Vec3fa, Value::Vec3fa(numbers)) => {
                let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = numbers.map(f32::to_le_bytes);
                put(out, [a, b, c, d, e, f, g, h, i, j, k, l])
            }
            _ => false,
        },
        Scalar::SkillId => match value {
            Value::Skill(raw) => put(out, raw.to_le_bytes()),
            _ => false,
        },
        Scalar::SkillId32 => match value {
            Value::Skill(raw) => u32::try_from(*raw).is_ok_and(|raw| put(out, raw.to_le_bytes())),
            _ => false,
        },
        Scalar::Customize => match value {
            Value::Customize(looks) => put(out, *looks),
            _ => false,
        },
    };
    if written { Ok(()) } else { write_other(scalar, value, leniency, out) }
}

/// Writes bytes where there is room for them.
#[inline]
fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> bool {
    match out.first_chunk_mut::<N>() {
        Some(room) => {
            *room = bytes;
            true
        }
        None => false,
    }
}

/// What is left of [`write_scalar`]: values that are not given, numbers of another kind, and what
/// does not fit.
fn write_other(
    scalar: Scalar,
    value: &Value<'_>,
    leniency: Leniency,
    out: &mut [u8],
) -> Result<()> {
    let mut put = |bytes: &[u8]| {
        if let Some(room) = out.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
        }
    };
    let wrong = || wrong_kind(scalar, value);
    match (scalar, value) {
        (_, Value::Absent) => {}
        (Scalar::Bool, Value::Unsigned(value)) => put(&[u8::from(*value != 0)]),
        (Scalar::Bool, Value::Signed(value)) => put(&[u8::from(*value != 0)]),
        (Scalar::Double, Value::Float(value)) => put(&f64::from(*value).to_le_bytes()),
        #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest float")]
        (Scalar::Float, Value::Double(value)) => put(&(*value as f32).to_le_bytes()),
        (Scalar::SkillId32, Value::Skill(raw)) => match leniency {
            Leniency::Strict => return Err(out_of_range(scalar, value)),
            Leniency::Lenient => put(raw.to_le_bytes().get(..4).ok_or_else(wrong)?),
        },
        (Scalar::Customize, Value::Unsigned(looks)) => put(&looks.to_le_bytes()),
        (_, Value::Signed(number)) => {
            let number = i128::from(*number);
            put(whole(scalar, number, leniency, value)?.get(..scalar.size()).ok_or_else(wrong)?);
        }
        (_, Value::Unsigned(number)) => {
            let number = i128::from(*number);
            put(whole(scalar, number, leniency, value)?.get(..scalar.size()).ok_or_else(wrong)?);
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The bytes of a whole number, checked to be in the range of its type.
fn whole(scalar: Scalar, number: i128, leniency: Leniency, value: &Value<'_>) -> Result<[u8; 16]> {
    let (low, high) = match scalar {
        Scalar::Byte => (0, i128::from(u8::MAX)),
        Scalar::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Scalar::Uint16 => (0, i128::from(u16::MAX)),
        Scalar::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Scalar::Uint32 => (0, i128::from(u32::MAX)),
        Scalar::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Scalar::Uint64 => (0, i128::from(u64::MAX)),
        _ => return Err(wrong_kind(scalar, value)),
    };
    if leniency == Leniency::Strict && !(low..=high).contains(&number) {
        return Err(out_of_range(scalar, value));
    }
    Ok(number.to_le_bytes())
}

#[cold]
fn out_of_range(scalar: Scalar, value: &Value<'_>) -> Error {
    let found = match value {
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) | Value::Skill(number) => number.to_string(),
        _ => kind_of(value).to_owned(),
    };
    Error::value(scalar.wanted(), found).hint(Fault::ValueOutOfRange.name())
}

#[cold]
fn wrong_kind(scalar: Scalar, value: &Value<'_>) -> Error {
    Fault::WrongKind.value(format!("{} for {}", kind_of(value), scalar.name()))
}

/// What a value is, in words.
pub(super) fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Absent => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Unsigned(_) | Value::Signed(_) => "a whole number",
        Value::Float(_) | Value::Double(_) => "a number",
        Value::Angle(_) => "an angle",
        Value::Vec3(_) | Value::Vec3fa(_) => "three numbers",
        Value::Skill(_) => "a skill",
        Value::Customize(_) => "looks",
        Value::Text(_) => "a text",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "a list",
        Value::Record(_) => "a record",
    }
}
