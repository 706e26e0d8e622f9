//! The capture file. Every pass sees the same bytes, even if the file grows in the meantime. If the
//! file is followed, passes continue when it has grown.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use worldwire_capture::{CaptureError, CaptureReader, Mark, Packet, Record, SecretsKind};
use worldwire_core::Limits;
use worldwire_dissect::{
    Checkpoint, Definitions, Dissection, Facts, Item, Options, Overview, Scratch, Sink, Unmerged,
    catch_defect,
};

use crate::error::InspectError;

/// The interval at which a growing file is checked.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long packets wait for keys that follow them.
const KEYS_TIME: Duration = Duration::from_millis(400);

/// A capture and how to read it.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    file: Arc<File>,
    /// The part that is read: the length when the file was opened, unless it is followed.
    length: AtomicU64,
    definitions: Definitions,
    options: RwLock<Arc<Options>>,
    /// The end of the file, if it is followed.
    tail: Option<Mutex<Tail>>,
    /// The state of the file when it was opened.
    opened: FileVersion,
}

/// Evidence that another program has written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    length: u64,
    modified: Option<SystemTime>,
}

impl FileVersion {
    fn of(about: &Metadata) -> Self {
        Self { length: about.len(), modified: about.modified().ok() }
    }
}

/// The progress of a pass over the file.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    bytes: AtomicU64,
    is_waiting: AtomicBool,
}

impl Progress {
    /// The position reached, in bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether everything so far has been read and the reading is waiting for the file to grow.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Acquire)
    }
}

impl Recording {
    /// Opens a capture in a regular file. A followed file may grow.
    pub(crate) fn open(
        path: &Path,
        options: Options,
        is_followed: bool,
    ) -> Result<Self, InspectError> {
        let failed = |source| InspectError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            let text = "not a regular file; save the packets to a file first";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let recording = Self {
            path: path.to_owned(),
            file: Arc::new(file),
            length: about.len().into(),
            definitions: options.definitions.clone(),
            options: RwLock::new(Arc::new(options)),
            tail: is_followed.then(Mutex::default),
            opened: FileVersion::of(&about),
        };
        let begun = recording.packets(&Arc::default()).and_then(|mut capture| {
            match capture.next() {
                Err(error @ CaptureError::Truncated { offset: 0, .. }) => Err(error),
                // Later damage is reported together with everything before it.
                _ => Ok(()),
            }
        });
        begun.map_err(|source| InspectError::NoCapture { path: path.to_owned(), source })?;
        Ok(recording)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes of the file that are read.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Whether passes continue when the file grows.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.is_some()
    }

