//! Compares net messages with the expectations in `NAME.expected.json`.

use std::path::Path;

use worldwire_core::json::Json;
use worldwire_core::value::{Content, parse_hex};
use worldwire_core::{Field, Limits, NodeRef, Reader, Value};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::schema::{Descriptors, Shape};
use worldwire_uru::sdl::{Blob, Scalar, StateRecord};
use worldwire_uru::types::Uoid;

pub(crate) type Outcome = Result<(), String>;

pub(crate) fn ensure(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

/// The result of comparing a message with its expectations.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// The number of fields that are as expected.
    pub(crate) compared: usize,
    /// The other fields, each with the expected and the actual value.
    pub(crate) different: Vec<String>,
}

/// The descriptors beside the captures.
pub(crate) fn descriptors(folder: &Path) -> Descriptors {
    let files = std::fs::read_dir(folder.join("sdl")).unwrap();
    let texts = files.map(|file| {
        let path = file.unwrap().path();
        (path.to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
    });
    let descriptors = Descriptors::load(texts.collect::<Vec<_>>());
    assert!(descriptors.problems().is_empty());
    descriptors
}

impl Agreement {
    /// Compares a message, whose traced node is `root`, with its expectations.
    pub(crate) fn of(
        root: NodeRef<'_, '_>,
        message: &NetMessage<'_>,
        wanted: &Json,
        descriptors: &Descriptors,
    ) -> Self {
        let mut agreement = Self::default();
        for (key, value) in wanted.as_object().unwrap() {
            let outcome = match key {
                "vars" => variables_agree(message, value, descriptors),
                _ => field_agrees(root, key, wanted, value).map_err(|why| vec![why]),
            };
            match outcome {
                Ok(compared) => agreement.compared += compared,
                Err(different) => {
                    let named = |why| format!("{key}: {why}");
                    agreement.different.extend(different.into_iter().map(named));
                }
            }
        }
        agreement
    }
}

/// Compares a field if the message has one. Returns how many fields were compared.
fn field_agrees(
    root: NodeRef<'_, '_>,
    key: &str,
    wanted: &Json,
    value: &Json,
) -> Result<usize, String> {
    let places: &[&str] = match key {
        "class" => &["class"],
        "payload" => &["stream.payload.class"],
        "flags" => &["flags"],
        "player" => &["playerId"],
        "compression" => &["stream.compression"],
        "object" => &["object", "uoid"],
        "is_player" => &["isPlayer"],
        "loading" => &["isLoading"],
        "initial" => &["isInitialState"],
        "persist" => &["persistOnServer"],
        "avatar" => &["isAvatarState"],
        "spawn" => &["stream.payload.spawnPoint"],
        "user_string" => &["stream.payload.userString"],
        "msg_is_player" => &["stream.payload.isPlayer"],
        "has_task" => &["stream.payload.hasInitialTask"],
        "clone" => &["stream.payload.clone"],
        "requestor" => &["stream.payload.requestor"],
        "originating" => &["stream.payload.originatingPlayerId"],
        "user_data" => &["stream.payload.userData"],
        "msg_loading" => &["stream.payload.loading"],
        "trigger" => &["stream.payload.trigger"],
        "unload" => &["unload"],
        "page_flags" => &["pageFlags"],
        "leaving" => &["stream.payload.leaving"],
        "link_key" => &["stream.payload.linkKey"],
        "invis" => &["stream.payload.invisLevel"],
        "effect_flags" => &["stream.payload.effects"],
        "lock_request" => &["lockRequest"],
        "shared_name" => &["stream.sharedState.name"],
        "may_delete" => &["stream.sharedState.serverMayDelete"],
        "shared_value" => &["stream.sharedState.variables[0].value.value"],
        "notify_type" => &["stream.payload.notifyType"],
        "notify_state" => &["stream.payload.state"],
        "notify_id" => &["stream.payload.id"],
        "ki_command" => &["stream.payload.command"],
        "user" => &["stream.payload.user"],
        "ki_player" => &["stream.payload.playerId"],
        "text" => &["stream.payload.text"],
        "ki_flags" => &["stream.payload.flags"],
        "count" => &["stateCount"],
        "reply" => &["stream.payload.replyType"],
        "adding" => &["wasAdded"],
        "state" => &["stream.payload.state"],
        "anim" => &["stream.payload.animName"],
        "loop" => &["stream.payload.loopName"],
        "begin" => &["stream.payload.begin"],
        "end" => &["stream.payload.end"],
        "loop_begin" => &["stream.payload.loopBegin"],
        "loop_end" => &["stream.payload.loopEnd"],
        "speed" => &["stream.payload.speed"],
        "rate" => &["stream.payload.speedChangeRate"],
        "anim_time" => &["stream.payload.time"],
        "voice_flags" => &["voiceFlags"],
        "frames" => &["frameCount"],
        "warp_flags" => &["stream.payload.warpFlags"],
        // This key is not a separate field, or it belongs to the state inside.
        _ => &[],
    };
    if places.is_empty() {
        return other_agrees(root, key, wanted, value);
    }
    let node = places.iter().find_map(|place| find(root, place)).ok_or("is missing")?;
    agrees(node, value).map(|()| 1)
}

fn other_agrees(
    root: NodeRef<'_, '_>,
    key: &str,
    wanted: &Json,
    value: &Json,
) -> Result<usize, String> {
    match key {
        "payload_index" => {
            let payload = find(root, "stream.payload").ok_or("is missing")?.raw();
            let class = payload.first_chunk().map(|class| u16::from_le_bytes(*class));
            ensure(class.map(u64::from) == value.as_u64(), "another class")
        }
        "msg" => {
            let payload = find(root, "stream.payload").ok_or("is missing")?;
            let flags = payload.child("bcastFlags").ok_or("no flags")?;
            let (zero, none) = (Json::from(0), Json::from("-"));
            agrees(flags, value.get("bcast").unwrap_or(&zero))?;
            agrees(
                payload.child("sender").ok_or("no sender")?,
                value.get("sender").unwrap_or(&none),
            )?;
            let receivers = payload.child("receivers").ok_or("no receivers")?;
            list_agrees(receivers, value.get("receivers"), agrees)
        }
        "rooms" => list_agrees(root.child("rooms").ok_or("no rooms")?, Some(value), |room, it| {
            let location = room.child("location").ok_or("no location")?;
            agrees(location.child("sequenceNumber").ok_or("no number")?, &it["seq"])?;
            agrees(location.child("flags").ok_or("no flags")?, &it["loc_flags"])?;
            agrees(room.child("name").ok_or("no name")?, &it["name"])
        }),
        "groups" => list_agrees(root.child("groups").ok_or("none")?, Some(value), |group, it| {
            let location = group.child("location").ok_or("no location")?;
            agrees(location.child("sequenceNumber").ok_or("no number")?, &it["seq"])?;
            agrees(location.child("flags").ok_or("no flags")?, &it["loc_flags"])?;
            agrees(group.child("owned").ok_or("no owner")?, &it["own"])
        }),
        "member" => member_agrees(root.child("member").ok_or("no member")?, value),
        "members" => list_agrees(root.child("members").ok_or("none")?, Some(value), member_agrees),
        "players" => list_agrees(root.child("receivers").ok_or("none")?, Some(value), agrees),
        "shared_vars" => {
            let variables = find(root, "stream.sharedState.variables").ok_or("none")?;
            ensure(value == variables.children().count(), "another count")
        }
        "events" => {
            let events = find(root, "stream.payload.events").ok_or("none")?;
            ensure(value == events.children().count(), "another count")
        }
        "event_types" => {
            let events = find(root, "stream.payload.events").ok_or("none")?;
            list_agrees(events, Some(value), |event, it| {
                agrees(event.child("class").ok_or("no type")?, it)
            })
        }
        "voice_len" => {
            let voice = ["pcm", "speex", "opus"].into_iter().find_map(|name| root.child(name));
            let length = voice.ok_or("no voice")?.raw().len() - 2;
            ensure(value == length, "another length")
        }
        // The state's descriptor comes after two bytes of flags.
        "sdl" if wanted.get("sdl_unreadable").is_none() => {
            let blob = find(root, "stream.sdl").ok_or("no state")?.raw();
            let mut reader = Reader::new(&blob[2..]);
            let name = worldwire_uru::types::SafeString::decode(&mut reader, "name");
            ensure(name.is_ok_and(|name| *value == *name.to_text()), "another descriptor")
        }
        // These follow only from the recording's bytes, or belong to the state.
        "len" | "sha256_16" | "sdl" | "sdl_version" | "sdl_record_flags" | "sdl_unreadable"
        | "client_throws" | "note" => return Ok(0),
        _ => Err("nothing is known about it".to_owned()),
    }
    .map(|()| 1)
}

fn member_agrees(member: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let client = member.child("client").ok_or("no client")?;
    agrees(client.child("playerId").ok_or("no player")?, &wanted["ki"])?;
    agrees(client.child("playerName").ok_or("no name")?, &wanted["name"])?;
    agrees(client.child("flags").ok_or("no flags")?, &wanted["guid_flags"])?;
    agrees(member.child("flags").ok_or("no flags")?, &wanted["member_flags"])?;
    match wanted.get("avatar") {
        Some(avatar) => agrees(member.child("avatar").ok_or("no avatar")?, avatar),
        None => Ok(()),
    }
}

fn list_agrees(
    list: NodeRef<'_, '_>,
    wanted: Option<&Json>,
    agrees: impl Fn(NodeRef<'_, '_>, &Json) -> Outcome,
) -> Outcome {
    let none = Vec::new();
    let wanted = wanted.and_then(Json::as_array).unwrap_or(&none);
    let nodes: Vec<_> = list.children().collect();
    ensure(nodes.len() == wanted.len(), format!("{} elements", nodes.len()))?;
    nodes.into_iter().zip(wanted).enumerate().try_for_each(|(index, (node, wanted))| {
        agrees(node, wanted).map_err(|why| format!("[{index}]: {why}"))
    })
}

/// A descendant, by names and list indices.
fn find<'t, 'n>(node: NodeRef<'t, 'n>, path: &str) -> Option<NodeRef<'t, 'n>> {
    path.split('.').try_fold(node, |node, name| match name.strip_suffix("[0]") {
        Some(list) => node.child(list)?.children().next(),
        None => node.child(name),
    })
}

fn agrees(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let mut found = String::new();
    worldwire_core::text::write_value(node, 0, &mut found);
    let good = match (node.value(), wanted) {
        (Value::Null, Json::String(none)) => **none == *"-",
        (Value::Bool(found), Json::Bool(wanted)) => found == *wanted,
        (Value::Bool(found), Json::String(wanted)) => **wanted == *if found { "1" } else { "0" },
        (Value::Bool(found), Json::Number(wanted)) => wanted.as_u64() == Some(found.into()),
        (Value::F32(found), wanted) => {
            wanted.as_f64().is_some_and(|wanted| (f64::from(found) - wanted).abs() < 0.001)
        }
        (Value::Enum(number, _), Json::Number(wanted)) => wanted.as_i64() == Some(number),
        (Value::Enum(number, names), Json::String(wanted)) => names.name(number) == Some(wanted),
        (Value::Signed(found), Json::Number(wanted)) => wanted.as_i64() == Some(found),
        // An object or a nested message.
        (Value::Record, Json::String(wanted)) => match node.child("class") {
            Some(class) => return agrees(class, &Json::String(wanted.clone())),
            None if node.child("location").is_some() => uoid_text(node).as_deref() == Some(wanted),
            // A text with attributes besides its characters.
            None => return agrees(node.child("text").ok_or(found)?, &Json::String(wanted.clone())),
        },
        (Value::Span(_), Json::String(wanted)) => match node.content() {
            Some(Content::Text(text)) => *text == **wanted,
            Some(Content::Bytes(bytes)) => {
                *String::from_utf8_lossy(&bytes) == **wanted
                    || parse_hex(wanted).is_some_and(|wanted| wanted == *bytes)
            }
            None => false,
        },
        (_, Json::Number(wanted)) => {
            node.unsigned().is_some() && node.unsigned() == wanted.as_u64()
        }
        _ => false,
    };
    ensure(good, format!("wanted {wanted}, found {found}"))
}

/// `class:name@sequence/locationflags#objectid!cloneid,player`.
fn uoid_text(node: NodeRef<'_, '_>) -> Option<String> {
    use std::fmt::Write as _;
    let number = |node: Option<NodeRef<'_, '_>>| node.and_then(|node| node.unsigned());
    let location = node.child("location")?;
    let name = match node.child("name")?.content()? {
        Content::Text(text) => text.into_owned(),
        Content::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let Value::Flags(flags, _) = location.child("flags")?.value() else { return None };
    let mut text = format!(
        "{:04x}:{name}@{:08x}/{flags:x}",
        number(node.child("classIndex"))?,
        number(location.child("sequenceNumber"))?,
    );
    let id = number(node.child("objectId"))?;
    if id != 0 {
        let _ = write!(text, "#{id}");
    }
    if let (Some(clone), Some(player)) =
        (number(node.child("cloneId")), number(node.child("clonerId")))
    {
        let _ = write!(text, "!{clone},{player}");
    }
    Some(text)
}

/// Compares the variables of a state. Returns how many elements are as expected, or the difference.
fn variables_agree(
    message: &NetMessage<'_>,
    wanted: &Json,
    descriptors: &Descriptors,
) -> Result<usize, Vec<String>> {
    let state = match message {
        NetMessage::SdlState(state) => state,
        NetMessage::SdlStateBCast(broadcast) => &broadcast.state,
        _ => return Err(vec!["wanted a state, found another message".to_owned()]),
    };
    let mut inflater = Inflater::new();
    let payload = state.stream.payload(&mut inflater, &Limits::DEFAULT).unwrap();
    let blob = Blob::decode(descriptors, &mut Reader::new(payload));
    let blob = blob.map_err(|error| vec![error.to_string()])?;
    let found = variables(blob.descriptor.shape(), &blob.record);
    let (mut compared, mut different) = (0, Vec::new());
    compare("", wanted, &found, &mut compared, &mut different);
    if different.is_empty() { Ok(compared) } else { Err(different) }
}

fn compare(path: &str, wanted: &Json, found: &Json, compared: &mut usize, out: &mut Vec<String>) {
    let (Some(wanted_map), Some(found_map)) = (wanted.as_object(), found.as_object()) else {
        return match (wanted.as_array(), found.as_array()) {
            (Some(wanted), Some(found)) if wanted.len() == found.len() => {
                for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    compare(&format!("{path}[{index}]"), wanted, found, compared, out);
                }
            }
            _ if wanted == found => *compared += 1,
            _ => out.push(format!("{path}: wanted {wanted}, found {found}")),
        };
    };
    for (name, wanted) in wanted_map {
        let path = format!("{path}.{name}");
        match found_map.get(name) {
            Some(found) => compare(&path, wanted, found, compared, out),
            None => out.push(format!("{path}: missing")),
        }
    }
    for name in found_map.keys().filter(|name| !wanted_map.contains_key(name)) {
        out.push(format!("{path}.{name}: not wanted"));
    }
}

/// The variables that a record sets, as clients print them. Nested ones start with `$`.
fn variables(shape: Shape<'_>, record: &StateRecord<'_>) -> Json {
    let mut all = Json::Object(Default::default());
    for entry in &record.simple {
        let variable = shape.simple(entry.index as usize).unwrap();
        let simple = variable.simple_type().unwrap();
        if let Some(elements) = &entry.value {
            let scalars: Vec<Json> =
                elements.scalars(simple).map(|it| printed(&it).into()).collect();
            all[variable.name()] = scalars.into();
        }
    }
    for entry in &record.nested {
        let (variable, inner) = shape.nested(entry.index as usize).unwrap();
        let mut elements = vec![Json::Object(Default::default()); entry.length as usize];
        for element in &entry.elements {
            elements[element.index as usize] = variables(inner, &element.record);
        }
        all[format!("${}", variable.name())] = elements.into();
    }
    all
}

fn printed(scalar: &Scalar<'_>) -> String {
    let floats = |all: &[f32]| {
        let all: Vec<String> = all.iter().map(|one| format!("{one:.3}")).collect();
        format!("({})", all.join(","))
    };
    let bytes = |all: &[u8]| {
        let all: Vec<String> = all.iter().map(u8::to_string).collect();
        format!("({})", all.join(","))
    };
    match scalar {
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => format!("{value:.3}"),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Scalar::Key(object) => key_text(object),
        Scalar::Double(value) => format!("{value:.3}"),
        Scalar::Time(time) => format!("{}.{:03}", time.seconds, time.microseconds / 1000),
        Scalar::Byte(value) => value.to_string(),
        Scalar::Short(value) => value.to_string(),
        Scalar::Triple(all) => floats(all),
        Scalar::Quadruple(all) => floats(all),
        Scalar::Triple8(all) => bytes(all),
        Scalar::Quadruple8(all) => bytes(all),
        other => format!("{other:?}"),
    }
}

fn key_text(object: &Uoid<'_>) -> String {
    let Uoid { location, class_index, object_id, name, clone, .. } = object;
    let (number, flags) = (location.sequence_number.0, location.flags.0);
    let mut text = format!("{class_index:04x}:{}@{number:08x}/{flags:x}", name.to_text());
    if *object_id != 0 {
        text.push_str(&format!("#{object_id}"));
    }
    if let Some(clone) = clone {
        text.push_str(&format!("!{},{}", clone.id, clone.player_id));
    }
    text
}
