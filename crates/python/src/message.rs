//! Messages as Python objects.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Error, Limits, Side, Tree};
use worldwire_dissect::{CodecOptions, Item, Line, LineEncoder, Stamp};

use crate::error::{Class, Fault};
use crate::knowledge::Knowledge;
use crate::names::Name;
use crate::record::Record;
use crate::stored::{Stored, TOP};
use crate::values::json_of;

/// A message that outlives the capture it was read from.
pub(crate) struct StoredMessage {
    name: MessageName,
    family: &'static str,
    from: Side,
    stamp: Stamp,
    /// Sender and recipient.
    ends: Option<[SocketAddr; 2]>,
    /// Its bytes in the sender's stream.
    position: Range<u64>,
    /// Its bytes with and without the frame, in the data of `fields`.
    bytes: Range<usize>,
    body: Range<usize>,
    /// Its JSON line before and after the value of `fields`, in the data of `fields`.
    line: [Range<usize>; 2],
    fields: Arc<Stored>,
    error: Option<Box<str>>,
    is_note: bool,
    encoder: Option<Arc<dyn LineEncoder>>,
}

/// The name of a message. Names that are only numbers are not kept for the whole process.
enum MessageName {
    Kept(&'static Name),
    Own(Box<str>),
}

impl StoredMessage {
    /// Keeps an item, given its name and tree. `line` is room for a text, which is cheaper than a
    /// new one for every message.
    pub(crate) fn of(item: &Item<'_>, name: &str, tree: &Tree<'_>, line: &mut String) -> Self {
        let (all, body) = (item.bytes(), item.body());
        line.clear();
        let mut fields_at = 0;
        item.push_line(name, tree, |line| fields_at = line.len(), line);
        // Allocations are a large part of the time that a message takes, so this is one of few.
        // It has room for decoded text.
        let mut data = Vec::with_capacity(all.len() + line.len() + all.len().min(256));
        data.extend_from_slice(all);
        let inside = all.as_ptr_range();
        // The bytes nearly always contain the body.
        let start = match inside.contains(&body.as_ptr()) || body.is_empty() {
            true => (body.as_ptr() as usize).saturating_sub(all.as_ptr() as usize).min(all.len()),
            false => usize::MAX,
        };
        let start = match all.get(start..).and_then(|rest| rest.get(..body.len())) {
            Some(same) if same == body => start,
            _ => {
                data.extend_from_slice(body);
                all.len()
            }
        };
        let line_at = data.len();
        data.extend_from_slice(line.as_bytes());
        let (fields_at, line_end) = (line_at + fields_at, data.len());
        let fields = match item.note() {
            Some(note) => Stored::of_text("what", &note.text, data),
            None => Stored::of(tree, tree.find("fields"), data, body, start),
        };
        // Only definitions encode steps of connection setup.
        let message = item.message().filter(|message| message.is_message());
        let error = tree.error().or_else(|| fields.error()).map(|error| error.to_string().into());
        Self {
            name: match Name::of(name) {
                Some(name) => MessageName::Kept(name),
                None => MessageName::Own(name.into()),
            },
            family: item.family,
            from: item.from,
            stamp: item.stamp,
            ends: item.ends.map(|ends| [ends.of(item.from), ends.of(item.from.other())]),
            position: item.range.clone(),
            bytes: 0..all.len(),
            body: start..start + body.len(),
            line: [line_at..fields_at, fields_at..line_end],
            fields: Arc::new(fields),
            error,
            is_note: item.note().is_some(),
            encoder: message.and_then(|message| message.line_encoder()),
        }
    }

    /// Its approximate size in memory; never 0.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.fields.size()
    }

    fn name(&self) -> &str {
        match &self.name {
            MessageName::Kept(name) => name.text(),
            MessageName::Own(name) => name,
        }
    }

