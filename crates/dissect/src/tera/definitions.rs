//! What users have of TERA: definitions, maps of opcodes, and lists beside them.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use worldwire_core::{Diagnostic, Source};
use worldwire_tera::file::library::Known;
use worldwire_tera::file::{Bundle, CodeMap, Deprecated, Library, MapName, NameList, Revisions};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::{Patch, Problem, Set};

/// Definitions, maps and lists, and what the user says about the build.
///
/// | file | what it is |
/// | --- | --- |
/// | `NAME.VERSION.def` | a definition |
/// | `protocol.REVISION.map`, `sysmsg.VERSION.map` | names and numbers |
/// | `revisions.json` | which patch a revision is |
/// | `deprecated.json` | which versions of definitions are outdated |
/// | `integrity/PATCH.json` | which messages have counter and checksum |
/// | `data.json` | maps, definitions and deprecations in one |
#[derive(Default)]
pub struct TeraDefinitions {
    /// Everything that was loaded.
    library: Library,
    /// The texts of all definitions, for what comes later and includes them.
    texts: BTreeMap<String, Arc<str>>,
    /// What the user says about the build; it counts more than what clients say.
    known: Known,
    /// The builds that were asked for, by revision.
    builds: Mutex<BTreeMap<Option<u32>, Arc<Packets>>>,
    /// The one that blobs are read with.
    shared: OnceLock<Arc<Packets>>,
}

/// Builds without a map that are distinguished.
const MOST_BUILDS: usize = 64;

impl Clone for TeraDefinitions {
    fn clone(&self) -> Self {
        Self {
            library: self.library.clone(),
            texts: self.texts.clone(),
            known: self.known.clone(),
            builds: Mutex::default(),
            shared: OnceLock::new(),
        }
    }
}

impl fmt::Debug for TeraDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.texts.len();
        f.debug_struct("TeraDefinitions").field("files", &files).finish_non_exhaustive()
    }
}

impl TeraDefinitions {
    /// Everything that was loaded.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Says which build it is, or which patch, or which versions are to be used.
    pub fn set_known(&mut self, known: Known) {
        self.known = known;
        self.forget();
    }

    /// The messages of the build that a client names, made at the first question.
    #[must_use]
    pub fn packets(&self, revision: Option<u32>) -> Arc<Packets> {
        let make = || {
            let revision = self.known.revision.or(revision);
            Arc::new(Packets::new(&self.library, Known { revision, ..self.known.clone() }))
        };
        let Ok(mut builds) = self.builds.lock() else { return make() };
        let has_map = |revision| self.library.opcodes.contains_key(&revision);
        // A capture may name any number of builds that nobody has.
        if builds.len() >= MOST_BUILDS
            && !builds.contains_key(&revision)
            && revision.is_some_and(|revision| !has_map(revision))
        {
            drop(builds);
            return self.packets(None);
        }
        Arc::clone(builds.entry(revision).or_insert_with(make))
    }

    /// The messages of the build that the user named; of the only one there is a map of, if nobody
    /// named one.
    #[must_use]
    pub fn shared(&self) -> &Packets {
        self.shared.get_or_init(|| {
            let mut maps = self.library.opcodes.keys();
            let only = maps.next().copied().filter(|_| maps.next().is_none());
            self.packets(self.known.revision.or(only))
        })
    }

    /// The names of all messages that have a number or a definition.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mapped = self.library.opcodes.values().flat_map(CodeMap::iter).map(|(name, _)| name);
        let mut names: Vec<&str> = mapped.chain(self.library.definitions.names()).collect();
        names.extend(["C_CHECK_VERSION", "S_CHECK_VERSION"]);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Reads files over those that are there.
    pub(crate) fn add(&mut self, files: Vec<(String, Vec<u8>)>) -> Vec<Diagnostic> {
        let mut said: Vec<Diagnostic> = Vec::new();
        let mut fresh = Vec::new();
        for (path, bytes) in files {
            let name = file_name(&path);
            let Ok(text) = String::from_utf8(bytes) else {
                said.push(Source::new(&path, "").error(0..0, "wanted UTF-8 text"));
                continue;
            };
            let said_of = |problems: Vec<Problem>| problems.into_iter().map(|one| one.diagnostic);
            if name.ends_with(".def") {
                fresh.push(name.to_owned());
                self.texts.insert(name.to_owned(), text.into());
            } else if let Some(parsed) = MapName::parse(name) {
                let (map, problems) = CodeMap::parse(parsed.kind, &path, &text);
                said.extend(said_of(problems));
                if !self.library.add_map(name, map) {
                    let message =
                        "the file name of an opcode map needs a revision: protocol.387486.map";
                    said.push(Source::new(&path, "").error(0..0, message));
                }
            } else if name == "revisions.json" {
                let (revisions, problems) = Revisions::parse(&path, &text);
                self.library.revisions = revisions;
                said.extend(said_of(problems));
            } else if name == "deprecated.json" {
                let (deprecated, problems) = Deprecated::parse(&path, &text);
                self.library.deprecated = deprecated;
                said.extend(said_of(problems));
            } else if let Some(patch) = integrity_patch(&path) {
                let (names, problems) = NameList::parse_json(&path, &text);
                self.library.integrity.insert(patch, names);
                said.extend(said_of(problems));
            } else {
                let (bundle, problems) = Bundle::parse(&path, &text);
                said.extend(said_of(problems));
                self.library.opcodes.extend(bundle.maps);
                self.library.deprecated = bundle.deprecated;
                for (name, text) in bundle.files {
                    fresh.push(name.to_string());
                    self.texts.insert(name.into(), text.into());
                }
            }
        }
        let set: &mut Set = &mut self.library.definitions;
        set.update(self.texts.iter().map(|(name, text)| (name, &**text)));
        for problem in set.problems() {
            if fresh.iter().any(|name| name == problem.diagnostic.file()) {
                said.push(problem.diagnostic.clone());
            }
        }
        self.forget();
        said
    }

    fn forget(&mut self) {
        self.builds = Mutex::default();
        self.shared = OnceLock::new();
    }
}

/// Whether a file is one that TERA's definitions are made of, by its name.
pub(crate) fn is_of_library(path: &str) -> bool {
    let name = file_name(path);
    name.ends_with(".def")
        || MapName::parse(name).is_some()
        || matches!(name, "revisions.json" | "deprecated.json" | "data.json")
        || integrity_patch(path).is_some()
}

/// The patch that a list of messages with counter and checksum is for: `integrity/92.json`.
fn integrity_patch(path: &str) -> Option<u16> {
    let mut parts = path.rsplit(['/', '\\']);
    let number = parts.next()?.strip_suffix(".json")?;
    let patch: Patch = number.parse().ok()?;
    (parts.next()? == "integrity").then_some(patch.major)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_nobody_has_are_bounded() {
        let mut tera = TeraDefinitions::default();
        tera.add(vec![("protocol.7.map".to_owned(), b"S_A = 5\n".to_vec())]);
        let unknown: Vec<_> = (1000..2000).map(|number| tera.packets(Some(number))).collect();
        assert_eq!(unknown[0].known().revision, Some(1000));
        assert_eq!(unknown[999].known().revision, None);
        assert!(tera.packets(Some(7)).has_map());
        assert!(tera.builds.lock().unwrap().len() <= MOST_BUILDS + 2);
    }
}
