//! The fields of a message, with replacements.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use worldwire_core::json::{Style, hex, string, write_node};
use worldwire_core::value::{Content, guid_text, parse_guid};
use worldwire_core::{Form, NodeRef, Tree, Value};
use worldwire_uru::vault::FIELD_NAMES;

use super::pseudonyms::{Found, Pseudonyms};

/// Fields whose texts belong to the game and are kept, except for players' names in them: names of
/// files, ages, zones and classes, and IDs of products and games. An entry names a field, or a
/// field and the one that contains it.
const KEPT: &[&str] = &[
    "AgeFilename",
    "AgeInstName",
    "AgeName",
    "CreateAgeName",
    "DataRevision",
    "ListFileName",
    "Locale",
    "Location",
    "Revision",
    "Version",
    "ZoneName",
    "age",
    "ageFileName",
    "ageFilename",
    "ageInstanceName",
    "ageName",
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
    "instanceName",
    "md5",
    "md5compressed",
    "object.name",
    "opcode",
    "os",
    "parentAgeFilename",
    "path",
    "productId",
    "sky",
    "system.name",
    "values.key",
    "worlds.name",
];
/// Numbers that identify accounts, players, characters, their vault nodes and scores, computers and
/// sessions. Entries are like those of [`KEPT`]. The numbered fields of vault nodes are replaced if
/// their meaning is unknown.
const IDENTITIES: &[&str] = &[
    "AgeCzarId",
    "AgeId",
    "CharID",
    "CharacterID",
    "CreatorId",
    "MachineID",
    "NodeId",
    "PlayerId",
    "UInt32_1",
    "UInt32_2",
    "UInt32_3",
    "UInt32_4",
    "UserID",
    "accountId",
    "ageInfoId",
    "ageInfoNodeId",
    "ageNodeId",
    "ccrPlayerId",
    "characterId",
    "characterUid",
    "characters.id",
    "childId",
    "clonerId",
    "data.id",
    "destScoreId",
    "initiator",
    "initiatorId",
    "invitee",
    "inviter",
    "nodeId",
    "nodeIds",
    "offeree",
    "originatingPlayerId",
    "owner",
    "ownerId",
    "pageId",
    "parentFolderId",
    "parentId",
    "player",
    "playerId",
    "receiverId",
    "receivers",
    "scoreId",
    "sessionId",
    "srcScoreId",
    "userId",
    "winner",
];
/// Fields whose texts are names, which can also occur in other texts.
const NAMES: [&str; 6] = ["name", "account", "author", "user", "handle", "player"];
/// Exceptions from [`NAMES`]: names that owners give to ages. Their words also occur in other names
/// of ages, which are kept. Entries are like those of [`KEPT`].
const AGES: &[&str] = &["AgeUserDefinedName", "ageInfo.userName", "ageUserName", "ages.userName"];
/// A number that is an IPv4 address, in the order of its bytes.
const ADDRESS: &str = "srcAddr";
/// The encrypted part of KI's logins, which may have been decrypted with the user's passwords.
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
pub(super) fn replaced(
    tree: &Tree<'_>,
    family: &str,
    opened: Opened,
    pseudonyms: &Pseudonyms,
) -> String {
    let writer = Writer { family, opened, pseudonyms };
    let mut out = String::new();
    match tree.find("fields") {
        Some(fields) => writer.node(fields, ["", "fields"], &mut out),
        None => writer.record(tree.roots(), "", &mut out),
    }
    out
}

/// Whether two trees have the same fields, regardless of their values. A format inside a field
/// counts as one value, unless it contains such fields itself.
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
    if let Some(address) = numeric_address(node) {
        found.add_address(address.into());
    }
    let Some(Content::Text(text)) = node.content() else { return };
    if let Some(address) = address(&text) {
        found.add_address(address);
    } else if !is_kept(path) && !is_listed(AGES, path) && parse_guid(&text).is_none() {
        let field = path[1].to_lowercase();
        if NAMES.iter().any(|name| field.contains(name)) {
            found.add_name(&text);
        }
    }
}

struct Writer<'w> {
    family: &'w str,
    opened: Opened,
    pseudonyms: &'w Pseudonyms,
}

