//! Results of steps, as text and JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, from_str, json};
use worldwire_client::uru::games::PlayEvent;
use worldwire_client::uru::{Notification, SceneEvent};
use worldwire_core::json::{Style, write_children};
use worldwire_core::{Classes as _, Field as _, Reader, Side, Tree, Value, Writer};
use worldwire_uru::games::{GameMessage, GameScope};
use worldwire_uru::message::Caps;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::sdl::ChangedPart;
use worldwire_uru::types::{ClassIndex, TransId, Uoid};
use worldwire_uru::vault::VaultNode;

use super::age::SCENE_OBJECT;
use super::step::Step;
use crate::command::uru::drawn;
use crate::output::printable;

/// One JSON object per line, starting with the step. A step without results has one line with its
/// outcome, unless the absence of results is itself the result.
pub(super) fn lines(step: &str, values: &[Json]) -> String {
    let done = outcome(step).filter(|_| values.is_empty()).map(|done| json!({"outcome": done}));
    let mut out = String::new();
    for value in values.iter().chain(&done) {
        let mut line = serde_json::Map::new();
        line.insert("step".to_owned(), step.into());
        line.extend(value.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
        let _ = writeln!(out, "{}", Json::Object(line));
    }
    out
}

/// The results as text, one line per value.
pub(super) fn text(step: &Step, values: &[Json]) -> String {
    let mut out = String::new();
    for value in values {
        if matches!(step, Step::Vault(_)) && value["depth"].is_u64() {
            out.push_str(&drawn(std::slice::from_ref(value)));
            continue;
        }
        if let Some(sentence) = sentence(value) {
            let _ = writeln!(out, "{}", printable(&sentence));
            continue;
        }
        let between = if matches!(step, Step::Node(_)) { "\n" } else { "  " };
        // The description of an event comes first.
        let seen = value["seen"].as_str().map(printable);
        let pairs = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "seen");
        let pairs = pairs.map(|(key, value)| match value {
            Json::String(text) => format!("{key} {}", printable(text)),
            other => format!("{key} {other}"),
        });
        let pairs = seen.into_iter().chain(pairs);
        let _ = writeln!(out, "{}", pairs.collect::<Vec<_>>().join(between));
    }
    if values.is_empty() {
        let _ = writeln!(out, "{}: {}", step.name(), outcome(step.name()).unwrap_or("none"));
    }
    out
}

/// An event or a notification as a sentence. `None` for anything else, and for states and messages,
/// which have too many values.
fn sentence(value: &Json) -> Option<String> {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let number = |key: &str| value[key].as_u64().unwrap_or_default();
    let (player, object) = (number("player"), text("object"));
    if let Some(seen) = value["seen"].as_str() {
        return Some(match seen {
            "Came" => format!("{} (player {player}) is in the age", text("name")),
            "Went" => format!("{} (player {player}) has left the age", text("name")),
            "Chat" => format!("{} says: {}", text("name"), text("text")),
            "Avatar" => format!("avatar {object} appears"),
            "AvatarGone" => format!("avatar {object} disappears"),
            "Clone" => format!("object {object} appears"),
            "CloneGone" => format!("object {object} disappears"),
            "Moved" => match value["position"].as_array() {
                Some(place) => {
                    let place: Vec<String> = place
                        .iter()
                        .map(|it| format!("{:.1}", it.as_f64().unwrap_or_default()))
                        .collect();
                    format!("player {player} moves to {}", place.join(", "))
                }
                None => format!("player {player} moves"),
            },
            "Lock" if value["granted"] == true => format!("the lock on {object} is granted"),
            "Lock" => format!("the lock on {object} is refused: another player holds it"),
            "Owner" if value["owner"] == true => {
                "this client is responsible for the age's objects".to_owned()
            }
            "Owner" => "another client is responsible for the age's objects".to_owned(),
            "AllThere" => "all of the age's states have arrived".to_owned(),
            _ => return None,
        });
    }
    let (node, parent, child) = (number("id"), number("parent"), number("child"));
    Some(match value["told"].as_str()? {
        "NodeChanged" => format!("vault node {node} has changed"),
        "NodeDeleted" => format!("vault node {node} has been deleted"),
        "NodeAdded" => format!("vault node {child} has been added to {parent}"),
        "NodeRemoved" => format!("vault node {child} has been removed from {parent}"),
        "ServerCaps" => {
            let words = value["words"].as_array().into_iter().flatten();
            let bits = words.enumerate().flat_map(|(index, word)| {
                let word = word.as_u64().unwrap_or_default();
                (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 32 + bit)
            });
            let names: Vec<String> = bits
                .map(|bit| {
                    let name = i64::try_from(bit).ok().and_then(|bit| Caps::NAMES.name(bit));
                    name.map_or_else(|| format!("feature {bit}"), str::to_owned)
                })
                .collect();
            match names.is_empty() {
                true => "the server offers no optional features".to_owned(),
                false => format!("the server offers {}", names.join(", ")),
            }
        }
        "NewBuild" => format!("the server has a new build of the client: {}", number("build")),
        "KickedOff" => format!("the server ended the session: {}", text("text")),
        _ => return None,
    })
}

