//! The fields that a comparison ignores.

use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobMatcher};

use crate::output::Failure;

/// Fields by the ends of their paths.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    text: String,
    /// The names in the path, the last one first.
    names: Vec<GlobMatcher>,
    /// Whether a field matched.
    is_used: AtomicBool,
}

impl Ignored {
    /// Reads the patterns of `--ignore`.
    pub(super) fn parse(patterns: &[String]) -> Result<Self, Failure> {
        let one = |text: &String| {
            let refuse = |why: &str| Failure::Run(format!("--ignore {text}: {why}"));
            let name = |name: &str| {
                if name.is_empty() {
                    return Err(refuse("needs the end of a field's path, such as node.ModifyTime"));
                }
                // These are wire names, so only the asterisk is special.
                let literal: String = name
                    .chars()
                    .flat_map(|c| match c {
                        '*' => vec![c],
                        c if c.is_alphanumeric() || c == '_' => vec![c],
                        c => vec!['\\', c],
                    })
                    .collect();
                let glob = GlobBuilder::new(&literal).backslash_escape(true).build();
                glob.map(|glob| glob.compile_matcher()).map_err(|error| refuse(&error.to_string()))
            };
            let names = text.trim().rsplit('.').map(name).collect::<Result<_, _>>()?;
            Ok(Pattern { text: text.clone(), names, is_used: AtomicBool::new(false) })
        };
        patterns.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a field is ignored. Its path begins with the name of its message.
    pub(super) fn has(&self, path: &str) -> bool {
        let fits = |pattern: &&Pattern| {
            let mut names = path.rsplit('.');
            // A dollar sign marks names that are not the protocol's own. It can be omitted.
            let is_named = |glob: &GlobMatcher, name: &str| {
                let plain = name.strip_prefix('$');
                glob.is_match(name) || plain.is_some_and(|name| glob.is_match(name))
            };
            pattern.names.iter().all(|glob| names.next().is_some_and(|name| is_named(glob, name)))
        };
        let found = self.0.iter().find(fits);
        if let Some(pattern) = found {
            pattern.is_used.store(true, Ordering::Relaxed);
        }
        found.is_some()
    }

    /// The patterns that matched no field.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = |pattern: &&Pattern| !pattern.is_used.load(Ordering::Relaxed);
        self.0.iter().filter(unused).map(|pattern| &*pattern.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_is_enough() {
        let patterns = ["transId", "node.*Time", "auth.Login.x", "integrity"].map(str::to_owned);
        let ignored = Ignored::parse(&patterns).expect("they are valid");
        for (path, is_ignored) in [
            ("auth.Ping.transId", true),
            ("auth.Ping.transIds", false),
            ("auth.Save.node.ModifyTime", true),
            ("auth.Save.other.ModifyTime", false),
            ("auth.Login.x", true),
            ("auth.Other.x", false),
            ("x", false),
            ("tera.C_CHAT.$integrity", true),
            ("tera.C_CHAT.$integrity.counter", false),
        ] {
            assert_eq!(ignored.has(path), is_ignored, "{path}");
        }
        assert_eq!(ignored.unused().count(), 0);
        assert!(Ignored::parse(&["a..b".to_owned()]).is_err());
    }
}
