//! Reading type lists: JSON, as a stream, so that a 14 MB list never becomes a tree of JSON values,
//! and XML.

mod cursor;
mod read;
mod xml;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use worldwire_core::{Error, Limits, Result};

use super::{Choices, Class, ClassNote, Classes, Container, Property, PropertyKind};
use crate::{djb2_31, property_hash, string_id};
#[cfg(feature = "fuzzing")]
pub(crate) use read::SMALL_BYTES;

/// Notes beyond this number are dropped.
pub(crate) const MAX_NOTES: usize = 200;
/// Notes quote at most this many characters of a name: names of template classes are long.
const MAX_SHOWN: usize = 200;

/// Reads type lists and compiles them to [`Classes`]: JSON of versions 1 and 2, of Wizard101 and
/// Pirate101, and the XML that a client itself can write. If several lists contain the same class,
/// the last one wins.
///
/// In version 1, the keys of the JSON object are the names of classes. In version 2 it has
/// `"version": 2` and `classes`, an object whose keys are hashes; each class has its `name`.
#[derive(Debug, Default)]
pub struct TypeLists {
    /// The classes in input order, with their lists. `None` replaces a class that was repeated
    /// later.
    classes: Vec<Option<(Arc<str>, Class)>>,
    by_name: HashMap<Arc<str>, usize, RandomState>,
    texts: Texts,
    notes: Vec<ClassNote>,
}

/// Texts that are shared, because lists repeat them.
type Texts = HashSet<Arc<str>, RandomState>;

/// A class from one list.
struct FoundClass {
    class: Class,
    /// Whether the hashes of the class's properties are the computed ones.
    is_verified: bool,
}

