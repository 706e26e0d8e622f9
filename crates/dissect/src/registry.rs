//! The built-in families, and functions that use all of them.

use worldwire_core::{Diagnostic, FieldInfo, Names, Result};

use crate::codec::Codec;
use crate::families::Families;
use crate::family::Family;
use crate::keys_error::KeysError;
use crate::knowledge::{Definitions, Keys};
use crate::vocabulary::{ClassRow, Vocabulary};

/// The built-in families, in the order in which they are asked to recognise a conversation.
static STANDARD: &[&dyn Family] = &[
    #[cfg(feature = "ki")]
    &crate::ki::Ki,
    #[cfg(feature = "mxo")]
    &crate::mxo::Mxo,
    #[cfg(feature = "tera")]
    &crate::tera::Tera,
    #[cfg(feature = "uru")]
    &crate::uru::Uru,
];

impl Families {
    /// The built-in families whose features are enabled.
    #[must_use]
    pub const fn standard() -> Self {
        Self::new(STANDARD)
    }
}

impl Codec {
    /// All codecs of the built-in families, by family and name.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        Families::standard().codecs()
    }

    /// The codec of that name; the error suggests the nearest known name.
    pub fn named(name: &str) -> Result<&'static Self> {
        Families::standard().codec(name)
    }

    /// The classes of objects that the codec reads. Most codecs have none.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassRow> {
        Families::standard()
            .iter()
            .flat_map(|family| family.vocabulary().classes(self.name))
            .collect()
    }

    /// The types in a field's layout whose values have names.
    pub fn named_types(
        &self,
        layout: &str,
    ) -> impl Iterator<Item = (&'static str, &'static Names)> {
        let types = self.vocabulary().map_or(&[][..], Vocabulary::named_types);
        types.iter().copied().filter(move |(name, _)| names(layout, name))
    }

    /// The text that clients show to users for a value of a named type.
    #[must_use]
    pub fn value_text(&self, type_name: &str, value: i64) -> Option<&'static str> {
        self.vocabulary()?.value_text(type_name, value)
    }

    /// The structures in a field's layout, with their fields.
    #[must_use]
    pub fn records(&self, layout: &str) -> Vec<(&'static str, Vec<FieldInfo>)> {
        let mut records = self.vocabulary().map(Vocabulary::records).unwrap_or_default();
        records.retain(|(name, _)| names(layout, name));
        records
    }

    fn vocabulary(&self) -> Option<&'static dyn Vocabulary> {
        let own =
            |family: &&dyn Family| family.codecs().iter().any(|codec| codec.name == self.name);
        Families::standard().iter().find(own).map(|family| family.vocabulary())
    }

    /// The fields of a format that is not a message; empty if they are undocumented.
    #[must_use]
    pub fn layout(&self) -> Vec<FieldInfo> {
        Families::standard()
            .iter()
            .flat_map(|family| family.vocabulary().layout(self.name))
            .collect()
    }
}

/// Whether a layout mentions a type, as a whole word. Conditions also name flags, after two colons.
fn names(layout: &str, name: &str) -> bool {
    layout.match_indices(name).any(|(at, name)| {
        let before = layout.get(..at).and_then(|text| text.chars().next_back());
        let after = layout.get(at + name.len()..).and_then(|text| text.chars().next());
        before != Some(':') && !before.into_iter().chain(after).any(char::is_alphanumeric)
    })
}

impl Keys {
    /// Reads a key file. One file can hold the keys of several families. Each family reads its own
    /// part, in worldwire's TOML format and in every other format it supports.
    ///
    /// # Errors
    /// All faults of the file, each with line and column. [`KeysError::NotAKeyFile`] if most lines
    /// are faulty, [`KeysError::Empty`] if it has no keys.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        Self::parse_for(Families::standard(), text)
    }

    /// Reads a key file for these families.
    pub fn parse_for(families: Families, text: &str) -> Result<Self, KeysError> {
        let mut keys = Self::none();
        keys.add_for(families, text)?;
        Ok(keys)
    }

    /// Adds the keys of another file. Two files may repeat a key, but not contradict each other.
    ///
    /// # Errors
    /// Those of [`Self::parse`], and any contradiction. Parts of the file may then have
    /// been added.
    pub fn add(&mut self, text: &str) -> Result<(), KeysError> {
        self.add_for(Families::standard(), text)
    }

    fn add_for(&mut self, families: Families, text: &str) -> Result<(), KeysError> {
        // Some editors put a byte-order mark first.
        let text = text.trim_start_matches('\u{feff}');
        let mut found = false;
        for family in families.iter() {
            let part = family.read_keys(text, self);
            found |= part.map_err(|faults| KeysError::of(text, faults))?;
        }
        if found { Ok(()) } else { Err(KeysError::Empty) }
    }
}

