//! Several capture files read as one, with the packets in order of time.
//!
//! Captures that overlap contain the same packets: for example, the files of a ring begin with
//! copies of earlier packets, so that each can be read alone. When the files are read together,
//! every packet counts once. A packet is a copy if an earlier packet in another file has the same
//! time, link type and bytes. Copies need not be marked, so this also works for pcap and for files
//! written by other programs.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read;
use std::path::Path;

use worldwire_capture::{CaptureError, CaptureReader, LinkType, Packet, Record, Timestamp};
use worldwire_core::Limits;

use super::packets::Refusal;
use crate::output::{Failure, complain};

/// The maximum number of captures, each of which is an open file.
const MAX_CAPTURES: usize = 256;

/// The input of a capture.
type Input = Box<dyn Read + Send>;

/// Reads several captures together, always continuing with the capture whose next packet is the
/// earliest. If times are equal, the first capture wins. Each capture is read in its own order.
/// Copies are left out. Packets are numbered in the merged order.
pub(crate) struct Merged {
    sources: Vec<Source>,
    /// The packet that was returned last.
    current: Held,
    count: u64,
    recent: Recent,
    copies: u64,
    /// The error that ended a capture. The others are still read to their ends.
    fault: Option<CaptureError>,
}

struct Source {
    title: String,
    capture: CaptureReader<Input>,
    next: Held,
    is_over: bool,
}

/// A packet with its bytes.
struct Held {
    packet: Option<Packet<'static>>,
    data: Vec<u8>,
}

const NOTHING: Held = Held { packet: None, data: Vec::new() };

impl Merged {
    /// Opens captures. `watch` can wrap their input.
    ///
    /// # Errors
    /// If one of them cannot be opened or is not a capture, or if there are more than
    /// [`MAX_CAPTURES`].
    pub(crate) fn open<'p>(
        paths: impl Iterator<Item = &'p Path>,
        limits: &Limits,
        watch: impl Fn(Input) -> Input,
    ) -> Result<Self, Refusal> {
        let mut sources = Vec::new();
        for path in paths {
            if sources.len() == MAX_CAPTURES {
                let problem =
                    format!("more than {MAX_CAPTURES} captures; merge some of them first");
                return Err(Refusal::Failed(Failure::Run(problem)));
            }
            let input = super::open(path).map_err(Refusal::Failed)?;
            let capture = CaptureReader::new(watch(input), limits)
                .map_err(|error| Refusal::NoCapture(Some(path.to_owned()), error))?;
            let title = super::title(path);
            sources.push(Source { title, capture, next: NOTHING, is_over: false });
        }
        let (current, recent) = (NOTHING, Recent::default());
        Ok(Self { sources, current, count: 0, recent, copies: 0, fault: None })
    }

    /// The number of copies left out so far.
    pub(crate) fn copies(&self) -> u64 {
        self.copies
    }

    /// The next record; with several captures, the next packet. An error in one of several captures
    /// is reported, then returned once all have ended.
    ///
    /// # Errors
    /// The errors of [`CaptureReader::next`].
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        let Self { sources, current, count, recent, copies, fault } = self;
        if sources.len() == 1 {
            return sources[0].capture.next();
        }
        let packet = loop {
            for source in &mut *sources {
                if let Err(error) = source.fill() {
                    complain(&source.title, &error.to_string());
                    fault.get_or_insert(error);
                }
            }
            let waiting = sources.iter_mut().enumerate().filter_map(|(index, source)| {
                let packet = source.next.packet?;
                Some((packet, index, source))
            });
            let Some((packet, index, first)) = waiting.min_by_key(|(packet, ..)| packet.time)
            else {
                return fault.take().map_or(Ok(None), Err);
            };
            core::mem::swap(current, &mut first.next);
            first.next.packet = None;
            if !recent.is_copy(index, &Packet { data: &current.data, ..packet }) {
                break packet;
            }
            *copies += 1;
        };
        *count += 1;
        let number = *count;
        Ok(Some(Record::Packet(Packet { number, data: &current.data, ..packet })))
    }
}

/// The latest packets, to recognise copies of them. In time order, a copy directly follows its
/// original, unless the captures are slightly out of order.
#[derive(Default)]
struct Recent {
    /// The captures that the packets come from, by content.
    from: HashMap<Content, usize>,
    /// The packets, oldest first.
    order: VecDeque<Content>,
    hasher: RandomState,
}

/// Identifies a packet by its time, link type, original length and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Content {
    time: Timestamp,
    link: LinkType,
    length: u32,
    /// The hash key is secret, so nobody can craft another packet with the same digest.
    digest: u64,
}

impl Recent {
    /// The maximum number of packets remembered.
    const MAX: usize = 1 << 16;

    /// Remembers a packet of a capture and returns whether another capture has already contained
    /// it.
    fn is_copy(&mut self, capture: usize, packet: &Packet<'_>) -> bool {
        let Packet { time, link, original_length: length, data, unusable, .. } = *packet;
        if unusable.is_some() {
            return false;
        }
        let content = Content { time, link, length, digest: self.hasher.hash_one(data) };
        if let Some(from) = self.from.get(&content) {
            // If one capture contains a packet twice, it was captured twice.
            return *from != capture;
        }
        if self.order.len() == Self::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.from.remove(&oldest);
        }
        self.from.insert(content, capture);
        self.order.push_back(content);
        false
    }
}

impl Source {
    /// Reads the next packet, unless one is already waiting.
    fn fill(&mut self) -> Result<(), CaptureError> {
        while self.next.packet.is_none() && !self.is_over {
            match self.capture.next() {
                Ok(Some(Record::Packet(packet))) => {
                    self.next.data.clear();
                    self.next.data.extend_from_slice(packet.data);
                    let Packet { number, time, interface, link, .. } = packet;
                    let Packet { original_length, unusable, offset, .. } = packet;
                    let data = &[];
                    self.next.packet = Some(Packet {
                        number,
                        time,
                        interface,
                        link,
                        data,
                        original_length,
                        unusable,
                        offset,
                    });
                }
                Ok(Some(_)) => {}
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(time: i64, data: &[u8]) -> Packet<'_> {
        Packet {
            number: 1,
            time: Timestamp::from_parts(0, time),
            interface: 0,
            link: LinkType::ETHERNET,
            data,
            original_length: 4,
            unusable: None,
            offset: 0,
        }
    }

    #[test]
    fn only_packets_of_other_captures_are_copies() {
        let mut recent = Recent::default();
        let (one, other) = (packet(5, b"data"), packet(5, b"more"));
        // One capture can contain a packet twice, and another capture can contain both copies.
        let seen = [
            (0, one),
            (0, one),
            (0, other),
            (1, one),
            (1, one),
            (2, other),
            (1, packet(6, b"data")),
        ];
        let copies: Vec<bool> =
            seen.iter().map(|(capture, packet)| recent.is_copy(*capture, packet)).collect();
        assert_eq!(copies, [false, false, false, true, true, true, false]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::default();
        for time in 0..Recent::MAX as i64 + 10 {
            assert!(!recent.is_copy(0, &packet(time, b"data")));
        }
        assert_eq!((recent.order.len(), recent.from.len()), (Recent::MAX, Recent::MAX));
        assert!(recent.is_copy(1, &packet(10, b"data")) && !recent.is_copy(1, &packet(9, b"data")));
    }
}
