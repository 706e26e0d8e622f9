//! Single values, in the form that languages without this crate's types use.

use std::borrow::Cow;

use worldwire_core::json::float32;

use super::show::plain_name;
use super::value::wide_text;
use super::visitor::{Leaf, Slot};
use crate::schema::classes::PropertyKind;

/// A value that is a single number, text or similar, for other languages and tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain<'a> {
    /// Null: no object.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A finite number. Single precision becomes the double that is nearest to its shortest decimal
    /// form, so that 0.1 does not become 0.10000000149011612.
    Real(f64),
    /// The name that stands for a number.
    Name(&'a str),
    /// Text.
    Text(Cow<'a, str>),
    /// Text that is not valid.
    Bytes(&'a [u8]),
}

impl<'a> Plain<'a> {
    /// The value at a slot. `None` if only JSON can express it: sets of flags with names, tuples,
    /// floating-point numbers that are not finite, and values kept by lenient decoding.
    #[must_use]
    pub fn of(slot: Slot<'a>, leaf: Leaf<'a>) -> Option<Self> {
        let choices = slot.property().and_then(|property| property.choices.as_deref());
        let number = |plain: Self| match plain_name(choices, leaf) {
            Some(name) => Self::Name(name),
            None => plain,
        };
        Some(match leaf {
            Leaf::Null => Self::Null,
            Leaf::Bool(value) => Self::Bool(value),
            Leaf::Signed(value) => number(Self::Signed(value)),
            Leaf::Unsigned(value) => number(Self::Unsigned(value)),
            Leaf::F32(value) if value.is_finite() => Self::Real(shortest(value)),
            Leaf::F64(value) if value.is_finite() => Self::Real(value),
            Leaf::Enum(value) => {
                match choices.and_then(|choices| choices.names().name(i64::from(value))) {
                    Some(name) => Self::Name(name),
                    None => Self::Unsigned(value.into()),
                }
            }
            Leaf::Flags(bits) if choices.is_none() => Self::Unsigned(bits.into()),
            // This option is not in the list.
            Leaf::Text(_) if is_choice(slot) => return None,
            Leaf::Text(bytes) => match core::str::from_utf8(bytes) {
                Ok(text) => Self::Text(Cow::Borrowed(text)),
                Err(_) => Self::Bytes(bytes),
            },
            Leaf::WideText(bytes) => match wide_text(bytes) {
                Some(text) => Self::Text(Cow::Owned(text)),
                None => Self::Bytes(bytes),
            },
            Leaf::F32(_)
            | Leaf::F64(_)
            | Leaf::Flags(_)
            | Leaf::Tuple(..)
            | Leaf::Raw(_)
            | Leaf::Object { .. } => return None,
        })
    }
}

fn is_choice(slot: Slot<'_>) -> bool {
    let kind = slot.property().map(|property| property.kind());
    matches!(kind, Some(PropertyKind::Enum | PropertyKind::Flags))
}

/// The double that is nearest to the shortest decimal form of a number.
fn shortest(value: f32) -> f64 {
    let wide = f64::from(value);
    // Whole numbers and halves are exact in both.
    if (wide * 2.0).fract() == 0.0 && wide.abs() < 1e6 {
        return wide;
    }
    let mut digits = String::new();
    float32(value, &mut digits);
    digits.parse().unwrap_or(wide)
}
