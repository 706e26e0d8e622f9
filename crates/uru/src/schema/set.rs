//! All descriptors of a shard or an age, resolved.

use core::fmt;
use core::ops::Deref;
use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Diagnostic, Error, Severity, Source, nearest};

use super::definition::{Definition, Kind, Variable};
use super::parse::{Statement, parse};
use super::types::fold;

/// Descriptors by name and version, loaded from any number of texts.
#[derive(Clone, Debug)]
pub struct Descriptors {
    arena: Arc<[Layout]>,
    /// Folded names, ascending, with the versions of each, ascending, and where they are.
    names: Vec<(Box<str>, Vec<(u16, usize)>)>,
    problems: Vec<Diagnostic>,
}

/// What a blob needs to know of a descriptor.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    definition: Definition,
    /// Which variables are simple, in order.
    simple: Box<[usize]>,
    /// Which variables are nested, and the layout of their records.
    nested: Box<[(usize, usize)]>,
    /// Folded names of all variables, ascending, with where they are.
    names: Box<[(Box<str>, Place)]>,
}

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The index among the simple variables.
    Simple(usize),
    /// The index among the nested variables.
    Nested(usize),
}

impl Default for Descriptors {
    fn default() -> Self {
        Self { arena: Arc::new([]), names: Vec::new(), problems: Vec::new() }
    }
}

impl Descriptors {
    /// Reads texts, given with the names that people know them by, and resolves all of them
    /// together.
    #[must_use]
    pub fn load<N: AsRef<str>, T: AsRef<str>>(files: impl IntoIterator<Item = (N, T)>) -> Self {
        let files: Vec<(N, T)> = files.into_iter().collect();
        let files = files.iter().map(|(name, text)| (name.as_ref(), text.as_ref()));
        let mut loading = Loading::default();
        for (name, text) in files {
            loading.add(name, text);
        }
        loading.resolve()
    }

    /// What is wrong or odd, file by file. A descriptor with an error is not in the set.
    #[must_use]
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The descriptor of a name and version.
    #[must_use]
    pub fn get(&self, name: &str, version: u16) -> Option<Descriptor> {
        let versions = self.versions_of(fold(name).as_bytes())?;
        let at = versions.binary_search_by_key(&version, |entry| entry.0).ok()?;
        versions.get(at).map(|entry| self.at(entry.1))
    }

    /// The descriptor of the highest version.
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

    /// How many descriptors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arena.is_empty()
    }

    /// The descriptor that a blob names, by the bytes of the name.
    ///
    /// # Errors
    /// What is not known: the name or only the version.
    pub fn find(&self, name: &[u8], version: u16) -> Result<Descriptor, Unknown> {
        let index = self.index_of(name, version)?;
        Ok(self.at(index))
    }

    /// The shape of what [`Self::find`] finds; it lives as long as the set.
    pub(crate) fn shape_of(&self, name: &[u8], version: u16) -> Result<Shape<'_>, Unknown> {
        let index = self.index_of(name, version)?;
        Shape::new(&self.arena, index).ok_or_else(|| self.unknown(name))
    }

    /// The descriptor of a shape of this set.
    pub(crate) fn descriptor_of(&self, shape: Shape<'_>) -> Descriptor {
        self.at(shape.index)
    }

    fn index_of(&self, name: &[u8], version: u16) -> Result<usize, Unknown> {
        let folded = name.to_ascii_lowercase();
        let versions = self.versions_of(&folded).ok_or_else(|| self.unknown(name))?;
        match versions.binary_search_by_key(&version, |entry| entry.0) {
            Ok(at) => versions.get(at).map(|entry| entry.1).ok_or_else(|| self.unknown(name)),
            Err(_) => Err(Unknown {
                name: String::from_utf8_lossy(name).into_owned(),
                version: Some(version),
                known: versions.iter().map(|entry| entry.0).collect(),
                near: None,
            }),
        }
    }

    #[cold]
    fn unknown(&self, name: &[u8]) -> Unknown {
        let name = String::from_utf8_lossy(name).into_owned();
        let near = nearest(&name, self.names.iter().map(|(name, _)| &**name));
        let near = near.and_then(|near| self.newest(near)).map(|near| near.name().to_owned());
        Unknown { name, version: None, known: Vec::new(), near }
    }

    fn versions_of(&self, folded: &[u8]) -> Option<&[(u16, usize)]> {
        let at = self.names.binary_search_by(|(name, _)| name.as_bytes().cmp(folded)).ok()?;
        self.names.get(at).map(|(_, versions)| versions.as_slice())
    }

    fn at(&self, index: usize) -> Descriptor {
        Descriptor { arena: Arc::clone(&self.arena), index }
    }
}

