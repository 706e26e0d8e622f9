//! The files that a command is to work on.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use crate::input;
use crate::output::{Failure, WholeFile, occupied, shown};

/// A file to read, and what its result is called below the output folder.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) name: PathBuf,
    /// It was found in a folder: what is no such file is passed over.
    pub(super) is_found: bool,
}

/// Files, all files of folders, and what patterns match. What was found keeps the folders that it
/// is in below the one that was named.
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
            let (before, fixed) = (inputs.len(), fixed_part(path));
            for found in input::files(&fixed)? {
                // `*.xml` is in this folder.
                let plain = found.strip_prefix(".").unwrap_or(&found);
                if glob.is_match(plain) || glob.is_match(&found) {
                    let name = found.strip_prefix(&fixed).unwrap_or(&found).to_owned();
                    inputs.push(Input { path: found, name, is_found: true });
                }
            }
            if inputs.len() == before {
                return Err(Failure::Run(format!("{text}: matches no file")));
            }
        } else {
            let name = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
            inputs.push(Input { path: path.clone(), name, is_found: false });
        }
    }
    Ok(inputs)
}

/// Where the results of the inputs go, each to a place of its own.
pub(super) fn targets(
    inputs: &[Input],
    folder: &Path,
    name: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<PathBuf>, Failure> {
    let targets: Vec<PathBuf> = inputs.iter().map(|it| folder.join(name(&it.name))).collect();
    let mut taken: HashMap<&Path, &Path> = HashMap::with_capacity(inputs.len());
    for (Input { path, .. }, target) in inputs.iter().zip(&targets) {
        if let Some(other) = taken.insert(target, path) {
            let (one, other, target) = (shown(other), shown(path), shown(target));
            let way = "give their directory instead, which keeps paths apart, or convert them one at a time";
            return Err(Failure::Run(format!(
                "{one} and {other} would both be written to {target}; {way}"
            )));
        }
    }
    Ok(targets)
}

/// Writes the result of one of several inputs.
pub(super) fn keep(path: &Path, force: bool, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| Failure::io(parent, &error))?;
    }
    WholeFile::store(path, bytes, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Run(occupied(path)),
        _ => Failure::io(path, &error),
    })
}

/// What is wrong with one of several inputs, which ends no more than that one.
pub(super) fn fault(path: &Path, failure: Failure) -> Result<String, Failure> {
    let Failure::Run(message) = failure else { return Err(failure) };
    let subject = format!("{}: ", shown(path));
    Ok(message.strip_prefix(&subject).unwrap_or(&message).to_owned())
}

/// The folder in front of the first part with a pattern in it.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed: PathBuf = pattern.components().take_while(is_plain).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}
