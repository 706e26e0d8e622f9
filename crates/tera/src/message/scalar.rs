//! Decoding and encoding of fixed-size values.

use core::fmt;

use worldwire_core::{Error, Result};

use super::Leniency;
use super::fault::Fault;
use super::value::Value;
use crate::types::{Angle, Scalar, Skill, SkillForm};

/// Size of the largest fixed-size value in bytes.
pub(super) const MAX_SCALAR: usize = 12;

/// A fixed-size value as it is on the wire, as reported by a [`View`](super::View) and
/// a [`Tape`](super::Tape).
///
/// The field's [type](Self::scalar) says what it is. Callers who know the type use an accessor such
/// as [`signed`](Self::signed) or [`number`](Self::number); others can match on it as a
/// [`Value`](Self::to_value).
// Two words instead of an enumeration, so that it stays in registers until it is examined.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScalarValue {
    low: u64,
    /// The last four of twelve bytes, and the type in the upper half.
    rest: u64,
}

impl ScalarValue {
    /// Zero.
    pub(super) const fn zero(scalar: Scalar) -> Self {
        Self::new(scalar, 0, 0)
    }

    #[inline]
    const fn new(scalar: Scalar, low: u64, high: u32) -> Self {
        Self { low, rest: high as u64 | (scalar as u64) << 32 }
    }

    #[inline]
    const fn high(self) -> u32 {
        low32(self.rest)
    }

    /// The type of the field.
    #[inline]
    #[must_use]
    pub const fn scalar(self) -> Scalar {
        // The discriminant is the index in `ALL`.
        Scalar::ALL[(self.rest >> 32) as usize % Scalar::ALL.len()]
    }

    /// The bytes as a little-endian number; for `vec3` and `vec3fa`, the first eight of twelve.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.low
    }

    /// `bool`.
    #[inline]
    #[must_use]
    pub const fn bool(self) -> Option<bool> {
        match self.scalar() {
            Scalar::Bool => Some(self.low != 0),
            _ => None,
        }
    }

    /// An integer, or a boolean as 0 or 1; `None` for anything else, including a `uint64` that does
    /// not fit.
    #[inline]
    #[must_use]
    pub const fn signed(self) -> Option<i64> {
        Some(match self.scalar() {
            Scalar::Bool => (self.low != 0) as i64,
            Scalar::Int16 => low16(self.low).cast_signed() as i64,
            Scalar::Int32 => low32(self.low).cast_signed() as i64,
            Scalar::Byte | Scalar::Uint16 | Scalar::Uint32 | Scalar::Int64 => {
                self.low.cast_signed()
            }
            Scalar::Uint64 if self.low.cast_signed() >= 0 => self.low.cast_signed(),
            _ => return None,
        })
    }

    /// A non-negative integer, or a boolean as 0 or 1.
    #[inline]
    #[must_use]
    pub const fn unsigned(self) -> Option<u64> {
        match (self.scalar(), self.signed()) {
            (Scalar::Uint64, _) => Some(self.low),
            (_, Some(number)) if number >= 0 => Some(number.cast_unsigned()),
            _ => None,
        }
    }

    /// `float`, `double`, or an angle in radians.
    #[inline]
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self.scalar() {
            Scalar::Float => Some(f32::from_bits(low32(self.low)).into()),
            Scalar::Double => Some(f64::from_bits(self.low)),
            Scalar::Angle => self.angle().map(Angle::radians),
            _ => None,
        }
    }

    /// `angle`.
    #[inline]
    #[must_use]
    pub const fn angle(self) -> Option<Angle> {
        match self.scalar() {
            Scalar::Angle => Some(Angle(low16(self.low).cast_signed())),
            _ => None,
        }
    }

    /// `vec3`, or `vec3fa` in units: x, y and z.
    #[inline]
    #[must_use]
    pub fn vec3(self) -> Option<[f32; 3]> {
        matches!(self.scalar(), Scalar::Vec3 | Scalar::Vec3fa)
            .then(|| [low32(self.low), low32(self.low >> 32), self.high()].map(f32::from_bits))
    }

    /// `skillid` and `skillid32`, split into parts.
    #[inline]
    #[must_use]
    pub const fn skill(self) -> Option<Skill> {
        match self.scalar() {
            Scalar::SkillId => Some(Skill::from_raw(self.low, SkillForm::Wide)),
            Scalar::SkillId32 => Some(Skill::from_raw(self.low, SkillForm::Narrow)),
            _ => None,
        }
    }

    /// As a value of a message.
    // Inlined where the type is known; a value built elsewhere would pass through memory.
    #[inline(always)]
    #[must_use]
    pub fn to_value(self) -> Value<'static> {
        match self.scalar() {
            Scalar::Bool => Value::Bool(self.low != 0),
            Scalar::Byte | Scalar::Uint16 | Scalar::Uint32 | Scalar::Uint64 => {
                Value::Unsigned(self.low)
            }
            Scalar::Int16 => Value::Signed(low16(self.low).cast_signed().into()),
            Scalar::Int32 => Value::Signed(low32(self.low).cast_signed().into()),
            Scalar::Int64 => Value::Signed(self.low.cast_signed()),
            Scalar::Float => Value::Float(f32::from_bits(low32(self.low))),
            Scalar::Double => Value::Double(f64::from_bits(self.low)),
            Scalar::Angle => Value::Angle(Angle(low16(self.low).cast_signed())),
            Scalar::Vec3 => Value::Vec3(self.vec3().unwrap_or_default()),
            Scalar::Vec3fa => Value::Vec3fa(self.vec3().unwrap_or_default()),
            Scalar::SkillId | Scalar::SkillId32 => Value::Skill(self.low),
            Scalar::Customize => Value::Customize(self.low.to_le_bytes()),
        }
    }
}

