//! Compares two states.

use core::fmt;
use std::fmt::Write as _;

use worldwire_core::json;

use super::elements::Elements;
use super::record::{NestedVariable, SimpleVariable};
use super::state::{ObjectState, StateView, record_of};
use crate::schema::{Shape, Variable, VariableIndex};
use crate::types::UnifiedTime;

/// One difference between two states.
///
/// `Display` writes one line: `+ extra[1].value = 5` if the variable is set only in the newer
/// state, `- ...` only in the older one, `~ position: 4 became 9` in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The path of the variable: `cells[2].value`.
    pub path: String,
    /// The part of the variable that differs.
    pub part: ChangedPart,
    /// The value in the older state, if it is set there.
    pub before: Option<JsonText>,
    /// The value in the newer state, if it is set there.
    pub after: Option<JsonText>,
}

/// The part of a variable that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedPart {
    /// The value of a simple variable.
    Value,
    /// The length of a nested variable.
    Length,
    /// The hint.
    Hint,
    /// The time of the last change.
    Time,
    /// The version of the descriptor, which is not a variable. The path is the descriptor's name.
    Version,
}

impl ChangedPart {
    /// The name used in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Length => "length",
            Self::Hint => "hint",
            Self::Time => "time",
            Self::Version => "version",
        }
    }
}

/// A value formatted as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, part, before, after } = self;
        let part = match part {
            ChangedPart::Value => String::new(),
            other => format!(" {}", other.name()),
        };
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "~ {path}{part}: {before} became {after}"),
            (Some(before), None) => write!(f, "- {path}{part} = {before}"),
            (None, Some(after)) => write!(f, "+ {path}{part} = {after}"),
            (None, None) => write!(f, "~ {path}{part}"),
        }
    }
}

impl StateChange {
    /// Appends the change as a JSON object: `path`, `part`, `before`, `after`. The last two are
    /// null if the variable is not set.
    pub fn write_json(&self, out: &mut String) {
        out.push_str("{\"path\":");
        json::string(&self.path, out);
        let _ = write!(out, ",\"part\":\"{}\"", self.part.name());
        for (name, shown) in [("before", &self.before), ("after", &self.after)] {
            let shown = shown.as_ref().map_or("null", JsonText::as_json);
            let _ = write!(out, ",\"{name}\":{shown}");
        }
        out.push('}');
    }
}

impl ObjectState {
    /// The differences between this state and a newer one: first the version, then variables in the
    /// order of the newer descriptor, then those that only the older one has. Variables are matched
    /// by name.
    ///
    /// An unset variable differs from one that is set to its default.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Vec<StateChange> {
        let mut diff = Diff { path: String::new(), changes: Vec::new() };
        let version = |state: &Self| Some(state.descriptor().version().to_string());
        diff.change(newer.descriptor().name(), ChangedPart::Version, version(self), version(newer));
        diff.views(Some(self.view()), Some(newer.view()));
        diff.changes
    }
}

struct Diff {
    /// The path of the current record, ending in a dot.
    path: String,
    changes: Vec<StateChange>,
}

/// A simple variable in a state.
type SimpleOf<'s> = Option<(&'s Variable, &'s SimpleVariable<'static>)>;
/// A nested variable in a state.
type NestedOf<'s> = Option<(&'s Variable, Shape<'s>, &'s NestedVariable<'static>)>;

fn simple_of<'s>(view: Option<StateView<'s>>, folded: &str) -> SimpleOf<'s> {
    let view = view?;
    let VariableIndex::Simple(at) = view.shape.index_of_folded(folded)? else { return None };
    Some((view.shape.simple(at)?, view.simple_at(at)?))
}

fn nested_of<'s>(view: Option<StateView<'s>>, folded: &str) -> NestedOf<'s> {
    let view = view?;
    let VariableIndex::Nested(at) = view.shape.index_of_folded(folded)? else { return None };
    let (variable, inner) = view.shape.nested(at)?;
    Some((variable, inner, view.nested_at(at)?))
}

