//! Messages of a build, by their opcodes.
//!
//! A message on the wire contains only its opcode. [`Packets`] resolves a [`Library`] for one build
//! in advance: the name of each opcode, the definition that decodes it, and its header.
//!
//! ```
//! use worldwire_core::{Reader, Tree};
//! use worldwire_tera::file::library::BuildFacts;
//! use worldwire_tera::file::{CodeMap, Library};
//! use worldwire_tera::packet::Packets;
//! use worldwire_tera::schema::{ParseOptions, Set};
//!
//! let mut library = Library {
//!     definitions: Set::load([("S_LIFE.1.def", "uint32 hp\n")], ParseOptions::default()),
//!     ..Library::default()
//! };
//! library.add_map("protocol.7.map", CodeMap::from_pairs([("S_LIFE", 500)]));
//! let packets = Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() });
//!
//! let message = [8, 0, 0xf4, 1, 90, 0, 0, 0];
//! let mut reader = Reader::traced("message", &message, Tree::new());
//! packets.decode(&mut reader)?;
//! let tree = reader.finish();
//! assert_eq!(tree.find("fields.hp").unwrap().unsigned(), Some(90));
//!
//! let json = worldwire_core::json::json!({ "opcode": "S_LIFE", "fields": { "hp": 90 } });
//! assert_eq!(packets.encode_json(&json)?, message);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod detect;
mod encode;
mod system;

use std::collections::{HashMap, HashSet};

use worldwire_core::opener::Subject;
use worldwire_core::{Form, Names, Reader, Result, Side, Trace, Value};

use crate::file::library::{BuildFacts, CheckVersion, sender};
use crate::file::{CodeMap, Library};
use crate::frame::{FIXED, HEADER_BYTES, Header};
use crate::message::{Fault, Head, HeaderForm, Notes};
use crate::schema::{Definition, FileName, ParseOptions, Patch, Set};

pub use detect::{Detection, IntegrityDetector};

/// Every message of a build: names, definitions and headers, by opcode.
#[derive(Clone, Debug)]
pub struct Packets {
    known: BuildFacts,
    patch: Option<Patch>,
    has_map: bool,
    names: Names,
    /// The names of system messages.
    system: Names,
    by_opcode: HashMap<u16, Entry>,
    /// All definitions in force, by name and version.
    definitions: Vec<Definition>,
    /// Indices of the definitions that are deprecated at the patch, in ascending order.
    deprecated: Vec<usize>,
}

/// What is known about an opcode.
#[derive(Clone, Debug)]
struct Entry {
    name: Box<str>,
    form: HeaderForm,
    /// Indices of the definitions for reading and writing.
    read: Option<usize>,
    write: Option<usize>,
    /// The patch of the integrity list that names it, if the build's patch is not known.
    unused_list: Option<u16>,
}

/// What is known about an opcode, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'p> {
    /// The message's name.
    pub name: &'p str,
    /// Its header form.
    pub form: HeaderForm,
    /// The definition for reading it.
    pub definition: Option<&'p Definition>,
}

