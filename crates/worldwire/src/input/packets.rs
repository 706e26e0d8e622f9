//! Packets of a capture as they come in: from a file, or from a program that is still capturing.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::ProgressBar;
use worldwire_capture::{CaptureError, CaptureReader, Packet, Record};
use worldwire_core::Limits;
use worldwire_dissect::catch_defect;

use super::live::Live;
use super::tcpdump::Child;
use crate::cli::Tcpdump;
use crate::output::{Failure, Interruption};

/// How long packets wait for others that could be read together with them. Short enough that
/// nobody notices, long enough to fill batches when there is much to read.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// The packets of a capture.
pub(crate) struct Packets(Source);

enum Source {
    Stored(Stored),
    Live(Live),
}

/// Why no more packets were taken in for now.
pub(crate) enum Filled {
    /// A batch is full, or nothing has come in time.
    More,
    /// The capture is over. The fault is reported when it ended in the middle.
    End(Option<CaptureError>),
    /// A signal came before the end of a file, with this exit code. One that ends a live capture is
    /// its [`Self::End`]: nothing else ends it.
    Interrupted(i32),
}

/// Why a capture cannot be read at all.
pub(crate) enum Refusal {
    /// It cannot be opened, or the program fails.
    Failed(Failure),
    /// The file is not a capture.
    NoCapture(CaptureError),
}

impl Packets {
    /// Opens a capture, and waits for its header.
    pub(crate) fn open(
        path: &Path,
        limits: &Limits,
        progress: &ProgressBar,
    ) -> Result<Self, Refusal> {
        // Only the input of other programs makes a reader wait.
        let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
        Ok(Self(if is_file {
            Source::Stored(Stored::open(path, limits, progress)?)
        } else {
            Source::Live(Live::open(path, limits, false)?)
        }))
    }

    /// Opens a file that is still being written: its end is not that of the capture.
    pub(crate) fn open_growing(path: &Path, limits: &Limits) -> Result<Self, Refusal> {
        Live::open(path, limits, true).map(|live| Self(Source::Live(live)))
    }

    /// Starts tcpdump, and waits until it captures.
    pub(crate) fn capture(tcpdump: &Tcpdump, limits: &Limits) -> Result<Self, Refusal> {
        let (child, output) = Child::start(tcpdump)?;
        let live = Live::of_child(child, output, limits)?;
        Ok(Self(Source::Live(live)))
    }

    /// Hands packets to `push` until it answers that a batch is full. Those of a live capture are
    /// not waited for when some are there; with `is_brief`, they are not waited for at all.
    pub(crate) fn fill(
        &mut self,
        is_brief: bool,
        mut push: impl FnMut(&Packet<'_>) -> bool,
    ) -> Filled {
        match &mut self.0 {
            Source::Stored(stored) => stored.fill(&mut push),
            Source::Live(live) => live.fill(is_brief, &mut push),
        }
    }
}

/// Packets of a capture file, borrowed from the reader's buffer.
struct Stored {
    capture: CaptureReader<Box<dyn Read + Send>>,
    /// The exit code of the signal that came.
    signal: Arc<OnceLock<i32>>,
    /// Dropped at the end of the file: from there on the result is complete, and Ctrl-C ends the
    /// program.
    interruption: Option<Interruption>,
}

impl Stored {
    fn open(path: &Path, limits: &Limits, progress: &ProgressBar) -> Result<Self, Refusal> {
        let input = super::open(path).map_err(Refusal::Failed)?;
        let input: Box<dyn Read + Send> =
            if progress.is_hidden() { input } else { Box::new(progress.wrap_read(input)) };
        let (interruption, signal) = Interruption::keep_first();
        let capture = CaptureReader::new(input, limits).map_err(Refusal::NoCapture)?;
        Ok(Self { capture, signal, interruption: Some(interruption) })
    }

    fn fill(&mut self, push: &mut impl FnMut(&Packet<'_>) -> bool) -> Filled {
        let fault = loop {
            if let Some(code) = self.signal.get() {
                return Filled::Interrupted(*code);
            }
            let capture = &mut self.capture;
            match catch_defect(move || capture.next()) {
                Ok(Ok(Some(Record::Packet(packet)))) => {
                    if push(&packet) {
                        return Filled::More;
                    }
                }
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(error),
                Err(defect) => {
                    let source = io::Error::other(defect.report("the capture file", &[]));
                    break Some(CaptureError::Read { offset: 0, source });
                }
            }
        };
        self.interruption = None;
        // One that came before that has nobody else to be heard by.
        self.signal.get().map_or(Filled::End(fault), |code| Filled::Interrupted(*code))
    }
}
