//! Random values for tests, fuzzing and benchmarks.

use core::ops::Range;

use worldwire_core::Sampler;

use super::scalar::{ScalarValue, read_scalar};
use super::value::Value;
use crate::schema::plan::{FieldKind, Plan};
use crate::types::{Scalar, Text};

impl Plan {
    /// Generates values for all fields; encoding and decoding them yields the same values.
    #[must_use]
    pub fn sample(&self, sampler: &mut Sampler) -> Value<'static> {
        self.sample_record(&self.scope(self.root).fields, sampler, 6)
    }

    fn sample_record(&self, range: &Range<u32>, sampler: &mut Sampler, max: u64) -> Value<'static> {
        let fields = self.fields_of(range).iter();
        Value::Record(fields.map(|field| self.sample_field(field.kind(), sampler, max)).collect())
    }

    /// `max` bounds the number of elements in a list; nested lists have smaller bounds.
    fn sample_field(&self, kind: &FieldKind, sampler: &mut Sampler, max: u64) -> Value<'static> {
        match kind {
            FieldKind::Scalar { scalar, .. } => sample_scalar(*scalar, sampler),
            FieldKind::Text { .. } => Value::Text(Text::from(sampler.text(24).as_str())),
            FieldKind::Bytes { .. } => {
                let length = sampler.length(24);
                Value::Bytes(sampler.bytes(length).into())
            }
            FieldKind::Array { scope, .. } => {
                let scope = self.scope(*scope);
                let count = sampler.length(max);
                let element = |_| match self.fields_of(&scope.fields).first() {
                    Some(field) if scope.single => {
                        self.sample_field(field.kind(), sampler, max / 2)
                    }
                    _ => self.sample_record(&scope.fields, sampler, max / 2),
                };
                Value::List((0..count).map(element).collect())
            }
            FieldKind::Object(range) => self.sample_record(range, sampler, max),
            FieldKind::Row(range) => match self.sample_record(range, sampler, max) {
                Value::Record(values) => Value::List(values),
                other => other,
            },
        }
    }
}

fn sample_scalar(scalar: Scalar, sampler: &mut Sampler) -> Value<'static> {
    match scalar {
        Scalar::Bool => Value::Bool(sampler.below(2) == 1),
        Scalar::Float => Value::Float(sample_float(sampler)),
        Scalar::Vec3 => Value::Vec3([(); 3].map(|()| sample_float(sampler))),
        Scalar::Vec3fa => Value::Vec3fa([(); 3].map(|()| {
            let [low, high, ..] = sampler.bits().to_le_bytes();
            f32::from(i16::from_le_bytes([low, high]))
        })),
        _ => {
            let mut bytes = [0; 16];
            let (low, high) = (sampler.number().to_le_bytes(), sampler.number().to_le_bytes());
            for (byte, made) in bytes.iter_mut().zip(low.into_iter().chain(high)) {
                *byte = made;
            }
            read_scalar(scalar, &bytes).map(ScalarValue::to_value).unwrap_or_default()
        }
    }
}

/// Usually a number as found in messages, sometimes arbitrary bits.
fn sample_float(sampler: &mut Sampler) -> f32 {
    let [a, b, c, d, ..] = sampler.bits().to_le_bytes();
    match sampler.below(16) {
        0 => f32::from_le_bytes([a, b, c, d]),
        1 => 0.0,
        _ => f32::from(i16::from_le_bytes([a, b])) / 7.0,
    }
}
