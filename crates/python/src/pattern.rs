//! Patterns for the names of files in archives.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern: `*` and `?` match within a directory, `**` any number of directories.
pub(crate) struct Pattern {
    /// The text before the first special character. Comparing it first is faster than matching.
    prefix: String,
    rest: Rest,
}

enum Rest {
    Anything,
    /// Any directories, and any file whose name ends with this.
    Ending(String),
    /// The whole pattern.
    Glob(Box<GlobMatcher>),
}

/// Characters with a meaning in patterns.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

impl Pattern {
    /// Reads a pattern.
    pub(crate) fn new(pattern: &str) -> Result<Self, globset::Error> {
        let (prefix, rest) = pattern.split_at(pattern.find(SPECIAL).unwrap_or(pattern.len()));
        let prefix_is_whole = prefix.is_empty() || prefix.ends_with('/');
        let ending = rest.strip_prefix("**/*").filter(|ending| !ending.contains(SPECIAL));
        let rest = match ending.filter(|ending| !ending.contains('/')) {
            _ if rest == "**" && prefix_is_whole => Rest::Anything,
            Some(ending) if prefix_is_whole => Rest::Ending(ending.to_owned()),
            _ => {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
                Rest::Glob(Box::new(glob.compile_matcher()))
            }
        };
        Ok(Self { prefix: prefix.to_owned(), rest })
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&*self.prefix) else { return false };
        match &self.rest {
            Rest::Anything => true,
            Rest::Ending(ending) => rest.ends_with(&**ending),
            Rest::Glob(matcher) => matcher.is_match(name),
        }
    }
}
