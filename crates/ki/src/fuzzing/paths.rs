//! The target for values at paths: the visitor must collect the same values that a decoded object
//! contains.

use core::fmt::Write as _;

use worldwire_core::json::{Json, Style, float64, hex, parse, string};
use worldwire_core::testing::Target;
use worldwire_core::{Result, Sampler};

use super::object::{CLASSES, options};
use crate::object::{
    CoreId, JsonWriter, Leaf, Object, ObjectCodec, ObjectOptions, PathValue, PathVisitor, Slot,
    ValuePaths, ValueRef, Visitor,
};
use crate::schema::classes::{Class, PropertyKind};

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[Target { name: "ki_object_paths", run, seeds }];

/// The parts of paths that a byte can select, besides the properties of generated classes.
const PARTS: [&str; 8] = ["[*]", "[0]", "[1]", "[2]", ".$class", ".x", ".m.x", ".$bits"];
/// The number of properties of generated classes.
const PROPERTIES: u8 = 12;
const PARTS_AND_PROPERTIES: u8 = PROPERTIES + 8;
/// Ends a path.
const END: u8 = 0xff;
/// The maximum number of paths.
const MAX_PATHS: usize = 8;

/// The first two bytes select the options. The third is the number of bytes that select the parts
/// of paths. The object follows.
///
/// If the object can be decoded, the visitor must find its values. Otherwise the visitor must fail
/// with the same error, unless it skips values in a deep stream. In this case it must find the
/// values of the object that lenient decoding yields.
fn run(data: &[u8]) {
    let [low, high, count, rest @ ..] = data else { return };
    let bits = u16::from_le_bytes([*low, *high]);
    let Some((parts, bytes)) = rest.split_at_checked(usize::from(*count)) else { return };
    let texts = texts(parts);
    let Ok(paths) = ValuePaths::parse(texts.iter().map(String::as_str)) else { return };
    let codec = ObjectCodec::new(&CLASSES, options(&CLASSES, bits));
    let mut visitor = PathVisitor::new(&paths);
    // The second time, the visitor already knows how the paths continue in each class.
    let first = codec.decode_all(bytes, &mut visitor);
    let values: Vec<_> = visitor.take().collect();
    let second = codec.decode_all(bytes, &mut visitor);
    assert_eq!(first, second, "another outcome");
    if first.is_ok() {
        let again: Vec<_> = visitor.take().collect();
        assert_eq!(format!("{again:?}"), format!("{values:?}"), "other values");
    }
    let mut object = Object::new();
    let whole = codec.decode_all(bytes, &mut object);
    let skips = codec.options().deep && !codec.options().lenient;
    match (&first, &whole) {
        (Ok(found), Ok(decoded)) => assert_eq!(found.header, decoded.header, "another header"),
        (Err(found), Err(error)) if !skips => assert_eq!(found, error, "another error"),
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("the visitor fails: {error}"),
        (Ok(_), Err(_)) if skips => {
            let lenient = ObjectOptions { lenient: true, ..codec.options().clone() };
            let codec = ObjectCodec::new(&CLASSES, lenient);
            object = Object::new();
            if codec.decode_all(bytes, &mut object).is_err() {
                return;
            }
        }
        (Ok(_), Err(error)) => panic!("the visitor accepts what cannot be decoded: {error}"),
    }
    if first.is_ok() {
        for (path, found) in texts.iter().zip(&values) {
            let mut all = Vec::new();
            let is_list = path.contains("[*]");
            let is_there = match object.root(&CLASSES) {
                Some(root) => collect(root, path, &mut all).expect("a decoded object"),
                // The outermost object is null.
                None => false,
            };
            let expected = match (is_list, is_there) {
                (true, true) => Some(format!("[{}]", all.join(","))),
                (true, false) => None,
                (false, _) => all.pop(),
            };
            assert_eq!(found.as_ref().map(shown), expected, "{path}");
        }
    }
}

fn texts(parts: &[u8]) -> Vec<String> {
    let path = |parts: &[u8]| {
        let mut path = String::new();
        for part in parts {
            let part = part % PARTS_AND_PROPERTIES;
            match part.checked_sub(PROPERTIES) {
                None => {
                    let _ = write!(path, ".m_{part}value");
                }
                Some(at) => path.push_str(PARTS.get(usize::from(at)).copied().unwrap_or_default()),
            }
        }
        path.trim_start_matches('.').to_owned()
    };
    let paths = parts.split(|part| *part == END).map(path).filter(|path| !path.is_empty());
    paths.take(MAX_PATHS).collect()
}

/// Adds the values at a path. Returns whether the path leads to a value or, for a path with `[*]`,
/// to a list.
fn collect(value: ValueRef<'_, '_>, path: &str, all: &mut Vec<String>) -> Result<bool> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        all.push(text_of(value)?);
        return Ok(true);
    }
    if let Some(class) = value.class() {
        let next = fitting(class, path);
        return match next {
            Some((name, rest)) => match value.property(name) {
                Some(inner) => collect(inner, rest, all),
                None => Ok(false),
            },
            None if path == "$class" => {
                all.push(shown(&PathValue::Text((&*class.name).into())));
                Ok(true)
            }
            None => Ok(false),
        };
    }
    if value.is_list() {
        if let Some(rest) = path.strip_prefix("[*]") {
            for item in value.children() {
                collect(item, rest, all)?;
            }
            return Ok(true);
        }
        let item = index_at(path).and_then(|(index, rest)| Some((value.element(index)?, rest)));
        return match item {
            Some((item, rest)) => collect(item, rest, all),
            None => Ok(false),
        };
    }
    let Some(Leaf::Tuple(..) | Leaf::Raw(_) | Leaf::Object { .. }) = value.leaf() else {
        return Ok(false);
    };
    let json = parse(&json_of(value)?).expect("it was just written");
    let part = part(&json, path).map(|part| shown(&PathValue::from(part)));
    let is_there = part.is_some();
    all.extend(part);
    Ok(is_there)
}

