//! Packets of a capture as they arrive, from a file or from a program that is still capturing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::ProgressBar;
use worldwire_capture::{CaptureError, Packet, Record};
use worldwire_core::Limits;
use worldwire_dissect::catch_defect;

use super::live::Live;
use super::merged::Merged;
use super::tcpdump::Child;
use crate::cli::Tcpdump;
use crate::output::{Failure, Interruption, PacketsTarget};

/// How long a partial batch waits for more packets: short enough to go unnoticed, long enough to
/// fill batches under load.
pub(super) const PATIENCE: Duration = Duration::from_millis(5);

pub(crate) struct Packets(Source);

enum Source {
    Stored(Stored),
    Live(Live),
}

/// What to do while packets arrive.
#[derive(Debug, Default)]
pub(crate) struct Meanwhile {
    /// The files to which every packet is written.
    pub(crate) copy: Option<PacketsTarget>,
    /// How long packets wait before they are passed on.
    pub(crate) wait: Duration,
    /// Whether to stop when nobody reads standard output any more.
    pub(crate) watches_stdout: bool,
}

/// Why a batch ended.
pub(crate) enum Filled {
    /// The batch is full, or no packet arrived in time.
    More,
    /// The capture has ended, with an error if it was truncated.
    End(Option<CaptureError>),
    /// A signal with this exit code arrived before the end of the file. A signal that stops a live
    /// capture is reported as [`Self::End`], because nothing else ends one.
    Interrupted(i32),
    /// Nobody reads standard output any more.
    Unread,
}

/// Why a capture cannot be read at all.
pub(crate) enum Refusal {
    /// The input cannot be opened, or the capturing program failed.
    Failed(Failure),
    /// A file is not a capture; the path states which one if there are several.
    NoCapture(Option<PathBuf>, CaptureError),
}

impl Packets {
    /// Opens complete capture files.
    pub(crate) fn stored<'p>(
        paths: impl Iterator<Item = &'p Path>,
        limits: &Limits,
        progress: &ProgressBar,
    ) -> Result<Self, Refusal> {
        Stored::open(paths, limits, progress).map(|stored| Self(Source::Stored(stored)))
    }

    /// Opens a capture that another program is writing, and waits for its header. With `grows`, the
    /// capture may continue after the current end of the file.
    pub(crate) fn live(
        path: &Path,
        grows: bool,
        limits: &Limits,
        meanwhile: Meanwhile,
    ) -> Result<Self, Refusal> {
        Live::open(path, grows, limits, meanwhile).map(|live| Self(Source::Live(live)))
    }

    /// Starts a capture and waits for its header. With `is_quiet`, the messages of the capturing program
    /// are shown only if it fails.
    pub(crate) fn capture(
        tcpdump: &Tcpdump,
        is_quiet: bool,
        limits: &Limits,
        meanwhile: Meanwhile,
    ) -> Result<Self, Refusal> {
        let child = Child::start(tcpdump, is_quiet).map_err(Refusal::Failed)?;
        Live::of_child(child, &tcpdump.stop_after, limits, meanwhile)
            .map(|live| Self(Source::Live(live)))
    }

    /// The number of packets left out because they are copies of packets in other captures.
    pub(crate) fn copies(&self) -> u64 {
        match &self.0 {
            Source::Stored(stored) => stored.capture.copies(),
            Source::Live(_) => 0,
        }
    }

    /// Passes packets to `push` until it reports a full batch. In a live capture, does not wait for
    /// more once some packets have arrived; with `is_brief`, never waits.
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
    capture: Merged,
    /// The exit code of the received signal.
    signal: Arc<OnceLock<i32>>,
    /// Dropped at the end of the file. From then on, the result is complete and Ctrl-C ends the
    /// program.
    interruption: Option<Interruption>,
}

impl Stored {
    fn open<'p>(
        paths: impl Iterator<Item = &'p Path>,
        limits: &Limits,
        progress: &ProgressBar,
    ) -> Result<Self, Refusal> {
        let (interruption, signal) = Interruption::keep_first();
        let capture = Merged::open(paths, limits, |input| match progress.is_hidden() {
            true => input,
            false => Box::new(progress.wrap_read(input)),
        })?;
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
        // Nothing else would handle a signal that arrived earlier.
        self.signal.get().map_or(Filled::End(fault), |code| Filled::Interrupted(*code))
    }
}
