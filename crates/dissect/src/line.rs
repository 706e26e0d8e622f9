//! A message as a line of JSON, which [`Format`](crate::Format) writes and users can edit.

use worldwire_core::json::{Json, Object, bytes, expected};
use worldwire_core::{Error, Result, Side};

use crate::item::NoteKind;

/// A message as a line of JSON shows it:
/// `{"family":"uru","from":"client","name":...,"fields":...}`.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// The sender.
    pub from: Side,
    /// The dotted name: `auth.AcctLoginRequest`.
    pub name: &'l str,
    /// The fields.
    pub fields: &'l Json,
    /// The whole line. Some families need more members than the ones above.
    pub members: &'l Object,
}

/// The name of a codec, and the JSON that it encodes.
pub type Blob = (&'static str, Json);

impl<'l> Line<'l> {
    /// Reads a line. `None` for a note, which has no bytes.
    ///
    /// # Errors
    /// `Value` for anything but a line of a dissection, and for a message with an error but without
    /// its `payload`.
    pub fn parse(json: &'l Json) -> Result<Option<Self>> {
        const WANTED: &str = "a line of `dissect --json`";
        let members = json.as_object().ok_or_else(|| expected(WANTED, json))?;
        let text = |key: &'static str| match members.get(key) {
            Some(Json::String(text)) => Ok(&**text),
            Some(other) => Err(expected("a string", other).inside(key)),
            None => Err(Error::value(WANTED, format!("a line without `{key}`"))),
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
        let fields =
            members.get("fields").ok_or_else(|| Error::value(WANTED, "a line without `fields`"))?;
        if members.contains_key("error") && !members.contains_key("payload") {
            let problem =
                "the message could not be decoded, and without `payload` its bytes are lost";
            return Err(Error::invalid(problem).inside("error").about(name.to_owned()));
        }
        Ok(Some(Self { from, name, fields, members }))
    }

    /// The bytes of a message that was shown with an error. `None` for a message without one.
    pub(crate) fn payload_of_error(&self) -> Option<Result<Vec<u8>>> {
        self.members.get("error")?;
        let payload = bytes(self.members.get("payload")?);
        Some(payload.map_err(|error| error.inside("payload").about(self.name.to_owned())))
    }

    /// The error for a name that does not look like a message of the line's family.
    #[must_use]
    pub fn no_message(&self) -> Error {
        Error::invalid(format!("no codec can encode the message `{}`", self.name))
    }
}
