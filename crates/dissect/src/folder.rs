//! Definitions loaded from directories.

use std::path::{Path, PathBuf};
use std::{fs, io};

use worldwire_core::Diagnostic;

use crate::Definitions;

impl Definitions {
    /// Adds all definitions from a directory and its subdirectories, in the order of their paths.
    /// Returns warnings and errors about them, or `None` if no file contains definitions; see
    /// [`add`](Self::add). Links to other directories are not followed.
    ///
    /// ```no_run
    /// use worldwire_dissect::Definitions;
    ///
    /// let mut definitions = Definitions::built_in();
    /// for diagnostic in definitions.add_folder("tera-data")?.expect("definitions") {
    ///     eprintln!("{diagnostic}");
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a directory or file cannot be read; the error names it.
    pub fn add_folder(&mut self, folder: impl AsRef<Path>) -> io::Result<Option<Vec<Diagnostic>>> {
        let mut files = Vec::new();
        for path in paths(folder.as_ref())? {
            let name = path.to_string_lossy().into_owned();
            if self.may_be_in(&name) {
                files.push((name, fs::read(&path).map_err(|error| at(&path, &error))?));
            }
        }
        Ok(self.add(files))
    }
}

/// All files in a directory and its subdirectories, sorted.
fn paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let fail = |error: io::Error| at(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let path = entry.path();
            if entry.file_type().map_err(fail)?.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Adds the path to an error and drops the system's error number.
fn at(path: &Path, error: &io::Error) -> io::Error {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default();
    io::Error::new(error.kind(), format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TeraDefinitions;

    #[test]
    fn all_definitions_in_a_folder_are_added() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/tera");
        let mut definitions = Definitions::built_in();
        let diagnostics = definitions.add_folder(samples).expect("readable").expect("definitions");
        assert_eq!(diagnostics, []);
        let tera = definitions.part::<TeraDefinitions>();
        assert!(tera.library().definitions.files() > 1 && !tera.library().opcodes.is_empty());
    }

    #[test]
    fn unreadable_folders_are_named() {
        let error = Definitions::built_in().add_folder("no/such/folder").expect_err("missing");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("no/such/folder: "), "{error}");
    }
}
