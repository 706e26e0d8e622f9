//! System messages: a number, and values that the client inserts into the text with that number.
//!
//! `S_SYSTEM_MESSAGE` carries one in `message`, `S_SYSTEM_MESSAGE_LOOT_ITEM` in `sysmsg`:
//! `@` and the number, then pairs of key and value, each after a vertical tab.
//!
//! ```
//! use worldwire_tera::file::CodeMap;
//! use worldwire_tera::sysmsg::SystemMessage;
//!
//! let map = CodeMap::from_pairs([("SMT_USER_JOINED", 42)]);
//! let message = SystemMessage::parse("@42\u{b}UserName\u{b}Elin", &map)?;
//! assert_eq!(message.name, "SMT_USER_JOINED");
//! assert_eq!(message.get("UserName"), Some("Elin"));
//! assert_eq!(message.format(&map)?, "@42\u{b}UserName\u{b}Elin");
//! # Ok::<(), worldwire_tera::sysmsg::SystemMessageError>(())
//! ```

use std::borrow::Cow;

use crate::file::CodeMap;

/// Separates keys and values.
const SEPARATOR: char = '\u{b}';

/// A system message, split into its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemMessage<'t> {
    /// Its name in the map; or a name from the text if it contains a colon (`achievement:5`).
    pub name: Cow<'t, str>,
    /// Keys and values in order. A value may be a reference such as `@item:888`, which the client
    /// resolves.
    pub pairs: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    /// A last key without a value.
    pub odd: Option<Cow<'t, str>>,
}

/// Why a text is not a system message, or a system message cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SystemMessageError {
    /// The text does not begin with `@`, so it is plain text.
    #[error("not a system message: it does not begin with @")]
    NotASystemMessage,
    /// The map has no such number; it may be for another version, or the sender invented it.
    #[error("unknown number {id:?}; the system message map does not contain it")]
    UnknownId {
        /// The number, as it is in the text.
        id: String,
    },
    /// The map has no such name; the caller may be wrong, or the map is for another version.
    #[error("unknown name {name:?}; the system message map does not contain it")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A key, value or name contains the separator.
    #[error("{part:?} contains a vertical tab, which separates keys and values")]
    SeparatorInValue {
        /// The key, value or name.
        part: String,
    },
}

impl SystemMessageError {
    /// The stable name: `unknown_id`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotASystemMessage => "not_a_system_message",
            Self::UnknownId { .. } => "unknown_id",
            Self::UnknownName { .. } => "unknown_name",
            Self::SeparatorInValue { .. } => "separator_in_value",
        }
    }
}

/// The number that stands in place of a name, if the name is numeric.
pub(crate) fn code(name: &str) -> Option<u32> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit());
    if plain { name.parse().ok() } else { None }
}

impl<'t> SystemMessage<'t> {
    /// Splits a text and looks up the name of its number.
    ///
    /// # Errors
    /// If the text is not a system message, or the map does not contain its number;
    /// [`Self::parse_raw`] accepts any number.
    pub fn parse(text: &'t str, map: &CodeMap) -> Result<Self, SystemMessageError> {
        let mut message = Self::parse_raw(text)?;
        if message.name.contains(':') {
            return Ok(message);
        }
        match code(&message.name).and_then(|code| map.name(code)) {
            Some(name) => {
                message.name = Cow::Owned(name.to_owned());
                Ok(message)
            }
            None => Err(SystemMessageError::UnknownId { id: message.name.into_owned() }),
        }
    }

    /// Splits a text; the name is the number, as it is in the text.
    pub fn parse_raw(text: &'t str) -> Result<Self, SystemMessageError> {
        let text = text.strip_prefix('@').ok_or(SystemMessageError::NotASystemMessage)?;
        let mut parts = text.split(SEPARATOR).map(Cow::Borrowed);
        let name = parts.next().unwrap_or_default();
        let mut pairs = Vec::new();
        let mut odd = None;
        while let Some(key) = parts.next() {
            match parts.next() {
                Some(value) => pairs.push((key, value)),
                None => odd = Some(key),
            }
        }
        Ok(Self { name, pairs, odd })
    }

    /// The value of a key; if the key is repeated, the last one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| &*pair.1)
    }

    /// Builds the text, with the number of its name.
    pub fn format(&self, map: &CodeMap) -> Result<String, SystemMessageError> {
        if self.name.contains(':') {
            return self.format_with(&self.name);
        }
        match map.code(&self.name) {
            Some(code) => self.format_with(&code.to_string()),
            None => Err(SystemMessageError::UnknownName { name: self.name.to_string() }),
        }
    }

    /// Builds the text, with the name as it is: the inverse of [`Self::parse_raw`].
    pub fn format_raw(&self) -> Result<String, SystemMessageError> {
        self.format_with(&self.name)
    }

    fn format_with(&self, id: &str) -> Result<String, SystemMessageError> {
        let pairs = self.pairs.iter().flat_map(|(key, value)| [&**key, &**value]);
        let mut text = String::from("@");
        for (index, part) in [id].into_iter().chain(pairs).chain(self.odd.as_deref()).enumerate() {
            if part.contains(SEPARATOR) {
                return Err(SystemMessageError::SeparatorInValue { part: part.to_owned() });
            }
            if index > 0 {
                text.push(SEPARATOR);
            }
            text.push_str(part);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_with_an_at_sign_survives() {
        for text in ["@", "@1", "@42\u{b}", "@x\u{b}A\u{b}1\u{b}A\u{b}2", "@1\u{b}k\u{b}v\u{b}odd"]
        {
            let message = SystemMessage::parse_raw(text).unwrap();
            assert_eq!(message.format_raw().unwrap(), text);
        }
        let message = SystemMessage::parse_raw("@x\u{b}A\u{b}1\u{b}A\u{b}2").unwrap();
        assert_eq!(message.get("A"), Some("2"));
    }
}
