//! Computes values.

use worldwire_core::json::{Json, Number};
use worldwire_core::{Error, Limits, Tree};
use worldwire_dissect::FieldEditor;
use worldwire_dissect::filter::{FieldPath, Subject};

use super::program::{Part, Program, Term};
use super::syntax::Operator;
use crate::handler::{FieldsReader, Passing};
use crate::log_text::push_safe;

/// The maximum size of a variable's value in bytes.
pub(super) const MAX_VARIABLE_BYTES: usize = 64 << 10;
/// The maximum total size of a value's parts in bytes.
const MAX_VALUE_BYTES: usize = 4 << 20;
/// The maximum number of values that a path through lists yields.
const MAX_PLACES: usize = 65_536;

/// Why a value cannot be computed.
pub(super) type Failure = String;

/// The fields of the message that a rule runs for.
///
/// If the message has an editor and the editor supports a field, it reads and sets the field alone.
/// Otherwise the fields are read as JSON, on first use.
pub(super) struct Fields<'f, 'p> {
    pub(super) passing: &'f Passing<'p>,
    source: FieldSource<'f>,
    is_changed: bool,
}

/// Where fields are read and set.
enum FieldSource<'f> {
    /// Nothing has been read yet.
    Unread,
    Editor(Box<dyn FieldEditor + 'f>),
    /// There is no editor, and no JSON yet.
    Plain,
    Json(Json),
}

impl<'f, 'p> Fields<'f, 'p> {
    pub(super) fn new(passing: &'f Passing<'p>) -> Self {
        Self { passing, source: FieldSource::Unread, is_changed: false }
    }

    fn editor(&mut self) -> Option<&mut Box<dyn FieldEditor + 'f>> {
        if matches!(self.source, FieldSource::Unread) {
            let editor = self.passing.message().editor(self.passing.body);
            self.source = editor.map_or(FieldSource::Plain, FieldSource::Editor);
        }
        match &mut self.source {
            FieldSource::Editor(editor) => Some(editor),
            _ => None,
        }
    }

    fn json(&mut self, reader: &mut FieldsReader) -> Result<&mut Json, Failure> {
        let json = match core::mem::replace(&mut self.source, FieldSource::Plain) {
            FieldSource::Json(json) => json,
            FieldSource::Editor(editor) if self.is_changed => {
                let body = editor.encode().map_err(|error| error.to_string())?;
                let message = self.passing.message();
                reader.read(&message.tree_of(&body, Tree::new(), &Limits::DEFAULT))?
            }
            _ => reader.read(self.passing.tree())?,
        };
        self.source = FieldSource::Json(json);
        match &mut self.source {
            FieldSource::Json(json) => Ok(json),
            _ => Err("the message has no fields".to_owned()),
        }
    }

    /// The changed message, if a field was set.
    pub(super) fn encode_changed(&self) -> Option<Result<Vec<u8>, Error>> {
        match &self.source {
            FieldSource::Json(json) if self.is_changed => Some(self.passing.item.encode(json)),
            FieldSource::Editor(editor) if self.is_changed => Some(editor.encode()),
            _ => None,
        }
    }

    /// Sets a field.
    pub(super) fn set(
        &mut self,
        path: &FieldPath,
        value: &Json,
        reader: &mut FieldsReader,
    ) -> Result<(), Failure> {
        if let Some(plain) = path.plain()
            && self.editor().is_some_and(|editor| editor.set(plain, value))
        {
            self.is_changed = true;
            return Ok(());
        }
        let limit = (MAX_VALUE_BYTES / size(value)).clamp(1, MAX_PLACES);
        let name = self.passing.name;
        let json = self.json(reader)?;
        match path.set(json, value, limit).map_err(|error| error.to_string())? {
            0 => Err(format!("{name} has no field `{path}`")),
            _ => {
                self.is_changed = true;
                Ok(())
            }
        }
    }

    fn value(&mut self, path: &FieldPath, reader: &mut FieldsReader) -> Result<Json, Failure> {
        let passing = self.passing;
        if let Some(plain) = path.plain()
            && let Some(value) = self.editor().and_then(|editor| editor.get(plain))
        {
            return Ok(value);
        }
        if !path.is_only_metadata() {
            let json = self.json(reader)?;
            match path.values(json, MAX_PLACES).map_err(|error| error.to_string())?.as_slice() {
                [] => {}
                [one] => return Ok((*one).clone()),
                many => return Ok(many.iter().copied().cloned().collect()),
            }
        }
        let subject = Subject::of(passing.item, passing.name, passing.tree());
        let metadata = path.metadata(&subject);
        metadata.ok_or_else(|| format!("{} has no field `{path}`", passing.name))
    }
}

/// The input for computing values.
pub(super) struct Scope<'s, 'f, 'p> {
    pub(super) program: &'s Program,
    pub(super) variables: &'s [Option<Json>],
    /// `None` if there is no message.
    pub(super) fields: Option<&'s mut Fields<'f, 'p>>,
    pub(super) reader: &'s mut FieldsReader,
}

