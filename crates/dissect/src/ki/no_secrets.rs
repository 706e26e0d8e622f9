//! Replaces the login's secrets in builds without the feature `keys`, which decrypt nothing.

use std::sync::Arc;

use worldwire_core::opener::Site;
use worldwire_core::{Reader, Result, TreeBuilder};
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

    pub(crate) fn show(_: String, _: &mut Reader<'_, TreeBuilder<'_>>) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn proves(_: &Received<'_>, _: &KeyFile, _: &Protocols) -> bool {
    false
}
