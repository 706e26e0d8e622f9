//! Converts states between versions of their descriptor.

use worldwire_core::Writer;

use super::elements::{Elements, MAX_ELEMENTS};
use super::record::{NestedElement, NestedVariable, SimpleFlags, SimpleVariable, StateRecord};
use super::scalar::Scalar;
use super::state::ObjectState;
use crate::schema::{Descriptor, Shape, Type, Variable, VariableIndex};

impl ObjectState {
    /// The state under another version of its descriptor, usually a newer one.
    ///
    /// Variables are matched by name. Values of the same type are copied. Numbers of different
    /// types are converted: out-of-range values are clamped, floats are truncated to whole numbers,
    /// and non-zero values become true. For arrays, the elements present in both versions are
    /// copied and the rest take the new default. Variables that the new version lacks, or has with
    /// an incompatible type, are dropped. Variables that are not set take the new default. Times
    /// and hints are kept.
    ///
    /// Nested variables are converted element by element and variable by variable, even if the
    /// descriptor of the elements has a new name.
    #[must_use]
    pub fn upgrade(&self, descriptor: &Descriptor) -> Self {
        let record = upgrade(&self.record, self.descriptor.shape(), descriptor.shape());
        Self { descriptor: descriptor.clone(), record }
    }
}

fn upgrade(old: &StateRecord<'static>, from: Shape<'_>, to: Shape<'_>) -> StateRecord<'static> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let simple = old.simple.iter().filter_map(|entry| {
        let variable = from.simple(entry.index as usize)?;
        let VariableIndex::Simple(at) = to.index_of_folded(variable.folded_label())? else {
            return None;
        };
        simple(entry, variable, to.simple(at)?, number(at))
    });
    let nested = old.nested.iter().filter_map(|entry| {
        let (variable, inner) = from.nested(entry.index as usize)?;
        let VariableIndex::Nested(at) = to.index_of_folded(variable.folded_label())? else {
            return None;
        };
        let (target, target_inner) = to.nested(at)?;
        let length = target.count().unwrap_or(entry.length);
        let kept = entry.elements.iter().filter(|element| element.index < length);
        let elements = kept.map(|element| NestedElement {
            index: element.index,
            record: upgrade(&element.record, inner, target_inner),
        });
        Some(NestedVariable {
            index: number(at),
            head: entry.head.clone(),
            flags: entry.flags,
            length,
            elements: elements.collect(),
        })
    });
    let mut record =
        StateRecord { flags: old.flags, simple: simple.collect(), nested: nested.collect() };
    record.simple.sort_unstable_by_key(|entry| entry.index);
    record.nested.sort_unstable_by_key(|entry| entry.index);
    record
}

fn simple(
    entry: &SimpleVariable<'static>,
    from: &Variable,
    to: &Variable,
    index: u32,
) -> Option<SimpleVariable<'static>> {
    let same_default = from.simple_type() == to.simple_type()
        && from.count() == to.count()
        && from.default_element() == to.default_element();
    let value = match &entry.value {
        None if same_default => None,
        None => Some(convert(&Elements::default_of(from), from, to)?),
        Some(elements) => Some(convert(elements, from, to)?),
    };
    let mut flags = entry.flags;
    if value.is_some() {
        flags = SimpleFlags(flags.0 & !SimpleFlags::SameAsDefault.0);
    }
    Some(SimpleVariable { index, head: entry.head.clone(), flags, time: entry.time.clone(), value })
}

/// The elements of one variable converted for another, if possible.
fn convert(elements: &Elements<'_>, from: &Variable, to: &Variable) -> Option<Elements<'static>> {
    let (old, new) = (from.simple_type()?, to.simple_type()?);
    if old != new && !(old.is_number() && new.is_number()) {
        return None;
    }
    let max = to.count().unwrap_or(MAX_ELEMENTS) as usize;
    let mut writer = Writer::new();
    let mut count = 0;
    if old == new && (old.size() == Some(0) || elements.len() <= max) {
        writer.bytes(elements.as_bytes());
        count = elements.len();
    } else {
        for scalar in elements.scalars(old).take(max) {
            let scalar = if old == new { scalar } else { as_number(&scalar, new)? };
            scalar.encode(&mut writer).ok()?;
            count += 1;
        }
    }
    if let Some(wanted) = to.count() {
        for _ in count..wanted as usize {
            writer.bytes(to.default_element());
        }
        count = wanted as usize;
    }
    Some(Elements::from_parts(u32::try_from(count).ok()?, writer.into_bytes()))
}

/// A number converted to another type. Casts of floats saturate, and NaN becomes 0.
#[expect(clippy::cast_possible_truncation, reason = "clamping is intended")]
fn as_number(scalar: &Scalar<'_>, to: Type) -> Option<Scalar<'static>> {
    let (whole, float) = match *scalar {
        Scalar::Int(value) => (i64::from(value), f64::from(value)),
        Scalar::Short(value) => (i64::from(value), f64::from(value)),
        Scalar::Byte(value) => (i64::from(value), f64::from(value)),
        Scalar::Bool(value) => (i64::from(value), f64::from(u8::from(value))),
        Scalar::Float(value) => (value as i64, f64::from(value)),
        Scalar::Double(value) => (value as i64, value),
        _ => return None,
    };
    Some(match to {
        Type::Int => Scalar::Int(whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
        Type::Short => Scalar::Short(whole.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16),
        Type::Byte => Scalar::Byte(u8::try_from(whole.clamp(0, 255)).unwrap_or(0)),
        Type::Bool => Scalar::Bool(float != 0.0),
        // Values outside the range of f32 must not become infinite.
        Type::Float if float.is_finite() => {
            Scalar::Float(float.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32)
        }
        Type::Float => Scalar::Float(float as f32),
        Type::Double => Scalar::Double(float),
        _ => return None,
    })
}
