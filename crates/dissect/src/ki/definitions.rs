//! Reads files that define messages, and hints about objects in their fields.

use std::sync::LazyLock;

use worldwire_core::Diagnostic;
use worldwire_ki::object::Hints;
use worldwire_ki::schema::{Mode, Protocols};

use super::objects::KiObjects;
use crate::knowledge::Definitions;

/// KI's definitions of messages.
pub(crate) fn protocols(definitions: &Definitions) -> &Protocols {
    static NONE: LazyLock<Protocols> = LazyLock::new(Protocols::new);
    definitions.get_ref::<Protocols>().unwrap_or_else(|| &NONE)
}

/// Whether a file of this name can hold message XML or hints.
pub(super) fn may_define(name: &str) -> bool {
    ends(name, "xml") || ends(name, "toml")
}

/// Reads message XML and hints.
pub(super) fn define(
    files: &[(&str, &[u8])],
    definitions: &mut Definitions,
) -> Option<Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut found = false;
    for (name, bytes) in files {
        if is_message_xml(name, bytes) {
            found = true;
            diagnostics.extend(
                definitions.edit(|known: &mut Protocols| known.add(name, bytes, Mode::Lenient)),
            );
        } else if let Some(text) = hints(name, bytes) {
            found = true;
            diagnostics
                .extend(definitions.edit(|known: &mut KiObjects| known.add_hints(name, text)));
        }
    }
    if !found {
        return None;
    }
    // New messages can change which fields the hints apply to.
    let mut objects = definitions.get_ref::<KiObjects>().cloned().unwrap_or_default();
    objects.resolve(protocols(definitions));
    definitions.set(objects);
    Some(diagnostics)
}

/// Whether a file is message XML.
fn is_message_xml(name: &str, bytes: &[u8]) -> bool {
    ends(name, "xml") && bytes.windows(13).any(|window| window == b"_ProtocolInfo")
}

/// The text of a file with hints about message fields.
fn hints<'b>(name: &str, bytes: &'b [u8]) -> Option<&'b str> {
    let text = str::from_utf8(bytes).ok().filter(|_| ends(name, "toml"))?;
    Hints::is_in(text).then_some(text)
}

fn ends(name: &str, ending: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case(ending))
}
