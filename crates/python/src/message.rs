//! Messages as Python objects.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Error, Limits, Side, Tree};
use worldwire_dissect::{
    CodecOptions, Definitions, Ends, Item, Line, LineEncoder, Note, NoteKind, Stamp,
};

use crate::error::{Class, Fault};
use crate::knowledge::Knowledge;
use crate::missing::{self, Lack, Warnings};
use crate::names::Name;
use crate::record::{Record, listed, places};
use crate::stored::Stored;
use crate::values::json_of;

/// A message that outlives the capture it was read from.
pub(crate) struct StoredMessage {
    /// The values of this message and of the others in its batch.
    values: Arc<Stored>,
    /// The index of its head.
    head: usize,
}

/// A message without its values.
pub(crate) struct MessageHead {
    name: MessageName,
    family: &'static str,
    from: Side,
    stamp: Stamp,
    /// Sender and recipient.
    ends: Option<[SocketAddr; 2]>,
    /// Its bytes in the sender's stream.
    position: Range<u64>,
    /// Its bytes with and without the frame, among the values.
    bytes: Range<u32>,
    body: Range<u32>,
    /// Its JSON line after the value of `fields`, among the values.
    line_end: Range<u32>,
    /// The node of its fields.
    fields: u32,
    /// The size of its values in memory.
    values_size: usize,
    error: Option<Box<str>>,
    lack: Option<Lack>,
    is_note: bool,
    encoder: Option<Arc<dyn LineEncoder>>,
}

/// The name of a message. Names that are only numbers are not cached for the whole process.
enum MessageName {
    Kept(&'static Name),
    Own(Box<str>),
}

impl MessageHead {
    /// Keeps an item, given its name and tree. Its values are added to `values`. `line` is a buffer
    /// for text, which is cheaper than a new one for every message.
    pub(crate) fn of(
        item: &Item<'_>,
        name: &str,
        tree: &Tree<'_>,
        values: &mut Stored,
        line: &mut String,
    ) -> Self {
        let (all, body, size) = (item.bytes(), item.body(), values.size());
        let bytes = values.keep(all);
        // The bytes nearly always contain the body.
        let inside = (body.as_ptr() as usize).saturating_sub(all.as_ptr() as usize);
        let body_place = match all.get(inside..).and_then(|rest| rest.get(..body.len())) {
            Some(same) if core::ptr::eq(same, body) => {
                let start = bytes.start.saturating_add(u32::try_from(inside).unwrap_or(u32::MAX));
                start..start.saturating_add(u32::try_from(body.len()).unwrap_or(u32::MAX))
            }
            _ => values.keep(body),
        };
        line.clear();
        // Unlike the rest of the line, this part needs the item.
        item.push_line_end(tree, line);
        let line_end = values.keep(line.as_bytes());
        let fields = match item.note() {
            Some(note) => values.add_text("what", &note.text),
            None => values.add(tree, tree.find("fields"), body, body_place.start),
        };
        // Steps of connection setup are encoded with the definitions alone.
        let message = item.message().filter(|message| message.is_message());
        let missing = values.take_error();
        let error = tree.error().or(missing.as_ref()).map(|error| error.to_string().into());
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
            bytes,
            body: body_place,
            line_end,
            fields,
            values_size: values.size() - size,
            error,
            lack: Lack::of(item),
            is_note: item.note().is_some(),
            encoder: message.and_then(|message| message.line_encoder()),
        }
    }

    /// Notes what the definitions lack for this message.
    pub(crate) fn warn(&self, warnings: &Warnings, definitions: &Definitions) {
        warnings.note(self.lack.as_ref(), self.family, self.name(), definitions);
    }

