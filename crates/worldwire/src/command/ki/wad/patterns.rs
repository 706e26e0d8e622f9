//! Patterns over the names of entries.

use std::borrow::Cow;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::output::{Failure, complain, printable};

/// Patterns, of which each must match something. Of the crates for that, this one compiles all
/// patterns to one automaton, so that a hundred patterns over a hundred thousand names stay quick.
pub(super) struct Patterns<'p> {
    texts: &'p [String],
    set: GlobSet,
}

impl<'p> Patterns<'p> {
    pub(super) fn new(texts: &'p [String]) -> Result<Self, Failure> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            set.add(glob(text)?);
        }
        let set = set.build().map_err(|error| Failure::Run(printable(&error.to_string())))?;
        Ok(Self { texts, set })
    }

    /// Whether some pattern matches.
    pub(super) fn is_match(&self, name: &str) -> bool {
        self.set.is_match(name)
    }

    /// What has a name that some pattern matches. A pattern that matches no name at all is an
    /// error: it was meant to do something.
    pub(super) fn choose<T>(
        &self,
        all: impl Iterator<Item = T> + Clone,
        name: impl Fn(&T) -> Cow<'_, str>,
        whole: &str,
    ) -> Result<Vec<T>, Failure> {
        let mut idle = vec![true; self.texts.len()];
        let mut hits = Vec::new();
        let mut chosen = Vec::new();
        for item in all.clone() {
            self.set.matches_into(&*name(&item), &mut hits);
            for hit in &hits {
                if let Some(idle) = idle.get_mut(*hit) {
                    *idle = false;
                }
            }
            if !hits.is_empty() {
                chosen.push(item);
            }
        }
        let mut faults = Vec::new();
        for text in self.texts.iter().zip(idle).filter(|(_, idle)| *idle).map(|(text, _)| text) {
            let deeper = format!("**/{text}");
            let finds = glob(&deeper)?.compile_matcher();
            let hint =
                match !text.is_empty() && all.clone().any(|item| finds.is_match(&*name(&item))) {
                    true => format!("; {deeper} does"),
                    false => String::new(),
                };
            faults.push((text, format!("matches no file {whole}{hint}")));
        }
        let Some((text, last)) = faults.pop() else {
            return Ok(chosen);
        };
        faults.iter().for_each(|(text, fault)| complain(text, fault));
        Err(Failure::Run(printable(&format!("{text}: {last}"))))
    }
}

/// `*` and `?` stay within a folder, as in all shells.
fn glob(text: &str) -> Result<Glob, Failure> {
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map_err(|error| Failure::Run(printable(&error.to_string())))
}
