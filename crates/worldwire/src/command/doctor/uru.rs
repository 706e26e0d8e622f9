//! Findings about Uru net messages and game manager messages.

use worldwire_core::{Limits, Reader, Side};
use worldwire_dissect::Item;
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::games::{self, GameType};
use worldwire_uru::message::game::{client, server};
use worldwire_uru::safety::lint::{lint, lint_connect, lint_frame};
use worldwire_uru::types::ClassIndex;

/// Remarks about a message or a connect packet, and about the message inside.
pub(super) fn remarks(item: &Item<'_>, limits: &Limits) -> Vec<String> {
    if item.family != "uru" || item.message().is_none() {
        return Vec::new();
    }
    let mut name = String::new();
    item.push_name(&mut name);
    let mut all = around(item, &name, limits);
    all.extend(inside(item, &name, limits));
    all
}

/// Remarks about a message of any service or about a connect packet.
fn around(item: &Item<'_>, name: &str, limits: &Limits) -> Vec<String> {
    let (service, _) = name.split_once('.').unwrap_or_default();
    let remarks = match Service::from_name(service) {
        Some(service) => lint_frame(service, item.from, item.bytes(), limits),
        None if service == "connect" => {
            let packet = ConnectPacket::decode_fields(&mut Reader::new(item.bytes()));
            packet.map(|packet| lint_connect(&packet)).unwrap_or_default()
        }
        None if name == "setup.Error" => {
            vec!["clients ignore this packet; servers close the connection instead".to_owned()]
        }
        None => Vec::new(),
    };
    remarks.into_iter().map(|remark| format!("{name}: {remark}")).collect()
}

fn inside(item: &Item<'_>, name: &str, limits: &Limits) -> Vec<String> {
    if name == "game.GameMgrMsg" {
        return inside_games(item, name, limits);
    }
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

/// Remarks about a game manager message.
fn inside_games(item: &Item<'_>, name: &str, limits: &Limits) -> Vec<String> {
    let decoded = Message::decode(Service::Game, item.from, &mut Reader::new(item.bytes()));
    let buffer = match &decoded {
        Ok(Message::GameClient(client::ClientMessage::GameMgrMsg(message))) => &*message.buffer,
        Ok(Message::GameServer(server::ServerMessage::GameMgrMsg(message))) => &*message.buffer,
        _ => return Vec::new(),
    };
    // The name of the message begins with the type of its game, which the conversation revealed.
    let mut inside = String::new();
    item.push_inside(&mut inside);
    let game = inside.trim().split_once('.').and_then(|(game, _)| GameType::from_name(game));
    let remarks = games::lint(game, item.from, buffer, limits).into_iter();
    remarks.map(|remark| format!("{name}{inside}: {remark}")).collect()
}

/// The class that precedes a net message, and the message.
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

#[cfg(test)]
mod tests {
    use worldwire_core::json::Json;
    use worldwire_core::{Error, Result, Tree};
    use worldwire_dissect::{ItemBody, Message as Said, Stamp};

    use super::*;

    /// A message of a game connection.
    #[derive(Debug)]
    struct Game(&'static [u8]);

    impl Said for Game {
        fn push_name(&self, name: &mut String) {
            name.push_str("game.PropagateBuffer");
        }

        fn bytes(&self) -> &[u8] {
            self.0
        }

        fn is_message(&self) -> bool {
            true
        }

        fn is_whole(&self) -> bool {
            true
        }

        fn tree_of<'t>(&'t self, _: &'t [u8], tree: Tree<'t>, _: &'t Limits) -> Tree<'t> {
            tree
        }

        fn encode(&self, _: &Json) -> Result<Vec<u8>> {
            Err(Error::value("nothing", "something"))
        }
    }

    fn found(bytes: &'static [u8], from: Side) -> Vec<String> {
        let (stamp, message) = (Stamp::default(), Game(bytes));
        let body = ItemBody::Message(&message);
        let range = 0..bytes.len() as u64;
        remarks(&Item::new(stamp, "uru", from, range, body), &Limits::DEFAULT)
    }

    #[test]
    fn odd_net_messages_are_named() {
        // A plNetMsgMembersListReq with time and player.
        let good = b"\x02\0\xad\x02\0\0\x12\0\0\0\xad\x02\x01\x10\x06\0abcdabcdabcd";
        assert_eq!(found(good, Side::Client), [""; 0]);
        assert_eq!(
            found(good, Side::Server),
            ["game.PropagateBuffer: plNetMsgMembersListReq: servers do not send this class"]
        );
        let other = b"\x02\0\xae\x02\0\0\x02\0\0\0\xad\x02";
        assert_eq!(
            found(other, Side::Client),
            ["game.PropagateBuffer: plNetMsgMembersList: class at byte 0: \
                 wanted class 0x02ae, as announced by the PropagateBuffer, found 0x02ad",]
        );
    }
}