/// The outcome of a step without results; `None` for steps that list something.
fn outcome(step: &str) -> Option<&'static str> {
    Some(match step {
        // Servers do not answer these steps.
        "send-node" | "set-public" | "press-cloth" | "choose" => "sent",
        "ping" | "logout" | "say" | "walk" | "release" | "set-state" | "leave" | "leave-game"
        | "play-markers" => "ok",
        _ => return None,
    })
}

pub(super) fn node_fields(node: &VaultNode<'static>) -> Json {
    let mut writer = Writer::new();
    // Anything that was decoded can be encoded.
    if node.encode(&mut writer).is_err() {
        return json!({});
    }
    let bytes = writer.into_bytes();
    let mut reader = Reader::traced("node", &bytes, Tree::default());
    let outcome = VaultNode::decode_named(&mut reader);
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    from_str(&out).unwrap_or_default()
}

pub(super) fn notification(notification: &Notification) -> Json {
    match notification {
        Notification::NodeChanged { node_id, revision_id } => {
            json!({"told": "NodeChanged", "id": node_id, "revision": revision_id.to_string()})
        }
        Notification::NodeDeleted { node_id } => json!({"told": "NodeDeleted", "id": node_id}),
        Notification::NodeAdded { parent_id, child_id, owner_id } => {
            json!({"told": "NodeAdded", "parent": parent_id, "child": child_id, "owner": owner_id})
        }
        Notification::NodeRemoved { parent_id, child_id } => {
            json!({"told": "NodeRemoved", "parent": parent_id, "child": child_id})
        }
        Notification::ServerCaps(caps) => json!({"told": "ServerCaps", "words": caps.bits.0}),
        Notification::ServerAddr { address, .. } => {
            json!({"told": "ServerAddr", "address": address.0.to_string()})
        }
        Notification::NewBuild(build) => json!({"told": "NewBuild", "build": build}),
        Notification::KickedOff(reason) => {
            json!({"told": "KickedOff", "reason": reason.to_string(), "text": reason.text()})
        }
        other => json!({"told": format!("{other:?}")}),
    }
}

/// An event in an age, as seen by the player.
pub(super) fn seen(seen: &SceneEvent) -> Json {
    match seen {
        SceneEvent::Joined { player, name } => {
            json!({"seen": "Came", "player": player, "name": name})
        }
        SceneEvent::Left { player, name } => {
            json!({"seen": "Went", "player": player, "name": name})
        }
        SceneEvent::Chat { player, name, text } => {
            json!({"seen": "Chat", "player": player, "name": name, "text": text})
        }
        SceneEvent::Clone { object, is_avatar, loaded } => {
            let what = match (is_avatar, loaded) {
                (true, true) => "Avatar",
                (true, false) => "AvatarGone",
                (false, true) => "Clone",
                (false, false) => "CloneGone",
            };
            json!({"seen": what, "object": object_shown(object)})
        }
        SceneEvent::Moved { player, position } => match position {
            Some(position) => json!({"seen": "Moved", "player": player, "position": position}),
            None => json!({"seen": "Moved", "player": player}),
        },
        SceneEvent::State { object, descriptor, player, changes } => {
            let mut shown = json!({
                "seen": "State",
                "object": object_shown(object),
                "descriptor": descriptor,
            });
            if let Some(player) = player {
                shown["player"] = json!(player);
            }
            for change in changes.iter().flatten() {
                let after = change.after.as_ref().and_then(|after| from_str(after.as_json()).ok());
                if change.part == ChangedPart::Value {
                    shown[&change.path] = after.unwrap_or_default();
                }
            }
            shown
        }
        SceneEvent::Lock { object, granted } => {
            json!({"seen": "Lock", "object": object_shown(object), "granted": granted})
        }
        SceneEvent::Owner(owner) => json!({"seen": "Owner", "owner": owner}),
        SceneEvent::StateComplete => json!({"seen": "AllThere"}),
        SceneEvent::Other { player, class, .. } => {
            json!({"seen": class_name(*class), "player": player})
        }
        other => json!({"seen": format!("{other:?}")}),
    }
}

