//! The files that a command is to work on.

use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

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
        } else if text.contains(['*', '?', '[', '{']) && !path.exists() {
            let glob = GlobBuilder::new(&text).literal_separator(true).build();
            let glob = glob.map_err(|error| Failure::Run(error.to_string()))?.compile_matcher();
            let before = inputs.len();
            for found in input::files(&fixed_part(path))? {
                // `*.xml` is in this folder.
                let plain = found.strip_prefix(".").unwrap_or(&found);
                if glob.is_match(plain) || glob.is_match(&found) {
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

/// The folder in front of the first part with a pattern in it.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed: PathBuf = pattern.components().take_while(is_plain).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}

fn own_name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.to_owned(), PathBuf::from)
}
