//! Lists: their links, and groups whose elements alternate.

use worldwire_core::Result;

use super::packed::{nested, packed};
use super::{Group, Leaf, Run, Sink};
use crate::message::bounds::{Chain, too_long};
use crate::message::note::NoteKind;
use crate::message::pairs;
use crate::schema::plan::{LINKS, Scope};

/// The words of a list.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) count: usize,
    /// The offset of the first element, and where that offset is stored.
    pub(super) first: usize,
    pub(super) link: usize,
    /// Its index if it is part of a group.
    pub(super) number: Option<u32>,
}

/// The extent of an element in an interleaved list.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    round: u32,
    list: u32,
    start: usize,
    end: usize,
}

impl<'d, 'n> Run<'d, 'n> {
    /// Follows the links of a list; returns the end of its last element.
    pub(super) fn array<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        scope: u32,
        list: List,
        cursor: usize,
    ) -> Result<usize> {
        let List { count, first, link, number } = list;
        if count == 0 {
            if first != 0 {
                self.note(NoteKind::UnusedOffset, link);
            }
            sink.group(Group::List(leaf, scope, 0), cursor, |_| ((), cursor));
            return Ok(cursor);
        }
        let inner = self.plan.scope(scope);
        if number.is_none()
            && first == cursor
            && let Some(elements) = packed::<S>(self.plan, self.data, inner, (count, first))
            && self.budget.take(elements.len())
        {
            let end = first + elements.len();
            self.furthest = self.furthest.max(end);
            sink.packed(leaf, scope, (count, first), elements);
            return Ok(end);
        }
        if S::SILENT
            && inner.nested
            && number.is_none()
            && first == cursor
            && let Some(end) = nested(self.plan, self.readable(first), inner, (count, first))
        {
            self.advance(first, end);
            return Ok(end);
        }
        // An offset outside the message is an error in the first element; the list needs a position
        // anyway.
        let inside = (self.floor..self.data.len()).contains(&first);
        let start = if inside { first } else { cursor };
        sink.group(Group::List(leaf, scope, count), start, |sink| {
            let mut end = cursor;
            let outcome = self.elements(sink, inner, list, &mut end);
            (outcome.map(|()| end), end)
        })
    }

    fn elements<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        scope: &'n Scope,
        list: List,
        cursor: &mut usize,
    ) -> Result<()> {
        let List { count, first: mut at, mut link, number } = list;
        let mut chain = Chain::new();
        let flat = self.flat_steps::<S>(scope);
        for index in 0..count {
            let next = match self.next_in_order(at) {
                Some(next) if at == *cursor && number.is_none() => next,
                _ => {
                    let next = chain.element((self.data, self.floor), (at, link), (index, count));
                    let next = next.map_err(|error| error.inside_item(index))?;
                    if at != *cursor && number.is_none() {
                        self.note(NoteKind::OffsetMismatch, link);
                    }
                    if next != 0 && next < at {
                        self.note(NoteKind::OutOfOrder, at + 2);
                    }
                    next
                }
            };
            sink.element(index, at + 4);
            let mut fields = |sink: &mut S| match flat {
                Some(steps) => self.flat(sink, scope, steps, at + 4),
                None => self.scope(sink, scope, at + 4),
            };
            let outcome = if scope.single || !S::FIXED {
                fields(sink)
            } else {
                sink.group(Group::Record("", scope.fields.len()), at, |sink| {
                    let outcome = fields(sink);
                    let end = outcome.as_ref().copied().unwrap_or(at + 4);
                    (outcome, end)
                })
            };
            let end = outcome.map_err(|error| error.inside_item(index))?;
            if let Some(list) = number {
                let round = u32::try_from(index).unwrap_or(u32::MAX);
                self.extents.push(Extent { round, list, start: at, end });
            }
            *cursor = end;
            (link, at) = (at + 2, next);
        }
        if at == 0 {
            return Ok(());
        }
        Err(too_long(at, count, link))
    }

    /// The next element's offset, if the element at `at` begins with its own offset and links to a
    /// later element or to none.
    #[inline(always)]
    fn next_in_order(&self, at: usize) -> Option<usize> {
        let links = u32::from_le_bytes(*self.data.get(at..)?.first_chunk::<LINKS>()?) as usize;
        let (here, next) = (links & 0xffff, links >> 16);
        (here == at && (next > at || next == 0)).then_some(next)
    }

    /// Checks that the elements of a group alternate, or are paired, without gaps, and moves the
    /// cursor to their end.
    pub(super) fn close_group(&mut self, from: usize, pairs: bool, cursor: &mut usize) {
        let data = self.data;
        let extents = self.extents.get_mut(from..).unwrap_or_default();
        if pairs {
            let numbers = |list: u32| {
                let of_list = extents.iter().filter(|extent| extent.list == list);
                let number = of_list.map(|extent| {
                    let fields = data.get(extent.start + LINKS..).unwrap_or_default();
                    fields.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
                });
                number.collect::<Vec<u32>>()
            };
            let places = pairs::places(&numbers(0), &numbers(1));
            let seconds = extents.iter_mut().filter(|extent| extent.list == 1);
            seconds.zip(places).for_each(|(extent, place)| extent.round = place);
        }
        // Within a round, in list order.
        extents.sort_by_key(|extent| (extent.round, extent.list));
        for extent in extents.iter() {
            if extent.start != *cursor && !self.quiet {
                self.notes.add(NoteKind::OffsetMismatch, extent.start);
            }
            *cursor = extent.end;
        }
        self.extents.truncate(from);
    }
}
