//! MxO's built-in messages as Lua.

use worldwire_core::{MessageInfo, Messages as _, Names, Side};
use worldwire_mxo::frame::{CLIENT_RPCS, RccFlags, SERVER_RPCS};
use worldwire_mxo::login::{
    AuthClientMessage, AuthServerMessage, MarginClientMessage, MarginServerMessage,
};
use worldwire_mxo::rpc::{ClientRpc, ServerRpc};

use super::lua::Lua;
use super::{Part, shapes};

pub(super) fn part() -> Part {
    let (mut lua, mut messages, mut opaque) = (Lua::default(), 0, Vec::new());
    lua.line("-- By side and opcode: the name and the fields.");
    lua.line("local RPCS, OPCODES = { client = {}, server = {} }, {}");
    let tables: [(Side, &[MessageInfo], &Names); 2] = [
        (Side::Client, ClientRpc::INFO, &CLIENT_RPCS),
        (Side::Server, ServerRpc::INFO, &SERVER_RPCS),
    ];
    for (side, known, names) in tables {
        let side = side.name();
        let names = lua.names(names);
        lua.line(&format!("OPCODES.{side} = {names}"));
        for message in known {
            let (fields, is_whole) = shapes::fields(&(message.fields)(), &mut lua);
            let (number, name) = (message.number, Lua::quoted(message.name));
            lua.line(&format!("RPCS.{side}[{number}] = {{ {name}, {fields} }}"));
            messages += 1;
            if !is_whole {
                opaque.push(format!("{} from the {side}", message.name));
            }
        }
    }
    lua.line("local LOGINS = { auth = { client = {}, server = {} }, margin = { client = {}, server = {} } }");
    let tables = [
        ("auth", Side::Client, AuthClientMessage::INFO),
        ("auth", Side::Server, AuthServerMessage::INFO),
        ("margin", Side::Client, MarginClientMessage::INFO),
        ("margin", Side::Server, MarginServerMessage::INFO),
    ];
    for (channel, side, known) in tables {
        for message in known {
            let (fields, is_whole) = shapes::fields(&(message.fields)(), &mut lua);
            let (number, name) = (message.number, Lua::quoted(message.name));
            let side = side.name();
            lua.line(&format!("LOGINS.{channel}.{side}[{number}] = {{ {name}, {fields} }}"));
            messages += 1;
            if !is_whole {
                opaque.push(format!("{channel}.{}", message.name));
            }
        }
    }
    let flags = lua.flags(RccFlags::NAMES);
    lua.line(&format!("local FLAGS, SIM_TIME = {flags}, {}", RccFlags::SimTime.0));
    let sections = lua.names(&worldwire_mxo::frame::SECTIONS);
    lua.line(&format!("local SECTIONS = {sections}"));
    Part {
        prefix: "mxo",
        title: "MxO",
        transports: "\"udp\", \"tcp\"",
        tables: lua.into_source(),
        code: include_str!("mxo.lua"),
        messages,
        opaque,
    }
}
