//! Explaining why a payload does not match its definition.

use core::fmt;

use worldwire_core::Reader;

use crate::schema::{APPENDED_REVISION, Message};
use crate::types::{FieldType, FieldValue};

use super::codec::Values;

/// How a payload matches a definition. Displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The payload matches exactly.
    Exact,
    /// Bytes are left after the last field.
    TooLong {
        /// The number of bytes left.
        bytes: usize,
        /// The fields that a later revision appends, if these bytes match them exactly.
        appended: Vec<Box<str>>,
    },
    /// Bytes are missing.
    TooShort {
        /// The missing fields. The first of them is truncated, unless `at_boundary`.
        missing: Vec<Box<str>>,
        /// Whether the payload ends after a whole field, so an earlier revision probably sent it.
        at_boundary: bool,
    },
}

impl Message {
    /// Whether a payload matches exactly. Does not allocate.
    #[must_use]
    pub fn fits(&self, payload: &[u8]) -> bool {
        let mut rest = Some(payload);
        for kind in self.plan() {
            rest = rest.and_then(|rest| {
                let count = match (kind.size(), kind) {
                    (Some(size), _) => size,
                    (None, kind) => {
                        let count = u16::from_le_bytes(*rest.first_chunk()?);
                        let unit = if *kind == FieldType::WStr { 2 } else { 1 };
                        2 + unit * usize::from(count)
                    }
                };
                rest.get(count..)
            });
        }
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// How a payload matches its definition, with the likely reason if it does not.
    #[must_use]
    pub fn fit(&self, payload: &[u8]) -> Fit {
        let mut values = Values::new();
        let mut reader = Reader::new(payload);
        if self.decode(&mut reader, &mut values).is_err() {
            let rest = self.fields().iter().skip(values.fields().len());
            let missing = rest.map(|field| field.name.clone()).collect();
            return Fit::TooShort { missing, at_boundary: reader.remaining() == 0 };
        }
        if values.trailing().is_empty() {
            return Fit::Exact;
        }
        let mut reader = Reader::new(values.trailing());
        let mut appended = Vec::new();
        for field in self.appended() {
            if reader.remaining() == 0 || FieldValue::decode(field.kind, &mut reader, "").is_err() {
                break;
            }
            appended.push(field.name.clone());
        }
        if reader.remaining() > 0 {
            appended.clear();
        }
        Fit::TooLong { bytes: values.trailing().len(), appended }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("fits exactly"),
            Self::TooLong { bytes, appended } => {
                let plural = if *bytes == 1 { "" } else { "s" };
                write!(f, "{bytes} byte{plural} too many: ")?;
                if appended.is_empty() {
                    return f.write_str("the sender's revision has more fields at the end");
                }
                write!(f, "fits revision {APPENDED_REVISION}, which appends ")?;
                f.write_str(&appended.join(", "))
            }
            Self::TooShort { missing, at_boundary: true } => {
                write!(f, "the last fields are missing: {}; ", missing.join(", "))?;
                f.write_str("the sender probably uses an earlier revision")
            }
            Self::TooShort { missing, .. } => {
                let first = missing.first().map_or("", |name| name);
                write!(
                    f,
                    "ends in the middle of {first}: it is truncated or has a different layout"
                )
            }
        }
    }
}
