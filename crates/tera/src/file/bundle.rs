//! tera-toolbox's `data.json`: maps, definitions and deprecations in one file.
//!
//! ```text
//! { "maps": { REVISION: { NAME: code } },
//!   "protocol": { "NAME.VERSION.def": base64 text },
//!   "deprecated": { NAME: { VERSION: rule } } }
//! ```
//!
//! It contains no system message map: tera-toolbox takes it from the running client.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_core::json::Json;

use super::map::is_name;
use super::{CodeMap, Deprecated, JsonFile};
use crate::schema::{ParseOptions, Problem, Set};

/// The contents of a `data.json`.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// The opcodes of builds, by revision.
    pub maps: BTreeMap<u32, CodeMap>,
    /// The names and texts of definition files.
    pub files: Vec<(Box<str>, String)>,
    /// The deprecated versions of definitions.
    pub deprecated: Deprecated,
}

impl Bundle {
    /// Parses the file. Invalid parts are reported and skipped.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> (Self, Vec<Problem>) {
        JsonFile::read(name, text, Self::of)
    }

    fn of(file: &mut JsonFile<'_>, json: &Json) -> Self {
        let mut bundle = Self::default();
        let part = |key: &str| json.get(key).and_then(Json::as_object);
        for (revision, map) in part("maps").into_iter().flatten() {
            let pairs = map.as_object().into_iter().flatten().map(|(name, code)| {
                let code = code.as_u64().and_then(|code| u16::try_from(code).ok());
                is_name(name).then_some((name, u32::from(code?)))
            });
            match (revision.parse(), pairs.collect::<Option<Vec<_>>>()) {
                (Ok(number), Some(pairs)) => {
                    bundle.maps.insert(number, CodeMap::from_pairs(pairs));
                }
                _ => file.bad(revision, "a map needs a revision, and names with opcodes"),
            }
        }
        for (name, content) in part("protocol").into_iter().flatten() {
            let decoded = content.as_str().and_then(|content| STANDARD.decode(content).ok());
            match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(content) => bundle.files.push((name.into(), content)),
                None => file.bad(name, "not the base64 text of a definition"),
            }
        }
        if let Some(rules) = json.get("deprecated") {
            bundle.deprecated = Deprecated::of(file, rules);
        }
        if part("maps").is_none() && part("protocol").is_none() {
            file.bad("", "the file contains neither maps nor definitions");
        }
        bundle
    }

    /// The definitions as a set.
    #[must_use]
    pub fn definitions(&self, options: ParseOptions) -> Set {
        Set::load(self.files.iter().map(|(name, text)| (name, text)), options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_parsed() {
        let text = r#"{
            "maps": { "387486": { "S_LOGIN": 1, "C_CHAT": 2 }, "x": {} },
            "protocol": { "S_LOGIN.14.def": "aW50MzIgaWQK", "S_B.1.def": "???" },
            "deprecated": { "S_LOGIN": { "14": { "max": 113, "readable": true } } }
        }"#;
        let (bundle, problems) = Bundle::parse("data.json", text);
        let lines: Vec<_> = problems.iter().map(|problem| problem.diagnostic.line()).collect();
        assert_eq!(lines, [2, 3]);
        assert_eq!(bundle.maps[&387_486].code("C_CHAT"), Some(2));
        let set = bundle.definitions(ParseOptions::default());
        assert_eq!(set.newest("S_LOGIN").map(|definition| definition.version()), Some(14));
        assert!(!bundle.deprecated.may_write("S_LOGIN", 14, 114));
        assert_eq!(Bundle::parse("data.json", "[]").1.len(), 1);
    }
}
