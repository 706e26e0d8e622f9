//! Parts that are missing from a shard's data directory. Without a warning, operators would notice
//! them only in the game.

use std::fs;
use std::path::Path;

/// What clients and ages need: where it is, the extension of its files, and the consequence if
/// there are none.
const PARTS: [(&str, &str, &str); 4] = [
    ("secure/SDL", "sdl", "has no descriptors (.sdl): the states of ages and objects are dropped"),
    ("ages", "age", "has no age files (.age): ages do not keep a state of their own"),
    ("secure/Python", "pak", "has no scripts (.pak): game clients cannot start ages"),
    ("files", "", "has no manifests: clients download nothing"),
];

/// The parts that a data directory lacks, in words. An unreadable directory counts as empty.
pub(super) fn missing(data: &Path) -> Vec<String> {
    let lacks = |(folder, extension, _): &(&str, &str, &str)| {
        let entries = fs::read_dir(data.join(folder)).into_iter().flatten().flatten();
        let mut paths = entries.map(|entry| entry.path());
        !paths.any(|path| {
            extension.is_empty()
                || path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
        })
    };
    let parts = PARTS.into_iter().filter(lacks);
    parts.map(|(folder, _, effect)| format!("{} {effect}", data.join(folder).display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(missing(folder.path()).len(), PARTS.len());
        for file in ["secure/SDL/x.SDL", "ages/x.age", "secure/Python/x.txt", "files/x.mfs"] {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let [scripts] = &missing(folder.path())[..] else { panic!("one part is missing") };
        assert!(scripts.contains("Python has no scripts"), "{scripts}");
    }
}
