//! TERA's part of the user's definitions: messages, opcode maps and related lists.

use core::fmt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use worldwire_core::json::{self, Json};
use worldwire_core::{Diagnostic, Result, Source, listed};
use worldwire_tera::file::library::BuildFacts;
use worldwire_tera::file::{
    Bundle, CodeMap, Deprecated, Library, MapName, NameList, Revisions, text,
};
use worldwire_tera::frame::Header;
use worldwire_tera::integrity::COUNTER;
use worldwire_tera::message::{HeaderForm, Leniency};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::version::NotADefinition;
use worldwire_tera::schema::{FileName, Patch, Problem, Set};

use crate::knowledge::Definitions;

/// Definitions, maps and lists, and the user's choice of build.
///
/// | file | content |
/// | --- | --- |
/// | `NAME.VERSION.def` | a definition |
/// | `protocol.REVISION.map`, `sysmsg.VERSION.map` | names and numbers |
/// | `revisions.json` | the patch of each revision |
/// | `deprecated.json` | outdated versions of definitions |
/// | `integrity/PATCH.json` | messages with a counter and checksum |
/// | `data.json` | maps, definitions and deprecations in one file |
#[derive(Default)]
pub struct TeraDefinitions {
    /// Everything loaded so far.
    library: Library,
    /// The texts of all definitions. Later definitions can include them.
    texts: BTreeMap<String, Arc<str>>,
    /// The path of each file, by name.
    paths: BTreeMap<String, String>,
    /// The user's choice of build, which overrides what clients report.
    known: BuildFacts,
    /// The builds used so far, by revision.
    builds: Mutex<BTreeMap<Option<u32>, Arc<Packets>>>,
    /// The build used for blobs.
    shared: OnceLock<Arc<Packets>>,
    /// How strictly values in JSON must fit when messages are encoded.
    leniency: Leniency,
}

/// The maximum number of builds without a map that are remembered.
const MAX_BUILDS: usize = 64;