    /// The JSON line, as `worldwire dissect --json` writes it.
    fn line(&self, style: Style) -> String {
        let [before, after] = self.line.clone().map(|range| {
            let text = self.fields.data().get(range).unwrap_or_default();
            str::from_utf8(text).unwrap_or_default()
        });
        let mut line = String::with_capacity(before.len() + after.len() + 256);
        line.push_str(before);
        self.fields.push_json(TOP, style, &mut line);
        line.push_str(after);
        line
    }
}

/// A message or, if the capture was opened with `notes=True`, a note.
#[pyclass(frozen, module = "worldwire")]
pub(crate) struct Message {
    stored: StoredMessage,
    knowledge: Arc<Knowledge>,
}

impl Message {
    pub(crate) fn new(stored: StoredMessage, knowledge: Arc<Knowledge>) -> Self {
        Self { stored, knowledge }
    }

    fn node(&self, path: &str) -> PyResult<u32> {
        let fields = &self.stored.fields;
        let path = path.strip_prefix("fields.").unwrap_or(path);
        let found = fields.find(TOP, path).filter(|_| !path.is_empty());
        found.ok_or_else(|| {
            PyKeyError::new_err(format!("{} has no field `{path}`", self.stored.name()))
        })
    }

    fn changed(&self, changes: &Bound<'_, PyMapping>) -> Result<Json, Fault> {
        /// The maximum number of places that one path can lead to.
        const MAX_PLACES: usize = 1 << 20;
        let failed = |error: &Error| Fault::of(Class::Encode, error);
        let mut line = parse(&self.stored.line(Style::default()))
            .map_err(|error| Fault::new(Class::Encode, error))?;
        let changes = json_of(changes.as_any()).map_err(|error| failed(&error))?;
        let Some(fields) = line.get_mut("fields") else { return Ok(line) };
        for (path, value) in changes.as_object().into_iter().flat_map(|changes| changes.iter()) {
            let field = self.knowledge.path(self.stored.name(), path)?;
            let places = field.set(fields, value, MAX_PLACES);
            let places = places.map_err(|error| Fault::new(Class::Encode, error).at_path(path))?;
            if places == 0 {
                let message = format!("{} has no field `{path}`", self.stored.name());
                return Err(Fault::new(Class::Encode, message).at_path(path));
            }
        }
        Ok(line)
    }

    fn encoded(&self, changes: &Bound<'_, PyMapping>) -> Result<Vec<u8>, Fault> {
        let failed = |error: Error| Fault::of(Class::Encode, &error);
        let name = self.stored.name();
        if self.stored.is_note {
            let message = format!("`{name}` is a note, which has no bytes");
            return Err(Fault::new(Class::Encode, message));
        }
        let json = self.changed(changes)?;
        let limits = Limits::DEFAULT;
        let Knowledge { keys, definitions, .. } = &*self.knowledge;
        let options = CodecOptions { from: self.stored.from, keys, definitions, limits: &limits };
        let line = Line::parse(&json).map_err(failed)?;
        let encoded = match (line, &self.stored.encoder) {
            (Some(line), Some(encoder)) => Some(encoder.encode_line(&line).map_err(failed)?),
            (Some(line), None) => line.encode(&options).map_err(failed)?,
            (None, _) => None,
        };
        encoded.ok_or_else(|| {
            let message = format!("`{name}` is a step of connection setup, which is not encoded");
            Fault::new(Class::Encode, message)
        })
    }
}

