//! Writes items as text for people, and as JSON lines for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use worldwire_core::json::{Style, string, write_children, write_node};
use worldwire_core::text::{TextStyle, write_nodes_noting, write_tree};
use worldwire_core::value::push_hex;
use worldwire_core::{NodeRef, Tree, Value};

use crate::info::{columns, cut};
use crate::item::{Item, NoteKind, Time};
use crate::message::NumberNames;

/// How to write items.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// A line for each item. `form` selects what is shown besides the name.
    Text {
        /// What to write besides the name.
        form: TextForm,
        /// How to show fields.
        style: TextStyle,
        /// Start the line with the time since the first packet.
        time: bool,
    },
    /// A JSON object per line.
    ///
    /// | key | value |
    /// | --- | --- |
    /// | `time` | seconds since 1970 with nine digits, of the packet that completed the item |
    /// | `packet` | the number of that packet, counted from 1; absent if the source has no packets |
    /// | `stream` | the conversation, counted from 0 |
    /// | `src`, `srcport`, `dst`, `dstport` | sender and recipient; absent if the source has no addresses |
    /// | `family` | `uru`, ... |
    /// | `from` | `client` or `server` |
    /// | `name` | the dotted message name; for notes `opened`, `gap`, `resync`, `warning` or `problem` |
    /// | `fields` | the message's fields; for notes `{"what": "..."}` |
    /// | `range` | start and end (exclusive) in the sender's stream |
    /// | `error` | why the message could not be decoded completely; otherwise absent |
    /// | `payload` | with `error`: the message's bytes, without the frame around them |
    /// | `players` | player names by number, if the capture revealed any that occur in the fields |
    /// | `remarks` | why fields that should hold another format are shown as bytes; otherwise absent |
    Json(Style),
}

/// What the text of an item shows besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// Nothing. Needs no tree.
    Name,
    /// The most informative values, on the same line; see [`Item::push_info`].
    Info {
        /// The maximum number of columns of a line, including what precedes it in the output.
        width: Option<usize>,
    },
    /// All fields, below the line.
    Fields,
}

impl Format {
    /// Whether [`write`](Self::write) needs the items' trees.
    #[must_use]
    pub const fn needs_fields(&self) -> bool {
        !matches!(self, Self::Text { form: TextForm::Name, .. })
    }

    /// Appends one item; `tree` is its tree.
    pub fn write(&self, item: &Item<'_>, name: &str, tree: &Tree<'_>, out: &mut String) {
        match self {
            Self::Text { form, style, time } => {
                write_text(item, name, tree, *form, *style, *time, out);
            }
            Self::Json(style) => write_json(item, name, tree, *style, out),
        }
    }
}

fn write_text(
    item: &Item<'_>,
    name: &str,
    tree: &Tree<'_>,
    form: TextForm,
    style: TextStyle,
    time: bool,
    out: &mut String,
) {
    let since = item.stamp.since;
    let (dim, bold, red, yellow, reset) = if style.colour {
        ("\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m")
    } else {
        ("", "", "", "", "")
    };
    let opened = item.note().filter(|note| note.kind == NoteKind::Opened);
    out.push_str(dim);
    if time {
        right(since.as_secs(), 5, BLANKS, out);
        out.push('.');
        right(since.subsec_micros().into(), 6, ZEROS, out);
    }
    out.push_str("  #");
    left(itoa::Buffer::new().format(item.stamp.stream), 3, out);
    out.push_str(reset);
    out.push(' ');
    left(if opened.is_some() { item.family } else { item.from.name() }, 6, out);
    out.push_str("  ");
    if let Some(note) = opened {
        let _ = writeln!(out, "{dim}{}{reset}", note.text);
        return;
    }
    if let Some(note) = item.note() {
        let colour = if note.kind == NoteKind::Problem { red } else { yellow };
        let _ = writeln!(out, "{colour}! {}: {}{reset}", note.kind.name(), note.text);
        return;
    }
    for text in [bold, name, reset] {
        out.push_str(text);
    }
    if form != TextForm::Fields {
        out.push_str(dim);
        item.push_inside(out);
        item.push_number(out);
        out.push_str(reset);
        if !item.is_whole() {
            let _ = write!(out, "  {red}! cannot be decoded completely{reset}");
        }
        if let TextForm::Info { width } = form {
            push_info(item, name, tree, width, out);
        }
        out.push('\n');
        return;
    }
    out.push('\n');
    let fields = TextStyle { indent: 8, ..style };
    match tree.find("fields") {
        Some(record) if tree.error().is_none() => {
            let names = item.number_names();
            let note = |field: &str, number| {
                let name = names.and_then(|names| names.name(field, number));
                name.map(|name| format!("{name:?}"))
            };
            write_nodes_noting(tree, record.children(), fields, &note, out);
        }
        _ => write_tree(tree, fields, out),
    }
    for remark in tree.remarks() {
        let _ = writeln!(out, "        {yellow}! shown as bytes: {remark}{reset}");
    }
}

/// Appends the most informative values to a line, as far as they fit.
fn push_info(item: &Item<'_>, name: &str, tree: &Tree<'_>, width: Option<usize>, out: &mut String) {
    /// In fewer columns than this, only part of a name would fit.
    const LEAST: usize = 12;
    let end = out.len();
    let room = width.map(|width| {
        let start = out.rfind('\n').map_or(0, |at| at + 1);
        width.saturating_sub(columns(out.get(start..).unwrap_or_default()) + 2)
    });
    if room.is_some_and(|room| room < LEAST) {
        return;
    }
    out.push_str("  ");
    let start = out.len();
    item.push_info(name, tree, out);
    if out.len() == start {
        out.truncate(end);
    } else if let Some(room) = room {
        cut(out, start, room);
    }
}

