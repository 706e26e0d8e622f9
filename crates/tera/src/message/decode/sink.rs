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

/// A part of a message that has parts of its own.
#[derive(Clone, Copy)]
pub(crate) enum Group<'n> {
    /// This many elements of a scope.
    List(Leaf<'n>, u32, usize),
    /// An object or element with this many fields; elements have no name.
    Record(&'n str, usize),
    /// A row of values.
    Row(&'n Field),
}

impl<'n> Group<'n> {
    /// The name of its field.
    #[inline(always)]
    pub(crate) fn name(self) -> &'n str {
        match self {
            Self::List(leaf, ..) => leaf.name(),
            Self::Record(name, _) => name,
            Self::Row(field) => field.name(),
        }
    }

    /// Whether its parts are the fields of a record.
    #[inline(always)]
    pub(crate) fn is_record(self) -> bool {
        matches!(self, Self::Record(..))
    }
}

/// Receives the contents of a message. A method with a default reports no contents of its own: it
/// only says where they are, or passes them to the other methods.
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
    /// A list, record or row, whose parts `fill` reports; `fill` also returns where it ends.
    fn group<R>(
        &mut self,
        group: Group<'n>,
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
        self.group(Group::List(leaf, scope, count), first, |sink| {
            let (mut at, mut rest) = (first, elements);
            for index in 0..count {
                sink.element(index, at + LINKS);
                if Self::FIXED {
                    let (element, tail) = rest.split_at_checked(stride).unwrap_or_default();
                    let fields = element.get(LINKS..).unwrap_or_default();
                    if inner.single {
                        sink.fixed(plan, run, fields, at + LINKS);
                    } else {
                        sink.group(Group::Record("", inner.fields.len()), at, |sink| {
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
    fn group<R>(
        &mut self,
        _: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }
    #[inline(always)]
    fn packed(&mut self, _: Leaf<'n>, _: u32, _: (usize, usize), _: &'d [u8]) {}
}
