//! Generates random records.

use worldwire_core::{Field, Sampler};

use super::elements::Elements;
use super::record::{
    MAX_DEPTH, NestedElement, NestedVariable, RecordFlags, SimpleFlags, SimpleVariable,
    StateRecord, ValueHeader,
};
use crate::schema::{Shape, Variable};
use crate::types::{SafeString, UnifiedTime};

impl StateRecord<'static> {
    /// Generates a record with some or all of the variables.
    pub(super) fn sample(shape: Shape<'_>, sampler: &mut Sampler, depth: u32) -> Self {
        let all = sampler.below(4) == 0;
        let mut chosen = |count: usize| -> Vec<u32> {
            (0..u32::try_from(count).unwrap_or(u32::MAX))
                .filter(|_| all || sampler.below(2) == 0)
                .collect()
        };
        let simple = chosen(shape.simple_count());
        // Keep deeply nested records small; otherwise they would grow exponentially.
        let nested = if depth < MAX_DEPTH.min(4) { chosen(shape.nested_count()) } else { vec![] };
        let flags = match sampler.below(8) {
            0 => RecordFlags::Volatile,
            _ => RecordFlags::default(),
        };
        let simple = simple.into_iter().filter_map(|index| {
            let variable = shape.simple(index as usize)?;
            SimpleVariable::sample(variable, index, sampler)
        });
        let simple = simple.collect();
        let nested = nested.into_iter().filter_map(|index| {
            let nested = shape.nested(index as usize)?;
            Some(NestedVariable::sample(nested, index, sampler, depth))
        });
        let nested = nested.collect();
        Self { flags, simple, nested }
    }
}

fn head(sampler: &mut Sampler) -> ValueHeader<'static> {
    match sampler.below(4) {
        0 => ValueHeader::default(),
        1 => {
            // Text that begins with a letter decodes unambiguously.
            let hint = format!("from{}", sampler.text(8));
            ValueHeader { hint: Some(SafeString::from(&*hint)), ..ValueHeader::default() }
        }
        _ => ValueHeader::client(),
    }
}

impl SimpleVariable<'static> {
    fn sample(variable: &Variable, index: u32, sampler: &mut Sampler) -> Option<Self> {
        let simple = variable.simple_type()?;
        let head = head(sampler);
        let mut flags = SimpleFlags::default();
        for flag in [
            SimpleFlags::HasTimeStamp,
            SimpleFlags::SameAsDefault,
            SimpleFlags::Dirty,
            SimpleFlags::WantTimeStamp,
        ] {
            if sampler.below(3) == 0 {
                flags = flags | flag;
            }
        }
        let has_time = flags.contains(SimpleFlags::HasTimeStamp);
        let time = has_time.then(|| UnifiedTime::sample(sampler));
        let has_value = !flags.contains(SimpleFlags::SameAsDefault);
        let value = has_value.then(|| Elements::sample(variable, simple, sampler));
        Some(Self { index, head, flags, time, value })
    }
}

impl NestedVariable<'static> {
    fn sample(
        (variable, inner): (&Variable, Shape<'_>),
        index: u32,
        sampler: &mut Sampler,
        depth: u32,
    ) -> Self {
        let head = head(sampler);
        let any = u32::try_from(sampler.length(4)).unwrap_or(0);
        let length = variable.count().unwrap_or(any);
        let all = sampler.below(2) == 0;
        let chosen: Vec<u32> =
            (0..length.min(200)).filter(|_| all || sampler.below(2) == 0).collect();
        let element =
            |index| NestedElement { index, record: StateRecord::sample(inner, sampler, depth + 1) };
        let elements = chosen.into_iter().map(element).collect();
        Self { index, head, flags: 0, length, elements }
    }
}
