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

use worldwire_core::Source;
use worldwire_core::json::Json;

use crate::schema::{Problem, ProblemKind};

pub use bundle::Bundle;
pub use deprecated::{Deprecated, Rule};
pub use library::{Build, Library};
pub use map::{CodeMap, MapKind, MapName};
pub use names::NameList;
pub use revisions::{Revision, Revisions};

/// Parses a JSON text; an error points at its position.
fn parse_json(name: &str, text: &str) -> Result<Json, Box<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| {
        let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
        let start = line.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        let at = start + error.column().saturating_sub(1);
        Box::new(bad_json(name, text, at, error.to_string()))
    })
}

/// A problem at an offset in a JSON text.
fn bad_json(name: &str, text: &str, at: usize, message: String) -> Problem {
    let diagnostic = Source::new(name, text).error(at..at + 1, message);
    Problem { kind: ProblemKind::BadJson, diagnostic }
}

/// A problem with a value in a JSON text, at the first occurrence of its key.
fn bad_value(name: &str, text: &str, key: &str, message: String) -> Problem {
    let quoted = format!("\"{key}\"");
    let at = text.find(&quoted).unwrap_or(0);
    let diagnostic = Source::new(name, text).error(at..at + quoted.len(), message);
    Problem { kind: ProblemKind::BadJson, diagnostic }
}
