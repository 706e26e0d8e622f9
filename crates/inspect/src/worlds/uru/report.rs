//! The facts about the vault or an age that a message states.

use worldwire_core::json::{Style, write_node};
use worldwire_core::text::write_value;
use worldwire_core::{Limits, NodeRef, Tree, Value};
use worldwire_dissect::{Item, ItemBody, Scratch};

/// A named value, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedValue {
    pub(super) name: String,
    /// The game's name for a numbered field of a vault node.
    pub(super) game: Option<String>,
    pub(super) value: String,
}

/// An object in an age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    pub(super) name: String,
    /// The player whose avatar it belongs to; 0 for other objects.
    pub(super) player: u32,
    /// The number of the age in its location, and of its page.
    pub(super) location: (i64, i64),
}

/// A point: x, y, and z, the height.
pub(super) type Point = [f64; 3];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Report {
    /// A vault node, with only some of its fields unless it `is_whole`.
    Node {
        id: u32,
        fields: Vec<NamedValue>,
        is_whole: bool,
    },
    NodeDeleted(u32),
    /// References from parents to children.
    References(Vec<(u32, u32)>),
    Unreferenced(u32, u32),
    /// A client requested an age.
    AgeAsked {
        transaction: u64,
        name: String,
    },
    AgeFound {
        transaction: u64,
        host: u32,
    },
    Joined {
        host: u32,
    },
    Player {
        id: u32,
        name: String,
    },
    /// Variables of an object.
    State {
        object: ObjectId,
        descriptor: String,
        variables: Vec<NamedValue>,
        position: Option<Point>,
    },
    Moved {
        object: ObjectId,
        position: Point,
    },
}

/// The maximum length of a value, and of a name, in characters.
const MAX_VALUE: usize = 1000;
const MAX_NAME: usize = 200;
/// The maximum number of variables of a state, of fields of a node, and of players in a message.
const MAX_MEMBERS: usize = 1024;

/// The facts that an item states: none for items of other families and for most messages.
pub(super) fn reports(item: &Item<'_>, scratch: &mut Scratch) -> Vec<Report> {
    let name = &*scratch.name;
    let is_known = ["auth.", "game."].iter().any(|service| name.starts_with(service));
    if item.family != "uru" || !is_known || !matches!(item.body, ItemBody::Message(_)) {
        return Vec::new();
    }
    let name = name.to_owned();
    let tree = item.tree(core::mem::take(&mut scratch.tree).recycle(), &Limits::DEFAULT);
    let mut found = Vec::new();
    read(&name, &tree, &mut found);
    scratch.tree = tree.recycle();
    found
}

fn read(name: &str, tree: &Tree<'_>, found: &mut Vec<Report>) -> Option<()> {
    let number = |path: &str| number(tree.find(path)?);
    let transaction = || tree.find("fields.transId")?.unsigned();
    match name {
        "auth.VaultNodeFetched" => {
            let node = tree.find("fields.node")?;
            let id = self::number(node.child("NodeId")?)?;
            found.push(Report::Node { id, fields: fields(node), is_whole: true });
        }
        "auth.VaultNodeSave" => {
            let fields = fields(tree.find("fields.node")?);
            found.push(Report::Node { id: number("fields.nodeId")?, fields, is_whole: false });
        }
        "auth.VaultNodeCreated" => {
            let id = number("fields.nodeId").filter(|id| *id != 0)?;
            found.push(Report::Node { id, fields: Vec::new(), is_whole: false });
        }
        "auth.VaultNodeDeleted" => found.push(Report::NodeDeleted(number("fields.nodeId")?)),
        "auth.VaultNodeAdd" | "auth.VaultNodeAdded" => {
            let pair = (number("fields.parentId")?, number("fields.childId")?);
            found.push(Report::References(vec![pair]));
        }
        "auth.VaultNodeRemove" | "auth.VaultNodeRemoved" => {
            found.push(Report::Unreferenced(number("fields.parentId")?, number("fields.childId")?));
        }
        "auth.VaultNodeRefsFetched" => {
            let pair = |node: NodeRef<'_, '_>| {
                Some((
                    self::number(node.child("parentId")?)?,
                    self::number(node.child("childId")?)?,
                ))
            };
            let pairs = tree.find("fields.refs")?.children().filter_map(pair);
            found.push(Report::References(pairs.collect()));
        }
        "auth.AgeRequest" => {
            let name = name_in(tree.find("fields.ageName")?);
            found.push(Report::AgeAsked { transaction: transaction()?, name });
        }
        "auth.AgeReply" => {
            // A refused request has no host.
            let host = number("fields.ageMcpId").filter(|host| *host != 0)?;
            found.push(Report::AgeFound { transaction: transaction()?, host });
        }
        "auth.AcctPlayerInfo" => {
            let name = name_in(tree.find("fields.playerName")?);
            found.push(Report::Player { id: number("fields.playerId")?, name });
        }
        "game.JoinAgeRequest" => {
            found.push(Report::Joined { host: number("fields.ageMcpId")? });
        }
        _ if name.starts_with("game.PropagateBuffer") => {
            net_message(tree.find("fields.buffer.message")?, found);
        }
        _ => {}
    }
    Some(())
}

