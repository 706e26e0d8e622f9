//! Who learns what the decoder finds.

use crate::schema::plan::{Field, Fixed, LINKS, Plan, Scope};

/// A text, bytes or array that was found.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'n> {
    pub(crate) plan: &'n Plan,
    pub(super) field: u32,
    /// Which of those in its scope it is.
    pub(crate) body: u32,
}

impl<'n> Leaf<'n> {
    /// The name of its field.
    #[inline]
    pub(crate) fn name(self) -> &'n str {
        // It is there; nothing is done where nobody asks for it.
        self.plan.fields.get(self.field as usize).map_or("", |field| field.name())
    }
}

/// Who learns what a message holds.
pub(crate) trait Sink<'d, 'n> {
    /// Whether it learns of fields of fixed size, objects and rows, in the order of the definition.
    /// One that does not learns of everything else in the order of the bytes.
    const FIXED: bool = true;
    /// Whether it learns of nothing.
    const SILENT: bool = false;

    /// Fields of fixed size in a segment; `data` is its beginning, which holds all of them.
    fn fixed(&mut self, plan: &'n Plan, run: &'n [Fixed], data: &'d [u8], at: usize);
    /// A text, without its terminator.
    fn text(&mut self, leaf: Leaf<'n>, text: &'d [u8], at: usize);
    /// Bytes.
    fn bytes(&mut self, leaf: Leaf<'n>, bytes: &'d [u8], at: usize);
    /// A list of so many elements of a scope, which `fill` finds; it also says where the list ends.
    fn list<R>(
        &mut self,
        leaf: Leaf<'n>,
        scope: u32,
        count: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A record of so many fields, which `fill` finds; it also says where the record ends.
    fn record<R>(
        &mut self,
        name: &'n str,
        fields: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A row, which `fill` fills; it also says where the row ends.
    fn row<R>(
        &mut self,
        field: &'n Field,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A list of so many elements from a place on that stand one behind the other, whose fields, of
    /// fixed size, one step tells of.
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
                    let (element, behind) = rest.split_at_checked(stride).unwrap_or_default();
                    let fields = element.get(LINKS..).unwrap_or_default();
                    if inner.single {
                        sink.fixed(plan, run, fields, at + LINKS);
                    } else {
                        sink.record("", inner.fields.len(), at, |sink| {
                            (sink.fixed(plan, run, fields, at + LINKS), at + stride)
                        });
                    }
                    rest = behind;
                }
                at += stride;
            }
            ((), first + elements.len())
        });
    }
    /// An element of the present list; its fields begin at `start`.
    #[inline]
    fn element(&mut self, _index: usize, _start: usize) {}
    /// A further segment of a scope begins.
    #[inline]
    fn segment(&mut self, _scope: &'n Scope, _number: usize, _start: usize) {}
}

/// Nobody learns anything.
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
