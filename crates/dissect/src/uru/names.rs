//! Uru's vocabulary.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use worldwire_core::{ClassInfo, Classes, FieldInfo, Messages, Names, Record, Side};
use worldwire_uru::connect::{BuildType, ConnectionType, SetupType, SimpleNetChannel};
use worldwire_uru::file::manifest::{FileListEntry, ManifestEntry, ManifestFlags};
use worldwire_uru::frame::{Service, table};
use worldwire_uru::games::GameScope;
use worldwire_uru::games::message::any::server::InviteError;
use worldwire_uru::games::message::climbing_wall::WallReady;
use worldwire_uru::games::message::heek::{HeekChoice, HeekCountdown, HeekLight, HeekSequence};
use worldwire_uru::games::message::manager::client::ClientMessage;
use worldwire_uru::games::message::manager::{GameOptions, GameResult};
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::tic_tac_toe::server::TicTacToeResult;
use worldwire_uru::games::message::{MarkerParams, TicTacToeParams, tables as game_tables};
use worldwire_uru::message::{AccountFlags, Caps, NetAgeInfo, NodeRef, Rank, Score};
use worldwire_uru::net_message::{
    CLASSES, Compression, GroupOwnership, MemberFlags, MemberInfo, NetClassInfo, NetClassLayout,
    NetFlags, NetMessage, PageFlags, Room, SharedVariable, VoiceFlags,
};
use worldwire_uru::plasma_message::{
    AgeInfo, AgeInfoFlags, AgeLink, AvatarObject, BroadcastFlags, CcrCommType, ChatFlags,
    InputState, KiCommand, MultiStageEventKind, NotifyEvent, OfferBookKind, PlasmaMessage,
    ReplyType, SpawnPointInfo, StageState, VariableKind,
};
use worldwire_uru::types::{
    ClassIndex, ClientGuid, ClientGuidFlags, GenericType, Location, LocationFlags, Matrix44,
    NetError, NetGroupFlags, NetGroupId, UnifiedTime,
};
use worldwire_uru::vault::{FIELD_NAMES, NodeType, StandardFolder, VaultNode};

use super::definitions::UruDefinitions;
use super::game_manager;
use super::players::FIELDS;
use crate::vocabulary::{ClassRow, MessageNames, ValueKind, ValueNames, common_kinds};

/// The names of connect and setup packets, which precede all messages.
const SETUP_NAMES: [&str; 9] = [
    "connect.CliToAuth",
    "connect.CliToGame",
    "connect.CliToFile",
    "connect.CliToCsr",
    "connect.SimpleNet",
    "connect.CliToGateKeeper",
    "setup.Connect",
    "setup.Encrypt",
    "setup.Error",
];
/// The fields of connect and setup packets.
const SETUP: &[&str] = &[
    "connType",
    "headerBytes",
    "buildId",
    "buildType",
    "branchId",
    "productId",
    "dataBytes",
    "token",
    "accountId",
    "ageInstanceId",
    "realBuildId",
    "serverType",
    "channel",
    "type",
    "byteCount",
    "y",
    "seed",
    "error",
];

