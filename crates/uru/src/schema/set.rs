//! All resolved descriptors of a shard or an age.

use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use worldwire_core::{Diagnostic, Error, nearest};

use super::definition::Definition;
use super::resolve::{Loading, Resolved, Versions};
use super::shape::{DescriptorLayout, Shape};
use super::types::fold;

/// Descriptors by name and version, loaded from any number of texts.
#[derive(Clone, Debug)]
pub struct Descriptors {
    arena: Arc<[DescriptorLayout]>,
    /// Case-folded names, ascending.
    names: Vec<(Box<str>, Versions)>,
    problems: Vec<Diagnostic>,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self { arena: Arc::new([]), names: Vec::new(), problems: Vec::new() }
    }
}

impl Descriptors {
    /// Loads texts and resolves all of them together. Each text comes with a name for diagnostics.
    #[must_use]
    pub fn load<N: AsRef<str>, T: AsRef<str>>(files: impl IntoIterator<Item = (N, T)>) -> Self {
        let files: Vec<(N, T)> = files.into_iter().collect();
        let files = files.iter().map(|(name, text)| (name.as_ref(), text.as_ref()));
        let mut loading = Loading::default();
        for (name, text) in files {
            loading.add(name, text);
        }
        let Resolved { layouts, names, problems } = loading.resolve();
        Self { arena: layouts.into(), names, problems }
    }

    /// Errors and warnings, file by file. A descriptor with an error is not in the set.
    #[must_use]
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The descriptor with this name and version.
    #[must_use]
    pub fn get(&self, name: &str, version: u16) -> Option<Descriptor> {
        let versions = self.versions_of(fold(name).as_bytes())?;
        let at = versions.binary_search_by_key(&version, |entry| entry.0).ok()?;
        versions.get(at).map(|entry| self.at(entry.1))
    }

    /// The descriptor with the highest version.
    #[must_use]
    pub fn newest(&self, name: &str) -> Option<Descriptor> {
        self.versions(name).next_back()
    }

    /// All versions of a name, ascending.
    pub fn versions(&self, name: &str) -> impl DoubleEndedIterator<Item = Descriptor> {
        let versions = self.versions_of(fold(name).as_bytes()).unwrap_or_default();
        versions.iter().map(|entry| self.at(entry.1))
    }

    /// All descriptors, by name and version.
    pub fn iter(&self) -> impl Iterator<Item = Descriptor> {
        let versions = self.names.iter().flat_map(|(_, versions)| versions);
        versions.map(|entry| self.at(entry.1))
    }

    /// The number of descriptors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arena.is_empty()
    }

    /// The descriptor that a blob refers to, by the bytes of its name.
    ///
    /// # Errors
    /// [`UnknownDescriptor`], which shows whether the name or only the version is unknown.
    pub fn find(&self, name: &[u8], version: u16) -> Result<Descriptor, UnknownDescriptor> {
        let index = self.index_of(&name.to_ascii_lowercase(), version);
        index.map(|index| self.at(index)).ok_or_else(|| self.unknown(name, version))
    }

    /// The shape of the descriptor that [`Self::find`] returns; it borrows from the set.
    pub(crate) fn shape_of(&self, mut name: Vec<u8>, version: u16) -> Option<Shape<'_>> {
        name.make_ascii_lowercase();
        Shape::new(&self.arena, self.index_of(&name, version)?)
    }

    /// The descriptor with this shape.
    pub(crate) fn descriptor_of(&self, shape: Shape<'_>) -> Descriptor {
        self.at(shape.index())
    }

    fn index_of(&self, folded: &[u8], version: u16) -> Option<usize> {
        let versions = self.versions_of(folded)?;
        let at = versions.binary_search_by_key(&version, |entry| entry.0).ok()?;
        versions.get(at).map(|entry| entry.1)
    }

    /// Explains why a lookup failed.
    #[cold]
    pub(crate) fn unknown(&self, name: &[u8], version: u16) -> UnknownDescriptor {
        let known = self.versions_of(&name.to_ascii_lowercase());
        let name = String::from_utf8_lossy(name).into_owned();
        if let Some(versions) = known {
            let known = versions.iter().map(|entry| entry.0).collect();
            return UnknownDescriptor { name, version: Some(version), known, near: None };
        }
        let near = nearest(&name, self.names.iter().map(|(name, _)| &**name));
        let near = near.and_then(|near| self.newest(near)).map(|near| near.name().to_owned());
        UnknownDescriptor { name, version: None, known: Vec::new(), near }
    }

    fn versions_of(&self, folded: &[u8]) -> Option<&[(u16, usize)]> {
        let at = self.names.binary_search_by(|(name, _)| name.as_bytes().cmp(folded)).ok()?;
        self.names.get(at).map(|(_, versions)| versions.as_slice())
    }

    fn at(&self, index: usize) -> Descriptor {
        Descriptor { arena: Arc::clone(&self.arena), index }
    }
}

/// A lookup of a descriptor that is not in the set. Clients crash on unknown descriptors, so a
/// server must not forward a state whose descriptor may be missing on clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDescriptor {
    /// The requested name.
    pub name: String,
    /// The requested version, if the name is known.
    pub version: Option<u16>,
    /// The known versions, ascending.
    pub known: Vec<u16>,
    /// The most similar known name.
    pub near: Option<String>,
}

impl UnknownDescriptor {
    fn wanted_and_found(&self) -> (String, String) {
        let Some(version) = self.version else {
            return ("a known descriptor".to_owned(), format!("{:?}", self.name));
        };
        let known: Vec<_> = self.known.iter().map(ToString::to_string).collect();
        let plural = if known.len() == 1 { "" } else { "s" };
        let wanted = format!("version{plural} {} of {}", known.join(", "), self.name);
        (wanted, version.to_string())
    }
}

