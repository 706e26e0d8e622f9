//! All fuzz targets by name, with seeds and dictionaries for a coverage-guided fuzzer.
//!
//! Each crate lists its own targets; nothing here or in `fuzz/run` repeats these lists.

mod dictionary;

use std::io;
use std::path::Path;

use worldwire_core::testing::Target;

/// Every target of every crate.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let capture = worldwire_capture::fuzzing::TARGETS.iter();
    let uru = worldwire_uru::fuzzing::targets();
    let ki = worldwire_ki::fuzzing::targets();
    let mxo = worldwire_mxo::fuzzing::targets();
    let tera = worldwire_tera::fuzzing::targets();
    let families = ki.chain(mxo).chain(tera).chain(uru);
    let above = worldwire_dissect::fuzzing::TARGETS
        .iter()
        .chain(worldwire_net::fuzzing::TARGETS)
        .chain(worldwire_proxy::fuzzing::targets())
        .chain(worldwire_server::fuzzing::targets());
    capture.chain(families).chain(above)
}

/// The target with this name.
///
/// # Errors
/// If no target has this name; the error lists all names.
pub fn find(name: &str) -> Result<&'static Target, String> {
    targets().find(|target| target.name == name).ok_or_else(|| {
        let names: Vec<_> = targets().map(|target| target.name).collect();
        format!("unknown target {name:?}; the targets are {}", names.join(", "))
    })
}

/// Writes every seed of a target to `FOLDER/NAME/seed-0000` and so on, and its dictionary, if it
/// has one, to `FOLDER/NAME.dict`. Returns the number of seeds.
///
/// # Errors
/// If a file cannot be written.
pub fn export(target: &Target, folder: &Path) -> io::Result<usize> {
    let seeds = (target.seeds)();
    let own = folder.join(target.name);
    std::fs::create_dir_all(&own)?;
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(own.join(format!("seed-{number:04}")), seed)?;
    }
    if let Some(text) = dictionary::text(target.name, &seeds) {
        std::fs::write(folder.join(format!("{}.dict", target.name)), text)?;
    }
    Ok(seeds.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_file_names() {
        let mut names = BTreeSet::new();
        for target in targets() {
            let name = target.name;
            assert!(names.insert(name), "{name} twice");
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(name.bytes().all(|byte| is_plain(byte) || byte == b'_'), "{name:?}");
            assert_eq!(find(name).map(|found| found.name), Ok(name));
        }
        assert!(find("").is_err_and(|why| why.contains("uru_auth_client")));
    }
}
