//! Untrusted names as paths below a directory of the user's choice.

use core::fmt;
use std::path::{Path, PathBuf};

/// A name from an archive, a server or a capture that stays below the directory it is joined to.
///
/// Parts are separated by `/`. Absolute paths, drives, empty parts, `.` and `..`, control
/// characters, text that is not UTF-8, more than 4,095 bytes, more than 128 parts, and parts of
/// more than 255 bytes are always refused. Symbolic links are not resolved; that is up to the
/// caller.
///
/// ```
/// use worldwire_core::path::{PathRules, SafePath};
///
/// let path = SafePath::parse(b"ObjectData/Hat.xml", PathRules::default())?;
/// assert_eq!(path.below("root".as_ref()), std::path::Path::new("root/ObjectData/Hat.xml"));
///
/// let error = SafePath::parse(b"../../.bashrc", PathRules::default()).unwrap_err();
/// assert_eq!(error.to_string(), "contains a `..` component");
/// # Ok::<(), worldwire_core::path::PathError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SafePath<'a> {
    name: &'a str,
    backslash_separates: bool,
}

/// What else a [`SafePath`] may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRules {
    /// A backslash separates parts, as in names that Windows programs send. Otherwise it is
    /// refused, because it separates parts on some systems only.
    pub backslash_separates: bool,
    /// Parts may begin with a dot: archives contain such files. Servers have no reason to send
    /// them, and `.ssh/authorized_keys` would give them access to the machine.
    pub allow_hidden: bool,
    /// Names that only Windows forbids are refused on every system; see
    /// [`SafePath::windows_error`].
    pub portable: bool,
}

impl Default for PathRules {
    /// For archives: hidden files are allowed, and names must suit the current system.
    fn default() -> Self {
        Self { backslash_separates: false, allow_hidden: true, portable: cfg!(windows) }
    }
}

impl PathRules {
    /// For names that a server sends: backslashes separate, hidden files are refused, and names
    /// must suit every system.
    pub const DOWNLOAD: Self =
        Self { backslash_separates: true, allow_hidden: false, portable: true };
}

/// Why a name is not a path below a directory. The text completes "NAME ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Bytes that are not UTF-8.
    #[error("is not UTF-8")]
    Encoding,
    /// The name is empty, begins or ends with a separator, or has two in a row.
    #[error("is absolute or has an empty component")]
    EmptyPart,
    /// `.` or `..`.
    #[error("contains a `{0}` component")]
    DotPart(&'static str),
    /// A part begins with a dot, where that is not allowed.
    #[error("names a hidden file")]
    Hidden,
    /// A backslash, where it does not separate.
    #[error("contains a backslash")]
    Backslash,
    /// A control character, such as a line break.
    #[error("contains a control character")]
    Control,
    /// A letter and a colon at the beginning: a path on another drive.
    #[error("begins with a drive letter")]
    Drive,
    /// A colon, which names a stream of a file, or another character that Windows reserves.
    #[error("contains `{0}`, which Windows does not allow")]
    Reserved(char),
    /// A part ends with a dot or a space, which Windows removes.
    #[error("has a component that ends with a dot or a space, which Windows removes")]
    TrailingDotOrSpace,
    /// A part is the name of a device on Windows, whatever its extension.
    #[error("contains the name of a Windows device")]
    Device,
    /// Too long for file systems.
    #[error(
        "has more than {MAX_BYTES} bytes, more than {MAX_PARTS} components, or a component of \
         more than {MAX_PART_BYTES} bytes"
    )]
    Length,
}

/// The maximum length of a path in bytes: Linux does not open longer paths.
const MAX_BYTES: usize = 4_095;
/// The maximum number of parts of a path. Each is a directory to create, so a few names with
/// thousands of parts would cost far more than their bytes.
const MAX_PARTS: usize = 128;
/// The maximum length of a part in bytes: the limit of common file systems.
const MAX_PART_BYTES: usize = 255;

