//! Definitions in files and directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use worldwire_core::{Source, listed, nearest};
use worldwire_tera::file::Bundle;
use worldwire_tera::file::text::{self, NotText};
use worldwire_tera::schema::{Definition, ParseOptions, Problem, ProblemKind, Set};

use crate::cli::Common;
use crate::input;
use crate::output::{Failure, complain, shown};
use crate::report;

/// The names and texts of all definitions in some paths, including those in a `data.json`. Of two
/// files with the same name, the later one wins.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) files: Vec<(String, String)>,
    /// Problems with the files themselves.
    pub(super) problems: Vec<Problem>,
    pub(super) places: Places,
}

/// The origin of definitions, by file name.
#[derive(Default)]
pub(super) struct Places(BTreeMap<String, PathBuf>);

impl Places {
    /// The problems of a set of definitions, each with the path of its file as given.
    pub(super) fn problems<'p>(&'p self, set: &'p Set) -> impl Iterator<Item = Problem> {
        set.problems().map(|Problem { kind, diagnostic }| {
            let diagnostic = diagnostic.clone();
            let diagnostic = match self.0.get(diagnostic.file()) {
                Some(path) => diagnostic.in_file(&shown(path)),
                None => diagnostic,
            };
            Problem { kind: *kind, diagnostic }
        })
    }
}

impl Texts {
    /// Reports problems with the files themselves.
    pub(super) fn tell(&self, common: &Common) {
        for problem in self.problems.iter().filter(|one| !common.quiet || one.is_error()) {
            let Problem { kind, diagnostic } = problem;
            match kind {
                // The problem has no line.
                ProblemKind::NotText | ProblemKind::NotUtf8 | ProblemKind::DuplicateFile => {
                    complain(diagnostic.file(), diagnostic.message());
                }
                _ => report::diagnostics([diagnostic]),
            }
        }
    }

    /// Records problems with a whole file; returns the file's text, if it has any.
    fn checked(&mut self, file: &Path, read: Result<(String, bool), NotText>) -> Option<String> {
        let name = shown(file);
        let source = Source::new(&name, "");
        let (kind, diagnostic, text) = match read {
            Ok((text, false)) => return Some(text),
            Ok((text, true)) => {
                (ProblemKind::NotUtf8, source.warning(0..0, text::NOT_UTF8), Some(text))
            }
            Err(error) => (ProblemKind::NotText, source.error(0..0, error.to_string()), None),
        };
        self.problems.push(Problem { kind, diagnostic });
        text
    }
}

/// Reads the readable definitions in some paths.
pub(super) fn texts(paths: &[PathBuf], common: &Common) -> Result<Texts, Failure> {
    let mut texts = Texts::default();
    for path in paths {
        let files = files(path, common)?;
        if path.is_dir() {
            one_set(path, &files)?;
        }
        for file in files {
            let read = text::read(input::read(&file)?);
            let Some(text) = texts.checked(&file, read) else { continue };
            let name = name(&file);
            if name.ends_with(".json") {
                let (bundle, problems) = Bundle::parse(&shown(&file), &text);
                texts.problems.extend(problems);
                for (name, text) in bundle.files {
                    texts.places.0.remove(&*name);
                    texts.files.push((name.into(), text));
                }
                continue;
            }
            match texts.places.0.insert(name.clone(), file.clone()) {
                Some(other) if other != file => {
                    let message =
                        format!("duplicate {name}, also in {}; this one is used", shown(&other));
                    let diagnostic = Source::new(&shown(&file), "").warning(0..0, message);
                    texts.problems.push(Problem { kind: ProblemKind::DuplicateFile, diagnostic });
                }
                _ => {}
            }
            texts.files.push((name, text));
        }
    }
    Ok(texts)
}

/// The text of a file; irregularities are reported.
pub(super) fn read(file: &Path, common: &Common) -> Result<String, Failure> {
    let mut texts = Texts::default();
    let read = text::read(input::read(file)?);
    let text = texts.checked(file, read);
    texts.tell(common);
    text.ok_or(Failure::Input)
}

/// Checks that the files of a directory form one set, which is not the case if several files define
/// the same names.
pub(crate) fn one_set(path: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let mut folders: BTreeMap<String, &Path> = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "def")) {
        let folder = file.parent().unwrap_or(path);
        let name = name(file);
        match folders.get(&name) {
            Some(other) if *other != folder => {
                return Err(Failure::Run(format!(
                    "{}: contains several sets of definitions: {} and {} both have {name}; choose one \
                     of them",
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

/// The definition files in a path, or the path itself if it is a file, regardless of its name.
pub(super) fn files(path: &Path, common: &Common) -> Result<Vec<PathBuf>, Failure> {
    let mut files = input::files(path, &|subject, text| common.note(subject, text))?;
    if path.is_dir() {
        // Definitions written as programs are listed, too.
        files.retain(|file| {
            let name = name(file);
            name.ends_with(".def") || name.ends_with(".js") || name == "data.json"
        });
        if files.is_empty() {
            let message = format!("{}: contains no definitions", path.display());
            return Err(Failure::Run(message));
        }
    }
    Ok(files)
}

/// Reads definitions and reports their problems.
pub(in crate::command) fn set(
    paths: &[PathBuf],
    options: ParseOptions,
    common: &Common,
) -> Result<Set, Failure> {
    checked_set(paths, options, common).map(|(set, _)| set)
}

/// Like the function above; also returns whether all files could be read as text or JSON.
pub(in crate::command) fn checked_set(
    paths: &[PathBuf],
    options: ParseOptions,
    common: &Common,
) -> Result<(Set, bool), Failure> {
    let texts = texts(paths, common)?;
    texts.tell(common);
    let clean = !texts.problems.iter().any(Problem::is_error);
    let set = Set::load(texts.files, options);
    tell(&texts.places.problems(&set).collect::<Vec<_>>(), true);
    Ok((set, clean))
}

/// Reports problems; if quiet, only errors. Returns whether there are no errors.
pub(super) fn tell(problems: &[Problem], quiet: bool) -> bool {
    let shown = problems.iter().filter(|problem| !quiet || problem.is_error());
    report::diagnostics(shown.map(|problem| &problem.diagnostic));
    !problems.iter().any(Problem::is_error)
}

/// The definition given as NAME or NAME.VERSION.
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
        _ if !versions.is_empty() => format!("; available: version {}", listed(versions)),
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    complain(word, &format!("no such definition{hint}"));
    Err(Failure::Input)
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
