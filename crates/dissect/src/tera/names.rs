//! TERA's vocabulary.

use worldwire_tera::schema::Definition;
use worldwire_tera::schema::plan::{Field, FieldKind, Plan};
use worldwire_tera::types::Scalar;

use super::definitions::TeraDefinitions;
use crate::vocabulary::{MessageNames, ValueKind, ValueNames, common_kinds};

/// Parts of structured values, such as points, skills and looks.
const PARTS: &[&str] = &[
    "x",
    "y",
    "z",
    "w",
    "type",
    "npc",
    "huntingZoneId",
    "id",
    "reserved",
    "unk",
    "skinColor",
    "faceStyle",
    "faceDecal",
    "hairStyle",
    "hairColor",
    "voice",
    "tattoos",
    "name",
    "index",
];
/// What is shown inside texts that carry system messages.
const SYSTEM: [&str; 6] = ["system", "bytes", "name", "values", "key", "value"];

/// The messages of all definitions in all versions, and names that only have an opcode.
pub(super) fn messages(library: &TeraDefinitions) -> Vec<MessageNames<'_>> {
    let built_in = library.shared().definitions().iter();
    let definitions = library.library().definitions.definitions().chain(built_in);
    let mut all: Vec<MessageNames<'_>> = definitions
        .map(|definition| MessageNames {
            name: format!("tera.{}", definition.name()),
            fields: definition.plan().fields().iter().map(Field::name).collect(),
            inner: inner(definition),
            is_complete: true,
        })
        .collect();
    let plain = |name: String, fields: &[&'static str]| {
        let fields = fields.to_vec();
        MessageNames { name, inner: fields.clone(), fields, is_complete: true }
    };
    let has =
        |name: &str| all.iter().any(|message| message.name.strip_prefix("tera.") == Some(name));
    let names = library.names();
    let rest: Vec<&str> = names.into_iter().filter(|name| !has(name)).collect();
    all.extend(rest.into_iter().map(|name| plain(format!("tera.{name}"), &["payload"])));
    all.push(plain("handshake.Hello".to_owned(), &["hello"]));
    all.push(plain("handshake.Key".to_owned(), &["number", "key"]));
    all
}

/// All fields of a definition, nested ones included.
fn inner(definition: &Definition) -> Vec<&str> {
    let mut inner = Vec::new();
    each_field(definition, |field| inner.push(field.name()));
    inner.extend(PARTS);
    if definition.name().starts_with("S_SYSTEM_MESSAGE") {
        inner.extend(SYSTEM);
    }
    inner
}

fn each_field<'d>(definition: &'d Definition, mut visit: impl FnMut(&'d Field)) {
    let plan: &Plan = definition.plan();
    let mut rest = vec![plan.fields()];
    while let Some(fields) = rest.pop() {
        for field in fields {
            visit(field);
            match field.kind() {
                FieldKind::Array { scope, .. } => rest.push(plan.element(*scope).0),
                FieldKind::Object(range) | FieldKind::Row(range) => {
                    rest.push(plan.fields_of(range));
                }
                FieldKind::Scalar { .. } | FieldKind::Text { .. } | FieldKind::Bytes { .. } => {}
            }
        }
    }
}

/// Fields that are always plain numbers, or always text, in all definitions.
pub(super) fn kinds(library: &TeraDefinitions) -> Vec<(&str, ValueKind)> {
    let built_in = library.shared().definitions().iter();
    let definitions = library.library().definitions.definitions().chain(built_in);
    let mut kinds: Vec<(&str, Option<ValueKind>)> = Vec::new();
    for definition in definitions {
        each_field(definition, |field| kinds.push((field.name(), kind(field.kind()))));
    }
    let others = PARTS.iter().chain(&SYSTEM).map(|name| (*name, None));
    common_kinds(kinds.into_iter().chain(others))
}

fn kind(kind: &FieldKind) -> Option<ValueKind> {
    use Scalar::{Byte, Double, Float, Int16, Int32, Int64, Uint16, Uint32, Uint64};
    match kind {
        FieldKind::Text { .. } => Some(ValueKind::Text),
        FieldKind::Scalar {
            scalar: Byte | Int16 | Uint16 | Int32 | Uint32 | Int64 | Uint64 | Float | Double,
            ..
        } => Some(ValueKind::Number),
        _ => None,
    }
}

/// Fields whose values have names, which come from the maps.
pub(super) fn values(library: &TeraDefinitions) -> Vec<ValueNames<'_>> {
    let maps = library.library().system_messages.values();
    let system = maps.flat_map(|map| map.iter().map(|(name, _)| name)).collect();
    let value = |field, names| ValueNames { field, prefix: "", names, is_only: false };
    let mut values = vec![value("system.name", system)];
    if !library.library().opcodes.is_empty() {
        values.push(value("opcode", library.names()));
    }
    values.retain(|values| !values.names.is_empty());
    values
}
