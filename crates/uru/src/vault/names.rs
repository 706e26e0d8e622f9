//! The game's names for the numbered fields of vault nodes. They depend on the node's type.

use worldwire_core::json::{Given, Json, Object};
use worldwire_core::{Error, Field, Form, Reader, Record, Result, Span, Trace, Value};

use super::{NodeBlob, NodeType, StandardFolder, VaultNode};
use crate::types::{TermStr, Uuid};

/// The game's name for a field, and the numbered field.
pub type FieldName = (&'static str, &'static str);

/// The field that holds the purpose of a list or directory. Its values have names.
const FOLDER_TYPE: &str = "FolderType";
/// The name of a blob field that contains text.
const SPAWN_POINTS: &str = "AgeSpawnPoints";

const FOLDER: &[FieldName] = &[(FOLDER_TYPE, "Int32_1"), ("FolderName", "String64_1")];

/// The game's names for numbered fields, by type of node.
///
/// Unverified: the names for marker games.
pub const FIELD_NAMES: [(NodeType, &[FieldName]); 14] = [
    (
        NodeType::Player,
        &[
            ("Disabled", "Int32_1"),
            ("Explorer", "Int32_2"),
            ("OnlineTime", "UInt32_1"),
            ("AccountUuid", "Uuid_1"),
            ("InviteUuid", "Uuid_2"),
            ("AvatarShapeName", "String64_1"),
            ("PlayerName", "IString64_1"),
        ],
    ),
    (
        NodeType::Age,
        &[("AgeInstUuid", "Uuid_1"), ("ParentAgeInstUuid", "Uuid_2"), ("AgeName", "String64_1")],
    ),
    (NodeType::Folder, FOLDER),
    (NodeType::PlayerInfoList, FOLDER),
    (NodeType::AgeInfoList, FOLDER),
    (
        NodeType::PlayerInfo,
        &[
            ("Online", "Int32_1"),
            ("CCRLevel", "Int32_2"),
            ("PlayerId", "UInt32_1"),
            ("AgeInstUuid", "Uuid_1"),
            ("AgeInstName", "String64_1"),
            ("PlayerName", "IString64_1"),
        ],
    ),
    (NodeType::System, &[("CCRStatus", "Int32_1")]),
    (
        NodeType::Image,
        &[("ImageType", "Int32_1"), ("ImageTitle", "String64_1"), ("ImageData", "Blob_1")],
    ),
    (
        NodeType::TextNote,
        &[
            ("NoteType", "Int32_1"),
            ("NoteSubType", "Int32_2"),
            ("NoteTitle", "String64_1"),
            ("NoteContents", "Text_1"),
        ],
    ),
    (NodeType::SDL, &[("SDLIdent", "Int32_1"), ("SDLName", "String64_1"), ("SDLData", "Blob_1")]),
    (
        NodeType::AgeLink,
        &[("AgeUnlocked", "Int32_1"), ("AgeVolatile", "Int32_2"), (SPAWN_POINTS, "Blob_1")],
    ),
    (
        NodeType::Chronicle,
        &[("EntryType", "Int32_1"), ("EntryName", "String64_1"), ("EntryValue", "Text_1")],
    ),
    (
        NodeType::AgeInfo,
        &[
            ("AgeSequenceNumber", "Int32_1"),
            ("IsPublic", "Int32_2"),
            ("AgeLanguage", "Int32_3"),
            ("AgeId", "UInt32_1"),
            ("AgeCzarId", "UInt32_2"),
            ("AgeInfoFlags", "UInt32_3"),
            ("AgeInstUuid", "Uuid_1"),
            ("ParentAgeInstUuid", "Uuid_2"),
            ("AgeFilename", "String64_2"),
            ("AgeInstName", "String64_3"),
            ("AgeUserDefinedName", "String64_4"),
            ("AgeDesc", "Text_1"),
        ],
    ),
    (
        NodeType::MarkerGame,
        &[
            ("GameGuid", "Uuid_1"),
            ("GameName", "Text_1"),
            ("Reward", "Text_2"),
            ("Markers", "Blob_1"),
        ],
    ),
];

/// The game's names for the numbered fields of nodes of a type.
#[must_use]
pub fn field_names(kind: Option<NodeType>) -> &'static [FieldName] {
    let of = FIELD_NAMES.iter().find(|(of, _)| Some(*of) == kind);
    of.map_or(&[], |(_, names)| names)
}

