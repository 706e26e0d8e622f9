//! Finds parts that are missing from a shard's data directory. Without a warning, operators would
//! notice this only in the game.

use std::fs;
use std::path::Path;

use super::config::Role;

/// A part that clients or ages need: where it is, the extension of its files, the consequence if
/// there are none, and the processes that use it.
const PARTS: [(&str, &str, &str, &[Role]); 4] = [
    (
        "secure/SDL",
        "sdl",
        "has no descriptors (.sdl): the states of ages and objects are dropped",
        &[Role::Front, Role::Age],
    ),
    ("ages", "age", "has no age files (.age): ages do not keep a state of their own", &[Role::Age]),
    (
        "secure/Python",
        "pak",
        "has no scripts (.pak): game clients cannot start ages",
        &[Role::Front],
    ),
    ("files", "", "has no manifests: clients download nothing", &[Role::Front]),
];

/// A description of the parts that are missing from the data directory of a process with these
/// roles. An unreadable directory counts as empty.
pub(super) fn missing(data: &Path, roles: &[Role]) -> Vec<String> {
    let lacks = |(folder, extension, _, users): &(&str, &str, &str, &[Role])| {
        if !users.iter().any(|user| roles.contains(user)) {
            return false;
        }
        let entries = fs::read_dir(data.join(folder)).into_iter().flatten().flatten();
        let mut paths = entries.map(|entry| entry.path());
        !paths.any(|path| {
            extension.is_empty()
                || path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
        })
    };
    let parts = PARTS.into_iter().filter(lacks);
    parts
        .map(|(folder, _, effect, _)| format!("{} {effect}", data.join(folder).display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(missing(folder.path(), &Role::ALL).len(), PARTS.len());
        assert_eq!(missing(folder.path(), &[Role::Age]).len(), 2);
        assert_eq!(missing(folder.path(), &[Role::Front]).len(), 3);
        for file in ["secure/SDL/x.SDL", "ages/x.age", "secure/Python/x.txt", "files/x.mfs"] {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let [scripts] = &missing(folder.path(), &Role::ALL)[..] else {
            panic!("one part is missing")
        };
        assert!(scripts.contains("Python has no scripts"), "{scripts}");
    }
}
