//! Runs every conformance vector for objects.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod objects;

use worldwire_core::testing::run_vectors;

#[test]
fn every_case_of_every_file() {
    // Datagrams and replication have their own tests.
    run_vectors("mxo", &["transport", "scenarios"], |case| match (case.file, case.section) {
        ("bitvectors", _) => objects::vector(case.case),
        ("malformed", _) => objects::malformed(case.case),
        ("official" | "pending" | "seed" | "server_built" | "updates", _) => {
            objects::section(case.case)
        }
        (other, _) => Err(format!("no test for {other}.json")),
    });
}
