//! A compact JSON value.

use core::fmt;
use core::mem;
use core::ops::{Index, IndexMut};

use serde::ser::{Serialize, Serializer};
use serde_json::Number;

use super::Object;

/// A parsed JSON value: 24 bytes, plus the contents of a string, list or object.
///
/// A document of records takes three or four times as many bytes as its text; a
/// `serde_json::Value`, which has the same methods, takes twenty to thirty times as many. Numbers
/// of one or two digits take more. Use this for input, and `serde_json` to build output.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit whole number, signed or unsigned, or a double.
    Number(Number),
    /// A string.
    String(Box<str>),
    /// A list.
    Array(Box<[Self]>),
    /// Values by name.
    Object(Object),
}

impl Json {
    /// The value under a key of an object, or at an index of a list.
    #[must_use]
    pub fn get(&self, place: impl Place) -> Option<&Self> {
        place.find(self)
    }

    /// Like [`get`](Self::get), but mutable.
    pub fn get_mut(&mut self, place: impl Place) -> Option<&mut Self> {
        place.find_mut(self)
    }

    /// A string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// A number that has this type.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// A number that has this type.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// Any number, rounded if need be.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().and_then(Number::as_f64)
    }

    /// A number.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// `true` or `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// A list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// A list whose values may change.
    pub fn as_array_mut(&mut self) -> Option<&mut [Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// An object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// An object that may change.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is a number.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Whether it is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Takes the value and leaves `null`.
    #[must_use]
    pub fn take(&mut self) -> Self {
        mem::take(self)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for str {}
    impl Sealed for String {}
    impl<T: Sealed + ?Sized> Sealed for &T {}
}

/// The position of a value inside another one: a key, or an index from 0.
pub trait Place: sealed::Sealed {
    /// The value there.
    fn find<'j>(&self, json: &'j Json) -> Option<&'j Json>;

    /// Like [`find`](Self::find), but mutable.
    fn find_mut<'j>(&self, json: &'j mut Json) -> Option<&'j mut Json>;

    /// Like [`find_mut`](Self::find_mut), but adds a missing key.
    ///
    /// # Panics
    /// If there is no such index, or the index is a key and this is neither an object nor `null`.
    fn find_or_add<'j>(&self, json: &'j mut Json) -> &'j mut Json;
}

impl Place for usize {
    fn find<'j>(&self, json: &'j Json) -> Option<&'j Json> {
        json.as_array()?.get(*self)
    }

    fn find_mut<'j>(&self, json: &'j mut Json) -> Option<&'j mut Json> {
        json.as_array_mut()?.get_mut(*self)
    }

    fn find_or_add<'j>(&self, json: &'j mut Json) -> &'j mut Json {
        self.find_mut(json).expect("a list with an item at this index")
    }
}

impl Place for str {
    fn find<'j>(&self, json: &'j Json) -> Option<&'j Json> {
        json.as_object()?.get(self)
    }

    fn find_mut<'j>(&self, json: &'j mut Json) -> Option<&'j mut Json> {
        json.as_object_mut()?.get_mut(self)
    }

    fn find_or_add<'j>(&self, json: &'j mut Json) -> &'j mut Json {
        if json.is_null() {
            *json = Json::Object(Object::default());
        }
        json.as_object_mut().expect("an object").entry(self)
    }
}

impl Place for String {
    fn find<'j>(&self, json: &'j Json) -> Option<&'j Json> {
        Place::find(self.as_str(), json)
    }

    fn find_mut<'j>(&self, json: &'j mut Json) -> Option<&'j mut Json> {
        self.as_str().find_mut(json)
    }

    fn find_or_add<'j>(&self, json: &'j mut Json) -> &'j mut Json {
        self.as_str().find_or_add(json)
    }
}

impl<P: Place + ?Sized> Place for &P {
    fn find<'j>(&self, json: &'j Json) -> Option<&'j Json> {
        (**self).find(json)
    }

    fn find_mut<'j>(&self, json: &'j mut Json) -> Option<&'j mut Json> {
        (**self).find_mut(json)
    }

    fn find_or_add<'j>(&self, json: &'j mut Json) -> &'j mut Json {
        (**self).find_or_add(json)
    }
}

/// `null` for a missing value.
impl<P: Place> Index<P> for Json {
    type Output = Self;

    fn index(&self, place: P) -> &Self {
        place.find(self).unwrap_or(&Self::Null)
    }
}

/// Adds a missing key; panics if that is impossible.
impl<P: Place> IndexMut<P> for Json {
    fn index_mut(&mut self, place: P) -> &mut Self {
        place.find_or_add(self)
    }
}

/// The JSON on one line, or with `{:#}` on many.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match f.alternate() {
            true => serde_json::to_string_pretty(self),
            false => serde_json::to_string(self),
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(value) => out.serialize_bool(*value),
            Self::Number(number) => number.serialize(out),
            Self::String(text) => out.serialize_str(text),
            Self::Array(items) => out.collect_seq(items),
            Self::Object(object) => out.collect_map(object),
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => Self::Number(number),
            serde_json::Value::String(text) => Self::from(text),
            serde_json::Value::Array(items) => items.into_iter().map(Self::from).collect(),
            serde_json::Value::Object(object) => Self::Object(object.into_iter().collect()),
        }
    }
}

impl<T: Into<Self>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Self>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: AsRef<str>, V: Into<Self>> FromIterator<(K, V)> for Json {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::Object(entries.into_iter().collect())
    }
}

macro_rules! made_from {
    ($($type:ty: $make:expr;)*) => {$(
        impl From<$type> for Json {
            fn from(value: $type) -> Self {
                let make: fn($type) -> Self = $make;
                make(value)
            }
        }
    )*};
    (whole: $($type:ident)*) => {
        made_from! { $($type: |number| Self::Number(number.into());)* }
    };
}

made_from! { whole: u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

// `null` for a non-finite number.
made_from! {
    f64: |number| Number::from_f64(number).map_or(Self::Null, Self::Number);
    f32: |number| f64::from(number).into();
    bool: Self::Bool;
    &str: |text| Self::String(text.into());
    String: |text| Self::String(text.into());
    Object: Self::Object;
    &serde_json::Value: |value| value.clone().into();
}

macro_rules! equal {
    ($($type:ty: $same:expr;)*) => {$(
        impl PartialEq<$type> for Json {
            fn eq(&self, other: &$type) -> bool {
                let same: fn(&Self, &$type) -> bool = $same;
                same(self, other)
            }
        }

        impl PartialEq<Json> for $type {
            fn eq(&self, other: &Json) -> bool {
                *other == *self
            }
        }

        impl PartialEq<$type> for &Json {
            fn eq(&self, other: &$type) -> bool {
                **self == *other
            }
        }
    )*};
}

impl PartialEq<Json> for &str {
    fn eq(&self, other: &Json) -> bool {
        *other == **self
    }
}

impl PartialEq<&str> for Json {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

equal! {
    str: |json, other| json.as_str() == Some(other);
    String: |json, other| json.as_str() == Some(other);
    bool: |json, other| json.as_bool() == Some(*other);
    f64: |json, other| json.as_f64() == Some(*other);
    u8: |json, other| json.as_u64() == Some(u64::from(*other));
    u16: |json, other| json.as_u64() == Some(u64::from(*other));
    u32: |json, other| json.as_u64() == Some(u64::from(*other));
    u64: |json, other| json.as_u64() == Some(*other);
    usize: |json, other| json.as_u64() == Some(*other as u64);
    i32: |json, other| json.as_i64() == Some(i64::from(*other));
    i64: |json, other| json.as_i64() == Some(*other);
}
