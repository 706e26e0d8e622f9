//! Versions of the game and of definitions, and the names of definition files.

use core::fmt;
use core::str::FromStr;

/// A version of the game: 98.02 is patch 98, minor 2.
///
/// Compared as a number, but stored as two integers so that nothing is rounded.
///
/// ```
/// use worldwire_tera::schema::Patch;
/// let patch: Patch = "98.02".parse().unwrap();
/// assert_eq!(patch, Patch { major: 98, minor: 2 });
/// assert!(patch > "98".parse().unwrap());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Patch {
    /// The number that people use.
    pub major: u16,
    /// Hundredths, 0 to 99.
    pub minor: u8,
}

impl Patch {
    /// Later than any real patch: used when the patch is not known.
    pub const LATEST: Self = Self { major: u16::MAX, minor: 99 };

    /// The first version of a patch.
    #[must_use]
    pub const fn major(major: u16) -> Self {
        Self { major, minor: 0 }
    }
}

/// Text that is not a version: versions are digits, optionally followed by a dot and one or two
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version; write it as 98 or 98.02")]
pub struct NotAPatch;

impl FromStr for Patch {
    type Err = NotAPatch;

    fn from_str(text: &str) -> Result<Self, NotAPatch> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(major) || !digits(minor) || minor.is_empty() || minor.len() > 2 {
            return Err(NotAPatch);
        }
        let major = major.parse().map_err(|_| NotAPatch)?;
        let scale = if minor.len() == 1 { 10 } else { 1 };
        let minor: u8 = minor.parse().map_err(|_| NotAPatch)?;
        Ok(Self { major, minor: minor * scale })
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            0 => write!(f, "{}", self.major),
            minor => write!(f, "{}.{minor:02}", self.major),
        }
    }
}

/// The patches in which a field exists: `^86` from 86 on, `^0-86` before 86.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchRange {
    /// The first patch.
    pub from: Patch,
    /// The first patch in which it no longer exists.
    pub to: Option<Patch>,
}

impl PatchRange {
    /// Whether a patch is in the range.
    #[must_use]
    pub fn contains(self, patch: Patch) -> bool {
        self.from <= patch && self.to.is_none_or(|to| patch < to)
    }
}

impl fmt::Display for PatchRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "^{}", self.from)?;
        self.to.map_or(Ok(()), |to| write!(f, "-{to}"))
    }
}

/// The platform a client runs on, as file names spell it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Platform {
    /// `pc`.
    Pc,
    /// `ps4`.
    Ps4,
    /// `xb1`.
    Xb1,
    /// An undocumented name.
    Other(Box<str>),
}

impl Platform {
    /// The platform with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "pc" => Self::Pc,
            "ps4" => Self::Ps4,
            "xb1" => Self::Xb1,
            other => Self::Other(other.into()),
        }
    }

    /// The platform's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pc => "pc",
            Self::Ps4 => "ps4",
            Self::Xb1 => "xb1",
            Self::Other(name) => name,
        }
    }
}

/// The name of a definition file: `NAME.VERSION.def` or `NAME.VERSION.PLATFORM.def`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The message's name.
    pub name: Box<str>,
    /// The layout's version; 0 is a private override.
    pub version: u32,
    /// The platform, if the file is for one only.
    pub platform: Option<Platform>,
}

/// Why a file is not read as a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotADefinition {
    /// Not a definition file, by its ending.
    Other,
    /// A definition written as a program (`.js`), which cannot be read.
    Program,
    /// It ends in `.def`, but the rest of its name is malformed.
    BadName,
}

impl FileName {
    /// Splits a file name, given without its directory, into its parts.
    pub fn parse(file: &str) -> Result<Self, NotADefinition> {
        let Some(stem) = file.strip_suffix(".def") else {
            let program = file.strip_suffix(".js").is_some_and(|stem| Self::parts(stem).is_some());
            return Err(if program { NotADefinition::Program } else { NotADefinition::Other });
        };
        Self::parts(stem).ok_or(NotADefinition::BadName)
    }

    fn parts(stem: &str) -> Option<Self> {
        let mut parts = stem.split('.');
        let (name, version, platform) = (parts.next()?, parts.next()?, parts.next());
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        let digits = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        if parts.next().is_some() || !word(name) || !digits || platform.is_some_and(|p| !word(p)) {
            return None;
        }
        Some(Self {
            name: name.into(),
            version: version.parse().ok()?,
            platform: platform.map(Platform::from_name),
        })
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.version)?;
        if let Some(platform) = &self.platform {
            write!(f, ".{}", platform.name())?;
        }
        f.write_str(".def")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_numbers() {
        let patch = |text: &str| text.parse::<Patch>();
        assert_eq!(patch("98.2"), Ok(Patch { major: 98, minor: 20 }));
        assert_eq!(patch("98.02").unwrap().to_string(), "98.02");
        assert_eq!(patch("86").unwrap().to_string(), "86");
        for bad in ["", ".", "98.", ".2", "98.021", "+1", "70000", "9.0.1"] {
            assert_eq!(patch(bad), Err(NotAPatch), "{bad}");
        }
        let range = PatchRange { from: Patch::major(86), to: Some(Patch::major(97)) };
        assert!(range.contains(patch("96.99").unwrap()) && !range.contains(Patch::major(97)));
        assert_eq!(range.to_string(), "^86-97");
    }

    #[test]
    fn a_version_that_overflows_is_refused() {
        assert_eq!(FileName::parse("S_A.99999999999.def"), Err(NotADefinition::BadName));
        assert_eq!(FileName::parse("S_A.007.def").unwrap().to_string(), "S_A.7.def");
    }
}
