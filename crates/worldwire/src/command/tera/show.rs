//! `worldwire tera def show`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use worldwire_tera::frame::HEADER_BYTES;
use worldwire_tera::message::{Head, Value};
use worldwire_tera::schema::ParseOptions;

use super::folder;
use crate::cli::Common;
use crate::output::{Failure, counted, print};

pub(super) fn run(
    word: &str,
    data: &[PathBuf],
    options: ParseOptions,
    header: u32,
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let set = folder::set(data, options, common)?;
    let definition = folder::named(&set, word)?;
    let plan = definition.plan();
    let rows = plan.rows(header);
    // The shortest message has only zeros and empty lists.
    let mut shortest = Vec::new();
    plan.encode(Head::plain(0), &Value::Absent, &mut shortest)
        .map_err(|error| Failure::Run(error.to_string()))?;
    let least = shortest.len() - HEADER_BYTES + header as usize;
    let mut out = String::new();
    if json {
        let fields: Vec<_> = rows
            .iter()
            .map(|row| {
                let parts: Vec<_> = row
                    .parts
                    .iter()
                    .map(|part| {
                        json!({ "what": part.what, "at": part.at, "size": part.size,
                                "segment": part.segment })
                    })
                    .collect();
                json!({ "depth": row.depth, "name": row.name, "type": row.kind, "parts": parts })
            })
            .collect();
        let line = json!({
            "name": definition.name(), "version": definition.version(),
            "dialect": definition.dialect().name(), "header": header, "least": least,
            "is_fixed": plan.is_fixed(), "fields": fields,
        });
        let _ = writeln!(out, "{line}");
        return print(&out);
    }
    let size = if plan.is_fixed() { "always" } else { "at least" };
    let _ = writeln!(
        out,
        "{}: {size} {}, dialect {}",
        definition.title(),
        counted(least, "byte"),
        definition.dialect()
    );
    for row in &rows {
        let _ = writeln!(out, "{row}");
    }
    print(&out)
}
