//! Reading values from JSON. Everything here fails with `Value` if the JSON has a different type or
//! is out of range.

use std::borrow::Cow;

use super::{Given, Json, Object};
use crate::names::nearest;
use crate::opener::Subject;
use crate::value::parse_hex;
use crate::{Error, Names, Result};

/// An integer in a range, given as a number or as text.
pub fn integer<N: TryFrom<i128>>(json: &Json, wanted: &'static str) -> Result<N> {
    let number = match json {
        Json::Number(number) => {
            number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
        }
        Json::String(text) => parse_integer(text),
        _ => None,
    };
    number.and_then(|n| N::try_from(n).ok()).ok_or_else(|| expected(wanted, json))
}

/// An unsigned 64-bit integer.
pub fn unsigned(json: &Json) -> Result<u64> {
    integer(json, "a whole number from 0 to 18446744073709551615")
}

/// A signed 64-bit integer.
pub fn signed(json: &Json) -> Result<i64> {
    integer(json, "a 64-bit whole number")
}

macro_rules! float {
    ($($(#[doc = $doc:literal])* $name:ident: $float:ident, $bits:ident, $nan:literal, $wanted:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// A number in digits, or as text with digits; `NaN`, `Infinity`, `-Infinity`; or its bits
        /// as text that begins with `0x`.
        pub fn $name(json: &Json) -> Result<$float> {
            let number = match json {
                // Parsed from its text, because converting via the wider type could round twice.
                Json::Number(number) => number.to_string().parse().ok(),
                Json::String(text) => match &**text {
                    "NaN" => Some($float::from_bits($nan)),
                    "Infinity" => Some($float::INFINITY),
                    "-Infinity" => Some($float::NEG_INFINITY),
                    text => match text.strip_prefix("0x") {
                        Some(digits) => {
                            $bits::from_str_radix(digits, 16).ok().map($float::from_bits)
                        }
                        None => text.parse().ok(),
                    },
                },
                _ => None,
            };
            let number: $float = number.ok_or_else(|| expected($wanted, json))?;
            // Infinity must be given by name; a number that is too large is an error.
            if number.is_infinite() && !is_named(json) {
                return Err(expected($wanted, json));
            }
            Ok(number)
        }
    )*};
}

float! {
    /// A single-precision number.
    single: f32, u32, 0x7fc0_0000, "a single-precision number";
    /// A double-precision number.
    double: f64, u64, 0x7ff8_0000_0000_0000, "a double-precision number";
}

/// Whether the text is anything but digits: `-Infinity`, `inf`, or the bits of a float.
fn is_named(json: &Json) -> bool {
    json.as_str().is_some_and(|text| {
        let name = text.trim_start_matches(['+', '-']);
        name.starts_with("0x") || !name.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    })
}

/// The number of an enumeration, given as its name or as a number.
///
/// # Errors
/// `Value` for an unknown name, with the nearest known one.
pub fn named(json: &Json, names: &Names) -> Result<i64> {
    if let Json::String(text) = json {
        if let Some(number) = names.number(text) {
            return Ok(number);
        }
        if parse_integer(text).is_none() {
            return Err(unknown_name(text, names));
        }
    }
    signed(json)
}

/// A set of flags, given as a list of names and numbers or as one number.
///
/// # Errors
/// `Value` for an unknown name, with the nearest known one.
pub fn flags(json: &Json, names: &Names) -> Result<u64> {
    let Json::Array(items) = json else {
        return unsigned(json);
    };
    items.iter().enumerate().try_fold(0, |bits, (index, item)| {
        let bit = match item {
            Json::String(text) if parse_integer(text).is_none() => {
                names.number(text).ok_or_else(|| unknown_name(text, names)).map(i64::cast_unsigned)
            }
            _ => unsigned(item),
        };
        bit.map(|bit| bits | bit).map_err(|error| error.inside_item(index))
    })
}

/// Text, which `encode` turns into stored bytes, or the bytes of text that is not valid Unicode
/// (`{"$hex": ...}`).
pub fn text(json: &Json, encode: impl FnOnce(&str) -> Vec<u8>) -> Result<Vec<u8>> {
    match json {
        Json::String(text) => Ok(encode(text)),
        _ => hex(json).ok_or_else(|| expected("a string or {\"$hex\": \"00ff\"}", json)),
    }
}

/// Bytes, given as `{"$hex": "00ff"}`.
pub fn bytes(json: &Json) -> Result<Vec<u8>> {
    hex(json).ok_or_else(|| expected("bytes as {\"$hex\": \"00ff\"}", json))
}

/// The error for an unexpected JSON value.
#[must_use]
pub fn expected(wanted: impl Into<Cow<'static, str>>, found: &Json) -> Error {
    let mut shown = found.to_string();
    if shown.len() > 60 {
        shown.truncate(shown.floor_char_boundary(57));
        shown.push_str("...");
    }
    Error::value(wanted, shown)
}

/// The fields of a JSON object. Each is taken once by name; remaining fields are an error.
#[derive(Debug)]
pub struct FieldsOf<'j> {
    given: Given<'j>,
    object: &'j Object,
    known: Vec<&'static str>,
}

impl<'j> FieldsOf<'j> {
    /// Begins with a value that must be an object.
    pub fn new(json: impl Into<Given<'j>>) -> Result<Self> {
        let given = json.into();
        match given.json() {
            Json::Object(object) => Ok(Self { given, object, known: Vec::new() }),
            other => Err(expected("an object", other)),
        }
    }

