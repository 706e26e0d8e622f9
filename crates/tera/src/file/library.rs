//! Everything that was loaded, and how a definition is chosen from it for each message.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use worldwire_core::{Result, Side};

use super::{CodeMap, Deprecated, MapKind, MapName, NameList, Revisions};
use crate::frame::FIXED;
use crate::message::{HeaderForm, Item, View};
use crate::schema::{Definition, FileName, ParseOptions, Patch, Plan, Set};

/// The definitions, maps and lists that have been loaded.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The definitions.
    pub definitions: Set,
    /// The opcodes of builds, by revision.
    pub opcodes: BTreeMap<u32, CodeMap>,
    /// The numbers of system messages, by revision or patch.
    pub system_messages: BTreeMap<Box<str>, CodeMap>,
    /// The patches of revisions.
    pub revisions: Revisions,
    /// The deprecated versions of definitions.
    pub deprecated: Deprecated,
    /// The lists of messages with an integrity header, each by the first patch it applies to.
    pub integrity: BTreeMap<u16, NameList>,
}

/// What is known about a build before its definitions are chosen.
#[derive(Clone, Debug, Default)]
pub struct BuildFacts {
    /// The revision of the client.
    pub revision: Option<u32>,
    /// The version of the game, if it differs from the revision's.
    pub patch: Option<Patch>,
    /// Versions of definitions that the user chose.
    pub pins: BTreeMap<Box<str>, u32>,
}

/// The two revisions that a client names in `C_CHECK_VERSION`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckVersion {
    /// The revision that its opcodes belong to.
    pub protocol: Option<u32>,
    /// The revision of its system messages.
    pub system_messages: Option<u32>,
}

impl CheckVersion {
    /// The definition of the message, the same in every build.
    pub(crate) const DEFINITION: &'static str = "array version\n- int32 index\n- int32 value\n";

    /// Reads the revisions from the message.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut found = Self::default();
        let Some(plan) = Self::plan() else { return Ok(found) };
        let view = View::new(plan, message, HeaderForm::Plain)?;
        let versions = view.fields().get("version")?.and_then(Item::list);
        for version in versions.into_iter().flatten() {
            let Some(version) = version?.record() else { continue };
            let number = |item: Option<Item<'_, '_, '_>>| u32::try_from(item?.signed()?).ok();
            let value = number(version.get("value")?);
            match number(version.get("index")?) {
                Some(0) => found.protocol = value,
                Some(1) => found.system_messages = value,
                _ => {}
            }
        }
        Ok(found)
    }

    /// The layout of the message, compiled once.
    fn plan() -> Option<&'static Plan> {
        static DEFINITION: LazyLock<Option<Definition>> = LazyLock::new(|| {
            let file = FileName { name: "C_CHECK_VERSION".into(), version: 1, platform: None };
            Definition::parse(&file, CheckVersion::DEFINITION, &ParseOptions::default()).ok()
        });
        DEFINITION.as_ref().map(Definition::plan)
    }
}

impl Library {
    /// Adds a map by the name of its file; `false` when the name is not that of a map.
    pub fn add_map(&mut self, file: &str, map: CodeMap) -> bool {
        let Some(MapName { kind, version }) = MapName::parse(file) else { return false };
        match (kind, version.parse()) {
            (MapKind::Protocol, Ok(revision)) => {
                self.opcodes.insert(revision, map);
                true
            }
            (MapKind::Protocol, Err(_)) => false,
            (MapKind::SystemMessages, _) => {
                self.system_messages.insert(version, map);
                true
            }
        }
    }

    /// The choices for a build. Definitions whose layout may depend on the patch are compiled for
    /// it.
    #[must_use]
    pub fn build(&self, known: BuildFacts) -> Build<'_> {
        let revision = known.revision.and_then(|number| self.revisions.get(number));
        let patch = known.patch.or_else(|| revision.map(|revision| revision.patch));
        let opcodes = known.revision.and_then(|number| self.opcodes.get(&number));
        let sysmsg = |version: &str| self.system_messages.get(version);
        let system_messages = known
            .revision
            .and_then(|number| sysmsg(&number.to_string()))
            .or_else(|| revision.and_then(|revision| sysmsg(&revision.system_messages())))
            .or_else(|| patch.and_then(|patch| sysmsg(&patch.major.to_string())));
        let integrity = patch.and_then(|patch| {
            self.integrity.range(..=patch.major).next_back().map(|(_, names)| names)
        });
        let definitions = match patch {
            Some(patch) => self.definitions.at(patch),
            None => Cow::Borrowed(&self.definitions),
        };
        let (deprecated, lists) = (&self.deprecated, &self.integrity);
        Build { definitions, deprecated, lists, known, patch, opcodes, system_messages, integrity }
    }
}

