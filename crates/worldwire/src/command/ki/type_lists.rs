//! `worldwire ki op types convert` and `diff`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use worldwire_ki::schema::classes::{Class, ClassChange, ListVersion, Property};

use crate::cli::{Common, KiListDiff, KiTypesAction};
use crate::output::{Failure, print, printable, write_all};
use crate::types;

pub(super) fn run(action: &KiTypesAction, common: &Common) -> Result<(), Failure> {
    match action {
        KiTypesAction::Convert { lists, list_version, target } => {
            let classes = types::load(lists, common)?;
            let version = if *list_version == 1 { ListVersion::One } else { ListVersion::Two };
            write_all(target, classes.to_list(version).as_bytes())
        }
        KiTypesAction::Diff(KiListDiff { before, after, json }) => {
            if diff(before, after, *json, common)? { Ok(()) } else { Err(Failure::Input) }
        }
    }
}

/// Compares two type lists. Returns whether they are the same.
pub(in crate::command) fn diff(
    before: &PathBuf,
    after: &PathBuf,
    json: bool,
    common: &Common,
) -> Result<bool, Failure> {
    let load = |list: &PathBuf| types::load(std::slice::from_ref(list), common);
    let (before, after) = (load(before)?, load(after)?);
    let diff = before.diff(&after);
    let mut out = String::new();
    for (what, classes) in [("removed", &diff.removed), ("added", &diff.added)] {
        for class in classes {
            push_class(what, class, json, &mut out);
        }
    }
    for change in &diff.changed {
        push_change(change, json, &mut out);
    }
    print(&out)?;
    Ok(out.is_empty())
}

fn push_class(what: &str, class: &Class, json: bool, out: &mut String) {
    let _ = match json {
        true => {
            let line = json!({"change": what, "class": *class.name, "hash": class.hash});
            writeln!(out, "{line}")
        }
        false => writeln!(out, "{what:<8} {}", printable(&class.name)),
    };
}

fn push_change(change: &ClassChange<'_>, json: bool, out: &mut String) {
    let ClassChange { old, new, .. } = change;
    let names = |list: &[&Property]| list.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
    if json {
        let changed: Vec<_> = change
            .changed
            .iter()
            .map(|(_, new, what)| json!({"name": *new.name, "different": what}))
            .collect();
        let line = json!({
            "change": "changed", "class": *new.name, "hash": new.hash, "bases": change.bases,
            "added": names(&change.added), "removed": names(&change.removed), "changed": changed,
        });
        let _ = writeln!(out, "{line}");
        return;
    }
    let _ = writeln!(out, "changed  {}", printable(&new.name));
    if old.hash != new.hash {
        let _ = writeln!(out, "         hash {} to {}", old.hash, new.hash);
    }
    if change.bases {
        let bases = |class: &Class| printable(&class.bases.join(", "));
        let _ = writeln!(out, "         bases {} to {}", bases(old), bases(new));
    }
    for (sign, properties) in [('-', &change.removed), ('+', &change.added)] {
        for property in properties {
            let (name, kind) = (printable(&property.name), printable(&property.type_name));
            let _ = writeln!(out, "       {sign} {name}: {kind}");
        }
    }
    for (_, property, what) in &change.changed {
        let _ = writeln!(out, "       ~ {}: {}", printable(&property.name), what.join(", "));
    }
}
