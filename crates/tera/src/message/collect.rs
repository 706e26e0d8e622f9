//! Decoding into values.

use core::mem::{forget, replace};
use std::borrow::Cow;

use super::decode::{Group, Leaf, Sink};
use super::scalar::{ScalarValue, emit_scalar};
use super::value::Value;
use crate::schema::plan::{Fixed, Plan};
use crate::types::Text;

/// Collects decoded values.
pub(crate) struct ValueSink<'d> {
    /// The values so far of the record or list being filled.
    values: Vec<Value<'d>>,
}

/// Maximum capacity reserved before any elements have been read.
const MAX_ROOM: usize = 64;

impl<'d> ValueSink<'d> {
    /// For a message with this many fields.
    pub(crate) fn new(fields: usize) -> Self {
        // The number comes from a definition, so it is safe to reserve.
        Self { values: Vec::with_capacity(fields) }
    }

    /// The complete message.
    pub(crate) fn finish(self) -> Value<'d> {
        Value::Record(self.values)
    }
}

impl<'d, 'n> Sink<'d, 'n> for ValueSink<'d> {
    // Inlining it gains nothing: it does far more work than a call.
    #[inline(never)]
    fn fixed(&mut self, _: &'n Plan, run: &'n [Fixed], data: &'d [u8], _: usize) {
        // Writing in place is faster than pushing, which moves each value through memory.
        let from = self.values.len();
        self.values.resize_with(from + run.len(), Value::default);
        let places = self.values.get_mut(from..).unwrap_or_default();
        for (place, fixed) in places.iter_mut().zip(run) {
            // The old value needs no drop, and checking for that would take a call each time.
            let put = |value: ScalarValue| forget(replace(place, value.to_value()));
            emit_scalar(fixed.scalar, data, fixed.offset.into(), put);
        }
    }

    fn text(&mut self, _: Leaf<'n>, text: &'d [u8], _: usize) {
        self.values.push(Value::Text(Text::from_bytes(text)));
    }

    fn bytes(&mut self, _: Leaf<'n>, bytes: &'d [u8], _: usize) {
        self.values.push(Value::Bytes(Cow::Borrowed(bytes)));
    }

    fn group<R>(
        &mut self,
        group: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        // A list's count comes from the message: do not trust it for the initial capacity.
        let room = match group {
            Group::List(_, _, count) | Group::Record(_, count) => count.min(MAX_ROOM),
            Group::Row(_) => 0,
        };
        let outer = replace(&mut self.values, Vec::with_capacity(room));
        let (outcome, _) = fill(self);
        let values = replace(&mut self.values, outer);
        let record = group.is_record();
        self.values.push(if record { Value::Record(values) } else { Value::List(values) });
        outcome
    }
}