/// Formats it as a [`Value`].
impl fmt::Debug for ScalarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the remaining bits are not the field's")]
const fn low16(bits: u64) -> u16 {
    bits as u16
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the remaining bits are not the field's")]
const fn low32(bits: u64) -> u32 {
    bits as u32
}

/// For each type, the bits it uses of the first eight bytes and of the next four.
const MASKS: [(u64, u32); Scalar::ALL.len()] = {
    let mut masks = [(0, 0); Scalar::ALL.len()];
    let mut index = 0;
    while index < masks.len() {
        let scalar = Scalar::ALL[index];
        masks[scalar as usize] = match scalar.size() {
            MAX_SCALAR => (u64::MAX, u32::MAX),
            size => (u64::MAX >> (64 - 8 * size), 0),
        };
        index += 1;
    }
    masks
};

/// Reads a fixed-size value; `None` if there are too few bytes.
// Inlined and free of branches: only code that examines the value needs to look at its type.
#[inline(always)]
pub(super) fn read_scalar(scalar: Scalar, data: &[u8]) -> Option<ScalarValue> {
    let Some([a, b, c, d, e, f, g, h, rest @ ..]) = data.first_chunk::<MAX_SCALAR>() else {
        return with_scalar(scalar, data, |value| value);
    };
    let (low, high) = MASKS[scalar as usize];
    let first = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
    Some(ScalarValue::new(scalar, first & low, u32::from_le_bytes(*rest) & high))
}

/// Expands its argument once per type, so that the compiler knows the type of each value from the
/// start and need not build it in memory.
macro_rules! by_type {
    ($scalar:ident, $number:ident, $twelve:ident) => {
        match $scalar {
            Scalar::Bool => $number!(Bool, u8),
            Scalar::Byte => $number!(Byte, u8),
            Scalar::Int16 => $number!(Int16, u16),
            Scalar::Uint16 => $number!(Uint16, u16),
            Scalar::Angle => $number!(Angle, u16),
            Scalar::Int32 => $number!(Int32, u32),
            Scalar::Uint32 => $number!(Uint32, u32),
            Scalar::Float => $number!(Float, u32),
            Scalar::SkillId32 => $number!(SkillId32, u32),
            Scalar::Int64 => $number!(Int64, u64),
            Scalar::Uint64 => $number!(Uint64, u64),
            Scalar::Double => $number!(Double, u64),
            Scalar::SkillId => $number!(SkillId, u64),
            Scalar::Customize => $number!(Customize, u64),
            Scalar::Vec3 => $twelve!(Vec3),
            Scalar::Vec3fa => $twelve!(Vec3fa),
        }
    };
}

impl ScalarValue {
    /// A value of at most eight bytes.
    #[inline(always)]
    fn of(scalar: Scalar, low: impl Into<u64>) -> Self {
        Self::new(scalar, low.into(), 0)
    }

    /// A value of twelve bytes.
    #[inline(always)]
    fn of_twelve(scalar: Scalar, bytes: [u8; MAX_SCALAR]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
        let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Self::new(scalar, low, u32::from_le_bytes(rest))
    }
}

/// Reads a fixed-size value and passes it on; `None` if there are too few bytes.
#[inline(always)]
pub(super) fn with_scalar<R>(
    scalar: Scalar,
    data: &[u8],
    with: impl FnOnce(ScalarValue) -> R,
) -> Option<R> {
    macro_rules! number {
        ($kind:ident, $number:ty) => {{
            let number = <$number>::from_le_bytes(*data.first_chunk()?);
            Some(with(ScalarValue::of(Scalar::$kind, number)))
        }};
    }
    macro_rules! twelve {
        ($kind:ident) => {
            Some(with(ScalarValue::of_twelve(Scalar::$kind, *data.first_chunk()?)))
        };
    }
    by_type!(scalar, number, twelve)
}

/// Passes on the fixed-size value at an offset; missing bytes count as zero.
// Keeps the work that all types share in registers, for visitors such as sums.
#[inline(always)]
pub(super) fn emit_scalar(scalar: Scalar, data: &[u8], at: usize, emit: impl FnOnce(ScalarValue)) {
    macro_rules! number {
        ($kind:ident, $number:ty) => {
            emit(ScalarValue::of(Scalar::$kind, <$number>::from_le_bytes(read(data, at))))
        };
    }
    macro_rules! twelve {
        ($kind:ident) => {
            emit(ScalarValue::of_twelve(Scalar::$kind, read(data, at)))
        };
    }
    by_type!(scalar, number, twelve);
}

/// The bytes at an offset.
#[inline]
fn read<const BYTES: usize>(data: &[u8], at: usize) -> [u8; BYTES] {
    let bytes = data.get(at..at + BYTES).and_then(|bytes| bytes.first_chunk());
    bytes.copied().unwrap_or([0; BYTES])
}

/// Writes a fixed-size value to the start of `out`, which is zeroed.
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
    // The usual case: a value of the variant that decoding this field yields.
    let written = match (scalar, value) {
        (Scalar::Bool, Value::Bool(value)) => put(out, [u8::from(*value)]),
        (Scalar::Byte, _) => whole!(u8),
        (Scalar::Int16, _) => whole!(i16),
        (Scalar::Uint16, _) => whole!(u16),
        (Scalar::Int32, _) => whole!(i32),
        (Scalar::Uint32, _) => whole!(u32),
        (Scalar::Int64, _) => whole!(i64),
        (Scalar::Uint64, _) => whole!(u64),
        (Scalar::Float, Value::Float(value)) => put(out, value.to_le_bytes()),
        (Scalar::Double, Value::Double(value)) => put(out, value.to_le_bytes()),
        (Scalar::Angle, Value::Angle(Angle(units))) => put(out, units.to_le_bytes()),
        (Scalar::Vec3, Value::Vec3(numbers)) | (Scalar::Vec3fa, Value::Vec3fa(numbers)) => {
            let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = numbers.map(f32::to_le_bytes);
            put(out, [a, b, c, d, e, f, g, h, i, j, k, l])
        }
        (Scalar::SkillId, Value::Skill(raw)) => put(out, raw.to_le_bytes()),
        (Scalar::SkillId32, Value::Skill(raw)) => {
            u32::try_from(*raw).is_ok_and(|raw| put(out, raw.to_le_bytes()))
        }
        (Scalar::Customize, Value::Customize(looks)) => put(out, *looks),
        _ => false,
    };
    if written { Ok(()) } else { write_other(scalar, value, leniency, out) }
}