impl<'a> SafePath<'a> {
    /// Parses a name.
    pub fn parse(name: &'a [u8], rules: PathRules) -> Result<Self, PathError> {
        Self::parse_str(core::str::from_utf8(name).map_err(|_| PathError::Encoding)?, rules)
    }

    /// Parses a name that is already text.
    pub fn parse_str(name: &'a str, rules: PathRules) -> Result<Self, PathError> {
        if name.len() > MAX_BYTES {
            return Err(PathError::Length);
        }
        if matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
            return Err(PathError::Drive);
        }
        let path = Self { name, backslash_separates: rules.backslash_separates };
        for part in path.parts() {
            check_part(part, rules)?;
        }
        if path.parts().count() > MAX_PARTS {
            return Err(PathError::Length);
        }
        match path.windows_error().filter(|_| rules.portable) {
            Some(error) => Err(error),
            None => Ok(path),
        }
    }

    /// Why Windows cannot have a file with this name; `None` if it can.
    #[must_use]
    pub fn windows_error(self) -> Option<PathError> {
        self.parts().find_map(windows_error)
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.name
    }

    /// The parts; there is at least one.
    pub fn parts(self) -> impl Iterator<Item = &'a str> {
        let backslash = self.backslash_separates;
        self.name.split(move |letter| letter == '/' || letter == '\\' && backslash)
    }

    /// The path below a directory.
    #[must_use]
    pub fn below(self, directory: &Path) -> PathBuf {
        let mut path = directory.to_owned();
        path.extend(self.parts());
        path
    }

    /// The relative path in the system's own form.
    #[must_use]
    pub fn to_path_buf(self) -> PathBuf {
        self.parts().collect()
    }
}

impl fmt::Display for SafePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn check_part(part: &str, rules: PathRules) -> Result<(), PathError> {
    if part.is_empty() {
        return Err(PathError::EmptyPart);
    }
    if let Some(dots) = [".", ".."].into_iter().find(|dots| *dots == part) {
        return Err(PathError::DotPart(dots));
    }
    if part.starts_with('.') && !rules.allow_hidden {
        return Err(PathError::Hidden);
    }
    if part.contains('\\') {
        return Err(PathError::Backslash);
    }
    if part.contains(char::is_control) {
        return Err(PathError::Control);
    }
    if part.len() > MAX_PART_BYTES {
        return Err(PathError::Length);
    }
    Ok(())
}

fn windows_error(part: &str) -> Option<PathError> {
    if let Some(reserved) = part.chars().find(|letter| r#":<>"|?*"#.contains(*letter)) {
        return Some(PathError::Reserved(reserved));
    }
    if part.ends_with(['.', ' ']) {
        return Some(PathError::TrailingDotOrSpace);
    }
    let stem = part.split('.').next().unwrap_or(part).trim_end();
    is_device(stem).then_some(PathError::Device)
}

