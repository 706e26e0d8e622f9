//! Definitions in files and folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use worldwire_core::nearest;
use worldwire_tera::file::{Bundle, text};
use worldwire_tera::schema::{Definition, ParseOptions, Set};

use crate::input;
use crate::output::{Failure, complain, shown};
use crate::report;

/// The names and texts of all definitions of some paths, those in a `data.json` too. Of two files
/// of one name the later one counts.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) files: Vec<(String, String)>,
    /// What was said about the files themselves.
    pub(super) warnings: usize,
    pub(super) errors: usize,
}

/// Reads the definitions of some paths; what is wrong with the files is reported.
pub(super) fn texts(paths: &[PathBuf]) -> Result<Texts, Failure> {
    let mut texts = Texts::default();
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        let files = files(path)?;
        if path.is_dir() {
            one_set(path, &files)?;
        }
        for file in files {
            let (text, is_latin) = match read(&file) {
                Ok(read) => read,
                // The others are read all the same.
                Err(Failure::Input) => {
                    texts.errors += 1;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            texts.warnings += usize::from(is_latin);
            let name = name(&file);
            if name.ends_with(".json") {
                let (bundle, problems) = Bundle::parse(&shown(&file), &text);
                report::diagnostics(problems.iter().map(|problem| &problem.diagnostic));
                texts.errors += problems.iter().filter(|problem| problem.is_error()).count();
                let bundled = bundle.files.into_iter().map(|(name, text)| (name.into(), text));
                texts.files.extend(bundled);
                continue;
            }
            match known.insert(name.clone(), file.clone()) {
                Some(other) if other != file => {
                    let message =
                        format!("there is another {name}: {}; this one counts", shown(&other));
                    complain(&shown(&file), &message);
                    texts.warnings += 1;
                }
                _ => {}
            }
            texts.files.push((name, text));
        }
    }
    Ok(texts)
}

/// The text of a file, and whether it is taken as Latin-1, which is said then.
pub(super) fn read(file: &Path) -> Result<(String, bool), Failure> {
    let (text, is_latin) = text::read(input::read(file)?).map_err(|error| {
        complain(&shown(file), &error.to_string());
        Failure::Input
    })?;
    if is_latin {
        complain(&shown(file), text::NOT_UTF8);
    }
    Ok((text, is_latin))
}

/// Whether the files of a folder are one set: several have definitions of the same names.
pub(crate) fn one_set(path: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let mut folders: BTreeMap<String, &Path> = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "def")) {
        let folder = file.parent().unwrap_or(path);
        let name = name(file);
        match folders.get(&name) {
            Some(other) if *other != folder => {
                return Err(Failure::Run(format!(
                    "{}: wanted one set of definitions, found several: {} and {} both have {name}; \
                     name one of them",
                    shown(path),
                    shown(other),
                    shown(folder)
                )));
            }
            _ => drop(folders.insert(name, folder)),
        }
    }
    Ok(())
}

/// The definition files of a path; the path itself when it is a file, whatever it is called.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = input::files(path)?;
    if path.is_dir() {
        // Definitions written as programs are named, too.
        files.retain(|file| {
            let name = name(file);
            name.ends_with(".def") || name.ends_with(".js") || name == "data.json"
        });
        if files.is_empty() {
            let message = format!("{}: wanted definitions, found none", path.display());
            return Err(Failure::Run(message));
        }
    }
    Ok(files)
}

/// Reads definitions; what is wrong with them is reported.
pub(in crate::command) fn set(paths: &[PathBuf], options: ParseOptions) -> Result<Set, Failure> {
    let set = Set::load(texts(paths)?.files, options);
    let errors = set.problems().filter(|problem| problem.is_error());
    report::diagnostics(errors.map(|problem| &problem.diagnostic));
    Ok(set)
}

/// The definition that a word names: NAME or NAME.VERSION.
pub(crate) fn named<'s>(set: &'s Set, word: &str) -> Result<&'s Definition, Failure> {
    let (name, version) = match word.rsplit_once('.') {
        Some((name, version)) => match version.parse::<u32>() {
            Ok(version) => (name, Some(version)),
            Err(_) => (word, None),
        },
        None => (word, None),
    };
    let found = match version {
        Some(version) => set.get(name, version),
        None => set.newest(name),
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let versions: Vec<String> =
        set.versions(name).map(|definition| definition.version().to_string()).collect();
    let hint = match nearest(name, set.names()) {
        _ if !versions.is_empty() => format!("; there is version {}", versions.join(", ")),
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    complain(word, &format!("no such definition{hint}"));
    Err(Failure::Input)
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
