//! Lists: their links, and groups whose elements alternate.

use worldwire_core::Result;

use super::{Base, Leaf, Run, Sink};
use crate::message::bounds::Chain;
use crate::message::fault::Fault;
use crate::message::oddity::NoteKind;
use crate::schema::plan::{Op, Scope};

/// Bytes in front of the fields of an element: its own offset, and that of the next one.
const LINKS: usize = 4;

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
    #[inline]
    pub(super) fn array<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        scope: u32,
        list: List,
        cursor: usize,
    ) -> Result<usize> {
        let scope = self.plan.scope(scope);
        if list.count > 0 {
            return self.filled(sink, leaf, scope, list, cursor);
        }
        if list.first != 0 {
            self.note(NoteKind::UnusedOffset, list.link);
        }
        sink.list(leaf, scope, 0, cursor, |_| ((), cursor));
        Ok(cursor)
    }

    /// A list that has elements.
    fn filled<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        scope: &'n Scope,
        list: List,
        cursor: usize,
    ) -> Result<usize> {
        let List { count, first, .. } = list;
        if list.number.is_none()
            && scope.loose.is_empty()
            && let Some(end) = self.packed(scope, list, cursor)
        {
            return sink.list(leaf, scope, count, first, |sink| {
                (self.tell(sink, scope, list).map(|()| end), end)
            });
        }
        // An offset that leads outside is an error of the first element; the list has its place.
        let inside = (self.floor..self.data.len()).contains(&first);
        let start = if inside { first } else { cursor };
        sink.list(leaf, scope, count, start, |sink| {
            let mut end = cursor;
            let outcome = self.elements(sink, scope, list, &mut end);
            (outcome.map(|()| end), end)
        })
    }

    /// Whether elements of fixed size stand one behind the other from the cursor on, with nothing
    /// odd in them, as most lists do; gives their end, and counts them as read.
    #[inline(always)]
    fn packed(&mut self, scope: &Scope, list: List, cursor: usize) -> Option<usize> {
        let List { count, first, .. } = list;
        if first != cursor || first < self.floor {
            return None;
        }
        let stride = scope.size as usize + LINKS;
        let end = first.saturating_add(count.saturating_mul(stride));
        let mut bytes = self.data.get(first..end)?;
        let mut here = first;
        for _ in 1..count {
            let next = here + stride;
            if !linked(bytes, here, next) {
                return None;
            }
            (here, bytes) = (next, bytes.get(stride..)?);
        }
        let cost = count * scope.cost as usize;
        if !linked(bytes, here, 0) || !self.budget.has(cost) {
            return None;
        }
        if !scope.bools.is_empty() {
            for element in (first..end).step_by(stride) {
                for spot in self.plan.bools(scope) {
                    if *self.data.get(element + LINKS + usize::from(spot.offset))? > 1 {
                        return None;
                    }
                }
            }
        }
        self.budget.spend(cost, first).ok()?;
        self.furthest = self.furthest.max(end);
        Some(end)
    }

    /// Tells of elements that are [packed](Self::packed).
    #[inline]
    fn tell<S: Sink<'d, 'n>>(&mut self, sink: &mut S, scope: &'n Scope, list: List) -> Result<()> {
        let stride = scope.size as usize + LINKS;
        let mut at = list.first;
        for index in 0..list.count {
            let start = at + LINKS;
            sink.element(index, start);
            if scope.single {
                self.fields(sink, scope, start)?;
            } else if S::FIXED {
                sink.record("", scope.fields.len(), at, |sink| {
                    (self.fields(sink, scope, start), start + scope.size as usize)
                })?;
            }
            at += stride;
        }
        Ok(())
    }

    /// Tells of the fields of an element that is all there and has no bodies.
    #[inline]
    fn fields<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        scope: &'n Scope,
        start: usize,
    ) -> Result<()> {
        if !S::FIXED {
            return Ok(());
        }
        let steps = scope.emit.as_ref().unwrap_or(&scope.wire);
        if let &[Op::Fixed { from, to, .. }] = self.plan.steps(steps)
            && let Some(bytes) = self.data.get(start..start + scope.size as usize)
        {
            sink.fixed(self.plan, self.plan.run(from, to), bytes, start);
            return Ok(());
        }
        let base = Base { scope, start, segments: self.segments.len() };
        self.steps(sink, steps, base, start + scope.size as usize).map(drop)
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
        for index in 0..count {
            if index > 0 && at != 0 {
                chain.follow(at, link).map_err(|error| error.inside_item(index))?;
            }
            let next = match self.element_links(at, link, count, index) {
                Ok(next) => next,
                Err(error) => return Err(error.inside_item(index)),
            };
            if at != *cursor && number.is_none() {
                self.note(NoteKind::OffsetMismatch, link);
            }
            if next != 0 && next < at {
                self.note(NoteKind::OutOfOrder, at + 2);
            }
            sink.element(index, at + 4);
            let outcome = if !S::FIXED && scope.loose.is_empty() {
                self.enter(scope, at + 4)
            } else if scope.single || !S::FIXED {
                self.scope(sink, scope, at + 4)
            } else {
                sink.record("", scope.fields.len(), at, |sink| {
                    let outcome = self.scope(sink, scope, at + 4);
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

    /// Checks the place of an element and what it says of itself; gives where the next one is.
    #[inline(always)]
    fn element_links(&self, at: usize, link: usize, count: usize, index: usize) -> Result<usize> {
        if at == 0 {
            let found = format!("{index} of {count}");
            return Err(Fault::ArrayChainShort.malformed(link, found));
        }
        self.check_offset(at, link)?;
        let words = self.data.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let Some(&[a, b, c, d]) = words else {
            // The one or the other.
            return self.here(at).and_then(|()| self.word(at + 2));
        };
        if usize::from(u16::from_le_bytes([a, b])) != at {
            self.here(at)?;
        }
        Ok(usize::from(u16::from_le_bytes([c, d])))
    }

    /// Whether an element names its own place.
    #[cold]
    fn here(&self, at: usize) -> Result<()> {
        let here = self.word(at)?;
        if here == at {
            return Ok(());
        }
        Err(Fault::HereMismatch.malformed(at, format!("{here} at {at}")))
    }

    /// Looks whether the elements of a group alternate without gaps, and moves the cursor to their
    /// end.
    pub(super) fn close_group(&mut self, from: usize, cursor: &mut usize) {
        let extents = self.extents.get_mut(from..).unwrap_or_default();
        extents.sort_unstable_by_key(|extent| (extent.round, extent.list));
        for extent in extents.iter() {
            if extent.start != *cursor && !self.quiet {
                self.notes.add(NoteKind::OffsetMismatch, extent.start);
            }
            *cursor = extent.end;
        }
        self.extents.truncate(from);
    }
}

/// Whether an element names its own place and the next one.
#[inline]
fn linked(element: &[u8], here: usize, next: usize) -> bool {
    // Both are places in the message, which fit into words.
    let links = element.first_chunk::<LINKS>();
    links.is_some_and(|links| u32::from_le_bytes(*links) as usize == here | (next << 16))
}