impl Packets {
    /// Resolves a library for a build; see [`Library::build`].
    #[must_use]
    pub fn new(library: &Library, known: BuildFacts) -> Self {
        let build = library.build(known);
        let patch = build.patch();
        let set = build.definitions();
        let mut definitions: Vec<Definition> = set.definitions().cloned().collect();
        definitions.extend(built_in(set));
        definitions.sort_by(|a, b| (a.name(), a.version()).cmp(&(b.name(), b.version())));
        let is_deprecated = |one: &Definition, patch: Patch| {
            !library.deprecated.may_write(one.name(), one.version(), patch.major)
        };
        let deprecated = (0..)
            .zip(&definitions)
            .filter(|(_, one)| patch.is_some_and(|patch| is_deprecated(one, patch)));
        let deprecated = deprecated.map(|(index, _)| index).collect();
        let place = |name: &str, chosen: Option<&Definition>| match chosen {
            Some(chosen) => find(&definitions, name, chosen.version()),
            None => {
                find(&definitions, name, 1).filter(|_| FIXED.iter().any(|fixed| fixed.1 == name))
            }
        };
        let fixed = FIXED.iter().filter_map(|(code, _)| Some((build.name(*code)?, *code)));
        let mapped = build.opcodes().into_iter().flat_map(|map| {
            map.iter().filter_map(|(name, code)| {
                let code = u16::try_from(code).ok()?;
                // If a code has several names, the last one wins.
                (map.name(code.into()) == Some(name)).then_some((name, code))
            })
        });
        let mut by_opcode = HashMap::new();
        for (name, code) in fixed.chain(mapped) {
            let side = sender(name).unwrap_or(Side::Server);
            let entry = Entry {
                name: name.into(),
                form: build.header(side, name),
                read: place(name, build.definition(name)),
                write: place(name, build.definition_to_write(name)),
                unused_list: build.unused_list(side, name),
            };
            by_opcode.insert(code, entry);
        }
        let pairs = by_opcode.iter().map(|(code, entry)| (i64::from(*code), entry.name.clone()));
        let names = Names::from_pairs(pairs);
        let system = build.system_messages().into_iter().flat_map(CodeMap::iter);
        let system = Names::from_pairs(system.map(|(name, code)| (i64::from(code), name.into())));
        let has_map = build.opcodes().is_some();
        let known = build.known().clone();
        Self { known, patch, has_map, names, system, by_opcode, definitions, deprecated }
    }

    /// What was known when the library was resolved.
    #[must_use]
    pub fn known(&self) -> &BuildFacts {
        &self.known
    }

    /// The version of the game, if known.
    #[must_use]
    pub fn patch(&self) -> Option<Patch> {
        self.patch
    }

    /// Whether the library has an opcode map for the build.
    #[must_use]
    pub fn has_map(&self) -> bool {
        self.has_map
    }

    /// The names of all opcodes.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The definitions in force at the build's patch, by name and version.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// All versions of a message's definition, in ascending order.
    #[must_use]
    pub fn versions(&self, name: &str) -> &[Definition] {
        let start = self.definitions.partition_point(|one| one.name() < name);
        let rest = self.definitions.get(start..).unwrap_or_default();
        let count = rest.partition_point(|one| one.name() == name);
        rest.get(..count).unwrap_or_default()
    }

    /// Whether a definition is deprecated at the build's patch, and therefore not used for writing.
    #[must_use]
    pub fn is_deprecated(&self, name: &str, version: u32) -> bool {
        find(&self.definitions, name, version).is_some_and(|index| self.rules_out(index))
    }

    fn rules_out(&self, index: usize) -> bool {
        self.deprecated.binary_search(&index).is_ok()
    }

    /// Warnings about a single message: it may have a counter and checksum although no list names
    /// it, or its definition is deprecated.
    #[must_use]
    pub fn remarks(&self, message: &[u8]) -> Vec<String> {
        let mut remarks = Vec::new();
        let Ok(Some(Header { opcode, .. })) = Header::peek(message) else { return remarks };
        let Some(Packet { name, form, definition: Some(definition) }) = self.get(opcode) else {
            return remarks;
        };
        let from_client = sender(name) != Some(Side::Server);
        let is_plain = form == HeaderForm::Plain && self.unused_list(opcode).is_none();
        if from_client && is_plain && detect::has_integrity(definition, message) {
            remarks.push(format!(
                "{name} fits its definition only with a counter and checksum; if it has them, \
                 list it in integrity/PATCH.json and supply the patch"
            ));
        }
        if let (Some(patch), true) = (self.patch, self.is_deprecated(name, definition.version())) {
            remarks.push(format!("{} is deprecated at patch {patch}", definition.title()));
        }
        remarks
    }

    /// The patch of the first integrity list that names a message, if no list is in use because the
    /// build's patch is not known. The message is then read without a counter and checksum.
    #[must_use]
    pub fn unused_list(&self, opcode: u16) -> Option<u16> {
        self.by_opcode.get(&opcode)?.unused_list
    }

    /// The names of messages that have a counter and checksum according to the build's list.
    pub(crate) fn integrity_names(&self) -> impl Iterator<Item = &str> {
        let sealed = |entry: &&Entry| entry.form == HeaderForm::Integrity;
        self.by_opcode.values().filter(sealed).map(|entry| &*entry.name)
    }

