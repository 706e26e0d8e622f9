//! File names in manifests and requests.

use std::path::{Component, Path, PathBuf};

/// Converts a received name to a path that stays below its starting folder on every system; `None`
/// if the name could escape or is not portable.
///
/// Parts are separated by backslashes or slashes. No part may be empty, begin with a dot, or have a
/// special meaning on Windows: drives, streams, devices, names that end in a dot or a space.
/// Symbolic links are not checked.
#[must_use]
pub fn relative(name: &str) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let mut path = PathBuf::new();
    for part in name.split('/') {
        let is_bad = part.is_empty()
            || part.starts_with('.')
            || part.ends_with(['.', ' '])
            || part.contains(|c: char| c.is_control() || r#":*?"<>|"#.contains(c))
            || is_device(part);
        // The operating system must also see the part as a plain name.
        let mut components = Path::new(part).components();
        let is_name = matches!(components.next(), Some(Component::Normal(_)));
        if is_bad || !is_name || components.next().is_some() {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// Whether Windows treats the name as a device, whatever its extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered =
        |name: &str| stem.strip_prefix(name).is_some_and(|rest| rest.len() == 1 && rest != "0");
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_their_folder() {
        for bad in [
            "",
            "/etc",
            "..",
            "../x",
            "..\\x",
            "\\x",
            "/x",
            "a/../b",
            "a\\..\\..\\b",
            "a//b",
            "C:\\x",
            "c:\\x",
            "a/.b",
            ".x",
            "x:stream",
            "NUL",
            "con.txt",
            "com1.txt",
            "a\0b",
            "a\0",
            "a/",
            "a. ",
            "x.",
            "a?",
        ] {
            assert_eq!(relative(bad), None, "{bad:?}");
        }
        let of = |parts: [&str; 2]| Some(parts.iter().collect());
        assert_eq!(relative("dat\\a b.prp"), of(["dat", "a b.prp"]));
        assert_eq!(relative("COMMON/com0"), of(["COMMON", "com0"]));
    }
}