/// The types whose values have names, by the name that layouts use.
pub(super) const NAMED: &[(&str, &Names)] = &[
    ("NetError", NetError::NAMES),
    ("AccountFlags", AccountFlags::NAMES),
    ("NodeType", NodeType::NAMES),
    ("StandardFolder", StandardFolder::NAMES),
    ("BuildType", BuildType::NAMES),
    ("ConnectionType", ConnectionType::NAMES),
    ("SimpleNetChannel", SimpleNetChannel::NAMES),
    ("ClassIndex", ClassIndex::NAMES),
    ("LocationFlags", LocationFlags::NAMES),
    ("AgeInfoFlags", AgeInfoFlags::NAMES),
    ("BroadcastFlags", BroadcastFlags::NAMES),
    ("CcrCommType", CcrCommType::NAMES),
    ("ChatFlags", ChatFlags::NAMES),
    ("ClientGuidFlags", ClientGuidFlags::NAMES),
    ("InputState", InputState::NAMES),
    ("KiCommand", KiCommand::NAMES),
    ("MemberFlags", MemberFlags::NAMES),
    ("MultiStageEventKind", MultiStageEventKind::NAMES),
    ("NetFlags", NetFlags::NAMES),
    ("NetGroupFlags", NetGroupFlags::NAMES),
    ("OfferBookKind", OfferBookKind::NAMES),
    ("PageFlags", PageFlags::NAMES),
    ("ReplyType", ReplyType::NAMES),
    ("VariableKind", VariableKind::NAMES),
    ("VoiceFlags", VoiceFlags::NAMES),
    ("GameOptions", GameOptions::NAMES),
    ("GameResult", GameResult::NAMES),
    ("HeekChoice", HeekChoice::NAMES),
    ("HeekCountdown", HeekCountdown::NAMES),
    ("HeekLight", HeekLight::NAMES),
    ("HeekSequence", HeekSequence::NAMES),
    ("InviteError", InviteError::NAMES),
    ("MarkerGameType", MarkerGameType::NAMES),
    ("TicTacToeResult", TicTacToeResult::NAMES),
    ("WallReady", WallReady::NAMES),
];
/// Fields of messages inside others that no table lists and whose values have names.
const NAMED_GAME: [(&str, &Names); 8] = [
    ("game", GameScope::NAMES),
    ("messageId", <ClientMessage<'static> as Messages<'static>>::NAMES),
    ("class", NetMessage::NAMES),
    ("class", PlasmaMessage::NAMES),
    ("class", AvatarObject::NAMES),
    ("class", NotifyEvent::NAMES),
    ("compression", Compression::NAMES),
    ("type", GenericType::NAMES),
];
/// Fields of messages inside others that no table lists and whose values have no names.
const GAME: &[&str] = &[
    "message",
    "bytes",
    "uncompressedLength",
    "data",
    "payload",
    "sdl",
    "sharedState",
    "serverMayDelete",
    "variables",
    "frames",
    "trailing",
    "head",
    "packet",
    "major",
    "minor",
    "words",
    "bits",
    "classIndex",
    "objectId",
    "age",
    "page",
    "loadMask",
    "quality",
    "capability",
    "cloneId",
    "cloneFiller",
    "clonerId",
    "present",
    "high",
    "terminator",
    "form",
    "extra",
    "inverted",
];
/// Numbers that no table lists, in the head of messages to and from the game manager.
const MANAGER_NUMBERS: [&str; 3] = ["transId", "gameId", "size"];
/// The other fields of these messages that no table lists.
const MANAGER: [&str; 3] = ["fields", "body", "filler"];
/// The parts of an object state other than its variables.
const STATE: &[&str] = &[
    "state",
    "stateHead",
    "descriptor",
    "recordFlags",
    "hint",
    "notification",
    "time",
    "value",
    "length",
    "elements",
    "index",
    "simpleOrder",
    "nestedOrder",
    "text",
    "deadMemory",
];
/// The parts of a simple variable.
pub(super) const SIMPLE_VARIABLE: &[&str] =
    &["head", "notification", "hint", "flags", "time", "length", "elements", "index", "value"];
/// Setup fields whose values have names.
const NAMED_SETUP: [(&str, &Names); 5] = [
    ("channel", SimpleNetChannel::NAMES),
    ("connType", ConnectionType::NAMES),
    ("buildType", BuildType::NAMES),
    ("type", SetupType::NAMES),
    ("error", NetError::NAMES),
];

/// Every message, connect packet and setup packet.
pub(super) fn messages(states: &UruDefinitions) -> Vec<MessageNames<'_>> {
    let names = |fields: Vec<FieldInfo>| fields.into_iter().map(|field| field.name);
    let game = GAME.iter().copied().chain(NAMED_GAME.map(|(name, _)| name));
    let game = game.chain(STATE.iter().copied()).chain(states.variables());
    let inner: BTreeSet<&str> = parts().into_iter().flat_map(names).chain(game).collect();
    let manager = MANAGER_NUMBERS.into_iter().chain(MANAGER);
    let managed = manager.chain(game_parts().into_iter().flatten().map(|field| field.name));
    let managed: BTreeSet<&str> = inner.iter().copied().chain(managed).collect();
    // Vectors, because a vector is copied much faster than a set is read.
    let [inner, managed] = [inner, managed].map(|names| names.into_iter().collect::<Vec<_>>());
    let mut all = Vec::new();
    for service in Service::ALL {
        let messages = Side::BOTH.into_iter().flat_map(|side| table(service, side).messages);
        all.extend(messages.map(|message| {
            let inner = if message.name == "GameMgrMsg" { &managed } else { &inner };
            MessageNames {
                name: format!("{}.{}", service.name(), message.name),
                fields: names((message.fields)()).collect(),
                inner: inner.clone(),
                is_complete: true,
            }
        }));
    }
    all.extend(SETUP_NAMES.map(|name| MessageNames {
        name: name.to_owned(),
        fields: SETUP.to_vec(),
        inner: SETUP.to_vec(),
        is_complete: true,
    }));
    all
}

/// State variables, which are records with a `value`. Excludes names that another field also has.
pub(super) fn holders(states: &UruDefinitions) -> Vec<(&str, &'static str)> {
    let names = |fields: Vec<FieldInfo>| fields.into_iter().map(|field| field.name);
    let game = GAME.iter().copied().chain(NAMED_GAME.map(|(name, _)| name));
    let game = game.chain(STATE.iter().copied()).chain(MANAGER_NUMBERS).chain(MANAGER);
    let parts = parts().into_iter().chain(game_parts());
    let others: BTreeSet<&str> = parts.flat_map(names).chain(game).collect();
    let own = states.simple_variables().filter(|name| !others.contains(name));
    own.map(|name| (name, "value")).collect()
}

