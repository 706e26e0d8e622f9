//! `worldwire diff`.

mod align;
mod captures;
mod changes;
mod definitions;
mod fields;
mod ignored;
mod objects;
mod style;

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use worldwire_capture::CaptureReader;
use worldwire_core::Limits;

use crate::cli::{Common, DiffArguments};
use crate::command::ki::inside::is_archive_file;
use crate::command::ki::type_lists;
use crate::command::tera::{diff as tera_definitions, map};
use crate::definitions::has_messages;
use crate::input;
use crate::output::{Failure, shown};
use crate::settings::Setting;
use crate::types;

pub(crate) fn run(arguments: &DiffArguments, common: &Common) -> Result<(), Failure> {
    let DiffArguments { before, after, json, .. } = arguments;
    let is_same = match of_messages(arguments)? {
        Some([(before, old), (after, new)]) => {
            let inputs = [(before.as_path(), old), (after.as_path(), new)];
            captures::compare_messages(arguments, inputs, common)?
        }
        None => {
            let (kind, other) = (Kind::of(before)?, Kind::of(after)?);
            if kind != other {
                let (before, after) = (shown(before), shown(after));
                let problem = format!("{before} is {kind}, and {after} is {other}");
                return Err(Failure::Run(format!("{problem}; give two inputs of the same kind")));
            }
            check_options(arguments, kind, common)?;
            match kind {
                Kind::Capture => captures::compare(arguments, common)?,
                Kind::Archive => objects::compare_archives(arguments, common)?,
                Kind::Types => type_lists::diff(before, after, *json, common)?,
                Kind::Messages => definitions::compare(arguments, common)?,
                Kind::Definitions => {
                    let sides = [before, after].map(|path| path.to_string_lossy().into_owned());
                    let reading = worldwire_tera::schema::ParseOptions::default();
                    let [old, new] = &sides;
                    tera_definitions::run([old, new], &[], reading, *json, common)?
                }
                Kind::Map => map::diff(before, after, *json, common)?,
            }
        }
    };
    if is_same { Ok(()) } else { Err(Failure::Input) }
}

/// The messages of captures that the command line names, if any.
fn of_messages(arguments: &DiffArguments) -> Result<Option<[(PathBuf, u64); 2]>, Failure> {
    let DiffArguments { before, after, message, .. } = arguments;
    let sides = [before, after].map(|path| numbered(path).ok_or(path));
    match (sides, message) {
        ([Ok(old), Ok(new)], None) => Ok(Some([old, new])),
        ([Err(old), Err(new)], Some(number)) => {
            Ok(Some([(old.clone(), *number), (new.clone(), *number)]))
        }
        ([Err(_), Err(_)], None) => Ok(None),
        (_, Some(_)) => {
            let problem = "--message selects the same message in both captures; \
                           do not combine it with CAPTURE:NUMBER";
            Err(Failure::Run(problem.to_owned()))
        }
        ([Ok(_), Err(path)] | [Err(path), Ok(_)], None) => {
            let path = shown(path);
            let problem = format!(
                "{path}: the other input is a message; write {path}:NUMBER to select one here, too"
            );
            Err(Failure::Run(problem))
        }
    }
}

/// The path and the number in `CAPTURE:17`, unless a file has this whole name.
fn numbered(path: &Path) -> Option<(PathBuf, u64)> {
    let (file, number) = path.to_str()?.rsplit_once(':')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    (!path.exists() && Path::new(file).is_file()).then(|| (PathBuf::from(file), number))
}

/// Refuses options that have no effect.
fn check_options(arguments: &DiffArguments, kind: Kind, common: &Common) -> Result<(), Failure> {
    let DiffArguments { knowledge, filter, stream, ignore, types, .. } = arguments;
    let is_capture = kind == Kind::Capture;
    // Settings are intended for captures and need not apply to other inputs.
    let has = |setting, is_set: bool| is_set && !common.settings.is_used(setting);
    let needs = [
        ("--filter", filter.is_some(), is_capture, "captures"),
        ("--stream", stream.is_some(), is_capture, "captures"),
        ("--keys", has(Setting::Keys, !knowledge.keys.is_empty()), is_capture, "captures"),
        ("--as", has(Setting::As, !knowledge.families.is_empty()), is_capture, "captures"),
        ("--data", has(Setting::Data, !knowledge.data.paths.is_empty()), is_capture, "captures"),
        ("--types", !types.is_empty(), kind == Kind::Archive, "archives"),
        (
            "--ignore",
            !ignore.is_empty(),
            is_capture || kind == Kind::Archive,
            "captures and archives",
        ),
    ];
    match needs.iter().find(|(_, is_given, is_used, _)| *is_given && !is_used) {
        Some((option, _, _, of)) => Err(Failure::Run(format!(
            "{option} applies only to {of}, but these are {}",
            kind.plural()
        ))),
        None => Ok(()),
    }
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Capture,
    /// A KI archive.
    Archive,
    /// A KI type list.
    Types,
    /// KI message XML.
    Messages,
    /// TERA definitions.
    Definitions,
    /// A TERA opcode map.
    Map,
}

impl Kind {
    /// Recognises an input by its content. TERA's files are plain text, so they are recognised by
    /// name.
    fn of(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let problem = "-: inputs are read twice, so standard input cannot be compared";
            return Err(Failure::Run(problem.to_owned()));
        }
        if path.is_dir() {
            return Self::of_folder(path);
        }
        let mut head = Vec::new();
        let mut file = File::open(path).map_err(|error| Failure::io(path, &error))?;
        let read = file.by_ref().take(LOOK).read_to_end(&mut head);
        read.map_err(|error| Failure::io(path, &error))?;
        let ends_in = |end: &str| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(end));
        let kind = match () {
            () if is_archive_file(path) => Self::Archive,
            () if ends_in("def") => Self::Definitions,
            () if ends_in("map") => Self::Map,
            () if types::is_list(path, false) => Self::Types,
            () if has_messages(&head) => Self::Messages,
            () if CaptureReader::new(input::open(path)?, &Limits::DEFAULT).is_ok() => Self::Capture,
            () => {
                let kinds = "captures, messages of captures (CAPTURE:17), KI archives, type lists \
                             and message XML, and TERA definitions and maps";
                let problem = format!("{}: cannot be compared", shown(path));
                return Err(Failure::Run(format!("{problem}; this command compares {kinds}")));
            }
        };
        Ok(kind)
    }

    fn of_folder(path: &Path) -> Result<Self, Failure> {
        let files = input::files(path, &|_, _| ())?;
        let has = |end: &str| {
            let fits =
                |file: &PathBuf| file.extension().is_some_and(|it| it.eq_ignore_ascii_case(end));
            files.iter().any(fits)
        };
        match (has("def"), has("xml")) {
            (true, _) => Ok(Self::Definitions),
            (false, true) => Ok(Self::Messages),
            (false, false) => {
                let kinds = "TERA definitions (.def) nor KI message XML";
                Err(Failure::Run(format!("{}: contains neither {kinds}", shown(path))))
            }
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Capture => "captures",
            Self::Archive => "archives",
            Self::Types => "type lists",
            Self::Messages => "KI message XML",
            Self::Definitions => "TERA definitions",
            Self::Map => "TERA maps",
        }
    }
}

/// The number of bytes of a file that are read to recognise it.
const LOOK: u64 = 64 << 10;

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Capture => "a capture",
            Self::Archive => "a KI archive",
            Self::Types => "a KI type list",
            Self::Messages => "KI message XML",
            Self::Definitions => "TERA definitions",
            Self::Map => "a TERA map",
        })
    }
}
