//! The contents of a field, for views and tapes.

use super::scalar::ScalarValue;
use crate::types::{Angle, Skill, TextView};

/// The contents of a field, with lists and records of the types `L` and `R`: an
/// [`Item`](super::Item) of a view, or a [`Datum`](super::Datum) of a tape.
#[derive(Clone, Copy, Debug)]
pub enum Content<'d, L, R> {
    /// A fixed-size value.
    Scalar(ScalarValue),
    /// A text.
    Text(TextView<'d>),
    /// A byte string.
    Bytes(&'d [u8]),
    /// An array or row.
    List(L),
    /// An object or element.
    Record(R),
}

impl<'d, L, R> Content<'d, L, R> {
    /// The value, if it is a fixed-size one.
    #[inline]
    #[must_use]
    pub fn scalar(self) -> Option<ScalarValue> {
        match self {
            Self::Scalar(value) => Some(value),
            _ => None,
        }
    }

    /// The value as a signed integer; see [`ScalarValue::signed`].
    #[inline]
    #[must_use]
    pub fn signed(self) -> Option<i64> {
        self.scalar()?.signed()
    }

    /// The value as an unsigned integer; see [`ScalarValue::unsigned`].
    #[inline]
    #[must_use]
    pub fn unsigned(self) -> Option<u64> {
        self.scalar()?.unsigned()
    }

    /// The value as a boolean; see [`ScalarValue::bool`].
    #[inline]
    #[must_use]
    pub fn bool(self) -> Option<bool> {
        self.scalar()?.bool()
    }

    /// The value as a floating-point number; see [`ScalarValue::number`].
    #[inline]
    #[must_use]
    pub fn number(self) -> Option<f64> {
        self.scalar()?.number()
    }

    /// The value as an angle; see [`ScalarValue::angle`].
    #[inline]
    #[must_use]
    pub fn angle(self) -> Option<Angle> {
        self.scalar()?.angle()
    }

    /// The value as x, y and z; see [`ScalarValue::vec3`].
    #[inline]
    #[must_use]
    pub fn vec3(self) -> Option<[f32; 3]> {
        self.scalar()?.vec3()
    }

    /// The value as a skill; see [`ScalarValue::skill`].
    #[inline]
    #[must_use]
    pub fn skill(self) -> Option<Skill> {
        self.scalar()?.skill()
    }

    /// The text, if it is one.
    #[inline]
    #[must_use]
    pub fn text(self) -> Option<TextView<'d>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if it is a byte string.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> Option<&'d [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements, if it is an array or row.
    #[inline]
    #[must_use]
    pub fn list(self) -> Option<L> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The fields, if it is an object or element.
    #[inline]
    #[must_use]
    pub fn record(self) -> Option<R> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Head, HeaderForm, Item, Tape, Value, View};
    use crate::schema::Definition;
    use crate::types::{Angle, Skill};

    #[test]
    fn every_type_has_an_accessor() {
        let text = "bool b\nfloat f\nangle a\nvec3 v\nskillid s\nint32 i\nuint64 u\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let skill = Skill::action(7);
        let raw = skill.to_raw(crate::types::SkillForm::Wide).unwrap();
        let value = Value::Record(vec![
            Value::Bool(true),
            Value::Float(1.5),
            Value::Angle(Angle(9)),
            Value::Vec3([1.0, 2.0, 3.0]),
            Value::Skill(raw),
            Value::Signed(-4),
            Value::Unsigned(8),
        ]);
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        let view = View::new(plan, &bytes, HeaderForm::Plain).unwrap();
        let item = |name: &str| view.fields().get(name).unwrap().unwrap();
        assert_eq!((item("b").bool(), item("f").number()), (Some(true), Some(1.5)));
        assert_eq!((item("a").angle(), item("v").vec3()), (Some(Angle(9)), Some([1.0, 2.0, 3.0])));
        assert_eq!((item("s").skill(), item("i").signed()), (Some(skill), Some(-4)));
        assert_eq!((item("u").unsigned(), item("u").bool()), (Some(8), None));
        assert!(Item::text(item("b")).is_none());
        let mut tape = Tape::new();
        plan.read_into(&bytes, HeaderForm::Plain, &mut tape).unwrap();
        let datum = |name: &str| tape.fields(plan).get(name).unwrap();
        assert_eq!((datum("s").skill(), datum("f").number()), (Some(skill), Some(1.5)));
    }
}
