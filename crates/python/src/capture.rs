//! Captures as Python iterators.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{mem, vec};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyTuple};
use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::{Column, Filter, Resolver};
use worldwire_dissect::{Families, Family, Item, Keys, Options, Sink};

use crate::error::{Class, Fault, of_file};
use crate::knowledge::{Knowledge, keys_inside, warn};
use crate::message::{Message, MessageHead, StoredMessage};
use crate::missing::Warnings;
use crate::reading::{Harvest, Plan, Report, Selection};
use crate::source::Source;
use crate::stored::Stored;
use crate::table::{Columns, Table};

/// The messages of a capture, in capture order. You can iterate over it once.
#[pyclass(frozen, module = "worldwire")]
pub(crate) struct Capture {
    state: Mutex<State>,
    knowledge: Arc<Knowledge>,
    warnings: Arc<Warnings>,
    /// The process that reads the capture, because forked processes do not inherit its threads.
    process: u32,
}

enum State {
    /// Reading has not started.
    Opened(Box<Plan>),
    Reading {
        /// Messages that were received but not yet returned.
        messages: vec::IntoIter<StoredMessage>,
        reports: Receiver<Report<Messages>>,
    },
    Ended,
}

/// How long to wait between checks for signals, such as Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

#[pymethods]
impl Capture {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        loop {
            let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            match &mut *state {
                State::Opened(_) => state.start()?,
                State::Reading { messages, .. } => {
                    if let Some(stored) = messages.next() {
                        drop(state);
                        stored.head().warn(&self.warnings, &self.knowledge.definitions);
                        self.warnings.give(py)?;
                        return Ok(Some(Message::new(stored, Arc::clone(&self.knowledge))));
                    }
                }
                State::Ended => return Ok(None),
            }
            drop(state);
            if self.process != std::process::id() {
                let message = "the capture was opened before a fork; open it in this process";
                return Err(PyRuntimeError::new_err(message));
            }
            py.check_signals()?;
            py.detach(|| self.receive()).map_err(|fault| fault.raise(py))?;
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// The values of these fields and metadata as columns, one row for each message. Reads the
    /// capture to its end.
    fn table(&self, py: Python<'_>, columns: &Bound<'_, PyAny>) -> PyResult<Table> {
        let columns: Vec<String> = columns
            .extract()
            .map_err(|_| PyTypeError::new_err("columns must be a list of names"))?;
        let parsed = read_columns(py, &columns, &self.knowledge)?;
        let mut rows = Vec::new();
        let harvest = Columns {
            columns: parsed,
            knowledge: Arc::clone(&self.knowledge),
            warnings: Arc::clone(&self.warnings),
        };
        self.drain(py, harvest, |batch| rows.extend(batch))?.map_err(|it| it.raise(py))?;
        self.warnings.give(py)?;
        py.detach(|| Table::of(&columns, rows)).map_err(|fault| fault.raise(py))
    }

    /// The same values as NumPy arrays, by name.
    fn to_numpy<'py>(
        &self,
        py: Python<'py>,
        columns: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.table(py, columns)?.to_numpy(py)
    }

    /// Stops reading. This ends the iteration.
    fn close(&self, py: Python<'_>) {
        *self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner) = State::Ended;
    }
}

impl Capture {
    /// The selected conversation, and whether there is a filter.
    pub(crate) fn selected(&self, py: Python<'_>) -> (Option<u64>, bool) {
        let state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Opened(plan) => (plan.selection.stream, plan.selection.filter.is_some()),
            _ => (None, false),
        }
    }

    /// Reads the capture to its end and passes the batches to `take`. The result says whether it
    /// could be read completely.
    pub(crate) fn drain<H: Harvest>(
        &self,
        py: Python<'_>,
        harvest: H,
        mut take: impl FnMut(H::Batch) + Send,
    ) -> PyResult<Result<(), Fault>> {
        let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let plan = match mem::replace(&mut *state, State::Ended) {
            State::Opened(plan) => plan,
            other => {
                *state = other;
                let message = "the capture has already been read; open it again";
                return Err(PyRuntimeError::new_err(message));
            }
        };
        drop(state);
        let mut reports = plan.start(harvest)?;
        loop {
            py.check_signals()?;
            let (reports, take) = (&mut reports, &mut take);
            let outcome = py.detach(move || match reports.recv_timeout(PATIENCE) {
                Ok(Report::Batch(batch)) => {
                    take(batch);
                    None
                }
                Ok(Report::End(outcome)) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Ok(())),
            });
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }

    /// Waits briefly for more messages.
    fn receive(&self) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Reading { messages, reports } = &mut *state else { return Ok(()) };
        if messages.len() > 0 {
            // Another thread received them in the meantime.
            return Ok(());
        }
        match reports.recv_timeout(PATIENCE) {
            Ok(Report::Batch(batch)) => *messages = batch.list.into_iter(),
            Ok(Report::End(outcome)) => {
                *state = State::Ended;
                return outcome;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => *state = State::Ended,
        }
        Ok(())
    }
}

