//! MxO: reliable messages and object sections, over a bad network whose losses the ends repair.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, EventOf, SendError};
use worldwire_dissect::{Definitions, Keys};
use worldwire_mxo::connection::{
    ClientConfig, Connection, News, PacketNumber, ServerConfig, Session, Unit,
};
use worldwire_mxo::crypt::{KeyFile, KnownSession, SessionKey};
use worldwire_mxo::frame::{OBJECTS, Packet, RpcList, RpcMessage, Section, SequenceWord};

use super::choices::Choices;
use super::end::{Bare, Heard, Machine, Speaker};
use super::packet_model::PacketModel;
use super::{Content, Network, World, start};

const SESSION: u32 = 0x1f2e_3d4c;
const KEY: [u8; 16] = [0x4b; 16];
/// The time since 1970 when a play begins.
const EPOCH: Duration = Duration::from_secs(1_248_965_312);

/// Cached, because reading them takes longer than a run.
static DEFINITIONS: LazyLock<Arc<Definitions>> =
    LazyLock::new(|| Arc::new(Definitions::built_in()));
static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| {
    let session = KnownSession { id: Some(SESSION), key: SessionKey::new(&KEY) };
    Arc::new(Keys::parse(&KeyFile::format_session(&session)).expect("a key file"))
});

/// Creates a conversation over a network that the choices select.
pub(super) fn world(choices: &mut Choices) -> World {
    let session = |seed| Session::new(SESSION, SessionKey::new(&KEY), &[seed; 16]);
    let now = Duration::ZERO;
    let client = Connection::client(ClientConfig::new(EPOCH, 2), session(1), now);
    let server = Connection::server(ServerConfig::new(EPOCH), session(2), now);
    let trouble = match choices.below(3) {
        0 => [[0; 3]; 2],
        1 => [[5, 5, 5]; 2],
        _ => [[15, 10, 20]; 2],
    };
    let count = AtomicU32::new(0);
    let content = Arc::new(Content {
        can_add: true,
        added,
        make: Box::new(move |_, _, choices| make(count.fetch_add(1, Ordering::Relaxed), choices)),
        normal: |_, _| {},
        is_upkeep: |_| false,
    });
    let end = |side, connection| {
        let speaker = Mxo { objects: HashMap::new() };
        Box::new(Machine { side, connection, speaker, wrapping: Box::new(Bare) })
    };
    let (session, known) = start("mxo", &DEFINITIONS, &KEYS, true);
    World {
        ends: [end(Side::Client, client), end(Side::Server, server)],
        session,
        known,
        network: Network { is_datagrams: true, trouble },
        model: Box::new(PacketModel::new(Arc::clone(&content))),
        content,
        opening: Vec::new(),
    }
}

/// The opcode of all reliable messages.
pub(super) const RPC: u8 = 0x28;

/// A reliable message, or an update of an unknown view, with this number.
fn make(number: u32, choices: &mut Choices) -> Vec<u8> {
    let is_reliable = choices.percent(60);
    let length = choices.index(40);
    let mut sampler = choices.sampler();
    let mut body = match is_reliable {
        true => vec![RPC],
        false => vec![OBJECTS, 0xcd, 0xab],
    };
    body.extend(number.to_le_bytes());
    body.extend(sampler.bytes(length));
    if !is_reliable {
        // The end of the section.
        body.extend([0xff, 0, 0]);
    }
    body
}

/// A packet with a message or section, as a relay adds it.
fn added(body: &[u8]) -> Vec<u8> {
    let section = match body.split_first() {
        Some((&OBJECTS, bytes)) => Section::Objects(bytes.into()),
        _ => Section::Rpc(vec![RpcList { first: 0, messages: vec![RpcMessage::of(body)] }]),
    };
    let packet = Packet { sections: vec![section], ..Packet::new(0, SequenceWord::default()) };
    packet.to_bytes().expect("it is short")
}

#[derive(Debug)]
struct Mxo {
    /// The object sections by packet, until they are acknowledged.
    objects: HashMap<PacketNumber, Vec<u8>>,
}

impl Speaker for Mxo {
    type Connection = Connection;

    fn say(&mut self, connection: &mut Connection, body: &[u8]) -> Result<(), SendError> {
        if body.first() != Some(&OBJECTS) {
            return connection.send(&RpcMessage::of(body));
        }
        let number = connection.sender().send_objects(body, None)?;
        let before = self.objects.insert(number, body.to_vec());
        assert_eq!(before, None, "a number is used twice");
        Ok(())
    }

    fn hear(&mut self, event: EventOf<'_, Connection>) -> Option<Heard> {
        match event {
            Event::Received(received) => {
                let is_content = matches!(received.unit, Unit::Rpc { .. } | Unit::Section { .. });
                is_content.then(|| Heard::Message(received.bytes.to_vec()))
            }
            Event::News(News::Delivered(number) | News::Late(number)) => {
                Some(Heard::Acknowledged(self.objects.get(&number)?.clone()))
            }
            _ => None,
        }
    }
}