/// Writes bytes if there is room for them.
#[inline]
fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> bool {
    out.first_chunk_mut().map(|room| *room = bytes).is_some()
}

/// The rest of [`write_scalar`]: absent values, numbers of another variant, and values that do not
/// fit.
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

/// The bytes of an integer, checked against the range of its type.
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

/// The kind of a value, in words.
pub(super) fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Absent => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Unsigned(_) | Value::Signed(_) => "an integer",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Near the end of a message, where fewer bytes remain than the largest type has, values are
    /// read by a separate path.
    #[test]
    fn both_ways_of_reading_agree_and_are_undone() {
        let mut sampler = worldwire_core::Sampler::new(5);
        for round in 0..2_000 {
            let bytes = if round == 0 { vec![0xff; 24] } else { sampler.bytes(24) };
            for scalar in Scalar::ALL {
                let exact = bytes.get(..scalar.size()).unwrap();
                let value = read_scalar(scalar, exact).unwrap();
                assert_eq!(read_scalar(scalar, &bytes), Some(value), "{scalar:?} of {bytes:x?}");
                assert_eq!(with_scalar(scalar, &bytes, |value| value), Some(value));
                emit_scalar(scalar, &bytes, 0, |recorder| assert_eq!(recorder, value));
                let short = &exact[..scalar.size() - 1];
                assert_eq!(read_scalar(scalar, short), None, "{scalar:?}");
                let mut out = [0; MAX_SCALAR];
                write_scalar(scalar, &value.to_value(), Leniency::Strict, &mut out).unwrap();
                if scalar != Scalar::Bool {
                    assert_eq!(&out[..scalar.size()], exact, "{scalar:?} of {value:?}");
                }
            }
        }
    }

    #[test]
    fn a_value_is_asked_for_what_it_has_to_be() {
        let value = |scalar, bytes: &[u8]| read_scalar(scalar, bytes).unwrap();
        let ones = [0xff; 8];
        let signs = [
            (Scalar::Byte, Some(255)),
            (Scalar::Int16, Some(-1)),
            (Scalar::Uint16, Some(65_535)),
            (Scalar::Int32, Some(-1)),
            (Scalar::Uint32, Some(u32::MAX.into())),
            (Scalar::Int64, Some(-1)),
            (Scalar::Uint64, None),
            (Scalar::Bool, Some(1)),
            (Scalar::Float, None),
            (Scalar::SkillId, None),
        ];
        for (scalar, wanted) in signs {
            assert_eq!(value(scalar, &ones).signed(), wanted, "{scalar:?}");
            let wanted = wanted.and_then(|number| u64::try_from(number).ok());
            let wanted = if scalar == Scalar::Uint64 { Some(u64::MAX) } else { wanted };
            assert_eq!(value(scalar, &ones).unsigned(), wanted, "{scalar:?}");
        }
        assert_eq!(value(Scalar::Bool, &[2]).bool(), Some(true));
        assert_eq!(value(Scalar::Float, &1.5_f32.to_le_bytes()).number(), Some(1.5));
        assert_eq!(value(Scalar::Double, &(-2.5_f64).to_le_bytes()).number(), Some(-2.5));
        assert_eq!(value(Scalar::Angle, &[0, 0x80]).number(), Some(-core::f64::consts::PI));
        assert_eq!(value(Scalar::Angle, &[0, 0x80]).angle(), Some(Angle(i16::MIN)));
        let place = [1.0_f32, -2.0, 3.5];
        let bytes = place.map(f32::to_le_bytes).concat();
        assert_eq!(value(Scalar::Vec3, &bytes).vec3(), Some(place));
        assert_eq!(value(Scalar::Vec3, &bytes).to_value(), Value::Vec3(place));
        let skill = value(Scalar::SkillId32, &0x0400_01f4_u32.to_le_bytes()).skill().unwrap();
        assert_eq!((skill.id, skill.kind), (500, 1));
    }
}
