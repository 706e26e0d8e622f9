//! Resolves references between the descriptors of many texts.

use core::ops::Range;
use std::collections::BTreeMap;

use worldwire_core::{Diagnostic, Source};

use super::definition::ElementType;
use super::parse::{Statement, parse_into};
use super::problems::Problems;
use super::shape::DescriptorLayout;
use super::types::fold;

/// The versions of a name, ascending, with their indices in the arena.
pub(super) type Versions = Vec<(u16, usize)>;

/// The result of resolving all names.
pub(super) struct Resolved {
    pub(super) layouts: Vec<DescriptorLayout>,
    /// Case-folded names, ascending.
    pub(super) names: Vec<(Box<str>, Versions)>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Texts that are parsed but not resolved yet.
#[derive(Default)]
pub(super) struct Loading<'t> {
    /// The problems of each file.
    problems: Vec<Problems<'t>>,
    /// All statements, with the index of their file.
    statements: Vec<(usize, Statement)>,
    /// The first statement of each folded name and version.
    first: BTreeMap<(Box<str>, u16), usize>,
    /// Whether each statement is kept.
    valid: Vec<bool>,
}

impl<'t> Loading<'t> {
    /// Parses a text.
    pub(super) fn add(&mut self, name: &str, text: &'t str) {
        let file = self.problems.len();
        let mut problems = Problems::new(name, text);
        let statements = parse_into(text, &mut problems);
        self.problems.push(problems);
        for statement in statements {
            let definition = &statement.definition;
            let key = (fold(&definition.name), definition.version);
            if let Some((first_file, first)) =
                self.first.get(&key).and_then(|at| self.statements.get(*at))
            {
                let source = self.problems.get(*first_file).map(Problems::source);
                let message = format!(
                    "{} version {} is already defined in {}:{}",
                    definition.name,
                    definition.version,
                    source.map_or("", Source::name),
                    source.map_or(0, |source| source.line(first.name_span.start)),
                );
                self.report(file, statement.name_span.clone(), message);
                continue;
            }
            self.first.insert(key, self.statements.len());
            self.valid.push(statement.valid);
            self.statements.push((file, statement));
        }
    }

    fn report(&mut self, file: usize, span: Range<usize>, message: String) {
        if let Some(problems) = self.problems.get_mut(file) {
            problems.error(span, message, None);
        }
    }

    /// The statement with the newest version of a name.
    fn newest(&self, name: &str) -> Option<usize> {
        let folded = fold(name);
        let range = (folded.clone(), 0)..=(folded, u16::MAX);
        self.first.range(range).next_back().map(|(_, at)| *at)
    }

    /// Resolves all statements.
    pub(super) fn resolve(mut self) -> Resolved {
        let targets = self.targets();
        self.remove_dependents(&targets);
        self.remove_endless(&targets);
        let mut moved = vec![None; self.statements.len()];
        let mut next = 0;
        for (place, valid) in moved.iter_mut().zip(&self.valid) {
            if *valid {
                *place = Some(next);
                next += 1;
            }
        }
        let mut layouts = Vec::with_capacity(next);
        let mut names: BTreeMap<Box<str>, Versions> = BTreeMap::new();
        for (at, (_, statement)) in self.statements.into_iter().enumerate() {
            let Some(Some(place)) = moved.get(at) else { continue };
            let definition = statement.definition;
            let versions = names.entry(fold(&definition.name)).or_default();
            versions.push((definition.version, *place));
            let target = |target: Option<usize>| moved.get(target?).copied().flatten();
            let targets = targets.get(at).into_iter().flatten();
            layouts.push(DescriptorLayout::new(
                definition,
                targets.filter_map(|one| target(*one)).collect(),
            ));
        }
        let mut names: Vec<_> = names.into_iter().collect();
        for (_, versions) in &mut names {
            versions.sort_unstable();
        }
        let problems = self.problems.into_iter().flat_map(Problems::into_list).collect();
        Resolved { layouts, names, problems }
    }