impl TypeLists {
    /// A reader without lists.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a list. Notes and errors refer to it as `name`.
    ///
    /// # Errors
    /// `Malformed` if the text is not a type list of a known version (with the line) or contains no
    /// classes; a limit error if the file is too large.
    pub fn add(&mut self, name: &str, json: &[u8]) -> Result<()> {
        let max = Limits::DEFAULT.file_bytes;
        if json.len() as u64 > max {
            let error = Error::limit("file bytes", max, json.len() as u64);
            return Err(error.about(name.to_owned()));
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        self.texts.reserve(likely_properties(json.len()));
        let (found, misfiled) = match xml::is_xml(json) {
            true => xml::read(json, &mut self.texts).map(|found| (found, Vec::new())),
            false => read::read(json, &mut self.texts),
        }
        .map_err(|error| error.about(name.to_owned()))?;
        let list: Arc<str> = name.into();
        if found.is_empty() {
            let error = Error::malformed("", "the type list has no classes");
            return Err(error.about(name.to_owned()));
        }
        for (at, key) in misfiled {
            let class = found.get(at).map(|found| &found.class);
            if let Some(class) = class.filter(|_| self.notes.len() < MAX_NOTES) {
                let text =
                    format!("its hash is {}, but it is listed under {}", class.hash, shown(&key));
                let (list, class) = (Arc::clone(&list), Arc::clone(&class.name));
                self.notes.push(ClassNote { list, class, text });
            }
        }
        for FoundClass { class, is_verified } in found {
            check(&list, &class, is_verified, &mut self.notes);
            let at = self.classes.len();
            let old = self.by_name.insert(Arc::clone(&class.name), at);
            if let Some(old) = old.and_then(|old| self.classes.get_mut(old)) {
                *old = None;
            }
            self.classes.push(Some((Arc::clone(&list), class)));
        }
        Ok(())
    }

    /// Compiles the lists read so far.
    #[must_use]
    pub fn compile(self) -> Classes {
        let Self { classes, mut notes, .. } = self;
        let mut by_hash: HashMap<u32, Arc<str>, RandomState> = HashMap::default();
        let classes = classes.into_iter().flatten().map(|(list, class)| {
            let old = by_hash.insert(class.hash, Arc::clone(&class.name));
            if let Some(old) = old.filter(|_| notes.len() < MAX_NOTES) {
                let old = shown(&old);
                let text =
                    format!("hash {} is already used by {old}; the later class wins", class.hash);
                notes.push(ClassNote { list, class: Arc::clone(&class.name), text });
            }
            class
        });
        let classes = classes.collect();
        Classes::assemble(classes, notes)
    }
}

/// The number of different properties to expect in a list of this many bytes, so that memory is
/// allocated less often.
fn likely_properties(bytes: usize) -> usize {
    // The usual size of a property, and the maximum number to expect.
    const BYTES: usize = 100;
    const MAX: usize = 1 << 13;
    (bytes / BYTES).min(MAX)
}

/// A property with only a name. Its position in the list is its ID unless the list gives one.
fn blank(name: Arc<str>, position: usize) -> Property {
    Property {
        index: 0,
        kind: PropertyKind::Object,
        class: None,
        base: None,
        name,
        type_name: Arc::default(),
        id: u32::try_from(position).unwrap_or(u32::MAX),
        offset: 0,
        flags: 0,
        container: Container::Static,
        dynamic: false,
        singleton: false,
        pointer: false,
        hash: 0,
        choices: None,
    }
}

/// Derives missing values from the others, unless the list states them. Returns whether the hash is
/// the computed one.
fn finish(property: &mut Property, hash: Option<u32>, dynamic: Option<bool>) -> bool {
    let Property { name, type_name, flags, container, .. } = &*property;
    let computed = property_hash(type_name.as_bytes(), name.as_bytes());
    let hash = hash.unwrap_or(computed);
    let dynamic = dynamic.unwrap_or(*container != Container::Static);
    let kind = PropertyKind::of(type_name, *flags);
    (property.hash, property.dynamic, property.kind) = (hash, dynamic, kind);
    property.choices = property.choices.take().map(|choices| fitting(choices, kind));
    hash == computed
}

/// Adapts options to a property of this kind.
fn fitting(choices: Arc<Choices>, kind: PropertyKind) -> Arc<Choices> {
    match kind.whole() {
        Some(true) => Arc::new(Arc::unwrap_or_clone(choices).signed()),
        _ => choices,
    }
}

/// Verifies the hash of the class and, unless `is_verified`, those of its properties. Pirate101
/// uses a different hash function for its classes.
fn check(list: &Arc<str>, class: &Class, is_verified: bool, notes: &mut Vec<ClassNote>) {
    if notes.len() >= MAX_NOTES {
        return;
    }
    // Notes that would be dropped are never built: names can be long, and each may occur in
    // thousands of notes.
    let mut note = |text: &dyn Fn() -> String| {
        if notes.len() < MAX_NOTES {
            let text = text();
            notes.push(ClassNote { list: Arc::clone(list), class: Arc::clone(&class.name), text });
        }
    };
    let hash = string_id(class.name.as_bytes());
    if class.hash != hash && class.hash != djb2_31(class.name.as_bytes()) {
        note(&|| format!("hash {}, computed {hash}", class.hash));
    }
    let is_unique = class.by_hash.len() == class.properties.len();
    for property in class.properties.iter().filter(|_| !(is_verified && is_unique)) {
        let hash = property_hash(property.type_name.as_bytes(), property.name.as_bytes());
        if property.hash != hash {
            let name = || shown(&property.name);
            note(&|| format!("{}: hash {}, computed {hash}", name(), property.hash));
        }
        if let Some(other) = class.by_hash(property.hash).filter(|other| *other != property) {
            let (one, other) = (&other.name, &property.name);
            note(&|| format!("{} and {} have the same hash", shown(one), shown(other)));
        }
    }
    for pair in class.properties.windows(2) {
        if let [one, other] = pair
            && one.id == other.id
        {
            let text = "have the same ID, so their order is a guess";
            note(&|| format!("{} and {} {text}", shown(&one.name), shown(&other.name)));
        }
    }
}

/// A name for display, truncated if it is too long.
fn shown(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}...", name.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ContentHash;
    use super::read::SMALL_BYTES;
    use super::*;

    fn compile(json: &str) -> Result<Classes> {
        let mut lists = TypeLists::new();
        lists.add("list.json", json.as_bytes())?;
        Ok(lists.compile())
    }