fn net_message(message: NodeRef<'_, '_>, found: &mut Vec<Report>) -> Option<()> {
    let members = message.child("members").into_iter().flat_map(|list| list.children());
    let own = message.child("member");
    for client in members.chain(own).take(MAX_MEMBERS).filter_map(|member| member.child("client")) {
        if let (Some(id), Some(name)) = (client.child("playerId"), client.child("playerName"))
            && let Some(id) = number(id)
        {
            found.push(Report::Player { id, name: name_in(name) });
        }
    }
    let stream = message.child("stream")?;
    if let Some(payload) = stream.child("payload") {
        let rows = payload.child("matrix")?.child("rows")?;
        let floats: Vec<f64> = rows.children().filter_map(float).collect();
        let at = |index: usize| floats.get(index).copied();
        let position = finite([at(3)?, at(7)?, at(11)?])?;
        let receivers = payload.child("receivers")?.children().take(MAX_MEMBERS);
        let receivers =
            receivers.filter_map(|receiver| object(receiver.child("uoid").unwrap_or(receiver)));
        found.extend(receivers.map(|object| Report::Moved { object, position }));
        return None;
    }
    let object = object(message.child("object")?)?;
    let sdl = stream.child("sdl")?;
    let (descriptor, variables, position) = match sdl.child("state") {
        Some(state) => {
            let variables = state.child("variables")?;
            let position = variables.child("position").and_then(|it| point(it.child("value")?));
            let descriptor = name_in(state.child("descriptor")?);
            let values = variables.children().take(MAX_MEMBERS).map(variable).collect();
            (descriptor, values, position)
        }
        // Without descriptors, the state is only bytes.
        None => {
            let bytes = sdl.child("bytes").unwrap_or(sdl);
            let value = shown(bytes);
            (String::new(), vec![NamedValue { name: "bytes".to_owned(), game: None, value }], None)
        }
    };
    found.push(Report::State { object, descriptor, variables, position });
    Some(())
}

fn object(node: NodeRef<'_, '_>) -> Option<ObjectId> {
    let name = name_in(node.child("name")?);
    let player = node.child("clonerId").and_then(number).unwrap_or_default();
    let location = node.child("location")?;
    let part = |name: &str| location.child(name).and_then(signed).unwrap_or_default();
    Some(ObjectId { name, player, location: (part("age"), part("page")) })
}

/// The fields of a vault node. The trace shows numbered fields a second time, under the game's names.
fn fields(node: NodeRef<'_, '_>) -> Vec<NamedValue> {
    let mut found: Vec<NamedValue> = Vec::new();
    let mut place = None;
    for child in node.children().take(MAX_MEMBERS) {
        let own = (child.layer(), child.places());
        match found.last_mut() {
            Some(last) if place == Some(own) => last.game = Some(child.name().to_owned()),
            _ => {
                let name = child.name().to_owned();
                found.push(NamedValue { name, game: None, value: shown(child) });
            }
        }
        place = Some(own);
    }
    found
}

fn variable(node: NodeRef<'_, '_>) -> NamedValue {
    let value = match node.child("value") {
        Some(value) => shown(value),
        None => "(default)".to_owned(),
    };
    NamedValue { name: node.name().to_owned(), game: None, value }
}

/// The name of a player, age, object or descriptor.
fn name_in(node: NodeRef<'_, '_>) -> String {
    node.text().unwrap_or_default().chars().take(MAX_NAME).collect()
}

/// A value as text: texts as they are, lists as JSON if they are short.
fn shown(node: NodeRef<'_, '_>) -> String {
    let mut out = String::new();
    match node.text() {
        Some(text) => out.extend(text.chars().take(MAX_VALUE)),
        None if let Value::Enum(number, names) = node.value()
            && let Some(name) = names.name(number) =>
        {
            out.push_str(name);
        }
        None if node.value().is_container() && node.bytes().len() <= MAX_VALUE => {
            write_node(node, Style { safe: true }, &mut out);
        }
        None => write_value(node, MAX_VALUE, &mut out),
    }
    if out.len() > 4 * MAX_VALUE {
        out = out.chars().take(MAX_VALUE).chain(['…']).collect();
    }
    out
}

fn number(node: NodeRef<'_, '_>) -> Option<u32> {
    u32::try_from(node.unsigned()?).ok()
}

fn signed(node: NodeRef<'_, '_>) -> Option<i64> {
    match node.value() {
        Value::Signed(number) => Some(number),
        _ => i64::try_from(node.unsigned()?).ok(),
    }
}

fn float(node: NodeRef<'_, '_>) -> Option<f64> {
    match node.value() {
        Value::F32(value) => Some(value.into()),
        Value::F64(value) => Some(value),
        _ => None,
    }
}

fn point(node: NodeRef<'_, '_>) -> Option<Point> {
    let mut floats = node.children().map(float);
    let point = [floats.next()??, floats.next()??, floats.next()??];
    if floats.next().is_some() { None } else { finite(point) }
}

fn finite(point: Point) -> Option<Point> {
    point.iter().all(|part| part.is_finite()).then_some(point)
}
