//! KI: the classes of the user's type lists, for the forms in which objects are edited.

use std::sync::Arc;

use axum::extract::{Query, State as Extracted};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worldwire_core::Names;
use worldwire_dissect::KiObjects;
use worldwire_ki::object::{Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Choices, Class, Classes, Part, Property, PropertyKind};

use crate::error::Refusal;
use crate::state::State;

type Outcome<T> = Result<T, Refusal>;

/// The maximum number of class names that one request lists.
const MAX_LISTED: usize = 200;
/// The maximum number of options of one property and of all properties of a class.
const MAX_OPTIONS: usize = 4096;
const MAX_ALL_OPTIONS: usize = 20_000;
/// The maximum length of the JSON of a new object, in bytes.
const MAX_DEFAULT: usize = 256 << 10;

/// A class, as a form needs it.
#[derive(Debug, Serialize)]
struct ClassDetail<'c> {
    name: &'c str,
    /// Its base classes, nearest first.
    bases: Vec<&'c str>,
    properties: Vec<PropertyDetail<'c>>,
    /// The JSON of a new object, unless it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

#[derive(Debug, Serialize)]
struct PropertyDetail<'c> {
    name: &'c str,
    #[serde(rename = "type")]
    type_name: &'c str,
    kind: &'static str,
    /// Whether it holds many values.
    list: bool,
    deprecated: bool,
    /// The minimum and the maximum value, for whole numbers and for the numbers of tuples.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[String; 2]>,
    /// Names with their numbers; `option_count` can be greater.
    options: Vec<(&'c str, i64)>,
    option_count: usize,
    /// The names of a tuple's parts, and the count of numbers in each.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    parts: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    per_part: Option<usize>,
    /// The class that its objects have or derive from, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'c str>,
}

pub(super) fn router() -> Router<Arc<State>> {
    Router::new().route("/api/archive/classes", get(show))
}

/// The user's classes.
pub(super) fn known(state: &State) -> Outcome<&Classes> {
    let objects = state.recording.definitions().get_ref::<KiObjects>();
    let classes = objects.and_then(KiObjects::classes).map(|classes| &**classes);
    classes.ok_or_else(|| Refusal::missing("objects need a type list; supply one with --data"))
}

/// The encoding of objects in archives.
pub(super) fn codec(classes: &Classes) -> ObjectCodec<'_> {
    ObjectCodec::new(classes, ObjectOptions { null_root: true, ..ObjectOptions::file() })
}

#[derive(Debug, Deserialize)]
struct Wanted {
    /// Describe the class with this name.
    name: Option<String>,
    /// List this class and those derived from it; all classes if it is empty.
    #[serde(default)]
    base: String,
    /// List only names that contain this text.
    #[serde(default)]
    search: String,
}

async fn show(
    Extracted(state): Extracted<Arc<State>>,
    Query(wanted): Query<Wanted>,
) -> Outcome<Json<Value>> {
    let show = move |state: &Arc<State>| {
        let classes = known(state)?;
        let Some(name) = &wanted.name else {
            return Ok(list(classes, &wanted.base, &wanted.search));
        };
        let class = classes.by_name(name).ok_or_else(|| {
            let near = classes.nearest(name);
            let hint = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            Refusal::missing(format!("no class \"{name}\" in the type list{hint}"))
        })?;
        let detail = serde_json::to_value(ClassDetail::of(classes, class));
        detail.map_err(|error| Refusal::failed(error.to_string()))
    };
    Ok(Json(state.busy(show).await?))
}

fn list(classes: &Classes, base: &str, search: &str) -> Value {
    let search = search.to_lowercase();
    let found: Vec<&Class> = match base {
        "" => classes.all().iter().collect(),
        base => classes.derived(base).collect(),
    };
    let names = found.iter().map(|class| &*class.name);
    let names: Vec<&str> = names.filter(|name| name.to_lowercase().contains(&search)).collect();
    json!({ "total": names.len(), "names": names.get(..MAX_LISTED).unwrap_or(&names) })
}

impl<'c> ClassDetail<'c> {
    fn of(classes: &'c Classes, class: &'c Class) -> Self {
        let mut room = MAX_ALL_OPTIONS;
        let properties = class.properties().iter();
        let properties =
            properties.map(|property| PropertyDetail::of(classes, property, &mut room));
        let bases = class.bases.iter().map(|base| &**base).collect();
        let (name, properties) = (&*class.name, properties.collect());
        Self { name, bases, properties, default: default(classes, class) }
    }
}

/// A new object as JSON, with the defaults of the type list.
fn default(classes: &Classes, class: &Class) -> Option<String> {
    let empty = json!({ "$class": *class.name }).to_string();
    let object = Object::parse_json(classes, &empty).ok()?;
    let whole = codec(classes).complete(&object).ok()?;
    whole.to_json(classes).ok().filter(|json| json.len() <= MAX_DEFAULT)
}

impl<'c> PropertyDetail<'c> {
    fn of(classes: &'c Classes, property: &'c Property, room: &mut usize) -> Self {
        let kind = property.kind();
        let range = number_range(kind);
        // Names that look like numbers are parsed as numbers.
        let looks_like_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
        let is_usable = |name: &str| range.is_none() || !name.starts_with(looks_like_number);
        let names = property.choices.as_deref().map(Choices::names);
        let names = names.into_iter().flat_map(Names::iter).filter(|(_, name)| is_usable(name));
        let all: Vec<_> = names.map(|(number, name)| (name, number)).collect();
        let option_count = all.len();
        let options: Vec<_> = all.into_iter().take(MAX_OPTIONS.min(*room)).collect();
        *room -= options.len();
        let (parts, per_part) = match kind {
            PropertyKind::Tuple(tuple) => {
                (tuple.names(), Some(tuple.count() / tuple.names().len().max(1)))
            }
            _ => (&[][..], None),
        };
        Self {
            name: &property.name,
            type_name: &property.type_name,
            kind: kind_name(kind),
            list: property.is_list(),
            deprecated: property.has(Property::DEPRECATED),
            range: range.map(|(least, most)| [least.to_string(), most.to_string()]),
            options,
            option_count,
            parts,
            per_part,
            base: property.base().and_then(|index| classes.get(index)).map(|base| &*base.name),
        }
    }
}

fn kind_name(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Bool => "bool",
        PropertyKind::F32 | PropertyKind::F64 => "float",
        PropertyKind::String | PropertyKind::WideString => "text",
        PropertyKind::Enum => "enum",
        PropertyKind::Flags => "flags",
        PropertyKind::Tuple(_) => "tuple",
        PropertyKind::Object => "object",
        _ => "number",
    }
}

/// The minimum and the maximum whole number of a kind.
fn number_range(kind: PropertyKind) -> Option<(i128, i128)> {
    let (is_signed, bits) = match kind {
        PropertyKind::I8
        | PropertyKind::I16
        | PropertyKind::I32
        | PropertyKind::I64
        | PropertyKind::SignedBits(_) => (true, kind.bits()?),
        PropertyKind::U8
        | PropertyKind::U16
        | PropertyKind::U32
        | PropertyKind::U64
        | PropertyKind::UnsignedBits(_) => (false, kind.bits()?),
        PropertyKind::Tuple(tuple) => match tuple.part() {
            Part::U8 => (false, 8),
            Part::U32 => (false, 32),
            Part::I32 => (true, 32),
            Part::F32 => return None,
        },
        _ => return None,
    };
    let end = 1_i128 << if is_signed { bits - 1 } else { bits };
    Some((if is_signed { -end } else { 0 }, end - 1))
}
