//! Every case of every conformance vector of the connection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod wire;

use worldwire_core::testing::run_vectors;

#[test]
fn every_case_of_every_file() {
    // Definitions and messages, which are not built.
    let elsewhere = [
        "codec_compound",
        "codec_integrity_header",
        "codec_legacy_meta",
        "codec_proto_dialect",
        "codec_ref",
        "codec_scalars",
        "codec_subtype",
        "codec_varlen",
        "def_syntax",
        "deprecated",
        "file_names",
        "malformed",
        "maps",
        "sysmsg",
    ];
    run_vectors("tera", &elsewhere, |case| match (case.file, case.section) {
        ("cipher", "hash") => {
            let whole = case.whole.get("chunked").ok_or("no chunked")?;
            wire::chunked(whole).and_then(|()| wire::cipher(case.section, case.case))
        }
        ("cipher", "sessions") => {
            let whole = case.whole.get("transcript").ok_or("no transcript")?;
            wire::transcript(whole).and_then(|()| wire::cipher(case.section, case.case))
        }
        ("cipher", section) => wire::cipher(section, case.case),
        ("framing", section) => wire::framing(section, case.case),
        ("integrity", _) => wire::integrity(case.case),
        (other, _) => Err(format!("no test for {other}.json")),
    });
}
