//! `worldwire tera def diff`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use worldwire_tera::schema::diff::{Change, diff};
use worldwire_tera::schema::{Definition, ParseOptions, Set};

use super::folder;
use crate::cli::Common;
use crate::output::{Failure, print};

enum Side {
    One(Box<Definition>),
    Folder(Box<Set>),
}

/// Compares two definitions or directories. Returns whether they are the same.
pub(in crate::command) fn run(
    sides: [&str; 2],
    data: &[PathBuf],
    options: ParseOptions,
    json: bool,
    common: &Common,
) -> Result<bool, Failure> {
    let set = |paths: &[PathBuf]| folder::set(paths, options.clone(), common);
    let known = match data {
        [] => None,
        _ => Some(set(data)?),
    };
    let [old, new] = sides;
    let mut out = String::new();
    let mut broken = false;
    let is_same = match (side(old, known.as_ref(), &set)?, side(new, known.as_ref(), &set)?) {
        (Side::One(old), Side::One(new)) => one(&old, &new, json, &mut out),
        (Side::Folder(old), Side::Folder(new)) => {
            // Unreadable definitions would appear to be missing.
            broken = [&old, &new].iter().any(|set| set.problems().any(|one| one.is_error()));
            folders(&old, &new, json, &mut out);
            out.is_empty()
        }
        _ => {
            let message = "OLD and NEW must both be definitions, or both directories".to_owned();
            return Err(Failure::Run(message));
        }
    };
    print(&out)?;
    if broken { Err(Failure::Input) } else { Ok(is_same) }
}

fn side(
    word: &str,
    known: Option<&Set>,
    load: &impl Fn(&[PathBuf]) -> Result<Set, Failure>,
) -> Result<Side, Failure> {
    let path = Path::new(word);
    if path.is_dir() {
        return Ok(Side::Folder(Box::new(load(&[path.to_owned()])?)));
    }
    if path.is_file() {
        let set = load(&[path.to_owned()])?;
        // Files with errors have been reported.
        let definition = set.definitions().next().ok_or(Failure::Input)?;
        return Ok(Side::One(Box::new(definition.clone())));
    }
    match known {
        Some(set) => Ok(Side::One(Box::new(folder::named(set, word)?.clone()))),
        None => {
            let message = format!("{word}: no such file; use --data to look up definitions");
            Err(Failure::Run(message))
        }
    }
}

/// Compares two definitions. Returns whether they are the same.
fn one(old: &Definition, new: &Definition, json: bool, out: &mut String) -> bool {
    let changes = diff(old.lines(), new.lines());
    if json {
        lines(old.title(), new.title(), &changes, out);
        return changes.is_empty();
    }
    if changes.is_empty() {
        let _ = writeln!(out, "{} and {} have no differences", old.title(), new.title());
    }
    for change in &changes {
        let _ = writeln!(out, "{change}");
    }
    changes.is_empty()
}

/// Compares all versions that both sides have, and lists those that only one side has.
fn folders(old: &Set, new: &Set, json: bool, out: &mut String) {
    let keys = |set: &Set| {
        let keys = set.definitions().map(|one| (one.name().to_owned(), one.version()));
        keys.collect::<BTreeSet<_>>()
    };
    let (olds, news) = (keys(old), keys(new));
    for (name, version) in olds.union(&news) {
        let title = format!("{name}.{version}");
        match (old.get(name, *version), new.get(name, *version)) {
            (Some(old), Some(new)) => {
                let changes = diff(old.lines(), new.lines());
                if json {
                    lines(&title, &title, &changes, out);
                } else if !changes.is_empty() {
                    let _ = writeln!(out, "~ {title}");
                    for change in &changes {
                        let _ = writeln!(out, "    {change}");
                    }
                }
            }
            (old, _) => {
                let (mark, what) = if old.is_some() { ("-", "removed") } else { ("+", "added") };
                if json {
                    let line = json!({ "definition": title, "change": what });
                    let _ = writeln!(out, "{line}");
                } else {
                    let _ = writeln!(out, "{mark} {title}");
                }
            }
        }
    }
}

fn lines(old: &str, new: &str, changes: &[Change], out: &mut String) {
    for change in changes {
        let mut line = match change {
            Change::Added { path, kind, after } => {
                json!({ "change": "added", "path": path, "type": kind, "behind": after })
            }
            Change::Removed { path, kind } => {
                json!({ "change": "removed", "path": path, "type": kind })
            }
            Change::Retyped { path, from, to } => {
                json!({ "change": "retyped", "path": path, "from": from, "to": to })
            }
            Change::Renamed { from, to, kind } => {
                json!({ "change": "renamed", "from": from, "to": to, "type": kind })
            }
            Change::Moved { path, after } => {
                json!({ "change": "moved", "path": path, "behind": after })
            }
        };
        if let Some(line) = line.as_object_mut() {
            line.insert("definition".to_owned(), new.into());
            if old != new {
                line.insert("old".to_owned(), old.into());
            }
        }
        let _ = writeln!(out, "{line}");
    }
}
