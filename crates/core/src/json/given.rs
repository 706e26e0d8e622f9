//! JSON that values are read from, with its context.

use core::fmt;
use core::ops::Deref;

use super::{Json, bytes, expected};
use crate::opener::{Closer, Site, Subject};
use crate::{Error, Result};

/// A JSON value to read from, with the closer that encodes opened fields in it (see
/// [`opener`](crate::opener)). Created from a `&Json` with `into`; dereferences to it.
#[derive(Clone, Copy)]
pub struct Given<'j> {
    json: &'j Json,
    closer: Option<&'j dyn Closer>,
    message: Subject<'j>,
    field: &'j str,
}

impl<'j> From<&'j Json> for Given<'j> {
    fn from(json: &'j Json) -> Self {
        Self { json, closer: None, message: Subject::default(), field: "" }
    }
}

impl Deref for Given<'_> {
    type Target = Json;

    fn deref(&self) -> &Json {
        self.json
    }
}

impl fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.json, f)
    }
}

impl<'j> Given<'j> {
    /// JSON in which opened fields can be encoded again.
    #[must_use]
    pub fn closing(json: &'j Json, closer: &'j dyn Closer) -> Self {
        Self { json, closer: Some(closer), message: Subject::default(), field: "" }
    }

    /// The value.
    #[must_use]
    pub fn json(self) -> &'j Json {
        self.json
    }

    /// A value inside this one.
    #[must_use]
    pub fn at(self, json: &'j Json) -> Self {
        Self { json, ..self }
    }

    /// The value of a field inside this one.
    #[must_use]
    pub fn field(self, field: &'j str, json: &'j Json) -> Self {
        Self { json, field, ..self }
    }

    /// The fields of a message.
    #[must_use]
    pub fn of(self, message: Subject<'j>) -> Self {
        Self { message, ..self }
    }

    /// The bytes of a field that may have been opened. `read` reads the bytes of an unopened field.
    ///
    /// # Errors
    /// `Value` if the JSON is something else or contains opened fields that cannot be encoded.
    pub fn blob(self, read: impl FnOnce(&Json) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let Json::Object(parts) = self.json else { return read(self.json) };
        if parts.keys().all(|key| key == "$hex") {
            return read(self.json);
        }
        let site = Site { message: self.message, field: self.field };
        let made = match self.closer {
            Some(closer) => closer.close(site, self.json)?,
            None if parts.len() > 1 => {
                let found = self.json;
                return Err(expected("only \"bytes\" for this field", found)
                    .hint("its other keys cannot be encoded here; remove them"));
            }
            None => None,
        };
        match (made, parts.get("bytes")) {
            (Some(made), _) => Ok(made),
            (None, Some(plain)) => read(plain).map_err(|error| error.inside("bytes")),
            (None, None) => Err(Error::invalid("is missing").inside("bytes")),
        }
    }

    /// The bytes of a blob that may have been opened.
    pub fn bytes(self) -> Result<Vec<u8>> {
        self.blob(bytes)
    }
}
