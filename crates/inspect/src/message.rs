//! Decodes one message on demand: reads its conversation again, up to the message.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use worldwire_core::Side;
use worldwire_dissect::{Item, ItemBody, Scratch, Wire};

use crate::checkpoints::Beginning;
use crate::detail;
use crate::error::Refusal;
use crate::index::Row;
use crate::recording::read_until;
use crate::state::State;

/// The JSON of messages that were shown recently, newest last.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<(usize, Arc<str>)>>);

/// The maximum number of messages kept, and their maximum total size.
const MAX_RECENT: usize = 256;
const MAX_RECENT_BYTES: usize = 16 << 20;
/// The number of captured bytes to keep for each side, so that a message's own bytes can be located
/// among them.
const MAX_WIRE: usize = 1 << 20;

/// One item of the conversation while it is read again.
#[derive(Debug)]
enum Part {
    /// Any other item.
    Other,
    /// An item with the requested message's time, packet, sender and length.
    Candidate {
        json: String,
        range: Range<u64>,
    },
    Captured {
        from: Side,
        at: u64,
        bytes: Vec<u8>,
        is_datagram: bool,
    },
}

/// Captured bytes and their position in the sender's stream.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The message with this row number, as JSON.
///
/// # Errors
/// The row does not exist, or the file has changed.
pub(crate) fn message(state: &State, number: usize) -> Result<Arc<str>, Refusal> {
    if let Some(json) = state.recent.get(number) {
        return Ok(json);
    }
    let row = *state.index().row(number).ok_or_else(|| {
        let count = state.index().len();
        Refusal::missing(format!("there is no row {number}; the {count} rows are numbered from 0"))
    })?;
    // A message that had to wait for a fact may now be reported earlier, with another packet.
    let found = find(state, &row, number, true).or_else(|| find(state, &row, number, false));
    let json: Arc<str> = found
        .map(Arc::from)
        .ok_or_else(|| Refusal::failed("the message was not found again; has the file changed?"))?;
    state.recent.add(number, Arc::clone(&json));
    Ok(json)
}

/// Reads the conversation again. If `is_strict`, accepts only a message that is reported at the
/// same packet as before.
fn find(state: &State, row: &Row, number: usize, is_strict: bool) -> Option<String> {
    /// The number of copied states to try: a message of average length can straddle two of them.
    const ATTEMPTS: usize = 3;
    let mut found = None;
    for earlier in 0..ATTEMPTS {
        let beginning = state.checkpoints.before(row, state, earlier);
        let is_fork = beginning.ordinal > 0;
        let Some(Found { json, captured, is_captured }) =
            read_from(beginning, state, row, number, is_strict)
        else {
            return found;
        };
        found = Some(detail::complete(&json, captured));
        if is_captured || !is_fork {
            break;
        }
    }
    found
}

/// The wanted message.
struct Found {
    json: String,
    captured: Option<Captured>,
    /// Whether `captured` has all its bytes. Those before the place where reading began are
    /// missing.
    is_captured: bool,
}