impl<'d> VaultNode<'d> {
    /// Decodes a node. If the node has a type, a trace shows each numbered field a second time,
    /// under the game's name for it.
    pub fn decode_named<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        if !T::ON {
            return Self::decode_fields(reader);
        }
        let whole = Self::decode_fields(&mut Reader::within(reader.rest(), reader.limits()));
        // The trace shows as much as can be decoded.
        let Ok(node) = whole else { return Self::decode_fields(reader) };
        reader.take(size_of::<u64>())?;
        let (mask, names) = (node.mask(), field_names(node.node_type));
        for (bit, field) in Self::FIELDS.iter().filter(|(bit, _)| mask >> bit & 1 == 1) {
            let name = names.iter().find(|(_, own)| own == field).map(|(name, _)| *name);
            let start = reader.place();
            let value = show_field(reader, *bit, field, name.unwrap_or_default())?;
            if let Some(name) = name {
                reader.leaf_from(name, start, value);
            }
        }
        Ok(node)
    }

    /// Reads a node from JSON. Fields can have their numbered names, the game's names, or both if
    /// their values agree.
    pub fn from_named_json(json: Given<'_>) -> Result<Self> {
        let Json::Object(given) = json.json() else { return Self::from_json(json) };
        let kind = given.get("NodeType").and_then(|kind| NodeType::from_json(json.at(kind)).ok());
        let names = field_names(kind);
        if !names.iter().any(|(name, _)| given.contains_key(name)) {
            return Self::from_json(json);
        }
        let mut fields = given.clone();
        for (name, field) in names {
            let Some(value) = fields.remove(name) else { continue };
            let value = numbered(name, value).map_err(|error| error.inside(name))?;
            match fields.get(field) {
                None => drop(fields.insert(field, value)),
                // Users edit the decoded contents of a blob.
                Some(Json::Object(own)) if is_opened(own) => {}
                Some(own) if *own == value => {}
                Some(_) => {
                    let error = Error::value(format!("the value of {field}"), "a different value");
                    let error = error.hint(format!("leave out `{field}` or `{name}`"));
                    return Err(error.inside(name));
                }
            }
        }
        Self::from_json(json.at(&Json::Object(fields)))
    }
}

/// Reads a field and traces it. Returns the value to show under the game's name.
fn show_field<'n, T: Trace<'n>>(
    reader: &mut Reader<'_, T>,
    bit: u32,
    field: &'n str,
    name: &str,
) -> Result<Value<'n>> {
    Ok(match bit {
        4 | 5 | 16..=19 => {
            Uuid::decode(reader, field)?;
            reader.span_behind(Form::Guid, size_of::<Uuid>())
        }
        7 => Value::Enum(NodeType::decode(reader, field)?.0.into(), NodeType::NAMES),
        8..=11 => match i64::from(i32::decode(reader, field)?) {
            purpose if name == FOLDER_TYPE => Value::Enum(purpose, StandardFolder::NAMES),
            number => Value::Signed(number),
        },
        3 | 20..=29 => {
            let units = TermStr::decode(reader, field)?.units();
            match reader.span_behind(Form::Utf16, units * 2) {
                // A terminator follows the text.
                Value::Span(span) => {
                    Value::Span(Span { start: span.start.wrapping_sub(2), ..span })
                }
                other => other,
            }
        }
        30.. => {
            let length = NodeBlob::decode(reader, field)?.len();
            let form = if name == SPAWN_POINTS { Form::Utf8 } else { Form::Bytes };
            reader.span_behind(form, length)
        }
        _ => Value::Unsigned(u32::decode(reader, field)?.into()),
    })
}

/// The value of a numbered field, given the value under the game's name.
fn numbered(name: &str, value: Json) -> Result<Json> {
    match (name, value.as_str()) {
        (FOLDER_TYPE, Some(_)) => {
            let purpose = StandardFolder::from_json((&value).into())?;
            Ok(i64::from(purpose.0).into())
        }
        (SPAWN_POINTS, Some(text)) => {
            let mut shown = String::new();
            worldwire_core::value::push_hex(&mut shown, text.as_bytes());
            Ok(Json::Object([("$hex", Json::from(shown))].into_iter().collect()))
        }
        _ => Ok(value),
    }
}