/// A library as seen by one client build.
#[derive(Clone, Debug)]
pub struct Build<'l> {
    /// The definitions as of its patch.
    definitions: Cow<'l, Set>,
    deprecated: &'l Deprecated,
    /// All lists of messages with an integrity header.
    lists: &'l BTreeMap<u16, NameList>,
    known: BuildFacts,
    patch: Option<Patch>,
    opcodes: Option<&'l CodeMap>,
    system_messages: Option<&'l CodeMap>,
    integrity: Option<&'l NameList>,
}

impl<'l> Build<'l> {
    /// What was known when the choices were made.
    #[must_use]
    pub fn known(&self) -> &BuildFacts {
        &self.known
    }

    /// The version of the game, if known.
    #[must_use]
    pub fn patch(&self) -> Option<Patch> {
        self.patch
    }

    /// The definitions as of its patch.
    #[must_use]
    pub fn definitions(&self) -> &Set {
        &self.definitions
    }

    /// The opcode map, if it has been loaded.
    #[must_use]
    pub fn opcodes(&self) -> Option<&'l CodeMap> {
        self.opcodes
    }

    /// The system message map, if it has been loaded.
    #[must_use]
    pub fn system_messages(&self) -> Option<&'l CodeMap> {
        self.system_messages
    }

    /// The name of an opcode. Two opcodes are the same in every build and need no map.
    #[must_use]
    pub fn name(&self, opcode: u16) -> Option<&'l str> {
        let fixed = || FIXED.iter().find(|(code, _)| *code == opcode).map(|(_, name)| *name);
        self.opcodes.and_then(|map| map.name(opcode.into())).or_else(fixed)
    }

    /// The opcode of a message, by name.
    #[must_use]
    pub fn opcode(&self, name: &str) -> Option<u16> {
        let mapped = self.opcodes.and_then(|map| map.code(name));
        let fixed = || FIXED.iter().find(|(_, fixed)| *fixed == name).map(|(code, _)| *code);
        mapped.and_then(|code| u16::try_from(code).ok()).or_else(fixed)
    }

    /// The definition for reading a message: the pinned version; otherwise the highest version that
    /// may be read at the patch and is not marked as being for later ones; otherwise the highest
    /// that may be read.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.choose(name, false)
    }

    /// The definition for writing a message.
    #[must_use]
    pub(crate) fn definition_to_write(&self, name: &str) -> Option<&Definition> {
        self.choose(name, true)
    }

    fn choose(&self, name: &str, write: bool) -> Option<&Definition> {
        let set = self.definitions();
        if let Some(version) = self.known.pins.get(name) {
            return set.get(name, *version);
        }
        let Some(patch) = self.patch.map(|patch| patch.major) else { return set.newest(name) };
        let rules = self.deprecated;
        let good = |definition: &&Definition| {
            let version = definition.version();
            if write {
                rules.may_write(name, version, patch)
            } else {
                rules.may_read(name, version, patch)
            }
        };
        let early =
            |definition: &&Definition| definition.since().is_none_or(|since| since <= patch);
        let newest = set.versions(name).rev().filter(good).find(early);
        newest.or_else(|| set.versions(name).rev().find(good))
    }

    /// The header form of a message.
    #[must_use]
    pub fn header(&self, side: Side, name: &str) -> HeaderForm {
        let listed = self.integrity.is_some_and(|names| names.contains(name));
        if side == Side::Client && listed { HeaderForm::Integrity } else { HeaderForm::Plain }
    }

    /// The patch of the first integrity list that names a message, if no list is in use because the
    /// patch is not known.
    #[must_use]
    pub fn unused_list(&self, side: Side, name: &str) -> Option<u16> {
        let is_open = self.patch.is_none() && side == Side::Client;
        let lists = self.lists.iter().filter(|_| is_open);
        lists.filter(|(_, names)| names.contains(name)).map(|(patch, _)| *patch).next()
    }
}

