//! Codecs decode a blob to a tree and encode JSON back to bytes.
//!
//! A codec's dotted name begins with its family: `uru.auth`, `uru.vault-node`. The JSON it writes
//! encodes to the original bytes.

use worldwire_core::json::{Json, Style, string, write_children, write_node};
use worldwire_core::opener::Opener;
use worldwire_core::{
    Error, Limits, MessageInfo, Reader, Result, Side, Tree, TreeBuilder, Value, Writer,
};

use crate::knowledge::{Definitions, Keys};

/// A format that can be decoded and encoded by name.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The dotted name.
    pub name: &'static str,
    /// A one-line description of what it reads.
    pub about: &'static str,
    /// What the tree's top-level nodes are.
    pub shape: Shape,
    /// Whether client and server send different messages, so the sender must be known.
    pub sided: bool,
    /// Whether it uses [`CodecOptions::keys`].
    pub keyed: bool,
    /// Decodes all of the data to a tree; see [`read`].
    pub decode: for<'d> fn(&'d [u8], &CodecOptions<'d>, Tree<'d>) -> Tree<'d>,
    /// Encodes the JSON of a tree.
    pub encode: fn(&Json, &CodecOptions<'_>) -> Result<Vec<u8>>,
    /// The tables of its messages, if any.
    pub tables: fn() -> Vec<&'static [MessageInfo]>,
    /// Returns remarks about a blob that decodes.
    pub remarks: fn(&[u8], &CodecOptions<'_>) -> Vec<Remark>,
}

impl Codec {
    /// A codec for the fields of an object that either side can send, without tables and remarks.
    #[must_use]
    pub const fn new(
        name: &'static str,
        about: &'static str,
        decode: for<'d> fn(&'d [u8], &CodecOptions<'d>, Tree<'d>) -> Tree<'d>,
        encode: fn(&Json, &CodecOptions<'_>) -> Result<Vec<u8>>,
    ) -> Self {
        let (shape, tables, remarks) = (Shape::Fields, Vec::new, no_remarks);
        Self { name, about, shape, sided: false, keyed: false, decode, encode, tables, remarks }
    }
}

/// A remark about a blob that decodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The text, on one line.
    pub text: String,
    /// Whether part of the blob cannot be decoded, which counts as a problem with the input.
    pub is_problem: bool,
}

impl Remark {
    /// Something is odd, or could be decoded better.
    #[must_use]
    pub const fn note(text: String) -> Self {
        Self { text, is_problem: false }
    }

    /// Something cannot be decoded.
    #[must_use]
    pub const fn problem(text: String) -> Self {
        Self { text, is_problem: true }
    }
}

/// What the top-level nodes of a codec's tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The fields of one object.
    Fields,
    /// One value.
    Value,
}

/// Everything a codec needs besides the bytes.
#[derive(Clone, Copy, Debug)]
pub struct CodecOptions<'o> {
    /// The sender of the bytes.
    pub from: Side,
    /// Secrets.
    pub keys: &'o Keys,
    /// Definitions of messages.
    pub definitions: &'o Definitions,
    /// Bounds.
    pub limits: &'o Limits,
}

