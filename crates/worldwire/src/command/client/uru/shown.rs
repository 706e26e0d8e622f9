//! What steps yield, as people and programs read it.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use worldwire_client::uru::Notification;
use worldwire_core::json::{Style, parse, write_children};
use worldwire_core::{Field as _, Reader, Record as _, Tree, Value, Writer};
use worldwire_uru::vault::VaultNode;

use super::step::Step;
use crate::output::{indented, printable};

/// A JSON object per line, with the step in front.
pub(super) fn lines(step: &str, values: &[Json]) -> String {
    let mut out = String::new();
    for value in values {
        let mut line = serde_json::Map::new();
        line.insert("step".to_owned(), step.into());
        line.extend(value.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
        let _ = writeln!(out, "{}", Json::Object(line));
    }
    out
}

/// For people: a line for each value.
pub(super) fn text(step: &Step, values: &[Json]) -> String {
    let mut out = String::new();
    for value in values {
        if let (Step::Vault(_), Some(depth)) = (step, value["depth"].as_u64()) {
            let indent = indented(depth);
            let said = |key: &str| printable(value[key].as_str().unwrap_or_default());
            let again = if value["repeated"] == true { " (see above)" } else { "" };
            let gap = if value["title"].is_null() { "" } else { " " };
            let (kind, title) = (said("type"), said("title"));
            let _ = writeln!(out, "{indent}{} {kind}{gap}{title}{again}", value["id"]);
            continue;
        }
        let between = if matches!(step, Step::Node(_)) { "\n" } else { "  " };
        let pairs = value.as_object().into_iter().flatten().map(|(key, value)| match value {
            Json::String(text) => format!("{key} {}", printable(text)),
            other => format!("{key} {other}"),
        });
        let _ = writeln!(out, "{}", pairs.collect::<Vec<_>>().join(between));
    }
    if values.is_empty() {
        let _ = writeln!(out, "{}: {}", step.name(), if is_silent(step) { "ok" } else { "none" });
    }
    out
}

/// Whether a step yields nothing when all is well.
fn is_silent(step: &Step) -> bool {
    matches!(step, Step::Ping | Step::Logout | Step::SendNode(..) | Step::SetPublic(..))
}

/// The fields of a node that are set.
pub(super) fn node_fields(node: &VaultNode<'static>) -> Json {
    let mut writer = Writer::new();
    // What was read can be written.
    if node.encode(&mut writer).is_err() {
        return json!({});
    }
    let bytes = writer.into_bytes();
    let mut reader = Reader::traced("node", &bytes, Tree::default());
    let outcome = VaultNode::decode_fields(&mut reader);
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    parse(&out).unwrap_or_default()
}

/// What the server said unasked.
pub(super) fn notification(told: &Notification) -> Json {
    match told {
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
            json!({"told": "KickedOff", "reason": reason.to_string()})
        }
        other => json!({"told": format!("{other:?}")}),
    }
}
