//! Reading values at paths while an object is decoded, without the rest of the object.

mod visitor;

use worldwire_core::json::Json;
use worldwire_core::{Error, Result};

pub use visitor::PathVisitor;

use super::plain::Plain;
use crate::schema::classes::{Class, Classes, Property, Tuple};

/// Paths to values in objects, such as `m_stats.m_health`, `m_items[0].m_id` and `m_position.x`.
/// `[*]` stands for every element of a list, and `$class` for an object's class. Names can contain
/// dots. If a path can be split in several ways, the shortest existing name under which the rest can
/// be found is used.
///
/// ```
/// use worldwire_ki::object::{ObjectCodec, ObjectOptions, PathValue, PathVisitor, ValuePaths};
/// use worldwire_ki::schema::classes::TypeLists;
///
/// let list = br#"{"version": 2, "classes": {"84938464": {"name": "class Leaf", "bases": [],
///     "hash": 84938464, "properties": {"m_v": {"type": "unsigned int", "id": 0, "flags": 31},
///     "m_n": {"type": "std::string", "id": 1, "flags": 31}}}}}"#;
/// let mut lists = TypeLists::new();
/// lists.add("types.json", list)?;
/// let classes = lists.compile();
///
/// let paths = ValuePaths::parse(["m_n", "m_absent"])?;
/// let mut visitor = PathVisitor::new(&paths);
/// let bytes = b"\xe0\x0e\x10\x05\x07\0\0\0\x02\0hi";
/// ObjectCodec::new(&classes, ObjectOptions::default()).decode_all(bytes, &mut visitor)?;
/// let values: Vec<_> = visitor.take().collect();
/// assert_eq!(values, [Some(PathValue::Text("hi".into())), None]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ValuePaths {
    paths: Vec<Box<str>>,
}

/// A value at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathValue {
    /// Null: no object.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A floating-point number.
    Real(f64),
    /// Text, or the name of a number.
    Text(Box<str>),
    /// Text that is not valid.
    Bytes(Box<[u8]>),
    /// Anything else, as JSON: an object, a list, a tuple, a set of flags.
    Json(Box<str>),
    /// The values at a path with `[*]`. Elements that have no value at the rest of the path are
    /// omitted.
    List(Vec<Self>),
}

/// Every element of a list, in a path.
const EACH: &str = "[*]";
/// Stands for every element, in place of an element's index.
const ALL: u32 = u32::MAX;
/// The class of an object, in a path.
const CLASS: &str = "$class";

impl ValuePaths {
    /// Reads paths.
    ///
    /// # Errors
    /// `Value` if a path is empty or contains brackets without an index or `*`.
    pub fn parse<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<Self> {
        let checked = |path: &'p str| {
            check(path).map_err(|error| error.about(format!("path `{path}`")))?;
            Ok(path.into())
        };
        let paths = paths.into_iter().map(checked).collect::<Result<_>>()?;
        Ok(Self { paths })
    }

    /// The number of paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The first name in a path that does not occur in any class, if there is one. It is probably a
    /// mistake.
    #[must_use]
    pub fn unknown_name<'p>(&'p self, path: usize, classes: &Classes) -> Option<&'p str> {
        let path = self.paths.get(path)?;
        let names = path.split(['.', '[', ']']).filter(|name| {
            !name.is_empty() && *name != "*" && !name.starts_with(|c: char| c.is_ascii_digit())
        });
        let is_part = |name: &str| {
            name == CLASS || Tuple::ALL.iter().any(|tuple| tuple.names().contains(&name))
        };
        let properties = || classes.all().iter().flat_map(Class::properties);
        // Names can contain dots.
        let has =
            |property: &Property, name: &str| property.name.split('.').any(|part| part == name);
        let mut unknown = names.filter(|name| !is_part(name));
        unknown.find(|&name| !properties().any(|property| has(property, name)))
    }

    /// The rest of a path, from a position on.
    fn rest(&self, path: u32, from: u32) -> &str {
        let path = self.paths.get(path as usize);
        path.and_then(|path| path.get(from as usize..)).unwrap_or_default()
    }
}

/// The index of an element at the beginning of a path, or [`ALL`], and the length of its part.
fn index_of(path: &str) -> Option<(u32, usize)> {
    let (index, rest) = match path.strip_prefix(EACH) {
        Some(rest) => (ALL, rest),
        None => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            (index.parse().ok().filter(|index| *index != ALL)?, rest)
        }
    };
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    Some((index, path.len() - rest.len()))
}

/// Checks that brackets contain an index or `*`.
fn check(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::value("a name", "nothing"));
    }
    let mut rest = path;
    while let Some(start) = rest.find('[') {
        let (_, inside) = rest.split_at(start);
        let Some((_, length)) = index_of(inside) else {
            let hint = "write the index of an element, or `[*]` for all";
            return Err(Error::value("an index or `*` in brackets", inside.to_owned()).hint(hint));
        };
        rest = inside.get(length..).unwrap_or_default();
    }
    Ok(())
}

impl From<Plain<'_>> for PathValue {
    fn from(plain: Plain<'_>) -> Self {
        match plain {
            Plain::Null => Self::Null,
            Plain::Bool(value) => Self::Bool(value),
            Plain::Signed(value) => Self::Signed(value),
            Plain::Unsigned(value) => Self::Unsigned(value),
            Plain::Real(value) => Self::Real(value),
            Plain::Name(name) => Self::Text(name.into()),
            Plain::Text(text) => Self::Text(text.into()),
            Plain::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }
}

impl From<&Json> for PathValue {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => Self::Unsigned(value),
                (_, Some(value), _) => Self::Signed(value),
                (_, _, Some(value)) => Self::Real(value),
                _ => Self::Json(number.to_string().into()),
            },
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(_) | Json::Object(_) => Self::Json(json.to_string().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_paths_are_found() {
        for path in ["", "m_a[", "m_a[x]", "m_a[-1]", "m_a[0].m_b[", "[]"] {
            assert!(ValuePaths::parse(["m_n", path]).is_err(), "{path}");
        }
        let error = ValuePaths::parse(["m_a[x]"]).unwrap_err().to_string();
        assert!(error.starts_with("path `m_a[x]`: wanted an index or `*` in brackets"), "{error}");
        let classes = Classes::of_json(visitor::tests::LIST);
        let unknown = |path: &str| {
            let paths = ValuePaths::parse([path]).unwrap();
            paths.unknown_name(0, &classes).map(str::to_owned)
        };
        assert_eq!(unknown("m_all[*].m_texts").as_deref(), Some("m_texts"));
        assert_eq!(unknown("m_al[0].m_texts").as_deref(), Some("m_al"));
        for path in ["m_all[*].m_text", "m_id.m_full", "$class", "m_place.x", "m_bits[12]"] {
            assert_eq!(unknown(path), None, "{path}");
        }
    }
}
