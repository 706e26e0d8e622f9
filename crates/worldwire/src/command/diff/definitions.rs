//! Compares two sets of KI message definitions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_core::Severity;
use worldwire_core::json::{Json, parse};
use worldwire_ki::schema::{Mode, Protocols};

use super::fields::FieldChanges;
use super::style::Style;
use crate::cli::{Common, DiffArguments};
use crate::command::ki::dml::described;
use crate::definitions::has_messages;
use crate::input;
use crate::output::{Failure, print, printable, shown};
use crate::report;

/// Compares two files or directories of message XML, message by message. Returns whether they are
/// the same.
pub(super) fn compare(arguments: &DiffArguments, common: &Common) -> Result<bool, Failure> {
    let (old, old_clean) = messages(&arguments.before, common)?;
    let (new, new_clean) = messages(&arguments.after, common)?;
    let style = Style::new(common.colour(None));
    let mut out = String::new();
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (what, sign, changes) = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => ("changed", '~', FieldChanges::between(old, new)),
            (Some(_), None) => ("removed", '-', FieldChanges::default()),
            (None, _) => ("added", '+', FieldChanges::default()),
        };
        if arguments.json {
            let mut line = json!({ "change": what, "message": name });
            if what == "changed" {
                line["fields"] = changes.to_json().0;
            }
            let _ = writeln!(out, "{line}");
            continue;
        }
        let line = format!("{sign} {}", printable(name));
        let line = match sign {
            '-' => style.removed(&line),
            '+' => style.added(&line),
            _ => style.changed(&line),
        };
        let _ = writeln!(out, "{line}");
        changes.push_text("    ", style, &mut out);
    }
    print(&out)?;
    // Definitions with errors would appear to be missing.
    if old_clean && new_clean { Ok(out.is_empty()) } else { Err(Failure::Input) }
}

/// The messages by name and whether all definitions could be read.
fn messages(path: &Path, common: &Common) -> Result<(BTreeMap<String, Json>, bool), Failure> {
    let (mut protocols, mut is_clean, mut is_found) = (Protocols::default(), true, false);
    for file in input::files(path, &|subject, text| common.note(subject, text))? {
        if path.is_dir() && !file.extension().is_some_and(|it| it.eq_ignore_ascii_case("xml")) {
            continue;
        }
        let bytes = input::read(&file)?;
        if !has_messages(&bytes) {
            continue;
        }
        is_found = true;
        let said = protocols.add(&shown(&file), &bytes, Mode::Lenient);
        is_clean &= said.iter().all(|one| one.severity() != Severity::Error);
        report::diagnostics(
            said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error),
        );
    }
    if !is_found {
        return Err(Failure::Run(format!("{}: contains no KI message XML", shown(path))));
    }
    let mut messages = BTreeMap::new();
    for message in protocols.iter().flat_map(|protocol| protocol.messages()) {
        let mut described = described(&protocols, message);
        // One text per field, with type and name, so that an added field does not shift the others.
        if let Some(fields) = described["fields"].as_array_mut() {
            for field in fields {
                let part = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
                *field = format!("{} {}", part("type"), part("name")).into();
            }
        }
        if let Ok(json) = parse(&described.to_string()) {
            messages.insert(protocols.name(message).to_string(), json);
        }
    }
    Ok((messages, is_clean))
}
