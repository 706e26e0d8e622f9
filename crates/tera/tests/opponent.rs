//! The way to a parser in JavaScript and back, with a stand-in for the parser.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use worldwire_tera::schema::{Definition, ParseOptions, Set};

#[path = "../benches/made_up/opponent.rs"]
mod opponent;

use opponent::{Folder, has_node};

#[test]
fn a_stand_in_is_timed() {
    if !has_node() {
        println!("skipped: there is no node on this machine");
        return;
    }
    let files = [("S_A.1.def".to_owned(), "int32 a\nstring b\n".to_owned())];
    let set = Set::load(files.iter().map(|(name, text)| (name, text)), ParseOptions::default());
    let known: &Definition = set.newest("S_A").unwrap();
    let other = Set::load([("S_B.1.def", "int32 a\n")], ParseOptions::default());
    let good = vec![(known, vec![12, 0, 1, 0, 10, 0, 5, 0, 0, 0, 0, 0]); 3];
    let bad = vec![(other.newest("S_B").unwrap(), vec![8, 0, 1, 0, 5, 0, 0, 0])];
    let folder = Folder::write(&files, &[("good", good), ("bad", bad)]).unwrap();
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let found = folder.run(&benches.join("opponent_stand_in.cjs"), 2).unwrap();
    let good = &found["good"];
    assert_eq!((good["messages"].as_u64(), good["different"].as_u64()), (Some(3), Some(0)));
    assert!(good["decode_ns"].as_f64().unwrap() > 0.0);
    assert!(good["encode_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(found["bad"]["error"].as_str(), Some("no definition S_B.1"));

    // What is no parser is told to be none, and so is what is not there.
    let adapter = folder.run(&benches.join("made_up/nothing.cjs"), 2).unwrap_err();
    assert!(adapter.contains("Cannot find module"), "{adapter}");
}