/// A descriptor that is not in a set. Clients do not survive one, so a server must not forward a
/// state whose descriptor clients may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The name that was asked for.
    pub name: String,
    /// The version, when the name is known.
    pub version: Option<u16>,
    /// The versions that are known, ascending.
    pub known: Vec<u16>,
    /// A name that looks like it.
    pub near: Option<String>,
}

impl Unknown {
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

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, found) = self.wanted_and_found();
        write!(f, "wanted {wanted}, found {found}")?;
        match &self.near {
            Some(near) => write!(f, "; did you mean {near:?}?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Unknown {}

impl From<Unknown> for Error {
    fn from(unknown: Unknown) -> Self {
        let (wanted, found) = unknown.wanted_and_found();
        let error = Self::malformed(wanted, found);
        match unknown.near {
            Some(near) => error.hint(format!("did you mean {near:?}?")),
            None => error,
        }
    }
}

/// One descriptor of a set, with everything that it refers to. Cheap to clone; dereferences to its
/// [`Definition`].
#[derive(Clone)]
pub struct Descriptor {
    arena: Arc<[Layout]>,
    index: usize,
}

impl Descriptor {
    /// Whether both are the same one of the same set.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.arena, &other.arena)
    }

    /// What a blob needs to know of it.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        Shape { arena: &self.arena, index: self.index }
    }
}

impl Deref for Descriptor {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.shape().definition()
    }
}

impl PartialEq for Descriptor {
    /// Whether blobs of both have the same form and the same defaults, nested ones included.
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

/// How the variables of a descriptor are counted in blobs: simple and nested ones apart.
#[derive(Clone, Copy)]
pub struct Shape<'s> {
    arena: &'s [Layout],
    index: usize,
}

impl<'s> Shape<'s> {
    fn new(arena: &'s [Layout], index: usize) -> Option<Self> {
        (index < arena.len()).then_some(Self { arena, index })
    }

    fn layout(self) -> &'s Layout {
        // Indices are only ever made of the arena they go with.
        &self.arena[self.index]
    }

    /// The descriptor.
    #[must_use]
    pub fn definition(self) -> &'s Definition {
        &self.layout().definition
    }

    /// How many simple variables there are.
    #[must_use]
    pub fn simple_count(self) -> usize {
        self.layout().simple.len()
    }

    /// How many nested variables there are.
    #[must_use]
    pub fn nested_count(self) -> usize {
        self.layout().nested.len()
    }

    /// How many variables there are in all.
    #[must_use]
    pub fn count(self) -> usize {
        self.definition().variables().len()
    }

    /// A variable by its index among the simple ones.
    #[must_use]
    pub fn simple(self, index: usize) -> Option<&'s Variable> {
        let at = self.layout().simple.get(index)?;
        self.definition().variables().get(*at)
    }

    /// A variable by its index among the nested ones, and the shape of its records.
    #[must_use]
    pub fn nested(self, index: usize) -> Option<(&'s Variable, Self)> {
        let (at, target) = self.layout().nested.get(index)?;
        Some((self.definition().variables().get(*at)?, Self::new(self.arena, *target)?))
    }

    /// Where a variable is, by its name in any case.
    pub(crate) fn place(self, name: &str) -> Option<Place> {
        self.place_of_folded(&fold(name))
    }

    pub(crate) fn place_of_folded(self, folded: &str) -> Option<Place> {
        let names = &self.layout().names;
        let at = names.binary_search_by(|(name, _)| (**name).cmp(folded)).ok()?;
        names.get(at).map(|(_, place)| *place)
    }

    /// The name of a variable that looks like this one.
    pub(crate) fn nearest(self, name: &str) -> Option<&'s str> {
        nearest(name, self.definition().variables().iter().map(Variable::label))
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = self.definition();
        write!(f, "Shape({} {})", definition.name(), definition.version())
    }
}