    /// The approximate size of the message in memory; never 0.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + size_of::<StoredMessage>() + self.values_size
    }

    fn name(&self) -> &str {
        match &self.name {
            MessageName::Kept(name) => name.text(),
            MessageName::Own(name) => name,
        }
    }

    /// The start of its JSON line, up to the value of `fields`.
    fn push_line_start(&self, line: &mut String) {
        let ends = self.ends.map(|[from, to]| match self.from {
            Side::Client => Ends::new(from, to),
            Side::Server => Ends::new(to, from),
        });
        // The start of a line is the same whatever the item contains.
        let body = Note::new(NoteKind::Opened, String::new()).into();
        let mut item = Item::new(self.stamp, self.family, self.from, self.position.clone(), body);
        if let Some(ends) = &ends {
            item = item.with_ends(ends);
        }
        item.push_line_start(self.name(), line);
    }
}

impl StoredMessage {
    /// The messages of these values.
    pub(crate) fn all_of(mut values: Stored) -> impl Iterator<Item = Self> {
        values.trim();
        let values = Arc::new(values);
        (0..values.heads().len()).map(move |head| Self { values: Arc::clone(&values), head })
    }

    pub(crate) fn head(&self) -> &MessageHead {
        // Indices are only made from existing heads.
        &self.values.heads()[self.head]
    }

    fn data(&self, place: &Range<u32>) -> &[u8] {
        self.values.data(place.clone())
    }

    /// The JSON line, as `worldwire dissect --json` writes it.
    fn line(&self, style: Style) -> String {
        let mut line = String::with_capacity(512);
        self.head().push_line_start(&mut line);
        self.values.push_json(self.head().fields, style, &mut line);
        line.push_str(str::from_utf8(self.data(&self.head().line_end)).unwrap_or_default());
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

    /// The field at a path, as a filter reads it.
    fn node(&self, path: &str) -> PyResult<u32> {
        let (head, values) = (self.stored.head(), &self.stored.values);
        let path = path.strip_prefix("fields.").unwrap_or(path);
        if let Some(found) = values.find(head.fields, path).filter(|_| !path.is_empty()) {
            return Ok(found);
        }
        let found = places(values, head.fields, path);
        let name = head.name();
        match &found[..] {
            [] => Err(PyKeyError::new_err(format!("{name} has no field `{path}`"))),
            [found] => Ok(*found),
            _ => {
                let full = listed(values, head.fields, &found);
                let problem = format!("in {name}, `{path}` can mean {full}; write the full path");
                Err(PyKeyError::new_err(problem))
            }
        }
    }

    fn changed(&self, changes: &Bound<'_, PyMapping>) -> Result<Json, Fault> {
        /// The maximum number of places to which one path can lead.
        const MAX_PLACES: usize = 1 << 20;
        let failed = |error: &Error| Fault::of(Class::Encode, error);
        let mut line = parse(&self.stored.line(Style::default()))
            .map_err(|error| Fault::new(Class::Encode, error))?;
        let changes = json_of(changes.as_any()).map_err(|error| failed(&error))?;
        let Some(fields) = line.get_mut("fields") else { return Ok(line) };
        for (path, value) in changes.as_object().into_iter().flat_map(|changes| changes.iter()) {
            let field = self.knowledge.path(self.stored.head().name(), path)?;
            let places = field.set(fields, value, MAX_PLACES);
            let places = places.map_err(|error| Fault::new(Class::Encode, error).at_path(path))?;
            if places == 0 {
                let message = format!("{} has no field `{path}`", self.stored.head().name());
                return Err(Fault::new(Class::Encode, message).at_path(path));
            }
        }
        Ok(line)
    }

    fn encoded(&self, changes: &Bound<'_, PyMapping>) -> Result<Vec<u8>, Fault> {
        let failed = |error: Error| Fault::of(Class::Encode, &error);
        let name = self.stored.head().name();
        if self.stored.head().is_note {
            let message = format!("`{name}` is a note, which has no bytes");
            return Err(Fault::new(Class::Encode, message));
        }
        let json = self.changed(changes)?;
        let limits = Limits::DEFAULT;
        let Knowledge { keys, definitions, .. } = &*self.knowledge;
        let options =
            CodecOptions { from: self.stored.head().from, keys, definitions, limits: &limits };
        let line = Line::parse(&json).map_err(failed)?;
        let encoded = match (line, &self.stored.head().encoder) {
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
        match &self.stored.head().name {
            MessageName::Kept(name) => name.object(py).clone(),
            MessageName::Own(name) => PyString::new(py, name),
        }
    }

    /// The family: `ki`, `mxo`, `tera` or `uru`.
    #[getter]
    fn family(&self) -> &'static str {
        self.stored.head().family
    }

    /// The sender: `client` or `server`.
    #[getter]
    fn side(&self) -> &'static str {
        self.stored.head().from.name()
    }