/// The names of messages inside others: net messages, Plasma messages and messages of games.
pub(super) fn inside() -> Vec<&'static str> {
    let classes = [NetMessage::NAMES, PlasmaMessage::NAMES];
    let classes = classes.into_iter().flat_map(Names::iter).map(|it| it.1);
    classes.chain(game_manager::names()).collect()
}

/// Fields that are always plain numbers, or always text.
pub(super) fn kinds() -> Vec<(&'static str, ValueKind)> {
    let kind = |field: &FieldInfo| match &*field.layout {
        "u8" | "u16" | "u32" | "u64" | "i32" | "f32" | "f64" | "u32 TransId" => {
            Some(ValueKind::Number)
        }
        "SafeString" | "SafeWString" | "u16 byte count, text" => Some(ValueKind::Text),
        layout if layout.ends_with(", terminated") => Some(ValueKind::Text),
        _ => None,
    };
    let fields = tables().chain(parts()).chain(game_parts()).flatten();
    let fields = fields.map(|field| (field.name, kind(&field)));
    let fields = fields.chain(MANAGER_NUMBERS.map(|name| (name, Some(ValueKind::Number))));
    let others = GAME.iter().chain(STATE).chain(SETUP).copied();
    let others =
        others.chain(NAMED_GAME.map(|(name, _)| name)).chain(MANAGER).map(|name| (name, None));
    let mut kinds = common_kinds(fields.chain(others));
    kinds.extend(FIELDS.iter().map(|field| (*field, ValueKind::Number)));
    kinds
}

/// The fields of all messages in the tables.
fn tables() -> impl Iterator<Item = Vec<FieldInfo>> {
    Service::ALL.into_iter().flat_map(|service| {
        let sides = Side::BOTH.into_iter();
        sides.flat_map(move |side| {
            table(service, side).messages.iter().map(|message| (message.fields)())
        })
    })
}

pub(super) fn classes(codec: &str) -> Vec<ClassRow> {
    match codec {
        "uru.net-message" => CLASSES.iter().map(net_class).collect(),
        "uru.plasma-message" => PlasmaMessage::INFO.iter().map(plasma_class).collect(),
        _ => Vec::new(),
    }
}

fn net_class(row: &NetClassInfo) -> ClassRow {
    let sender = match (row.layout, row.sender) {
        (NetClassLayout::Known, Some(side)) => side.name(),
        (NetClassLayout::Known, None) => "both",
        _ => "",
    };
    let status = match (row.layout, row.is_used) {
        (NetClassLayout::Abstract, _) => "abstract",
        (NetClassLayout::Unknown, _) => "layout unknown",
        (NetClassLayout::Known, false) => "unused",
        (NetClassLayout::Known, true) => "",
    };
    ClassRow {
        class: row.class.into(),
        name: row.name,
        parent: row.parent,
        sender,
        status,
        doc: row.doc,
        fields: NetMessage::info(row.class.into()).and_then(|info| info.fields),
    }
}

/// Describes a class of Plasma messages. Both sides send them, and no source lists the sender of
/// each.
fn plasma_class(info: &ClassInfo) -> ClassRow {
    ClassRow {
        class: info.class,
        name: info.name,
        parent: info.parent,
        sender: "",
        status: if info.fields.is_some() { "" } else { "layout unknown" },
        doc: info.doc,
        fields: info.fields,
    }
}

/// The structures inside messages, by the name that layouts use.
pub(super) fn records() -> Vec<(&'static str, Vec<FieldInfo>)> {
    fn named<R: Record<'static>>() -> (&'static str, Vec<FieldInfo>) {
        (R::NAME, R::fields())
    }
    vec![
        ("vault node", vault_node()),
        ("manifest", ManifestEntry::fields()),
        ("file list", FileListEntry::fields()),
        ("plUoid", uoid()),
        ("plKey", uoid()),
        named::<NodeRef>(),
        named::<NetAgeInfo<'_>>(),
        named::<Score<'_>>(),
        named::<Rank<'_>>(),
        named::<Location>(),
        named::<UnifiedTime>(),
        named::<GroupOwnership>(),
        named::<MemberInfo<'_>>(),
        named::<Room<'_>>(),
        named::<SharedVariable<'_>>(),
        named::<ClientGuid<'_>>(),
        named::<NetGroupId>(),
        named::<Matrix44>(),
        named::<AgeLink<'_>>(),
        named::<AgeInfo<'_>>(),
        named::<SpawnPointInfo<'_>>(),
        named::<StageState<'_>>(),
        named::<MarkerParams<'_>>(),
        named::<TicTacToeParams>(),
    ]
}

