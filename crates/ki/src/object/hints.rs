//! Which message fields hold objects, and how to decode them.
//!
//! The wire format does not identify these fields. Some are built in, and users can add more:
//!
//! ```toml
//! # A field with an object. Omitted keys are as in ObjectOptions::default().
//! [[ki.object]]
//! message = "GAME.MSG_LOGINCOMPLETE"
//! field = "Data"
//! flags = 0            # of the stream
//! mask = 0x18          # of its properties
//! deep = false
//! envelope = true
//! core = true          # tags in the CoreObject form
//!
//! # The class of a pair in the CoreObject form.
//! [[ki.core]]
//! block = 104
//! type = 2
//! class = "class WizClientObject"   # or its hash
//! ```
//!
//! Type lists can be loaded after hints: a class given by name is looked up while objects are
//! decoded. [`Hints::unknown_classes`] lists the names that are not in any type list.

use std::collections::HashMap;
use std::sync::Arc;

use worldwire_core::{Diagnostic, nearest};

use super::{CoreClass, CoreTable, ObjectOptions};
use crate::schema::classes::Classes;
use crate::schema::{Message, Protocols};
use crate::settings::{Settings, Value};
use crate::types::FieldType;

/// The byte-order mark, which some editors put before the text.
const BOM: char = '\u{feff}';

/// The known fields that hold objects, by message name.
#[derive(Clone, Debug)]
pub struct Hints {
    hints: Vec<Hint>,
    core: Arc<CoreTable>,
    /// The pairs whose classes are given by name, with the warning for unknown names.
    names: Vec<(u8, u8, Diagnostic)>,
}

/// A field that holds an object.
#[derive(Clone, Debug)]
struct Hint {
    /// Service and message, by name or number: `LOGIN.MSG_CHARACTERINFO`, `7.1`.
    message: String,
    field: String,
    options: ObjectOptions,
    /// Whether tags have the CoreObject form. The table for them is added last.
    core: bool,
    /// The warnings for a user's hint whose message or field does not exist.
    unknown: Option<[Diagnostic; 2]>,
}

/// Hints by message number, resolved against a set of definitions.
#[derive(Clone, Debug, Default)]
pub struct FieldHints(HashMap<(u8, u8), MessageHints>);

/// The fields of one message, by name.
type MessageHints = Vec<(Box<str>, ObjectOptions)>;

impl Default for Hints {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Hints {
    /// The built-in fields.
    ///
    /// Unverified: the flags and masks of `GAME` messages.
    #[must_use]
    pub fn built_in() -> Self {
        let hint = |message: &str, field: &str, envelope, core| Hint {
            message: message.to_owned(),
            field: field.to_owned(),
            options: ObjectOptions { envelope, ..ObjectOptions::default() },
            core,
            unknown: None,
        };
        let hints = vec![
            hint("LOGIN.MSG_CHARACTERINFO", "CharacterInfo", false, false),
            hint("LOGIN.MSG_CREATECHARACTER", "CreationInfo", false, false),
            hint("GAME.MSG_LOGINCOMPLETE", "Data", true, true),
            hint("GAME.MSG_NEWOBJECT", "Data", false, true),
            hint("GAME.MSG_BADGES", "BadgeInfo", true, false),
        ];
        Self { hints, core: Arc::default(), names: Vec::new() }
    }

    /// Whether a TOML text contains hint tables.
    #[must_use]
    pub fn is_in(text: &str) -> bool {
        text.trim_start_matches(BOM).lines().any(|line| {
            let line: String = line.chars().filter(|c| !" \t\"'".contains(*c)).collect();
            let table = line.trim_start_matches('[');
            // Connection and account keys are not hints.
            table.len() < line.len()
                && (table.starts_with("ki.") || table.starts_with("ki]"))
                && !table.starts_with("ki.stream]")
                && !table.starts_with("ki.login]")
        })
    }

    /// Adds a user's hints. A later hint for the same field replaces an earlier one.
    ///
    /// # Errors
    /// Returns every error in the text. In that case, none of its hints are added.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Vec<Diagnostic>> {
        let (mut settings, root) = Settings::open(name, text.trim_start_matches(BOM));
        let mut hints = Vec::new();
        let mut pairs = Vec::new();
        if let Some(ki) = root.get("ki") {
            for (key, value) in settings.table(ki) {
                match key.get_ref().as_ref() {
                    "object" => settings.each("ki.object", value, |settings, table| {
                        hints.extend(hint(settings, table));
                    }),
                    "core" => settings.each("ki.core", value, |settings, table| {
                        pairs.extend(pair(settings, table));
                    }),
                    // The same file may hold connection and account keys.
                    "stream" | "login" => {}
                    _ => settings.unknown(key, &["object", "core"]),
                }
            }
        }
        let (hints, pairs) = settings.close((hints, pairs))?;
        self.hints.extend(hints);
        let core = Arc::make_mut(&mut self.core);
        for Pair { block, kind, class, unknown } in pairs {
            // Most pairs are new, so there is nothing to replace.
            if core.get(block, kind).is_some() {
                self.names.retain(|(old, of, _)| (*old, *of) != (block, kind));
            }
            if let CoreClass::Name(_) = class {
                self.names.push((block, kind, unknown));
            }
            core.insert(block, kind, class);
        }
        Ok(())
    }

