//! Compares what a client sees with what it should see.

use core::fmt;
use std::collections::BTreeMap;

use serde_json::Value as Json;

/// A difference between a client's view and the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The client lacks the view.
    Missing(u64),
    /// The client has a view that it should not have.
    Leaked(u64),
    /// A field has a different value.
    Other {
        /// The view.
        view: u64,
        /// The path to the field.
        field: String,
        /// What the server has.
        wanted: String,
        /// What the client has.
        found: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(view) => write!(f, "view {view} is missing"),
            Self::Leaked(view) => write!(f, "view {view} should not exist"),
            Self::Other { view, field, wanted, found } => {
                write!(f, "view {view}: {field}: wanted {wanted}, found {found}")
            }
        }
    }
}

/// Compares two lists of views in the JSON that
/// [`Replica::write_json`](worldwire_mxo::replica::Replica::write_json) writes: what the client
/// should see according to the server, and what it sees. Lists at most `most` differences.
///
/// Ignores the time that a server appends to positions in the client's own view; the initial
/// position of an object that moves, because it depends on when the view was created; and scripts,
/// such as emotes, which only clients that are present at that moment see.
#[must_use]
pub fn compare(wanted: &Json, found: &Json, most: usize) -> Vec<Difference> {
    let (wanted, found) = (by_id(wanted), by_id(found));
    let mut differences = Vec::new();
    for (view, wanted) in &wanted {
        match found.get(view) {
            None => differences.push(Difference::Missing(*view)),
            Some(found) => {
                let moves = wanted.pointer("/movement/position").is_some();
                let mut ignored = MOMENTARY.to_vec();
                if moves {
                    ignored.push("properties.Position");
                }
                values(*view, "", [wanted, found], &ignored, &mut differences);
            }
        }
    }
    let leaked = found.keys().filter(|view| !wanted.contains_key(view));
    differences.extend(leaked.map(|view| Difference::Leaked(*view)));
    differences.truncate(most);
    differences
}

/// The fields that describe a moment rather than a lasting state.
const MOMENTARY: [&str; 6] = [
    "movement.time",
    "movement.script_counter",
    "movement.emote",
    "movement.emote_name",
    "movement.effect",
    "movement.jack_out",
];

fn by_id(views: &Json) -> BTreeMap<u64, &Json> {
    let all = views.as_array().into_iter().flatten();
    all.filter_map(|view| Some((view.get("view")?.as_u64()?, view))).collect()
}

fn values(
    view: u64,
    path: &str,
    [wanted, found]: [&Json; 2],
    ignored: &[&str],
    out: &mut Vec<Difference>,
) {
    let (Json::Object(ours), Json::Object(theirs)) = (wanted, found) else {
        if wanted != found {
            let (wanted, found) = (wanted.to_string(), found.to_string());
            out.push(Difference::Other { view, field: path.to_owned(), wanted, found });
        }
        return;
    };
    let names = ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name)));
    for name in names {
        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if !ignored.contains(&&*field) {
            let pair = [ours, theirs].map(|map| map.get(name).unwrap_or(&Json::Null));
            values(view, &field, pair, ignored, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_kind_of_difference() {
        let parse = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        let wanted = parse(
            r#"[{"view":2,"movement":{"yaw":3}},{"view":3,"properties":{"A":1}},{"view":4}]"#,
        );
        let wanted_moved =
            parse(r#"[{"view":3,"properties":{"Position":1},"movement":{"position":2}}]"#);
        let found_moved =
            parse(r#"[{"view":3,"properties":{"Position":0},"movement":{"position":2}}]"#);
        assert_eq!(compare(&wanted_moved, &found_moved, 9), []);
        let found = parse(
            r#"[{"view":2,"movement":{"yaw":3,"time":9,"emote":7}},{"view":3,"properties":{"A":2,"B":1}},
                {"view":5}]"#,
        );
        assert_eq!(compare(&wanted, &wanted, 9), []);
        let texts: Vec<String> =
            compare(&wanted, &found, 9).iter().map(ToString::to_string).collect();
        let all = [
            "view 3: properties.A: wanted 1, found 2",
            "view 3: properties.B: wanted null, found 1",
            "view 4 is missing",
            "view 5 should not exist",
        ];
        assert_eq!(texts, all);
        assert_eq!(compare(&wanted, &found, 2).len(), 2);
    }
}
