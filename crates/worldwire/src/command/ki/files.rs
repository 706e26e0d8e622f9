//! `worldwire ki files`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use worldwire_core::path::{PathRules, SafePath};
use worldwire_ki::file::revision::{FileList, ListedFile};

use crate::cli::{Common, KiFiles, KiListDiff};
use crate::input::{self, map, title};
use crate::output::{Failure, complain, counted, print, printable, shown};

pub(super) fn run(command: &KiFiles, common: &Common) -> Result<(), Failure> {
    match command {
        KiFiles::List { list, prefix, folder, json } => {
            check_folder(folder.as_deref())?;
            let list = load(list, common)?;
            show(&list, prefix.as_deref(), folder.as_deref(), *json, common)
        }
        KiFiles::Diff(KiListDiff { before, after, json }) => {
            diff(&load(before, common)?, &load(after, common)?, *json)
        }
        KiFiles::Urls { list, prefix, folder } => {
            check_folder(folder.as_deref())?;
            let list = load(list, common)?;
            let mut out = String::new();
            for file in &list.files {
                let state = folder.as_deref().map(|folder| State::of(file, folder)).transpose()?;
                if state.is_none_or(|state| state != State::Current) {
                    let _ = writeln!(out, "{}", file.url(prefix));
                }
            }
            print(&out)
        }
    }
}

/// Refuses a path that is not a directory. If it were misspelt, every file would be reported as
/// missing.
fn check_folder(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    let about = folder.metadata().map_err(|error| Failure::io(folder, &error))?;
    match about.is_dir() {
        true => Ok(()),
        false => Err(Failure::Run(format!("{}: not a directory", shown(folder)))),
    }
}

fn load(path: &Path, common: &Common) -> Result<FileList, Failure> {
    let bytes = input::read(path)?;
    let (tables, _) = super::table::tables(path, &bytes, None)?;
    for name in tables.missing() {
        let text = format!("table {name} is missing, though _TableList names it");
        complain(&title(path), &format!("warning: {text}"));
    }
    let list = FileList::of(&tables);
    if list.files.is_empty() {
        complain(&title(path), "contains no list of files: no table has a column SrcFileName");
        return Err(Failure::Input);
    }
    for warning in &list.warnings {
        common.note(&title(path), &format!("warning: {warning}"));
    }
    let more = list.more_warnings;
    if more > 0 {
        common.note(&title(path), &format!("warning: {more} more like these"));
    }
    Ok(list)
}

/// The state of a file in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Current,
    Different,
    Missing,
}

impl State {
    /// Checks the file: first its size and, if that matches, its CRC.
    fn of(file: &ListedFile, folder: &Path) -> Result<Self, Failure> {
        let path = match SafePath::parse_str(file.path(), PathRules::default()) {
            Ok(path) => path.below(folder),
            Err(error) => {
                complain(file.path(), &format!("its name {error}"));
                return Err(Failure::Input);
            }
        };
        let Ok(about) = path.metadata() else { return Ok(Self::Missing) };
        if !about.is_file() || file.size.is_some_and(|size| size != about.len()) {
            return Ok(Self::Different);
        }
        let bytes = map::open(&path)?;
        Ok(if file.is(&bytes) { Self::Current } else { Self::Different })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Different => "different",
            Self::Missing => "missing",
        }
    }
}

fn show(
    list: &FileList,
    prefix: Option<&str>,
    folder: Option<&Path>,
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let mut out = String::new();
    let (mut bytes, mut count, mut fetched) = (0, 0, 0);
    for file in &list.files {
        let state = folder.map(|folder| State::of(file, folder)).transpose()?;
        let url = prefix.map(|prefix| file.url(prefix));
        let size = file.size.unwrap_or(0);
        bytes += size;
        if state.is_some_and(|state| state != State::Current) {
            count += 1;
            fetched += size;
        }
        if json {
            let mut line = line_of(file);
            if let Some(url) = url {
                line["url"] = url.into();
            }
            if let Some(state) = state {
                line["state"] = state.name().into();
            }
            let _ = writeln!(out, "{line}");
        } else {
            let state = state.map_or_else(String::new, |state| format!("{:<9}  ", state.name()));
            let name = url.unwrap_or_else(|| file.name.clone());
            let crc = file.crc.map_or_else(|| "-".to_owned(), |crc| format!("{crc:08x}"));
            let _ = writeln!(out, "{state}{size:>12}  {crc:>8}  {}", printable(&name));
        }
    }
    if !json && !common.quiet {
        let files = counted(list.files.len(), "file");
        let _ = writeln!(out, "{files}, {}", counted(bytes, "byte"));
        if let Some(folder) = folder {
            let fetched = counted(fetched, "byte");
            let _ = writeln!(out, "{count} to download for {}, {fetched}", shown(folder));
        }
    }
    print(&out)
}

fn line_of(file: &ListedFile) -> serde_json::Value {
    json!({
        "name": file.name, "target": file.target, "packages": file.packages, "type": file.kind,
        "size": file.size, "crc": file.crc, "header_size": file.header_size,
        "header_crc": file.header_crc,
    })
}

fn diff(before: &FileList, after: &FileList, json: bool) -> Result<(), Failure> {
    let diff = before.diff(after);
    let mut lines: Vec<(&str, &str, Option<&ListedFile>, Option<&ListedFile>)> = Vec::new();
    lines.extend(diff.removed.iter().map(|old| ("removed", &*old.name, Some(*old), None)));
    lines.extend(diff.added.iter().map(|new| ("added", &*new.name, None, Some(*new))));
    let changed = diff.changed.iter();
    lines.extend(changed.map(|(old, new)| ("changed", &*new.name, Some(*old), Some(*new))));
    lines.sort_by_key(|(_, name, ..)| *name);
    let mut out = String::new();
    for (what, name, old, new) in &lines {
        if json {
            let [old, new] = [old, new].map(|file| file.map(line_of));
            let line = json!({"change": what, "name": name, "before": old, "after": new});
            let _ = writeln!(out, "{line}");
        } else {
            let size = |file: &Option<&ListedFile>| {
                let size = file.and_then(|file| file.size);
                size.map_or_else(|| "-".to_owned(), |size| size.to_string())
            };
            let (old, new) = (size(old), size(new));
            let _ = writeln!(out, "{what:<8} {old:>12} {new:>12}  {}", printable(name));
        }
    }
    print(&out)?;
    if lines.is_empty() { Ok(()) } else { Err(Failure::Input) }
}
