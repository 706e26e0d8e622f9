//! Lines of JSON, as [`Format`](crate::Format) writes them, back to bytes.

use worldwire_core::json::Object;
use worldwire_core::json::{Json, bytes, expected};
use worldwire_core::{Error, Result, Side};

use crate::codec::{Codec, CodecOptions};
use crate::family::{Families, Family};
use crate::item::NoteKind;

/// A message as a line of JSON shows it: `{"family":"uru","from":"client","name":...,"fields":...}`.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// Who sent it.
    pub from: Side,
    /// The dotted name: `auth.AcctLoginRequest`.
    pub name: &'l str,
    /// Its fields.
    pub fields: &'l Json,
    /// The whole line, for what a family has to say beside that.
    pub members: &'l Object,
}

/// A codec, and the JSON that it encodes.
pub type Blob = (&'static str, Json);

impl<'l> Line<'l> {
    /// Reads a line. `None` for a note, which has no bytes.
    ///
    /// # Errors
    /// Value, for anything but a line of a dissection, and for a message that could not be read
    /// whole and comes without its bytes.
    pub fn parse(json: &'l Json) -> Result<Option<Self>> {
        const WANTED: &str = "a line of `dissect --json`";
        let members = json.as_object().ok_or_else(|| expected(WANTED, json))?;
        let text = |key: &'static str| match members.get(key) {
            Some(Json::String(text)) => Ok(&**text),
            Some(other) => Err(expected("a text", other).inside(key)),
            None => Err(Error::value(WANTED, format!("no `{key}`"))),
        };
        let name = text("name")?;
        if NoteKind::ALL.iter().any(|kind| kind.name() == name) {
            return Ok(None);
        }
        let from = match text("from")? {
            "client" => Side::Client,
            "server" => Side::Server,
            other => {
                let wanted = "\"client\" or \"server\"";
                return Err(Error::value(wanted, format!("\"{other}\"")).inside("from"));
            }
        };
        let fields = members.get("fields").ok_or_else(|| Error::value(WANTED, "no `fields`"))?;
        if members.contains_key("error") && !members.contains_key("payload") {
            return Err(Error::value("a whole message", "one that could not be read")
                .inside("error")
                .about(name.to_owned()));
        }
        Ok(Some(Self { from, name, fields, members }))
    }

    /// The bytes of the message. Unchanged JSON gives the bytes that were read, decrypted and without
    /// the frame around them; definitions that choose a build choose it here too. A message that
    /// could not be read whole is its `payload`, whatever its fields say. `None` for a step of
    /// setup that is no message.
    ///
    /// # Errors
    /// Value, for a family or message that is not known, and fields that the message does not have.
    pub fn encode(&self, options: &CodecOptions<'_>) -> Result<Option<Vec<u8>>> {
        if let (Some(_), Some(payload)) = (self.members.get("error"), self.members.get("payload")) {
            let payload = bytes(payload).map_err(|error| error.inside("payload"));
            return payload.map(Some).map_err(|error| error.about(self.name.to_owned()));
        }
        let blob = self.blob(options.definitions.families())?;
        let options = CodecOptions { from: self.from, ..*options };
        let encode = |(codec, json)| Codec::named(codec)?.encode(json, &options);
        blob.map(encode).transpose().map_err(|error| {
            let advice = self.family(options.definitions.families()).ok();
            match advice.and_then(|family| family.advice_on(self.name, options.definitions)) {
                Some(advice) => error.hint(advice),
                None => error,
            }
        })
    }

    /// The codec of the message, and the JSON that it takes. `None` for a step of setup without a
    /// codec.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), for a family or message that is not known.
    pub fn blob(&self, families: Families) -> Result<Option<Blob>> {
        let family = self.family(families)?;
        family.blob(self).map_err(|error| error.about(self.name.to_owned()))
    }

    fn family(&self, families: Families) -> Result<&'static dyn Family> {
        let family = match self.members.get("family") {
            Some(Json::String(family)) => families.named(family),
            other => {
                let found = other.map_or_else(|| "none".to_owned(), ToString::to_string);
                Err(Error::value("the name of a family", found))
            }
        };
        family.map_err(|error| error.inside("family"))
    }

    /// What is wrong with a line whose name begins otherwise than those of messages.
    #[must_use]
    pub fn no_message(&self) -> Error {
        Error::value("a message that can be encoded by itself", format!("`{}`", self.name))
    }
}
