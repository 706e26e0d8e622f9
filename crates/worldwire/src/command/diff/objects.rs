//! Compares two KI archives and the game objects in them.

use std::fmt::Write as _;

use worldwire_core::json::{Json, Style as JsonStyle, parse};
use worldwire_core::{Error, Limits};
use worldwire_ki::object::{JsonWriter, MAGIC, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::Classes;

use super::fields::{FieldChanges, remove};
use super::ignored::Ignored;
use super::style::Style;
use crate::cli::{Common, DiffArguments, KiWadReading};
use crate::command::ki::wad::diff::{Form, run};
use crate::output::{Failure, printable};
use crate::types;

/// Compares the files of two archives by name, size and content. With type lists, game objects that
/// changed are compared field by field. Returns whether the archives are the same.
pub(super) fn compare_archives(
    arguments: &DiffArguments,
    common: &Common,
) -> Result<bool, Failure> {
    let DiffArguments { before, after, types, ignore, json, .. } = arguments;
    let colour = common.colour(None);
    let limits = Limits::DEFAULT;
    let reading = KiWadReading {
        max_inflated: limits.inflated_bytes,
        max_total: limits.archive_bytes,
        threads: 0,
    };
    if types.is_empty() {
        if !ignore.is_empty() {
            let problem = "--ignore applies to the fields of objects, which need --types";
            return Err(Failure::Run(problem.to_owned()));
        }
        let form = Form { json: *json, colour, objects: None };
        return same(run(before, after, &form, &reading, common));
    }
    let classes = types::load(types, common)?;
    let ignored = Ignored::parse(ignore)?;
    let style = Style::new(colour);
    let objects = |name: &str, sides: [&[u8]; 2], out: &mut String| {
        if !sides.iter().all(|bytes| bytes.starts_with(MAGIC)) {
            return;
        }
        let decoded = sides.map(|bytes| decode(bytes, &classes, &ignored));
        match decoded {
            [Ok(old), Ok(new)] => {
                let changes = FieldChanges::between(&old, &new);
                if *json {
                    let (listed, more) = changes.to_json();
                    let _ = write!(out, ",\"fields\":{listed}");
                    if more > 0 {
                        let _ = write!(out, ",\"more\":{more}");
                    }
                } else {
                    changes.push_text("    ", style, out);
                }
            }
            [Err(error), _] | [_, Err(error)] => {
                common.note(name, &printable(&format!("not decoded: {error}")));
            }
        }
    };
    let form = Form { json: *json, colour, objects: Some(&objects) };
    let outcome = run(before, after, &form, &reading, common);
    for pattern in ignored.unused() {
        common.note("diff", &format!("--ignore {pattern}: no field has this name"));
    }
    same(outcome)
}

/// Archives with problems, which have been reported, are not treated as equal.
fn same(outcome: Result<(), Failure>) -> Result<bool, Failure> {
    outcome.map(|()| true)
}

fn decode(bytes: &[u8], classes: &Classes, ignored: &Ignored) -> Result<Json, Error> {
    let mut writer = JsonWriter::new(Vec::new(), JsonStyle::default());
    let codec = ObjectCodec::new(classes, ObjectOptions::file());
    codec.decode_all_within(bytes, &Limits::DEFAULT, &mut writer)?;
    let text = String::from_utf8_lossy(&writer.finish()?).into_owned();
    let mut json = parse(&text).map_err(|error| Error::value("JSON", error.to_string()))?;
    if !ignored.is_empty() {
        remove(&mut json, &mut String::new(), ignored);
    }
    Ok(json)
}
