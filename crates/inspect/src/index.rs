//! The index: one row per message or note, in capture order.

use std::collections::HashMap;
use std::io;

use serde::Serialize;
use worldwire_core::Side;
use worldwire_dissect::NoteKind;

use crate::conversations::Conversations;
use crate::texts::Texts;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowKind {
    Message,
    /// A step of connection setup.
    Setup,
    Opened,
    Gap,
    Resync,
    Warning,
    Problem,
}

impl From<NoteKind> for RowKind {
    fn from(kind: NoteKind) -> Self {
        match kind {
            NoteKind::Opened => Self::Opened,
            NoteKind::Gap => Self::Gap,
            NoteKind::Resync => Self::Resync,
            NoteKind::Warning => Self::Warning,
            NoteKind::Problem => Self::Problem,
        }
    }
}

/// A message or note as the index keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    /// The number of its packet; 0 if unknown or over 2^32.
    pub(crate) packet: u32,
    /// The message's conversation.
    pub(crate) stream: u32,
    /// The number of earlier rows of the same conversation.
    pub(crate) ordinal: u32,
    /// The length of the message in bytes.
    pub(crate) length: u32,
    /// Where its text ends, counted from the start of the texts of its chunk.
    text_end: u32,
    /// The index of its name.
    pub(crate) name: u16,
    pub(crate) kind: RowKind,
    marks: u8,
}

const FROM_SERVER: u8 = 1;
const IS_PROBLEM: u8 = 2;

impl Row {
    pub(crate) fn from(&self) -> Side {
        if self.marks & FROM_SERVER == 0 { Side::Client } else { Side::Server }
    }

    /// Whether it counts as a problem, such as a message that cannot be decoded completely.
    pub(crate) fn is_problem(&self) -> bool {
        self.marks & IS_PROBLEM != 0
    }
}

/// A row that is not part of the index yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRow {
    pub(crate) time: i64,
    /// Nanoseconds since the first packet.
    pub(crate) since: i64,
    pub(crate) packet: u64,
    pub(crate) stream: u64,
    pub(crate) from: Side,
    pub(crate) family: &'static str,
    pub(crate) kind: RowKind,
    pub(crate) is_problem: bool,
    pub(crate) length: usize,
}

/// The name of messages or notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowName {
    pub(crate) family: &'static str,
    /// The dotted name.
    pub(crate) name: String,
}

/// Rows whose text positions are counted from the same start.
#[derive(Debug)]
struct Chunk {
    rows: Vec<Row>,
    text_start: u64,
}

/// All rows so far.
#[derive(Debug)]
pub(crate) struct Index {
    chunks: Vec<Chunk>,
    texts: Texts,
    names: Vec<RowName>,
    /// The numbers of names, by text. Families rarely share a name.
    name_numbers: HashMap<String, Vec<u16>>,
    /// The number of rows of each conversation.
    ordinals: Vec<u32>,
    pub(crate) conversations: Conversations,
    /// The times of the first and last row.
    span: Option<(i64, i64)>,
    pub(crate) problems: u64,
    pub(crate) warnings: u64,
    pub(crate) gaps: u64,
    /// Whether the capture was read to its end.
    pub(crate) is_complete: bool,
    /// Why part of the capture is missing from the index.
    pub(crate) fault: Option<String>,
}

/// Rows of one chunk: half a megabyte.
const CHUNK: usize = 1 << 14;
/// The maximum number of rows. Together, they take two gigabytes.
pub(crate) const MAX_ROWS: usize = 1 << 26;
/// The maximum number of different names. Rows with further names share the last one.
const MAX_NAMES: usize = 1 << 14;

/// Why a row was not added.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// The index has the maximum number of rows.
    Rows,
    /// The temporary file cannot be written.
    Texts(io::Error),
}

impl std::fmt::Display for IndexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows => write!(
                f,
                "only the first {MAX_ROWS} messages are shown (limit: rows); use `worldwire \
                 dissect` with -o NAME.pcapng and a filter to split the capture"
            ),
            Self::Texts(error) => {
                write!(f, "the index cannot be stored in the temporary directory: {error}")
            }
        }
    }
}

