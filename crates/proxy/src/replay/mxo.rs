//! Replays of conversations on the game channel of The Matrix Online.
//!
//! | value | adapted |
//! | --- | --- |
//! | session ID and key | those of the live session |
//! | numbers of packets and RPC messages, acknowledgements, times | by the machine |
//!
//! A recorded packet is replayed as the RPC messages and object sections in it. The replay waits for
//! RPC messages. Object sections depend on the state of the world and can be lost, so the peer's
//! are ignored. Views keep their recorded numbers.

use core::time::Duration;
use std::collections::HashSet;

use worldwire_core::connection::{Connection as _, SendError};
use worldwire_core::json::{Json, bytes};
use worldwire_core::{Error, Reader, Result, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, Received, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::KeyFile;
use worldwire_mxo::frame::{
    CLIENT_RPCS, LEAVE, OBJECTS, Packet, Plain, RccFlags, RpcMessage, SERVER_RPCS, Section,
};

use super::actor::{Acting, Actor, Heard, Role};
use super::learnt::Links;
use super::script::{Script, Step};
use super::setup::ReplaySetup;

/// One side of a game channel.
#[derive(Debug)]
struct Mxo;

/// The name of object sections.
const SECTION: &str = "game.Objects";
/// The names of RPC messages begin with this.
const RPC: &str = "game.Rpc ";
/// An object section without objects, with which a server checks whether a client exists.
const EMPTY: [u8; 3] = [OBJECTS, 0, 0];

/// The machine of one side.
pub(super) fn actor(
    script: &Script,
    setup: &ReplaySetup,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> Result<Box<dyn Actor>> {
    let hello = script.setup(Side::Client, "setup.Hello");
    let hello = hello.map(|bytes| Plain::decode(&mut Reader::new(bytes)));
    let Some(Ok(Plain::Hello(hello))) = hello else {
        return Err(Error::invalid("the hello is missing"));
    };
    let keys = setup.keys.part::<KeyFile>();
    let Some(known) = keys.sessions().first() else {
        let wanted = "the key of the live session is missing; supply it with --live-keys";
        return Err(Error::invalid(wanted));
    };
    let mut seed = [0; 16];
    random(&mut seed);
    let session = Session::new(known.id.unwrap_or(1), known.key.clone(), &seed);
    let machine = match setup.own {
        Side::Client => {
            let mut config = ClientConfig::new(setup.epoch, hello.character_uid);
            config.setup_time = setup.patience;
            Connection::client(config, session, now)
        }
        Side::Server => {
            let mut config = ServerConfig::new(setup.epoch);
            config.setup_time = setup.patience;
            Connection::server(config, session, now)
        }
    };
    Ok(Box::new(Acting { role: Mxo, machine, own: setup.own }))
}

/// Splits packets into their parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The numbers of RPC messages that were seen, by sender.
    seen: [HashSet<u16>; 2],
}

/// The distance after which the number of an RPC message can be used again.
const REUSED: u16 = 0x4000;

impl Parts {
    /// The messages and sections of a packet, without repetitions.
    pub(super) fn split(&mut self, packet: Step) -> Vec<Step> {
        let from = packet.from;
        let decoded = Packet::decode(&mut Reader::new(&packet.body), Some(from));
        let Ok(decoded) = decoded else { return Vec::new() };
        if decoded.flags.contains(RccFlags::Reset) {
            self.seen = Default::default();
        }
        let part = |name: String, body: Vec<u8>| Step { name, body, kept: None, ..packet.clone() };
        let mut parts = Vec::new();
        let fields = packet.fields();
        for (index, section) in decoded.sections.iter().enumerate() {
            match section {
                // Without the tables, the section extends to the end of the packet.
                Section::Objects(rest) => {
                    let whole = || [&[OBJECTS], &**rest].concat();
                    let body = measured(&fields, index).unwrap_or_else(whole);
                    if body != EMPTY {
                        parts.push(part(SECTION.to_owned(), body));
                    }
                    parts.extend(self.rest(&packet, &fields, index + 1));
                    break;
                }
                Section::Rpc(lists) => {
                    for list in lists {
                        for (number, message) in list.numbered() {
                            if self.is_new(from, number) {
                                let body = message.body.to_vec();
                                parts.push(part(name(from, &body), body));
                            }
                        }
                    }
                }
                Section::Other { .. } => {}
            }
        }
        parts
    }

    /// The RPC messages after an object section, which only the fields show.
    fn rest(&mut self, packet: &Step, fields: &Json, first: usize) -> Vec<Step> {
        let mut parts = Vec::new();
        let sections = fields.get("sections").and_then(Json::as_array).unwrap_or_default();
        let lists = sections.iter().skip(first).filter_map(|it| it.get("lists")?.as_array());
        for list in lists.flatten() {
            let Some(number) = list.get("firstSeq").and_then(Json::as_u64) else { continue };
            let messages = list.get("messages").and_then(Json::as_array).unwrap_or_default();
            for (number, message) in (number..).zip(messages) {
                let Some(body) = body_of(packet.from, message) else { continue };
                let number = u16::try_from(number & 0xffff).unwrap_or(0);
                if self.is_new(packet.from, number) {
                    let name = name(packet.from, &body);
                    parts.push(Step { name, body, kept: None, ..packet.clone() });
                }
            }
        }
        parts
    }

    fn is_new(&mut self, from: Side, number: u16) -> bool {
        let Some(seen) = self.seen.get_mut(from.index()) else { return false };
        seen.remove(&number.wrapping_add(REUSED));
        seen.insert(number)
    }
}

/// The bytes of an object section whose length is known from the object tables.
fn measured(fields: &Json, index: usize) -> Option<Vec<u8>> {
    let objects = fields.get("sections")?.as_array()?.get(index)?.get("objects")?;
    bytes(objects.get("bytes").unwrap_or(objects)).ok()
}

/// The bytes of an RPC message, given its fields.
fn body_of(from: Side, message: &Json) -> Option<Vec<u8>> {
    let message = RpcMessage::from_json(message.into(), Some(from)).ok()?;
    Some(message.body.into_owned())
}

/// The name of an RPC message: `game.Rpc LoadWorld`.
fn name(from: Side, body: &[u8]) -> String {
    let opcode = RpcMessage::of(body).opcode();
    let names = if from == Side::Client { &CLIENT_RPCS } else { &SERVER_RPCS };
    match names.name(i64::from(opcode)) {
        Some(known) => format!("{RPC}{known}"),
        None => format!("{RPC}{opcode:#x}"),
    }
}

/// The fields of a part, as far as they matter here.
pub(super) fn fields(body: &[u8]) -> Json {
    let mut hex = String::new();
    worldwire_core::value::push_hex(&mut hex, body);
    let bytes: Json = [("$hex", Json::from(hex.as_str()))].into_iter().collect();
    [("body", bytes)].into_iter().collect()
}

impl Role for Mxo {
    type Machine = Connection;

    const LINKS: &'static [Links] = &[];

    fn send(
        &mut self,
        machine: &mut Connection,
        step: &Step,
        body: &[u8],
    ) -> core::result::Result<(), SendError> {
        match step.name == SECTION {
            true => machine.sender().send_objects(body, None).map(drop),
            false => machine.send(&RpcMessage::of(body)),
        }
    }

    /// Pings and acknowledgements are part of setup, or are not messages.
    fn is_upkeep(&self, _: &str) -> bool {
        false
    }

    fn is_unsolicited(&self, _: Side, name: &str, _: &dyn Fn() -> Json) -> bool {
        let leave = CLIENT_RPCS.name(i64::from(LEAVE)).unwrap_or_default();
        name == SECTION || name.strip_prefix(RPC) == Some(leave)
    }

    fn hears_relay(&self) -> bool {
        false
    }

    fn piece(&self, received: Received<'_>) -> Option<Heard> {
        let name = match received.unit {
            Unit::Rpc { .. } => name(received.side, received.bytes),
            Unit::Section { id: OBJECTS, .. } if received.bytes != EMPTY => SECTION.to_owned(),
            _ => return None,
        };
        Some(Heard { name, fields: fields(received.bytes), is_ignored: false })
    }

    fn unacknowledged(&self, machine: &mut Connection) -> usize {
        machine.sender().unacknowledged_bytes()
    }
}
