//! Reads a capture in the background, on threads that do not hold the interpreter lock.

use std::cell::RefCell;
use std::io::{self, Read};
use std::mem;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use rayon::{ThreadPool, ThreadPoolBuilder};
use worldwire_capture::{CaptureError, CaptureReader, Record};
use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Dissection, Item, Options, Overview, Scratch, Sink, catch_defect};

use crate::error::{Class, Fault};
use crate::source::Source;

/// A capture whose reading has not started yet.
pub(crate) struct Plan {
    pub(crate) source: Source,
    pub(crate) options: Options,
    pub(crate) selection: Selection,
}

/// Which messages to keep.
pub(crate) struct Selection {
    pub(crate) filter: Option<Filter>,
    pub(crate) stream: Option<u64>,
    /// Also keep notes.
    pub(crate) notes: bool,
}

/// The form into which messages are turned.
pub(crate) trait Harvest: Send + Sync + 'static {
    /// Collects the results of a batch.
    type Batch: Sink + 'static;
    /// Whether `keep` uses the tree; otherwise it can be empty.
    const NEEDS_FIELDS: bool = true;

    /// Adds a selected message, given its name and tree.
    fn keep(&self, item: &Item<'_>, name: &str, tree: &Tree<'_>, batch: &mut Self::Batch);

    /// Receives every conversation once it or the capture has ended.
    fn conversation(&self, overview: &Overview) {
        let _ = overview;
    }

    /// A mistake by the user that only messages reveal.
    fn mistake(&self) -> Option<Fault> {
        None
    }
}

/// What the background threads send.
pub(crate) enum Report<B> {
    Batch(B),
    /// The end.
    End(Result<(), Fault>),
}

/// The maximum number of batches that wait for the interpreter. Each has at most a few megabytes of
/// packets.
const MAX_WAITING: usize = 2;

/// Threads on all cores. Each capture has its own, because one of them waits for Python.
fn pool() -> io::Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().thread_name(|_| "worldwire".to_owned()).build();
    pool.map_err(io::Error::other)
}

/// Threads on all cores, for tasks that never wait. They are kept for the next task, because
/// starting them takes longer than a small task.
pub(crate) fn shared_pool() -> io::Result<Arc<ThreadPool>> {
    /// With the ID of the process that started them, because a forked process lacks the threads.
    static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    // If the process was forked while another thread held the lock, nobody releases it.
    let Ok(mut shared) = SHARED.try_lock() else { return pool().map(Arc::new) };
    match &*shared {
        Some((owner, pool)) if *owner == process => Ok(Arc::clone(pool)),
        _ => {
            let pool = Arc::new(pool()?);
            // The pool of another process is not dropped: that could wait for its threads.
            mem::forget(shared.replace((process, Arc::clone(&pool))));
            Ok(pool)
        }
    }
}

impl Plan {
    /// Starts reading. Reading stops when the receiver is dropped.
    pub(crate) fn start<H: Harvest>(self, harvest: H) -> io::Result<Receiver<Report<H::Batch>>> {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        pool()?.spawn(move || {
            let reading = || self.read(harvest, &sender);
            let outcome = catch_defect(reading).unwrap_or_else(|defect| {
                Err(Fault::new(Class::Capture, defect.report("the capture", &[])))
            });
            // The receiver may be gone.
            let _ = sender.send(Report::End(outcome));
        });
        Ok(receiver)
    }

    fn read<H: Harvest>(
        self,
        harvest: H,
        sender: &SyncSender<Report<H::Batch>>,
    ) -> Result<(), Fault> {
        let Self { source: Source { input, is_live }, options, selection } = self;
        let (dissection, sender) = (Dissection::new(options), sender.clone());
        let reading = Reading { dissection, selection, harvest, sender, fault: None };
        let reading = Rc::new(RefCell::new(reading));
        let input = Punctual { input, reading: is_live.then(|| Rc::clone(&reading)) };
        let mut capture = CaptureReader::new(input, &Limits::DEFAULT).map_err(capture_fault)?;
        let fault = loop {
            let is_full = match capture.next() {
                Ok(Some(Record::Packet(packet))) => reading.borrow_mut().dissection.push(&packet),
                Ok(Some(_)) => false,
                Ok(None) => break None,
                Err(error) => break Some(capture_fault(error)),
            };
            if is_full && reading.borrow_mut().run().is_err() {
                return reading.borrow_mut().fault.take().map_or(Ok(()), Err);
            }
        };
        let mut reading = reading.borrow_mut();
        if reading.fault.is_none() {
            reading.dissection.end();
            // If the receiver is gone, the rest is not needed.
            let _ = reading.run();
            let Reading { dissection, harvest, .. } = &*reading;
            dissection.overviews().into_iter().for_each(|overview| harvest.conversation(overview));
        }
        reading.fault.take().or(fault).map_or(Ok(()), Err)
    }
}