/// Texts that were read and are not resolved yet.
#[derive(Default)]
struct Loading<'t> {
    sources: Vec<Source<'t>>,
    statements: Vec<(usize, Statement)>,
    problems: Vec<Vec<Diagnostic>>,
    /// By folded name and version: the statement that came first.
    first: BTreeMap<(Box<str>, u16), usize>,
    /// Whether a statement stays.
    good: Vec<bool>,
}

impl<'t> Loading<'t> {
    fn add(&mut self, name: &str, text: &'t str) {
        let parsed = parse(name, text);
        let file = self.sources.len();
        self.sources.push(Source::new(name, text));
        self.problems.push(parsed.problems);
        for statement in parsed.statements {
            let definition = &statement.definition;
            let key = (fold(&definition.name), definition.version);
            if let Some((first_file, first)) =
                self.first.get(&key).and_then(|at| self.statements.get(*at))
            {
                let message = format!(
                    "{} version {} is already defined in {}:{}",
                    definition.name,
                    definition.version,
                    self.sources.get(*first_file).map_or("", Source::name),
                    self.sources.get(*first_file).map_or(0, |s| s.line(first.name_span.start)),
                );
                self.say(file, statement.name_span.clone(), message);
                continue;
            }
            self.first.insert(key, self.statements.len());
            self.good.push(statement.good);
            self.statements.push((file, statement));
        }
    }

    fn say(&mut self, file: usize, span: core::ops::Range<usize>, message: String) {
        if let (Some(source), Some(problems)) =
            (self.sources.get(file), self.problems.get_mut(file))
        {
            problems.push(source.error(span, message));
        }
    }

    /// The statement of the newest version of a name.
    fn newest(&self, name: &str) -> Option<usize> {
        let folded = fold(name);
        let range = (folded.clone(), 0)..=(folded, u16::MAX);
        self.first.range(range).next_back().map(|(_, at)| *at)
    }

    fn resolve(mut self) -> Descriptors {
        let targets = self.targets();
        self.remove_dependents(&targets);
        self.remove_endless(&targets);
        let mut moved = vec![None; self.statements.len()];
        let mut next = 0;
        for (place, good) in moved.iter_mut().zip(&self.good) {
            if *good {
                *place = Some(next);
                next += 1;
            }
        }
        let mut arena = Vec::with_capacity(next);
        let mut names: BTreeMap<Box<str>, Vec<(u16, usize)>> = BTreeMap::new();
        for (at, (_, statement)) in self.statements.into_iter().enumerate() {
            let Some(Some(place)) = moved.get(at) else { continue };
            let definition = statement.definition;
            let versions = names.entry(fold(&definition.name)).or_default();
            versions.push((definition.version, *place));
            let target = |target: Option<usize>| moved.get(target?).copied().flatten();
            let targets = targets.get(at).into_iter().flatten();
            arena.push(Layout::new(definition, targets.filter_map(|one| target(*one)).collect()));
        }
        let mut names: Vec<_> = names.into_iter().collect();
        for (_, versions) in &mut names {
            versions.sort_unstable();
        }
        let mut problems: Vec<_> = self.problems.into_iter().flatten().collect();
        sort_within_files(&mut problems);
        Descriptors { arena: arena.into(), names, problems }
    }