/// The property that a path continues with, and the rest of the path.
fn fitting<'p>(class: &Class, path: &'p str) -> Option<(&'p str, &'p str)> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    // Names of generated classes have no dots.
    let (name, rest) = path.split_at(end);
    let property = class.property(name)?;
    let is_fitting = match property.kind() {
        _ if rest.is_empty() => true,
        _ if property.is_list() => rest.starts_with('['),
        PropertyKind::Object | PropertyKind::Tuple(_) => rest.starts_with('.'),
        _ => false,
    };
    is_fitting.then_some((name, rest))
}

fn index_at(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

/// A part of a value's JSON.
fn part<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return Some(json);
    }
    if path.starts_with('[') {
        let (index, rest) = index_at(path)?;
        return part(json.as_array()?.get(index)?, rest);
    }
    let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    part(json.get(name)?, rest)
}

/// A value as text: JSON, except where the visitor provides more detail.
fn shown(value: &PathValue) -> String {
    let mut text = String::new();
    match value {
        PathValue::Null => text.push_str("null"),
        PathValue::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        PathValue::Signed(value) => text.push_str(&value.to_string()),
        PathValue::Unsigned(value) => text.push_str(&value.to_string()),
        PathValue::Real(value) if value.is_finite() => float64(*value, &mut text),
        PathValue::Real(value) => text = value.to_string(),
        PathValue::Text(value) => string(value, &mut text),
        PathValue::Bytes(bytes) => hex(bytes, &mut text),
        PathValue::Json(json) => text.push_str(json),
        PathValue::List(items) => {
            text = format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","));
        }
    }
    text
}

/// The text of a decoded value, in the form of [`shown`].
fn text_of(value: ValueRef<'_, '_>) -> Result<String> {
    let bytes = |bytes: &[u8]| shown(&PathValue::Bytes(bytes.into()));
    let is_choice = value.slot().property().is_some_and(|property| {
        matches!(property.kind(), PropertyKind::Enum | PropertyKind::Flags)
    });
    Ok(match value.leaf() {
        Some(Leaf::F32(number)) if !number.is_finite() => f64::from(number).to_string(),
        Some(Leaf::F64(number)) if !number.is_finite() => number.to_string(),
        Some(Leaf::Text(text) | Leaf::WideText(text)) if !is_choice && value.text().is_none() => {
            bytes(text)
        }
        _ => json_of(value)?,
    })
}

/// The JSON of a value, without its name.
fn json_of(value: ValueRef<'_, '_>) -> Result<String> {
    let mut writer =
        Nameless { json: JsonWriter::new(Vec::new(), Style::default()), has_begun: false };
    value.visit(&mut writer)?;
    Ok(String::from_utf8(writer.json.finish()?).expect("JSON is text"))
}

/// Writes JSON without the name of the outermost value.
struct Nameless {
    json: JsonWriter<Vec<u8>>,
    has_begun: bool,
}

impl Nameless {
    fn slot<'c>(&mut self, slot: Slot<'c>) -> Slot<'c> {
        if core::mem::replace(&mut self.has_begun, true) {
            return slot;
        }
        slot.property().map_or(Slot::Root, Slot::Element)
    }
}

impl<'c> Visitor<'c> for Nameless {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        let slot = self.slot(slot);
        self.json.begin_object(slot, class, id)
    }

    fn end_object(&mut self) -> Result<()> {
        Visitor::end_object(&mut self.json)
    }

    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        let slot = self.slot(slot);
        self.json.begin_list(slot)
    }

    fn end_list(&mut self) -> Result<()> {
        Visitor::end_list(&mut self.json)
    }

    fn value(&mut self, slot: Slot<'c>, leaf: Leaf<'_>) -> Result<()> {
        let slot = self.slot(slot);
        self.json.value(slot, leaf)
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(34);
    let mut seeds = Vec::new();
    for class in CLASSES.all() {
        for bits in [0_u16, 0x20, 0x120, 0x22f] {
            let codec = ObjectCodec::new(&CLASSES, options(&CLASSES, bits));
            let made = Object::sample(&CLASSES, class, bits & 0x20 == 0, &mut sampler);
            let made = made.and_then(|made| codec.encode(&made, codec.header()));
            let Ok(bytes) = made else { continue };
            if bytes.len() > 2000 {
                continue;
            }
            // A few paths that exist, and others that may exist.
            let mut parts = Vec::new();
            for property in class.properties().iter().take(4) {
                let number = u8::try_from(property.index()).unwrap_or(0);
                let inner = u8::try_from(sampler.below(20)).unwrap_or(0);
                parts.extend([number, END, number]);
                parts.extend(property.is_list().then_some(PROPERTIES));
                parts.extend([inner, END]);
            }
            let [low, high] = bits.to_le_bytes();
            let count = u8::try_from(parts.len()).unwrap_or(0);
            seeds.push([&[low, high, count], &parts[..], &bytes].concat());
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_select_paths() {
        let paths = texts(&[3, 12, 4, END, 0, 13, END, END, 18]);
        assert_eq!(paths, ["m_3value[*].m_4value", "m_0value[0]", "m.x"]);
        let found = seeds().iter().filter(|seed| seed[3..].len() > 40).count();
        assert!(found > 8, "{found}");
    }
}
