//! The start of the game channel: datagrams, RPC messages and updates of objects.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, Style, json};
use worldwire_core::testing::{agrees, hex, render};
use worldwire_core::{Content, NodeRef, Reader, Side, Tree, Writer};
use worldwire_mxo::frame::{Packet, Plain, RpcList, RpcMessage, Section};
use worldwire_mxo::message::{Context, Section as ObjectSection, Viewed};
use worldwire_mxo::rpc::{ClientRpc, ServerRpc};
use worldwire_mxo::schema::Objects;

use super::expected::renamed;
use super::{Outcome, array, channel_of, same, session_key, text, written};

/// Checks the start of the game channel.
pub(super) fn datagram(case: &Json) -> Outcome {
    match case["kind"].as_str() {
        Some("hello") => hello(case),
        Some("answer") => {
            let bytes = hex(case, "datagram")?;
            same(&Plain::decode(&mut Reader::new(&bytes)).map_err(text)?, &Plain::Answer)
        }
        Some("rpc") => rpc(case),
        Some("packet") => packet(case),
        Some("npc_update") => update(case, "npc", "block1"),
        Some("player_state") => update(case, "player", ""),
        other => Err(format!("no test for {other:?}")),
    }
}

fn hello(case: &Json) -> Outcome {
    let (bytes, decoded) = (hex(case, "datagram")?, &case["decoded"]);
    let plain = Plain::decode(&mut Reader::new(&bytes)).map_err(text)?;
    same(&plain.to_bytes().map_err(text)?, &bytes)?;
    let Plain::Hello(hello) = plain else { return Err("not a hello".into()) };
    same(&json!(hello.character_uid), &decoded["character"])?;
    same(&json!(hello.unknown), &decoded["word"])?;
    same(&hello.encrypted_session, &array(decoded, "block")?)?;
    let block = session_key(case)?.open_block(&hello.encrypted_session);
    same(&json!(session_key(case)?.session_id(&hello.encrypted_session)), &decoded["session"])?;
    same(&block[4..].to_vec(), &hex(decoded, "pad")?)
}

fn rpc(case: &Json) -> Outcome {
    let body = hex(case, "body")?;
    let (_, from) =
        channel_of(&json!({"channel": "margin", "direction": case["direction"].clone()}))?;
    let message = RpcMessage::of(&body);
    same(&json!(message.opcode()), &case["opcode"])?;
    let wire = written(|writer| message.encode(writer))?;
    let mut reader = Reader::traced("message", &wire, Tree::new());
    RpcMessage::decode(&mut reader, Some(from)).map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    let read = RpcMessage::from_json((&json).into(), Some(from)).map_err(text)?;
    same(&read.body.to_vec(), &body)?;
    let again = match from {
        Side::Client => ClientRpc::decode(&body).map_err(text)?.ok_or("unknown")?.encode(),
        Side::Server => ServerRpc::decode(&body).map_err(text)?.ok_or("unknown")?.encode(),
    };
    same(&again.map_err(text)?.body.to_vec(), &body)?;
    let mut wanted =
        renamed(&case["decoded"], &[("one", "unknown1"), ("character", "characterId")]);
    if let Some(x) = wanted.get("x").cloned() {
        wanted = json!({
            "object": wanted["object"].clone(),
            "position": {"x": x, "y": wanted["y"].clone(), "z": wanted["z"].clone()}
        });
    }
    if wanted["value"] == "" {
        wanted["value"] = Json::Null;
    }
    agrees(tree.find("fields").ok_or("no fields")?, &wanted)
}

/// Checks the flags and RPC messages of a packet, without the fields before them.
fn packet(case: &Json) -> Outcome {
    let payload = hex(case, "payload")?;
    let mut counted = Writer::new();
    counted.u16(u16::try_from(payload.len() + 4).unwrap());
    counted.u32(1_248_965_312);
    counted.bytes(&[0; 4]);
    counted.bytes(&payload);
    let bytes = [&crc32fast::hash(counted.as_bytes()).to_le_bytes(), counted.as_bytes()].concat();
    let packet = Packet::decode(&mut Reader::new(&bytes), Some(Side::Client)).map_err(text)?;
    same(&json!(packet.flags.0), &case["decoded"]["flags"])?;
    let [Section::Rpc(lists)] = &packet.sections[..] else { return Err("no RPC lists".into()) };
    let found = lists.iter().flat_map(RpcList::numbered).map(|(number, message)| {
        let body: String = message.body.iter().map(|byte| format!("{byte:02x}")).collect();
        json!([number, body])
    });
    same(&Json::from(found.collect::<Vec<_>>()), &case["decoded"]["rpcs"])?;
    same(&packet.to_bytes().map_err(text)?, &bytes)
}

/// Checks the blocks of an update: view 5 is an NPC, and view 3 is another player.
fn update(case: &Json, class: &str, first: &str) -> Outcome {
    let objects = Objects::built_in();
    let (class, _) = objects.class_named(class).ok_or("no class")?;
    let view: u16 = if first.is_empty() { 3 } else { 5 };
    let body = hex(case, "body")?;
    let views = BTreeMap::from([(view, Viewed { class, guess: false })]);
    let context = Context::server(&objects, &views);
    let bytes = [&[3][..], &view.to_le_bytes(), &body, &[0, 0]].concat();
    let mut reader = Reader::traced("section", &bytes, Tree::new());
    let section = ObjectSection::decode(&mut reader, &context).map_err(text)?;
    reader.end().map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    same(&ObjectSection::from_json(&json, &context).map_err(text)?, &section)?;
    same(&written(|writer| section.encode(&objects, Side::Server, writer))?, &bytes)?;
    let shown = tree.find("operations[0].update").ok_or("no update")?;
    expect_update(&case["decoded"], shown)
}

/// Compares an update with a case's flat list of fields.
fn expect_update(decoded: &Json, shown: NodeRef<'_, '_>) -> Outcome {
    for (key, wanted) in decoded.as_object().ok_or("no decoded")? {
        let node = |path: &[&str]| {
            path.iter()
                .try_fold(shown, |node, name| node.child(name))
                .ok_or_else(|| format!("no {key}"))
        };
        match key {
            "mask" | "block1" => agrees(node(&[key])?, wanted)?,
            "properties" => {
                for (name, wanted) in wanted.as_object().ok_or("no properties")? {
                    let property = node(&["properties", name])?;
                    // Without a known type, a property is bytes.
                    let wanted = match (property.content(), wanted.as_u64()) {
                        (Some(Content::Bytes(bytes)), Some(number)) => {
                            let digits = number.to_le_bytes();
                            let digits = digits.get(..bytes.len()).unwrap_or_default();
                            json!(digits.iter().map(|it| format!("{it:02x}")).collect::<String>())
                        }
                        _ => wanted.clone(),
                    };
                    agrees(property, &wanted)?;
                }
            }
            "counter" => agrees(node(&["movement", "script_counter"])?, wanted)?,
            "position" => {
                let parts = wanted.as_array().unwrap_or_default().iter().zip(["x", "y", "z"]);
                for (part, name) in parts {
                    agrees(node(&["movement", "position", name])?, part)?;
                }
            }
            // 40 00 25 and the emote's ID.
            "script" => {
                let id = hex(decoded, "script")?[3..].try_into().map(u32::from_le_bytes);
                let id = json!(id.map_err(|_| "not an emote")?);
                agrees(node(&["movement", "script", "emote", "id"])?, &id)?;
            }
            other => agrees(node(&["movement", other])?, wanted)?,
        }
    }
    Ok(())
}
