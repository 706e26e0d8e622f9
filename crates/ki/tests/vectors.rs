//! Every case of every conformance vector of the family.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dml;
mod wad;
mod wire;

use worldwire_core::testing::run_vectors;

#[test]
fn every_case_of_every_file() {
    // Formats at rest, which are not built.
    let elsewhere = [
        "character_blob",
        "objectproperty",
        "objectproperty_types",
        "objectproperty_types_v1",
        "objectproperty_xml",
    ];
    run_vectors("ki", &elsewhere, |case| match case.file {
        "crc" => wad::crc_of(&case),
        "dml_messages" => dml::message(&case),
        "dml_protocols" => dml::protocol(&case),
        "dml_tables" => dml::table(&case),
        "frames" => wire::frames(case.section, case.case),
        "login_crypto" => {
            let known = case.whole.get("pk3_known").ok_or("no pk3_known")?;
            wire::pk3_known(known).and_then(|()| wire::login_crypto(case.section, case.case))
        }
        "property_hash" => wire::property_hashes(case.section, case.case),
        "string_id" => wire::string_ids(case.case),
        "wad" => wad::archive(&case),
        other => Err(format!("no test for {other}.json")),
    });
}
