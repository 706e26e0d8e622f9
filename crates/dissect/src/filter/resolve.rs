//! Resolves the names in a filter against the names that messages have: shortened paths, names with
//! dots, and messages inside others.

use core::cell::OnceCell;
use core::fmt;
use std::collections::HashSet;
use std::sync::OnceLock;

use super::expression::{Expression, Path, Pattern, Start, Step};
use super::fields::{KnownMessage, all_messages};
use super::values::KnownValues;
use crate::knowledge::Definitions;

/// The names in definitions, against which filters, paths and columns are resolved and checked.
/// Collecting them takes longer than resolving a filter.
pub struct Resolver<'d> {
    known: Known<'d>,
    /// Collected when a value is first checked.
    values: OnceCell<KnownValues<'d>>,
    definitions: &'d Definitions,
}

impl<'d> Resolver<'d> {
    /// Collects the names of all messages and fields.
    #[must_use]
    pub fn new(definitions: &'d Definitions) -> Self {
        Self { known: Known::new(definitions), values: OnceCell::new(), definitions }
    }

    pub(super) fn known(&self) -> &Known<'d> {
        &self.known
    }

    pub(super) fn values(&self) -> &KnownValues<'d> {
        self.values.get_or_init(|| KnownValues::new(self.definitions))
    }

    pub(super) fn definitions(&self) -> &'d Definitions {
        self.definitions
    }
}

impl fmt::Debug for Resolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// The names that filters are resolved against.
pub(super) struct Known<'d> {
    pub(super) messages: Vec<KnownMessage<'d>>,
    /// Every possible name of an item, and the families.
    pub(super) names: Vec<String>,
    inside: Vec<&'static str>,
    /// Names of fields with a dot in them. Collected when a path with several names is resolved.
    dotted: OnceLock<HashSet<&'d str>>,
}

impl<'d> Known<'d> {
    pub(super) fn new(definitions: &'d Definitions) -> Self {
        let messages = all_messages(definitions);
        let families = definitions.families().iter();
        let inside = families.flat_map(|family| family.vocabulary().inside()).collect();
        let names = messages.iter().map(|known| known.names.name.clone());
        let others = ["opened", "gap", "resync", "warning", "problem"].map(str::to_owned);
        let names =
            definitions.families().iter().map(|family| family.name().to_owned()).chain(names);
        let names = names.chain(others).collect();
        Self { messages, names, inside, dotted: OnceLock::new() }
    }

    fn dotted(&self) -> &HashSet<&'d str> {
        self.dotted.get_or_init(|| {
            let fields = self.messages.iter().flat_map(|known| known.names.fields.iter());
            let inner = self.messages.iter().flat_map(|known| known.names.inner.iter());
            fields.chain(inner).copied().filter(|name| name.contains('.')).collect()
        })
    }

    /// Resolves an expression. `scope` lists the messages that the filter also names.
    pub(super) fn resolve(&self, expression: Expression, scope: &mut Vec<Pattern>) -> Expression {
        match expression {
            Expression::Message(pattern) if self.is_inside(&pattern) => Expression::Inside(pattern),
            Expression::Exists(path) => Expression::Exists(self.path(path, scope)),
            Expression::Test(path, check) => Expression::Test(self.path(path, scope), check),
            Expression::Not(inner) => Expression::Not(Box::new(self.resolve(*inner, scope))),
            Expression::Any(parts) => {
                Expression::Any(parts.into_iter().map(|part| self.resolve(part, scope)).collect())
            }
            Expression::All(parts) => {
                let outer = scope.len();
                let own = parts.iter().filter_map(|part| match part {
                    Expression::Message(pattern) if !self.is_inside(pattern) => Some(pattern),
                    _ => None,
                });
                scope.extend(own.cloned());
                let parts = parts.into_iter().map(|part| self.resolve(part, scope)).collect();
                scope.truncate(outer);
                Expression::All(parts)
            }
            other => other,
        }
    }

    /// Whether only messages inside others have this name.
    fn is_inside(&self, pattern: &Pattern) -> bool {
        let is_own = |known: &&String| pattern.fits("", known) || **known == *pattern.0;
        self.inside.iter().any(|name| pattern.fits("", name))
            && self.names.iter().find(is_own).is_none()
    }

    pub(super) fn path(&self, path: Path, scope: &[Pattern]) -> Path {
        let path = joined(path, &|name| self.dotted().contains(name));
        let (Start::Anywhere(None), Some(Step::Name(first))) = (path.start(), path.steps().first())
        else {
            return path;
        };
        let in_scope = |known: &&KnownMessage<'_>| {
            scope.iter().all(|pattern| pattern.fits(known.family, &known.names.name))
        };
        let is_nested = self
            .messages
            .iter()
            .filter(in_scope)
            .any(|known| known.names.inner.contains(&&**first));
        if is_nested { path.tail() } else { path }
    }
}

/// Joins consecutive names that together are one name: `m_id.m_full`.
pub(super) fn joined(path: Path, is_known: &dyn Fn(&str) -> bool) -> Path {
    let steps = path.steps();
    let mut joined: Vec<Step> = Vec::new();
    let mut rest = steps;
    while let Some((first, others)) = rest.split_first() {
        let mut taken = 1;
        let mut step = first.clone();
        if let Step::Name(name) = first {
            let mut whole = name.to_string();
            for (index, other) in others.iter().enumerate() {
                let Step::Name(other) = other else { break };
                whole.push('.');
                whole.push_str(other);
                if is_known(&whole) {
                    (taken, step) = (index + 2, Step::Name(whole.as_str().into()));
                }
            }
        }
        joined.push(step);
        rest = rest.get(taken..).unwrap_or_default();
    }
    if joined.len() == steps.len() { path } else { Path::new(joined) }
}