impl Clone for TeraDefinitions {
    fn clone(&self) -> Self {
        Self {
            library: self.library.clone(),
            texts: self.texts.clone(),
            paths: self.paths.clone(),
            known: self.known.clone(),
            builds: Mutex::default(),
            shared: OnceLock::new(),
            leniency: self.leniency,
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
    /// Everything loaded so far.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Sets the build, the patch, or the versions of definitions to use.
    pub fn set_known(&mut self, known: BuildFacts) {
        self.known = known;
        self.forget();
    }

    /// Sets how strictly values in JSON must fit when messages are encoded.
    pub fn set_leniency(&mut self, leniency: Leniency) {
        self.leniency = leniency;
    }

    /// The messages of the build that a client reports. Compiled on first use.
    #[must_use]
    pub fn packets(&self, revision: Option<u32>) -> Arc<Packets> {
        let make = || {
            let revision = self.known.revision.or(revision);
            Arc::new(Packets::new(&self.library, BuildFacts { revision, ..self.known.clone() }))
        };
        let Ok(mut builds) = self.builds.lock() else { return make() };
        let has_map = |revision| self.library.opcodes.contains_key(&revision);
        // A capture can report any number of nonexistent builds.
        if builds.len() >= MAX_BUILDS
            && !builds.contains_key(&revision)
            && revision.is_some_and(|revision| !has_map(revision))
        {
            drop(builds);
            return self.packets(None);
        }
        Arc::clone(builds.entry(revision).or_insert_with(make))
    }

    /// The messages of the build that the user chose. Without a choice, the messages of the only
    /// build with a map, if there is only one.
    #[must_use]
    pub fn shared(&self) -> &Arc<Packets> {
        self.shared.get_or_init(|| {
            let mut maps = self.library.opcodes.keys();
            let only = maps.next().copied().filter(|_| maps.next().is_none());
            self.packets(self.known.revision.or(only))
        })
    }

    /// Why blobs are decoded without an opcode map; `None` if there is one.
    #[must_use]
    pub fn unmapped(&self) -> Option<String> {
        if self.shared().has_map() {
            return None;
        }
        if self.library.opcodes.is_empty() {
            return None;
        }
        let maps = listed(self.library.opcodes.keys());
        Some(match self.known.revision {
            Some(revision) => format!(
                "there is no opcode map for revision {revision}, so messages have no names; maps \
                 are available for {maps}"
            ),
            None => format!(
                "there are opcode maps for {maps}; messages have no names until you \
                 choose one with --revision"
            ),
        })
    }

    /// The messages of the build that a JSON line names, if it has a map. Otherwise the messages
    /// used for blobs.
    fn packets_of(&self, json: &Json) -> Result<Arc<Packets>> {
        let revision = json.get("revision").filter(|revision| !revision.is_null());
        let revision = revision.map(|revision| json::integer(revision, "the revision of a client"));
        let revision = revision.transpose().map_err(|error| error.inside("revision"))?;
        let named = revision.map(|revision| self.packets(Some(revision)));
        Ok(named.filter(|named| named.has_map()).unwrap_or_else(|| Arc::clone(self.shared())))
    }

    /// Encodes a message from JSON; see [`Packets::encode_json`].
    pub(super) fn encode(&self, json: &Json) -> Result<Vec<u8>> {
        let packets = self.packets_of(json)?;
        packets.encode_json_with(json, self.leniency).map_err(|error| match self.unmapped() {
            Some(advice) if !packets.has_map() => error.hint(advice),
            _ => error,
        })
    }

    /// Remarks about a message to encode from JSON, which is a line of `dissect --json` or the
    /// input of `tera.packet`: its definition is deprecated, or its counter is missing.
    #[must_use]
    pub fn remarks_to_encode(&self, json: &Json) -> Vec<String> {
        let Ok(packets) = self.packets_of(json) else { return Vec::new() };
        let uncounted = packets.uncounted(json).map(|name| {
            format!(
                "{name} has no counter (\"$integrity\"); its messages are numbered from 1, and their \
                 checksum is 0"
            )
        });
        let fields = json.get("fields");
        let is_plain =
            fields.is_some_and(|fields| fields.get("$integrity").is_none_or(Json::is_null));
        let opcode = json.get("opcode").filter(|_| is_plain);
        let unused = opcode.and_then(|opcode| unused_list(&packets, opcode_of(&packets, opcode)?));
        deprecation(&packets, json).into_iter().chain(uncounted).chain(unused).collect()
    }

    /// Sets the counter of an encoded message, unless its JSON states one, to one more than that of
    /// the last message with the same opcode. `counters` holds the last counter of each opcode.
    pub fn number(&self, json: &Json, message: &mut [u8], counters: &mut HashMap<u16, u32>) {
        let Ok(packets) = self.packets_of(json) else { return };
        let Ok(Some(Header { opcode, .. })) = Header::peek(message) else { return };
        let is_sealed = packets.get(opcode).is_some_and(|one| one.form == HeaderForm::Integrity);
        let place = message.get_mut(COUNTER).filter(|_| is_sealed);
        let Some(place) = place.and_then(|place| place.first_chunk_mut()) else { return };
        let last = counters.entry(opcode).or_default();
        match packets.uncounted(json) {
            Some(_) => {
                *last = last.wrapping_add(1);
                *place = last.to_le_bytes();
            }
            None => *last = u32::from_le_bytes(*place),
        }
    }

    /// The names of all messages with an opcode or a definition.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mapped = self.library.opcodes.values().flat_map(CodeMap::iter).map(|(name, _)| name);
        let mut names: Vec<&str> = mapped.chain(self.library.definitions.names()).collect();
        names.extend(["C_CHECK_VERSION", "S_CHECK_VERSION"]);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Adds files, which replace earlier ones of the same name.
    pub(crate) fn add(&mut self, files: Vec<(String, Vec<u8>)>) -> Vec<Diagnostic> {
        let mut diagnostics: Vec<Diagnostic> = Vec::new();
        let mut fresh = Vec::new();
        for (path, bytes) in files {
            let name = file_name(&path);
            let (text, is_latin) = match text::read(bytes) {
                Ok(read) => read,
                Err(error) => {
                    diagnostics.push(Source::new(&path, "").error(0..0, error.to_string()));
                    continue;
                }
            };
            if is_latin {
                diagnostics.push(Source::new(&path, "").warning(0..0, text::NOT_UTF8));
            }
            let problems: Vec<Problem> = if name.ends_with(".def") || name.ends_with(".js") {
                fresh.push(name.to_owned());
                if let Some(other) = self.paths.insert(name.to_owned(), path.clone())
                    && other != path
                {
                    let message = format!("replaces another {name}: {other}");
                    diagnostics.push(Source::new(&path, "").warning(0..0, message));
                }
                self.texts.insert(name.to_owned(), text.into());
                Vec::new()
            } else if let Some(parsed) = MapName::parse(name) {
                let (map, problems) = CodeMap::parse(parsed.kind, &path, &text);
                diagnostics.extend(self.replaced(name, &path));
                if !self.library.add_map(name, map) {
                    let message = "the file name of an opcode map must contain a revision, as in \
                        protocol.387486.map";
                    diagnostics.push(Source::new(&path, "").error(0..0, message));
                }
                problems
            } else if name == "revisions.json" {
                diagnostics.extend(self.replaced(name, &path));
                let (revisions, problems) = Revisions::parse(&path, &text);
                self.library.revisions = revisions;
                problems
            } else if name == "deprecated.json" {
                diagnostics.extend(self.replaced(name, &path));
                let (deprecated, problems) = Deprecated::parse(&path, &text);
                self.library.deprecated = deprecated;
                problems
            } else if let Some(patch) = integrity_patch(&path) {
                diagnostics.extend(self.replaced(&format!("integrity/{patch}.json"), &path));
                let (names, problems) = NameList::parse_json(&path, &text);
                self.library.integrity.insert(patch, names);
                problems
            } else {
                let (bundle, problems) = Bundle::parse(&path, &text);
                for revision in bundle.maps.keys() {
                    diagnostics.extend(self.replaced(&format!("protocol.{revision}.map"), &path));
                }
                self.library.opcodes.extend(bundle.maps);
                self.library.deprecated = bundle.deprecated;
                for (name, text) in bundle.files {
                    fresh.push(name.to_string());
                    self.paths.remove(&*name);
                    self.texts.insert(name.into(), text.into());
                }
                problems
            };
            diagnostics.extend(problems.into_iter().map(|one| one.diagnostic));
        }
        let set: &mut Set = &mut self.library.definitions;
        set.update(self.texts.iter().map(|(name, text)| (name, &**text)));
        for Problem { diagnostic, .. } in set.problems() {
            if fresh.iter().any(|name| name == diagnostic.file()) {
                let diagnostic = diagnostic.clone();
                diagnostics.push(match self.paths.get(diagnostic.file()) {
                    Some(path) => diagnostic.in_file(path),
                    None => diagnostic,
                });
            }
        }
        self.forget();
        diagnostics
    }

    /// Records where a map or list is from. A build has only one of each, so a warning is returned
    /// if one from elsewhere is replaced.
    fn replaced(&mut self, name: &str, path: &str) -> Option<Diagnostic> {
        let other = self.paths.insert(name.to_owned(), path.to_owned());
        let other = other.filter(|other| other != path)?;
        let message = format!("completely replaces another {name}: {other}");
        Some(Source::new(path, "").warning(0..0, message))
    }

    fn forget(&mut self) {
        self.builds = Mutex::default();
        self.shared = OnceLock::new();
    }
}

/// TERA's part of the definitions.
pub(crate) fn library(definitions: &Definitions) -> &TeraDefinitions {
    static NONE: LazyLock<TeraDefinitions> = LazyLock::new(TeraDefinitions::default);
    definitions.get_ref::<TeraDefinitions>().unwrap_or_else(|| &NONE)
}

/// Whether a file belongs to TERA's definitions, judging by its name.
pub(crate) fn is_of_library(path: &str) -> bool {
    let name = file_name(path);
    name.ends_with(".def")
        || FileName::parse(name) == Err(NotADefinition::Program)
        || MapName::parse(name).is_some()
        || matches!(name, "revisions.json" | "deprecated.json" | "data.json")
        || integrity_patch(path).is_some()
}

/// The patch of an integrity list: 92 for `integrity/92.json`.
fn integrity_patch(path: &str) -> Option<u16> {
    let mut parts = path.rsplit(['/', '\\']);
    let number = parts.next()?.strip_suffix(".json")?;
    let patch: Patch = number.parse().ok()?;
    (parts.next()? == "integrity").then_some(patch.major)
}

/// A remark if a message's definition is deprecated.
fn deprecation(packets: &Packets, json: &Json) -> Option<String> {
    let name = packets.get(opcode_of(packets, json.get("opcode")?)?)?.name;
    let version = u32::try_from(json.get("version")?.as_u64()?).ok()?;
    let patch = packets.patch().filter(|_| packets.is_deprecated(name, version))?;
    Some(format!("{name}.{version} is deprecated at patch {patch}"))
}

/// The opcode that JSON states by number or name.
fn opcode_of(packets: &Packets, json: &Json) -> Option<u16> {
    match json.as_str() {
        Some(name) => packets.opcode(name),
        None => u16::try_from(json.as_u64()?).ok(),
    }
}

/// A remark if an integrity list has a message but is not used.
pub(super) fn unused_list(packets: &Packets, opcode: u16) -> Option<String> {
    let (patch, name) = (packets.unused_list(opcode)?, packets.get(opcode)?.name);
    let of = match packets.known().revision {
        Some(revision) => format!("revision {revision}"),
        None => "the client".to_owned(),
    };
    Some(format!(
        "{name} is on the integrity list of patch {patch}, but that list is not used because the \
         patch of {of} is unknown; supply --patch, or a revisions.json that lists it"
    ))
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    #[test]
    fn a_missing_choice_of_build_is_reported() {
        let mut tera = TeraDefinitions::default();
        assert_eq!(tera.unmapped(), None);
        let map = |revision: u32| (format!("protocol.{revision}.map"), b"S_A = 5\n".to_vec());
        tera.add(vec![map(7), map(8)]);
        assert!(tera.unmapped().is_some_and(|text| {
            text.contains("7, 8; messages have no names until you choose one")
        }));
        tera.set_known(BuildFacts { revision: Some(999), ..BuildFacts::default() });
        assert!(tera.unmapped().is_some_and(|text| text.contains("revision 999")));
        tera.set_known(BuildFacts { revision: Some(8), ..BuildFacts::default() });
        assert_eq!(tera.unmapped(), None);
    }

    #[test]
    fn same_named_files_are_reported_and_latin_1_is_read() {
        let mut tera = TeraDefinitions::default();
        let file = |path: &str, text: &[u8]| (path.to_owned(), text.to_vec());
        let diagnostics = tera.add(vec![
            file("a/S_A.1.def", b"int32 a # caf\xe9\n"),
            file("b/S_A.1.def", b"int32 a\nint32 b\n"),
        ]);
        let diagnostics: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(diagnostics.iter().any(|text| text.contains("Latin-1")), "{diagnostics:?}");
        assert!(
            diagnostics.iter().any(|text| text.contains("another S_A.1.def: a/S_A.1.def")),
            "{diagnostics:?}"
        );
        // Errors in files of the same name are distinguished by their paths.
        let wrong = tera.add(vec![file("b/S_W.1.def", b"uint a\n"), file("c/S_W.2.def", b"")]);
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert!(matches!(&wrong[..], [one] if one.starts_with("b/S_W.1.def:1:1: ")), "{wrong:?}");
        assert_eq!(
            tera.library().definitions.newest("S_A").map(|it| it.plan().min_length()),
            Some(8)
        );
    }

    #[test]
    fn a_second_map_for_a_build_is_reported() {
        let mut tera = TeraDefinitions::default();
        let mut diagnostics = |path: &str, text: &str| -> Vec<String> {
            let diagnostics = tera.add(vec![(path.to_owned(), text.into())]);
            diagnostics.iter().map(ToString::to_string).collect()
        };
        assert_eq!(diagnostics("a/protocol.7.map", "S_A = 5\n"), [""; 0]);
        // A reload, as with --watch, and another build.
        assert_eq!(diagnostics("a/protocol.7.map", "S_A = 5\n"), [""; 0]);
        assert_eq!(diagnostics("b/protocol.8.map", "S_A = 5\n"), [""; 0]);
        let second = diagnostics("b/protocol.7.map", "S_B = 6\n").concat();
        let expected = "b/protocol.7.map:1:1: warning: completely replaces another protocol.7.map: \
                        a/protocol.7.map";
        assert!(second.contains(expected), "{second}");
        let third = diagnostics("c/data.json", r#"{"maps": {"7": {"S_C": 7}}}"#).concat();
        assert!(third.contains("c/data.json") && third.contains("b/protocol.7.map"), "{third}");
        for list in ["integrity/93.json", "revisions.json", "deprecated.json"] {
            let text = if list.starts_with('i') { "[]" } else { "{}" };
            assert_eq!(diagnostics(&format!("a/{list}"), text), [""; 0]);
            let second = diagnostics(&format!("b/{list}"), text).concat();
            let expected = format!("replaces another {list}: a/{list}");
            assert!(second.contains(&expected), "{second}");
        }
        assert_eq!(tera.packets(Some(7)).opcode("S_B"), None);
        assert_eq!(tera.packets(Some(7)).opcode("S_C"), Some(7));
    }

    #[test]
    fn unknown_builds_are_bounded() {
        let mut tera = TeraDefinitions::default();
        tera.add(vec![("protocol.7.map".to_owned(), b"S_A = 5\n".to_vec())]);
        let unknown: Vec<_> = (1000..2000).map(|number| tera.packets(Some(number))).collect();
        assert_eq!(unknown[0].known().revision, Some(1000));
        assert_eq!(unknown[999].known().revision, None);
        assert!(tera.packets(Some(7)).has_map());
        assert!(tera.builds.lock().unwrap().len() <= MAX_BUILDS + 2);
    }

    /// Two builds that swap the opcodes of two messages.
    fn two_builds() -> TeraDefinitions {
        let mut tera = TeraDefinitions::default();
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        let diagnostics = tera.add(vec![
            file("protocol.7.map", "S_A = 5\nS_B = 6\n"),
            file("protocol.8.map", "S_A = 6\nS_B = 5\n"),
            file("S_A.1.def", "int32 a\n"),
            file("S_B.1.def", "byte b\n"),
            file("revisions.json", r#"{"7": "98", "8": "99"}"#),
            file("deprecated.json", r#"{"S_A": {"1": {"max": 98, "readable": true}}}"#),
        ]);
        assert_eq!(diagnostics, []);
        tera
    }

    #[test]
    fn a_line_selects_its_build() {
        let mut tera = two_builds();
        let line = |revision: Option<u32>| -> Json {
            json!({ "opcode": 5, "fields": {}, "revision": revision })
        };
        assert_eq!(tera.encode(&line(Some(7))).unwrap(), [8, 0, 5, 0, 0, 0, 0, 0]);
        assert_eq!(tera.encode(&line(Some(8))).unwrap(), [5, 0, 5, 0, 0]);
        for unknown in [None, Some(9)] {
            let error = tera.encode(&line(unknown)).unwrap_err().to_string();
            assert!(error.contains("opcode 5, which has no name"), "{error}");
            assert!(
                error.contains("7, 8; messages have no names until you choose one with --revision"),
                "{error}"
            );
        }
        tera.set_known(BuildFacts { revision: Some(8), ..BuildFacts::default() });
        assert_eq!(tera.encode(&line(Some(7))).unwrap(), [5, 0, 5, 0, 0]);
        let odd = json!({ "opcode": 5, "fields": {}, "revision": "x" });
        assert!(tera.encode(&odd).unwrap_err().to_string().contains("revision: wanted"));
    }

    #[test]
    fn leniency_applies_to_values() {
        let mut tera = two_builds();
        let json = json!({ "opcode": "S_A", "revision": 7, "fields": { "a": 1.75 } });
        assert!(tera.encode(&json).is_err());
        tera.set_leniency(Leniency::Lenient);
        assert_eq!(tera.clone().encode(&json).unwrap(), [8, 0, 5, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn deprecated_versions_are_reported() {
        let tera = two_builds();
        let line = |opcode: u16, revision: u32| {
            let line = json!({ "opcode": opcode, "version": 1, "revision": revision });
            tera.remarks_to_encode(&line)
        };
        assert_eq!(line(6, 8), ["S_A.1 is deprecated at patch 99"]);
        assert_eq!([line(5, 7), line(5, 8)], [[""; 0]; 2]);
    }

    #[test]
    fn a_missing_counter_is_reported() {
        let mut tera = TeraDefinitions::default();
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        let diagnostics = tera.add(vec![
            file("protocol.7.map", "C_A = 5\nS_A = 6\n"),
            file("C_A.1.def", "int32 a\n"),
            file("revisions.json", r#"{"7": "98"}"#),
            file("integrity/93.json", r#"["C_A"]"#),
        ]);
        assert_eq!(diagnostics, []);
        let diagnostics = |opcode: Json, fields: Json| {
            let line = json!({ "opcode": opcode, "fields": fields, "revision": 7 });
            tera.remarks_to_encode(&line)
        };
        let expected = "C_A has no counter (\"$integrity\"); its messages are numbered from 1, and \
                        their checksum is 0";
        for fields in [
            json!({ "a": 1 }),
            json!({ "$integrity": null }),
            json!({ "$integrity": { "checksum": 5 } }),
        ] {
            assert_eq!(diagnostics(json!("C_A"), fields.clone()), [expected], "{fields}");
            assert_eq!(diagnostics(json!(5), fields), [expected]);
        }
        let mut counters = HashMap::new();
        let mut numbered = |fields: Json| {
            let line = json!({ "opcode": "C_A", "fields": fields, "revision": 7 });
            let mut message = tera.encode(&line).unwrap();
            tera.number(&line, &mut message, &mut counters);
            message[4]
        };
        let seventh = || json!({ "$integrity": { "counter": 7, "checksum": 5 } });
        let all = [json!({}), json!({ "a": 1 }), seventh(), json!({})];
        assert_eq!(all.map(&mut numbered), [1, 2, 7, 8]);
        let mut plain = tera.encode(&json!({ "opcode": 6, "payload": { "$hex": "0102030405" } }));
        tera.number(&json!({ "opcode": 6, "revision": 7 }), plain.as_mut().unwrap(), &mut counters);
        assert_eq!(plain.unwrap()[4..], [1, 2, 3, 4, 5], "a message without a counter");
        // Neither a counter that was read nor a counter of 0 causes a remark.
        for counter in [0, 7] {
            let fields = json!({ "$integrity": { "counter": counter, "checksum": 5 } });
            assert_eq!(diagnostics(json!(5), fields), [""; 0]);
        }
        assert_eq!(diagnostics(json!(6), json!({})), [""; 0]);
        let payload = json!({ "opcode": 5, "payload": { "$hex": "" }, "revision": 7 });
        assert_eq!(tera.remarks_to_encode(&payload), [""; 0]);
        // Without a patch, it is unknown whether the list applies to the build.
        tera.add(vec![file("protocol.8.map", "C_A = 5\n")]);
        let diagnostics = |fields: Json| {
            tera.remarks_to_encode(&json!({ "opcode": "C_A", "fields": fields, "revision": 8 }))
        };
        let expected = "C_A is on the integrity list of patch 93, but that list is not used because \
                    the patch of revision 8 is unknown; supply --patch, or a revisions.json that lists it";
        assert_eq!(diagnostics(json!({ "a": 1 })), [expected]);
        assert_eq!(diagnostics(json!({ "$integrity": { "counter": 1 } })), [""; 0]);
    }
}
