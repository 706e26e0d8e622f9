//! The Rust that stands in files is what is made from their definitions today. Apart from the tests
//! of that Rust, so that it can be made anew when it does not compile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use worldwire_tera::codegen::rust;
use worldwire_tera::schema::Definition;

#[path = "generated/definitions.rs"]
mod definitions;

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
}
