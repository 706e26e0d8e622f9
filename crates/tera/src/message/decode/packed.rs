//! Lists whose elements are contiguous, as encoders write them: recognised as a whole.

use super::Sink;
use crate::schema::plan::{LINKS, Op, Plan, Scope, Spot, TextPlace};
use crate::types::text::text_length;

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
pub(super) fn nested(
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

/// A word in the first segment of a scope, which is complete.
#[inline]
pub(super) fn word(head: &[u8], spot: Spot) -> usize {
    let at = usize::from(spot.offset);
    match head.get(at..at + 2) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}

/// Two words in the first segment of a scope, which is complete: the one at the spot in the low
/// half, the next one in the high half.
#[inline]
pub(super) fn words(head: &[u8], spot: Spot) -> u32 {
    let at = usize::from(spot.offset);
    match head.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}