#[pymethods]
impl Message {
    /// The dotted name: `auth.AcctLoginRequest`.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match &self.stored.name {
            MessageName::Kept(name) => name.object(py).clone(),
            MessageName::Own(name) => PyString::new(py, name),
        }
    }

    /// The family: `ki`, `mxo`, `tera` or `uru`.
    #[getter]
    fn family(&self) -> &'static str {
        self.stored.family
    }

    /// The sender: `client` or `server`.
    #[getter]
    fn side(&self) -> &'static str {
        self.stored.from.name()
    }

    /// The conversation, counted from 0.
    #[getter]
    fn stream(&self) -> u64 {
        self.stored.stamp.stream
    }

    /// The packet that completed the message, counted from 1.
    #[getter]
    fn packet(&self) -> Option<u64> {
        self.stored.stamp.packet
    }

    /// When the message was complete, in seconds since 1970-01-01 00:00 UTC. `time_ns` is exact.
    #[getter]
    fn time(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "documented")]
        let nanos = self.stored.stamp.time.0 as f64;
        nanos / 1e9
    }

    /// When the message was complete, in nanoseconds since 1970-01-01 00:00 UTC.
    #[getter]
    fn time_ns(&self) -> i64 {
        self.stored.stamp.time.0
    }

    /// The seconds since the first packet of the capture.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.stored.stamp.since.as_secs_f64()
    }

    /// The sender's address; `None` if the source has no addresses.
    #[getter]
    fn src(&self) -> Option<String> {
        self.stored.ends.map(|[from, _]| from.ip().to_string())
    }

    /// The sender's port.
    #[getter]
    fn srcport(&self) -> Option<u16> {
        self.stored.ends.map(|[from, _]| from.port())
    }

    /// The recipient's address.
    #[getter]
    fn dst(&self) -> Option<String> {
        self.stored.ends.map(|[_, to]| to.ip().to_string())
    }

    /// The recipient's port.
    #[getter]
    fn dstport(&self) -> Option<u16> {
        self.stored.ends.map(|[_, to]| to.port())
    }

    /// The fields. For a note, `fields.what` is its text.
    #[getter]
    fn fields(&self) -> Record {
        Record::new(Arc::clone(&self.stored.fields), TOP)
    }

    /// The decrypted bytes, with the frame around them.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = self.stored.fields.data().get(self.stored.bytes.clone());
        PyBytes::new(py, bytes.unwrap_or_default())
    }

    /// The decrypted bytes without the frame: what `encode` returns, and what `range` counts from.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let body = self.stored.fields.data().get(self.stored.body.clone());
        PyBytes::new(py, body.unwrap_or_default())
    }

    /// The first byte in the sender's stream, and the one after the last.
    #[getter]
    fn position(&self) -> (u64, u64) {
        (self.stored.position.start, self.stored.position.end)
    }

    /// Why the message could not be decoded completely; otherwise `None`.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.stored.error.as_deref()
    }

    /// Whether it is a note about the conversation instead of a message.
    #[getter]
    fn is_note(&self) -> bool {
        self.stored.is_note
    }

    /// The line that `worldwire dissect --json` writes. With `safe`, integers of more than 53 bits
    /// are strings.
    #[pyo3(signature = (*, safe = false))]
    fn json(&self, safe: bool) -> String {
        self.stored.line(Style { safe })
    }

    /// The first byte of a field in `body`, and the one after its last. For a field inside a
    /// compressed part, the range is that of the whole part.
    fn range(&self, path: &str) -> PyResult<(u32, u32)> {
        let bytes = self.stored.fields.bytes(self.node(path)?);
        Ok((bytes.start, bytes.end))
    }

    /// The bytes of the message with new values for some fields. Without changes, the result is
    /// `body`, or `bytes` for KI control messages, which are encoded with their frames.
    #[pyo3(signature = (changes = None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        changes: Option<&Bound<'py, PyMapping>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let none = PyDict::new(py);
        let changes = changes.unwrap_or_else(|| none.as_mapping());
        let encoded = self.encoded(changes).map_err(|fault| fault.raise(py))?;
        Ok(PyBytes::new(py, &encoded))
    }

    fn __repr__(&self) -> String {
        let StoredMessage { from, stamp, fields, .. } = &self.stored;
        let names: Vec<&str> = fields.children(TOP).map(|child| fields.name(child)).collect();
        let (name, from, stream) = (self.stored.name(), from.name(), stamp.stream);
        format!("<{name} from {from}, stream {stream}: {}>", names.join(", "))
    }
}
