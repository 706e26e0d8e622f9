//! Finds fuzz targets by name.

use worldwire_core::testing::Target;

/// Every target of every crate.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let capture = worldwire_capture::fuzzing::TARGETS.iter();
    let uru = worldwire_uru::fuzzing::targets();
    let ki = worldwire_ki::fuzzing::targets();
    let tera = worldwire_tera::fuzzing::TARGETS;
    capture.chain(ki).chain(tera).chain(uru).chain(worldwire_dissect::fuzzing::TARGETS)
}

/// Runs a target.
///
/// # Panics
/// When there is none of that name, or when a promise is broken.
pub fn run(name: &str, data: &[u8]) {
    let target = targets().find(|target| target.name == name);
    (target.expect("a target of that name").run)(data);
}

#[cfg(test)]
mod tests {
    /// A target without a program would never be fuzzed.
    #[test]
    fn every_target_has_a_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz_targets");
        for target in super::targets() {
            let path = format!("{folder}/{}.rs", target.name);
            assert!(std::path::Path::new(&path).is_file(), "{path}");
        }
    }
}
