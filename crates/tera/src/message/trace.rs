//! Decoding into the trace of a [`Reader`](worldwire_core::Reader).

use core::mem::ManuallyDrop;

use worldwire_core::{Form, Place, Reader, Span, Trace, Value};

use super::decode::{Group, Leaf, Sink};
use super::note::{NAMES, Notes};
use super::scalar::{ScalarValue, read_scalar, with_scalar};
use super::value::Value as Decoded;
use crate::schema::plan::{Fixed, Plan};
use crate::types::angle::{component_is_whole, component_radians};
use crate::types::scalar::CUSTOMIZE;
use crate::types::{Scalar, Skill};

/// Passes decoded fields to a trace.
pub(crate) struct TraceSink<'t, 'd, T> {
    /// Positioned where the message begins.
    pub(crate) reader: &'t mut Reader<'d, T>,
    /// The offset of the message in its layer.
    pub(crate) base: usize,
}

impl<T> TraceSink<'_, '_, T> {
    #[inline]
    fn place(&self, at: usize) -> Place {
        // Traced layers are limited to 32 bits.
        Place { byte: u32::try_from(self.base + at).unwrap_or(u32::MAX), bit: 0 }
    }

    #[inline]
    fn leaf<'n>(&mut self, name: &'n str, value: Value<'n>, at: usize, length: usize)
    where
        T: Trace<'n>,
    {
        let (start, end) = (self.place(at), self.place(at + length));
        self.reader.trace_mut().leaf(name, value, start, end);
    }

    fn span<'n>(&mut self, name: &'n str, form: Form, at: usize, length: usize, terminator: usize)
    where
        T: Trace<'n>,
    {
        let (start, end) = (self.place(at), self.place(at + length + terminator));
        let length = u32::try_from(length).unwrap_or(0);
        let value = Value::Span(Span { form, start: start.byte, length });
        self.reader.trace_mut().leaf(name, value, start, end);
    }

    /// Reports a list or record, whose contents `fill` reports; `fill` also returns where it ends.
    #[inline]
    fn scope<'n, R>(
        &mut self,
        name: &'n str,
        shape: Value<'n>,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R
    where
        T: Trace<'n>,
    {
        let start = self.place(at);
        T::scope_of(
            self,
            |sink| sink.reader.trace_mut(),
            name,
            shape,
            start,
            |sink| {
                let (value, end) = fill(sink);
                // The contents that come last in field order may come first in byte order.
                (value, sink.place(end.max(at)))
            },
        )
    }

    fn floats<'n>(&mut self, name: &'n str, numbers: [f32; 3], at: usize, angles: bool)
    where
        T: Trace<'n>,
    {
        self.scope(name, Value::Record, at, |sink| {
            for (index, (name, number)) in ["x", "y", "z"].into_iter().zip(numbers).enumerate() {
                let at = at + index * 4;
                if !angles {
                    sink.leaf(name, Value::F32(number), at, 4);
                } else if component_is_whole(number) {
                    sink.leaf(name, Value::F64(component_radians(number)), at, 4);
                } else {
                    // If it were converted to radians, it would not convert back exactly.
                    sink.scope(name, Value::Record, at, |sink| {
                        sink.leaf("units", Value::F32(number), at, 4);
                        ((), at + 4)
                    });
                }
            }
            ((), at + 12)
        });
    }

    fn skill<'n>(&mut self, name: &'n str, skill: Skill, length: usize, at: usize)
    where
        T: Trace<'n>,
    {
        self.scope(name, Value::Record, at, |sink| {
            sink.leaf("type", Value::Unsigned(skill.kind.into()), at, length);
            sink.leaf("npc", Value::Bool(skill.npc), at, length);
            sink.leaf("huntingZoneId", Value::Unsigned(skill.zone.into()), at, length);
            sink.leaf("id", Value::Unsigned(skill.id.into()), at, length);
            sink.leaf("reserved", Value::Unsigned(skill.reserved.into()), at, length);
            ((), at + length)
        });
    }

    /// Reports everything besides the fields: see [`message`](super).
    #[cold]
    pub(crate) fn remarks<'n>(&mut self, notes: &Notes, end: usize, length: usize)
    where
        T: Trace<'n>,
    {
        self.scope("$notes", Value::List, 0, |sink| {
            for note in notes.list() {
                sink.leaf("", Value::Enum(note.kind.number(), &NAMES), note.at, 0);
            }
            ((), length)
        });
        if end < length {
            self.span("$trailing", Form::Bytes, end, length - end, 0);
        }
        if !notes.only_trailing() {
            self.span("$original", Form::Bytes, 0, length, 0);
        }
    }

    pub(crate) fn integrity<'n>(&mut self, counter: u32, checksum: u32)
    where
        T: Trace<'n>,
    {
        self.scope("$integrity", Value::Record, 4, |sink| {
            sink.leaf("counter", Value::Unsigned(counter.into()), 4, 4);
            sink.leaf("checksum", Value::Hex(checksum.into()), 8, 4);
            ((), 12)
        });
    }

    /// Reports the fixed-size value that `data` begins with; `None` if `data` is too short.
    #[inline]
    fn scalar<'n>(&mut self, name: &'n str, scalar: Scalar, data: &[u8], at: usize) -> Option<()>
    where
        T: Trace<'n>,
    {
        match scalar {
            Scalar::Vec3 | Scalar::Vec3fa => {
                let numbers = read_scalar(scalar, data)?.vec3()?;
                self.floats(name, numbers, at, scalar == Scalar::Vec3fa);
            }
            Scalar::SkillId | Scalar::SkillId32 => {
                let skill = read_scalar(scalar, data)?.skill()?;
                self.skill(name, skill, scalar.size(), at);
            }
            Scalar::Customize => {
                let looks = read_scalar(scalar, data)?.bits().to_le_bytes();
                self.scope(name, Value::Record, at, |sink| {
                    for (index, (name, look)) in CUSTOMIZE.into_iter().zip(looks).enumerate() {
                        sink.leaf(name, Value::Unsigned(look.into()), at + index, 1);
                    }
                    ((), at + 8)
                });
            }
            // Converted where the type is known, so that no value passes through memory.
            _ => self.leaf(name, with_scalar(scalar, data, single)?, at, scalar.size()),
        }
        Some(())
    }
}

