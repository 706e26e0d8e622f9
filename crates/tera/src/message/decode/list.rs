//! Lists: their links, and groups whose elements alternate.

use worldwire_core::Result;

use super::{Leaf, Run, Sink};
use crate::message::bounds::Chain;
use crate::message::fault::Fault;
use crate::message::oddity::NoteKind;
use crate::message::pairs;
use crate::schema::plan::{LINKS, Plan, Scope};

/// What the words of a list say.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) count: usize,
    /// The offset of the first element, and where that stands.
    pub(super) first: usize,
    pub(super) link: usize,
    /// Its number when it is one of a group.
    pub(super) number: Option<u32>,
}

/// Where an element of an interleaved list stands.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    round: u32,
    list: u32,
    start: usize,
    end: usize,
}

impl<'d, 'n> Run<'d, 'n> {
    /// Follows the links of a list of elements of a scope; gives the end of the last one.
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
            sink.list(leaf, scope, 0, cursor, |_| ((), cursor));
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
        // An offset that leads outside is an error of the first element; the list has its place.
        let inside = (self.floor..self.data.len()).contains(&first);
        let start = if inside { first } else { cursor };
        sink.list(leaf, scope, count, start, |sink| {
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
                    let next = self.odd_links(&mut chain, list, (at, link), index);
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
                sink.record("", scope.fields.len(), at, |sink| {
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
        let found = format!("one at {at} behind {count} elements");
        Err(Fault::ArrayChainLong.malformed(link, found))
    }

    /// Where the next element is, if the one at a place, which an offset may lead to, names its own
    /// place and one behind it or none.
    #[inline(always)]
    fn next_in_order(&self, at: usize) -> Option<usize> {
        let links = u32::from_le_bytes(*self.data.get(at..)?.first_chunk::<LINKS>()?) as usize;
        let (here, next) = (links & 0xffff, links >> 16);
        (here == at && (next > at || next == 0)).then_some(next)
    }

    /// Checks the place of an element and what it says of itself; gives where the next one is.
    fn odd_links(
        &self,
        chain: &mut Chain,
        list: List,
        (at, link): (usize, usize),
        index: usize,
    ) -> Result<usize> {
        if at == 0 {
            let found = format!("{index} of {}", list.count);
            return Err(Fault::ArrayChainShort.malformed(link, found));
        }
        if index > 0 {
            chain.follow(at, link)?;
        }
        self.check_offset(at, link)?;
        self.here(at)?;
        self.word(at + 2)
    }

    /// Whether an element names its own place.
    fn here(&self, at: usize) -> Result<()> {
        let here = self.word(at)?;
        if here == at {
            return Ok(());
        }
        Err(Fault::HereMismatch.malformed(at, format!("{here} at {at}")))
    }

    /// Looks whether the elements of a group alternate, or stand in pairs, without gaps, and moves
    /// the cursor to their end.
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
        // Those of one round in the order of their links.
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

/// Whether the elements of a list stand one behind the other from its first one on, and lead nowhere
/// else, with nothing odd in them; gives their bytes. A sink of fields takes them so if each is one
/// run.
#[inline(always)]
pub(super) fn packed<'d, 'n, S: Sink<'d, 'n>>(
    plan: &Plan,
    data: &'d [u8],
    scope: &Scope,
    (count, first): (usize, usize),
) -> Option<&'d [u8]> {
    if S::FIXED && !scope.one_run {
        return None;
    }
    let stride = scope.stride as usize;
    // Words, and the bytes of a segment.
    let end = first + count * stride;
    let elements = data.get(first..end)?;
    if !linked(elements, first, count, stride) {
        return None;
    }
    if !scope.bools.is_empty() {
        let mut rest = elements;
        for _ in 0..count {
            let (element, behind) = rest.split_at_checked(stride)?;
            if !plan.bools_hold(scope, element.get(LINKS..)?) {
                return None;
            }
            rest = behind;
        }
    }
    Some(elements)
}

/// Whether each element names its own place and that of the next one, which follows at once; the
/// last one names none.
#[inline(always)]
fn linked(elements: &[u8], first: usize, count: usize, stride: usize) -> bool {
    let word = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let names = |element: &[u8], links: u32| {
        element.first_chunk::<LINKS>().is_some_and(|found| u32::from_le_bytes(*found) == links)
    };
    let (first, stride_word) = (word(first), word(stride));
    // Both words at once.
    let mut links = first | (first + stride_word) << 16;
    let mut rest = elements;
    for _ in 1..count {
        match rest.split_at_checked(stride) {
            Some((element, behind)) if names(element, links) => rest = behind,
            _ => return false,
        }
        links = links.wrapping_add(stride_word << 16 | stride_word);
    }
    names(rest, links & 0xffff)
}