impl fmt::Display for UnknownDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, found) = self.wanted_and_found();
        write!(f, "wanted {wanted}, found {found}")?;
        match &self.near {
            Some(near) => write!(f, "; did you mean {near:?}?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for UnknownDescriptor {}

impl From<UnknownDescriptor> for Error {
    fn from(unknown: UnknownDescriptor) -> Self {
        let (wanted, found) = unknown.wanted_and_found();
        let error = Self::malformed(wanted, found);
        match unknown.near {
            Some(near) => error.hint(format!("did you mean {near:?}?")),
            None => error,
        }
    }
}

/// One descriptor of a set, with everything it refers to. Cheap to clone; dereferences to its
/// [`Definition`].
#[derive(Clone)]
pub struct Descriptor {
    arena: Arc<[DescriptorLayout]>,
    index: usize,
}

impl Descriptor {
    /// Whether both are the same entry of the same set.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.arena, &other.arena)
    }

    /// The layout of its variables in blobs.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        Shape::at(&self.arena, self.index)
    }
}

impl Deref for Descriptor {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.shape().definition()
    }
}

impl PartialEq for Descriptor {
    /// Whether both encode to the same blobs and have the same defaults, including nested
    /// descriptors.
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
            && (Arc::ptr_eq(&self.arena, &other.arena) || self.arena == other.arena)
    }
}

impl Eq for Descriptor {}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Descriptor({} {})", self.name(), self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::VariableIndex;

    fn load(files: &[(&str, &str)]) -> (Descriptors, String) {
        let set = Descriptors::load(files.iter().copied());
        let lines: Vec<_> = set.problems().iter().map(ToString::to_string).collect();
        (set, lines.join("\n"))
    }

    #[test]
    fn names_resolve_to_the_newest_version_of_any_file() {
        let (set, load) = load(&[
            ("a.sdl", "STATEDESC A { VERSION 1 VAR $b one[1] VAR INT n[1] VAR $B two[] }"),
            ("b.sdl", "STATEDESC B { VERSION 2 VAR INT x[1] VAR INT y[1] }"),
            ("c.sdl", "STATEDESC b { VERSION 1 VAR INT x[1] }"),
        ]);
        assert_eq!(load, "");
        let a = set.get("a", 1).unwrap();
        let shape = a.shape();
        assert_eq!((shape.count(), shape.simple_count(), shape.nested_count()), (3, 1, 2));
        let (variable, inner) = shape.nested(1).unwrap();
        assert_eq!((variable.label(), inner.definition().version()), ("two", 2));
        assert_eq!(shape.index_of("N"), Some(VariableIndex::Simple(0)));
        assert_eq!(set.versions("B").map(|one| one.version()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn unresolvable_descriptors_are_reported_with_their_dependents() {
        let (set, load) = load(&[
            ("one.sdl", "STATEDESC a { VERSION 1 }\nSTATEDESC A { VERSION 1 VAR INT x[1] }"),
            ("two.sdl", "\nSTATEDESC a { VERSION 1 }\nSTATEDESC b { VERSION 1 VAR $nix n[1] }"),
            (
                "three.sdl",
                "STATEDESC c { VERSION 1 VAR $b n[] }\nSTATEDESC d { VERSION 1 VAR $c n[] }",
            ),
            (
                "four.sdl",
                "STATEDESC e { VERSION 1 VAR $e list[] }\nSTATEDESC f { VERSION 1 VAR $g x[2] }\n\
             STATEDESC g { VERSION 1 VAR INT i[1] VAR $f y[1] }\nSTATEDESC h { VERSION 1 VAR $f z[] }\n\
             STATEDESC i { VERSION 1 }\nSTATEDESC i { VERSION 2 VAR WHAT x[1] }\nSTATEDESC j { VERSION 1 VAR $i x[1] }",
            ),
        ]);
        insta::assert_snapshot!(load, @r"
        one.sdl:2:11: error: A version 1 is already defined in one.sdl:1
        two.sdl:2:11: error: a version 1 is already defined in one.sdl:1
        two.sdl:3:29: error: unknown descriptor nix
        three.sdl:1:29: error: refers to b, which has errors
        three.sdl:2:29: error: refers to c, which has errors
        four.sdl:2:29: error: endless records: nested variables with a fixed count form a cycle
        four.sdl:3:42: error: endless records: nested variables with a fixed count form a cycle
        four.sdl:4:29: error: refers to f, which has errors
        four.sdl:6:29: error: unknown type WHAT (did you mean QUAT?)
        four.sdl:7:29: error: refers to i, which has errors
        ");
        let names: Vec<_> = set.iter().map(|one| one.name().to_owned()).collect();
        assert_eq!(names, ["a", "e", "i"]);
    }

    #[test]
    fn unknown_names_and_versions_are_distinguished() {
        let (set, _) = load(&[("a", "STATEDESC Lever{VERSION 1} STATEDESC Lever{VERSION 3}")]);
        let shown =
            |name: &str, version| set.find(name.as_bytes(), version).unwrap_err().to_string();
        assert_eq!(shown("lever", 2), "wanted versions 1, 3 of lever, found 2");
        assert_eq!(
            shown("Levr", 1),
            "wanted a known descriptor, found \"Levr\"; did you mean \"Lever\"?"
        );
        assert!(set.find(b"LEVER", 3).is_ok());
    }
}