    #[test]
    fn both_versions_and_irregular_lists_are_read() {
        let v1 = r#"{"class A": {"bases": ["PropertyClass"], "hash": 7, "properties": {
            "m_b": {"type": "enum E", "id": 1, "flags": 3223322655, "container": "Heap",
                "dynamic": true, "hash": 2, "enum_options":
                {"MINUS": -1, "TEXT": "5", "BIG": "4294967295", "__DEFAULT": "TEXT"}},
            "m_a": {"type": "class A*", "id": 0, "flags": 1, "hash": 1}}}}"#;
        let classes = compile(v1).unwrap();
        let class = classes.find("A").unwrap();
        let [a, b] = class.properties() else { panic!("two properties") };
        assert_eq!((&*a.name, a.kind(), a.class()), ("m_a", PropertyKind::Object, Some(0)));
        assert!(b.is_list());
        assert_eq!((b.container.name(), b.flags), ("Heap", 3_223_322_655));
        let choices = b.choices.as_ref().unwrap();
        assert_eq!(choices.number("MINUS"), Some(u32::MAX));
        assert_eq!(choices.number("TEXT"), Some(5));
        assert_eq!(choices.default.as_deref(), Some("TEXT"));
        assert_eq!(choices.number("__DEFAULT"), None);
        assert_eq!(classes.notes().len(), 3);
        assert_eq!(class.by_hash(2).unwrap().index(), 1);
    }

    #[test]
    fn errors_name_the_class_and_the_property() {
        let error_of = |json: &str| compile(json).unwrap_err().to_string();
        let list = r#"{"version": 2, "classes": {"7": {"name": "class A", "bases": [], "hash": 7,
            "properties": {"m_a": {"type": "int", "id": 0, "hash": 1}, "m_b": {"id": 1}}}}}"#;
        let error = error_of(list);
        assert!(
            error.contains("missing field `type`") && error.ends_with(", in class A, m_b"),
            "{error}"
        );
        let error =
            error_of(r#"{"class A": {"hash": 7, "properties": {}}, "class B": {"hash": []}}"#);
        assert!(error.ends_with(", in class B"), "{error}");
        assert!(
            error_of(r#"{"version": 1, "classes": {}}"#).contains("lists of version 1 do not have")
        );
        let error = error_of(r#"{"version": 3, "classes": {}}"#);
        assert!(error.contains("version 3; only versions 1 and 2 are known"), "{error}");
    }

    #[test]
    fn repeated_properties_are_read_as_if_they_were_new() {
        let properties = [
            // A search for the end of a property finds the braces in these texts.
            r#""m_open": {"type": "class A{", "id": 0, "flags": 31, "hash": 5}"#,
            r#""m_close": {"type": "class }B", "id": 1, "flags": 31, "hash": 5}"#,
            r#""m_both": {"type": "class {{}", "id": 2, "hash": 6}"#,
            r#""m_enum": {"enum_options": {"A": 1, "B": "A"}, "id": 3, "type": "enum E"}"#,
            r#""m_more": {"enum_options": {"A": 1, "B": "A"}, "id": 4, "type": "int"}"#,
            r#""m_deep": {"extra": {"x": {"y": {}}}, "id": 5, "type": "int", "hash": 404989859}"#,
            // The ID of this property is its position.
            r#""m_at": {"type": "int"}"#,
            r#""m_\u0061t": {"type": "int", "id": 7}"#,
        ];
        let list = |blanks: &dyn Fn(usize) -> usize| {
            let mut json = String::from("{");
            for turn in 0..6 {
                let name = format!("{}\"class C{turn}\": ", if turn == 0 { "" } else { "," });
                json.push_str(&name);
                json.push_str("{\"hash\": 1, \"properties\": {");
                let rotated = properties.iter().cycle().skip(turn).take(properties.len());
                for (at, property) in rotated.enumerate() {
                    json.push_str(if at == 0 { "" } else { ",\n" });
                    json.push_str(property);
                    json.insert_str(json.len() - 1, &" ".repeat(blanks(turn)));
                }
                json.push_str("}, \"bases\": []}");
            }
            // In small lists, properties are not compared.
            json + &" ".repeat(SMALL_BYTES) + "}"
        };
        let (same, different) = (list(&|_| 0), list(&|turn| turn));
        let (repeated, new) = (compile(&same).unwrap(), compile(&different).unwrap());
        assert_eq!(repeated.all(), new.all());
        assert_eq!(repeated.notes(), new.notes());
        assert_eq!(repeated.all().iter().map(|class| class.properties().len()).sum::<usize>(), 48);
        let deep = repeated.find("C5").and_then(|class| class.property("m_deep")).unwrap();
        assert_eq!((deep.id, deep.kind()), (5, PropertyKind::I32));
    }

    #[test]
    fn the_end_of_a_damaged_list_is_found() {
        let list = "{\"class A\": {\"hash\": 1, \"bases\": [\"B\"], \"properties\":\n  {\"m_a\": {\"type\": \"int\", \"id\": 0}, \"m_b\": {\"type\": \"int\", \"id\": 0}}}}";
        for end in 1..list.len() {
            let error = compile(&list[..end]).unwrap_err().to_string();
            let (line, column) = match list[..end].rsplit_once('\n') {
                Some((_, last)) => (2, last.len()),
                None => (1, end),
            };
            let place = format!("invalid JSON at {line}:{column}: EOF while parsing");
            assert!(error.contains(&place), "{end}: {error}");
        }
        let size = list.len();
        for (at, damage) in [(1, "1"), (10, ","), (22, ":"), (size - 1, "]"), (size, "x")] {
            let damaged = [&list[..at], damage, &list[at..]].concat();
            let error = compile(&damaged).unwrap_err().to_string();
            let expected = serde_json::from_str::<serde_json::Value>(&damaged).unwrap_err();
            let place = format!("at {}:{}: ", expected.line(), expected.column());
            assert!(error.contains(&place), "{at}: {error}, not {expected}");
        }
        let error = TypeLists::new().add("a", b"{\"class A\":\n {\"\xff\"").unwrap_err();
        assert_eq!(error.to_string(), "a: not a type list: invalid JSON at 2:3: not UTF-8 text");
    }

    #[test]
    fn properties_that_share_an_id_are_noted() {
        let list = r#"{"class A": {"hash": 173502657, "properties": {
            "m_a": {"type": "int", "id": 1, "hash": 0}, "m_b": {"type": "int", "id": 1, "hash": 0}}}}"#;
        let notes =
            compile(list).unwrap().notes().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(
            notes.iter().any(|note| note.contains("m_a and m_b have the same ID")),
            "{notes:?}"
        );
    }

    #[test]
    fn pirate101_classes_use_the_other_hash() {
        let list = |name: &str, hash: u32| {
            format!("{{\"{name}\": {{\"bases\": [], \"hash\": {hash}, \"properties\": {{}}}}}}")
        };
        let name = "class Ship";
        for hash in [string_id(name.as_bytes()), djb2_31(name.as_bytes())] {
            let classes = compile(&list(name, hash)).unwrap();
            assert!(classes.notes().is_empty());
            assert_eq!(classes.by_hash(hash), classes.find("Ship"));
        }
        assert_eq!(compile(&list(name, 5)).unwrap().notes().len(), 1);
    }

    #[test]
    fn later_lists_win() {
        let mut lists = TypeLists::new();
        let list = |hash: u32| {
            format!("{{\"class A\": {{\"bases\": [], \"hash\": {hash}, \"properties\": {{}}}}}}")
        };
        lists.add("a", list(1).as_bytes()).unwrap();
        lists.add("b", list(2).as_bytes()).unwrap();
        let classes = lists.compile();
        assert_eq!(classes.all().len(), 1);
        assert!(classes.by_hash(1).is_none());
        assert_eq!(&*classes.by_hash(2).unwrap().name, "class A");
    }

    #[test]
    fn the_later_of_two_classes_with_the_same_hash_wins() {
        let list = |classes: &[(&str, u32)]| {
            let class = |(name, hash): &(&str, u32)| {
                format!(
                    "\"class {name}\": {{\"bases\": [], \"hash\": {hash}, \"properties\": {{}}}}"
                )
            };
            format!("{{{}}}", classes.iter().map(class).collect::<Vec<_>>().join(","))
        };
        let mut lists = TypeLists::new();
        lists.add("a", list(&[("X", 5), ("Y", 6)]).as_bytes()).unwrap();
        lists.add("b", list(&[("X", 6)]).as_bytes()).unwrap();
        let classes = lists.compile();
        assert_eq!(&*classes.by_hash(6).unwrap().name, "class X");
        assert_eq!(&*classes.find("Y").unwrap().name, "class Y");
        let reported = classes.notes().last().unwrap().to_string();
        assert_eq!(reported, "b: class X: hash 6 is already used by class Y; the later class wins");
        let content = ContentHash([0; 32]);
        let again = Classes::from_cache(&classes.to_cache(content), content).unwrap();
        assert_eq!(&*again.by_hash(6).unwrap().name, "class X");
        // A class whose hash changes frees its old hash for others.
        let mut lists = TypeLists::new();
        lists.add("a", list(&[("X", 5), ("Y", 6)]).as_bytes()).unwrap();
        lists.add("b", list(&[("Y", 5), ("X", 6)]).as_bytes()).unwrap();
        let classes = lists.compile();
        assert_eq!(&*classes.by_hash(5).unwrap().name, "class Y");
        assert!(!classes.notes().iter().any(|note| note.text.contains("is that of")));
    }

    #[test]
    fn a_list_without_classes_is_refused() {
        for none in ["{}", "{\"version\": 2}", "{\"version\": 2, \"classes\": {}}"] {
            let error = compile(none).unwrap_err().to_string();
            assert_eq!(error, "list.json: the type list has no classes");
        }
    }

    #[test]
    fn other_versions_and_other_files_are_refused() {
        let wrong = [
            "{\"version\": 3, \"classes\": {}}",
            "{\"classes\": {}}",
            "[]",
            "{\"class A\": {\"bases\": []}}",
            "{\"class A\": {\"hash\": 1, \"properties\": {\"m\": {\"id\": 0}}}}",
            "{\"class A\": {\"hash\": 4294967296}}",
        ];
        for wrong in wrong {
            let error = compile(wrong).unwrap_err().to_string();
            assert!(error.starts_with("list.json: not a type list: "), "{error}");
        }
        for (wrong, problem) in [
            (
                "[]",
                "expected a JSON object of classes, by name or under \"classes\", found an array",
            ),
            ("key = 1", "invalid JSON at 1:1: expected value"),
            (
                "{\"class A\": {\"hash\": []}}",
                "expected a 32-bit number, found an array at 1:23, in class A",
            ),
        ] {
            let error = compile(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("list.json: not a type list: {problem}"));
        }
    }
}
