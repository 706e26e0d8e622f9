//! The definitions that are made up for benchmarks are of the size of a real client's, and good.

use std::collections::BTreeMap;

use worldwire_ki::schema::{Mode, Protocols};

#[path = "../../benches/made_up/mod.rs"]
mod made_up;

#[test]
fn made_up_definitions_are_whole() {
    let mut protocols = Protocols::new();
    let files = made_up::files();
    assert_eq!(files.len(), made_up::FILES);
    for (name, text) in &files {
        let said = protocols.add(name, text.as_bytes(), Mode::Strict);
        assert!(said.is_empty(), "{said:?}");
    }
    let messages: Vec<_> = protocols.iter().flat_map(|protocol| protocol.messages()).collect();
    assert_eq!(messages.len(), made_up::MESSAGES);
    let mut kinds = BTreeMap::new();
    for field in messages.iter().flat_map(|message| message.fields()) {
        *kinds.entry(field.kind.name()).or_insert(0) += 1;
    }
    assert_eq!(kinds, BTreeMap::from(made_up::FIELDS));
    assert!(protocols.iter().any(|protocol| protocol.is_explicit));
    assert!(protocols.iter().any(|protocol| !protocol.is_explicit));
}