    /// The conversation, counted from 0.
    #[getter]
    fn stream(&self) -> u64 {
        self.stored.head().stamp.stream
    }

    /// The packet that completed the message, counted from 1.
    #[getter]
    fn packet(&self) -> Option<u64> {
        self.stored.head().stamp.packet
    }

    /// When the message was complete, in seconds since 1970-01-01 00:00 UTC. `time_ns` is exact.
    #[getter]
    fn time(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "documented")]
        let nanos = self.stored.head().stamp.time.0 as f64;
        nanos / 1e9
    }

    /// When the message was complete, in nanoseconds since 1970-01-01 00:00 UTC.
    #[getter]
    fn time_ns(&self) -> i64 {
        self.stored.head().stamp.time.0
    }

    /// Seconds since the first packet of the capture.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.stored.head().stamp.since.as_secs_f64()
    }

    /// The sender's address; `None` if the source has no addresses.
    #[getter]
    fn src(&self) -> Option<String> {
        self.stored.head().ends.map(|[from, _]| from.ip().to_string())
    }

    /// The sender's port.
    #[getter]
    fn srcport(&self) -> Option<u16> {
        self.stored.head().ends.map(|[from, _]| from.port())
    }

    /// The recipient's address.
    #[getter]
    fn dst(&self) -> Option<String> {
        self.stored.head().ends.map(|[_, to]| to.ip().to_string())
    }

    /// The recipient's port.
    #[getter]
    fn dstport(&self) -> Option<u16> {
        self.stored.head().ends.map(|[_, to]| to.port())
    }

    /// The fields. For a note, `fields.what` is its text.
    #[getter]
    fn fields(&self) -> Record {
        Record::new(Arc::clone(&self.stored.values), self.stored.head().fields)
    }

    /// The decrypted bytes, with the frame around them.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.stored.data(&self.stored.head().bytes))
    }

    /// The decrypted bytes without the frame. `encode` returns these, and `range` counts from them.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.stored.data(&self.stored.head().body))
    }

    /// The start and end (exclusive) in the sender's stream, in bytes.
    #[getter]
    fn position(&self) -> (u64, u64) {
        (self.stored.head().position.start, self.stored.head().position.end)
    }

    /// Why the message could not be decoded completely; otherwise `None`.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.stored.head().error.as_deref()
    }

    /// If the message is shown as bytes, wholly or in part: what is missing, and what to pass as
    /// `data`. Otherwise `None`.
    #[getter]
    fn hint(&self) -> Option<String> {
        let head = self.stored.head();
        missing::hint(head.lack.as_ref(), head.family, head.name(), &self.knowledge.definitions)
    }

    /// Whether this is a note about the conversation rather than a message.
    #[getter]
    fn is_note(&self) -> bool {
        self.stored.head().is_note
    }

    /// The line that `worldwire dissect --json` writes. With `safe`, integers of more than 53 bits
    /// are strings.
    #[pyo3(signature = (*, safe = false))]
    fn json(&self, safe: bool) -> String {
        self.stored.line(Style { safe })
    }

    /// The start and end (exclusive) of a field in `body`. For a field inside a compressed part,
    /// the range is that of the whole part.
    fn range(&self, path: &str) -> PyResult<(u32, u32)> {
        let bytes = self.stored.values.bytes(self.node(path)?);
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
        let (head, values) = (self.stored.head(), &self.stored.values);
        let names = values.children(head.fields).map(|child| values.name(child));
        let names: Vec<&str> = names.collect();
        let (name, from, stream) = (head.name(), head.from.name(), head.stamp.stream);
        format!("<{name} from {from}, stream {stream}: {}>", names.join(", "))
    }
}
