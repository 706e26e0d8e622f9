//! The fields of a message, with replacements.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use worldwire_core::json::{Style, hex, string, write_node};
use worldwire_core::value::{Content, guid_text, parse_guid};
use worldwire_core::{Form, NodeRef, Tree, Value};

use super::pseudonyms::{Found, Pseudonyms};

/// Fields whose texts belong to the game and are kept, except for players' names in them: names of
/// files, ages, zones and classes, and IDs of products and games. An entry names a field, or a
/// field and the one around it.
const KEPT: &[&str] = &[
    "DataRevision",
    "ListFileName",
    "Locale",
    "Location",
    "Revision",
    "Version",
    "ZoneName",
    "ageFilename",
    "avatar.name",
    "class",
    "clientName",
    "create.object",
    "directory",
    "downloadName",
    "extension",
    "filename",
    "files.name",
    "gameName",
    "gameType",
    "group",
    "md5",
    "md5compressed",
    "object.name",
    "opcode",
    "os",
    "path",
    "productId",
    "sky",
    "system.name",
    "values.key",
    "worlds.name",
];
/// Numbers that identify accounts, characters, computers and sessions. Entries are like those of
/// [`KEPT`].
const IDENTITIES: &[&str] = &[
    "CharID",
    "CharacterID",
    "MachineID",
    "UserID",
    "accountId",
    "characterId",
    "characterUid",
    "characters.id",
    "data.id",
    "sessionId",
    "userId",
];
/// Fields whose texts are names, which can also occur in other texts.
const NAMES: [&str; 6] = ["name", "account", "author", "user", "handle", "player"];
/// The encrypted part of KI's logins, which the user's passwords may have opened.
const SEALED: &[&str] = &["Rec1"];

/// What to write for a field that another format describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// The values inside.
    Inside,
    /// Bytes without a meaning, unless other such fields are inside.
    Bytes,
}

/// The JSON of a message's fields, with replacements.
pub(super) fn replaced(tree: &Tree<'_>, opened: Opened, pseudonyms: &Pseudonyms) -> String {
    let writer = Writer { opened, pseudonyms };
    let mut out = String::new();
    match tree.find("fields") {
        Some(fields) => writer.node(fields, ["", "fields"], &mut out),
        None => writer.record(tree.roots(), "", &mut out),
    }
    out
}

/// Whether two trees have the same fields, regardless of their values. A format inside a field is
/// one value, unless it contains such fields itself.
pub(super) fn have_same_fields(old: &Tree<'_>, new: &Tree<'_>) -> bool {
    fn alike(old: NodeRef<'_, '_>, new: NodeRef<'_, '_>) -> bool {
        if old.name() != new.name() {
            return false;
        }
        if is_opened(old) && !has_opened(old) {
            return true;
        }
        match (old.value(), new.value()) {
            (Value::Record, Value::Record) | (Value::List, Value::List) => {
                let (olds, mut news) = (old.children(), new.children());
                olds.into_iter().all(|old| news.next().is_some_and(|new| alike(old, new)))
                    && news.next().is_none()
            }
            (old, new) => !old.is_container() && !new.is_container(),
        }
    }
    let (olds, mut news) = (old.roots(), new.roots());
    olds.into_iter().all(|old| news.next().is_some_and(|new| alike(old, new)))
        && news.next().is_none()
}

/// Collects the names and addresses in a message.
pub(super) fn collect(tree: &Tree<'_>, found: &mut Found) {
    tree.roots().for_each(|node| collect_from(node, ["", node.name()], found));
}

fn collect_from(node: NodeRef<'_, '_>, path: [&str; 2], found: &mut Found) {
    for child in node.children() {
        collect_from(child, inside(path, node, child), found);
    }
    let Some(Content::Text(text)) = node.content() else { return };
    if let Some(address) = address(&text) {
        found.add_address(address);
    } else if !is_kept(path) && parse_guid(&text).is_none() {
        let field = path[1].to_lowercase();
        if NAMES.iter().any(|name| field.contains(name)) {
            found.add_name(&text);
        }
    }
}

struct Writer<'w> {
    opened: Opened,
    pseudonyms: &'w Pseudonyms,
}

