//! A modder's evening, on a small archive.

#[path = "../../examples/evening/play.rs"]
mod play;

use std::path::Path;

#[test]
fn one_object_is_changed_and_nothing_else() {
    let home = tempfile::tempdir().expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_worldwire"));
    play::evening(program, home.path(), 4_000, false).expect("all of it went well");
}