impl State {
    fn start(&mut self) -> PyResult<()> {
        *self = match mem::replace(self, Self::Ended) {
            Self::Opened(plan) => {
                Self::Reading { messages: vec::IntoIter::default(), reports: plan.start(Keep)? }
            }
            other => other,
        };
        Ok(())
    }
}

/// Keeps messages as they are.
struct Keep;

impl Harvest for Keep {
    type Batch = Messages;

    fn keep(&self, item: &Item<'_>, name: &str, tree: &Tree<'_>, batch: &mut Messages) {
        batch.keep(item, name, tree);
    }
}

/// The messages of a batch. Its length is measured in memory, so batches with large compressed
/// parts stay small.
#[derive(Default)]
pub(crate) struct Messages {
    list: Vec<StoredMessage>,
    /// Later messages, whose values are still being collected.
    values: Vec<Stored>,
    size: usize,
    /// The number of messages to expect.
    expected: usize,
    /// Room for a JSON line.
    line: String,
}

impl Messages {
    fn keep(&mut self, item: &Item<'_>, name: &str, tree: &Tree<'_>) {
        /// Messages share the memory for their values until it has this many bytes. A message that
        /// outlives the others keeps the memory of all.
        const SHARED_BYTES: usize = 16 << 10;
        /// The usual number of messages that share the memory.
        const SHARED_MESSAGES: usize = 32;
        if self.values.last().is_none_or(|values| values.size() >= SHARED_BYTES) {
            self.values.push(Stored::expecting(self.expected.min(SHARED_MESSAGES)));
        }
        if let Some(values) = self.values.last_mut() {
            let head = MessageHead::of(item, name, tree, values, &mut self.line);
            self.size += head.size();
            values.add_head(head);
        }
    }

    fn push(&mut self, message: StoredMessage) {
        self.size += message.head().size();
        self.list.push(message);
    }
}

impl Sink for Messages {
    type Source = vec::IntoIter<StoredMessage>;

    fn len(&self) -> usize {
        self.size
    }

    fn expect(&mut self, items: usize) {
        self.expected = items;
    }

    fn truncate(&mut self, length: usize) {
        while self.size > length {
            let values = self.values.last_mut();
            let size = match values.map(Stored::remove_head) {
                Some(Some(head)) => head.size(),
                Some(None) => {
                    self.values.pop();
                    0
                }
                None => match self.list.pop() {
                    Some(message) => message.head().size(),
                    None => return,
                },
            };
            self.size -= size;
        }
    }

    fn into_source(self) -> Self::Source {
        let Self { mut list, values, .. } = self;
        list.reserve(values.iter().map(|values| values.heads().len()).sum());
        list.extend(values.into_iter().flat_map(StoredMessage::all_of));
        list.into_iter()
    }

    fn append(&mut self, source: &mut Self::Source, count: usize) {
        let end = self.size.saturating_add(count);
        while self.size < end
            && let Some(message) = source.next()
        {
            self.push(message);
        }
    }
}

