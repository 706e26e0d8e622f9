//! Definitions from files, folders and KI archives, as `data=` names them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use worldwire_core::{Diagnostic, Severity};
use worldwire_dissect::{Definitions, KiObjects, MxoObjects};
use worldwire_ki::schema::classes::TypeLists;

use crate::archive::Archive;
use crate::archive_file::is_archive;
use crate::error::{Class, Fault, of_file};
use crate::knowledge::{paths, read_file, warn};

/// A file: its name with directories, and its contents.
type NamedFile = (String, Vec<u8>);

/// The built-in definitions, and those in an argument's paths.
pub(crate) fn read_definitions(
    py: Python<'_>,
    argument: Option<&Bound<'_, PyAny>>,
) -> PyResult<Definitions> {
    let mut definitions = Definitions::built_in();
    let (mut lists, mut tables) = (Vec::new(), Vec::new());
    for path in paths(argument)? {
        let mut found = Found::default();
        let archives = found.look(py, &path, &definitions)?;
        let is_used = !found.lists.is_empty() || !found.tables.is_empty();
        lists.append(&mut found.lists);
        // Tables refer to each other, in any order.
        tables.append(&mut found.tables);
        let mut said = definitions.add(found.messages);
        if said.is_none() && !is_used {
            // Archives are large, so they are read only if their directory has no definitions.
            for archive in archives {
                if let Some(more) = definitions.add(messages_of(py, &archive, &definitions)?) {
                    said.get_or_insert_default().extend(more);
                }
            }
        }
        if said.is_none() && !is_used {
            let hint = "`data` takes message definitions, type lists, KI archives, and folders of \
                        these";
            let problem = format!("{}: contains no definitions; {hint}", path.display());
            let fault = Fault::new(Class::Definitions, problem).at_path(&path.to_string_lossy());
            return Err(fault.hinting(Some(hint.into())).raise(py));
        }
        report(py, &said.unwrap_or_default())?;
    }
    report(py, &definitions.add(tables).unwrap_or_default())?;
    if !lists.is_empty() {
        let mut reader = TypeLists::new();
        for (name, text) in &lists {
            let failed =
                |error: worldwire_core::Error| Fault::of(Class::Definitions, &error).raise(py);
            reader.add(name, text).map_err(failed)?;
        }
        let classes = Arc::new(reader.compile());
        definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
    }
    Ok(definitions)
}

/// The files of one path, by kind.
#[derive(Default)]
struct Found {
    /// KI type lists.
    lists: Vec<NamedFile>,
    /// MxO tables.
    tables: Vec<NamedFile>,
    /// Everything else that may define messages.
    messages: Vec<NamedFile>,
}

impl Found {
    /// Reads the files of a path. Archives in a directory are not read but returned.
    fn look(
        &mut self,
        py: Python<'_>,
        path: &Path,
        definitions: &Definitions,
    ) -> PyResult<Vec<PathBuf>> {
        if let Some((archive, name)) = archived(path) {
            let archive = Archive::of_path(py, archive)?;
            let subject = path.to_string_lossy().into_owned();
            let Some(content) = archive.content(py, &name)? else {
                let problem = format!("{subject}: {}", archive.missing(&name));
                return Err(Fault::new(Class::Definitions, problem).at_path(&subject).raise(py));
            };
            self.messages.push((subject, content));
            return Ok(Vec::new());
        }
        if is_archive(path) {
            self.messages = messages_of(py, path, definitions)?;
            return Ok(Vec::new());
        }
        let is_folder = path.is_dir();
        let files = if is_folder { files(path)? } else { vec![path.to_owned()] };
        let mut archives = Vec::new();
        for file in files {
            let name = file.to_string_lossy().into_owned();
            let may_list = !is_folder || file.extension().is_some_and(|it| it == "json");
            // Directories may contain unrelated files of any size.
            if is_folder && !may_list && !definitions.may_be_in(&name) {
                if file.extension().is_some_and(|it| it.eq_ignore_ascii_case("wad")) {
                    archives.push(file);
                }
                continue;
            }
            let bytes = read_file(py, &file)?;
            if may_list && is_type_list(&bytes, is_folder) {
                self.lists.push((name, bytes));
            } else if MxoObjects::are_in(&bytes) {
                self.tables.push((name, bytes));
            } else if !is_folder || definitions.may_be_in(&name) {
                self.messages.push((name, bytes));
            }
        }
        archives.retain(|archive| is_archive(archive));
        Ok(archives)
    }
}

/// The archive that a path leads through, and the name of the file in it, as in
/// `Root.wad/Messages.xml`. `None` if the path itself exists or leads through no archive.
fn archived(path: &Path) -> Option<(PathBuf, String)> {
    if fs::symlink_metadata(path).is_ok() {
        return None;
    }
    let archive = path.ancestors().skip(1).find(|above| is_archive(above))?;
    let (whole, above) = (path.to_string_lossy(), archive.to_string_lossy());
    let name = whole.strip_prefix(&*above)?.strip_prefix(std::path::is_separator)?;
    let name = if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() };
    Some((archive.to_owned(), name))
}

/// The message XML in an archive that contains mostly other files. Files that cannot be read are
/// reported as warnings.
fn messages_of(py: Python<'_>, path: &Path, definitions: &Definitions) -> PyResult<Vec<NamedFile>> {
    /// Only message XML contains this.
    const MARK: &[u8] = b"_ProtocolInfo";
    let archive = Archive::of_path(py, path.to_owned())?;
    let mut found = Vec::new();
    for name in archive.names(py)?.into_iter().filter(|name| definitions.may_be_in(name)) {
        let subject = format!("{}/{name}", path.display());
        match archive.content(py, &name) {
            Ok(Some(content)) if content.windows(MARK.len()).any(|part| part == MARK) => {
                found.push((subject, content));
            }
            Ok(_) => {}
            Err(error) => warn(py, &format!("{subject}: {}", error.value(py)))?,
        }
    }
    Ok(found)
}

/// Raises the first error, and reports warnings to Python.
fn report(py: Python<'_>, said: &[Diagnostic]) -> PyResult<()> {
    for diagnostic in said {
        if diagnostic.severity() == Severity::Error {
            let fault = Fault::new(Class::Definitions, diagnostic).at_path(diagnostic.file());
            return Err(fault.hinting(diagnostic.help_text().map(str::to_owned)).raise(py));
        }
        warn(py, &diagnostic.to_string())?;
    }
    Ok(())
}

/// Whether a file looks like a type list, judging by its first bytes.
fn is_type_list(bytes: &[u8], is_of_folder: bool) -> bool {
    const LOOK: usize = 64 << 10;
    let head = bytes.get(..LOOK).unwrap_or(bytes);
    let has = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
    has(b"\"hash\"") && if is_of_folder { has(b"\"bases\"") } else { has(b"\"properties\"") }
}

/// All files in a directory and its subdirectories, sorted. Links to directories are not followed.
fn files(folder: &Path) -> PyResult<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let failed = |error| of_file(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}
