//! The contents of a field, for views and tapes.

use super::scalar::ScalarValue;
use crate::types::TextView;

/// The contents of a field, whose lists and records are of the types `L` and `R`: an
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