fn element_of(nested: NestedOf<'_>, index: usize) -> Option<StateView<'_>> {
    nested.map(|(_, shape, entry)| StateView { shape, record: record_of(entry, index) })
}

fn variables(shape: Option<Shape<'_>>) -> &[Variable] {
    shape.map(|shape| shape.definition().variables()).unwrap_or_default()
}

impl Diff {
    fn views(&mut self, old: Option<StateView<'_>>, new: Option<StateView<'_>>) {
        let (of_old, of_new) = (old.map(|view| view.shape), new.map(|view| view.shape));
        let gone = variables(of_old).iter().filter(|variable| {
            of_new.is_none_or(|shape| shape.index_of_folded(variable.folded_label()).is_none())
        });
        for variable in variables(of_new).iter().chain(gone) {
            let folded = variable.folded_label();
            self.simple(variable.label(), simple_of(old, folded), simple_of(new, folded));
            self.nested(variable.label(), nested_of(old, folded), nested_of(new, folded));
        }
    }

    fn change(
        &mut self,
        name: &str,
        part: ChangedPart,
        before: Option<String>,
        after: Option<String>,
    ) {
        if before == after {
            return;
        }
        let path = format!("{}{name}", self.path);
        let (before, after) = (before.map(JsonText), after.map(JsonText));
        self.changes.push(StateChange { path, part, before, after });
    }

    fn simple(&mut self, name: &str, old: SimpleOf<'_>, new: SimpleOf<'_>) {
        let value = |(variable, entry): (&Variable, &SimpleVariable<'static>)| {
            let simple = variable.simple_type()?;
            let default = || Elements::default_of(variable);
            let mut shown = String::new();
            match &entry.value {
                Some(elements) => elements.write_json(variable, simple, &mut shown),
                None => default().write_json(variable, simple, &mut shown),
            }
            Some(shown)
        };
        self.change(name, ChangedPart::Value, old.and_then(value), new.and_then(value));
        let hint = |(_, entry): (&Variable, &SimpleVariable<'static>)| hint(&entry.head);
        self.change(name, ChangedPart::Hint, old.and_then(hint), new.and_then(hint));
        let time =
            |(_, entry): (&Variable, &SimpleVariable<'static>)| entry.time.as_ref().map(time);
        self.change(name, ChangedPart::Time, old.and_then(time), new.and_then(time));
    }

    fn nested(&mut self, name: &str, old: NestedOf<'_>, new: NestedOf<'_>) {
        let length = |(_, _, entry): (&Variable, Shape<'_>, &NestedVariable<'static>)| {
            entry.length.to_string()
        };
        self.change(name, ChangedPart::Length, old.map(length), new.map(length));
        let hint =
            |(_, _, entry): (&Variable, Shape<'_>, &NestedVariable<'static>)| hint(&entry.head);
        self.change(name, ChangedPart::Hint, old.and_then(hint), new.and_then(hint));
        let indices = |one: NestedOf<'_>| {
            let entry = one.map(|(_, _, entry)| entry);
            let elements = entry.into_iter().flat_map(|entry| &entry.elements);
            elements.map(|element| element.index).collect::<Vec<_>>()
        };
        let mut all = [indices(old), indices(new)].concat();
        all.sort_unstable();
        all.dedup();
        for index in all {
            let length = self.path.len();
            let _ = write!(self.path, "{name}[{index}].");
            let index = index as usize;
            self.views(element_of(old, index), element_of(new, index));
            self.path.truncate(length);
        }
    }
}

fn hint(head: &super::ValueHeader<'_>) -> Option<String> {
    let hint = head.hint.as_ref().filter(|_| head.has_hint())?;
    let mut shown = String::new();
    json::string(&hint.to_text(), &mut shown);
    Some(shown)
}

/// Seconds with a fraction, as a JSON number.
fn time(time: &UnifiedTime) -> String {
    let micros = time.microseconds;
    format!("{}.{:06}", u64::from(time.seconds) + u64::from(micros / 1_000_000), micros % 1_000_000)
}
