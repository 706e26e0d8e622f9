//! `worldwire tera def list` and `find`.

use std::fmt::Write as _;
use std::mem::take;
use std::path::PathBuf;

use serde_json::json;
use worldwire_core::Side;
use worldwire_tera::file::library::sender;
use worldwire_tera::frame::HEADER_BYTES;
use worldwire_tera::message::{Head, Value};
use worldwire_tera::schema::plan::{Field, FieldKind};
use worldwire_tera::schema::{Definition, ParseOptions, Plan};

use super::folder;
use crate::cli::Common;
use crate::output::{Failure, complain, print};

/// The maximum total length of a definition's field paths, in bytes. The longest known is 4,182.
const MAX_PATHS: usize = 1 << 24;
/// The number of bytes buffered before printing.
const MAX_HELD: usize = 1 << 16;

/// The search criteria for definitions.
#[derive(Default)]
pub(super) struct Wanted {
    /// A part of the name of a field, in lower case.
    pub(super) field: Option<String>,
    /// The length of a message, including its header of 4 bytes.
    pub(super) length: Option<usize>,
    pub(super) from: Option<Side>,
}

pub(super) fn run(
    data: &[PathBuf],
    options: ParseOptions,
    wanted: &Wanted,
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let set = folder::set(data, options, common)?;
    let mut out = String::new();
    let (mut is_found, mut clean) = (false, true);
    for definition in set.definitions() {
        let mut fields = Vec::new();
        if json || wanted.field.is_some() {
            let mut room = MAX_PATHS;
            let plan = definition.plan();
            if paths(plan, plan.fields(), "", &mut room, &mut fields).is_none() {
                let problem = format!("its field paths exceed {MAX_PATHS} bytes in total; skipped");
                complain(definition.title(), &problem);
                clean = false;
                continue;
            }
        }
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
        is_found = true;
        if out.len() > MAX_HELD {
            print(&take(&mut out))?;
        }
        if json {
            let line = json!({
                "name": definition.name(), "version": definition.version(),
                "from": from.map(Side::name), "least": least, "is_fixed": is_fixed, "fields": fields,
            });
            let _ = writeln!(out, "{line}");
            continue;
        }
        let from = from.map_or("", Side::name);
        let least = least.map_or_else(|| ">65535".to_owned(), |least| format!("{least:>5}"));
        let more = if is_fixed { ' ' } else { '+' };
        let _ = write!(out, "{from:<6} {least}{more} {}", definition.title());
        if !fields.is_empty() {
            let _ = write!(out, "  {}", fields.join(", "));
        }
        out.push('\n');
    }
    print(&out)?;
    if !is_found {
        complain("tera def", "no definition matches");
    }
    if is_found && clean { Ok(()) } else { Err(Failure::Input) }
}

/// The minimum length of a message, including its header of 4 bytes, which is the length of a
/// message with only zeros and empty lists. `None` if it exceeds the maximum message length.
fn least(definition: &Definition) -> Option<usize> {
    let mut shortest = Vec::with_capacity(HEADER_BYTES);
    definition.plan().encode(Head::plain(0), &Value::Absent, &mut shortest).ok()?;
    Some(shortest.len())
}

/// The paths of all fields; `None` if they exceed the limit.
fn paths(
    plan: &Plan,
    fields: &[Field],
    around: &str,
    room: &mut usize,
    out: &mut Vec<String>,
) -> Option<()> {
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
            *room = room.checked_sub(path.len())?;
            out.push(path.clone());
        }
        if let Some((fields, mark)) = inside {
            paths(plan, fields, &format!("{path}{mark}"), room, out)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use worldwire_tera::schema::FileName;

    use super::*;

    #[test]
    fn paths_take_so_much_room_and_no_more() {
        let file = FileName::parse("S_A.1.def").expect("a name");
        let text = "object a\n- int32 b\narray c\n- int32 d\n";
        let definition = Definition::parse(&file, text, &ParseOptions::default()).expect("good");
        let plan = definition.plan();
        let all = |mut room: usize| {
            let mut out = Vec::new();
            paths(plan, plan.fields(), "", &mut room, &mut out).map(|()| out)
        };
        let wanted = ["a", "a.b", "c", "c[].d"].map(str::to_owned);
        assert_eq!(all(10).as_deref(), Some(&wanted[..]));
        assert_eq!(all(9), None);
    }
}
