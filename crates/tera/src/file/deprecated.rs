//! Deprecated versions of definitions: `deprecated.json`.

use std::collections::BTreeMap;

use worldwire_core::json::Json;

use super::JsonFile;
use crate::schema::Problem;

/// The range of patches in which a version of a definition is valid.
///
/// Outside this range, the version is not used for writing, and for reading only if it is
/// `readable`. A version whose rule has no bounds is valid for no patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The first patch for which it is valid.
    pub min: Option<u16>,
    /// The last patch for which it is valid.
    pub max: Option<u16>,
    /// Whether it may be used for reading outside that range.
    pub readable: bool,
}

impl Rule {
    /// Parses a rule; `None` if it is malformed.
    #[must_use]
    pub fn from_json(json: &Json) -> Option<Self> {
        let object = json.as_object()?;
        let bound = |key: &str| match object.get(key) {
            None | Some(Json::Null) => Some(None),
            Some(number) => Some(Some(u16::try_from(number.as_u64()?).ok()?)),
        };
        let readable = match object.get("readable") {
            None | Some(Json::Null) => false,
            Some(readable) => readable.as_bool()?,
        };
        Some(Self { min: bound("min")?, max: bound("max")?, readable })
    }

    /// Whether the version is deprecated at a patch.
    #[must_use]
    fn applies(&self, patch: u16) -> bool {
        match (self.min, self.max) {
            (None, None) => true,
            (min, max) => min.is_some_and(|min| patch < min) || max.is_some_and(|max| patch > max),
        }
    }

    /// Whether the version may be used for reading.
    #[must_use]
    pub fn may_read(&self, patch: u16) -> bool {
        self.readable || !self.applies(patch)
    }

    /// Whether the version may be used for writing.
    #[must_use]
    pub fn may_write(&self, patch: u16) -> bool {
        !self.applies(patch)
    }
}

/// The rules by name and version. A version without a rule is always valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecated(BTreeMap<Box<str>, BTreeMap<u32, Rule>>);

impl Deprecated {
    /// Parses `deprecated.json`. Malformed rules are reported and skipped.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> (Self, Vec<Problem>) {
        JsonFile::read(name, text, Self::of)
    }

    /// Reads the rules in a file or in a part of one.
    pub(super) fn of(file: &mut JsonFile<'_>, json: &Json) -> Self {
        let mut rules = Self::default();
        for (message, versions) in file.members(json, "the file must contain an object of messages")
        {
            let Some(versions) = versions.as_object() else {
                file.bad(message, format!("{message} must have an object of versions"));
                continue;
            };
            for (version, rule) in versions {
                match (version.parse(), Rule::from_json(rule)) {
                    (Ok(version), Some(rule)) => {
                        rules.0.entry(message.into()).or_default().insert(version, rule);
                    }
                    _ => {
                        let what = format!("{message}.{version} must have min, max and readable");
                        file.bad(message, what);
                    }
                }
            }
        }
        rules
    }

    /// The rule for a version.
    #[must_use]
    pub fn get(&self, name: &str, version: u32) -> Option<Rule> {
        self.0.get(name)?.get(&version).copied()
    }

    /// Whether a version may be used for reading. Version 0 is a private override and always may.
    #[must_use]
    pub fn may_read(&self, name: &str, version: u32, patch: u16) -> bool {
        version == 0 || self.get(name, version).is_none_or(|rule| rule.may_read(patch))
    }

    /// Whether a version may be used for writing.
    #[must_use]
    pub fn may_write(&self, name: &str, version: u32, patch: u16) -> bool {
        version == 0 || self.get(name, version).is_none_or(|rule| rule.may_write(patch))
    }

    /// All rules.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32, Rule)> {
        self.0.iter().flat_map(|(name, rules)| {
            rules.iter().map(move |(version, rule)| (&**name, *version, *rule))
        })
    }
}
