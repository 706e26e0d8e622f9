//! The generated definitions for benchmarks are valid and have the size of a real client's.

use std::collections::BTreeMap;

use worldwire_ki::schema::{Mode, Protocols};

#[path = "../../benches/synthetic/mod.rs"]
mod synthetic;

#[test]
fn generated_definitions_are_complete() {
    let mut protocols = Protocols::new();
    let files = synthetic::files();
    assert_eq!(files.len(), synthetic::FILES);
    for (name, text) in &files {
        let reported = protocols.add(name, text.as_bytes(), Mode::Strict);
        assert!(reported.is_empty(), "{reported:?}");
    }
    let messages: Vec<_> = protocols.iter().flat_map(|protocol| protocol.messages()).collect();
    assert_eq!(messages.len(), synthetic::MESSAGES);
    let mut kinds = BTreeMap::new();
    for field in messages.iter().flat_map(|message| message.fields()) {
        *kinds.entry(field.kind.name()).or_insert(0) += 1;
    }
    assert_eq!(kinds, BTreeMap::from(synthetic::FIELDS));
    assert!(protocols.iter().any(|protocol| protocol.is_explicit));
    assert!(protocols.iter().any(|protocol| !protocol.is_explicit));
}
