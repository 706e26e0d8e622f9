//! Lists: their links, and groups whose elements alternate.

use worldwire_core::Result;

use super::{Leaf, Run, Sink};
use crate::message::bounds::Chain;
use crate::message::fault::Fault;
use crate::message::oddity::NoteKind;
use crate::schema::plan::Scope;

/// Where an element of an interleaved list stands.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    round: u32,
    list: u32,
    start: usize,
    end: usize,
}

impl<'d, 'n> Run<'d, 'n> {
    /// Follows the links of a list; `list` is its number when it is one of a group.
    pub(super) fn array<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        (count_at, offset_at): (usize, usize),
        scope: u32,
        list: Option<u32>,
        cursor: &mut usize,
    ) -> Result<()> {
        let (count, first) = (self.word(count_at)?, self.word(offset_at)?);
        let scope = self.plan.scope(scope);
        if count == 0 {
            if first != 0 {
                self.note(NoteKind::UnusedOffset, offset_at);
            }
            sink.list(leaf, scope, 0, *cursor, |_| ((), *cursor));
            return Ok(());
        }
        // An offset that leads outside is an error of the first element; the list has its place.
        let inside = (self.floor..self.data.len()).contains(&first);
        let start = if inside { first } else { *cursor };
        sink.list(leaf, scope, count, start, |sink| {
            let outcome = self.elements(sink, scope, count, (first, offset_at), list, cursor);
            (outcome, *cursor)
        })
    }

    fn elements<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        scope: &'n Scope,
        count: usize,
        (first, offset_at): (usize, usize),
        list: Option<u32>,
        cursor: &mut usize,
    ) -> Result<()> {
        let (mut at, mut link) = (first, offset_at);
        let mut chain = Chain::new();
        for index in 0..count {
            if index > 0 && at != 0 {
                chain.follow(at, link).map_err(|error| error.inside_item(index))?;
            }
            let next = match self.element_links(at, link, count, index) {
                Ok(next) => next,
                Err(error) => return Err(error.inside_item(index)),
            };
            if at != *cursor && list.is_none() {
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
            if let Some(list) = list {
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