    /// Finds, for every statement, the statements its nested variables refer to.
    fn targets(&mut self) -> Vec<Vec<Option<usize>>> {
        let mut all = Vec::with_capacity(self.statements.len());
        let mut missing = Vec::new();
        for (at, (file, statement)) in self.statements.iter().enumerate() {
            let variables = statement.definition.variables.iter().zip(&statement.type_spans);
            let mut targets = Vec::new();
            for (variable, span) in variables {
                let ElementType::Nested(name) = &variable.kind else { continue };
                let target = self.newest(name);
                if target.is_none() {
                    missing.push((at, *file, span.clone(), name.clone()));
                }
                targets.push(target);
            }
            all.push(targets);
        }
        for (at, file, span, name) in missing {
            if let Some(valid) = self.valid.get_mut(at) {
                *valid = false;
            }
            self.report(file, span, format!("unknown descriptor {name}"));
        }
        all
    }

    /// Removes statements that refer to an invalid one.
    fn remove_dependents(&mut self, targets: &[Vec<Option<usize>>]) {
        let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); targets.len()];
        for (at, targets) in targets.iter().enumerate() {
            for target in targets.iter().flatten() {
                if let Some(list) = dependents.get_mut(*target) {
                    list.push(at);
                }
            }
        }
        let bad = self.valid.iter().enumerate().filter(|(_, valid)| !**valid);
        let mut queue: Vec<usize> = bad.map(|(at, _)| at).collect();
        while let Some(at) = queue.pop() {
            for dependent in dependents.get(at).into_iter().flatten() {
                let Some(valid) = self.valid.get_mut(*dependent) else { continue };
                if !core::mem::take(valid) {
                    continue;
                }
                queue.push(*dependent);
                let name = self.statements.get(at).map_or("", |(_, s)| &s.definition.name);
                let message = format!("refers to {name}, which has errors");
                self.blame(*dependent, targets, at, message);
            }
        }
    }

    /// Removes descriptors that contain themselves endlessly: each of their records contains at
    /// least one more record of the same kind.
    fn remove_endless(&mut self, targets: &[Vec<Option<usize>>]) {
        let fixed: Vec<Vec<usize>> = targets
            .iter()
            .zip(&self.statements)
            .map(|(targets, (_, statement))| {
                let variables = statement.definition.variables.iter();
                let nested = variables.filter(|one| one.simple_type().is_none()).zip(targets);
                nested.filter(|(one, _)| one.count.is_some()).filter_map(|(_, at)| *at).collect()
            })
            .collect();
        // Topological sort: all remaining descriptors are part of a cycle or depend on one.
        let mut waiting: Vec<usize> = fixed.iter().map(Vec::len).collect();
        let mut holders: Vec<Vec<usize>> = vec![Vec::new(); fixed.len()];
        for (at, held) in fixed.iter().enumerate() {
            for one in held {
                if let Some(list) = holders.get_mut(*one) {
                    list.push(at);
                }
            }
        }
        let ended = waiting.iter().enumerate().filter(|(_, count)| **count == 0);
        let mut queue: Vec<usize> = ended.map(|(at, _)| at).collect();
        while let Some(at) = queue.pop() {
            for holder in holders.get(at).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(*holder) {
                    *count -= 1;
                    if *count == 0 {
                        queue.push(*holder);
                    }
                }
            }
        }
        for at in 0..waiting.len() {
            let endless = waiting.get(at).is_some_and(|count| *count > 0);
            let Some(valid) = self.valid.get_mut(at).filter(|valid| endless && **valid) else {
                continue;
            };
            *valid = false;
            let held = fixed.get(at).into_iter().flatten();
            let mut inner = held.filter(|one| waiting.get(**one).is_some_and(|count| *count > 0));
            if let Some(one) = inner.next().copied() {
                let message = "endless records: nested variables with a fixed count form a cycle";
                self.blame(at, targets, one, message.to_owned());
            }
        }
        // Descriptors with lists of the removed ones must be removed as well.
        self.remove_dependents(targets);
    }

    /// Reports an error at the first variable of one statement that refers to a given other
    /// statement.
    fn blame(&mut self, at: usize, targets: &[Vec<Option<usize>>], on: usize, message: String) {
        let Some((file, statement)) = self.statements.get(at) else { return };
        let variables = statement.definition.variables.iter().zip(&statement.type_spans);
        let nested = variables.filter(|(variable, _)| variable.simple_type().is_none());
        let mut nested = nested.zip(targets.get(at).into_iter().flatten());
        let span = nested.find(|(_, target)| **target == Some(on)).map(|((_, span), _)| span);
        let (file, span) = (*file, span.unwrap_or(&statement.name_span).clone());
        self.report(file, span, message);
    }
}
