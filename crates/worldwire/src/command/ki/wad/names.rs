//! Checks which file names can coexist in a directory.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;

use worldwire_core::path::{PathError, PathRules, SafePath};
use worldwire_ki::file::wad;

use crate::cli::Common;
use crate::output::{Failure, printable};

/// The maximum number of parents of a name that are checked.
const MAX_PARENTS: usize = 128;
/// The maximum number of characters quoted from another file's name.
const MAX_SHOWN: usize = 200;

/// Why a file is not written under its name.
pub(super) enum Fault<'a> {
    /// The name could lead outside the directory.
    Unsafe(PathError),
    /// An earlier file has the same name.
    Twice,
    /// An earlier file's name differs only in case, and some file systems ignore case.
    Case(&'a str),
    /// The name belongs to a directory that contains another file.
    Folder(&'a str),
}

impl Fault<'_> {
    /// The name in JSON output.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Unsafe(_) => "name",
            Self::Twice => "twice",
            Self::Case(_) => "case",
            Self::Folder(_) => "folder",
        }
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsafe(error) => write!(f, "its name {error}"),
            Self::Twice => f.write_str("an earlier file has the same name"),
            Self::Case(other) => {
                write!(f, "differs only in case from {}, which comes first", brief(other))
            }
            Self::Folder(other) => {
                write!(f, "is also the name of the directory that contains {}", brief(other))
            }
        }
    }
}

/// The name under which each entry is written, or the reason why it is refused. If several entries
/// have the same path, the first one is written.
pub(super) fn judge<'a>(
    chosen: &[&'a wad::Entry<'_>],
    rules: PathRules,
) -> Vec<Result<SafePath<'a>, Fault<'a>>> {
    let path = |entry: &&'a wad::Entry<'_>| SafePath::parse(&entry.name, rules);
    let paths: Vec<_> = chosen.iter().map(|entry| path(entry).map_err(Fault::Unsafe)).collect();
    let mut folders = HashMap::new();
    for path in paths.iter().flatten() {
        for parent in parents(path.as_str()) {
            folders.entry(parent.to_lowercase()).or_insert(path.as_str());
        }
    }
    let mut seen = HashMap::with_capacity(paths.len());
    let judged = paths.into_iter().map(|path| {
        let path = path?;
        let name = path.as_str();
        let spelling = name.to_lowercase();
        if let Some(inside) = folders.get(&spelling) {
            return Err(Fault::Folder(inside));
        }
        match seen.entry(spelling) {
            Entry::Vacant(free) => {
                free.insert(name);
                Ok(path)
            }
            Entry::Occupied(other) if *other.get() == name => Err(Fault::Twice),
            Entry::Occupied(other) => Err(Fault::Case(other.get())),
        }
    });
    judged.collect()
}

/// The name of an entry as a path, if it is valid on this system.
pub(super) fn path<'a>(entry: &'a wad::Entry<'_>) -> Option<&'a str> {
    SafePath::parse(&entry.name, PathRules::default()).map(SafePath::as_str).ok()
}

/// The rules for names in a run, and reports of names that only Windows forbids.
pub(super) struct PathCheck {
    rules: PathRules,
    windows_errors: usize,
}

/// The maximum number of names reported individually because Windows forbids them.
const MAX_WINDOWS_ERRORS: usize = 10;

impl PathCheck {
    /// `portable` refuses names that only Windows forbids.
    pub(super) fn new(portable: bool) -> Self {
        let rules = PathRules { portable: portable || cfg!(windows), ..PathRules::default() };
        Self { rules, windows_errors: 0 }
    }

    pub(super) fn rules(&self) -> PathRules {
        self.rules
    }

    /// Warns of a name that only Windows forbids.
    pub(super) fn note_windows_error(&mut self, path: SafePath<'_>, common: &Common) {
        let Some(error) = path.windows_error() else { return };
        self.windows_errors += 1;
        if self.windows_errors <= MAX_WINDOWS_ERRORS {
            let warning = format!("warning: cannot be extracted on Windows: it {error}");
            common.note(path.as_str(), &warning);
        }
    }