fn read_from(
    beginning: Beginning,
    state: &State,
    row: &Row,
    number: usize,
    is_strict: bool,
) -> Option<Found> {
    let recording = &state.recording;
    let families = recording.definitions().families();
    let show = |item: &Item<'_>, scratch: &mut Scratch, parts: &mut Vec<Part>| {
        parts.push(match part(item, row, is_strict) {
            Part::Candidate { range, .. } => {
                Part::Candidate { json: detail::write(item, scratch, number, families), range }
            }
            other => other,
        });
    };
    let Beginning { dissection, mark, mut ordinal } = beginning;
    let packets = match &mark {
        Some(mark) => recording.packets_after(mark),
        None => recording.packets(&Arc::default()).ok()?,
    };
    let last = if is_strict && row.packet > 0 { row.packet.into() } else { u64::MAX };
    let (mut captured, mut found) = (Window::default(), None);
    read_until(last, packets, dissection, show, |parts: &Vec<Part>| {
        for part in parts {
            let is_wanted = ordinal == row.ordinal;
            ordinal += u32::from(!matches!(part, Part::Captured { .. }));
            match part {
                Part::Candidate { json, range } if is_wanted => {
                    let is_captured = captured.begins_before(row.from(), range);
                    let (json, captured) = (json.clone(), captured.of(row.from(), range));
                    found = Some(Found { json, captured, is_captured });
                    return ControlFlow::Break(());
                }
                Part::Candidate { .. } | Part::Other => {}
                Part::Captured { from, at, bytes, is_datagram } => {
                    captured.add(*from, *at, bytes, *is_datagram);
                }
            }
        }
        match ordinal > row.ordinal || state.is_closed() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found
}

/// The kind of an item. The JSON of a candidate is still empty.
fn part(item: &Item<'_>, row: &Row, is_strict: bool) -> Part {
    if let ItemBody::Wire(wire) = item.body {
        let (bytes, is_datagram) = match wire {
            Wire::Bytes(bytes) => (bytes, false),
            Wire::Datagram(bytes) => (bytes, true),
            Wire::Missing(_) => (&[][..], false),
        };
        let (from, at, bytes) = (item.from, item.range.start, bytes.to_vec());
        return Part::Captured { from, at, bytes, is_datagram };
    }
    let length = u32::try_from(item.bytes().len()).unwrap_or(u32::MAX);
    let packet = u32::try_from(item.stamp.packet.unwrap_or(0)).unwrap_or(0);
    let is_same = (item.from, length) == (row.from(), row.length);
    let is_same_time = (item.stamp.time.0, packet) == (row.time, row.packet);
    match is_same && (is_same_time || !is_strict) {
        true => Part::Candidate { json: String::new(), range: item.range.clone() },
        false => Part::Other,
    }
}

/// The last captured bytes of both sides.
#[derive(Debug, Default)]
struct Window {
    /// The captured pieces of each side, by [`Side::index`].
    pieces: [VecDeque<(Captured, bool)>; 2],
    bytes: [usize; 2],
}

impl Window {
    fn add(&mut self, from: Side, at: u64, bytes: &[u8], is_datagram: bool) {
        let pieces = &mut self.pieces[from.index()];
        let kept = &mut self.bytes[from.index()];
        *kept += bytes.len();
        pieces.push_back((Captured { at, bytes: bytes.to_vec() }, is_datagram));
        while *kept > MAX_WIRE && pieces.len() > 1 {
            *kept -= pieces.pop_front().map_or(0, |(piece, _)| piece.bytes.len());
        }
    }

    /// Whether the first captured byte of a message is present.
    fn begins_before(&self, from: Side, range: &Range<u64>) -> bool {
        let pieces = &self.pieces[from.index()];
        let is_first = |(piece, _): &(Captured, bool)| {
            piece.at <= range.start && range.start < piece.at + piece.bytes.len() as u64
        };
        range.is_empty() || pieces.back().is_some_and(|last| last.1) || pieces.iter().any(is_first)
    }

    /// The captured bytes of a message: in a stream, those in its range; otherwise the last
    /// datagram.
    fn of(&self, from: Side, range: &Range<u64>) -> Option<Captured> {
        let pieces = &self.pieces[from.index()];
        if let Some((last, true)) = pieces.back() {
            return Some(Captured { at: last.at, bytes: last.bytes.clone() });
        }
        let mut joined: Option<Captured> = None;
        for (piece, _) in pieces {
            let end = piece.at + piece.bytes.len() as u64;
            let (from, to) = (range.start.max(piece.at), range.end.min(end));
            let part = |at: u64| usize::try_from(at.saturating_sub(piece.at)).unwrap_or(usize::MAX);
            let Some(bytes) = piece.bytes.get(part(from)..part(to)).filter(|it| !it.is_empty())
            else {
                continue;
            };
            match &mut joined {
                Some(joined) => joined.bytes.extend_from_slice(bytes),
                None => joined = Some(Captured { at: from, bytes: bytes.to_vec() }),
            }
        }
        joined
    }
}

impl Recent {
    fn get(&self, number: usize) -> Option<Arc<str>> {
        let recent = self.lock();
        recent.iter().find(|(own, _)| *own == number).map(|(_, json)| Arc::clone(json))
    }

    fn add(&self, number: usize, json: Arc<str>) {
        let mut recent = self.lock();
        recent.push_back((number, json));
        let mut bytes: usize = recent.iter().map(|(_, json)| json.len()).sum();
        while recent.len() > MAX_RECENT || bytes > MAX_RECENT_BYTES && recent.len() > 1 {
            bytes -= recent.pop_front().map_or(0, |(_, json)| json.len());
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(usize, Arc<str>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_bytes_are_cut_to_the_message() {
        let mut window = Window::default();
        window.add(Side::Client, 0, b"abcd", false);
        window.add(Side::Server, 0, b"other", false);
        window.add(Side::Client, 4, b"efgh", false);
        let found = window.of(Side::Client, &(2..6)).unwrap();
        assert_eq!((found.at, found.bytes.as_slice()), (2, &b"cdef"[..]));
        assert!(window.of(Side::Client, &(8..9)).is_none());
        window.add(Side::Client, 8, b"datagram", true);
        assert_eq!(window.of(Side::Client, &(0..1)).unwrap().bytes, b"datagram");
    }

    #[test]
    fn captured_bytes_are_bounded() {
        let mut window = Window::default();
        for at in 0..64 {
            window.add(Side::Client, at << 16, &[0; 1 << 16], false);
        }
        assert_eq!((window.bytes, window.pieces[0].len()), ([MAX_WIRE, 0], 16));
    }

    #[test]
    fn recent_messages_are_bounded() {
        let recent = Recent::default();
        let large: Arc<str> = "x".repeat(5 << 20).into();
        for number in 0..10 {
            recent.add(number, Arc::clone(&large));
        }
        assert!(recent.get(9).is_some() && recent.get(7).is_some() && recent.get(6).is_none());
    }
}