    /// For every statement the one that each nested variable refers to.
    fn targets(&mut self) -> Vec<Vec<Option<usize>>> {
        let mut all = Vec::with_capacity(self.statements.len());
        let mut missing = Vec::new();
        for (at, (file, statement)) in self.statements.iter().enumerate() {
            let variables = statement.definition.variables.iter().zip(&statement.type_spans);
            let mut targets = Vec::new();
            for (variable, span) in variables {
                let Kind::Nested(name) = &variable.kind else { continue };
                let target = self.newest(name);
                if target.is_none() {
                    missing.push((at, *file, span.clone(), name.clone()));
                }
                targets.push(target);
            }
            all.push(targets);
        }
        for (at, file, span, name) in missing {
            if let Some(good) = self.good.get_mut(at) {
                *good = false;
            }
            self.say(file, span, format!("there is no descriptor {name}"));
        }
        all
    }

    /// Removes what refers to a statement that is not good.
    fn remove_dependents(&mut self, targets: &[Vec<Option<usize>>]) {
        let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); targets.len()];
        for (at, targets) in targets.iter().enumerate() {
            for target in targets.iter().flatten() {
                if let Some(list) = dependents.get_mut(*target) {
                    list.push(at);
                }
            }
        }
        let bad = self.good.iter().enumerate().filter(|(_, good)| !**good);
        let mut queue: Vec<usize> = bad.map(|(at, _)| at).collect();
        while let Some(at) = queue.pop() {
            for dependent in dependents.get(at).into_iter().flatten() {
                let Some(good) = self.good.get_mut(*dependent) else { continue };
                if !core::mem::take(good) {
                    continue;
                }
                queue.push(*dependent);
                let name = self.statements.get(at).map_or("", |(_, s)| &s.definition.name);
                let message = format!("refers to {name}, which has errors");
                self.blame(*dependent, targets, at, message);
            }
        }
    }

    /// Removes what would hold itself without end: its records have at least one record of its own.
    fn remove_endless(&mut self, targets: &[Vec<Option<usize>>]) {
        let fixed: Vec<Vec<usize>> = targets
            .iter()
            .zip(&self.statements)
            .map(|(targets, (_, statement))| {
                let variables = statement.definition.variables.iter();
                let nested = variables.filter(|one| one.simple_type().is_none()).zip(targets);
                nested.filter(|(one, _)| one.count.is_some()).filter_map(|(_, at)| *at).collect()
            })
            .collect();
        // Those that nothing waits for end; what is left goes round in circles.
        let mut waiting: Vec<usize> = fixed.iter().map(Vec::len).collect();
        let mut holders: Vec<Vec<usize>> = vec![Vec::new(); fixed.len()];
        for (at, held) in fixed.iter().enumerate() {
            for one in held {
                if let Some(list) = holders.get_mut(*one) {
                    list.push(at);
                }
            }
        }
        let ended = waiting.iter().enumerate().filter(|(_, count)| **count == 0);
        let mut queue: Vec<usize> = ended.map(|(at, _)| at).collect();
        while let Some(at) = queue.pop() {
            for holder in holders.get(at).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(*holder) {
                    *count -= 1;
                    if *count == 0 {
                        queue.push(*holder);
                    }
                }
            }
        }
        for at in 0..waiting.len() {
            let endless = waiting.get(at).is_some_and(|count| *count > 0);
            let Some(good) = self.good.get_mut(at).filter(|good| endless && **good) else {
                continue;
            };
            *good = false;
            let held = fixed.get(at).into_iter().flatten();
            let mut inner = held.filter(|one| waiting.get(**one).is_some_and(|count| *count > 0));
            if let Some(one) = inner.next().copied() {
                let message = "records without end: a nested variable of a fixed count leads back";
                self.blame(at, targets, one, message.to_owned());
            }
        }
        // What holds one of them in a list has to go as well.
        self.remove_dependents(targets);
    }

    /// Says something about the first variable of a statement that refers to another one.
    fn blame(&mut self, at: usize, targets: &[Vec<Option<usize>>], on: usize, message: String) {
        let Some((file, statement)) = self.statements.get(at) else { return };
        let variables = statement.definition.variables.iter().zip(&statement.type_spans);
        let nested = variables.filter(|(variable, _)| variable.simple_type().is_none());
        let mut nested = nested.zip(targets.get(at).into_iter().flatten());
        let span = nested.find(|(_, target)| **target == Some(on)).map(|((_, span), _)| span);
        let (file, span) = (*file, span.unwrap_or(&statement.name_span).clone());
        self.say(file, span, message);
    }
}

