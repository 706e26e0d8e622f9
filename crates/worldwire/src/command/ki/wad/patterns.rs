//! Patterns for the names of entries.

use std::borrow::Cow;
use std::collections::HashSet;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::command::ki::found::has_ending;
use crate::command::ki::inside::meant;
use crate::output::{Failure, complain, printable};

/// The maximum number of patterns for which an explanation is given, since each explanation
/// examines all names.
const MAX_EXPLAINED: usize = 100;

/// Patterns that must each match something. globset compiles all of them into one automaton, so
/// matching a hundred patterns against a hundred thousand names stays fast.
pub(super) struct Patterns<'p> {
    texts: &'p [String],
    /// Patterns without wildcards, which match only themselves.
    names: HashSet<&'p str>,
    /// The others, in the order of the automaton.
    globs: Vec<&'p str>,
    set: GlobSet,
}

impl<'p> Patterns<'p> {
    /// Creates patterns for these names.
    pub(super) fn new<'n>(
        texts: &'p [String],
        names: impl Iterator<Item = Cow<'n, str>>,
    ) -> Result<Self, Failure> {
        let asked: HashSet<&'p str> = texts.iter().map(String::as_str).collect();
        let names: HashSet<&'p str> = match asked.is_empty() {
            true => HashSet::new(),
            false => names.filter_map(|name| asked.get(&*name).copied()).collect(),
        };
        let globs: Vec<&'p str> =
            texts.iter().map(String::as_str).filter(|text| !names.contains(text)).collect();
        let mut set = GlobSetBuilder::new();
        for text in &globs {
            let glob = pattern(text, false);
            set.add(glob.map_err(|error| Failure::Run(printable(&error.to_string())))?);
        }
        let set = set.build().map_err(|error| Failure::Run(printable(&error.to_string())))?;
        Ok(Self { texts, names, globs, set })
    }

    /// Whether any pattern matches.
    pub(super) fn is_match(&self, name: &str) -> bool {
        self.names.contains(name) || self.set.is_match(name)
    }

    /// The items whose names match any pattern. A pattern that does not match any name is an error,
    /// because the user expected it to match.
    pub(super) fn choose<T>(
        &self,
        all: impl Iterator<Item = T> + Clone,
        name: impl Fn(&T) -> Cow<'_, str>,
        whole: &str,
    ) -> Result<Vec<T>, Failure> {
        let mut used: HashSet<&str> = HashSet::new();
        let mut hits = Vec::new();
        let mut chosen = Vec::new();
        for item in all.clone() {
            let is_chosen = {
                let name = name(&item);
                let own = self.names.get(&*name);
                self.set.matches_into(&*name, &mut hits);
                used.extend(own);
                used.extend(hits.iter().filter_map(|hit| self.globs.get(*hit)));
                own.is_some() || !hits.is_empty()
            };
            if is_chosen {
                chosen.push(item);
            }
        }
        let idle: Vec<&String> =
            self.texts.iter().filter(|text| !used.contains(text.as_str())).collect();
        let names: Vec<String> = match idle.is_empty() {
            true => return Ok(chosen),
            false => all.map(|item| name(&item).into_owned()).collect(),
        };
        let fault = |(index, text): (usize, &&String)| {
            let hint = if index < MAX_EXPLAINED { hint(text, &names) } else { String::new() };
            format!("matches no file {whole}{hint}")
        };
        let faults: Vec<String> = idle.iter().enumerate().map(fault).collect();
        idle.iter().zip(&faults).for_each(|(text, fault)| complain(text, fault));
        Err(Failure::Input)
    }
}

/// Suggests what was meant by a pattern that matches nothing.
fn hint(text: &str, names: &[String]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let straight = text.replace('\\', "/");
    let folder = straight.trim_end_matches('/');
    let others = [
        format!("**/{text}"),
        format!("{folder}/**"),
        straight.clone(),
        format!("**/{straight}"),
        format!("**/{folder}/**"),
    ];
    let finds = |text: &str, in_any_case| {
        let matcher = pattern(text, in_any_case).ok()?.compile_matcher();
        names.iter().find(|name| matcher.is_match(name))
    };
    if let Some(other) = others.iter().find(|other| *other != text && finds(other, false).is_some())
    {
        return format!("; {other} does");
    }
    let is_plain = !text.contains(['*', '?', '[', '{']);
    let near = finds(&straight, true).map(String::as_str);
    let near = near.or_else(|| meant(text, names.iter().map(String::as_str)).filter(|_| is_plain));
    match near {
        // More archives can follow the first one, mixed with patterns.
        _ if is_plain && has_ending(text, "wad") => "; no such archive exists either".to_owned(),
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    }
}

/// `*` and `?` stay within a directory, as in all shells.
fn pattern(text: &str, in_any_case: bool) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text).literal_separator(true).case_insensitive(in_any_case).build()
}
