//! What was dissected, as text for people and as JSON lines for programs.

use std::fmt::Write as _;

use worldwire_core::json::{Style, string, write_children, write_node};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Tree, Value};

use crate::item::{Item, NoteKind};

/// How items are written.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// A line for every item and, unless brief, its fields below it.
    Text {
        /// Only the line.
        brief: bool,
        /// How fields are shown.
        style: TextStyle,
    },
    /// A JSON object a line.
    ///
    /// | key | value |
    /// | --- | --- |
    /// | `time` | seconds since 1970 with nine digits, of the packet that completed the item |
    /// | `packet` | that packet's number, counted from 1; missing where there are no packets |
    /// | `stream` | the conversation, counted from 0 |
    /// | `family` | `uru`, ... |
    /// | `from` | `client` or `server` |
    /// | `name` | the dotted message name; `opened`, `gap`, `resync`, `warning` or `problem` for what is no message |
    /// | `fields` | the message's fields; for what is no message `{"what": "..."}` |
    /// | `range` | first byte and byte behind the last in the sender's stream |
    /// | `error` | only there when the message could not be read to its end |
    Json(Style),
}

impl Format {
    /// Appends one item; `tree` is the tree of it.
    pub fn write(&self, item: &Item<'_>, name: &str, tree: &Tree<'_>, out: &mut String) {
        match self {
            Self::Text { brief, style } => write_text(item, name, tree, *brief, *style, out),
            Self::Json(style) => write_json(item, name, tree, *style, out),
        }
    }
}

fn write_text(
    item: &Item<'_>,
    name: &str,
    tree: &Tree<'_>,
    brief: bool,
    style: TextStyle,
    out: &mut String,
) {
    let since = item.stamp.since;
    let (dim, bold, red, yellow, reset) = if style.colour {
        ("\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m")
    } else {
        ("", "", "", "", "")
    };
    let opened = item.note().filter(|note| note.kind == NoteKind::Opened);
    let _ = write!(
        out,
        "{dim}{:5}.{:06}  #{:<3}{reset} {:<6}  ",
        since.as_secs(),
        since.subsec_micros(),
        item.stamp.stream,
        if opened.is_some() { item.family } else { item.from.name() },
    );
    if let Some(note) = opened {
        let _ = writeln!(out, "{dim}{}{reset}", note.text);
        return;
    }
    if let Some(note) = item.note() {
        let colour = if note.kind == NoteKind::Problem { red } else { yellow };
        let _ = writeln!(out, "{colour}! {}: {}{reset}", note.kind.name(), note.text);
        return;
    }
    let _ = writeln!(out, "{bold}{name}{reset}");
    if brief {
        return;
    }
    let fields = TextStyle { indent: 8, ..style };
    match tree.find("fields") {
        Some(record) if tree.error().is_none() => {
            worldwire_core::text::write_nodes(tree, record.children(), fields, out);
        }
        _ => write_tree(tree, fields, out),
    }
}

fn write_json(item: &Item<'_>, name: &str, tree: &Tree<'_>, style: Style, out: &mut String) {
    let _ = write!(out, "{{\"time\":{},", item.stamp.time);
    if let Some(packet) = item.stamp.packet {
        let _ = write!(out, "\"packet\":{packet},");
    }
    let _ = write!(
        out,
        "\"stream\":{},\"family\":\"{}\",\"from\":\"{}\",\"name\":",
        item.stamp.stream,
        item.family,
        item.from.name(),
    );
    string(name, out);
    out.push_str(",\"fields\":");
    match (item.note(), tree.find("fields")) {
        (Some(note), _) => {
            out.push_str("{\"what\":");
            string(&note.text, out);
            out.push('}');
        }
        (None, Some(fields)) => write_node(fields, style, out),
        (None, None) => write_children(Value::Record, tree.roots(), style, out),
    }
    let _ = write!(out, ",\"range\":[{},{}]", item.range.start, item.range.end);
    if let Some(error) = tree.error() {
        out.push_str(",\"error\":");
        string(&error.to_string(), out);
    }
    out.push_str("}\n");
}
