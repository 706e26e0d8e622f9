//! Lists: their links, and groups whose elements alternate.

use worldwire_core::Result;

use super::flat::{word, words};
use super::{Group, Leaf, Run, Sink};
use crate::message::bounds::Chain;
use crate::message::fault::Fault;
use crate::message::note::NoteKind;
use crate::message::pairs;
use crate::schema::plan::{LINKS, Op, Plan, Scope, TextPlace};
use crate::types::text::text_length;

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

/// The extent of an element of an interleaved list.
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
                    let next = self.check_links(&mut chain, list, (at, link), index);
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
        let found = format!("a link to {at} after {count} elements");
        Err(Fault::ArrayChainLong.malformed(link, found))
    }

    /// The next element's offset, if the element at `at` begins with its own offset and links to a
    /// later element or to none.
    #[inline(always)]
    fn next_in_order(&self, at: usize) -> Option<usize> {
        let links = u32::from_le_bytes(*self.data.get(at..)?.first_chunk::<LINKS>()?) as usize;
        let (here, next) = (links & 0xffff, links >> 16);
        (here == at && (next > at || next == 0)).then_some(next)
    }

    /// Validates the position and links of an element; returns the offset of the next one.
    fn check_links(
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

    /// Checks that an element begins with its own offset.
    fn here(&self, at: usize) -> Result<()> {
        let here = self.word(at)?;
        if here == at {
            return Ok(());
        }
        Err(Fault::HereMismatch.malformed(at, format!("{here} at {at}")))
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

/// The bytes of a list whose elements are contiguous, contain no offsets, and are canonical. For a
/// sink that wants fields, each element must also be a single run.
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
    // A longer element would exceed the maximum message length, so there are none.
    let stride = u16::try_from(scope.stride).ok().filter(|stride| *stride > 0)?;
    let words = place(count) | place(first) << 16;
    let elements = data.get(first..linked(data, words, place(first), stride)? as usize)?;
    if !scope.bools.is_empty() {
        let mut rest = elements;
        for _ in 0..count {
            let (element, tail) = rest.split_at_checked(stride.into())?;
            if !plan.bools_hold(scope, element.get(LINKS..)?) {
                return None;
            }
            rest = tail;
        }
    }
    Some(elements)
}

/// Whether `count` elements are contiguous from the first one on, and contain no offsets.
#[inline]
pub(crate) fn in_order(data: &[u8], scope: &Scope, count: usize, first: usize) -> bool {
    let words = place(count) | place(first) << 16;
    let stride = u16::try_from(scope.stride).unwrap_or_default();
    stride > 0 && linked(data, words, place(first), stride).is_some()
}

/// The end of a list whose elements are contiguous, each followed by its own texts and lists of
/// plain elements, without deviations.
#[inline(never)]
fn nested(
    plan: &Plan,
    data: &[u8],
    scope: &Scope,
    (count, first): (usize, usize),
) -> Option<usize> {
    let bodies = plan.steps(&scope.loose);
    let mut at = place(first);
    for left in (0..count).rev() {
        let start = at as usize + LINKS;
        let head = data.get(start..start + scope.size as usize)?;
        if !plan.bools_hold(scope, head) {
            return None;
        }
        let mut cursor = at + scope.size + place(LINKS);
        for body in bodies {
            match *body {
                Op::Array { count, plain, .. } => {
                    let words = words(head, count);
                    if words != 0 {
                        cursor = linked(data, words, cursor, plain)?;
                    }
                }
                Op::Text { place: TextPlace::Offset(spot), .. }
                    if word(head, spot) == cursor as usize =>
                {
                    let rest = data.get(cursor as usize..)?;
                    cursor += place(text_length(rest)?) + 2;
                }
                _ => return None,
            }
        }
        let next = if left > 0 { cursor } else { 0 };
        if links(data, at)? != at | next << 16 {
            return None;
        }
        at = cursor;
    }
    Some(at as usize)
}

/// The end of a list whose first element is at the cursor, and whose elements are contiguous and
/// correctly linked. `words` holds the count in its low half and the offset of the first element in
/// its high half.
// 32 bits suffice: sums of two words and 16-bit strides cannot overflow. Offsets above 16 bits,
// which a link cannot express, lie past the end of any message.
#[inline(always)]
pub(super) fn linked(data: &[u8], words: u32, cursor: u32, stride: u16) -> Option<u32> {
    let (count, mut here, stride) = (words & 0xffff, words >> 16, u32::from(stride));
    if here != cursor || count == 0 {
        return None;
    }
    if count > 1 {
        let last = here + (count - 1) * stride;
        while here != last {
            let next = here + stride;
            if links(data, here)? != here | next << 16 {
                return None;
            }
            here = next;
        }
    }
    let end = here + stride;
    (links(data, here)? == here && end as usize <= data.len()).then_some(end)
}

/// Both words before an element: its own offset in the low half, the next element's in the high
/// half.
#[inline(always)]
fn links(data: &[u8], at: u32) -> Option<u32> {
    let at = at as usize;
    let links = data.get(at..at + LINKS)?.first_chunk()?;
    Some(u32::from_le_bytes(*links))
}

/// An offset in a message, which has at most 65,535 bytes, as 32 bits.
#[inline(always)]
pub(super) fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX / 2)
}
