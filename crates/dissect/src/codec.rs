//! Codecs: one blob in, its tree out, and back from JSON.
//!
//! A codec has a dotted name that begins with the family: `uru.auth`, `uru.vault-node`. It encodes
//! the JSON that it writes back to the same bytes.

use worldwire_core::json::{Json, Style, string, write_children, write_node};
use worldwire_core::opener::Opener;
use worldwire_core::{Error, Limits, MessageInfo, Reader, Result, Side, Tree, TreeBuilder, Value};

use crate::knowledge::{Definitions, Keys};

/// A format that can be decoded and encoded by name.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The dotted name.
    pub name: &'static str,
    /// What it reads, in one line.
    pub about: &'static str,
    /// What the tree's top nodes are.
    pub shape: Shape,
    /// Whether client and server say different things, so that the sender has to be known.
    pub sided: bool,
    /// Decodes all of the data into a tree; see [`read`].
    pub decode: for<'d> fn(&'d [u8], &CodecOptions<'d>, Tree<'d>) -> Tree<'d>,
    /// Encodes what the tree shows as JSON.
    pub encode: fn(&Json, &CodecOptions<'_>) -> Result<Vec<u8>>,
    /// The tables of its messages, if it has any.
    pub tables: fn() -> Vec<&'static [MessageInfo]>,
    /// What there is to say of a blob that can be decoded; see [`no_remarks`].
    pub remarks: fn(&[u8], &CodecOptions<'_>) -> Vec<Remark>,
}

/// What there is to say of a blob that can be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// One line.
    pub text: String,
    /// Whether a part of the blob could not be read: a problem of the input.
    pub is_problem: bool,
}

impl Remark {
    /// Something could be read better, or is odd.
    #[must_use]
    pub const fn note(text: String) -> Self {
        Self { text, is_problem: false }
    }

    /// Something could not be read.
    #[must_use]
    pub const fn problem(text: String) -> Self {
        Self { text, is_problem: true }
    }
}

/// What the top nodes of a codec's tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Fields of one object.
    Fields,
    /// One value.
    Value,
}

/// What a codec may need beside the bytes.
#[derive(Clone, Copy, Debug)]
pub struct CodecOptions<'o> {
    /// Who sent the bytes.
    pub from: Side,
    /// Secrets.
    pub keys: &'o Keys,
    /// What users know of messages.
    pub definitions: &'o Definitions,
    /// Bounds.
    pub limits: &'o Limits,
}

impl Codec {
    /// The messages it knows, a table a side; empty for formats that are no messages.
    #[must_use]
    pub fn tables(&self) -> Vec<&'static [MessageInfo]> {
        (self.tables)()
    }

    /// Decodes a blob, all of it. A tree whose decode failed ends in the error.
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

    /// What there is to say of a blob that can be decoded: what is only bytes in its tree though more
    /// is known of it.
    #[must_use]
    pub fn remarks(&self, data: &[u8], options: &CodecOptions<'_>) -> Vec<Remark> {
        (self.remarks)(data, options)
    }

    /// The JSON of a decoded tree, as [`Codec::encode`] reads it. That of a tree whose decode failed
    /// has an `error`, which `encode` refuses.
    pub fn write_json(&self, tree: &Tree<'_>, from: Side, style: Style, out: &mut String) {
        match self.shape {
            Shape::Fields if self.sided => {
                out.push_str("{\"from\":\"");
                out.push_str(from.name());
                out.push_str("\",");
                let start = out.len();
                write_children(Value::Record, tree.roots(), style, out);
                // The fields join the object that is open already.
                out.remove(start);
                if out.ends_with(",}") {
                    // There were none.
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
                // The error needs an object to stand in.
                (Some(root), Some(_)) => {
                    out.push_str("{\"value\":");
                    write_node(root, style, out);
                    out.push('}');
                }
                (None, Some(_)) => out.push_str("{}"),
                (None, None) => out.push_str("null"),
            },
        }
        // Half a message must not pass for a whole one.
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

    /// Encodes what [`Codec::write_json`] wrote. A `from` in the JSON counts more than the one in
    /// the options.
    ///
    /// # Errors
    /// Value, when the JSON is something else.
    pub fn encode(&self, mut json: Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
        let mut options = *options;
        if self.shape == Shape::Value
            && let Some(error) = json.get("error")
        {
            let error = worldwire_core::json::expected("no error", error).inside("error");
            return Err(error.about(self.name));
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

/// Nothing to say of a blob: what most codecs have for [`Codec::remarks`].
#[must_use]
pub fn no_remarks(_: &[u8], _: &CodecOptions<'_>) -> Vec<Remark> {
    Vec::new()
}

/// Runs a decoder over all of the data. Nothing more can come, so what is incomplete is an error.
pub fn read<'d>(
    name: &'static str,
    data: &'d [u8],
    options: &CodecOptions<'d>,
    tree: Tree<'d>,
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Tree<'d> {
    read_all(name, Reader::traced_within("input", data, tree, options.limits), decode)
}

/// The same, with an [opener](worldwire_core::opener) for the formats inside fields.
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

fn read_all<'d>(
    name: &'static str,
    mut reader: Reader<'d, TreeBuilder<'d>>,
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> Tree<'d> {
    let outcome =
        decode(&mut reader).and_then(|()| reader.end()).map_err(|error| error.closed().about(name));
    reader.conclude(outcome).0
}
