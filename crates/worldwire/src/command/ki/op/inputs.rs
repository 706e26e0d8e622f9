//! The files that a command is to work on.

use std::path::{Path, PathBuf};

use crate::input;
use crate::output::Failure;

/// A file to read, and what its result is called below the output folder.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) name: PathBuf,
    /// It was found in a folder: what is no such file is passed over.
    pub(super) is_found: bool,
}

/// Files, all files of folders, and what patterns match.
pub(super) fn expand(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in paths {
        let text = path.to_string_lossy();
        if path.is_dir() {
            for file in input::files(path)? {
                let name = file.strip_prefix(path).unwrap_or(&file).to_owned();
                inputs.push(Input { path: file, name, is_found: true });
            }
        } else if text.contains(['*', '?', '[']) && !path.exists() {
            let wrong = |error: glob::PatternError| Failure::Run(format!("{text}: {error}"));
            let before = inputs.len();
            for found in glob::glob(&text).map_err(wrong)? {
                let found = found.map_err(|error| Failure::io(error.path(), error.error()))?;
                if found.is_file() {
                    inputs.push(Input { name: own_name(&found), path: found, is_found: true });
                }
            }
            if inputs.len() == before {
                return Err(Failure::Run(format!("{text}: matches no file")));
            }
        } else {
            inputs.push(Input { name: own_name(path), path: path.clone(), is_found: false });
        }
    }
    Ok(inputs)
}

fn own_name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.to_owned(), PathBuf::from)
}
