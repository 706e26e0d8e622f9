//! The capture file. All readings see the same bytes, even if the file grows in the meantime.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use worldwire_capture::{CaptureError, CaptureReader, Mark, Packet, Record};
use worldwire_core::Limits;
use worldwire_dissect::{
    Checkpoint, Dissection, Facts, Item, Options, Scratch, Sink, catch_defect,
};

use crate::error::InspectError;

/// A capture, and how to read it.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    file: Arc<File>,
    /// The length of the file when it was opened. Anything after it is ignored.
    length: u64,
    options: Options,
}

/// The progress of a reading, in bytes of the file.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Recording {
    /// Opens a capture in a regular file.
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self, InspectError> {
        let failed = |source| InspectError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            let text = "not a regular file; save the packets to a file first";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let recording =
            Self { path: path.to_owned(), file: Arc::new(file), length: about.len(), options };
        let begun = recording.packets(&Arc::default());
        begun.map_err(|source| InspectError::NoCapture { path: path.to_owned(), source })?;
        Ok(recording)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes of the file are read.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Reads all conversations.
    pub(crate) fn dissection(&self) -> Dissection {
        Dissection::new(self.options.clone())
    }

    /// Reads one conversation, with its captured bytes and everything known from the others.
    pub(crate) fn dissection_of(&self, stream: u64, facts: Facts) -> Dissection {
        Dissection::knowing(self.options_of(stream), facts)
    }

    /// The options that read one conversation with its captured bytes.
    pub(crate) fn options_of(&self, stream: u64) -> Options {
        let (only, wire) = (Some(stream), Some(stream));
        Options { only, wire, ..self.options.clone() }
    }

    /// The packets from the beginning.
    ///
    /// # Errors
    /// Those of [`CaptureReader::new`].
    pub(crate) fn packets(
        &self,
        progress: &Arc<Progress>,
    ) -> Result<CaptureReader<Part>, CaptureError> {
        let (file, end) = (Arc::clone(&self.file), self.length);
        let part = Part { file, at: 0, end, progress: Arc::clone(progress) };
        CaptureReader::new(part, &Limits::DEFAULT)
    }

    /// The packets after a place.
    pub(crate) fn packets_after(&self, mark: &Mark) -> CaptureReader<Part> {
        let (file, at, end) = (Arc::clone(&self.file), mark.offset(), self.length);
        let part = Part { file, at, end, progress: Arc::default() };
        CaptureReader::resume(part, mark, &Limits::DEFAULT)
    }

    /// Reads the capture from the beginning, and passes the result of each batch to `take`, until
    /// `take` stops it. Returns the reason if the file could not be read to its end.
    pub(crate) fn read<S: Sink>(
        &self,
        dissection: Dissection,
        progress: &Arc<Progress>,
        show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
        take: impl FnMut(&S, &mut Dissection) -> ControlFlow<()>,
    ) -> Option<CaptureError> {
        self.read_resting(dissection, progress, show, take, |_| false, |_, _| ())
    }

    /// Like [`read`](Self::read). Whenever `is_due` returns true for a position in the file, calls
    /// `rest` with the state between two batches.
    pub(crate) fn read_resting<S: Sink>(
        &self,
        mut dissection: Dissection,
        progress: &Arc<Progress>,
        show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
        mut take: impl FnMut(&S, &mut Dissection) -> ControlFlow<()>,
        is_due: impl Fn(u64) -> bool,
        mut rest: impl FnMut(Mark, Checkpoint),
    ) -> Option<CaptureError> {
        let mut capture = match self.packets(progress) {
            Ok(capture) => capture,
            Err(error) => return Some(error),
        };
        // A gzipped file can only be read from the beginning.
        let mut can_rest = true;
        let mut out = S::default();
        let mut filled = fill(&mut capture, u64::MAX, |packet| dissection.push(packet));
        loop {
            let is_last = matches!(filled, Filled::End(_));
            if is_last {
                dissection.end();
            }
            let rests = !is_last && can_rest && is_due(progress.bytes());
            out.truncate(0);
            let next = dissection.run(&show, &mut out, |feed| match (is_last, rests) {
                (true, _) => Filled::End(None),
                (false, true) => Filled::More,
                // The next batch is collected while this one is read.
                (false, false) => fill(&mut capture, u64::MAX, |packet| feed.push(packet)),
            });
            if take(&out, &mut dissection).is_break() {
                return None;
            }
            if let Filled::End(fault) = filled {
                return fault;
            }
            if rests {
                match (capture.mark(), dissection.checkpoint()) {
                    (Some(mark), Some(checkpoint)) => rest(mark, checkpoint),
                    (None, _) => can_rest = false,
                    (Some(_), None) => {}
                }
            }
            filled = match next {
                Filled::More if !dissection.is_pending() => {
                    fill(&mut capture, u64::MAX, |packet| dissection.push(packet))
                }
                next => next,
            };
        }
    }
}

/// Reads packets up to and including one, and passes the result of each batch to `take`, until
/// `take` stops it.
pub(crate) fn read_until<S: Sink>(
    last: u64,
    mut capture: CaptureReader<Part>,
    mut dissection: Dissection,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
    mut take: impl FnMut(&S) -> ControlFlow<()>,
) {
    let mut out = S::default();
    loop {
        let is_last =
            matches!(fill(&mut capture, last, |packet| dissection.push(packet)), Filled::End(_));
        if is_last {
            dissection.end();
        }
        out.truncate(0);
        dissection.run(&show, &mut out, |_| ());
        if take(&out).is_break() || is_last {
            return;
        }
    }
}

/// Why no more packets are added to a batch.
enum Filled {
    /// It is full.
    More,
    /// The capture has ended; with an error if it is damaged.
    End(Option<CaptureError>),
}

/// Passes packets to `push` until it reports a full batch.
fn fill(
    capture: &mut CaptureReader<Part>,
    last: u64,
    mut push: impl FnMut(&Packet<'_>) -> bool,
) -> Filled {
    loop {
        let capture = &mut *capture;
        match catch_defect(move || capture.next()) {
            Ok(Ok(Some(Record::Packet(packet)))) => {
                if packet.number > last {
                    return Filled::End(None);
                }
                if push(&packet) {
                    return Filled::More;
                }
            }
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return Filled::End(None),
            Ok(Err(error)) => return Filled::End(Some(error)),
            Err(defect) => {
                let source = io::Error::other(defect.report("the capture file", &[]));
                return Filled::End(Some(CaptureError::Read { offset: 0, source }));
            }
        }
    }
}

/// Part of a file, read from a position of its own.
#[derive(Debug)]
pub(crate) struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
    progress: Arc<Progress>,
}

impl Read for Part {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = left.min(room.len());
        let room = room.get_mut(..length).unwrap_or_default();
        let count = read_at(&self.file, room, self.at)?;
        self.at += count as u64;
        self.progress.0.store(self.at, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads at a position, regardless of other readers of the file.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, room, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, room, at)
}
