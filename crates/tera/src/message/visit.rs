//! Messages reported field by field.

use super::decode::{Group, Leaf, Sink};
use super::scalar::{ScalarValue, Uniform, emit_scalar, emit_uniform};
use crate::schema::plan::{Field, Fixed, LINKS, Plan, Scope};
use crate::types::TextView;

/// Receives every field of a message, in the order of the definition: see
/// [`Plan::visit`](crate::schema::Plan::visit).
pub trait Visit<'d, 'p> {
    /// A fixed-size value. Elements of lists have no name.
    fn scalar(&mut self, name: &'p str, value: ScalarValue);

    /// A text.
    fn text(&mut self, name: &'p str, text: TextView<'d>);

    /// A byte string.
    fn bytes(&mut self, name: &'p str, bytes: &'d [u8]);

    /// A list or a record begins; everything up to the matching [`Visit::leave`] is part of it.
    #[inline]
    fn enter(&mut self, _name: &'p str, _part: Part) {}

    /// The innermost list or record ends. After an error, all open ones are left too.
    #[inline]
    fn leave(&mut self) {}
}

/// The container that a visitor enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The elements of an array, or the values of a row.
    List,
    /// The fields of an object or element.
    Record,
}

/// Passes decoded fields to a visitor.
pub(super) struct VisitSink<'v, V>(pub(super) &'v mut V);

/// Passes the fields of a run to a visitor; their segment begins at `base`.
#[inline(always)]
fn emit<'d, 'p>(
    visitor: &mut impl Visit<'d, 'p>,
    run: &[Fixed],
    fields: &'p [Field],
    data: &'d [u8],
    base: u32,
) {
    for (fixed, field) in run.iter().zip(fields) {
        let emit = |value| visitor.scalar(field.name(), value);
        emit_scalar(fixed.scalar, data, base as usize + usize::from(fixed.offset), emit);
    }
}

/// Passes the fields of `count` elements to a visitor; their scope is a single run.
// A separate function, as for one run: its arguments share no memory, so a visitor's counters stay
// in registers.
#[inline(never)]
fn emit_elements<'d, 'p>(
    visitor: &mut impl Visit<'d, 'p>,
    plan: &'p Plan,
    scope: &Scope,
    elements: &'d [u8],
    count: usize,
) {
    let fields = plan.fields_of(&scope.fields);
    if let Some(scalar) = scope.uniform {
        return emit_uniform(
            scalar,
            UniformElements { visitor, fields, elements, single: scope.single },
        );
    }
    let run = plan.run_of(scope);
    let fixed = elements.get(LINKS..).unwrap_or_default();
    // 32 bits: the sums below cannot overflow.
    let mut base = 0;
    for _ in 0..count {
        if scope.single {
            emit(visitor, run, fields, fixed, base);
        } else {
            visitor.enter("", Part::Record);
            emit(visitor, run, fields, fixed, base);
            visitor.leave();
        }
        base += scope.stride;
    }
}

/// Passes the fields of one run to a visitor.
#[inline(never)]
fn emit_run<'d, 'p>(
    visitor: &mut impl Visit<'d, 'p>,
    plan: &'p Plan,
    run: &[Fixed],
    data: &'d [u8],
) {
    emit(visitor, run, plan.fields_of_run(run), data, 0);
}

/// Contiguous elements whose fields all have one type.
struct UniformElements<'v, 'd, 'p, V> {
    visitor: &'v mut V,
    fields: &'p [Field],
    elements: &'d [u8],
    single: bool,
}

impl<'d, 'p, V: Visit<'d, 'p>> Uniform for UniformElements<'_, 'd, 'p, V> {
    #[inline(always)]
    fn emit<const BYTES: usize>(self, read: impl Fn([u8; BYTES]) -> ScalarValue) {
        // Most have few fields. With a constant number of fields the inner loop is unrolled.
        match self.fields {
            [a] => self.each::<1, BYTES>(&[a], read),
            [a, b] => self.each::<2, BYTES>(&[a, b], read),
            [a, b, c] => self.each::<3, BYTES>(&[a, b, c], read),
            fields => {
                let stride = LINKS + fields.len() * BYTES;
                self.all(stride, fields, read);
            }
        }
    }
}