    /// The opcodes of the messages that have a counter and checksum according to the build's list,
    /// for [connections](crate::connection::Config::integrity).
    #[must_use]
    pub fn integrity(&self) -> HashSet<u16> {
        let sealed = self.by_opcode.iter().filter(|(_, entry)| entry.form == HeaderForm::Integrity);
        sealed.map(|(opcode, _)| *opcode).collect()
    }

    /// What is known about an opcode.
    #[inline]
    #[must_use]
    pub fn get(&self, opcode: u16) -> Option<Packet<'_>> {
        let Entry { name, form, read, .. } = self.by_opcode.get(&opcode)?;
        let definition = read.and_then(|index| self.definitions.get(index));
        Some(Packet { name, form: *form, definition })
    }

    /// The opcode of a message, by name.
    #[must_use]
    pub fn opcode(&self, name: &str) -> Option<u16> {
        self.names.number(name).and_then(|number| u16::try_from(number).ok())
    }

    /// Reads the one message that remains in a reader, including its header, as `length`, `opcode`,
    /// `version` (of the definition) and `fields`; or without a definition as `length`, `opcode`
    /// and `payload`. With these packets as the reader's [opener](worldwire_core::opener), a field
    /// that holds a system message becomes a record of its text, `bytes`, and its contents,
    /// `system`.
    pub fn decode<'d, 'n, T: Trace<'n>>(&'n self, reader: &mut Reader<'d, T>) -> Result<Notes> {
        self.decode_as(reader, None)
    }

    /// Like [`decode`](Self::decode), with the header form that [`IntegrityDetector`] detected.
    pub fn decode_as<'d, 'n, T: Trace<'n>>(
        &'n self,
        reader: &mut Reader<'d, T>,
        found: Option<HeaderForm>,
    ) -> Result<Notes> {
        let at = reader.position();
        let data = reader.rest();
        let Some(Header { opcode, .. }) =
            Header::peek(data).map_err(|error| error.based(at as u64))?
        else {
            return Err(Fault::Truncated.malformed(at, format!("{} bytes in all", data.len())));
        };
        let known = self.get(opcode);
        if T::ON {
            // `Plan::decode` reads the header again, since offsets count from its first byte.
            let mut place = reader.place();
            let start = place;
            let length = data.first_chunk().map_or(0, |word| u16::from_le_bytes(*word));
            place.byte += 2;
            let between = place;
            place.byte += 2;
            let trace = reader.trace_mut();
            trace.leaf("length", Value::Unsigned(length.into()), start, between);
            trace.leaf("opcode", Value::Enum(opcode.into(), &self.names), between, place);
            if let Some(definition) = known.and_then(|known| known.definition) {
                let version = Value::Unsigned(definition.version().into());
                trace.leaf("version", version, place, place);
            }
        }
        match known {
            Some(Packet { form, definition: Some(definition), .. }) => {
                let subject = subject(opcode, definition.name());
                let form = found.unwrap_or(form);
                reader.message(subject, |reader| {
                    reader.record("fields", |reader| definition.plan().decode(reader, form))
                })
            }
            _ => {
                Head::read(data, HeaderForm::Plain).map_err(|error| error.based(at as u64))?;
                reader.take(HEADER_BYTES)?;
                let left = reader.remaining();
                reader.span("payload", left, Form::Bytes)?;
                Ok(Notes::default())
            }
        }
    }
}

/// Identifies a message for openers of its fields.
fn subject(opcode: u16, name: &str) -> Subject<'_> {
    Subject { connection: "tera", number: opcode.into(), name, sender: None }
}

/// The definitions of the two messages that are the same in every build, unless the set has them.
fn built_in(set: &Set) -> impl Iterator<Item = Definition> {
    let texts = [("C_CHECK_VERSION", CheckVersion::DEFINITION), ("S_CHECK_VERSION", "bool ok\n")];
    texts.into_iter().filter(|(name, _)| set.newest(name).is_none()).filter_map(|(name, text)| {
        let file = FileName { name: name.into(), version: 1, platform: None };
        Definition::parse(&file, text, &ParseOptions::default()).ok()
    })
}

