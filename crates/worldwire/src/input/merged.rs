//! Several capture files read as one, with the packets in order of time.

use std::io::Read;
use std::path::Path;

use worldwire_capture::{CaptureError, CaptureReader, Packet, Record};
use worldwire_core::Limits;

use super::packets::Refusal;
use crate::output::{Failure, complain};

/// The maximum number of captures. Each is an open file.
const MAX_CAPTURES: usize = 256;

/// The input of a capture.
type Input = Box<dyn Read + Send>;

/// Reads several captures together, always taking the capture whose next packet is the earliest. If
/// times are equal, the first capture wins. Each capture is read in its own order. Packets are numbered
/// in the merged order.
pub(crate) struct Merged {
    sources: Vec<Source>,
    /// The packet that was returned last.
    current: Held,
    count: u64,
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
    /// One of them cannot be opened or is not a capture, or there are more than [`MAX_CAPTURES`].
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
        Ok(Self { sources, current: NOTHING, count: 0, fault: None })
    }

    /// The next record; with several captures, the next packet. An error in one of several is
    /// reported, and returned at the end of all.
    ///
    /// # Errors
    /// Those of [`CaptureReader::next`].
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        let Self { sources, current, count, fault } = self;
        if sources.len() == 1 {
            return sources[0].capture.next();
        }
        for source in &mut *sources {
            if let Err(error) = source.fill() {
                complain(&source.title, &error.to_string());
                fault.get_or_insert(error);
            }
        }
        let waiting = sources.iter_mut().filter_map(|source| {
            let time = source.next.packet.as_ref()?.time;
            Some((time, source))
        });
        let Some((_, first)) = waiting.min_by_key(|(time, _)| *time) else {
            return fault.take().map_or(Ok(None), Err);
        };
        core::mem::swap(current, &mut first.next);
        first.next.packet = None;
        *count += 1;
        let number = *count;
        let packet = current.packet.map(|packet| Packet { number, data: &current.data, ..packet });
        Ok(packet.map(Record::Packet))
    }
}

impl Source {
    /// Reads the next packet, unless one waits already.
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
