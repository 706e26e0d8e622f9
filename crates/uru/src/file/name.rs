//! Names of files, as manifests and requests have them.

use std::path::{Component, Path, PathBuf};

/// A name that came over the wire as a path that stays below where it begins, on every system;
/// `None` if it does not.
///
/// Parts are divided by backslashes or slashes. No part may be empty, begin with a dot, or mean
/// something else on Windows: a drive, a stream, a device, a name that ends in a dot or a space.
/// Links are not looked at.
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
        // The system may still see something else in it than a name.
        let mut components = Path::new(part).components();
        let is_name = matches!(components.next(), Some(Component::Normal(_)));
        if is_bad || !is_name || components.next().is_some() {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// Names that mean a device on Windows, with any extension.
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
    fn names_stay_below_where_they_begin() {
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