/// The index of a definition.
fn find(definitions: &[Definition], name: &str, version: u32) -> Option<usize> {
    let key = |one: &Definition| (one.name(), one.version()).cmp(&(name, version));
    definitions.binary_search_by(key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{NameList, Revisions};
    use crate::message::Leniency;
    use worldwire_core::Tree;
    use worldwire_core::json::{self, Json, json};

    fn packets() -> Packets {
        let files = [
            ("S_A.1.def", "int32 a\n"),
            ("S_A.2.def", "int32 a\nint32 b\n"),
            ("C_B.1.def", "int32 a ^90\nstring s\n"),
        ];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            revisions: Revisions::parse("r", r#"{"7": "eu-89.03"}"#).0,
            ..Library::default()
        };
        library.integrity.insert(80, ["C_B"].into_iter().collect::<NameList>());
        let map = CodeMap::from_pairs([("S_A", 5), ("C_B", 6), ("S_C", 7)]);
        library.add_map("protocol.7.map", map);
        Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() })
    }

    fn shown(packets: &Packets, message: &[u8]) -> String {
        let mut reader = Reader::traced("message", message, Tree::new()).opening(packets);
        let outcome = packets.decode(&mut reader);
        let tree = reader.conclude(outcome).0;
        assert!(tree.error().is_none() && tree.remarks().is_empty(), "{tree:?}");
        let mut out = String::new();
        json::write_children(Value::Record, tree.roots(), json::Style::default(), &mut out);
        out
    }

    fn json(packets: &Packets, message: &[u8]) -> String {
        let out = shown(packets, message);
        let read: Json = serde_json::from_str(&out).unwrap();
        assert_eq!(packets.encode_json(&read).unwrap(), message);
        out
    }

    #[test]
    fn messages_round_trip_through_json() {
        let packets = packets();
        assert!(packets.has_map());
        assert_eq!(packets.patch().map(|patch| patch.to_string()).as_deref(), Some("89.03"));
        let message = [12, 0, 5, 0, 1, 0, 0, 0, 2, 0, 0, 0];
        let expected = r#"{"length":12,"opcode":"S_A","version":2,"fields":{"a":1,"b":2}}"#;
        assert_eq!(json(&packets, &message), expected);
        assert_eq!(packets.integrity(), HashSet::from([6]));
        // The field added in patch 90 does not exist yet; the counter and checksum do.
        let message = [18, 0, 6, 0, 1, 0, 0, 0, 2, 0, 0, 0, 14, 0, b'x', 0, 0, 0];
        let text = json(&packets, &message);
        assert!(text.contains(r#""$integrity":{"counter":1"#), "{text}");
        assert!(text.contains(r#""s":"x""#), "{text}");
        // Without a definition, and without a name.
        assert_eq!(
            json(&packets, &[5, 0, 7, 0, 9]),
            r#"{"length":5,"opcode":"S_C","payload":{"$hex":"09"}}"#
        );
        assert_eq!(
            json(&packets, &[4, 0, 9, 0]),
            r#"{"length":4,"opcode":9,"payload":{"$hex":""}}"#
        );
    }

    fn with_system_messages() -> Packets {
        let files = [("S_SYSTEM_MESSAGE.1.def", "string message\n")];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("S_SYSTEM_MESSAGE", 5)]));
        let map = CodeMap::from_pairs([("SMT_LOOT", 42), ("SMT_GIFT", 44)]);
        library.add_map("sysmsg.7.map", map);
        Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() })
    }

    #[test]
    fn system_messages_are_split() {
        let packets = with_system_messages();
        let shown = |text: &str| {
            let message = json!({ "opcode": 5, "fields": { "message": text } });
            let bytes = packets.encode_json(&message).unwrap();
            let shown = json(&packets, &bytes);
            shown
                .split_once("\"system\":")
                .map(|(_, rest)| rest.strip_suffix("}}}").unwrap().to_owned())
        };
        let two = shown("@42\u{b}item\u{b}@item:8\u{b}odd");
        let wanted =
            r#"{"name":"SMT_LOOT","values":[{"key":"item","value":"@item:8"},{"key":"odd"}]}"#;
        assert_eq!(two.as_deref(), Some(wanted));
        assert_eq!(shown("@43").as_deref(), Some(r#"{"name":43,"values":[]}"#));
        let named = shown("@achievement:5\u{b}a\u{b}");
        let wanted = r#"{"name":"achievement:5","values":[{"key":"a","value":""}]}"#;
        assert_eq!(named.as_deref(), Some(wanted));
        assert_eq!(shown("plain"), None);
        // Texts that would not be reproduced exactly from their parsed form are kept verbatim.
        for odd in ["@", "@042\u{b}a\u{b}b", "@SMT_LOOT", "@\u{b}\u{b}", "@99999999999"] {
            assert!(shown(odd).is_some(), "{odd}");
        }
    }

    #[test]
    fn changed_system_messages_are_encoded_again() {
        let packets = with_system_messages();
        let encode = |message: Json| {
            let json = json!({ "opcode": 5, "fields": { "message": message } });
            packets.encode_json(&json)
        };
        let text = |message: Json| {
            let bytes = encode(message).unwrap();
            let units = bytes[6..bytes.len() - 2].as_chunks().0.iter().copied();
            String::from_utf16(&units.map(u16::from_le_bytes).collect::<Vec<_>>()).unwrap()
        };
        let changed = json!({
            "bytes": "@042\u{b}item\u{b}x",
            "system": { "name": "SMT_GIFT", "values": [{ "key": "item", "value": "y" }, { "key": "z" }] },
        });
        assert_eq!(text(changed), "@44\u{b}item\u{b}y\u{b}z");
        let same = json!({
            "bytes": "@042\u{b}item\u{b}x",
            "system": { "name": "SMT_LOOT", "values": [{ "key": "item", "value": "x" }] },
        });
        assert_eq!(text(same), "@042\u{b}item\u{b}x");
        assert_eq!(text(json!({ "bytes": "@1" })), "@1");
        assert_eq!(text(json!({ "system": { "name": 7 } })), "@7");
        assert_eq!(text(json!({ "system": { "name": "guild:3" } })), "@guild:3");
        let error_of = |message: Json| encode(message).unwrap_err().to_string();
        let error = error_of(json!({ "system": { "name": "SMT_LOT" } }));
        assert!(error.contains("did you mean \"SMT_LOOT\"?"), "{error}");
        let twice = json!([{ "key": "a" }, { "key": "b" }]);
        let error = error_of(json!({ "system": { "name": 7, "values": twice } }));
        assert!(error.contains("fields.message.system.values[0]: wanted"), "{error}");
        let error = error_of(json!({ "system": { "name": "a:\u{b}" } }));
        assert!(error.contains("vertical tab"), "{error}");
        assert!(encode(json!({ "bytes": "@1", "more": 1 })).is_err());
        // Nothing is dropped silently.
        let values = |pair: Json| {
            let system = json!({ "name": 7, "values": [pair] });
            error_of(json!({ "system": system }))
        };
        let error = values(json!({ "key": "a", "value": 5 }));
        assert!(error.contains("values[0].value: wanted a string, found 5"), "{error}");
        let error = values(json!({ "key": "a", "value": "5", "x": 1 }));
        assert!(error.contains("found \"x\""), "{error}");
        let odd = json!({ "bytes": 5, "system": { "name": 7, "values": [] } });
        assert!(error_of(odd).contains("bytes: wanted a string"));
        // Keys printed by earlier versions are ignored.
        let old = json!({ "opcode": 5, "fields": {
            "message": "@42", "$system": { "name": "SMT_LOOT", "values": [] } } });
        assert!(packets.encode_json(&old).is_ok());
    }

    #[test]
    fn unknown_names_and_versions_are_explained() {
        let packets = packets();
        let error_of = |json: &str| {
            let json: Json = serde_json::from_str(json).unwrap();
            packets.encode_json(&json).unwrap_err().to_string()
        };
        let text = error_of(r#"{"opcode":"S_AA","fields":{}}"#);
        assert!(text.contains("did you mean \"S_A\"?"), "{text}");
        let text = error_of(r#"{"opcode":"S_A","version":3,"fields":{}}"#);
        assert!(text.contains("none for S_A.3 (5)"), "{text}");
        let text = error_of(r#"{"opcode":9,"fields":{}}"#);
        assert!(text.contains("found opcode 9, which has no name"), "{text}");
        let text = error_of(r#"{"opcode":70000,"payload":{"$hex":""}}"#);
        assert!(text.contains("from 0 to 65535"), "{text}");
        let mut reader = Reader::new(&[9, 0, 5]);
        assert!(packets.decode(&mut reader).is_err());
    }

    #[test]
    fn another_version_can_be_encoded() {
        let packets = packets();
        let json: Json =
            serde_json::from_str(r#"{"opcode":5,"version":1,"fields":{"a":3}}"#).unwrap();
        assert_eq!(packets.encode_json(&json).unwrap(), [8, 0, 5, 0, 3, 0, 0, 0]);
        let versions: Vec<_> = packets.versions("S_A").iter().map(Definition::version).collect();
        assert_eq!(versions, [1, 2]);
        assert!(packets.versions("S_Z").is_empty());
    }

    #[test]
    fn deprecated_versions_are_decoded_but_not_encoded() {
        let files = [("S_A.1.def", "int32 a\n"), ("S_A.2.def", "byte a\n"), ("S_B.1.def", "")];
        let rules = r#"{"S_A": {"1": {"max": 80}, "2": {"max": 90, "readable": true}},
            "S_B": {"1": {}}}"#;
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            deprecated: crate::file::Deprecated::parse("d", rules).0,
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("S_A", 5), ("S_B", 6)]));
        let patch = Some(Patch::major(98));
        let known = BuildFacts { revision: Some(7), patch, ..BuildFacts::default() };
        let packets = Packets::new(&library, known);
        assert!(packets.is_deprecated("S_A", 2) && !packets.is_deprecated("S_A", 3));
        // Unchanged JSON from a capture yields the original bytes.
        json(&packets, &[5, 0, 5, 0, 7]);
        let encode = |json: &str, leniency| {
            packets.encode_json_with(&serde_json::from_str(json).unwrap(), leniency)
        };
        for (message, refused) in [
            (r#"{"opcode":"S_A","fields":{}}"#, "S_A.1, S_A.2"),
            (r#"{"opcode":"S_A","version":1,"fields":{}}"#, "S_A.1"),
            (r#"{"opcode":"S_B","version":1,"fields":{}}"#, "S_B.1"),
        ] {
            let error = encode(message, Leniency::Strict).unwrap_err().to_string();
            let wanted = format!("at patch 98, found only deprecated ones: {refused}");
            assert!(error.contains(&wanted), "{error}");
            assert!(encode(message, Leniency::Lenient).is_ok(), "{message}");
        }
    }

    #[test]
    fn servers_send_no_counters() {
        let integrity = json!({ "counter": 1, "checksum": 2 });
        let message = |opcode: &str| {
            let fields = json!({ "$integrity": integrity });
            packets().encode_json(&json!({ "opcode": opcode, "fields": fields }))
        };
        let error = message("S_A").unwrap_err().to_string();
        assert!(error.contains("fields.$integrity: wanted a server message"), "{error}");
        assert!(message("C_B").is_ok());
    }

    #[test]
    fn a_single_message_may_have_a_counter() {
        let packets = packets();
        let mut library = Library {
            definitions: Set::load([("C_B.1.def", "int32 b\n")], ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("C_B", 6)]));
        let unlisted =
            Packets::new(&library, BuildFacts { revision: Some(7), ..BuildFacts::default() });
        let message = [16, 0, 6, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        let remarks = unlisted.remarks(&message);
        assert!(
            remarks.len() == 1 && remarks[0].starts_with("C_B fits its definition only"),
            "{remarks:?}"
        );
        assert_eq!(unlisted.remarks(&[8, 0, 6, 0, 1, 0, 0, 0]), [""; 0]);
        assert_eq!(packets.remarks(&message), [""; 0]);
    }
}
