//! Files and standard input.

pub(crate) mod map;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use worldwire_core::Limits;
use worldwire_core::Severity;
use worldwire_dissect::{Definitions, Keys};
use worldwire_tera::file::library::Known;

use crate::cli::{Common, Data};
use crate::output::{Failure, complain};
use crate::{report, types};

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    if path.is_dir() {
        return Err(Failure::Run(format!("{}: is a folder, wanted a file", path.display())));
    }
    let file = File::open(path).map_err(|error| Failure::io(path, &error))?;
    Ok(Box::new(file))
}

/// Reads a whole file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let most = Limits::DEFAULT.file_bytes;
    let mut bytes = Vec::new();
    open(path)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io(path, &error))?;
    if bytes.len() as u64 > most {
        let message = format!("{}: larger than {most} bytes (file bytes)", path.display());
        return Err(Failure::Run(message));
    }
    Ok(bytes)
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        complain(&path.display().to_string(), &format!("at byte {at}: wanted UTF-8 text"));
        Failure::Input
    })
}

/// Reads a key file, if there is one.
pub(crate) fn keys(path: Option<&Path>) -> Result<Keys, Failure> {
    let Some(path) = path else {
        return Ok(Keys::none());
    };
    let text = read_text(path)?;
    Keys::parse(&text).map_err(|error| {
        let text = error.to_string();
        let mut lines: Vec<&str> = text.lines().collect();
        let last = lines.pop().unwrap_or_default();
        for line in lines {
            complain(&path.display().to_string(), line);
        }
        Failure::Run(format!("{}: {last}", path.display()))
    })
}

/// Reads definitions, and takes in what else people know of messages.
pub(crate) fn definitions(data: &Data, common: &Common) -> Result<Definitions, Failure> {
    let mut definitions = definitions_in(&data.paths, common)?;
    let Data { revision, patch, pin, .. } = data;
    if revision.is_some() || patch.is_some() || !pin.is_empty() {
        let pins = pin.iter().map(|pin| (pin.name.as_str().into(), pin.version)).collect();
        let known = Known { revision: *revision, patch: *patch, pins };
        Arc::make_mut(&mut definitions.tera).set_known(known);
    }
    Ok(definitions)
}

/// Reads definitions from files and folders, over what is built in.
pub(crate) fn definitions_in(paths: &[PathBuf], common: &Common) -> Result<Definitions, Failure> {
    let mut definitions = Definitions::built_in();
    add_definitions(&mut definitions, paths, common)?;
    Ok(definitions)
}

/// Reads definitions from files and folders, over what is known.
pub(crate) fn add_definitions(
    definitions: &mut Definitions,
    paths: &[PathBuf],
    common: &Common,
) -> Result<(), Failure> {
    let mut lists = Vec::new();
    for path in paths {
        let (of_path, files): (Vec<_>, Vec<_>) =
            files(path)?.into_iter().partition(|file| types::is_list(file));
        let has_lists = !of_path.is_empty();
        lists.extend(of_path);
        let files = files.into_iter().map(|file| (file.display().to_string(), file));
        // Folders may hold anything, at any size.
        let files = files.filter(|(name, _)| Definitions::may_be_in(name));
        let files = files.map(|(name, file)| read(&file).map(|bytes| (name, bytes)));
        let files: Vec<(String, Vec<u8>)> = files.collect::<Result<_, Failure>>()?;
        let Some(said) = definitions.add(files) else {
            if has_lists {
                continue;
            }
            let message = format!("{}: wanted definitions of messages, found none", path.display());
            return Err(Failure::Run(message));
        };
        let shown = said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error);
        report::diagnostics(shown);
        if said.iter().any(|one| one.severity() == Severity::Error) {
            complain(&path.display().to_string(), "definitions with errors were left out");
        }
    }
    if !lists.is_empty() {
        let classes = types::load(&lists, common)?;
        Arc::make_mut(&mut definitions.ki_objects).set_classes(classes);
    }
    Ok(())
}

/// A file, or all files of a folder and the folders in it, in the order of their names.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    /// Deeper folders are somebody's loop.
    const MOST_DEEP: usize = 32;
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| Failure::io(&folder, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| Failure::io(&folder, &error))?.path();
            if !path.is_dir() {
                found.push(path);
            } else if depth < MOST_DEEP {
                folders.push((path, depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}