    /// Whether another program has changed the file since it was opened. Appending to a followed file
    /// does not count.
    pub(crate) fn is_changed(&self) -> bool {
        let Ok(about) = self.file.metadata() else { return true };
        match self.is_followed() {
            true => about.len() < self.length(),
            false => FileVersion::of(&about) != self.opened,
        }
    }

    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The options, with the keys known now.
    pub(crate) fn options(&self) -> Arc<Options> {
        Arc::clone(&self.options.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads all conversations.
    pub(crate) fn dissection(&self) -> Dissection {
        Dissection::new(Options::clone(&self.options()))
    }

    /// Looks for data appended to a followed file and learns the keys in it.
    pub(crate) fn grow(&self) {
        let Some(tail) = &self.tail else { return };
        let Ok(about) = self.file.metadata() else { return };
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = tail.keys_until(self, about.len()) {
            let mut options = self.options.write().unwrap_or_else(PoisonError::into_inner);
            let mut changed = Options::clone(&options);
            match changed.keys.add(&keys) {
                Ok(()) => *options = Arc::new(changed),
                Err(error) => tracing::debug!(%error, "cannot use the keys in the capture"),
            }
        }
        let visible = tail.visible(about.len(), Instant::now());
        self.length.fetch_max(visible, Ordering::AcqRel);
    }

    /// Reads one conversation, with its captured bytes and everything known from the others.
    pub(crate) fn dissection_of(&self, stream: u64, facts: Facts) -> Dissection {
        Dissection::knowing(self.options_of(stream), facts)
    }

    /// The options that read one conversation with its captured bytes.
    pub(crate) fn options_of(&self, stream: u64) -> Options {
        let (only, wire) = (Some(stream), Some(stream));
        Options { only, wire, ..Options::clone(&self.options()) }
    }

    /// The packets from the beginning.
    ///
    /// # Errors
    /// Those of [`CaptureReader::new`].
    pub(crate) fn packets(
        &self,
        progress: &Arc<Progress>,
    ) -> Result<CaptureReader<Part>, CaptureError> {
        CaptureReader::new(self.part(0, self.length(), progress), &Limits::DEFAULT)
    }

    /// The packets after a place.
    pub(crate) fn packets_after(&self, mark: &Mark) -> CaptureReader<Part> {
        self.resumed(mark, self.length(), &Arc::default())
    }

    fn resumed(&self, mark: &Mark, end: u64, progress: &Arc<Progress>) -> CaptureReader<Part> {
        CaptureReader::resume(self.part(mark.offset(), end, progress), mark, &Limits::DEFAULT)
    }

    fn part(&self, at: u64, end: u64, progress: &Arc<Progress>) -> Part {
        Part { file: Arc::clone(&self.file), at, end, progress: Arc::clone(progress) }
    }

    /// Reads the capture from the beginning and passes the result of each batch to `take`, with the
    /// conversations that the batch closed, until `take` stops it. Returns the reason if the file
    /// could not be read to its end.
    ///
    /// With `stops`, the pass follows the file: at the end, it waits for more until `stops` returns
    /// true.
    pub(crate) fn read<S: Sink>(
        &self,
        dissection: Dissection,
        progress: &Arc<Progress>,
        stops: Option<&dyn Fn() -> bool>,
        show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
        take: impl FnMut(&S, Vec<Overview>) -> ControlFlow<()>,
    ) -> Option<CaptureError> {
        let note = |dissection: &mut Dissection, _| dissection.take_closed();
        self.read_noting(dissection, progress, stops, show, |_| false, note, take)
    }

    /// Like [`read`](Self::read), but calls `note` with the state after each batch, and passes its
    /// result to `take`. `take` cannot look at the state itself, because the next batch may already be
    /// being read. `note` also receives a checkpoint if `is_due` returned true for the position in the file.
    #[expect(clippy::too_many_arguments, reason = "closures that see each other's borrows")]
    pub(crate) fn read_noting<S: Sink, N>(
        &self,
        mut dissection: Dissection,
        progress: &Arc<Progress>,
        stops: Option<&dyn Fn() -> bool>,
        show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
        is_due: impl Fn(u64) -> bool,
        mut note: impl FnMut(&mut Dissection, Option<(Mark, Checkpoint)>) -> N,
        mut take: impl FnMut(&S, N) -> ControlFlow<()>,
    ) -> Option<CaptureError> {
        let stops = stops.filter(|_| self.is_followed());
        let mut end = self.length();
        let begun = CaptureReader::new(self.part(0, end, progress), &Limits::DEFAULT);
        let mut capture = match begun {
            Ok(capture) => capture,
            Err(error) => return Some(error),
        };
        // A gzipped file can only be read from the beginning.
        let mut can_rest = true;
        // The last place between two records. Nothing before it is read again.
        let mut place: Option<Mark> = None;
        let mut out = S::default();
        let mut pass = |(unmerged, noted): (Unmerged<S>, N)| {
            out.truncate(0);
            unmerged.merge(&mut out);
            take(&out, noted)
        };
        // The result of the last batch is passed on while the next one is read.
        let mut late: Option<(Unmerged<S>, N)> = None;
        let mut filled = fill(&mut capture, 0, u64::MAX, |packet| dissection.push(packet));
        loop {
            // The last record may still be incomplete.
            let waits = stops.filter(|_| {
                matches!(&filled, Filled::End(None | Some(CaptureError::Truncated { .. })))
            });
            let is_last = waits.is_none() && matches!(filled, Filled::End(_));
            let is_waiting = waits.is_some();
            let is_between = !matches!(filled, Filled::End(Some(_)));
            if is_last {
                dissection.end();
            }
            let mut rested = None;
            if !is_last && can_rest && is_between && is_due(progress.bytes()) {
                rested = capture.mark().map(|mark| (mark, dissection.checkpoint()));
                can_rest = rested.is_some();
            }
            let (mut next, mut flow) = (Filled::More, ControlFlow::Continue(()));
            let unmerged = dissection.run_beside(
                &show,
                |feed| match (is_last, is_waiting) {
                    (true, _) => next = Filled::End(None),
                    (false, true) => {}
                    // The next batch is collected while this one is read.
                    (false, false) => {
                        next = fill(&mut capture, 0, u64::MAX, |packet| feed.push(packet));
                    }
                },
                || flow = late.take().map_or(flow, &mut pass),
            );
            if flow.is_break() {
                return None;
            }
            if let Some((mark, _)) = &rested {
                place = Some(mark.clone());
            }
            let noted = note(&mut dissection, rested);
            if matches!(filled, Filled::More) {
                late = Some((unmerged, noted));
            } else if pass((unmerged, noted)).is_break() {
                return None;
            }
            if let (Filled::End(fault), None) = (filled, waits) {
                return fault;
            }
            if let Some(stops) = waits {
                if is_between {
                    place = capture.mark().or(place);
                }
                progress.is_waiting.store(true, Ordering::Release);
                while self.length() <= end {
                    if stops() {
                        return None;
                    }
                    thread::sleep(PATIENCE);
                    self.grow();
                }
                progress.is_waiting.store(false, Ordering::Release);
                end = self.length();
                dissection.set_keys(self.options().keys.clone());
                capture = match &place {
                    Some(mark) => self.resumed(mark, end, progress),
                    None => {
                        CaptureReader::new(self.part(0, end, progress), &Limits::DEFAULT).ok()?
                    }
                };
                let known = dissection.packets();
                filled = fill(&mut capture, known, u64::MAX, |packet| dissection.push(packet));
                continue;
            }
            filled = match next {
                Filled::More if !dissection.is_pending() => {
                    fill(&mut capture, 0, u64::MAX, |packet| dissection.push(packet))
                }
                next => next,
            };
        }
    }
}

/// The end of a file that is followed.
#[derive(Debug, Default)]
struct Tail {
    /// After the last record that was searched for keys.
    searched: Option<Mark>,
    /// Where the last block of keys begins.
    last_keys: Option<u64>,
    /// Earlier lengths of the file and when they were seen.
    seen: VecDeque<(Instant, u64)>,
}

impl Tail {
    /// The keys between the packets that were appended up to this length.
    fn keys_until(&mut self, recording: &Recording, end: u64) -> Option<String> {
        if self.seen.back().is_some_and(|(_, known)| *known >= end) {
            return None;
        }
        let unread = Arc::default();
        let mut capture = match &self.searched {
            Some(mark) => recording.resumed(mark, end, &unread),
            None => CaptureReader::new(recording.part(0, end, &unread), &Limits::DEFAULT).ok()?,
        };
        let mut keys = String::new();
        let ended = loop {
            let capture = &mut capture;
            match catch_defect(move || capture.next()) {
                Ok(Ok(Some(Record::Secrets { kind: SecretsKind::WORLDWIRE, data, offset }))) => {
                    if self.last_keys.is_none_or(|last| offset > last) {
                        keys.push_str(&String::from_utf8_lossy(data));
                        keys.push('\n');
                        self.last_keys = Some(offset);
                    }
                }
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => break true,
                Ok(Err(_)) | Err(_) => break false,
            }
        };
        if ended {
            self.searched = capture.mark();
        }
        (!keys.is_empty()).then_some(keys)
    }

    /// The part of the file that may be read. A proxy writes the keys of a conversation only once
    /// they have been agreed on, so in a capture with keys, the conversation's first packets wait
    /// for its keys.
    fn visible(&mut self, length: u64, now: Instant) -> u64 {
        if self.last_keys.is_none() {
            self.seen = VecDeque::from([(now, length)]);
            return length;
        }
        if self.seen.back().is_none_or(|(_, known)| *known < length) {
            self.seen.push_back((now, length));
        }
        let is_old = |seen: &(Instant, u64)| now.duration_since(seen.0) >= KEYS_TIME;
        let mut visible = 0;
        while self.seen.len() > 1 && self.seen.get(1).is_some_and(is_old) {
            self.seen.pop_front();
        }
        if let Some(first) = self.seen.front().filter(|first| is_old(first)) {
            visible = first.1;
        }
        visible
    }
}

/// Reads packets up to and including `last`, and passes the result of each batch to `take` until
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
        let filled = fill(&mut capture, 0, last, |packet| dissection.push(packet));
        let is_last = matches!(filled, Filled::End(_));
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
    /// The batch is full.
    More,
    /// The capture has ended, with an error if it is damaged.
    End(Option<CaptureError>),
}

/// Passes packets to `push` until it reports a full batch. Skips those up to and including the
/// packet `known`, and ends after the packet `last`.
fn fill(
    capture: &mut CaptureReader<Part>,
    known: u64,
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
                if packet.number > known && push(&packet) {
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

/// Part of a file, with its own read position.
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
        self.progress.bytes.store(self.at, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_the_keys_after_them() {
        let (mut tail, start) = (Tail::default(), Instant::now());
        assert_eq!(tail.visible(100, start), 100, "a capture without keys");
        tail.last_keys = Some(8);
        let later = |part: u32| start + KEYS_TIME * part / 4;
        assert_eq!(tail.visible(200, later(1)), 0);
        assert_eq!(tail.visible(300, later(3)), 0);
        assert_eq!(tail.visible(300, later(5)), 200);
        assert_eq!(tail.visible(300, later(6)), 200);
        assert_eq!(tail.visible(400, later(7)), 300);
        assert_eq!(tail.visible(400, later(20)), 400);
        assert_eq!(tail.visible(400, later(21)), 400);
        assert_eq!(tail.seen.len(), 1, "what is no longer needed is forgotten");
    }
}