/// Open a capture. Iterate over the result to read its messages.
///
/// source: the path of a pcap or pcapng file, plain or gzipped; the bytes of such a file; or an
///     object whose `read` method returns bytes, such as tcpdump's standard output.
/// keys: key files. Without them, keys stored in the capture are used.
/// data: definitions: files and folders with KI message XML and type lists, TERA definitions and
///     maps, SDL files, MxO tables.
/// filter: only messages that match, in the filter language of `worldwire dissect --filter`.
/// family: read every conversation as this family.
/// stream: only messages of this conversation, counted from 0.
/// notes: also return notes: new conversations, gaps, and problems such as missing keys.
/// follow: at the end of a file that is still being written, wait for more.
#[pyfunction]
#[pyo3(signature = (
    source,
    *,
    keys = None,
    data = None,
    filter = None,
    family = None,
    stream = None,
    notes = false,
    follow = false,
))]
#[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
pub(crate) fn open(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    keys: Option<&Bound<'_, PyAny>>,
    data: Option<&Bound<'_, PyAny>>,
    filter: Option<&str>,
    family: Option<&str>,
    stream: Option<u64>,
    notes: bool,
    follow: bool,
) -> PyResult<Capture> {
    let family = family.map(|name| family_of(py, name)).transpose()?;
    let mut knowledge = Knowledge::read(py, keys, data)?;
    let filter = filter.map(|text| read_filter(py, text, &knowledge)).transpose()?;
    let (source, inside) = open_source(py, source, follow, keys.is_none())?;
    if let Some(keys) = inside {
        knowledge = Knowledge::new(keys, knowledge.definitions.clone());
    }
    let options = Options {
        keys: knowledge.keys.clone(),
        definitions: knowledge.definitions.clone(),
        family,
        limits: Limits::DEFAULT,
        ..Options::default()
    };
    let plan = Plan { source, options, selection: Selection { filter, stream, notes } };
    let state = Mutex::new(State::Opened(Box::new(plan)));
    Ok(Capture { state, knowledge, warnings: Arc::default(), process: std::process::id() })
}

/// Opens `source`, and looks for keys in it if `wants_keys`.
fn open_source(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    follow: bool,
    wants_keys: bool,
) -> PyResult<(Source, Option<Keys>)> {
    if let Ok(bytes) = source.cast::<PyBytes>() {
        return Ok((Source::bytes(bytes.as_bytes().to_vec()), None));
    }
    if let Ok(bytes) = source.cast::<PyByteArray>() {
        return Ok((Source::bytes(bytes.to_vec()), None));
    }
    if let Ok(path) = source.extract::<PathBuf>() {
        let opened = py.detach(|| Source::file(&path, follow));
        let opened = opened.map_err(|error| of_file(&path, &error))?;
        let keys = (wants_keys && path.is_file()).then(|| py.detach(|| keys_inside(&path)));
        return Ok((opened, keys.transpose().map_err(|fault| fault.raise(py))?));
    }
    let opened = Source::object(source).map_err(|_| {
        PyTypeError::new_err("a capture must be a path, bytes, or a file opened in binary mode")
    })?;
    Ok((opened, None))
}

fn family_of(py: Python<'_>, name: &str) -> PyResult<&'static dyn Family> {
    let found = Families::standard().named(name);
    found.map_err(|error| Fault::of(Class::Capture, &error).raise(py))
}

/// Parses and checks columns. Names that may be wrong become Python warnings.
fn read_columns(
    py: Python<'_>,
    columns: &[String],
    knowledge: &Knowledge,
) -> PyResult<Vec<Column>> {
    let resolver = Resolver::new(&knowledge.definitions);
    let read = |text: &String| {
        let column =
            Column::parse(text, &resolver).map_err(|error| Fault::from(error).raise(py))?;
        check(py, &column.filter(), &resolver)?;
        Ok(column)
    };
    columns.iter().map(read).collect()
}

/// Parses and checks a filter. Names that may be wrong become Python warnings.
fn read_filter(py: Python<'_>, text: &str, knowledge: &Knowledge) -> PyResult<Filter> {
    let raise = |fault: Fault| fault.raise(py);
    let filter = Filter::parse(text).map_err(|error| raise(error.into()))?;
    let resolver = Resolver::new(&knowledge.definitions);
    let filter = filter.resolve(&resolver);
    check(py, &filter, &resolver)?;
    Ok(filter)
}

fn check(py: Python<'_>, filter: &Filter, resolver: &Resolver<'_>) -> PyResult<()> {
    let mut remarks = Vec::new();
    let checked = filter.check(resolver, &mut |remark| remarks.push(format!("filter: {remark}")));
    checked.map_err(|problem| Fault::new(Class::Filter, format!("filter: {problem}")).raise(py))?;
    remarks.iter().try_for_each(|remark| warn(py, remark))
}