impl Codec {
    /// The tables of its messages, one per side. Empty for formats that are not messages.
    #[must_use]
    pub fn tables(&self) -> Vec<&'static [MessageInfo]> {
        (self.tables)()
    }

    /// Decodes a whole blob. On failure the tree ends with the error.
    #[must_use]
    pub fn decode<'d>(&self, data: &'d [u8], options: &CodecOptions<'d>) -> Tree<'d> {
        if data.len() as u64 > options.limits.message_bytes {
            let error =
                Error::limit("message bytes", options.limits.message_bytes, data.len() as u64);
            let mut tree = Tree::new();
            tree.set_error(error.about(self.name));
            return tree;
        }
        (self.decode)(data, options, Tree::new())
    }

    /// Remarks about a blob that decodes, such as parts that better definitions would decode.
    #[must_use]
    pub fn remarks(&self, data: &[u8], options: &CodecOptions<'_>) -> Vec<Remark> {
        (self.remarks)(data, options)
    }

    /// Writes a decoded tree as JSON that [`Codec::encode`] reads. If decoding failed, the JSON has
    /// an `error`, and `encode` refuses it.
    pub fn write_json(&self, tree: &Tree<'_>, from: Side, style: Style, out: &mut String) {
        match self.shape {
            Shape::Fields if self.sided => {
                out.push_str("{\"from\":\"");
                out.push_str(from.name());
                out.push_str("\",");
                let start = out.len();
                write_children(Value::Record, tree.roots(), style, out);
                // The fields become members of the object that is already open.
                out.remove(start);
                if out.ends_with(",}") {
                    // The object has no fields.
                    out.truncate(out.len() - 2);
                    out.push('}');
                }
            }
            Shape::Fields => write_children(Value::Record, tree.roots(), style, out),
            Shape::Value => match (tree.roots().next(), tree.error()) {
                (Some(root), None) => write_node(root, style, out),
                (Some(root), Some(_)) if matches!(root.value(), Value::Record) => {
                    write_node(root, style, out);
                }
                // The error must be a member of an object.
                (Some(root), Some(_)) => {
                    out.push_str("{\"value\":");
                    write_node(root, style, out);
                    out.push('}');
                }
                (None, Some(_)) => out.push_str("{}"),
                (None, None) => out.push_str("null"),
            },
        }
        // A partial message must not pass for a whole one.
        if let Some(error) = tree.error()
            && out.ends_with('}')
        {
            out.pop();
            if !out.ends_with('{') {
                out.push(',');
            }
            out.push_str("\"error\":");
            string(&error.to_string(), out);
            out.push('}');
        }
    }

    /// Encodes JSON from [`Codec::write_json`]. Its `from` overrides the one in the options.
    pub fn encode(&self, mut json: Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
        let mut options = *options;
        if self.shape == Shape::Value && json.get("error").is_some() {
            let error = Error::invalid("the bytes could not be decoded, so this cannot be encoded");
            return Err(error.inside("error").about(self.name));
        }
        if self.sided
            && let Some(object) = json.as_object_mut()
            && let Some(from) = object.remove("from")
        {
            options.from = match from.as_str() {
                Some("client") => Side::Client,
                Some("server") => Side::Server,
                _ => {
                    let wanted = "\"client\" or \"server\"";
                    return Err(worldwire_core::json::expected(wanted, &from).inside("from"));
                }
            };
        }
        (self.encode)(&json, &options).map_err(|error| error.about(self.name))
    }
}

fn no_remarks(_: &[u8], _: &CodecOptions<'_>) -> Vec<Remark> {
    Vec::new()
}

/// Runs a decoder over all of the data. No more data can follow, so incomplete data is an error.
pub fn read<'d>(
    name: &'static str,
    data: &'d [u8],
    options: &CodecOptions<'d>,
    tree: Tree<'d>,
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Tree<'d> {
    read_all(name, Reader::traced_within("input", data, tree, options.limits), decode)
}

/// Like [`read`], with an [opener](worldwire_core::opener) for formats inside fields.
pub fn read_opening<'d>(
    name: &'static str,
    data: &'d [u8],
    options: &CodecOptions<'d>,
    tree: Tree<'d>,
    opener: &'d dyn Opener<'d>,
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Tree<'d> {
    let reader = Reader::traced_within("input", data, tree, options.limits).opening(opener);
    read_all(name, reader, decode)
}

/// Encodes to a new buffer.
#[cfg_attr(not(any(feature = "ki", feature = "mxo", feature = "uru")), allow(dead_code))]
pub(crate) fn to_bytes(encode: impl FnOnce(&mut Writer) -> Result<()>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    encode(&mut writer)?;
    Ok(writer.into_bytes())
}

fn read_all<'d>(
    name: &'static str,
    mut reader: Reader<'d, TreeBuilder<'d>>,
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Tree<'d> {
    let outcome =
        decode(&mut reader).and_then(|()| reader.end()).map_err(|error| error.closed().about(name));
    reader.conclude(outcome).0
}
