//! Parsing the values of properties, shared by the JSON and XML readers.

use worldwire_core::json::{Json, expected, integer};
use worldwire_core::{Error, Field, Result};

use super::visitor::Leaf;
use crate::schema::classes::{Part, Property, PropertyKind, Tuple, parse_number};
use crate::types::{Dbl, Flt};

/// A parsed value, which owns its bytes.
pub(super) enum Parsed {
    Leaf(Leaf<'static>),
    Text(Vec<u8>),
    WideText(Vec<u8>),
    Tuple(Tuple, Vec<u8>),
}

impl Parsed {
    pub(super) fn leaf(&self) -> Leaf<'_> {
        match self {
            Self::Leaf(leaf) => *leaf,
            Self::Text(bytes) => Leaf::Text(bytes),
            Self::WideText(bytes) => Leaf::WideText(bytes),
            Self::Tuple(tuple, bytes) => Leaf::Tuple(*tuple, bytes),
        }
    }
}

/// Parses a number, or the name for it among a property's options; returns `None` if the property
/// is not a number. For XML, `json` is a string.
pub(super) fn number_of(property: &Property, json: &Json) -> Result<Option<Leaf<'static>>> {
    let kind = property.kind();
    let (Some(_), Some(choices), Json::String(text)) = (kind.whole(), &property.choices, json)
    else {
        return number(kind, json);
    };
    match choices.plain_number(text) {
        Some(named) => number(kind, &Json::from(named)),
        None => {
            number(kind, json).map_err(|error| crate::suggest(error, choices.names().nearest(text)))
        }
    }
}

/// Parses a number of a given kind; returns `None` if the kind is not a number. For XML, `json` is
/// a string.
pub(super) fn number(kind: PropertyKind, json: &Json) -> Result<Option<Leaf<'static>>> {
    let signed = |bits: u32| {
        let number: i64 = integer(json, "a whole number")?;
        let end = 1_i128 << (bits - 1);
        if (-end..end).contains(&i128::from(number)) {
            return Ok(Leaf::Signed(number));
        }
        Err(expected(format!("a signed {bits}-bit number"), json))
    };
    let unsigned = |bits: u32| {
        let number: u64 = integer(json, "a whole number of at least 0")?;
        if u128::from(number) < 1 << bits {
            return Ok(Leaf::Unsigned(number));
        }
        Err(expected(format!("an unsigned {bits}-bit number"), json))
    };
    Ok(Some(match kind {
        PropertyKind::I8 => signed(8)?,
        PropertyKind::I16 => signed(16)?,
        PropertyKind::I32 => signed(32)?,
        PropertyKind::I64 => signed(64)?,
        PropertyKind::U8 => unsigned(8)?,
        PropertyKind::U16 => unsigned(16)?,
        PropertyKind::U32 => unsigned(32)?,
        PropertyKind::U64 => unsigned(64)?,
        PropertyKind::SignedBits(count) => signed(u32::from(count))?,
        PropertyKind::UnsignedBits(count) => unsigned(u32::from(count))?,
        PropertyKind::F32 => Leaf::F32(Flt::from_json(json.into())?.0),
        PropertyKind::F64 => Leaf::F64(Dbl::from_json(json.into())?.0),
        _ => return Ok(None),
    }))
}

/// Appends a number in a tuple, little-endian.
pub(super) fn push_part(part: Part, json: &Json, bytes: &mut Vec<u8>) -> Result<()> {
    match part {
        Part::U8 => bytes.push(integer(json, "a number below 256")?),
        Part::U32 => {
            bytes.extend(integer::<u32>(json, "an unsigned 32-bit number")?.to_le_bytes());
        }
        Part::I32 => bytes.extend(integer::<i32>(json, "a signed 32-bit number")?.to_le_bytes()),
        Part::F32 => bytes.extend(Flt::from_json(json.into())?.0.to_le_bytes()),
    }
    Ok(())
}

/// Parses a value that is neither an object nor a container from its text in XML.
pub(super) fn text(property: &Property, text: &str) -> Result<Parsed> {
    match property.kind() {
        PropertyKind::String => return Ok(Parsed::Text(text.as_bytes().to_vec())),
        PropertyKind::WideString => return Ok(Parsed::WideText(wide_bytes(text))),
        _ => {}
    }
    let text = text.trim();
    let json = Json::from(if text.is_empty() { "0" } else { text });
    if let Some(leaf) = number_of(property, &json)? {
        return Ok(Parsed::Leaf(leaf));
    }
    Ok(Parsed::Leaf(match property.kind() {
        PropertyKind::Bool => match text {
            "" | "0" => Leaf::Bool(false),
            "1" => Leaf::Bool(true),
            _ if text.eq_ignore_ascii_case("true") => Leaf::Bool(true),
            _ if text.eq_ignore_ascii_case("false") => Leaf::Bool(false),
            _ => return Err(Error::value("0, 1, true or false", text.to_owned())),
        },
        PropertyKind::Tuple(tuple) => {
            return tuple_bytes(tuple, text).map(|b| Parsed::Tuple(tuple, b));
        }
        kind @ (PropertyKind::Enum | PropertyKind::Flags) => {
            let number = match text {
                "" => 0,
                _ => choice(property, kind, text.as_bytes())
                    .map_err(|UnknownOption(name)| unknown_option(property, &name))?,
            };
            if kind == PropertyKind::Flags { Leaf::Flags(number) } else { Leaf::Enum(number) }
        }
        _ => return Err(Error::value("a value", "an object")),
    }))
}

/// Parses numbers separated by commas; a colour is one number.
fn tuple_bytes(tuple: Tuple, text: &str) -> Result<Vec<u8>> {
    if tuple == Tuple::Color {
        let digits = if text.is_empty() { "0" } else { text };
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let number = number.ok_or_else(|| Error::value("a colour AARRGGBB", text.to_owned()))?;
        return Ok(number.to_le_bytes().to_vec());
    }
    if text.is_empty() {
        return Ok(vec![0; tuple.size()]);
    }
    let mut bytes = Vec::with_capacity(tuple.size());
    let mut count = 0;
    for word in text.split(',').take(tuple.count() + 1) {
        let json = Json::from(word.trim());
        push_part(tuple.part(), &json, &mut bytes)?;
        count += 1;
    }
    if count == tuple.count() {
        return Ok(bytes);
    }
    Err(Error::value(format!("{} numbers separated by commas", tuple.count()), text.to_owned()))
}

/// A name that is not among a property's options.
pub(super) struct UnknownOption(pub(super) String);

/// Parses an enumeration or a set of flags from names or digits, as `push_choice` writes them.
pub(super) fn choice(
    property: &Property,
    kind: PropertyKind,
    bytes: &[u8],
) -> Result<u32, UnknownOption> {
    let unknown = |name: &str| UnknownOption(name.to_owned());
    let Ok(text) = core::str::from_utf8(bytes) else {
        return Err(unknown(&String::from_utf8_lossy(bytes)));
    };
    match (&property.choices, kind) {
        (Some(choices), PropertyKind::Flags) => choices.parse_flags(text).map_err(unknown),
        (Some(choices), _) => choices.parse(text).ok_or_else(|| unknown(text)),
        (None, PropertyKind::Flags) if text.trim().is_empty() => Ok(0),
        (None, _) => parse_number(text.trim()).ok_or_else(|| unknown(text)),
    }
}

/// The error for a name that is not among a property's options.
pub(super) fn unknown_option(property: &Property, name: &str) -> Error {
    Error::value(format!("an option of {}", property.type_name), format!("\"{name}\""))
}

/// Text as 16-bit units, little-endian.
pub(super) fn wide_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}