impl<'d, 'p, V: Visit<'d, 'p>> UniformElements<'_, 'd, 'p, V> {
    #[inline(always)]
    fn each<const FIELDS: usize, const BYTES: usize>(
        self,
        fields: &[&'p Field; FIELDS],
        read: impl Fn([u8; BYTES]) -> ScalarValue,
    ) {
        self.all(LINKS + FIELDS * BYTES, fields.iter().copied(), read);
    }

    #[inline(always)]
    fn all<const BYTES: usize>(
        self,
        stride: usize,
        fields: impl IntoIterator<Item = &'p Field> + Clone,
        read: impl Fn([u8; BYTES]) -> ScalarValue,
    ) {
        let Self { visitor, mut elements, single, .. } = self;
        while let Some((element, tail)) = elements.split_at_checked(stride) {
            let values = element.get(LINKS..).unwrap_or_default().as_chunks().0;
            if !single {
                visitor.enter("", Part::Record);
            }
            for (bytes, field) in values.iter().zip(fields.clone()) {
                visitor.scalar(field.name(), read(*bytes));
            }
            if !single {
                visitor.leave();
            }
            elements = tail;
        }
    }
}

impl<'d, 'n, V: Visit<'d, 'n>> Sink<'d, 'n> for VisitSink<'_, V> {
    #[inline]
    fn fixed(&mut self, plan: &'n Plan, run: &'n [Fixed], data: &'d [u8], _: usize) {
        emit_run(self.0, plan, run, data);
    }

    #[inline]
    fn packed(
        &mut self,
        leaf: Leaf<'n>,
        scope: u32,
        (count, _): (usize, usize),
        elements: &'d [u8],
    ) {
        let scope = leaf.plan.scope(scope);
        self.0.enter(leaf.name(), Part::List);
        emit_elements(self.0, leaf.plan, scope, elements, count);
        self.0.leave();
    }

    #[inline]
    fn text(&mut self, leaf: Leaf<'n>, text: &'d [u8], _: usize) {
        self.0.text(leaf.name(), TextView::new(text));
    }

    #[inline]
    fn bytes(&mut self, leaf: Leaf<'n>, bytes: &'d [u8], _: usize) {
        self.0.bytes(leaf.name(), bytes);
    }

    #[inline(always)]
    fn group<R>(
        &mut self,
        group: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        let part = if group.is_record() { Part::Record } else { Part::List };
        self.0.enter(group.name(), part);
        let (outcome, _) = fill(self);
        self.0.leave();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, ScalarValue, TextView, Visit};
    use crate::message::{Head, HeaderForm, Value};
    use crate::schema::Definition;

    #[derive(Default)]
    struct Recorder(String);

    impl<'d, 'p> Visit<'d, 'p> for Recorder {
        fn scalar(&mut self, name: &'p str, value: ScalarValue) {
            self.0.push_str(&format!("{name}={value:?} "));
        }
        fn text(&mut self, name: &'p str, text: TextView<'d>) {
            self.0.push_str(&format!("{name}={text:?} "));
        }
        fn bytes(&mut self, name: &'p str, bytes: &'d [u8]) {
            self.0.push_str(&format!("{name}={bytes:?} "));
        }
        fn enter(&mut self, name: &'p str, part: Part) {
            self.0.push_str(&format!("{name}{part:?}( "));
        }
        fn leave(&mut self) {
            self.0.push_str(") ");
        }
    }

    #[test]
    fn everything_is_reported_once() {
        let text = "int32 a\nobject o\n- bool b\narray l\n- byte x\nstring s\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let x = |number| Value::Record(vec![Value::Unsigned(number)]);
        let value = Value::Record(vec![
            Value::Signed(-1),
            Value::Record(vec![Value::Bool(true)]),
            Value::List(vec![x(1), x(2)]),
        ]);
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        let mut recorder = Recorder::default();
        assert!(plan.visit(&bytes, HeaderForm::Plain, &mut recorder).unwrap().is_empty());
        assert_eq!(
            recorder.0,
            "a=Signed(-1) oRecord( b=Bool(true) ) lList( Record( x=Unsigned(1) ) \
             Record( x=Unsigned(2) ) ) s=\"\" "
        );
        // The count is one too high: everything entered is still left.
        bytes[4] = 3;
        let mut recorder = Recorder::default();
        assert!(plan.visit(&bytes, HeaderForm::Plain, &mut recorder).is_err());
        assert!(recorder.0.contains("lList( ") && recorder.0.ends_with(") ) "), "{}", recorder.0);
    }
}