    /// Warnings about pairs whose classes are not in any type list, which means that their objects
    /// cannot be decoded.
    #[must_use]
    pub fn unknown_classes(&self, classes: &Classes) -> Vec<Diagnostic> {
        let warnings = self.names.iter().filter_map(|(block, kind, warning)| {
            let Some(CoreClass::Name(name)) = self.core.get(*block, *kind) else { return None };
            if classes.find(name).is_some() {
                return None;
            }
            let warning = warning.clone();
            Some(match classes.nearest(name) {
                Some(near) => warning.help(format!("did you mean {near}?")),
                None => warning,
            })
        });
        warnings.collect()
    }

    /// Warnings about a user's hints whose message or field is not in any definition.
    #[must_use]
    pub fn unknown_fields(&self, protocols: &Protocols) -> Vec<Diagnostic> {
        let warnings = self.hints.iter().filter_map(|hint| {
            let [no_message, no_field] = hint.unknown.clone()?;
            let (warning, near) = match protocols.message_named(&hint.message) {
                None => (no_message, protocols.suggest(&hint.message)),
                Some(message) if texts(message).any(|name| name == hint.field) => return None,
                Some(message) => {
                    (no_field, nearest(&hint.field, texts(message)).map(str::to_owned))
                }
            };
            Some(match near {
                Some(near) => warning.help(format!("did you mean {near}?")),
                None => warning,
            })
        });
        warnings.collect()
    }

    /// The table for tags in the CoreObject form.
    #[must_use]
    pub fn core(&self) -> &Arc<CoreTable> {
        &self.core
    }

    /// Resolves the hints whose messages and fields exist in a set of definitions.
    #[must_use]
    pub fn fields(&self, protocols: &Protocols) -> FieldHints {
        let mut fields = FieldHints::default();
        for Hint { message, field, options, core, .. } in &self.hints {
            let Some(message) = protocols.message_named(message) else { continue };
            let core = core.then(|| Arc::clone(&self.core));
            let options = ObjectOptions { core, ..options.clone() };
            let of = fields.0.entry((message.service, message.order)).or_default();
            of.retain(|(known, _)| **known != *field);
            of.push((field.as_str().into(), options));
        }
        fields
    }
}

impl FieldHints {
    /// How to decode the object in a field; `None` if the field is not known to hold one.
    #[must_use]
    pub fn get(&self, service: u8, order: u8, field: &str) -> Option<&ObjectOptions> {
        let fields = self.0.get(&(service, order))?;
        fields.iter().find(|(name, _)| **name == *field).map(|(_, options)| options)
    }

    /// The fields of a message that hold objects.
    pub fn of<'f>(&'f self, message: &'f Message) -> impl Iterator<Item = &'f str> {
        texts(message).filter(|name| self.get(message.service, message.order, name).is_some())
    }
}

/// The fields of a message that may hold objects.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let texts = message.fields().iter().filter(|field| field.kind == FieldType::Str);
    texts.map(|field| &*field.name)
}

fn hint(settings: &mut Settings<'_>, table: &Value<'_>) -> Option<Hint> {
    let (mut message, mut field, mut core) = (None, None, false);
    let mut options = ObjectOptions::default();
    let before = settings.count();
    for (key, value) in settings.table(table) {
        let mask = "must be a 32-bit number";
        match key.get_ref().as_ref() {
            "message" => message = settings.text(value).map(|text| (text, value.span())),
            "field" => field = settings.text(value).map(|text| (text, value.span())),
            "flags" => options.flags = settings.number(value, mask).unwrap_or_default(),
            "mask" => options.mask = settings.number(value, mask).unwrap_or_default(),
            "deep" => options.deep = settings.boolean(value).unwrap_or_default(),
            "envelope" => options.envelope = settings.boolean(value).unwrap_or_default(),
            "core" => core = settings.boolean(value).unwrap_or_default(),
            "skip-deprecated" => {
                options.skip_deprecated = settings.boolean(value).unwrap_or_default();
            }
            _ => settings.unknown(
                key,
                &[
                    "message",
                    "field",
                    "flags",
                    "mask",
                    "deep",
                    "envelope",
                    "core",
                    "skip-deprecated",
                ],
            ),
        }
    }
    match (message, field) {
        (Some((message, of_message)), Some((field, of_field))) => {
            let unknown = [
                settings.warning(of_message, "no definition has this message"),
                settings.warning(of_field, "the message has no STR field of this name"),
            ];
            Some(Hint { message, field, options, core, unknown: Some(unknown) })
        }
        _ => {
            if settings.count() == before {
                settings.error(table.span(), "needs both message and field");
            }
            None
        }
    }
}