impl Default for Definitions {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Definitions {
    /// The built-in definitions of the built-in families.
    #[must_use]
    pub fn built_in() -> Self {
        Self::built_in_for(Families::standard())
    }

    /// The built-in definitions of these families.
    #[must_use]
    pub fn built_in_for(families: Families) -> Self {
        let mut definitions = Self::none_for(families);
        families.iter().for_each(|family| family.built_in(&mut definitions));
        definitions
    }

    /// No definitions at all, for these families.
    #[must_use]
    pub fn none_for(families: Families) -> Self {
        let mut definitions = Self::empty();
        definitions.set(families);
        definitions
    }

    /// The families that these definitions are for.
    #[must_use]
    pub fn families(&self) -> Families {
        self.get_ref().copied().unwrap_or(Families::standard())
    }

    /// No definitions at all.
    #[must_use]
    pub fn none() -> Self {
        Self::none_for(Families::standard())
    }

    /// Whether a file of this name can hold definitions.
    #[must_use]
    pub fn may_be_in(&self, name: &str) -> bool {
        self.families().iter().any(|family| family.may_define(name))
    }

    /// Adds definitions from files, each given as its name (with directories) and content. Returns
    /// all errors and warnings, or `None` if no file holds definitions of a known kind. KI's type
    /// lists are compiled separately; see
    /// [`KiObjects::set_classes`](crate::KiObjects::set_classes).
    ///
    /// Files that depend on each other, such as TERA definitions with includes, must be passed in
    /// one call. A file replaces an earlier one of the same name.
    pub fn add<N: AsRef<str>, B: AsRef<[u8]>>(
        &mut self,
        files: impl IntoIterator<Item = (N, B)>,
    ) -> Option<Vec<Diagnostic>> {
        let files: Vec<(N, B)> = files.into_iter().collect();
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(name, bytes)| (name.as_ref(), bytes.as_ref())).collect();
        let diagnostics = self.families().iter().filter_map(|family| family.define(&files, self));
        diagnostics.reduce(|mut all, more| {
            all.extend(more);
            all
        })
    }
}

