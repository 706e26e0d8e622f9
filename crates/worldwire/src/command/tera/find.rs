//! `worldwire tera def list` and `find`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use worldwire_core::Side;
use worldwire_tera::file::library::sender;
use worldwire_tera::frame::HEADER_BYTES;
use worldwire_tera::message::{Head, Value};
use worldwire_tera::schema::plan::{Field, FieldKind};
use worldwire_tera::schema::{Definition, ParseOptions, Plan};

use super::folder;
use crate::output::{Failure, complain, print};

/// What is wanted of a definition.
#[derive(Default)]
pub(super) struct Wanted {
    /// A part of the name of a field, in lower case.
    pub(super) field: Option<String>,
    /// How long a message is, with a header of 4 bytes.
    pub(super) length: Option<usize>,
    pub(super) from: Option<Side>,
}

pub(super) fn run(
    data: &[PathBuf],
    options: ParseOptions,
    wanted: &Wanted,
    json: bool,
) -> Result<(), Failure> {
    let set = folder::set(data, options)?;
    let mut out = String::new();
    for definition in set.definitions() {
        let mut fields = Vec::new();
        paths(definition.plan(), definition.plan().fields(), "", &mut fields);
        if let Some(field) = &wanted.field {
            fields.retain(|path| {
                let name = path.rsplit(['.', ']']).next().unwrap_or_default();
                name.to_lowercase().contains(field)
            });
        }
        let least = least(definition);
        let is_fixed = definition.plan().is_fixed();
        let from = sender(definition.name());
        let lengths = |length: usize| {
            least.is_some_and(|least| length == least || (length > least && !is_fixed))
        };
        let fits = wanted.length.is_none_or(lengths)
            && wanted.from.is_none_or(|side| from.is_none_or(|from| from == side))
            && !(wanted.field.is_some() && fields.is_empty());
        if !fits {
            continue;
        }
        let named = if wanted.field.is_some() { fields.as_slice() } else { &[] };
        if json {
            let line = json!({
                "name": definition.name(), "version": definition.version(),
                "from": from.map(Side::name), "least": least, "is_fixed": is_fixed, "fields": named,
            });
            let _ = writeln!(out, "{line}");
            continue;
        }
        let from = from.map_or("", Side::name);
        let least = least.map_or_else(|| ">65535".to_owned(), |least| format!("{least:>5}"));
        let more = if is_fixed { ' ' } else { '+' };
        let _ = write!(out, "{from:<6} {least}{more} {}", definition.title());
        if !named.is_empty() {
            let _ = write!(out, "  {}", named.join(", "));
        }
        out.push('\n');
    }
    if out.is_empty() {
        complain("tera def", "no definition is like that");
        return Err(Failure::Input);
    }
    print(&out)
}

/// The fewest bytes of a message, with a header of 4: that of zeros and empty lists. `None` when
/// that is too long for any message.
fn least(definition: &Definition) -> Option<usize> {
    let mut shortest = Vec::with_capacity(HEADER_BYTES);
    definition.plan().encode(Head::plain(0), &Value::Absent, &mut shortest).ok()?;
    Some(shortest.len())
}

/// The paths of all fields.
fn paths(plan: &Plan, fields: &[Field], around: &str, out: &mut Vec<String>) {
    for field in fields {
        let path = format!("{around}{}", field.name());
        let inside = match field.kind() {
            FieldKind::Array { scope, .. } => Some((plan.element(*scope).0, "[].")),
            FieldKind::Object(range) => Some((plan.fields_of(range), ".")),
            FieldKind::Row(range) => {
                Some((plan.fields_of(range).get(..1).unwrap_or_default(), "[]."))
            }
            _ => None,
        };
        if !field.name().is_empty() {
            out.push(path.clone());
        }
        if let Some((fields, mark)) = inside {
            paths(plan, fields, &format!("{path}{mark}"), out);
        }
    }
}
