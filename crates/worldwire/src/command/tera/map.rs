//! `worldwire tera map`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use worldwire_core::{listed, nearest};
use worldwire_tera::file::library::sender;
use worldwire_tera::file::{Bundle, CodeMap, MapKind, MapName};

use super::folder;
use crate::cli::{Common, Target, TeraMapForm};
use crate::definitions::shell;
use crate::output::{Failure, complain, print, shown, write_all};

pub(super) fn show(
    file: &Path,
    wanted: &[String],
    revision: Option<u32>,
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let (map, clean) = read(file, revision, common)?;
    let mut entries: Vec<(&str, u32)> = map.iter().collect();
    entries.sort_by_key(|entry| (entry.1, entry.0));
    let mut missing = false;
    for word in wanted {
        let known = match code_of(word) {
            Some(code) => map.name(code).is_some(),
            None => map.code(word).is_some(),
        };
        if !known {
            missing = true;
            let near = nearest(word, map.iter().map(|(name, _)| name));
            let hint = match near {
                _ if Path::new(word).is_file() => {
                    "; this command reads one map, and `tera map diff OLD NEW` compares two"
                        .to_owned()
                }
                Some(near) => format!("; did you mean {near}?"),
                None => String::new(),
            };
            complain(word, &format!("is not in the map{hint}"));
        }
    }
    let mut out = String::new();
    for (name, code) in entries {
        let is_wanted = |word: &String| *word == name || code_of(word) == Some(code);
        if !wanted.is_empty() && !wanted.iter().any(is_wanted) {
            continue;
        }
        if json {
            let _ = writeln!(out, "{}", json!({ "name": name, "code": code }));
        } else {
            let _ = writeln!(out, "{code:>5} {name}");
        }
    }
    print(&out)?;
    if clean && !missing { Ok(()) } else { Err(Failure::Input) }
}

/// A code, decimal or hexadecimal with the prefix `0x`.
fn code_of(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

pub(super) fn convert(
    file: &Path,
    to: TeraMapForm,
    revision: Option<u32>,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let (map, clean) = read(file, revision, common)?;
    let text = match to {
        TeraMapForm::Map => map.format(),
        TeraMapForm::Plain => map.format().replace(" = ", " "),
        TeraMapForm::Json => {
            let object: BTreeMap<&str, u32> = map.iter().collect();
            format!("{:#}\n", json!(object))
        }
    };
    write_all(target, text.as_bytes())?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// Compares two maps. Returns whether they are the same.
pub(in crate::command) fn diff(
    old: &Path,
    new: &Path,
    json: bool,
    common: &Common,
) -> Result<bool, Failure> {
    let ((old, old_clean), (new, new_clean)) = (read_only(old, common)?, read_only(new, common)?);
    let names: BTreeSet<&str> = old.iter().chain(new.iter()).map(|(name, _)| name).collect();
    let mut out = String::new();
    for name in names {
        let codes = (old.code(name), new.code(name));
        if codes.0 == codes.1 {
            continue;
        }
        let _ = match codes {
            _ if json => {
                writeln!(out, "{}", json!({ "name": name, "old": codes.0, "new": codes.1 }))
            }
            (Some(old), Some(new)) => writeln!(out, "{name} {old} -> {new}"),
            (Some(old), None) => writeln!(out, "- {name} {old}"),
            (None, new) => writeln!(out, "+ {name} {}", new.unwrap_or_default()),
        };
    }
    print(&out)?;
    if old_clean && new_clean { Ok(out.is_empty()) } else { Err(Failure::Input) }
}

/// Reads a map in any form from a file with a single map, for commands that have no option to
/// select one. Reports problems and returns false if parts were skipped.
pub(super) fn read_only(file: &Path, common: &Common) -> Result<(CodeMap, bool), Failure> {
    read_choosing(file, None, common, |revisions| {
        let path = shell(file);
        format!(
            "contains the maps of {}; to extract one of them: worldwire tera map \
             convert {path} --revision NUMBER --to map -o protocol.NUMBER.map",
            listed(revisions)
        )
    })
}

/// Like the function above, but `--revision` selects one of several maps.
fn read(file: &Path, revision: Option<u32>, common: &Common) -> Result<(CodeMap, bool), Failure> {
    read_choosing(file, revision, common, |revisions| {
        format!("needs --revision with one of {}", listed(revisions))
    })
}

/// Like the function above; `help` explains how to choose.
fn read_choosing(
    file: &Path,
    revision: Option<u32>,
    common: &Common,
    help: impl Fn(&[String]) -> String,
) -> Result<(CodeMap, bool), Failure> {
    let text = folder::read(file, common)?;
    let path = file.display().to_string();
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let kind = MapName::parse(&name).map_or(MapKind::SystemMessages, |name| name.kind);
        let (map, problems) = CodeMap::parse(kind, &path, &text);
        return Ok((map, folder::tell(&problems, common.quiet)));
    }
    // An object with names and codes, or a data.json.
    if let Ok(Pairs(pairs)) = serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        let (map, said) = CodeMap::from_pairs_noting(pairs);
        for text in said {
            common.note(&path, &text);
        }
        return Ok((map, true));
    }
    let (mut bundle, problems) = Bundle::parse(&path, &text);
    let clean = folder::tell(&problems, common.quiet);
    let revisions: Vec<String> = bundle.maps.keys().map(ToString::to_string).collect();
    let chosen = match (revision, bundle.maps.len()) {
        (Some(revision), _) => bundle.maps.remove(&revision),
        (None, 1) => bundle.maps.pop_first().map(|(_, map)| map),
        _ => None,
    };
    match chosen {
        Some(map) => Ok((map, clean)),
        None if revisions.is_empty() => Err(Failure::Input),
        None => Err(Failure::Run(format!("{path}: {}", help(&revisions)))),
    }
}

/// Refuses a system message map, recognised by its file name or by having no message names.
pub(super) fn wants_opcodes(file: &Path, map: &CodeMap) -> Result<(), Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let kind = MapName::parse(&name).map(|name| name.kind);
    let is_message = |(name, _): (&str, u32)| sender(name).is_some();
    if kind == Some(MapKind::SystemMessages) || (!map.is_empty() && !map.iter().any(is_message)) {
        let file = shown(file);
        return Err(Failure::Run(format!("{file}: is a system message map, not an opcode map")));
    }
    Ok(())
}

/// Suggests a different file name for a new map if `--data` would not find the map for its build.
pub(super) fn tell_name(target: &Target, revision: Option<u32>, common: &Common) {
    let Some(file) = target.output.as_deref().filter(|file| file.is_file()) else { return };
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = MapName::parse(&name).filter(|name| name.kind == MapKind::Protocol);
    let of: Option<u32> = name.and_then(|name| name.version.parse().ok());
    if of.is_some() && (revision.is_none() || of == revision) {
        return;
    }
    let wanted = match revision {
        Some(revision) => format!("protocol.{revision}.map"),
        None => "protocol.REVISION.map, with the client's revision".to_owned(),
    };
    common.note(&shown(file), &format!("--data finds maps by name: rename it to {wanted}"));
}

/// The members of a JSON object of numbers, including duplicates.
struct Pairs(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of names and codes")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