impl Scope<'_, '_, '_> {
    /// Computes a value.
    pub(super) fn value(&mut self, term: &Term) -> Result<Json, Failure> {
        let mut left = MAX_VALUE_BYTES;
        self.bounded(term, &mut left)
    }

    fn bounded(&mut self, term: &Term, left: &mut usize) -> Result<Json, Failure> {
        let value = match term {
            Term::Constant(json) => json.clone(),
            Term::Variable(index) => self.variable(*index)?.clone(),
            Term::Field(path) => self.field(path)?,
            Term::List(items) => {
                let items: Result<Vec<Json>, _> =
                    items.iter().map(|item| self.bounded(item, left)).collect();
                return Ok(items?.into());
            }
            Term::Object(entries) => {
                let entries: Result<Vec<(&str, Json)>, Failure> = entries
                    .iter()
                    .map(|(name, value)| Ok((name.as_str(), self.bounded(value, left)?)))
                    .collect();
                return Ok(entries?.into_iter().collect());
            }
            Term::Negative(value) => {
                let value = self.bounded(value, left)?;
                return compute(Operator::Minus, &0.into(), &value);
            }
            Term::Computed(operator, both) => {
                let first = self.bounded(&both.0, left)?;
                let second = self.bounded(&both.1, left)?;
                return compute(*operator, &first, &second);
            }
        };
        *left = left
            .checked_sub(size(&value))
            .ok_or_else(|| format!("the value would have more than {MAX_VALUE_BYTES} bytes"))?;
        Ok(value)
    }

    fn variable(&self, index: usize) -> Result<&Json, Failure> {
        self.variables.get(index).and_then(Option::as_ref).ok_or_else(|| {
            let name = self.program.variables.get(index).map_or("", |variable| &variable.name);
            format!("the variable `{name}` has no value yet")
        })
    }

    fn field(&mut self, path: &FieldPath) -> Result<Json, Failure> {
        match &mut self.fields {
            Some(fields) => fields.value(path, self.reader),
            None => Err(format!("there is no message to take `{path}` from")),
        }
    }

    /// A text to log, safe to print on a terminal. A missing value is shown as `?`, and the failure
    /// is also returned.
    pub(super) fn text(&mut self, parts: &[Part]) -> (String, Option<Failure>) {
        let mut text = String::new();
        let mut failure = None;
        for part in parts {
            match part {
                Part::Text(plain) => push_safe(&mut text, plain),
                Part::Value(term) => match self.value(term) {
                    Ok(Json::String(value)) => push_safe(&mut text, &value),
                    Ok(value) => push_safe(&mut text, &value.to_string()),
                    Err(error) => {
                        text.push('?');
                        failure.get_or_insert(error);
                    }
                },
            }
        }
        (text, failure)
    }
}

/// The approximate size of a value as text in bytes; at least 1.
pub(super) fn size(json: &Json) -> usize {
    match json {
        Json::Null | Json::Bool(_) => 4,
        Json::Number(_) => 8,
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Json::Object(object) => {
            object.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
        }
    }
}

#[derive(Clone, Copy)]
enum Operand {
    Whole(i128),
    Real(f64),
}

/// Applies an operator to numbers. `+` also joins text.
fn compute(operator: Operator, first: &Json, second: &Json) -> Result<Json, Failure> {
    if operator == Operator::Plus && (first.is_string() || second.is_string()) {
        return join(first, second);
    }
    let whole = |number: i128| {
        let unsigned = u64::try_from(number).map(Json::from);
        unsigned.or_else(|_| i64::try_from(number).map(Json::from)).ok()
    };
    let real = |number: f64| Number::from_f64(number).map(Json::Number);
    let result = match (operand(first)?, operand(second)?) {
        (Operand::Whole(a), Operand::Whole(b)) => match operator {
            Operator::Plus => a.checked_add(b),
            Operator::Minus => a.checked_sub(b),
            Operator::Times => a.checked_mul(b),
        }
        .and_then(whole),
        (a, b) => {
            let (a, b) = (a.real(), b.real());
            real(match operator {
                Operator::Plus => a + b,
                Operator::Minus => a - b,
                Operator::Times => a * b,
            })
        }
    };
    result.ok_or_else(|| {
        let sign = match operator {
            Operator::Plus => '+',
            Operator::Minus => '-',
            Operator::Times => '*',
        };
        format!("the result of {first} {sign} {second} does not fit in 64 bits")
    })
}

impl Operand {
    #[expect(clippy::cast_precision_loss, reason = "as everywhere with floats")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

fn operand(json: &Json) -> Result<Operand, Failure> {
    let number = json.as_number().ok_or_else(|| {
        let error = worldwire_core::json::expected("a number", json);
        error.to_string()
    })?;
    let whole = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    let real = || Operand::Real(number.as_f64().unwrap_or(f64::NAN));
    Ok(whole.map_or_else(real, Operand::Whole))
}

fn join(first: &Json, second: &Json) -> Result<Json, Failure> {
    if size(first) + size(second) > MAX_VALUE_BYTES {
        return Err(format!("the text would have more than {MAX_VALUE_BYTES} bytes"));
    }
    let mut text = String::new();
    for part in [first, second] {
        match part {
            Json::String(part) => text.push_str(part),
            other => text.push_str(&other.to_string()),
        }
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_bounded() {
        let max = Json::from(u64::MAX);
        let of = |operator, a: &Json, b: &Json| compute(operator, a, b).map(|it| it.to_string());
        use Operator::{Minus, Plus, Times};
        assert_eq!(of(Minus, &max, &1.into()).as_deref(), Ok("18446744073709551614"));
        assert_eq!(of(Minus, &0.into(), &5.into()).as_deref(), Ok("-5"));
        assert_eq!(of(Times, &3.into(), &0.5.into()).as_deref(), Ok("1.5"));
        assert_eq!(of(Plus, &"a".into(), &7.into()).as_deref(), Ok("\"a7\""));
        for (operator, a, b) in [(Plus, &max, &1.into()), (Times, &max, &max)] {
            let error = of(operator, a, b).unwrap_err();
            assert!(error.contains("does not fit in 64 bits"), "{error}");
        }
        let error = of(Plus, &f64::MAX.into(), &f64::MAX.into()).unwrap_err();
        assert!(error.contains("64 bits"), "{error}");
        let error = of(Minus, &"a".into(), &1.into()).unwrap_err();
        assert_eq!(error, "wanted a number, found \"a\"");
    }
}