/// A pair and its class.
struct Pair {
    block: u8,
    kind: u8,
    class: CoreClass,
    /// The warning if the class is unknown.
    unknown: Diagnostic,
}

fn pair(settings: &mut Settings<'_>, table: &Value<'_>) -> Option<Pair> {
    let (mut block, mut kind, mut class) = (None, None, None);
    let before = settings.count();
    for (key, value) in settings.table(table) {
        let byte = "must be a number from 0 to 255";
        match key.get_ref().as_ref() {
            "block" => block = settings.number::<u8>(value, byte),
            "type" => kind = settings.number::<u8>(value, byte),
            "class" => {
                let found = match value.get_ref().as_str() {
                    Some(name) => Some(CoreClass::from(name)),
                    None => {
                        let wanted = "must be the name or the hash of a class";
                        settings.number(value, wanted).map(CoreClass::Tag)
                    }
                };
                class = found.map(|class| (class, value.span()));
            }
            _ => settings.unknown(key, &["block", "type", "class"]),
        }
    }
    if settings.count() == before && (block.is_none() || kind.is_none() || class.is_none()) {
        settings.error(table.span(), "needs block, type and class");
    }
    let (class, span) = class?;
    let unknown = settings.warning(span, "no type list has this class");
    Some(Pair { block: block?, kind: kind?, class, unknown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_hints_add_to_and_override_built_in_ones() {
        let protocols = Protocols::built_in();
        let mut hints = Hints::built_in();
        let known = hints.fields(&protocols);
        let character = known.get(7, 1, "CharacterInfo").expect("the hint is built in");
        assert_eq!((character.mask, character.envelope), (0x18, false));
        assert!(known.get(7, 1, "Other").is_none());

        let text = "[[ki.object]]\nmessage = \"LOGIN.MSG_CHARACTERINFO\"\n\
                    field = \"CharacterInfo\"\nflags = 0x2\nenvelope = true\ncore = true\n\
                    [[ki.object]]\nmessage = \"7.10\"\nfield = \"ServerName\"\ndeep = true\n\
                    [[ki.core]]\nblock = 1\ntype = 2\nclass = \"class Duel\"\n\
                    [[ki.core]]\nblock = 1\ntype = 3\nclass = 7\n\
                    [[ki.core]]\nblock = 1\ntype = 4\nclass = \"Dual\"\n";
        assert!(Hints::is_in(text));
        hints.add("hints.toml", text).expect("the hints are valid");
        let known = hints.fields(&protocols);
        let character = known.get(7, 1, "CharacterInfo").expect("the hint was added");
        assert_eq!((character.flags, character.envelope), (2, true));
        let core = character.core.as_ref().expect("the hint sets it");
        // The type list determines which classes exist and what their tags are.
        let list = br#"{"class Duel": {"hash": 5, "properties": {}}}"#;
        let classes = Classes::of_json(list);
        let tag = |kind| core.get(1, kind).and_then(|class| class.tag(&classes));
        assert_eq!([2, 3, 4].map(tag), [Some(5), Some(7), None]);
        let unknown: Vec<_> =
            hints.unknown_classes(&classes).iter().map(ToString::to_string).collect();
        assert_eq!(
            unknown,
            ["hints.toml:22:9: warning: no type list has this class (did you mean class Duel?)"]
        );
        assert!(known.get(7, 10, "ServerName").expect("by number").deep);
    }

    #[test]
    fn every_mistake_is_reported() {
        let text = "[[ki.object]]\nfield = \"x\"\n[[ki.object]]\nmessage = 1\nfeild = 2\n\
                    [[ki.core]]\nblock = 256\n[ki.other]\n";
        let errors = Hints::built_in().add("h.toml", text).expect_err("the hints are invalid");
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "h.toml:1:1: error: needs both message and field",
                "h.toml:4:11: error: must be a string in quotes",
                "h.toml:5:1: error: unknown key feild; it must be one of message, field, \
                 flags, mask, deep, envelope, core, skip-deprecated (did you mean field?)",
                "h.toml:7:9: error: must be a number from 0 to 255",
                "h.toml:8:5: error: unknown key other; it must be one of object, core",
            ]
        );
        assert!(!Hints::is_in("[[ki.login]]\n"));
    }
}
