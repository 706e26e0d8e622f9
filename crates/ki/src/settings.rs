//! Reading hand-written TOML files. Every mistake is reported with its position.

use core::ops::Range;
use core::str::FromStr;
use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use worldwire_core::{Diagnostic, Source, nearest};

use crate::xml::Diagnostics;

pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A text and its errors so far.
pub(crate) struct Settings<'t> {
    diagnostics: Diagnostics<'t>,
}

impl<'t> Settings<'t> {
    /// Parses a text. If it is not TOML, the table is empty.
    pub(crate) fn open(name: &str, text: &'t str) -> (Self, DeTable<'t>) {
        let mut settings = Self { diagnostics: Diagnostics::new(Source::new(name, text), true) };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            settings.error(error.span().unwrap_or(0..0), error.message());
        }
        (settings, if errors.is_empty() { root.into_inner() } else { DeTable::new() })
    }

    /// Returns the value that was read, or the errors.
    pub(crate) fn close<R>(self, read: R) -> Result<R, Vec<Diagnostic>> {
        match self.diagnostics.has_errors() {
            true => Err(self.diagnostics.into_sorted()),
            false => Ok(read),
        }
    }

    /// The number of errors so far.
    pub(crate) fn count(&self) -> usize {
        self.diagnostics.count()
    }

    pub(crate) fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.diagnostics.error(&span, message, "");
    }

    /// A warning that the caller may report later.
    pub(crate) fn warning(&self, span: Range<usize>, message: &str) -> Diagnostic {
        self.diagnostics.source.warning(span, message)
    }

    /// The keys and values of a table.
    pub(crate) fn table<'v, 's>(
        &mut self,
        value: &'v Value<'s>,
    ) -> Vec<(&'v Spanned<Cow<'s, str>>, &'v Value<'s>)> {
        match value.get_ref().as_table() {
            Some(table) => table.iter().collect(),
            None => {
                self.error(value.span(), "must be a table");
                Vec::new()
            }
        }
    }

    /// Reads each table of the array `[[name]]`.
    pub(crate) fn each<'s>(
        &mut self,
        name: &str,
        value: &Value<'s>,
        mut read: impl FnMut(&mut Self, &Value<'s>),
    ) {
        match value.get_ref().as_array() {
            Some(items) => items.iter().for_each(|item| read(self, item)),
            None => {
                let message = format!("write each one as a table in double brackets, [[{name}]]");
                self.error(value.span(), message);
            }
        }
    }

    /// Reports an unknown key.
    pub(crate) fn unknown(&mut self, key: &Spanned<Cow<'_, str>>, known: &[&str]) {
        let name = key.get_ref();
        let near = self.diagnostics.has_room().then(|| nearest(name, known.iter().copied()));
        let help = near.flatten().map_or_else(String::new, |near| format!("did you mean {near}?"));
        let message = format!("unknown key {name}; it must be one of {}", known.join(", "));
        self.diagnostics.error(&key.span(), message, &help);
    }

    pub(crate) fn text(&mut self, value: &Value<'_>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.error(value.span(), "must be a string in quotes");
        }
        text
    }

    /// A whole number, decimal or prefixed with `0x`.
    pub(crate) fn number<N: FromStr + TryFrom<u64>>(
        &mut self,
        value: &Value<'_>,
        message: &str,
    ) -> Option<N> {
        let number = value.get_ref().as_integer().and_then(|number| {
            // The parser has already removed the prefix.
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            N::try_from(number).ok()
        });
        if number.is_none() {
            self.error(value.span(), message);
        }
        number
    }

    pub(crate) fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.error(value.span(), "must be true or false");
        }
        boolean
    }
}
