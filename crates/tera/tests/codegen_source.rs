//! Checks that the checked-in Rust is what its definitions generate. This is separate from the
//! tests of that Rust, so that it can be regenerated even if it does not compile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use worldwire_tera::codegen::rust;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::schema::Definition;

#[path = "generated/definitions.rs"]
mod definitions;

#[path = "../benches/synthetic/mod.rs"]
#[allow(dead_code, reason = "the benchmarks use the rest")]
mod synthetic;

use definitions::definitions;

fn compare<'d>(file: &str, definitions: impl IntoIterator<Item = &'d Definition>) {
    let definitions = definitions.into_iter();
    let made = rust(definitions.map(|one| (one.name(), one.version(), one.plan())));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("WORLDWIRE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(made == found, "outdated; run with WORLDWIRE_BLESS=1 to regenerate {}", path.display());
}

#[test]
fn checked_in_rust_is_up_to_date() {
    compare("tests/generated/messages.rs", &definitions());
    let set = synthetic::set();
    let typed = synthetic::NAMED.iter().filter(|one| synthetic::TYPED.contains(&one.title));
    compare("benches/synthetic/typed.rs", typed.map(|one| set.newest(one.name).unwrap()));
}

#[test]
fn synthetic_definitions_are_valid() {
    let set = synthetic::set();
    assert_eq!(set.problems().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(set.definitions().count(), synthetic::FILES);
    for definition in set.definitions() {
        for bytes in synthetic::messages(definition, 2) {
            let notes = definition.plan().check(&bytes, HeaderForm::Plain).unwrap();
            assert!(notes.is_empty(), "{}", definition.title());
        }
    }
    for one in &synthetic::NAMED {
        let plan = set.newest(one.name).unwrap().plan();
        let known = |name: &&str| plan.fields().iter().any(|field| field.name() == *name);
        assert!(one.asked.iter().all(known), "{}", one.name);
    }
}
