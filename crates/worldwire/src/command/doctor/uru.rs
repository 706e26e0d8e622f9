//! What there is to say about the net messages of Uru.

use worldwire_core::{Limits, Reader, Side};
use worldwire_dissect::Item;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::game::{client, server};
use worldwire_uru::safety::lint::lint;
use worldwire_uru::types::ClassIndex;

/// What is odd about the net message of an item, if it has one.
pub(super) fn remarks(item: &Item<'_>, limits: &Limits) -> Vec<String> {
    if item.family != "uru" || !item.message().is_some_and(|message| message.is_message()) {
        return Vec::new();
    }
    let mut name = String::new();
    item.push_name(&mut name);
    if name != "game.PropagateBuffer" {
        return Vec::new();
    }
    let Some((class, buffer)) = net_message(item.bytes(), item.from) else { return Vec::new() };
    let class_name = class.name().unwrap_or("net message");
    let remarks = lint(class, &buffer, item.from, limits).into_iter();
    // Errors name the class themselves.
    let named = |remark: String| match remark.starts_with(class_name) {
        true => format!("{name}: {remark}"),
        false => format!("{name}: {class_name}: {remark}"),
    };
    remarks.map(named).collect()
}

/// The class in front of a net message, and the message.
fn net_message(bytes: &[u8], from: Side) -> Option<(ClassIndex, Vec<u8>)> {
    match Message::decode(Service::Game, from, &mut Reader::new(bytes)).ok()? {
        Message::GameClient(client::ClientMessage::PropagateBuffer(message)) => {
            Some((message.type_, message.buffer.to_vec()))
        }
        Message::GameServer(server::ServerMessage::PropagateBuffer(message)) => {
            Some((message.type_, message.buffer.to_vec()))
        }
        _ => None,
    }
}
