//! The patch of each client revision: `revisions.json`.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

use super::JsonFile;
use crate::schema::{Patch, Problem};

/// A build's region and versions: `[REGION-]MAJOR[.MINOR][/SYSMSG]`.
///
/// ```
/// use worldwire_tera::file::Revision;
/// let revision: Revision = "eu-98.02/97".parse().unwrap();
/// assert_eq!(revision.region.as_deref(), Some("eu"));
/// assert_eq!(revision.patch.to_string(), "98.02");
/// assert_eq!(revision.system_messages(), "97");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The region it was published in: `eu`, `int`.
    pub region: Option<Box<str>>,
    /// The version of the game.
    pub patch: Patch,
    /// The version of its system message map, if that differs from the patch.
    pub sysmsg: Option<Box<str>>,
}

impl Revision {
    /// The version of its system message map.
    #[must_use]
    pub fn system_messages(&self) -> String {
        match &self.sysmsg {
            Some(version) => version.to_string(),
            None => self.patch.major.to_string(),
        }
    }
}

/// Text that does not describe a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a build; write it as eu-98.02 or 98.02/97")]
pub struct NotARevision;

impl FromStr for Revision {
    type Err = NotARevision;

    fn from_str(text: &str) -> Result<Self, NotARevision> {
        let (build, sysmsg) = match text.split_once('/') {
            Some((_, "")) => return Err(NotARevision),
            Some((build, sysmsg)) => (build, Some(sysmsg.into())),
            None => (text, None),
        };
        let (region, patch) = match build.rsplit_once('-') {
            Some(("", _)) => return Err(NotARevision),
            Some((region, patch)) => (Some(region.into()), patch),
            None => (None, build),
        };
        Ok(Self { region, patch: patch.parse().map_err(|_| NotARevision)?, sysmsg })
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(region) = &self.region {
            write!(f, "{region}-")?;
        }
        write!(f, "{}", self.patch)?;
        self.sysmsg.as_ref().map_or(Ok(()), |sysmsg| write!(f, "/{sysmsg}"))
    }
}

/// The known builds, by revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions(BTreeMap<u32, Revision>);

impl Revisions {
    /// Parses `revisions.json`. Invalid entries are reported and skipped.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> (Self, Vec<Problem>) {
        JsonFile::read(name, text, |file, json| {
            let mut revisions = BTreeMap::new();
            for (key, value) in file.members(json, "the file must contain an object of revisions") {
                let build = value.as_str().and_then(|build| build.parse().ok());
                match (key.parse(), build) {
                    (Ok(number), Some(build)) => drop(revisions.insert(number, build)),
                    (Err(_), _) => file.bad(key, format!("\"{key}\" is not a revision")),
                    (_, None) => file.bad(key, format!("{value} is {NotARevision}")),
                }
            }
            Self(revisions)
        })
    }

    /// The build with a revision.
    #[must_use]
    pub fn get(&self, revision: u32) -> Option<&Revision> {
        self.0.get(&revision)
    }

    /// All builds, in ascending order of revision.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Revision)> {
        self.0.iter().map(|(number, revision)| (*number, revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_and_displayed() {
        for text in ["98.02", "eu-98.02", "98.02/97", "int-27.07/311383"] {
            assert_eq!(text.parse::<Revision>().unwrap().to_string(), text);
        }
        for text in ["", "eu-", "-98", "98/", "eu", "98.x"] {
            assert_eq!(text.parse::<Revision>(), Err(NotARevision), "{text}");
        }
    }

    #[test]
    fn errors_have_positions() {
        let (revisions, problems) =
            Revisions::parse("r.json", "{\n\"1\": \"98\",\n\"x\": \"98\",\n\"2\": 5\n}");
        assert_eq!(revisions.iter().count(), 1);
        let lines: Vec<_> = problems.iter().map(|problem| problem.diagnostic.line()).collect();
        assert_eq!(lines, [4, 3]);
        let (_, problems) = Revisions::parse("r.json", "{\n\"1\": ,\n}");
        assert_eq!(problems[0].diagnostic.line(), 2);
    }
}
