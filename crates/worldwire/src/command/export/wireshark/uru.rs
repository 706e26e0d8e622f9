//! Uru's built-in messages as Lua.

use worldwire_core::Side;
use worldwire_uru::connect::{ConnectPacket, ConnectionType, SetupPacket, SetupType};
use worldwire_uru::frame::{Service, table};

use super::lua::Lua;
use super::{Part, shapes};

pub(super) fn part() -> Part {
    let (mut lua, mut messages, mut opaque) = (Lua::default(), 0, Vec::new());
    lua.line("-- By connection type: the name, the fields, and the service.");
    lua.line("local CONNECTS, SETUPS, SETUP_NAMES, SERVICES = {}, {}, {}, {}");
    for (number, name) in ConnectionType::NAMES.iter() {
        let kind = ConnectionType(u8::try_from(number).unwrap_or(u8::MAX));
        let Some(fields) = ConnectPacket::fields_of(kind) else { continue };
        let (fields, _) = shapes::fields(&fields, &mut lua);
        let service =
            service_of(kind).map_or_else(|| "nil".to_owned(), |it| Lua::quoted(it.name()));
        let name = Lua::quoted(name);
        lua.line(&format!("CONNECTS[{number}] = {{ {name}, {fields}, {service} }}"));
    }
    for (number, name) in SetupType::NAMES.iter() {
        let kind = SetupType(u8::try_from(number).unwrap_or(u8::MAX));
        let (fields, _) = shapes::fields(&SetupPacket::fields_of(kind), &mut lua);
        lua.line(&format!("SETUPS[{}] = {fields}", number + 1));
        lua.line(&format!("SETUP_NAMES[{}] = {}", number + 1, Lua::quoted(name)));
    }
    for service in Service::ALL {
        lua.line(&format!("SERVICES.{} = {{ client = {{}}, server = {{}} }}", service.name()));
        for side in Side::BOTH {
            for message in table(service, side).messages {
                let (fields, is_whole) = shapes::fields(&(message.fields)(), &mut lua);
                let (number, name) = (message.number, Lua::quoted(message.name));
                let place = format!("SERVICES.{}.{}[{number}]", service.name(), side.name());
                lua.line(&format!("{place} = {{ {name}, {fields} }}"));
                messages += 1;
                if !is_whole {
                    opaque.push(format!("{}.{}", service.name(), message.name));
                }
            }
        }
    }
    Part {
        prefix: "uru",
        title: "Uru",
        transports: "\"tcp\"",
        tables: lua.into_source(),
        code: include_str!("uru.lua"),
        messages,
        opaque,
    }
}

/// The service that a client of a connection type asks for.
fn service_of(kind: ConnectionType) -> Option<Service> {
    match kind {
        ConnectionType::CliToAuth => Some(Service::Auth),
        ConnectionType::CliToGame => Some(Service::Game),
        ConnectionType::CliToFile => Some(Service::File),
        ConnectionType::CliToGateKeeper => Some(Service::Gatekeeper),
        _ => None,
    }
}
