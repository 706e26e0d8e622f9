//! Checks rules against the definitions of messages and prepares them for running.

use std::sync::Arc;

use worldwire_core::json::Json;
use worldwire_core::{Diagnostic, Severity, Source, nearest};
use worldwire_dissect::filter::{
    FieldPath, Filter, FilterError, Resolver, UnknownField, UnknownValue,
};
use worldwire_dissect::{Definitions, Keys};

use super::evaluate::{MAX_VARIABLE_BYTES, Scope, size};
use super::inject::Messages;
use super::parse::parse;
use super::program::{
    Block, Counter, Origin, Part, Program, Rule, Step, StepAction, Term, Timer, Variable,
};
use super::scan::{MAX_DIAGNOSTICS, shown};
use super::syntax::{Action, Item, Piece, Span, Spanned, Statement, Target, Value};
use crate::handler::FieldsReader;

/// The maximum number of variables in a file.
const MAX_VARIABLES: usize = 256;

/// Parses and checks a file.
///
/// # Errors
/// All errors and warnings, in file order.
pub(super) fn check(
    name: &str,
    text: &str,
    definitions: &Definitions,
) -> Result<Program, Vec<Diagnostic>> {
    let source = Source::new(name, text);
    let (items, found) = parse(&source);
    let mut checker = Checker {
        source,
        definitions,
        resolver: Resolver::new(definitions),
        found,
        program: Program::new(name, definitions.families()),
        messages: None,
        keys: Keys::none(),
    };
    checker.declare(&items);
    for item in items {
        checker.item(item);
    }
    let has_errors = checker.has_errors();
    let Checker { mut found, mut program, .. } = checker;
    found.sort_by_key(|diagnostic| (diagnostic.line(), diagnostic.column()));
    if has_errors {
        return Err(found);
    }
    program.warnings = found;
    Ok(program)
}

pub(super) struct Checker<'c> {
    source: Source<'c>,
    pub(super) definitions: &'c Definitions,
    pub(super) resolver: Resolver<'c>,
    found: Vec<Diagnostic>,
    program: Program,
    /// The family and the full name of every message, by its name with and without prefix.
    /// Collected when a message is first added.
    pub(super) messages: Option<Messages>,
    pub(super) keys: Keys,
}