/// The sender of a message, judging by its name.
#[must_use]
pub fn sender(name: &str) -> Option<Side> {
    let (prefix, _) = name.split_once('_')?;
    match prefix {
        "C" | "CU" => Some(Side::Client),
        "S" | "SU" => Some(Side::Server),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Rule;
    use crate::packet::Packets;
    use crate::schema::Dialect;

    fn library() -> Library {
        let files = [
            ("S_A.1.def", "int32 a\n"),
            ("S_A.2.def", "# majorPatchVersion >= 90\nint32 a\nint32 b\n"),
            ("S_A.3.def", "# majorPatchVersion >= 100\nint32 a\nint32 b\nint32 c\n"),
            ("C_B.1.def", ""),
        ];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            revisions: Revisions::parse("r", r#"{"363037": "eu-93.04", "7": "80/x"}"#).0,
            ..Library::default()
        };
        assert!(library.add_map("protocol.363037.map", CodeMap::from_pairs([("S_A", 5)])));
        assert!(library.add_map("sysmsg.93.map", CodeMap::from_pairs([("SMT_A", 1)])));
        assert!(library.add_map("sysmsg.x.map", CodeMap::from_pairs([("SMT_B", 1)])));
        assert!(!library.add_map("README.md", CodeMap::default()));
        library.integrity.insert(93, ["C_B"].into_iter().collect());
        library
    }

    #[test]
    fn the_first_message_of_a_client_selects_its_build() {
        let message = worldwire_core::value::parse_hex(
            "2000bc4d 02000800 08001400 00000000 1d8a0500 14000000 01000000 ce7b0500",
        );
        let message = message.unwrap();
        let found = CheckVersion::decode(&message).unwrap();
        assert_eq!((found.protocol, found.system_messages), (Some(363_037), Some(359_374)));
        let library = library();
        let build = library.build(BuildFacts { revision: found.protocol, ..BuildFacts::default() });
        assert_eq!(build.name(5), Some("S_A"));
        assert_eq!(build.name(19_900), Some("C_CHECK_VERSION"));
        assert_eq!(build.opcode("S_CHECK_VERSION"), Some(19_901));
        assert_eq!(build.definition("S_A").map(Definition::version), Some(2));
        assert_eq!(build.system_messages().and_then(|map| map.name(1)), Some("SMT_A"));
        assert_eq!(build.header(Side::Client, "C_B"), HeaderForm::Integrity);
        assert_eq!(build.header(Side::Server, "C_B"), HeaderForm::Plain);
        assert_eq!(build.unused_list(Side::Client, "C_B"), None);
        let revision = CheckVersion::decode(&message).unwrap().protocol;
        let packets = Packets::new(&library, BuildFacts { revision, ..BuildFacts::default() });
        assert_eq!((packets.known().revision, packets.opcode("S_A")), (Some(363_037), Some(5)));
        assert!(CheckVersion::decode(&message[..31]).is_err());
        // Without a patch, no list is selected.
        let build = library.build(BuildFacts { revision: Some(8), ..BuildFacts::default() });
        assert_eq!(build.header(Side::Client, "C_B"), HeaderForm::Plain);
        assert_eq!(build.unused_list(Side::Client, "C_B"), Some(93));
        assert_eq!(build.unused_list(Side::Client, "C_C"), None);
        assert_eq!(build.unused_list(Side::Server, "C_B"), None);
    }

    #[test]
    fn pins_patches_and_deprecations_select_versions() {
        let mut library = library();
        let version = |library: &Library, known: BuildFacts| {
            library.build(known).definition("S_A").map(Definition::version)
        };
        assert_eq!(version(&library, BuildFacts::default()), Some(3));
        let pins = [("S_A".into(), 1)].into();
        assert_eq!(version(&library, BuildFacts { pins, ..BuildFacts::default() }), Some(1));
        let patch =
            |major| BuildFacts { patch: Some(Patch::major(major)), ..BuildFacts::default() };
        assert_eq!(version(&library, patch(50)), Some(1));
        assert_eq!(version(&library, patch(115)), Some(3));
        let text = r#"{"S_A": {"3": {"max": 113, "readable": true}, "1": {}}}"#;
        library.deprecated = Deprecated::parse("d", text).0;
        assert_eq!(library.deprecated.get("S_A", 1), Some(Rule::default()));
        assert_eq!(version(&library, patch(115)), Some(3));
        let build = library.build(patch(115));
        assert_eq!(build.definition_to_write("S_A").map(Definition::version), Some(2));
        // If no other definition is left, one for later patches is selected after all.
        assert_eq!(version(&library, patch(50)), Some(3));
        let known = BuildFacts { revision: Some(7), ..BuildFacts::default() };
        let build = library.build(known);
        assert_eq!(build.system_messages().and_then(|map| map.name(1)), Some("SMT_B"));
    }

    #[test]
    fn a_build_has_the_layouts_of_its_patch() {
        let files = [("S_A.1.def", "int32 a\nint32 b ^90\n"), ("S_B.1.def", "int32 a\n")];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        let least = |library: &Library, name: &str, patch: Option<u16>| {
            let build = library
                .build(BuildFacts { patch: patch.map(Patch::major), ..BuildFacts::default() });
            build.definition(name).map(|definition| definition.plan().min_length())
        };
        assert_eq!(least(&library, "S_A", None), Some(8));
        assert_eq!(least(&library, "S_A", Some(90)), Some(8));
        assert_eq!(least(&library, "S_A", Some(89)), Some(4));
        assert_eq!(least(&library, "S_B", Some(89)), Some(4));
        // Skill IDs were narrow before patch 74, although no line says so.
        let skill = [("S_C.1.def", "skillid a\n")];
        let options = ParseOptions { dialect: Some(Dialect::Proto), ..ParseOptions::default() };
        library.definitions = Set::load(skill, options);
        assert_eq!(least(&library, "S_C", Some(74)), Some(8));
        assert_eq!(least(&library, "S_C", Some(73)), Some(4));
    }

    #[test]
    fn names_tell_the_sender() {
        assert_eq!(sender("C_CHAT"), Some(Side::Client));
        assert_eq!(sender("SU_X"), Some(Side::Server));
        assert_eq!(sender("I_TELEPORT"), None);
    }
}
