//! The commands of the README, the guides and other transcripts, with their output.

#[test]
fn the_transcripts_are_true() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the project is there");
    trycmd::TestCases::new()
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .case("README.md")
        .case("docs/*.md")
        .case("crates/worldwire/tests/transcripts/*.trycmd");
}