impl Writer<'_> {
    /// Writes a node. The path consists of the name of the field around it and its own.
    fn node(&self, node: NodeRef<'_, '_>, path: [&str; 2], out: &mut String) {
        match node.value() {
            // Without the format inside. The length is computed when it is encoded.
            Value::Record if SEALED.contains(&path[1]) => match node.child(BYTES) {
                Some(bytes) => self.node(bytes, path, out),
                None => hex(&self.pseudonyms.blob(node.raw()), out),
            },
            Value::Span(span) if SEALED.contains(&path[1]) => {
                hex(&self.pseudonyms.blob(node.span(span)), out);
            }
            Value::Record if is_opened(node) => match self.opened {
                Opened::Inside => {
                    let inside = node.children().filter(|child| child.name() != BYTES);
                    self.record(inside, path[1], out);
                }
                Opened::Bytes if has_opened(node) => {
                    let inside = node.children().filter(|child| child.name() != BYTES);
                    self.record(inside, path[1], out);
                }
                Opened::Bytes => match node.child(BYTES) {
                    Some(bytes) => self.node(bytes, path, out),
                    None => hex(&self.pseudonyms.blob(node.raw()), out),
                },
            },
            Value::Record => self.record(node.children(), path[1], out),
            Value::List => {
                out.push('[');
                for (index, child) in node.children().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.node(child, inside(path, node, child), out);
                }
                out.push(']');
            }
            Value::Span(span) => match span.form.read(node.span(span)) {
                Content::Bytes(bytes) => hex(&self.pseudonyms.blob(&bytes), out),
                Content::Text(text) => string(&self.text(&text, span.form, path), out),
            },
            Value::Unsigned(number) | Value::Hex(number) if is_listed(IDENTITIES, path) => {
                out.push_str(&self.pseudonyms.number(number).to_string());
            }
            _ => write_node(node, Style::default(), out),
        }
    }

    fn record<'t, 'n: 't>(
        &self,
        children: impl Iterator<Item = NodeRef<'t, 'n>>,
        parent: &str,
        out: &mut String,
    ) {
        out.push('{');
        for (index, child) in children.enumerate() {
            if index > 0 {
                out.push(',');
            }
            string(child.name(), out);
            out.push(':');
            self.node(child, [parent, child.name()], out);
        }
        out.push('}');
    }

    fn text(&self, text: &str, form: Form, path: [&str; 2]) -> String {
        let id = parse_guid(text).filter(|_| form == Form::Guid || is_guid(text));
        if let Some(id) = id {
            if is_kept(path) {
                return text.to_owned();
            }
            let new = guid_text(&self.pseudonyms.guid(&id));
            return if text.contains(char::is_uppercase) { new.to_uppercase() } else { new };
        }
        if let Ok(end) = text.parse::<SocketAddr>() {
            return self.pseudonyms.end(end).to_string();
        }
        if let Some(address) = address(text) {
            return self.pseudonyms.address(address).to_string();
        }
        if is_kept(path) && !has_address(text) {
            return self.pseudonyms.kept_text(text);
        }
        // TERA's system messages: the number, and the names and values of parameters.
        if text.starts_with('@') && text.contains(SEPARATOR) {
            let part = |(index, part): (usize, &str)| match index > 0 && index % 2 == 0 {
                true => self.pseudonyms.text(part),
                false => part.to_owned(),
            };
            let parts: Vec<String> = text.split(SEPARATOR).enumerate().map(part).collect();
            return parts.join(&SEPARATOR.to_string());
        }
        self.pseudonyms.text(text)
    }
}

/// The child of an opened field with its bytes.
const BYTES: &str = "bytes";
/// Between the parameters of TERA's system messages.
const SEPARATOR: char = '\u{b}';

/// The path of a child. The elements of a list have the path of the list.
fn inside<'p>(path: [&'p str; 2], node: NodeRef<'_, 'p>, child: NodeRef<'_, 'p>) -> [&'p str; 2] {
    match node.value() {
        Value::List => path,
        _ => [path[1], child.name()],
    }
}

/// Whether a node shows a field's bytes and the format inside them.
fn is_opened(node: NodeRef<'_, '_>) -> bool {
    matches!(node.value(), Value::Record)
        && node.children().nth(1).is_some()
        && node
            .children()
            .next()
            .is_some_and(|child| child.name() == BYTES && matches!(child.value(), Value::Span(_)))
}

/// Whether such a node is inside another.
fn has_opened(node: NodeRef<'_, '_>) -> bool {
    node.children().any(|child| is_opened(child) || has_opened(child))
}

fn is_kept(path: [&str; 2]) -> bool {
    path[1].starts_with('$') || is_listed(KEPT, path)
}

/// Whether a list has an entry for a field, alone or with the field around it.
fn is_listed(list: &[&str], [parent, name]: [&str; 2]) -> bool {
    list.iter().any(|listed| match listed.split_once('.') {
        Some((around, own)) => around == parent && own == name,
        None => *listed == name,
    })
}

fn is_guid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Whether a text contains an address.
fn has_address(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut parts = text.split(|c| !is_part(c));
    let v4 = |part: &str| part.split(':').any(|it| it.parse::<Ipv4Addr>().is_ok());
    parts.any(|part| v4(part) || part.len() > 2 && part.parse::<Ipv6Addr>().is_ok())
}

/// An address, alone in a text.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_game_are_kept() {
        assert!(is_kept(["fields", "ZoneName"]) && is_kept(["object", "name"]));
        assert!(is_kept(["x", "$class"]));
        assert!(!is_kept(["fields", "name"]) && !is_kept(["fields", "accountName"]));
    }

    #[test]
    fn addresses_are_found_inside_texts() {
        for text in ["http://192.0.2.1/x", "192.0.2.1:80", "at 2001:db8::1, port 5"] {
            assert!(has_address(text), "{text}");
        }
        for text in ["dat\\Teledahn.age", "V_r000001.Made_Up", "1.2.3", "a::b c", ""] {
            assert!(!has_address(text) || text == "a::b c", "{text}");
        }
    }

    #[test]
    fn lists_are_sorted() {
        assert!(KEPT.is_sorted() && IDENTITIES.is_sorted());
    }
}
