//! The lines that are sent to hooks.

use core::fmt::Write as _;

use worldwire_core::json::string;
use worldwire_core::value::push_hex;

use super::{Flags, MessageId, VERSION};

/// Writes the answer to a hello.
pub(crate) fn welcome(families: &[&str]) -> String {
    let families: Vec<_> = families.iter().map(|family| format!("\"{family}\"")).collect();
    let program = env!("CARGO_PKG_VERSION");
    format!(
        "{{\"type\":\"welcome\",\"version\":{VERSION},\"program\":\"worldwire {program}\",\
         \"families\":[{}]}}\n",
        families.join(",")
    )
}

/// Writes the line for a conversation that has begun.
pub(crate) fn opened(conversation: u64, family: &str, ends: Option<[String; 2]>) -> String {
    let mut line =
        format!("{{\"type\":\"opened\",\"conversation\":{conversation},\"family\":\"{family}\"");
    if let Some([client, server]) = ends {
        let _ = write!(line, ",\"client\":\"{client}\",\"server\":\"{server}\"");
    }
    line.push_str("}\n");
    line
}

/// Writes the line for a conversation that has ended.
pub(crate) fn closed(conversation: u64) -> String {
    format!("{{\"type\":\"closed\",\"conversation\":{conversation}}}\n")
}

/// Writes the confirmation that a conversation has handled all lines before a sync.
pub(crate) fn synced(conversation: u64, id: &str) -> String {
    let mut line = format!("{{\"type\":\"synced\",\"conversation\":{conversation},\"id\":");
    string(id, &mut line);
    line.push_str("}\n");
    line
}

/// Writes an error about a line or an answer.
pub(crate) fn error(id: Option<&str>, text: &str) -> String {
    let mut line = "{\"type\":\"error\"".to_owned();
    if let Some(id) = id {
        line.push_str(",\"id\":");
        string(id, &mut line);
    }
    line.push_str(",\"text\":");
    string(text, &mut line);
    line.push_str("}\n");
    line
}

/// Writes the beginning of a message, up to the comma before the members of its line of
/// `dissect --json`.
pub(crate) fn message_head<'s>(
    id: MessageId,
    subscriptions: impl Iterator<Item = &'s str>,
    flags: Flags<bool>,
    bytes: Option<&[u8]>,
    out: &mut String,
) {
    let conversation = id.conversation;
    let _ = write!(
        out,
        "{{\"type\":\"message\",\"id\":\"{id}\",\"conversation\":{conversation},\"subscriptions\":["
    );
    texts(subscriptions, out);
    out.push_str("],\"flags\":[");
    let Flags { modified, silenced, fake } = flags;
    let flags = [(modified, "modified"), (silenced, "silenced"), (fake, "fake")];
    texts(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name), out);
    out.push(']');
    if let Some(bytes) = bytes {
        out.push_str(",\"bytes\":\"");
        push_hex(out, bytes);
        out.push('"');
    }
}

/// Writes texts with commas between them.
pub(crate) fn texts<'s>(texts: impl Iterator<Item = &'s str>, out: &mut String) {
    for (index, text) in texts.enumerate() {
        if index > 0 {
            out.push(',');
        }
        string(text, out);
    }
}