/// Built-in definitions plus a few for TERA and Uru. Built once for all fuzz runs, because building
/// takes longer than a run.
#[cfg(feature = "fuzzing")]
pub(crate) fn definitions() -> &'static Definitions {
    use worldwire_core::testing::sample_file;

    static DEFINITIONS: std::sync::LazyLock<Definitions> = std::sync::LazyLock::new(|| {
        let mut definitions = Definitions::built_in();
        definitions.add([
            ("S_PLAIN.1.def", "uint32 a\nbool b\nfloat c\n"),
            ("S_LISTS.1.def", "skillid s\narray l\n- angle w\n- string t\nbytes b\n"),
            ("S_SYSTEM_MESSAGE.1.def", "string message\n"),
            ("protocol.1.map", "S_PLAIN = 5\nS_LISTS = 6\nS_SYSTEM_MESSAGE = 7\n"),
            ("sysmsg.1.map", "SMT_A = 0\nSMT_B = 1\n"),
        ]);
        for name in ["sdl/Fernhollow.sdl", "sdl/things.sdl"] {
            definitions.add([(name, sample_file(name))]);
        }
        definitions
    });
    &DEFINITIONS
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::{Json, Style};
    use worldwire_core::{Limits, Side};

    use super::*;
    use crate::codec::CodecOptions;

    #[test]
    fn a_byte_order_mark_before_keys_is_ignored() {
        let text = "\u{feff}[[mxo.session]]\nkey = \"000102030405060708090a0b0c0d0e0f\"\n";
        assert_eq!(Keys::parse(text).err(), None);
    }

    #[test]
    fn other_files_are_refused_in_one_line() {
        let readme = include_str!("../../../README.md");
        let error = Keys::parse(readme).unwrap_err().to_string();
        let is_short = error.lines().count() == 1;
        assert!(is_short && error.contains("`[uru.auth]`"), "{error}");
        let prose = format!("[uru.auth]\n{}", "like this = that\n".repeat(40));
        let error = Keys::parse(&prose).unwrap_err().to_string();
        assert!(error.starts_with("not a key file: ") && error.lines().count() == 1, "{error}");
        let typing_error = "[uru.auth]\nn = 3\nodd\n";
        let error = Keys::parse(typing_error).unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
    }

    const BAD_DEFLATE: &[u8] =
        &[0x6b, 2, 0, 0, 0, 0, 64, 0, 0, 0, 2, 6, 0, 0, 0, 0x64, 3, 0xff, 0xff, 0xff, 0xff, 0];

    #[test]
    fn bad_classes_and_bad_deflate_are_reported() {
        let (keys, limits, definitions) = (Keys::none(), Limits::DEFAULT, Definitions::built_in());
        let options = CodecOptions {
            from: Side::Client,
            keys: &keys,
            definitions: &definitions,
            limits: &limits,
        };
        for (bytes, wanted) in [
            (&[0x5e, 2, 0, 0, 0, 0][..], "found plNetMessage, which is abstract"),
            (&[0x99, 0x19, 0, 0, 0, 0], "wanted the class of a net message, found class 0x1999"),
            (BAD_DEFLATE, "message.stream"),
        ] {
            let alone = Codec::named("uru.net-message").unwrap().decode(bytes, &options);
            let text = alone.error().unwrap().to_string();
            assert!(text.contains(wanted), "{text}");
            // The bytes are shown nevertheless.
            assert!(alone.find("message").is_some());

            // Inside a message, only this field is affected.
            let mut buffer = vec![2, 0];
            buffer.extend([bytes[0], bytes[1], 0, 0, u8::try_from(bytes.len()).unwrap(), 0, 0, 0]);
            buffer.extend(bytes);
            let inside = Codec::named("uru.game").unwrap().decode(&buffer, &options);
            assert_eq!(inside.error(), None);
            let text = inside.remarks().first().unwrap().to_string();
            let wanted = if wanted.contains("stream") { "data" } else { wanted };
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn the_json_of_a_partial_message_is_refused() {
        let mut definitions = Definitions::built_in();
        definitions.add([("S_A.1.def", "int32 a\nint32 b\n"), ("protocol.1.map", "S_A = 5\n")]);
        let (keys, limits) = (Keys::none(), Limits::DEFAULT);
        for (name, bytes) in [
            ("tera.packet", &[8, 0, 5, 0, 1, 0, 0, 0][..]),
            ("ki.dml", &[7, 20, 6, 0, 1, 0]),
            ("uru.auth", &[1, 0, 0x96]),
            // The top-level value is a record, a text or a list.
            ("uru.net-message", &[0x6b, 2, 1, 0]),
            // An abstract class, an unknown one, and a payload that does not inflate.
            ("uru.net-message", &[0x5e, 2, 0, 0, 0, 0]),
            ("uru.net-message", &[0x99, 0x19, 0, 0, 0, 0]),
            ("uru.net-message", BAD_DEFLATE),
            ("uru.plasma-message", &[0x6f, 2, 0]),
            ("uru.plasma-message", &[]),
            ("uru.safe-string", &[0, 0xf0, 7]),
            ("uru.manifest", &[1, 0, 0, 0]),
            ("uru.bit-vector", &[1, 0, 0]),
        ] {
            let codec = Codec::named(name).unwrap();
            let from = Side::Client;
            let options =
                CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
            let tree = codec.decode(bytes, &options);
            let mut text = String::new();
            codec.write_json(&tree, from, Style::default(), &mut text);
            let json: Json = serde_json::from_str(&text).unwrap();
            assert!(json["error"].is_string(), "{text}");
            assert!(codec.encode(json.clone(), &options).is_err(), "{text}");
        }
    }

    #[test]
    fn families_and_codecs_are_found_by_name() {
        let families = Families::standard();
        assert!(families.iter().all(|family| families.named(family.name()).is_ok()));
        let error = families.named("urru").unwrap_err().to_string();
        assert!(error.ends_with("did you mean \"uru\"?"), "{error}");
        let of_family = |codec: &Codec| {
            families.iter().any(|family| codec.name.starts_with(&format!("{}.", family.name())))
        };
        assert!(Codec::all().all(of_family));
    }
}
