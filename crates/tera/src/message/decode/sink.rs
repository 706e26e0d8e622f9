//! The receiver of decoded fields.

use crate::schema::plan::{Field, Fixed, LINKS, Plan, Scope};

/// A text, byte string or array that was decoded.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'n> {
    pub(crate) plan: &'n Plan,
    pub(super) field: u32,
    /// Its index among those in its scope.
    pub(crate) body: u32,
}

impl<'n> Leaf<'n> {
    /// The name of its field.
    #[inline]
    pub(crate) fn name(self) -> &'n str {
        // The index is always valid; an unused result compiles to nothing.
        self.plan.fields.get(self.field as usize).map_or("", |field| field.name())
    }
}

/// Receives the contents of a message.
pub(crate) trait Sink<'d, 'n> {
    /// Whether it wants fixed-size fields, objects and rows, in field order. Otherwise it receives
    /// everything else in byte order.
    const FIXED: bool = true;
    /// Whether it ignores everything.
    const SILENT: bool = false;

    /// Fixed-size fields in a segment. `data` is the start of the segment and holds all of them.
    fn fixed(&mut self, plan: &'n Plan, run: &'n [Fixed], data: &'d [u8], at: usize);
    /// A text, without its terminator.
    fn text(&mut self, leaf: Leaf<'n>, text: &'d [u8], at: usize);
    /// A byte string.
    fn bytes(&mut self, leaf: Leaf<'n>, bytes: &'d [u8], at: usize);
    /// A list of elements of a scope, which `fill` reports; `fill` also returns where the list
    /// ends.
    fn list<R>(
        &mut self,
        leaf: Leaf<'n>,
        scope: u32,
        count: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A record, whose fields `fill` reports; `fill` also returns where the record ends.
    fn record<R>(
        &mut self,
        name: &'n str,
        fields: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A row, whose values `fill` reports; `fill` also returns where the row ends.
    fn row<R>(
        &mut self,
        field: &'n Field,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A list of contiguous elements, whose fixed-size fields are one step.
    #[inline(always)]
    fn packed(
        &mut self,
        leaf: Leaf<'n>,
        scope: u32,
        (count, first): (usize, usize),
        elements: &'d [u8],
    ) {
        let (plan, inner) = (leaf.plan, leaf.plan.scope(scope));
        let (stride, run) = (inner.stride as usize, plan.run_of(inner));
        self.list(leaf, scope, count, first, |sink| {
            let (mut at, mut rest) = (first, elements);
            for index in 0..count {
                sink.element(index, at + LINKS);
                if Self::FIXED {
                    let (element, tail) = rest.split_at_checked(stride).unwrap_or_default();
                    let fields = element.get(LINKS..).unwrap_or_default();
                    if inner.single {
                        sink.fixed(plan, run, fields, at + LINKS);
                    } else {
                        sink.record("", inner.fields.len(), at, |sink| {
                            (sink.fixed(plan, run, fields, at + LINKS), at + stride)
                        });
                    }
                    rest = tail;
                }
                at += stride;
            }
            ((), first + elements.len())
        });
    }
    /// An element of the current list; its fields begin at `start`.
    #[inline]
    fn element(&mut self, _index: usize, _start: usize) {}
    /// A later segment of a scope begins.
    #[inline]
    fn segment(&mut self, _scope: &'n Scope, _number: usize, _start: usize) {}
}

/// Ignores everything.
pub(crate) struct Silent;

impl<'d, 'n> Sink<'d, 'n> for Silent {
    const FIXED: bool = false;
    const SILENT: bool = true;

    #[inline(always)]
    fn fixed(&mut self, _: &'n Plan, _: &'n [Fixed], _: &'d [u8], _: usize) {}
    #[inline(always)]
    fn text(&mut self, _: Leaf<'n>, _: &'d [u8], _: usize) {}
    #[inline(always)]
    fn bytes(&mut self, _: Leaf<'n>, _: &'d [u8], _: usize) {}
    #[inline(always)]
    fn list<R>(
        &mut self,
        _: Leaf<'n>,
        _: u32,
        _: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }
    #[inline(always)]
    fn record<R>(
        &mut self,
        _: &'n str,
        _: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }
    #[inline(always)]
    fn row<R>(&mut self, _: &'n Field, _: usize, fill: impl FnOnce(&mut Self) -> (R, usize)) -> R {
        fill(self).0
    }
    #[inline(always)]
    fn packed(&mut self, _: Leaf<'n>, _: u32, _: (usize, usize), _: &'d [u8]) {}
}