impl Layout {
    fn new(definition: Definition, targets: Vec<usize>) -> Self {
        let (mut simple, mut nested, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut targets = targets.into_iter();
        for (at, variable) in definition.variables.iter().enumerate() {
            let place = match variable.kind {
                Kind::Simple(_) => {
                    simple.push(at);
                    Place::Simple(simple.len() - 1)
                }
                Kind::Nested(_) => {
                    let Some(target) = targets.next() else { continue };
                    nested.push((at, target));
                    Place::Nested(nested.len() - 1)
                }
            };
            names.push((variable.folded.clone(), place));
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let (simple, nested, names) = (simple.into(), nested.into(), names.into());
        Self { definition, simple, nested, names }
    }
}

/// Problems of one file, which stand together, by line and column; errors of a line first.
fn sort_within_files(problems: &mut [Diagnostic]) {
    for file in problems.chunk_by_mut(|one, other| one.file() == other.file()) {
        file.sort_by_key(|one| (one.line(), one.column(), one.severity() == Severity::Warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(files: &[(&str, &str)]) -> (Descriptors, String) {
        let set = Descriptors::load(files.iter().copied());
        let lines: Vec<_> = set.problems().iter().map(ToString::to_string).collect();
        (set, lines.join("\n"))
    }

    #[test]
    fn names_resolve_to_the_newest_version_of_any_file() {
        let (set, said) = said(&[
            ("a.sdl", "STATEDESC A { VERSION 1 VAR $b one[1] VAR INT n[1] VAR $B two[] }"),
            ("b.sdl", "STATEDESC B { VERSION 2 VAR INT x[1] VAR INT y[1] }"),
            ("c.sdl", "STATEDESC b { VERSION 1 VAR INT x[1] }"),
        ]);
        assert_eq!(said, "");
        let a = set.get("a", 1).unwrap();
        let shape = a.shape();
        assert_eq!((shape.count(), shape.simple_count(), shape.nested_count()), (3, 1, 2));
        let (variable, inner) = shape.nested(1).unwrap();
        assert_eq!((variable.label(), inner.definition().version()), ("two", 2));
        assert_eq!(shape.place("N"), Some(Place::Simple(0)));
        assert_eq!(set.versions("B").map(|one| one.version()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn what_cannot_be_resolved_is_named_with_what_refers_to_it() {
        let (set, said) = said(&[
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
        insta::assert_snapshot!(said, @r"
        one.sdl:2:11: error: A version 1 is already defined in one.sdl:1
        two.sdl:2:11: error: a version 1 is already defined in one.sdl:1
        two.sdl:3:29: error: there is no descriptor nix
        three.sdl:1:29: error: refers to b, which has errors
        three.sdl:2:29: error: refers to c, which has errors
        four.sdl:2:29: error: records without end: a nested variable of a fixed count leads back
        four.sdl:3:42: error: records without end: a nested variable of a fixed count leads back
        four.sdl:4:29: error: refers to f, which has errors
        four.sdl:6:29: error: unknown type WHAT (did you mean QUAT?)
        four.sdl:7:29: error: refers to i, which has errors
        ");
        let names: Vec<_> = set.iter().map(|one| one.name().to_owned()).collect();
        assert_eq!(names, ["a", "e", "i"]);
    }

    #[test]
    fn what_is_not_known_is_told_apart() {
        let (set, _) = said(&[("a", "STATEDESC Lever{VERSION 1} STATEDESC Lever{VERSION 3}")]);
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
