//! Runs every case in all conformance vectors for KI.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod dml;
mod files;
mod object;
mod wad;
mod wire;

use worldwire_core::testing::run_vectors;

#[test]
fn every_case_of_every_file_holds() {
    // These files have no cases and are tested separately.
    let elsewhere = ["character_blob", "objectproperty_types", "objectproperty_types_v1"];
    run_vectors("ki", &elsewhere, |case| match case.file {
        "bcd" => files::bcd(&case),
        "crc" => wad::crc_of(&case),
        "dml_messages" => dml::message(&case),
        "dml_protocols" => dml::protocol(&case),
        "dml_tables" => dml::table(&case),
        "frames" => wire::frames(case.section, case.case),
        "lang" => files::lang(&case),
        "login_crypto" => {
            let known = case.whole.get("pk3_known").ok_or("no pk3_known")?;
            wire::pk3_known(known).and_then(|()| wire::login_crypto(case.section, case.case))
        }
        "nav" => files::nav(&case),
        "objectproperty" => object::binary(&case),
        "objectproperty_xml" => object::text(&case),
        "poi" => files::poi(&case),
        "property_hash" => wire::property_hashes(case.section, case.case),
        "string_id" => wire::string_ids(case.case),
        "typelists" => files::type_list(&case),
        "wad" => wad::archive(&case),
        other => Err(format!("no test for {other}.json")),
    });
}

#[test]
fn type_lists_of_both_versions_agree() {
    object::type_lists().unwrap();
}

#[test]
fn a_real_character_blob_round_trips() {
    object::character_blob().unwrap();
}