/// What a block runs for.
#[derive(Clone, Copy)]
pub(super) enum Occasion<'o> {
    /// A message that this filter selects.
    Message(&'o Filter),
    /// No message. The text names the rule.
    Other(&'static str),
}

impl Checker<'_> {
    /// Collects the variables.
    fn declare(&mut self, items: &[Item]) {
        let mut names: Vec<&Spanned> = Vec::new();
        for item in items {
            match item {
                Item::Let { name, .. } => names.push(name),
                Item::When { body, .. } | Item::Every { body, .. } | Item::Connect { body } => {
                    names.extend(body.iter().filter_map(|statement| match &statement.action {
                        Action::Let { name, .. } => Some(name),
                        _ => None,
                    }));
                }
            }
        }
        for name in names {
            if self.variable(&name.text).is_some() {
                continue;
            }
            if Filter::is_keyword(&name.text) {
                let message = format!("`{}` is a keyword of the filter language", name.text);
                self.error(&name.span, message, Some("choose another name".to_owned()));
            }
            if self.program.variables.len() >= MAX_VARIABLES {
                let message = format!("a file can have at most {MAX_VARIABLES} variables");
                self.error(&name.span, message, None);
                return;
            }
            let variable = Variable { name: name.text.clone(), initial: None };
            self.program.variables.push(variable);
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.program.variables.iter().position(|variable| variable.name == name)
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Let { name, value } => self.initial(&name, &value),
            Item::When { filter, body } => {
                let origin = self.origin(&filter.span, "when".to_owned());
                let Some(parsed) = self.filter(&filter) else {
                    // The statements can still be checked by themselves.
                    let any = Filter::parse("*").ok();
                    if let Some(any) = any {
                        self.block(body, Occasion::Message(&any));
                    }
                    return;
                };
                let words = parsed.value_words();
                let is_bound = words.iter().any(|word| self.variable(word).is_some());
                let block = self.block(body, Occasion::Message(&parsed));
                let work = [parsed.work_per_byte(), block.iter().map(work_per_byte).sum()];
                self.program.rules.push(Rule { filter: parsed, is_bound, work, block, origin });
            }
            Item::Every { period, body } => {
                let block = self.block(body, Occasion::Other("every"));
                self.program.timers.push(Timer { period, block });
            }
            Item::Connect { body } => {
                let block = self.block(body, Occasion::Other("on connect"));
                self.program.connect.push(block);
            }
        }
    }

    /// Computes the initial value of a variable.
    fn initial(&mut self, name: &Spanned, value: &Value) {
        let Some(index) = self.variable(&name.text) else { return };
        if self.program.variables.get(index).is_some_and(|known| known.initial.is_some()) {
            let message = format!("`{}` already has an initial value", name.text);
            self.error(&name.span, message, Some("remove one of them".to_owned()));
            return;
        }
        let Some(term) = self.term(value, Occasion::Other("let")) else { return };
        match self.constant(&term) {
            Ok(value) if size(&value) > MAX_VARIABLE_BYTES => {
                let message = format!("a variable can hold at most {MAX_VARIABLE_BYTES} bytes");
                self.error(&name.span, message, None);
            }
            Ok(value) => {
                if let Some(variable) = self.program.variables.get_mut(index) {
                    variable.initial = Some(value);
                }
            }
            Err(failure) => self.error(&name.span, failure, None),
        }
    }

    /// The value of a term without fields, computed from the initial values of variables.
    pub(super) fn constant(&self, term: &Term) -> Result<Json, String> {
        let variables = self.program.variables.iter();
        let variables: Vec<Option<Json>> =
            variables.map(|variable| variable.initial.clone()).collect();
        let mut scope = Scope {
            program: &self.program,
            variables: &variables,
            fields: None,
            reader: &mut FieldsReader::default(),
        };
        scope.value(term)
    }

    fn filter(&mut self, written: &Spanned) -> Option<Filter> {
        match Filter::parse(&written.text) {
            Ok(filter) => {
                let filter = filter.resolve(&self.resolver);
                self.check_filter(&filter, &written.span);
                Some(filter)
            }
            Err(error) => {
                self.filter_error(&error, &written.text, written.span.start);
                None
            }
        }
    }

    fn filter_error(&mut self, error: &FilterError, text: &str, start: usize) {
        let before = text.char_indices().nth(error.column().saturating_sub(1));
        let at = start + before.map_or(text.len(), |(at, _)| at);
        let message = format!("wanted {}, found {}", error.wanted(), error.found());
        self.error(&(at..at + 1), message, error.hint().map(str::to_owned));
    }

    /// Reports unknown names in a filter.
    fn check_filter(&mut self, filter: &Filter, span: &Span) {
        let definitions = self.definitions;
        for (name, near) in filter.unknown_names(&self.resolver) {
            let place = self.find(name, span);
            if Filter::is_field(name, &self.resolver) {
                let help = format!("write `exists({name})` or `fields.{name}`");
                self.error(&place, format!("`{name}` is a field"), Some(help));
                continue;
            }
            let advice = definitions.families().iter().find_map(|family| {
                family.vocabulary().advice_on(name, definitions).map(str::to_owned)
            });
            let help = near.map(|near| format!("did you mean `{near}`?")).or(advice);
            let help = help.unwrap_or_else(|| "a `*` matches anything".to_owned());
            self.error(&place, format!("there is no message named `{name}`"), Some(help));
        }
        for (pattern, near) in filter.unknown_patterns(&self.resolver) {
            let place = self.find(pattern, span);
            let help = near.map(|near| format!("did you mean `{near}`?"));
            self.warning(&place, format!("no known message matches `{pattern}`"), help);
        }
        for field in filter.unknown_fields(&self.resolver) {
            let place = self.find(&field.name, span);
            self.unknown_field(&field, &place, "no matching message has a field");
        }
        for value in filter.unknown_values(&self.resolver) {
            let word = value.value.trim_matches('"');
            if self.variable(word).is_none() {
                let place = self.find(word, span);
                self.unknown_value(&value, &place);
            }
        }
    }

    pub(super) fn unknown_field(&mut self, field: &UnknownField, span: &Span, what: &str) {
        let help = field.nearest.as_ref().map(|near| format!("did you mean `{near}`?"));
        match field.is_certain {
            true => self.error(span, format!("{what} `{}`", field.name), help),
            false => self.warning(span, format!("unknown field `{}`", field.name), help),
        }
    }

    pub(super) fn unknown_value(&mut self, value: &UnknownValue, span: &Span) {
        let text = value.to_string();
        let (message, help) = match text.split_once("; did you mean") {
            Some((message, near)) => (message.to_owned(), Some(format!("did you mean{near}"))),
            None => (text, None),
        };
        match value.is_certain {
            true => self.error(span, message, help),
            false => self.warning(span, message, help),
        }
    }

    /// The position of a word in a part of the file; the whole part if the word is spelled
    /// differently there.
    pub(super) fn find(&self, word: &str, span: &Span) -> Span {
        let text = self.source.text().get(span.clone()).unwrap_or_default();
        let is_edge =
            |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '$'));
        let whole = text.match_indices(word).find(|(at, _)| {
            let before = text.get(..*at).and_then(|before| before.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
            is_edge(before) && is_edge(after)
        });
        match whole {
            Some((at, _)) if !word.is_empty() => span.start + at..span.start + at + word.len(),
            _ => span.clone(),
        }
    }

    fn block(&mut self, body: Vec<Statement>, occasion: Occasion<'_>) -> Block {
        let mut is_dropped = false;
        let mut block = Block::new();
        for statement in body {
            let keyword = statement.action.keyword();
            let needs_message = matches!(keyword, "set" | "drop" | "delay" | "pause");
            if let Occasion::Other(rule) = occasion
                && needs_message
            {
                let message = format!("`{keyword}` needs a message, but `{rule}` has none");
                let help = "move it to a `when`".to_owned();
                self.error(&statement.span, message, Some(help));
                continue;
            }
            if is_dropped && needs_message {
                let message = format!("`{keyword}` has no effect after `drop`");
                self.warning(&statement.span, message, None);
            }
            is_dropped |= statement.action == Action::Drop;
            let span = statement.span.clone();
            let text = match &statement.action {
                Action::Set { path, .. } => format!("set {}", shown(&path.text)),
                Action::Let { name, .. } => format!("let {}", shown(&name.text)),
                Action::Inject { name, .. } => format!("inject {}", shown(&name.text)),
                _ => keyword.to_owned(),
            };
            if let Some(action) = self.action(statement, occasion) {
                let origin = self.origin(&span, text);
                block.push(Step { origin, action });
            }
        }
        block
    }

    /// The name of the file.
    pub(super) fn file(&self) -> &str {
        &self.program.file
    }

    /// The number of a part's line.
    pub(super) fn line(&self, span: &Span) -> usize {
        self.source.line(span.start)
    }

    fn origin(&mut self, span: &Span, text: String) -> Origin {
        let number = self.program.places;
        self.program.places += 1;
        Origin { line: self.line(span), number, text }
    }

    fn action(&mut self, statement: Statement, occasion: Occasion<'_>) -> Option<StepAction> {
        Some(match statement.action {
            Action::Drop => StepAction::Drop,
            Action::Pause => StepAction::Pause,
            Action::Delay(time) => StepAction::Delay(time),
            Action::Count(name) => StepAction::Count(self.counter(name)),
            Action::Log(pieces) => {
                let parts = pieces.into_iter().map(|piece| match piece {
                    Piece::Text(text) => Some(Part::Text(text)),
                    Piece::Value(word) => self.word(&word, occasion).map(Part::Value),
                });
                // All are checked, even after an error.
                let parts: Vec<Option<Part>> = parts.collect();
                StepAction::Log(parts.into_iter().collect::<Option<_>>()?)
            }
            Action::Let { name, value } => {
                let value = self.term(&value, occasion)?;
                StepAction::Let { variable: self.variable(&name.text)?, value }
            }
            Action::Set { path, value } => self.set(&path, &value, occasion)?,
            Action::Inject { to, name, fields } => {
                if to == Target::Back && matches!(occasion, Occasion::Other(_)) {
                    let message = "`back` needs a message to reply to";
                    let help = "write `client` or `server`".to_owned();
                    self.error(&statement.span, message.to_owned(), Some(help));
                    return None;
                }
                let fields = self.term(&fields, occasion);
                let target = self.message(&name);
                let injection = self.inject(to, &name, target?, fields?)?;
                StepAction::Inject(injection)
            }
        })
    }

    fn counter(&mut self, name: String) -> usize {
        let counters = &mut self.program.counters;
        let known = counters.iter().position(|counter| counter.name == name);
        known.unwrap_or_else(|| {
            counters.push(Counter { name, count: Arc::default() });
            counters.len() - 1
        })
    }

    /// A variable or a field.
    pub(super) fn word(&mut self, word: &Spanned, occasion: Occasion<'_>) -> Option<Term> {
        if let Some(index) = self.variable(&word.text) {
            return Some(Term::Variable(index));
        }
        let names = self.program.variables.iter().map(|variable| variable.name.as_str());
        let near = nearest(&word.text, names).map(|near| format!("did you mean `{near}`?"));
        let of = match occasion {
            Occasion::Message(of) => of,
            Occasion::Other(rule) => {
                let message = format!("`{}` is not a variable", shown(&word.text));
                let help = near.unwrap_or_else(|| {
                    format!("`{rule}` has no message with fields; put text in double quotes")
                });
                self.error(&word.span, message, Some(help));
                return None;
            }
        };
        let path = match FieldPath::parse(&word.text, of, &self.resolver) {
            Ok(path) => path,
            Err(error) => {
                let message = format!("wanted {}, found {}", error.wanted(), error.found());
                self.error(&word.span, message, error.hint().map(str::to_owned));
                return None;
            }
        };
        for field in path.filter().unknown_fields(&self.resolver) {
            let field_help = field.nearest.as_ref().map(|near| format!("did you mean `{near}`?"));
            let help = match word.text.contains('-') {
                true => "put spaces around `-` to subtract".to_owned(),
                false => near
                    .clone()
                    .or(field_help)
                    .unwrap_or_else(|| "put text in double quotes".to_owned()),
            };
            let name = shown(&field.name);
            match field.is_certain {
                true => {
                    let message = format!("`{name}` is neither a variable nor a field");
                    self.error(&word.span, message, Some(help));
                    return None;
                }
                false => {
                    let message = format!("unknown field `{name}`");
                    self.warning(&word.span, message, Some(help));
                }
            }
        }
        Some(Term::Field(path))
    }

    pub(super) fn term(&mut self, value: &Value, occasion: Occasion<'_>) -> Option<Term> {
        Some(match value {
            Value::Constant(json) => Term::Constant(json.clone()),
            Value::Word(word) => self.word(word, occasion)?,
            Value::List(items) => {
                let items: Vec<Option<Term>> =
                    items.iter().map(|item| self.term(item, occasion)).collect();
                Term::List(items.into_iter().collect::<Option<_>>()?)
            }
            Value::Object(entries) => {
                let entry = |(name, value): &(String, Value)| {
                    self.term(value, occasion).map(|term| (name.clone(), term))
                };
                let entries: Vec<Option<(String, Term)>> = entries.iter().map(entry).collect();
                Term::Object(entries.into_iter().collect::<Option<_>>()?)
            }
            Value::Negative(value) => Term::Negative(Box::new(self.term(value, occasion)?)),
            Value::Computed(operator, both) => {
                let (first, second) = (self.term(&both.0, occasion), self.term(&both.1, occasion));
                Term::Computed(*operator, Box::new((first?, second?)))
            }
        })
    }

    pub(super) fn error(&mut self, span: &Span, message: String, help: Option<String>) {
        let error = self.source.error(span.clone(), message);
        self.report(error, help);
    }

    pub(super) fn warning(&mut self, span: &Span, message: String, help: Option<String>) {
        let warning = self.source.warning(span.clone(), message);
        self.report(warning, help);
    }

    fn report(&mut self, diagnostic: Diagnostic, help: Option<String>) {
        let diagnostic = match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        };
        let is_first_error = diagnostic.severity() == Severity::Error && !self.has_errors();
        let has_room = self.found.len() < MAX_DIAGNOSTICS && !self.found.contains(&diagnostic);
        if is_first_error || has_room {
            self.found.push(diagnostic);
        }
    }

    fn has_errors(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }
}

/// The maximum work of a statement, in steps per byte of the message: reading the fields as JSON, and
/// encoding them.
fn work_per_byte(step: &Step) -> u64 {
    match step.action {
        StepAction::Set { .. } => 16,
        StepAction::Let { .. } | StepAction::Log(_) | StepAction::Inject(_) => 8,
        StepAction::Drop | StepAction::Pause | StepAction::Delay(_) | StepAction::Count(_) => 0,
    }
}
