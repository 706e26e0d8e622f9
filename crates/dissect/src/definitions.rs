//! Definitions that users supply: the layouts of messages.

use std::sync::Arc;

use worldwire_core::Diagnostic;
use worldwire_ki::object::Hints;
use worldwire_ki::schema::{Mode, Protocols};

use crate::ki::KiObjects;
use crate::tera::{self, TeraDefinitions};

/// The definitions of all families, as a user's files give them, over what is built in.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// KI: message protocols.
    pub ki: Arc<Protocols>,
    /// KI: game objects.
    pub ki_objects: Arc<KiObjects>,
    /// TERA: definitions and maps.
    pub tera: Arc<TeraDefinitions>,
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
        Self::of(Protocols::built_in())
    }

    /// Nothing, not even what is built in.
    #[must_use]
    pub fn none() -> Self {
        Self::of(Protocols::new())
    }

    fn of(protocols: Protocols) -> Self {
        let ki_objects = Arc::new(KiObjects::new(&protocols));
        Self { ki: Arc::new(protocols), ki_objects, tera: Arc::default() }
    }

    /// Whether a file may hold definitions, by its name alone.
    #[must_use]
    pub fn may_be_in(name: &str) -> bool {
        is_xml(name) || is_toml(name) || tera::is_of_library(name)
    }

    /// Whether a file that holds definitions holds hints, by its name.
    #[must_use]
    pub fn are_hints(name: &str) -> bool {
        is_toml(name)
    }

    /// Reads files, told by their names (with folders) and contents: message XML and hints of KI,
    /// definitions, maps and lists of TERA. Type lists are compiled elsewhere, see
    /// [`KiObjects::set_classes`]. `None` when none of them holds
    /// definitions of a known kind; else all that is to be said about them.
    ///
    /// Files that belong together have to come together: TERA's definitions can include each
    /// other. What came before stays, and gives way to files of the same name.
    pub fn add<N: AsRef<str>, B: AsRef<[u8]>>(
        &mut self,
        files: impl IntoIterator<Item = (N, B)>,
    ) -> Option<Vec<Diagnostic>> {
        let mut said = Vec::new();
        let mut tera = Vec::new();
        let mut found = false;
        for (name, bytes) in files {
            let (name, bytes) = (name.as_ref(), bytes.as_ref());
            if is_message_xml(name, bytes) {
                found = true;
                said.extend(Arc::make_mut(&mut self.ki).add(name, bytes, Mode::Lenient));
            } else if let Some(text) = hints(name, bytes) {
                found = true;
                said.extend(Arc::make_mut(&mut self.ki_objects).add_hints(name, text));
            } else if tera::is_of_library(name) {
                tera.push((name.to_owned(), bytes.to_vec()));
            }
        }
        if !tera.is_empty() {
            found = true;
            said.extend(Arc::make_mut(&mut self.tera).add(tera));
        }
        Arc::make_mut(&mut self.ki_objects).resolve(&self.ki);
        found.then_some(said)
    }
}

/// Whether a file is message XML of KI.
fn is_message_xml(name: &str, bytes: &[u8]) -> bool {
    is_xml(name) && bytes.windows(13).any(|window| window == b"_ProtocolInfo")
}

/// The text of a file with hints about fields of KI's messages.
fn hints<'b>(name: &str, bytes: &'b [u8]) -> Option<&'b str> {
    let text = str::from_utf8(bytes).ok().filter(|_| is_toml(name))?;
    Hints::is_in(text).then_some(text)
}

fn is_xml(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case("xml"))
}

fn is_toml(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case("toml"))
}

/// What is built in and a little of TERA, once for all fuzz runs: making it takes longer than a
/// run.
#[cfg(feature = "fuzzing")]
pub(crate) fn definitions() -> &'static Definitions {
    static DEFINITIONS: std::sync::LazyLock<Definitions> = std::sync::LazyLock::new(|| {
        let mut definitions = Definitions::built_in();
        definitions.add([
            ("S_PLAIN.1.def", "uint32 a\nbool b\nfloat c\n"),
            ("S_LISTS.1.def", "skillid s\narray l\n- angle w\n- string t\nbytes b\n"),
            ("S_SYSTEM_MESSAGE.1.def", "string message\n"),
            ("protocol.1.map", "S_PLAIN = 5\nS_LISTS = 6\nS_SYSTEM_MESSAGE = 7\n"),
            ("sysmsg.1.map", "SMT_A = 0\nSMT_B = 1\n"),
        ]);
        definitions
    });
    &DEFINITIONS
}
