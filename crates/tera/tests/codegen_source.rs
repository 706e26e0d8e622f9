//! The Rust that stands in files is what is made from their definitions today. Apart from the tests
//! of that Rust, so that it can be made anew when it does not compile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use worldwire_tera::codegen::rust;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::schema::Definition;

#[path = "generated/definitions.rs"]
mod definitions;

#[path = "../benches/made_up/mod.rs"]
#[allow(dead_code, reason = "the benchmarks want the rest")]
mod made_up;

use definitions::definitions;

fn compare<'d>(file: &str, definitions: impl IntoIterator<Item = &'d Definition>) {
    let definitions = definitions.into_iter();
    let made = rust(definitions.map(|one| (one.name(), one.version(), one.plan())));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("WORLDWIRE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(made == found, "WORLDWIRE_BLESS=1 writes {} anew", path.display());
}

#[test]
fn the_source_is_what_is_made_today() {
    compare("tests/generated/messages.rs", &definitions());
    let set = made_up::set();
    let named = made_up::NAMED.iter().map(|one| set.newest(one.name).unwrap());
    compare("benches/made_up/typed.rs", named);
}

#[test]
fn made_up_definitions_are_whole() {
    let set = made_up::set();
    assert_eq!(set.problems().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(set.definitions().count(), made_up::FILES);
    for definition in set.definitions() {
        for bytes in made_up::messages(definition, 2) {
            let notes = definition.plan().check(&bytes, HeaderForm::Plain).unwrap();
            assert!(notes.is_empty(), "{}", definition.title());
        }
    }
    for one in &made_up::NAMED {
        let plan = set.newest(one.name).unwrap().plan();
        let known = |name: &&str| plan.fields().iter().any(|field| field.name() == *name);
        assert!(one.asked.iter().all(known), "{}", one.name);
    }
}