    /// From here on, the fields are those of a message.
    pub fn of(&mut self, message: Subject<'j>) {
        self.given = self.given.of(message);
    }

    /// The value of a required field, to be read as its type.
    pub fn given(&mut self, name: &'static str) -> Result<Given<'j>> {
        self.take(name).map(|json| self.given.field(name, json))
    }

    /// The value of a field that may be missing, to be read as its type.
    pub fn given_optional(&mut self, name: &'static str) -> Option<Given<'j>> {
        self.take_optional(name).map(|json| self.given.field(name, json))
    }

    /// The value of a required field.
    pub fn take(&mut self, name: &'static str) -> Result<&'j Json> {
        self.take_optional(name).ok_or_else(|| {
            let error = Error::invalid("is missing").inside(name);
            let others = self.object.keys();
            match nearest(name, others.filter(|other| !self.known.contains(other))) {
                Some(near) => error.hint(format!("is \"{near}\" a misspelling of it?")),
                None => error,
            }
        })
    }

    /// The value of a field that may be missing.
    pub fn take_optional(&mut self, name: &'static str) -> Option<&'j Json> {
        self.known.push(name);
        self.object.get(name)
    }

    /// The value of a required field, read as its type.
    pub fn value<F: for<'a> crate::Field<'a>>(&mut self, name: &'static str) -> Result<F> {
        F::from_json(self.given(name)?).map_err(|error| error.inside(name))
    }

    /// Whether there is a field of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// Whether the object has no fields at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.object.is_empty()
    }

    /// Checks that all fields have been taken.
    ///
    /// # Errors
    /// `Value` for an unknown field, with the nearest known name.
    pub fn end(self) -> Result<()> {
        let Some(extra) = self.object.keys().find(|key| !self.known.contains(key)) else {
            return Ok(());
        };
        let error = Error::value("a known field", format!("\"{extra}\""));
        Err(match nearest(extra, self.known) {
            Some(name) => error.hint(format!("did you mean \"{name}\"?")),
            None => error,
        })
    }
}

fn hex(json: &Json) -> Option<Vec<u8>> {
    match json {
        Json::Object(object) if object.len() == 1 => parse_hex(object.get("$hex")?.as_str()?),
        _ => None,
    }
}

fn unknown_name(text: &str, names: &Names) -> Error {
    let error = Error::value("a known name or a number", format!("\"{text}\""));
    match names.nearest(text) {
        Some(name) => error.hint(format!("did you mean \"{name}\"?")),
        None => error,
    }
}

/// `123`, `-5` or `0x7b`.
fn parse_integer(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    static NAMES: Names = Names::fixed(&[(1, "admin"), (8, "user")]);

    #[test]
    fn infinity_has_a_name() {
        for (good, wanted) in [
            (json!("Infinity"), f32::INFINITY),
            (json!("-Infinity"), f32::NEG_INFINITY),
            (json!("inf"), f32::INFINITY),
            (json!("0xff800000"), f32::NEG_INFINITY),
            (json!(3.402_823_4e38), f32::MAX),
            (json!("-3.4028234e38"), f32::MIN),
        ] {
            assert_eq!(single(&good).unwrap().to_bits(), wanted.to_bits(), "{good}");
        }
        for wrong in [json!(1e39), json!(-1e39), json!("1e39"), json!("-.1e40"), json!("+9e99")] {
            let error = single(&wrong).unwrap_err().to_string();
            assert_eq!(error, format!("wanted a single-precision number, found {wrong}"));
            assert!(double(&wrong).is_ok());
        }
        let error = double(&json!("1e400")).unwrap_err().to_string();
        assert_eq!(error, "wanted a double-precision number, found \"1e400\"");
        assert!(double(&json!("-Infinity")).is_ok());
    }

    #[test]
    fn integers_are_checked() {
        assert_eq!(unsigned(&json!(u64::MAX)).unwrap(), u64::MAX);
        assert_eq!(unsigned(&json!("0x10")).unwrap(), 16);
        let error = integer::<u8>(&json!(256), "a whole number from 0 to 255").unwrap_err();
        assert_eq!(error.to_string(), "wanted a whole number from 0 to 255, found 256");
        assert!(unsigned(&json!(1.5)).is_err());
    }

    #[test]
    fn names_are_looked_up_and_suggested() {
        assert_eq!(named(&json!("user"), &NAMES).unwrap(), 8);
        assert_eq!(named(&json!(99), &NAMES).unwrap(), 99);
        let error = named(&json!("usr"), &NAMES).unwrap_err();
        assert!(error.to_string().ends_with("did you mean \"user\"?"), "{error}");
        assert_eq!(flags(&json!(["admin", "0x100"]), &NAMES).unwrap(), 0x101);
    }

    #[test]
    fn objects_must_be_used_up() {
        let value = json!({"transId": 1, "playrId": 2});
        let mut fields = FieldsOf::new(&value).unwrap();
        fields.take("transId").unwrap();
        let error = fields.take("playerId").unwrap_err();
        assert_eq!(error.to_string(), "playerId: is missing; is \"playrId\" a misspelling of it?");
        let error = fields.end().unwrap_err();
        assert!(error.to_string().contains("did you mean \"playerId\"?"), "{error}");
    }
}
