//! Checks the fields and values of `set` statements.

use worldwire_core::json::Json;
use worldwire_dissect::ValueKind;
use worldwire_dissect::filter::{FieldPath, Filter};

use super::check::{Checker, Occasion};
use super::program::{StepAction, Term};
use super::syntax::{Span, Spanned, Value};

impl Checker<'_> {
    pub(super) fn set(
        &mut self,
        path: &Spanned,
        value: &Value,
        occasion: Occasion<'_>,
    ) -> Option<StepAction> {
        let Occasion::Message(of) = occasion else { return None };
        if self.variable(&path.text).is_some() {
            let message = format!("`{}` is a variable", path.text);
            let help =
                format!("write `let {} = ...`, or `set fields.{} = ...`", path.text, path.text);
            self.error(&path.span, message, Some(help));
            return None;
        }
        let target = self.path(path, of);
        if let Some(target) = &target {
            let unknown = target.filter().unknown_fields(&self.resolver);
            if unknown.iter().any(|field| field.is_certain) {
                // Its values are unknown, too.
                return None;
            }
        }
        let value = match (value, &target) {
            (Value::Word(word), Some(target)) => self.value_word(target, word, occasion),
            (Value::Constant(json), Some(target)) => {
                self.check_constant(target, json, &path.span);
                Some(Term::Constant(json.clone()))
            }
            (Value::List(items), Some(target)) => {
                let items = items.iter().map(|item| match item {
                    Value::Word(word) => self.value_word(target, word, occasion),
                    other => self.term(other, occasion),
                });
                // All are checked, even after an error.
                let items: Vec<Option<Term>> = items.collect();
                items.into_iter().collect::<Option<_>>().map(Term::List)
            }
            _ => self.term(value, occasion),
        };
        let path = target?;
        Some(StepAction::Set { path, value: value? })
    }

    /// A word on the right of a `set`: a variable, the name of a value, or another field.
    fn value_word(
        &mut self,
        target: &FieldPath,
        word: &Spanned,
        occasion: Occasion<'_>,
    ) -> Option<Term> {
        let name = || Term::Constant(word.text.as_str().into());
        if self.variable(&word.text).is_some() {
            return self.word(word, occasion);
        }
        if self.is_value_name(target, &word.text) {
            return Some(name());
        }
        let is_field = match occasion {
            Occasion::Message(of) => FieldPath::parse(&word.text, of, &self.resolver)
                .is_ok_and(|path| path.filter().unknown_fields(&self.resolver).is_empty()),
            Occasion::Other(_) => false,
        };
        if !is_field && let Ok(filter) = target.filter_with(&format!("== {}", word.text)) {
            let mut unknown = filter.unknown_values(&self.resolver);
            // A word that names no value is more likely to be a misspelled field.
            unknown.retain(|value| value.wanted.is_none());
            if !unknown.is_empty() {
                unknown.iter().for_each(|value| self.unknown_value(value, &word.span));
                let is_certain = unknown.iter().any(|value| value.is_certain);
                return (!is_certain).then(name);
            }
        }
        self.word(word, occasion)
    }

    /// Whether a value of the field has this name.
    fn is_value_name(&self, target: &FieldPath, word: &str) -> bool {
        let path = target.to_string();
        let is_meant = |field: &str| {
            path == field || path.strip_suffix(field).is_some_and(|before| before.ends_with('.'))
        };
        let mut values = self
            .definitions
            .families()
            .iter()
            .flat_map(|family| family.vocabulary().values(self.definitions));
        values.any(|values| is_meant(values.field) && values.names.contains(&word))
    }

    /// Reports a constant that the field cannot have.
    fn check_constant(&mut self, target: &FieldPath, json: &Json, span: &Span) {
        let wanted = match (target.kind(&self.resolver), json) {
            (_, Json::Null) | (None, _) => None,
            (Some(ValueKind::Text), Json::String(_)) => None,
            (Some(ValueKind::Text), Json::Number(_)) => {
                Some(("text", Some(format!("write \"{json}\""))))
            }
            (Some(ValueKind::Text), _) => Some(("text", None)),
            (Some(ValueKind::Number), Json::Number(_) | Json::String(_)) => None,
            (Some(ValueKind::Number), _) => Some(("a number", None)),
        };
        if let Some((wanted, help)) = wanted {
            return self.error(span, format!("`{target}` is {wanted}, not `{json}`"), help);
        }
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_alphabetic())
                && text.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !matches!(text, "true" | "false" | "null")
        };
        let condition = match json {
            Json::String(text) if is_name(text) => format!("== {text}"),
            Json::String(text) => format!("== {text:?}"),
            Json::Number(_) => format!("== {json}"),
            _ => return,
        };
        let Ok(filter) = target.filter_with(&condition) else { return };
        // Text in a field that may also have other values need not be a name.
        let mut unknown = filter.unknown_values(&self.resolver);
        unknown.retain(|value| value.is_certain);
        unknown.iter().for_each(|value| self.unknown_value(value, span));
    }

    /// Reads and checks a path to a field.
    fn path(&mut self, written: &Spanned, of: &Filter) -> Option<FieldPath> {
        let path = match FieldPath::parse(&written.text, of, &self.resolver) {
            Ok(path) => path,
            Err(error) => {
                let help = error.hint().map(str::to_owned);
                let message = format!("wanted {}, found {}", error.wanted(), error.found());
                self.error(&written.span, message, help);
                return None;
            }
        };
        if path.is_only_metadata() {
            let message = format!("`{}` is metadata and cannot be set", written.text);
            self.error(&written.span, message, None);
            return None;
        }
        for field in path.filter().unknown_fields(&self.resolver) {
            let place = self.find(&field.name, &written.span);
            self.unknown_field(&field, &place, "no matching message has a field");
        }
        Some(path)
    }
}
