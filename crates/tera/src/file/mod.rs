//! Files other than definitions: opcode and system message maps, the patches of revisions, and
//! deprecations; and the library that chooses definitions based on all of them.
//!
//! | module | file |
//! | --- | --- |
//! | [`map`] | `protocol.REVISION.map`, `sysmsg.VERSION.map` |
//! | [`revisions`] | `revisions.json` |
//! | [`deprecated`] | `deprecated.json` |
//! | [`names`] | `whitelist.txt`, and the integrity lists of patches |
//! | [`bundle`] | tera-toolbox's `data.json`: maps, definitions and deprecations in one |
//! | [`library`] | everything together |

pub mod bundle;
pub mod deprecated;
pub mod library;
pub mod map;
pub mod names;
pub mod revisions;
pub mod text;

use core::ops::Range;

use worldwire_core::Source;
use worldwire_core::json::Json;

use crate::schema::{Problem, ProblemKind};

pub use bundle::Bundle;
pub use deprecated::{Deprecated, Rule};
pub use library::{Build, Library};
pub use map::{CodeMap, MapKind, MapName};
pub use names::NameList;
pub use revisions::{Revision, Revisions};

/// A JSON file being read, with the problems of the parts that are left out.
struct JsonFile<'t> {
    name: &'t str,
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> JsonFile<'t> {
    /// Parses a file and reads its content. If it is malformed, there is no content, and the problem
    /// points at the position of the error.
    fn read<T: Default>(
        name: &'t str,
        text: &'t str,
        read: impl FnOnce(&mut Self, &Json) -> T,
    ) -> (T, Vec<Problem>) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut file = Self { name, text, problems: Vec::new() };
        let content = match serde_json::from_str(text) {
            Ok(json) => read(&mut file, &json),
            Err(error) => {
                let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
                let start = line.as_ptr().addr().saturating_sub(text.as_ptr().addr());
                let at = start + error.column().saturating_sub(1);
                file.bad_at(at..at + 1, error.to_string());
                T::default()
            }
        };
        (content, file.problems)
    }

    /// The members of an object; anything else is a problem.
    fn members<'j>(
        &mut self,
        json: &'j Json,
        wanted: &str,
    ) -> impl Iterator<Item = (&'j str, &'j Json)> + use<'j> {
        if json.as_object().is_none() {
            self.bad("", wanted);
        }
        json.as_object().into_iter().flatten()
    }

    /// Reports a problem with a value, at the first occurrence of its key.
    fn bad(&mut self, key: &str, message: impl Into<String>) {
        let quoted = format!("\"{key}\"");
        let at = self.text.find(&quoted).unwrap_or(0);
        self.bad_at(at..at + quoted.len(), message.into());
    }

    fn bad_at(&mut self, span: Range<usize>, message: String) {
        let diagnostic = Source::new(self.name, self.text).error(span, message);
        self.problems.push(Problem { kind: ProblemKind::BadJson, diagnostic });
    }
}
