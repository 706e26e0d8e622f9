//! What a replay has learnt: live values that replace recorded ones.

use std::collections::HashMap;

use worldwire_core::json::Json;

/// Fields whose values mean the same thing wherever they occur.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// The names of the fields.
    pub(super) fields: &'static [&'static str],
    /// Whether a recorded value can map to a different live value later, like a transaction ID.
    pub(super) is_reused: bool,
}

/// Live values by recorded value.
#[derive(Clone, Debug, Default)]
pub(super) struct Learnt {
    values: HashMap<(usize, String), Json>,
}

/// The maximum number of values remembered. Later ones are not.
const MAX_VALUES: usize = 65_536;
/// The maximum depth to which lists and records are searched.
const MAX_DEPTH: usize = 16;

impl Learnt {
    /// Compares a recorded message with the live one that corresponds to it.
    pub(super) fn learn(&mut self, links: &[Links], recorded: &Json, live: &Json) {
        self.compare(links, (recorded, live), MAX_DEPTH);
    }

    /// Replaces recorded values in a message with learnt ones. Returns the names of the changed
    /// fields, each once.
    pub(super) fn apply(&self, links: &[Links], fields: &mut Json) -> Vec<&'static str> {
        let mut changed = Vec::new();
        if !self.values.is_empty() {
            self.replace(links, fields, &mut changed, MAX_DEPTH);
        }
        changed
    }

    /// Learns one value of the links at this index.
    pub(super) fn state(&mut self, links: &[Links], link: usize, recorded: &Json, live: &Json) {
        if is_value(recorded) && is_value(live) {
            self.note(link, links, recorded, live);
        }
    }

    fn compare(&mut self, links: &[Links], (recorded, live): (&Json, &Json), depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match (recorded, live) {
            (Json::Object(before), Json::Object(now)) if !has_contents(before.keys()) => {
                for (name, before) in before.iter() {
                    let Some(now) = now.get(name) else { continue };
                    match linked(links, name) {
                        Some((link, _)) if is_value(before) && is_value(now) => {
                            self.note(link, links, before, now);
                        }
                        _ => self.compare(links, (before, now), depth),
                    }
                }
            }
            (Json::Array(before), Json::Array(now)) if before.len() == now.len() => {
                for pair in before.iter().zip(now.iter()) {
                    self.compare(links, pair, depth);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, link: usize, links: &[Links], before: &Json, now: &Json) {
        let key = (link, before.to_string());
        let is_known = self.values.contains_key(&key);
        let is_reused = links.get(link).is_some_and(|it| it.is_reused);
        if (is_known && is_reused) || (!is_known && self.values.len() < MAX_VALUES) {
            self.values.insert(key, now.clone());
        }
    }

    fn replace(
        &self,
        links: &[Links],
        json: &mut Json,
        changed: &mut Vec<&'static str>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match json {
            Json::Object(fields) if !has_contents(fields.keys()) => {
                for (name, value) in fields.iter_mut() {
                    let Some((link, field)) = linked(links, name).filter(|_| is_value(value))
                    else {
                        self.replace(links, value, changed, depth);
                        continue;
                    };
                    if let Some(live) = self.values.get(&(link, value.to_string()))
                        && live != value
                    {
                        *value = live.clone();
                        if !changed.contains(&field) {
                            changed.push(field);
                        }
                    }
                }
            }
            Json::Array(items) => {
                for item in items.iter_mut() {
                    self.replace(links, item, changed, depth);
                }
            }
            _ => {}
        }
    }
}

/// Whether the record shows bytes together with their decoded content. Only one of the two could
/// be changed.
fn has_contents<'k>(mut keys: impl Iterator<Item = &'k str>) -> bool {
    keys.any(|key| key == "bytes")
}

fn linked(links: &[Links], name: &str) -> Option<(usize, &'static str)> {
    links.iter().enumerate().find_map(|(index, link)| {
        let field = link.fields.iter().find(|field| **field == name)?;
        Some((index, *field))
    })
}

/// Whether it identifies something: a nonzero number or nonempty text.
fn is_value(json: &Json) -> bool {
    match json {
        Json::String(text) => text.bytes().any(|byte| !matches!(byte, b'0' | b'-')),
        Json::Number(_) => json.as_u64() != Some(0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::parse;

    const LINKS: &[Links] = &[
        Links { fields: &["transId"], is_reused: true },
        Links { fields: &["nodeId", "parentId"], is_reused: false },
    ];

    fn learnt(pairs: &[(&str, &str)]) -> Learnt {
        let mut learnt = Learnt::default();
        for (recorded, live) in pairs {
            learnt.learn(LINKS, &parse(recorded).unwrap(), &parse(live).unwrap());
        }
        learnt
    }

    fn applied(learnt: &Learnt, fields: &str) -> (String, Vec<&'static str>) {
        let mut fields = parse(fields).unwrap();
        let changed = learnt.apply(LINKS, &mut fields);
        (fields.to_string(), changed)
    }

    #[test]
    fn values_are_replaced_wherever_they_mean_the_same() {
        let learnt = learnt(&[(r#"{"nodeId":7,"x":7}"#, r#"{"nodeId":70,"x":8}"#)]);
        let (json, changed) = applied(&learnt, r#"{"refs":[{"parentId":7},{"nodeId":8}],"x":7}"#);
        assert_eq!(json, r#"{"refs":[{"parentId":70},{"nodeId":8}],"x":7}"#);
        assert_eq!(changed, ["parentId"]);
    }

    #[test]
    fn only_numbers_of_transactions_are_learnt_again() {
        let first = (r#"{"nodeId":7,"transId":1}"#, r#"{"nodeId":70,"transId":10}"#);
        let second = (r#"{"nodeId":7,"transId":1}"#, r#"{"nodeId":71,"transId":11}"#);
        let learnt = learnt(&[first, second]);
        let (json, _) = applied(&learnt, r#"{"nodeId":7,"transId":1}"#);
        assert_eq!(json, r#"{"nodeId":70,"transId":11}"#);
    }

    #[test]
    fn nothing_is_learnt_from_zeros_and_from_lists_that_differ() {
        let learnt = learnt(&[
            (r#"{"nodeId":0}"#, r#"{"nodeId":70}"#),
            (r#"{"refs":[{"nodeId":1}]}"#, r#"{"refs":[{"nodeId":2},{"nodeId":3}]}"#),
            (r#"{"node":{"bytes":"00","nodeId":4}}"#, r#"{"node":{"bytes":"01","nodeId":5}}"#),
        ]);
        let fields = r#"{"nodeId":0,"refs":[{"nodeId":1},{"parentId":4}]}"#;
        assert_eq!(applied(&learnt, fields), (fields.to_owned(), Vec::new()));
    }
}
