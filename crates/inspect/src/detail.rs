//! One message with all its fields and layers, as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use worldwire_core::json::{self, Style, write_node};
use worldwire_core::text::write_value;
use worldwire_core::value::push_hex;
use worldwire_core::{Form, Layer, Limits, NodeRef, Tree, Value};
use worldwire_dissect::{Families, Format, Item, Line, Scratch};

use crate::message::Captured;

/// The maximum number of fields of one message.
const MAX_NODES: usize = 20_000;
/// The maximum number of bytes of one layer and of all layers.
const MAX_LAYER: usize = 1 << 20;
const MAX_LAYERS: usize = 4 << 20;
/// The maximum length of the value of a field, in characters or bytes.
const MAX_VALUE: usize = 256;
/// The maximum length of a message's JSON line. A longer one is left out.
const MAX_LINE: usize = 1 << 20;

#[derive(Debug, Serialize)]
struct Detail<'d> {
    row: usize,
    stream: u64,
    packet: Option<u64>,
    time: String,
    family: &'static str,
    from: &'static str,
    name: &'d str,
    /// The text of a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'d str>,
    range: [u64; 2],
    /// The number of fields in the message; `nodes` may have fewer.
    node_count: usize,
    nodes: Vec<Node<'d>>,
    layers: Vec<LayerDetail<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The message without its frame, as hexadecimal digits.
    body: String,
    /// The line of `dissect --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// The codec that decodes and encodes the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<&'static str>,
}

/// A field, in reading order.
#[derive(Debug, Serialize)]
pub(crate) struct Node<'d> {
    depth: u32,
    name: &'d str,
    /// The kind: `record`, `number`, `text`.
    kind: &'static str,
    /// The value as text output shows it.
    value: String,
    /// The value as JSON, unless it is long or a record or list.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<String>,
    layer: u16,
    /// First byte and bit, and those after the last, counted from the start of the layer.
    start: [u32; 2],
    end: [u32; 2],
}

#[derive(Debug, Serialize)]
pub(crate) struct LayerDetail<'d> {
    name: &'d str,
    base: u64,
    length: usize,
    /// Hexadecimal digits of the first bytes.
    bytes: String,
    /// The bytes that it was derived from: the layer, the first byte, and the byte after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<[u32; 3]>,
}

/// Writes an item.
pub(crate) fn write(
    item: &Item<'_>,
    scratch: &mut Scratch,
    row: usize,
    families: Families,
) -> String {
    let limits = Limits::DEFAULT;
    let name = &scratch.name;
    let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
    let mut line = String::new();
    Format::Json(Style::default()).write(item, name, &tree, &mut line);
    let line = (line.len() <= MAX_LINE).then(|| line.trim_end().to_owned());
    let mut body = String::new();
    let plain = item.body();
    push_hex(&mut body, plain.get(..MAX_LAYER).unwrap_or(plain));
    let detail = Detail {
        row,
        stream: item.stamp.stream,
        packet: item.stamp.packet,
        time: item.stamp.time.0.to_string(),
        family: item.family,
        from: item.from.name(),
        name,
        note: item.note().map(|note| &*note.text),
        range: [item.range.start, item.range.end],
        node_count: tree.len(),
        nodes: nodes(&tree),
        layers: layers(tree.layers()),
        error: tree.error().map(ToString::to_string),
        remarks: tree.remarks().iter().map(ToString::to_string).collect(),
        advice: item.advice().map(Into::into),
        body,
        codec: line.as_deref().and_then(|line| codec(line, families)),
        line,
    };
    let json = serde_json::to_string(&detail).unwrap_or_default();
    scratch.tree = tree.recycle();
    json
}

/// Adds the captured bytes to the JSON of an item.
pub(crate) fn complete(json: &str, captured: Option<Captured>) -> String {
    let Some(captured) = captured else { return json.to_owned() };
    let mut out = json.strip_suffix('}').unwrap_or(json).to_owned();
    let _ = write!(out, ",\"captured\":{{\"base\":{},\"bytes\":\"", captured.at);
    push_hex(&mut out, &captured.bytes);
    out.push_str("\"}}");
    out
}

fn codec(line: &str, families: Families) -> Option<&'static str> {
    let json = json::parse(line).ok()?;
    let (codec, _) = Line::parse(&json).ok()??.blob(families).ok()??;
    Some(codec)
}

impl<'d> LayerDetail<'d> {
    /// The first bytes of data of this length.
    pub(crate) fn plain(name: &'d str, data: &[u8], length: usize) -> Self {
        let mut bytes = String::new();
        push_hex(&mut bytes, data.get(..MAX_LAYER).unwrap_or(data));
        Self { name, base: 0, length, bytes, parent: None }
    }
}

/// The fields of a tree, in reading order.
pub(crate) fn nodes<'t>(tree: &'t Tree<'_>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    // The depth of a tree is bounded by the limits of its decoder.
    for root in tree.roots() {
        push_node(root, 0, &mut found);
    }
    found
}

fn push_node<'t>(node: NodeRef<'t, '_>, depth: u32, found: &mut Vec<Node<'t>>) {
    if found.len() >= MAX_NODES {
        return;
    }
    let (start, end) = node.places();
    let is_container = node.value().is_container();
    let mut value = String::new();
    if !matches!(node.value(), Value::Record) {
        write_value(node, MAX_VALUE, &mut value);
    }
    let is_short = node.bytes().len() <= 4 * MAX_VALUE;
    let json = (is_short && !is_container).then(|| {
        let mut json = String::new();
        write_node(node, Style { safe: true }, &mut json);
        json
    });
    found.push(Node {
        depth,
        name: node.name(),
        kind: kind(node.value()),
        value,
        json,
        layer: node.layer(),
        start: [start.byte, start.bit.into()],
        end: [end.byte, end.bit.into()],
    });
    for child in node.children() {
        push_node(child, depth + 1, found);
    }
}

fn kind(value: Value<'_>) -> &'static str {
    match value {
        Value::Record => "record",
        Value::List => "list",
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Unsigned(_) | Value::Signed(_) => "number",
        Value::Hex(_) => "hex",
        Value::F32(_) | Value::F64(_) => "float",
        Value::Enum(..) => "enum",
        Value::Flags(..) => "flags",
        Value::Span(span) => match span.form {
            Form::Bytes => "bytes",
            Form::Guid => "guid",
            Form::Ipv4 => "address",
            _ => "text",
        },
    }
}

/// The layers of a tree, with their first bytes.
pub(crate) fn layers<'t>(layers: &'t [Layer<'_>]) -> Vec<LayerDetail<'t>> {
    let mut room = MAX_LAYERS;
    let show = |layer: &'t Layer<'_>| {
        let data = layer.data();
        let shown = data.get(..room.min(MAX_LAYER)).unwrap_or(data);
        room -= shown.len();
        let mut bytes = String::with_capacity(2 * shown.len());
        push_hex(&mut bytes, shown);
        let parent = layer.parent().map(|it| [it.layer.into(), it.start, it.end]);
        LayerDetail { name: layer.name(), base: layer.base(), length: data.len(), bytes, parent }
    };
    layers.iter().map(show).collect()
}