/// A message of a game, by its name and fields. Other events follow from messages.
pub(super) fn played(event: &PlayEvent) -> Option<Json> {
    let PlayEvent::Message { game_id, game_type, body } = event else { return None };
    let scope = match (game_id, game_type) {
        (0, _) => GameScope::Manager,
        (_, Some(game)) => GameScope::Game(*game),
        (_, None) => GameScope::Unknown,
    };
    let name = body.name().map_or_else(|| body.number().to_string(), str::to_owned);
    let message = GameMessage { trans_id: TransId(0), game_id: *game_id, body: body.clone() };
    // Anything that was decoded can be encoded.
    let bytes = message.to_bytes().unwrap_or_default();
    let mut reader = Reader::traced("game", &bytes, Tree::default());
    let outcome = GameMessage::decode(*game_type, Side::Server, &mut reader);
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    let mut fields: Json = from_str(&out).unwrap_or_default();
    let mut shown = match fields["fields"].take() {
        Json::Null => json!({"body": fields["body"]}),
        fields => fields,
    };
    shown["seen"] = json!(format!("{}.{name}", scope.name()));
    if *game_id != 0 {
        shown["game"] = json!(game_id);
    }
    Some(shown)
}

fn class_name(class: ClassIndex) -> String {
    let name = NetMessage::NAMES.name(class.0.into());
    name.map_or_else(|| class.0.to_string(), str::to_owned)
}

/// The name of an object, in the syntax of steps.
fn object_shown(object: &Uoid<'_>) -> String {
    let mut shown = format!("{}@{:08x}", object.name.to_text(), object.location.sequence_number.0);
    if object.location.flags.0 != 0 {
        let _ = write!(shown, "/{}", object.location.flags.0);
    }
    if object.class_index != SCENE_OBJECT {
        let _ = write!(shown, ":{:x}", object.class_index);
    }
    if let Some(ids) = object.clone {
        let _ = write!(shown, "!{},{}", ids.id, ids.player_id);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sentences() {
        for (value, wanted) in [
            (
                json!({"seen": "Came", "player": 7, "name": "Ann"}),
                Some("Ann (player 7) is in the age"),
            ),
            (
                json!({"seen": "Moved", "player": 7, "position": [1.25, 0.0, -3.0]}),
                Some("player 7 moves to 1.2, 0.0, -3.0"),
            ),
            (
                json!({"seen": "Lock", "object": "Lever@00780022", "granted": false}),
                Some("the lock on Lever@00780022 is refused: another player holds it"),
            ),
            (
                json!({"told": "ServerCaps", "words": [3, 1 << 8]}),
                Some("the server offers ScoreLeaderBoards, BlueSpiral, feature 40"),
            ),
            (
                json!({"told": "ServerCaps", "words": []}),
                Some("the server offers no optional features"),
            ),
            (
                json!({"told": "NodeAdded", "parent": 5, "child": 6, "owner": 7}),
                Some("vault node 6 has been added to 5"),
            ),
            // A step's result is not an event.
            (json!({"player": 7, "name": "Ann"}), None),
        ] {
            assert_eq!(sentence(&value).as_deref(), wanted, "{value}");
        }
    }
}
