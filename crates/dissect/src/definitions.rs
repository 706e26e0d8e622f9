//! Definitions that users have: what messages look like.

use std::sync::Arc;

use worldwire_core::Diagnostic;
use worldwire_ki::schema::{Mode, Protocols};

/// The definitions of all families, as a user's files give them, over what is built in.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// KI: message protocols.
    pub ki: Arc<Protocols>,
}

impl Default for Definitions {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Definitions {
    /// What is built in, and nothing else.
    #[must_use]
    pub fn built_in() -> Self {
        Self { ki: Arc::new(Protocols::built_in()) }
    }

    /// Nothing, not even what is built in.
    #[must_use]
    pub fn none() -> Self {
        Self { ki: Arc::new(Protocols::new()) }
    }

    /// Reads a file, told by its name and content. `None` when it holds no definitions of a known
    /// kind; else all that is to be said about them.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Option<Vec<Diagnostic>> {
        is_message_xml(name, bytes)
            .then(|| Arc::make_mut(&mut self.ki).add(name, bytes, Mode::Lenient))
    }
}

/// Whether a file is message XML of KI.
fn is_message_xml(name: &str, bytes: &[u8]) -> bool {
    let named = name.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case("xml"));
    named && bytes.windows(13).any(|window| window == b"_ProtocolInfo")
}

/// What is built in, once for all fuzz runs: making it takes longer than a run.
#[cfg(feature = "fuzzing")]
pub(crate) fn definitions() -> &'static Definitions {
    static DEFINITIONS: std::sync::LazyLock<Definitions> =
        std::sync::LazyLock::new(Definitions::built_in);
    &DEFINITIONS
}
