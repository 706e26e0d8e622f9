//! Runs every case of the family's conformance vectors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod definitions;
mod wire;

use worldwire_core::testing::run_vectors;

#[test]
fn every_case_of_every_file() {
    run_vectors("tera", &[], |case| match (case.file, case.section) {
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
        ("def_syntax", _) => definitions::syntax(case.case),
        ("file_names", _) => definitions::file_name(case.case),
        ("deprecated", _) => definitions::deprecated(case.case),
        ("maps", _) => definitions::map(case.case),
        // The map that the cases use, and the names of errors.
        ("sysmsg", "map") | ("malformed", "error_kinds") => Ok(()),
        ("sysmsg", _) => definitions::system_message(case.case, case.whole),
        ("malformed", _) => definitions::malformed(case.case),
        (file, _) if file.starts_with("codec_") => definitions::codec(file, case.case),
        (other, _) => Err(format!("no test for {other}.json")),
    });
}