/// The fields of a vault node, then the game's names for them.
pub(super) fn vault_node() -> Vec<FieldInfo> {
    /// The game's names, each once, with the types of nodes.
    static GAME: LazyLock<Vec<(&str, String, String)>> = LazyLock::new(|| {
        let mut rows: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for (kind, names) in FIELD_NAMES {
            let kind = kind.name().unwrap_or_default();
            for (name, field) in names {
                match rows.iter_mut().find(|(known, of, _)| known == name && of == field) {
                    Some((_, _, kinds)) => kinds.push(kind),
                    None => rows.push((name, field, vec![kind])),
                }
            }
        }
        let row = |(name, field, kinds): (&'static str, &str, Vec<&str>)| {
            let kind = if name == "FolderType" { ", StandardFolder" } else { "" };
            let nodes = kinds.join(", ");
            (name, format!("{field}{kind}"), format!("In nodes of type {nodes}."))
        };
        rows.into_iter().map(row).collect()
    });
    let game = GAME.iter().map(|(name, layout, doc)| FieldInfo::in_words(name, &**layout, doc));
    VaultNode::fields().into_iter().chain(game).collect()
}

/// The fields of a `plUoid`, which has no table.
fn uoid() -> Vec<FieldInfo> {
    let rows = [
        ("location", "Location", "The page."),
        ("loadMask", "u8 LoadMask, if present", "The hardware for which it is loaded."),
        ("classIndex", "u16", "The class of the object."),
        ("objectId", "u32", "The ID within its page; 0 if unknown."),
        ("name", "SafeString", "The name within its page."),
        ("cloneId", "u16, if it is a clone", "The clone's number."),
        ("cloneFiller", "u16, if it is a clone", "Always 0."),
        ("clonerId", "u32, if it is a clone", "The player whose client made the clone."),
    ];
    rows.map(|(name, layout, doc)| FieldInfo::in_words(name, layout, doc)).to_vec()
}

/// The fields of structures inside messages.
fn parts() -> Vec<Vec<FieldInfo>> {
    let mut parts: Vec<_> = records().into_iter().map(|(_, fields)| fields).collect();
    let classes: [&[ClassInfo]; 4] =
        [NetMessage::INFO, PlasmaMessage::INFO, AvatarObject::INFO, NotifyEvent::INFO];
    let classes = classes.into_iter().flatten().filter_map(|class| class.fields);
    parts.extend(classes.map(|fields| fields()));
    parts
}

/// The fields of all messages of games.
fn game_parts() -> Vec<Vec<FieldInfo>> {
    let scopes = game_manager::scopes().flat_map(|scope| Side::BOTH.map(|side| (scope, side)));
    let messages = scopes.flat_map(|(scope, side)| game_tables(scope, side)).flatten();
    messages.map(|message| (message.fields)()).collect()
}

/// Fields whose values have names.
pub(super) fn values() -> Vec<ValueNames<'static>> {
    let mut named: BTreeMap<&str, Vec<&'static Names>> = BTreeMap::new();
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for field in tables().chain(parts()).chain(game_parts()).flatten() {
        let words: Vec<&str> = field.layout.split(|c: char| !c.is_alphanumeric()).collect();
        match NAMED.iter().find(|(name, _)| words.contains(name)) {
            Some((_, names)) => named.entry(field.name).or_default().push(names),
            None => {
                others.insert(field.name);
            }
        }
    }
    // The numbers of messages in every table of games.
    let scopes = game_manager::scopes().flat_map(|scope| Side::BOTH.map(|side| (scope, side)));
    for (scope, side) in scopes {
        let names = worldwire_uru::games::message::names(scope, side);
        named.entry("messageId").or_default().push(names);
    }
    // The layout does not mention their type.
    named.entry("flags").or_default().push(ManifestFlags::NAMES);
    named.entry("bits").or_default().push(Caps::NAMES);
    for (field, names) in NAMED_GAME {
        named.entry(field).or_default().push(names);
    }
    others.extend(GAME);
    others.extend(MANAGER_NUMBERS.iter().chain(&MANAGER));
    others.extend(STATE);
    for field in SETUP {
        match NAMED_SETUP.iter().find(|(name, _)| name == field) {
            Some((_, names)) => named.entry(field).or_default().push(names),
            None => {
                others.insert(field);
            }
        }
    }
    let names = |sets: Vec<&'static Names>| -> BTreeSet<&str> {
        sets.into_iter().flat_map(Names::iter).map(|(_, name)| name).collect()
    };
    let values = named.into_iter().map(|(field, sets)| ValueNames {
        field,
        prefix: "",
        names: names(sets).into_iter().collect(),
        is_only: !others.contains(field),
    });
    values.collect()
}