impl Writer<'_> {
    /// Writes a node. The path consists of the name of the enclosing field and its own name.
    fn node(&self, node: NodeRef<'_, '_>, path: [&str; 2], out: &mut String) {
        match node.value() {
            // Write the bytes without the format inside. Encoding computes their length.
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
            Value::Unsigned(number) | Value::Hex(number)
                if is_listed(IDENTITIES, path) || self.is_wide_id(node, number) =>
            {
                out.push_str(&self.pseudonyms.number(number).to_string());
            }
            Value::Unsigned(_) if let Some(old) = numeric_address(node) => {
                let new = self.pseudonyms.address(old.into());
                out.push_str(&u32::from_le_bytes(new.octets()).to_string());
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
        let (mut children, mut count, mut again) = (children.peekable(), 0, "");
        while let Some(child) = children.next() {
            if !again.is_empty() && again == child.name() {
                again = "";
                continue;
            }
            if count > 0 {
                out.push(',');
            }
            count += 1;
            string(child.name(), out);
            out.push(':');
            // A field with the game's name follows. It shows the field's meaning and has the same
            // value.
            let next = children.peek().map_or("", NodeRef::name);
            again = if is_named_again(child.name(), next) { next } else { "" };
            let name = if again.is_empty() { child.name() } else { again };
            self.node(child, [parent, name], out);
        }
        out.push('}');
    }

    /// Whether an eight-byte number is an ID: in KI, of a character or object; in TERA, also of an
    /// item. Fields with such IDs have many names.
    fn is_wide_id(&self, node: NodeRef<'_, '_>, number: u64) -> bool {
        let is_large = number > u64::from(u32::MAX);
        let is_id = match self.family {
            "ki" => is_large,
            "tera" => is_large || node.name() == "gameId",
            _ => false,
        };
        is_id && node.raw().len() == size_of::<u64>()
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

/// The child of an opened field that contains the field's bytes.
const BYTES: &str = "bytes";
/// Separates the parameters of TERA's system messages.
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

/// Whether such a node is among a node's descendants.
fn has_opened(node: NodeRef<'_, '_>) -> bool {
    node.children().any(|child| is_opened(child) || has_opened(child))
}

/// Whether a vault node's numbered field is followed by the same field under the game's name.
fn is_named_again(numbered: &str, name: &str) -> bool {
    FIELD_NAMES.iter().any(|(_, names)| names.contains(&(name, numbered)))
}

/// The address in a numeric field.
fn numeric_address(node: NodeRef<'_, '_>) -> Option<Ipv4Addr> {
    let number = node.unsigned().filter(|_| node.name() == ADDRESS)?;
    u32::try_from(number).ok().map(|number| number.to_le_bytes().into())
}

fn is_kept(path: [&str; 2]) -> bool {
    path[1].starts_with('$') || is_listed(KEPT, path)
}

/// Whether a list has an entry for a field, alone or with the enclosing field.
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
    use worldwire_core::Field as _;
    use worldwire_uru::types::TermStr;
    use worldwire_uru::vault::VaultNode;

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
        assert!(KEPT.is_sorted() && IDENTITIES.is_sorted() && AGES.is_sorted());
    }

    /// A node and its sanitized version.
    fn vault_node(json: &str) -> [VaultNode<'static>; 2] {
        let json = worldwire_core::json::parse(json).expect("JSON");
        let node = VaultNode::from_named_json((&json).into()).expect("a node");
        let mut writer = worldwire_core::Writer::new();
        node.encode(&mut writer).expect("a node");
        let bytes = writer.into_bytes();
        let mut reader = worldwire_core::Reader::traced("node", &bytes, Tree::new());
        let outcome = VaultNode::decode_named(&mut reader);
        let (tree, outcome) = reader.conclude(outcome);
        outcome.expect("a node");
        let mut found = Found::default();
        collect(&tree, &mut found);
        found.add_name("Yeesha");
        let pseudonyms = Pseudonyms::new([7; 32], &found);
        let new = replaced(&tree, "uru", Opened::Inside, &pseudonyms);
        let new = worldwire_core::json::parse(&new).expect("JSON");
        let new = VaultNode::from_named_json((&new).into()).expect("a node");
        [node.into_owned(), new.into_owned()]
    }

    /// The game's names decide how numbered fields are treated.
    #[test]
    fn fields_of_vault_nodes_agree_with_their_names() {
        let json = r#"{"NodeId":20001,"CreateAgeName":"Fernhollow","NodeType":"AgeInfo",
            "UInt32_1":20002,"UInt32_2":10190,"UInt32_3":4711,"String64_2":"Fernhollow",
            "String64_3":"Lobby","String64_4":"Yeesha's Lobby"}"#;
        let [node, new] = vault_node(json);
        let pseudonyms = Pseudonyms::new([7; 32], &Found::default());
        let text = |text: &Option<TermStr<'_>>| text.as_ref().map(TermStr::to_text);
        assert_eq!(text(&new.create_age_name), text(&node.create_age_name));
        assert_eq!(text(&new.string64_2), text(&node.string64_2));
        assert_eq!(text(&new.string64_3), text(&node.string64_3));
        assert_ne!(text(&new.string64_4), text(&node.string64_4));
        let number = |number: u32| u32::try_from(pseudonyms.number(number.into())).ok();
        assert_eq!((new.node_id, new.uint32_1), (number(20_001), number(20_002)));
        // The last one contains the age's flags.
        assert_eq!((new.uint32_2, new.uint32_3), (number(10_190), Some(4711)));
        // A field that shows text instead of bytes under its second name.
        let [node, new] = vault_node(r#"{"NodeType":"AgeLink","AgeSpawnPoints":"a:b:;"}"#);
        assert_ne!(new.blob_1, node.blob_1);
        assert_eq!(new.blob_1.expect("it is there").len(), 5);
    }

    #[test]
    fn addresses_in_numbers_are_replaced() {
        let old = Ipv4Addr::new(192, 0, 2, 1);
        let bytes = u32::from_le_bytes(old.octets()).to_le_bytes();
        let mut reader = worldwire_core::Reader::traced("x", &bytes, Tree::new());
        let outcome = reader.u32(ADDRESS);
        let (tree, _) = reader.conclude(outcome);
        let mut found = Found::default();
        collect(&tree, &mut found);
        let pseudonyms = Pseudonyms::new([7; 32], &found);
        let new = replaced(&tree, "uru", Opened::Inside, &pseudonyms);
        let number = u32::from_le_bytes(pseudonyms.address(old.into()).octets());
        assert_eq!(new, format!("{{\"srcAddr\":{number}}}"));
        assert_ne!(number.to_le_bytes(), bytes);
    }
}