/// A value that a trace also shows as a single value.
#[inline(always)]
fn single(found: ScalarValue) -> Value<'static> {
    // Single values own nothing, and the code that drops others would keep them in memory.
    match *ManuallyDrop::new(found.to_value()) {
        Decoded::Bool(value) => Value::Bool(value),
        Decoded::Unsigned(number) => Value::Unsigned(number),
        Decoded::Signed(number) => Value::Signed(number),
        Decoded::Float(number) => Value::F32(number),
        Decoded::Double(number) => Value::F64(number),
        Decoded::Angle(angle) => Value::F64(angle.radians()),
        _ => Value::Null,
    }
}

impl<'d, 'n, T: Trace<'n>> Sink<'d, 'n> for TraceSink<'_, 'd, T> {
    const FIXED: bool = T::ON;

    // Inlining it gains nothing: it does far more work than a call.
    #[inline(never)]
    fn fixed(&mut self, plan: &'n Plan, run: &'n [Fixed], data: &'d [u8], at: usize) {
        for fixed in run {
            let offset = usize::from(fixed.offset);
            let data = data.get(offset..).unwrap_or_default();
            self.scalar(plan.field(fixed.field).name(), fixed.scalar, data, at + offset);
        }
    }

    #[inline]
    fn text(&mut self, leaf: Leaf<'n>, text: &'d [u8], at: usize) {
        if T::ON && !self.reader.open_ahead(leaf.name(), at, text, Form::Utf16) {
            self.span(leaf.name(), Form::Utf16, at, text.len(), 2);
        }
    }

    #[inline]
    fn bytes(&mut self, leaf: Leaf<'n>, bytes: &'d [u8], at: usize) {
        if T::ON {
            self.span(leaf.name(), Form::Bytes, at, bytes.len(), 0);
        }
    }

    #[inline]
    fn group<R>(
        &mut self,
        group: Group<'n>,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        if !T::ON {
            return fill(self).0;
        }
        let shape = if group.is_record() { Value::Record } else { Value::List };
        self.scope(group.name(), shape, at, fill)
    }
}
