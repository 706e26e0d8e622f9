//! The commands of the README, the guides and other transcripts, with their output.

use std::path::Path;
use std::process::Command;

#[test]
fn transcripts_match() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the project is there");
    trycmd::TestCases::new()
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        // Ignore the settings and caches of the user who runs the tests.
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .case("README.md")
        .case("docs/*.md")
        .case("crates/worldwire/tests/transcripts/*.trycmd");
}

/// The blocks above have slashes where the program prints backslashes. Those with backslashes are
/// marked `text` and compared as they are.
#[test]
fn blocks_with_backslashes_match() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("docs")).expect("there are guides") {
        let path = entry.expect("it is there").path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for block in text.split("```text\n$ worldwire ").skip(1) {
            let (block, _) = block.split_once("```").expect("it has an end");
            let (words, printed) = block.split_once('\n').expect("it has output");
            let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            // Every second part is quoted.
            for (index, part) in words.split('\'').enumerate() {
                match index % 2 {
                    0 => command.args(part.split_whitespace()),
                    _ => command.arg(part),
                };
            }
            let output = command.current_dir(&root).output();
            let output = output.expect("the program is there");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                printed,
                "{}: {words}",
                path.display()
            );
            count += 1;
        }
    }
    assert!(count > 0);
}