impl Item<'_> {
    /// Appends the first part of the item's line of JSON, up to the value of `fields`. Together with
    /// that value and [the rest](Self::push_line_end), it is what [`Format::Json`] writes. It does
    /// not depend on [`body`](Self::body), except for the `name` given.
    pub fn push_line_start(&self, name: &str, out: &mut String) {
        out.push_str("{\"time\":");
        time(self.stamp.time, out);
        if let Some(packet) = self.stamp.packet {
            out.push_str(",\"packet\":");
            number(packet, out);
        }
        out.push_str(",\"stream\":");
        number(self.stamp.stream, out);
        if let Some(ends) = self.ends {
            out.push_str(ends.members(self.from));
        }
        for text in [",\"family\":\"", self.family, "\",\"from\":\"", self.from.name()] {
            out.push_str(text);
        }
        out.push_str("\",\"name\":");
        string(name, out);
        out.push_str(",\"fields\":");
    }

    /// Appends what follows the value of `fields` in the item's line of JSON, without a line break.
    /// `tree` is the item's tree.
    pub fn push_line_end(&self, tree: &Tree<'_>, out: &mut String) {
        if let Some(message) = self.message() {
            message.push_members(out);
        }
        out.push_str(",\"range\":[");
        number(self.range.start, out);
        out.push(',');
        number(self.range.end, out);
        out.push(']');
        if let Some(error) = tree.error() {
            out.push_str(",\"error\":");
            string(&error.to_string(), out);
            if self.message().is_some_and(|message| message.is_message()) {
                out.push_str(",\"payload\":{\"$hex\":\"");
                push_hex(out, self.body());
                out.push_str("\"}");
            }
        }
        if let Some(names) = self.number_names() {
            write_names(names.key(), &names_in(self, tree), out);
        }
        if !tree.remarks().is_empty() {
            out.push_str(",\"remarks\":[");
            for (index, remark) in tree.remarks().iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(&remark.to_string(), out);
            }
            out.push(']');
        }
        out.push('}');
    }
}

fn write_json(item: &Item<'_>, name: &str, tree: &Tree<'_>, style: Style, out: &mut String) {
    item.push_line_start(name, out);
    match (item.note(), tree.find("fields")) {
        (Some(note), _) => {
            out.push_str("{\"what\":");
            string(&note.text, out);
            out.push('}');
        }
        (None, Some(fields)) => write_node(fields, style, out),
        (None, None) => write_children(Value::Record, tree.roots(), style, out),
    }
    item.push_line_end(tree, out);
    out.push('\n');
}

/// The names of the numbers in a message.
pub(crate) fn names_in<'i>(item: &'i Item<'_>, tree: &Tree<'_>) -> BTreeMap<u64, &'i str> {
    let mut found = BTreeMap::new();
    if let Some(names) = item.number_names() {
        let roots = tree.roots();
        roots.for_each(|node| collect_names(node, node.name(), names, &mut found));
    }
    found
}

/// Collects the names of numbers in a node and its descendants.
fn collect_names<'a>(
    node: NodeRef<'_, '_>,
    field: &str,
    names: &'a dyn NumberNames,
    found: &mut BTreeMap<u64, &'a str>,
) {
    let number = match node.value() {
        Value::Unsigned(number) => Some(number),
        Value::Signed(number) => u64::try_from(number).ok(),
        _ => None,
    };
    if let Some(number) = number
        && let Some(name) = names.name(field, number)
    {
        found.insert(number, name);
    }
    let is_list = matches!(node.value(), Value::List);
    for child in node.children() {
        let field = if is_list { field } else { child.name() };
        collect_names(child, field, names, found);
    }
}

fn write_names(key: &str, found: &BTreeMap<u64, &str>, out: &mut String) {
    if found.is_empty() {
        return;
    }
    out.push_str(",\"");
    out.push_str(key);
    out.push_str("\":{");
    for (index, (of, name)) in found.iter().enumerate() {
        out.push_str(if index > 0 { ",\"" } else { "\"" });
        number(*of, out);
        out.push_str("\":");
        string(name, out);
    }
    out.push('}');
}

// Every line begins with numbers. Formatting them with the standard library would take as long as
// the rest of a brief line.

/// Formats like [`Time`]'s `Display`.
fn time(time: Time, out: &mut String) {
    const SECOND: u64 = 1_000_000_000;
    if time.0 < 0 {
        out.push('-');
    }
    let nanos = time.0.unsigned_abs();
    number(nanos / SECOND, out);
    out.push('.');
    right(nanos % SECOND, 9, ZEROS, out);
}

fn number(number: u64, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(number));
}

fn right(number: u64, width: usize, fill: &str, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number);
    pad(width.saturating_sub(digits.len()), fill, out);
    out.push_str(digits);
}

fn left(text: &str, width: usize, out: &mut String) {
    out.push_str(text);
    pad(width.saturating_sub(text.len()), BLANKS, out);
}

/// Appends spaces or leading zeros.
fn pad(mut count: usize, fill: &str, out: &mut String) {
    while count > 0 {
        let part = fill.get(..count).unwrap_or(fill);
        out.push_str(part);
        count -= part.len();
    }
}

const BLANKS: &str = "        ";
const ZEROS: &str = "00000000";