/// A capture that is being read.
struct Reading<H: Harvest> {
    dissection: Dissection,
    selection: Selection,
    harvest: H,
    sender: SyncSender<Report<H::Batch>>,
    /// Why reading stopped early.
    fault: Option<Fault>,
}

impl<H: Harvest> Reading<H> {
    /// Reads the current batch and sends its messages. Fails if reading must stop.
    fn run(&mut self) -> io::Result<()> {
        let Self { dissection, selection, harvest, sender, fault } = self;
        let (selection, harvest) = (&*selection, &*harvest);
        let mut batch = H::Batch::default();
        let show = |item: &Item<'_>, scratch: &mut Scratch, batch: &mut H::Batch| {
            let keep = |name: &str, tree: &Tree<'_>| harvest.keep(item, name, tree, batch);
            selection.pass(item, scratch, H::NEEDS_FIELDS, keep);
        };
        dissection.run(&show, &mut batch, |_| ());
        // This also frees the conversations' memory.
        dissection.take_closed().iter().for_each(|overview| harvest.conversation(overview));
        let ambiguity = selection.filter.as_ref().and_then(Filter::ambiguity);
        let ambiguity = ambiguity.map(|it| Fault::new(Class::Filter, format!("filter: {it}")));
        if let Some(mistake) = ambiguity.or_else(|| harvest.mistake()) {
            *fault = Some(mistake);
            return Err(io::Error::other("a mistake by the user"));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let sent = sender.send(Report::Batch(batch));
        sent.map_err(|_| io::Error::other("the receiver is gone"))
    }
}

impl Selection {
    /// Passes the name and tree of an item to `keep` if it is selected. `needs_fields` says whether
    /// `keep` uses the tree.
    fn pass(
        &self,
        item: &Item<'_>,
        scratch: &mut Scratch,
        needs_fields: bool,
        keep: impl FnOnce(&str, &Tree<'_>),
    ) {
        let is_note = item.message().is_none();
        if self.stream.is_some_and(|stream| stream != item.stamp.stream) || is_note && !self.notes {
            return;
        }
        let (name, limits) = (&*scratch.name, Limits::DEFAULT);
        let by_name = self.filter.as_ref().map(|filter| filter.matches_name(item.family, name));
        if by_name == Some(Some(false)) {
            return;
        }
        if !needs_fields && by_name.is_none() {
            keep(name, &Tree::new());
            return;
        }
        let tree: Tree<'_> = item.tree(mem::take(&mut scratch.tree).recycle(), &limits);
        let matches = |filter: &Filter| filter.matches(&Subject::of(item, name, &tree));
        if self.filter.as_ref().is_none_or(matches) {
            keep(name, &tree);
        }
        scratch.tree = tree.recycle();
    }
}

/// An input that passes on all pending messages before every read, which may wait for packets.
struct Punctual<H: Harvest> {
    input: Box<dyn Read + Send>,
    /// `None` for a file, where full batches are faster.
    reading: Option<Rc<RefCell<Reading<H>>>>,
}

impl<H: Harvest> Read for Punctual<H> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let Some(reading) = &self.reading {
            let mut reading = reading.borrow_mut();
            if reading.dissection.is_pending() {
                reading.run()?;
            }
        }
        self.input.read(room)
    }
}

fn capture_fault(error: CaptureError) -> Fault {
    let (class, offset) = match &error {
        CaptureError::Limit { offset, .. } => (Class::Limit, Some(*offset)),
        CaptureError::Truncated { offset, .. }
        | CaptureError::BadBlock { offset, .. }
        | CaptureError::Gzip { offset, .. }
        | CaptureError::Read { offset, .. } => (Class::Capture, Some(*offset)),
        _ => (Class::Capture, None),
    };
    Fault::new(class, error).at_offset(offset)
}
