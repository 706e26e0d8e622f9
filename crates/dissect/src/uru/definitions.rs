//! Uru's part of the user's definitions: state descriptors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use worldwire_core::json::Given;
use worldwire_core::{Diagnostic, Error, Reader, Result, Source, Trace};
use worldwire_uru::file::secure::Magic;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::Blob;

use crate::knowledge::Definitions;

/// The user's SDL descriptors, from `.sdl` files of a client or server.
///
/// Codecs and [`Opener`](worldwire_core::opener::Opener)s call [`read`](Self::read) and
/// [`encode`](Self::encode) for the bytes of a state.
#[derive(Clone, Debug, Default)]
pub struct UruDefinitions {
    /// The texts of all files. Later files can refer to them.
    texts: BTreeMap<String, Arc<str>>,
    descriptors: Descriptors,
    variables: BTreeSet<String>,
    /// The names that belong only to variables with plain values, never to nested states.
    simple: BTreeSet<String>,
}

impl UruDefinitions {
    /// Everything loaded so far.
    #[must_use]
    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// The variables that are shown as a record with a value.
    pub(crate) fn simple_variables(&self) -> impl Iterator<Item = &str> {
        self.simple.iter().map(String::as_str)
    }

    /// The names of all variables, as trees show them.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Reads a state into the current scope.
    ///
    /// # Errors
    /// Those of [`Blob::decode`]. Without any descriptors, the error says how to supply them.
    pub fn read<'n, T: Trace<'n>>(&'n self, reader: &mut Reader<'_, T>) -> Result<()> {
        let outcome = Blob::decode(&self.descriptors, reader);
        outcome.map(|_| ()).map_err(|error| self.advised(error))
    }

    /// Encodes a state from the JSON that shows it.
    pub fn encode<'j>(&self, json: impl Into<Given<'j>>) -> Result<Vec<u8>> {
        let blob = Blob::from_json(&self.descriptors, json);
        blob.and_then(|blob| blob.to_bytes()).map_err(|error| self.advised(error))
    }

    fn advised(&self, error: Error) -> Error {
        if self.descriptors.is_empty() {
            return error.hint("supply descriptors (.sdl files) with --data");
        }
        error
    }

    /// Adds files, which replace earlier ones of the same name.
    pub(crate) fn add<'f>(
        &mut self,
        files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    ) -> Vec<Diagnostic> {
        let (mut diagnostics, mut fresh) = (Vec::new(), Vec::new());
        for (path, bytes) in files {
            if Magic::detect(bytes).is_some() {
                let error = Source::new(path, "").error(0..0, "the file is encrypted");
                diagnostics
                    .push(error.help("decrypt it: worldwire decode uru.secure-file FILE --json"));
                continue;
            }
            fresh.push(path);
            // Keywords are ASCII, but comments in old files can have any encoding.
            self.texts.insert(path.to_owned(), String::from_utf8_lossy(bytes).into());
        }
        self.descriptors = Descriptors::load(self.texts.iter().map(|(name, text)| (name, &**text)));
        let variables = self.descriptors.iter().flat_map(|descriptor| {
            let labels = descriptor.variables().iter().map(|variable| variable.label().to_owned());
            labels.collect::<Vec<_>>()
        });
        self.variables = variables.collect();
        self.simple.clone_from(&self.variables);
        for descriptor in self.descriptors.iter() {
            for variable in descriptor.variables() {
                if variable.simple_type().is_none() {
                    self.simple.remove(variable.label());
                }
            }
        }
        let problems = self.descriptors.problems().iter();
        diagnostics.extend(problems.filter(|problem| fresh.contains(&problem.file())).cloned());
        diagnostics
    }
}

pub(super) fn states(definitions: &Definitions) -> &UruDefinitions {
    static NONE: LazyLock<UruDefinitions> = LazyLock::new(UruDefinitions::default);
    definitions.get_ref::<UruDefinitions>().unwrap_or_else(|| &NONE)
}

/// Whether a file holds descriptors, judging by its name.
pub(crate) fn is_descriptors(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("sdl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_refer_to_earlier_ones() {
        let mut uru = UruDefinitions::default();
        let one: (&str, &[u8]) = ("a/one.sdl", b"STATEDESC One { VERSION 1 VAR INT x[1] }");
        let two: (&str, &[u8]) =
            ("two.SDL", b"STATEDESC Two { VERSION 1 VAR $one x[] VAR HUE y[1] }");
        assert_eq!(uru.add([one]), []);
        assert_eq!(uru.add([two]).len(), 1);
        let two: (&str, &[u8]) = ("two.SDL", b"STATEDESC Two { VERSION 1 VAR $one x[] }");
        assert_eq!(uru.add([two]), []);
        assert_eq!(uru.descriptors().len(), 2);
        let secret: (&str, &[u8]) = ("three.sdl", b"whatdoyousee\x00\x00\x00\x00");
        assert!(uru.add([secret])[0].to_string().contains("encrypted"));
        assert!(is_descriptors("x/two.SDL") && !is_descriptors("sdl"));
    }
}
