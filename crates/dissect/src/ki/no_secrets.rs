//! Stands in for the module with the login's secrets in builds without the feature `keys`. Such
//! builds refuse key files that contain secrets.

use std::sync::Arc;

use worldwire_core::opener::Site;
use worldwire_core::{Diagnostic, Reader, Source, TreeBuilder};
use worldwire_ki::connection::{ObserverKeys, Received};
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::stream::StreamKey;
use worldwire_ki::schema::Protocols;

/// Why a stream is not decrypted.
pub(super) const NO_KEY: &str = "this program was built without decryption (the feature `keys`)";

/// An empty key file.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyFile;

impl KeyFile {
    /// Refuses KI's tables, which would have no effect.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let is_ours = |line: &str| {
            let table = line.trim_start_matches(['[', ' ', '\t']);
            ["ki.stream", "ki.login"].iter().any(|ours| table.starts_with(ours))
        };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let span = at..at + line.trim_end().len();
            at += line.len();
            if is_ours(line) {
                let error =
                    Source::new(name, text).error(span, "this program cannot use KI's keys");
                return Err(vec![error.help("it was built without the feature `keys`")]);
            }
        }
        Ok(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        true
    }

    pub(super) fn merge(&mut self, other: Self) {
        *self = other;
    }

    pub(super) fn observer(&self) -> Arc<ObserverKeys> {
        Arc::default()
    }

    pub(super) fn format_stream(_: Option<u16>, _: &StreamKey) -> String {
        String::new()
    }
}

/// Decrypts nothing.
#[derive(Clone, Debug)]
#[expect(dead_code, reason = "the real one reads them")]
pub(crate) struct Secrets<'k> {
    pub(crate) keys: &'k KeyFile,
    pub(crate) salt: Option<Salt>,
    pub(crate) proven: Option<Salt>,
}

impl Secrets<'_> {
    pub(crate) fn opens(&self, _: Site<'_>, _: &[u8]) -> bool {
        false
    }

    pub(crate) fn opened(&self, _: Site<'_>, _: &[u8]) -> Option<String> {
        None
    }

    pub(crate) fn show(
        _: String,
        _: &mut Reader<'_, TreeBuilder<'_>>,
    ) -> worldwire_core::Result<()> {
        Ok(())
    }
}

pub(crate) fn proves(_: &Received<'_>, _: &KeyFile, _: &Protocols) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::KeyFile;

    #[test]
    fn keys_are_not_skipped_silently() {
        let text = "[[uru.auth]]\nn = 1\n[[ki.login]]\nuser = \"Merle\"\n";
        let errors = KeyFile::parse("keys", text).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "keys:3:1: error: this program cannot use KI's keys (it was built without the feature \
             `keys`)"
        );
        assert!(KeyFile::parse("keys", "[[ki.object]]\nmessage = \"x\"\n").is_ok());
    }
}