/// Whether a blob is shown with its decoded contents.
fn is_opened(blob: &Object) -> bool {
    blob.keys().any(|key| key != "$hex")
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::{self, Json, Style, write_children};
    use worldwire_core::{Sampler, Tree, Writer};

    use super::*;

    fn node(json: &str) -> Result<VaultNode<'static>> {
        let json = json::parse(json).unwrap();
        VaultNode::from_named_json((&json).into()).map(Field::into_owned)
    }

    #[test]
    fn names_belong_to_fields_of_the_right_kind() {
        let fields: Vec<_> = VaultNode::FIELDS.iter().map(|(_, field)| *field).collect();
        for (index, (kind, names)) in FIELD_NAMES.iter().enumerate() {
            assert!(FIELD_NAMES[..index].iter().all(|(other, _)| other != kind));
            assert_eq!(field_names(Some(*kind)), *names);
            for (name, field) in *names {
                assert!(fields.contains(field) && !fields.contains(name), "{name}");
                assert_eq!(names.iter().filter(|(_, own)| own == field).count(), 1, "{field}");
            }
        }
        assert!(field_names(None).is_empty() && field_names(Some(NodeType(0))).is_empty());
    }

    #[test]
    fn both_names_are_accepted() {
        let info = node(r#"{"NodeType":"PlayerInfo","PlayerName":"Ann","UInt32_1":7}"#).unwrap();
        assert_eq!((info.istring64_1.unwrap().to_text(), info.uint32_1), ("Ann".into(), Some(7)));
        let both = r#"{"NodeType":"PlayerInfo","PlayerId":7,"UInt32_1":7}"#;
        assert_eq!(node(both).unwrap().uint32_1, Some(7));
        let folder = |word: &str| node(&format!(r#"{{"NodeType":22,"FolderType":{word}}}"#));
        for word in ["\"Inbox\"", "1"] {
            assert_eq!(folder(word).unwrap().int32_1, Some(1));
        }
        let link = r#"{"NodeType":"AgeLink","AgeSpawnPoints":"a:b:;"}"#;
        assert_eq!(&*node(link).unwrap().blob_1.unwrap(), b"a:b:;");
        for (json, problem) in [
            (
                r#"{"NodeType":"PlayerInfo","PlayerId":7,"UInt32_1":8}"#,
                "PlayerId: wanted the value of UInt32_1, found a different value; leave out \
                 `UInt32_1` or `PlayerId`",
            ),
            (r#"{"PlayerId":7}"#, "wanted a known field, found \"PlayerId\""),
            (r#"{"NodeType":"Age","PlayerId":7}"#, "wanted a known field, found \"PlayerId\""),
            (r#"{"NodeType":"Folder","FolderType":"Inbx"}"#, "FolderType"),
        ] {
            let error = node(json).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    /// A trace's output encodes to the same bytes, whether it has both names or only one.
    #[test]
    fn shown_nodes_encode_to_the_same_bytes() {
        for seed in 0..300 {
            let mut sampler = Sampler::new(seed);
            let mut sample = VaultNode::sample(&mut sampler);
            let (kind, names) = FIELD_NAMES[usize::try_from(seed).unwrap() % FIELD_NAMES.len()];
            sample.node_type = Some(kind);
            let mut writer = Writer::new();
            sample.encode(&mut writer).unwrap();
            let bytes = writer.into_bytes();
            let mut reader = Reader::traced("node", &bytes, Tree::new());
            let outcome = VaultNode::decode_named(&mut reader);
            let (tree, outcome) = reader.conclude(outcome);
            assert_eq!(outcome.unwrap(), sample);
            let mut shown = String::new();
            write_children(Value::Record, tree.roots(), Style::default(), &mut shown);
            let Json::Object(all) = json::parse(&shown).unwrap() else { panic!("{shown}") };
            let (mut game, mut plain) = (all.clone(), all.clone());
            for (name, field) in names {
                assert_eq!(all.contains_key(name), all.contains_key(field), "{shown}");
                game.remove(field);
                plain.remove(name);
            }
            for fields in [all, game, plain] {
                let json = Json::Object(fields);
                let back = VaultNode::from_named_json((&json).into()).unwrap();
                let mut writer = Writer::new();
                back.encode(&mut writer).unwrap();
                assert_eq!(writer.as_bytes(), bytes, "{shown}");
            }
        }
    }
}
