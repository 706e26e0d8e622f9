//! Encodes and decodes messages of a conversation without the items that they arrived in.

use core::fmt;
use std::sync::Arc;

use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result, Side, Tree};
use worldwire_dissect::{Codec, CodecOptions, Line, LineEncoder, Message};

use crate::exchange::Known;

/// Encodes and decodes messages for the build that a conversation has revealed.
#[derive(Clone)]
pub(crate) struct Coder {
    known: Known,
    encoder: Option<Arc<dyn LineEncoder>>,
}

impl Coder {
    pub(crate) fn new(known: Known) -> Self {
        Self { known, encoder: None }
    }

    pub(crate) fn family(&self) -> &'static str {
        self.known.family
    }

    /// Learns what the message reveals about the build.
    pub(crate) fn learn_from(&mut self, message: &dyn Message) {
        self.encoder = message.line_encoder();
    }

    /// Encodes a message from a side, given its name, its fields, and other members of its line.
    pub(crate) fn encode(
        &self,
        from: Side,
        name: &str,
        fields: Json,
        others: impl IntoIterator<Item = (String, Json)>,
    ) -> Result<Vec<u8>> {
        let line = self.line(from, name, fields, others);
        let line = Line::parse(&line)?.ok_or_else(|| Error::value("a message", "a note"))?;
        if let Some(encoder) = &self.encoder {
            return encoder.encode_line(&line);
        }
        line.encode(&self.options(from))?.ok_or_else(|| line.no_message())
    }

    /// The tree of an encoded message.
    pub(crate) fn tree_of<'t>(&'t self, from: Side, name: &str, body: &'t [u8]) -> Tree<'t> {
        if let Some(encoder) = &self.encoder {
            return encoder.tree_of((from, name), body, Tree::new(), &Limits::DEFAULT);
        }
        match self.codec(from, name) {
            Ok(codec) => codec.decode(body, &self.options(from)),
            Err(error) => {
                let mut tree = Tree::new();
                tree.set_error(error);
                tree
            }
        }
    }

    /// The codec for messages of this name.
    fn codec(&self, from: Side, name: &str) -> Result<&'static Codec> {
        let families = self.known.definitions.families();
        let fields = Json::Object([("", Json::Null); 0].into_iter().collect());
        let line = self.line(from, name, fields, []);
        let line = Line::parse(&line)?.ok_or_else(|| Error::value("a message", "a note"))?;
        let (codec, _) = line.blob(families)?.ok_or_else(|| line.no_message())?;
        families.codec(codec)
    }

    fn line(
        &self,
        from: Side,
        name: &str,
        fields: Json,
        others: impl IntoIterator<Item = (String, Json)>,
    ) -> Json {
        let members = [
            ("family", self.known.family.into()),
            ("from", from.name().into()),
            ("name", name.into()),
            ("fields", fields),
        ];
        let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
        others.into_iter().chain(members).collect()
    }

    fn options(&self, from: Side) -> CodecOptions<'_> {
        let Known { definitions, keys, .. } = &self.known;
        CodecOptions { from, keys, definitions, limits: &Limits::DEFAULT }
    }
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coder").field("family", &self.known.family).finish_non_exhaustive()
    }
}