/// Whether a name without its extension is that of a device. Windows counts superscript digits as
/// digits in such names.
fn is_device(stem: &str) -> bool {
    const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    let is_port = |kind: &str| {
        let begins = stem.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(kind));
        let mut rest = stem.get(3..).unwrap_or_default().chars();
        let number = rest.next().is_some_and(|c| matches!(c, '1'..='9' | '¹' | '²' | '³'));
        begins && number && rest.next().is_none()
    };
    DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device))
        || is_port("COM")
        || is_port("LPT")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIX: PathRules =
        PathRules { backslash_separates: false, allow_hidden: true, portable: false };
    const PORTABLE: PathRules = PathRules { portable: true, ..UNIX };

    fn error(name: &str, rules: PathRules) -> Option<PathError> {
        SafePath::parse(name.as_bytes(), rules).err()
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused_everywhere() {
        for (name, wanted) in [
            ("", PathError::EmptyPart),
            ("/etc/passwd", PathError::EmptyPart),
            ("a//b", PathError::EmptyPart),
            ("a/", PathError::EmptyPart),
            ("..", PathError::DotPart("..")),
            ("a/../b", PathError::DotPart("..")),
            ("./a", PathError::DotPart(".")),
            ("C:/a", PathError::Drive),
            ("c:", PathError::Drive),
            ("a\\b", PathError::Backslash),
            ("a\0b", PathError::Control),
            ("a\nb", PathError::Control),
            ("a\u{9b}b", PathError::Control),
        ] {
            assert_eq!(error(name, UNIX), Some(wanted), "{name:?}");
        }
        assert_eq!(SafePath::parse(b"a\xff", UNIX), Err(PathError::Encoding));
        for name in ["a", "Data/Ω.txt", "..a", ".git/config", "a..b", "COM10", "com", "a b/c d"] {
            assert_eq!(error(name, PORTABLE), None, "{name:?}");
        }
    }

    #[test]
    fn names_that_only_windows_forbids_depend_on_the_rules() {
        for (name, wanted) in [
            ("ab:stream", PathError::Reserved(':')),
            ("a/C:", PathError::Reserved(':')),
            ("a?", PathError::Reserved('?')),
            ("a. ", PathError::TrailingDotOrSpace),
            ("a./b", PathError::TrailingDotOrSpace),
            ("con", PathError::Device),
            ("CONIN$", PathError::Device),
            ("a/NUL.txt", PathError::Device),
            ("NUL .txt", PathError::Device),
            ("con .cfg", PathError::Device),
            ("com1", PathError::Device),
            ("LPT9.x", PathError::Device),
            ("COM¹", PathError::Device),
        ] {
            assert_eq!(error(name, PORTABLE), Some(wanted), "{name:?}");
            let path = SafePath::parse(name.as_bytes(), UNIX).unwrap();
            assert_eq!(path.windows_error(), Some(wanted), "{name:?}");
        }
    }

    #[test]
    fn downloads_may_use_backslashes_but_name_no_hidden_files() {
        let path = SafePath::parse(b"dat\\a b.prp", PathRules::DOWNLOAD).unwrap();
        assert_eq!(path.as_str(), "dat\\a b.prp");
        assert_eq!(path.to_path_buf(), ["dat", "a b.prp"].iter().collect::<PathBuf>());
        for name in [".ssh/authorized_keys", "dat\\.x", ".x"] {
            assert_eq!(error(name, PathRules::DOWNLOAD), Some(PathError::Hidden), "{name:?}");
        }
        for name in ["\\x", "..\\x", "a\\..\\..\\b", "c:\\x", "a\0"] {
            assert!(error(name, PathRules::DOWNLOAD).is_some(), "{name:?}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(error(&"a".repeat(255), UNIX), None);
        assert_eq!(error(&"a".repeat(256), UNIX), Some(PathError::Length));
        let long = |parts: usize| vec!["abcdefghijklmno"; parts].join("/");
        assert_eq!(error(&long(128), UNIX), None);
        assert_eq!(error(&long(129), UNIX), Some(PathError::Length));
        let bytes = |part: usize| vec!["a".repeat(part); 17].join("/");
        assert_eq!((bytes(239).len(), error(&bytes(239), UNIX)), (4_079, None));
        assert_eq!((bytes(240).len(), error(&bytes(240), UNIX)), (4_096, Some(PathError::Length)));
    }

    proptest! {
        #[test]
        fn every_accepted_path_stays_below(name in r"[a.\\/: C]{0,12}", backslash: bool, hidden: bool) {
            let rules =
                PathRules { backslash_separates: backslash, allow_hidden: hidden, portable: true };
            if let Ok(path) = SafePath::parse(name.as_bytes(), rules) {
                let is_normal = |part| matches!(part, std::path::Component::Normal(_));
                let buffer = path.to_path_buf();
                prop_assert!(buffer.components().all(is_normal), "{name:?}");
                prop_assert_eq!(buffer.components().count(), path.parts().count());
                prop_assert!(path.below(Path::new("/root")).starts_with("/root"));
            }
        }
    }
}