impl Index {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            chunks: Vec::new(),
            texts: Texts::new()?,
            names: Vec::new(),
            name_numbers: HashMap::new(),
            ordinals: Vec::new(),
            conversations: Conversations::default(),
            span: None,
            problems: 0,
            warnings: 0,
            gaps: 0,
            is_complete: false,
            fault: None,
        })
    }

    /// Adds a row. `text` is its most informative values, or the text of a note.
    pub(crate) fn push(&mut self, new: &NewRow, name: &str, text: &str) -> Result<(), IndexError> {
        if self.len() >= MAX_ROWS {
            return Err(IndexError::Rows);
        }
        let name = self.name_number(new.family, name);
        let stream = usize::try_from(new.stream).unwrap_or(usize::MAX).min(MAX_ROWS);
        if self.ordinals.len() <= stream {
            self.ordinals.resize(stream + 1, 0);
        }
        let ordinal = self.ordinals.get(stream).copied().unwrap_or(0);
        if let Some(count) = self.ordinals.get_mut(stream) {
            *count += 1;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.rows.len() >= CHUNK) {
            let text_start = self.texts.end();
            self.chunks.push(Chunk { rows: Vec::with_capacity(CHUNK), text_start });
        }
        self.texts.push(text).map_err(IndexError::Texts)?;
        let text_end = self.texts.end();
        let Some(chunk) = self.chunks.last_mut() else { return Ok(()) };
        let marks = if new.from == Side::Server { FROM_SERVER } else { 0 }
            | if new.is_problem { IS_PROBLEM } else { 0 };
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        chunk.rows.push(Row {
            time: new.time,
            packet: u32::try_from(new.packet).unwrap_or(0),
            stream: small(stream as u64),
            ordinal,
            length: small(new.length as u64),
            text_end: small(text_end - chunk.text_start),
            name,
            kind: new.kind,
            marks,
        });
        let begin = new.time.saturating_sub(new.since);
        let (first, last) = self.span.unwrap_or((begin, new.time));
        self.span = Some((first.min(begin), last.max(new.time)));
        self.problems += u64::from(new.is_problem);
        self.warnings += u64::from(new.kind == RowKind::Warning);
        self.gaps += u64::from(new.kind == RowKind::Gap);
        Ok(())
    }

    fn name_number(&mut self, family: &'static str, name: &str) -> u16 {
        let numbers = self.name_numbers.get(name).map_or(&[][..], Vec::as_slice);
        let is_own = |number: &&u16| {
            self.names.get(usize::from(**number)).is_some_and(|known| known.family == family)
        };
        if let Some(number) = numbers.iter().find(is_own) {
            return *number;
        }
        if self.names.len() >= MAX_NAMES {
            return u16::try_from(MAX_NAMES - 1).unwrap_or(0);
        }
        let number = u16::try_from(self.names.len()).unwrap_or(0);
        self.names.push(RowName { family, name: name.to_owned() });
        self.name_numbers.entry(name.to_owned()).or_default().push(number);
        number
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, others)) => others.len() * CHUNK + last.rows.len(),
            None => 0,
        }
    }

    /// A row.
    pub(crate) fn row(&self, number: usize) -> Option<&Row> {
        self.chunks.get(number / CHUNK)?.rows.get(number % CHUNK)
    }

    /// All rows from this one, in order.
    pub(crate) fn rows_from(&self, number: usize) -> impl Iterator<Item = &Row> {
        let chunks = self.chunks.get(number / CHUNK..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| &chunk.rows).skip(number % CHUNK)
    }

    /// The text of a row.
    pub(crate) fn text(&self, number: usize) -> String {
        let Some(chunk) = self.chunks.get(number / CHUNK) else { return String::new() };
        let Some(row) = chunk.rows.get(number % CHUNK) else { return String::new() };
        let before = (number % CHUNK).checked_sub(1).and_then(|before| chunk.rows.get(before));
        let start = chunk.text_start + before.map_or(0, |row| u64::from(row.text_end));
        self.texts.read(start, chunk.text_start + u64::from(row.text_end))
    }

    /// The number of rows of a conversation so far. Valid until the index is complete.
    pub(crate) fn rows_of(&self, stream: u64) -> u32 {
        let stream = usize::try_from(stream).unwrap_or(usize::MAX);
        self.ordinals.get(stream).copied().unwrap_or(0)
    }

    /// All names so far, by number.
    pub(crate) fn names(&self) -> &[RowName] {
        &self.names
    }

    /// The name of a row.
    pub(crate) fn name(&self, row: &Row) -> &str {
        self.names.get(usize::from(row.name)).map_or("", |name| &name.name)
    }

    /// The family of a row.
    pub(crate) fn family(&self, row: &Row) -> &'static str {
        self.names.get(usize::from(row.name)).map_or("", |name| name.family)
    }

    /// Corrects row numbers, each given with the packet and the name that its row should have. If
    /// the row has a different packet or name, its number is replaced by a matching row's number,
    /// if there is one.
    pub(crate) fn locate<'n>(&self, rows: impl Iterator<Item = (&'n mut u32, u64, &'n str)>) {
        let is_same = |row: &Row, packet: u64, name: &str| {
            u64::from(row.packet) == packet && self.name(row) == name
        };
        let mut wrong: HashMap<(u64, &str), Vec<&mut u32>> = HashMap::new();
        for (number, packet, name) in rows {
            let row = self.row(*number as usize);
            if !row.is_some_and(|row| is_same(row, packet, name)) {
                wrong.entry((packet, name)).or_default().push(number);
            }
        }
        if wrong.is_empty() {
            return;
        }
        for (number, row) in (0..).zip(self.rows_from(0)) {
            let key = (u64::from(row.packet), self.name(row));
            for found in wrong.remove(&key).into_iter().flatten() {
                *found = number;
            }
        }
    }

    /// The time of the first packet, and the latest time of all rows and of all conversations'
    /// packets: a conversation can have packets but no rows.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        let of_rows = self.span.into_iter();
        let all = of_rows.chain(self.conversations.span());
        all.reduce(|(first, last), (begin, end)| (first.min(begin), last.max(end)))
    }

    /// Stops indexing and records what is missing.
    pub(crate) fn complete(&mut self, fault: Option<String>) {
        self.is_complete = true;
        self.fault = fault;
        // These are needed only for adding rows.
        self.ordinals = Vec::new();
        self.name_numbers = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_row(number: usize) -> NewRow {
        NewRow {
            time: i64::try_from(number).unwrap(),
            since: 0,
            packet: number as u64 + 1,
            stream: number as u64 % 3,
            from: if number.is_multiple_of(2) { Side::Client } else { Side::Server },
            family: "uru",
            kind: RowKind::Message,
            is_problem: number.is_multiple_of(10),
            length: number,
        }
    }

    #[test]
    fn rows_take_32_bytes_and_are_found_by_number() {
        assert_eq!(size_of::<Row>(), 32);
        let mut index = Index::new().unwrap();
        for number in 0..40_000 {
            let name = format!("auth.Name{}", number % 7);
            index.push(&new_row(number), &name, &format!("value={number}")).unwrap();
        }
        assert_eq!((index.len(), index.names().len()), (40_000, 7));
        assert_eq!((index.problems, index.span()), (4_000, Some((0, 39_999))));
        for number in [0, 1, 16_383, 16_384, 39_999] {
            let row = index.row(number).unwrap();
            assert_eq!(row.ordinal as usize, number / 3);
            assert_eq!(row.stream as usize, number % 3);
            assert_eq!(row.from() == Side::Server, number % 2 == 1);
            assert_eq!(index.name(row), format!("auth.Name{}", number % 7));
            assert_eq!(index.text(number), format!("value={number}"));
            assert_eq!(index.rows_from(number).count(), 40_000 - number);
        }
        assert!(index.row(40_000).is_none());
    }

    #[test]
    fn rows_are_found_again_by_packet_and_name() {
        let mut index = Index::new().unwrap();
        for number in 0..100 {
            index.push(&new_row(number), &format!("auth.Name{}", number % 7), "").unwrap();
        }
        // Row 20 has packet 21 and the name ending with 6.
        let mut rows = [(20, 21, "auth.Name6"), (3, 21, "auth.Name6"), (5, 999, "auth.Name0")];
        index.locate(rows.iter_mut().map(|(row, packet, name)| (row, *packet, *name)));
        assert_eq!(rows.map(|(row, ..)| row), [20, 20, 5]);
    }

    #[test]
    fn names_are_bounded() {
        let mut index = Index::new().unwrap();
        for number in 0..MAX_NAMES + 10 {
            index.push(&new_row(number), &number.to_string(), "").unwrap();
        }
        assert_eq!(index.names().len(), MAX_NAMES);
    }
}
