//! The expectations of the cases, converted to the names and the structure of our trees.

use worldwire_core::json::{Json, Object, json};
use worldwire_core::testing::hex;
use worldwire_mxo::frame::Channel;

use super::same;

const CERTIFICATE: &[(&str, &str)] = &[
    ("version", "unknown1"),
    ("word", "unknown2"),
    ("zero", "unknown3"),
    ("expiry", "expires"),
    ("pad", "reserved"),
];
const CHARACTER: &[(&str, &str)] = &[("world", "worldId"), ("zero", "reserved")];
const WORLD: &[(&str, &str)] = &[("word", "unknown1"), ("zero", "reserved")];
const BACKGROUND: &[(&str, &str)] = &[
    ("background", "description"),
    ("cash", "information"),
    ("one", "unknown1"),
    ("points", "conquestPoints"),
    ("three", "unknown2"),
    ("list_a", "values"),
    ("list_b", "attributes"),
];

/// The expectation of a case, converted to the names and the structure of our trees.
pub(super) fn expectation(
    decoded: &Object,
    case: &Json,
    channel: Channel,
    body: &[u8],
) -> Result<Json, String> {
    let opcode = decoded.get("op").and_then(Json::as_u64).ok_or("no op")?;
    same(&u64::from(body[0]), &opcode)?;
    let mut fields = decoded.clone();
    fields.remove("op");
    let list = |name: &str, names| {
        let items = decoded.get(name).and_then(Json::as_array).unwrap_or_default();
        Json::from(items.iter().map(|item| renamed(item, names)).collect::<Vec<_>>())
    };
    let certificate = || {
        let certificate = decoded.get("certificate").map(|it| renamed(it, CERTIFICATE));
        let signature = decoded.get("signature").cloned();
        json!({"certificate": certificate.unwrap_or_default(), "signature": signature.unwrap_or_default()})
    };
    let rest = fields.remove("rest").unwrap_or_default();
    match (channel, opcode) {
        (Channel::Auth, 11) if decoded.contains_key("certificate") => {
            let status = fields.remove("status").unwrap_or_default();
            fields.insert("characters", list("characters", CHARACTER));
            fields.insert("worlds", list("worlds", WORLD));
            fields.remove("signature");
            fields.insert("certificate", certificate());
            let success = renamed(&Json::Object(fields), field_names(channel, opcode));
            return Ok(json!({"status": status, "success": success}));
        }
        (Channel::Auth, 11) => drop(fields.insert("reserved", rest)),
        (Channel::Auth, 53) | (Channel::Margin, 20) => return Ok(rest),
        (Channel::Margin, 1) => return Ok(json!({"certificate": certificate()})),
        (Channel::Margin, 16) => {
            if let Some(data) = fields.remove("data") {
                same(&hex(&json!({"data": data}), "data")?, &body[18..].to_vec())?;
            }
            if let Some(background) = case.get("background") {
                let pairs = |name: &str, names: [&str; 2]| {
                    let items = background[name].as_array().unwrap_or_default();
                    let pair = |item: &Json| {
                        object(
                            names
                                .iter()
                                .zip(item.as_array().unwrap_or_default())
                                .map(|(name, value)| ((*name).to_owned(), value.clone())),
                        )
                    };
                    Json::from(items.iter().map(pair).collect::<Vec<_>>())
                };
                let mut wanted = background.clone();
                wanted["list_a"] = pairs("list_a", ["number", "value"]);
                wanted["list_b"] = pairs("list_b", ["attribute", "value"]);
                fields.insert("data", renamed(&wanted, BACKGROUND));
            }
        }
        (Channel::Margin, 17) => {
            let rest = hex(&json!({"rest": rest}), "rest")?;
            let rest: Vec<Json> = rest.into_iter().map(|byte| json!(u64::from(byte))).collect();
            fields.insert("rest", Json::from(rest));
        }
        // The whole message has a layout, so nothing is left.
        _ => same(&rest.as_str().unwrap_or_default(), &"")?,
    }
    Ok(renamed(&Json::Object(fields), field_names(channel, opcode)))
}

/// Renames fields to the names of our trees.
pub(super) fn renamed(json: &Json, names: &[(&str, &str)]) -> Json {
    let entries = json.as_object().into_iter().flatten().map(|(key, value)| {
        let name = names.iter().find(|(old, _)| *old == key).map(|(_, new)| (*new).to_owned());
        (name.unwrap_or_else(|| camel_case(key)), value.clone())
    });
    object(entries)
}

/// The names of a message's fields in our trees, if they differ from those in the vectors.
fn field_names(channel: Channel, opcode: u64) -> &'static [(&'static str, &'static str)] {
    match (channel, opcode) {
        (Channel::Auth, 8) => &[("word", "unknown1")],
        (Channel::Auth, 11) => &[("word1", "unknown1"), ("word2", "unknown2")],
        (_, 6) => &[("nine", "unknown1"), ("md5", "digest"), ("last", "unknown2")],
        (_, 7) => &[("param1", "unknown1"), ("param2", "unknown2")],
        (_, 8) => &[("md5", "digest")],
        (_, 9) => &[("zero", "unknown1"), ("session", "sessionId"), ("words", "unknown2")],
        (_, 12) => &[("unknown9", "unknown1"), ("unknown57", "unknown2")],
        (_, 13) => &[("word", "unknown1"), ("character", "characterId")],
        (_, 15) => &[
            ("character", "characterId"),
            ("zeros", "reserved"),
            ("md5s", "digests"),
            ("text", "chatName"),
        ],
        (_, 16) => &[("character", "characterId"), ("last", "isLast")],
        _ => &[("character", "characterId")],
    }
}

fn object(entries: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut object = Object::new();
    entries.into_iter().for_each(|(key, value)| drop(object.insert(&key, value)));
    Json::Object(object)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        text.push_str(&word[..1].to_uppercase());
        text.push_str(&word[1..]);
    }
    text
}