    /// Reports the number of further names of this kind.
    pub(super) fn finish(&self, title: &str, common: &Common) {
        if let Some(more) =
            self.windows_errors.checked_sub(MAX_WINDOWS_ERRORS).filter(|more| *more > 0)
        {
            common.note(title, &format!("warning: {more} more names that Windows does not allow"));
        }
    }
}

/// Refuses new names that could not be extracted again, on some systems or on all, because of
/// another name, new or kept. Conflicts between kept names are ignored.
pub(super) fn check_new<'a>(
    kept: impl Iterator<Item = &'a str> + Clone,
    new: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), Failure> {
    let refuse = |text: String| Err(Failure::Run(format!("refused: {}", printable(&text))));
    let mut kept_spellings: HashMap<String, Vec<&str>> = HashMap::new();
    for name in kept.clone() {
        kept_spellings.entry(name.to_lowercase()).or_default().push(name);
    }
    let mut new_spellings: HashMap<String, &str> = HashMap::new();
    for name in new.clone() {
        let spelling = name.to_lowercase();
        let others = kept_spellings.get(&spelling).map(Vec::as_slice).unwrap_or_default();
        if let Some(other) = others.first().filter(|_| !others.contains(&name)) {
            let problem = "in the archive differ only in case, which some systems do not allow";
            return refuse(format!("{name} and {other} {problem}"));
        }
        if let Some(other) = new_spellings.insert(spelling, name) {
            let problem = "differ only in case, which some systems do not allow";
            return refuse(format!("{other} and {name} {problem}"));
        }
    }
    for (name, is_new) in kept.map(|name| (name, false)).chain(new.map(|name| (name, true))) {
        for parent in parents(name) {
            let spelling = parent.to_lowercase();
            let old = kept_spellings.get(&spelling).and_then(|names| names.first());
            let file = new_spellings.get(&spelling).or_else(|| old.filter(|_| is_new));
            if let Some(file) = file {
                return refuse(format!("{file} is a file, but {name} needs it to be a directory"));
            }
        }
    }
    Ok(())
}

/// All names in a directory that contains files with these names, ignoring case.
pub(in crate::command::ki) fn taken<'a>(names: impl Iterator<Item = &'a str>) -> HashSet<String> {
    let mut taken = HashSet::new();
    for name in names {
        taken.extend(parents(name).map(str::to_lowercase));
        taken.insert(name.to_lowercase());
    }
    taken
}

/// The parents of a name: `a` and `a/b` for `a/b/c`. Names with more parents than this function
/// returns cannot be extracted; see [`SafePath`].
pub(super) fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').take(MAX_PARENTS).filter_map(|(at, _)| name.get(..at))
}

/// A file name, shortened to its end if it is long, to be quoted in another file's message. One
/// name can appear in the messages of all other files.
pub(super) fn brief(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth_back(MAX_SHOWN) {
        Some((start, _)) => Cow::Owned(format!("...{}", name.get(start..).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::check_new;

    #[test]
    fn names_that_cannot_be_beside_each_other_are_refused() {
        let fits = |kept: &[&'static str], new: &[&'static str]| {
            check_new(kept.iter().copied(), new.iter().copied()).is_ok()
        };
        assert!(fits(&["a", "b/c"], &["a", "b/d"]));
        assert!(!fits(&[], &["a", "A"]));
        assert!(!fits(&["a"], &["A"]));
        assert!(!fits(&["a"], &["a/b"]));
        assert!(!fits(&["A/b"], &["a"]));
        assert!(!fits(&[], &["File", "file/x"]));
        // This conflict already existed.
        assert!(fits(&["a", "A", "A/x"], &["b"]));
        assert!(fits(&["a", "A"], &["A"]));
    }
}
