//! KI's definitions as Lua.

use worldwire_core::Side;
use worldwire_dissect::Definitions;
use worldwire_ki::control::{Control, Opcode};
use worldwire_ki::schema::Protocols;
use worldwire_ki::types::FieldValue;

use super::lua::Lua;
use super::{Part, shapes};

pub(super) fn part(definitions: &Definitions) -> Part {
    let protocols = definitions.part::<Protocols>();
    let (mut lua, mut messages) = (Lua::default(), 0);
    lua.line("-- By service and number: the name and the fields.");
    lua.line("local MESSAGES, CONTROLS, SERVICES = {}, {}, {}");
    for protocol in protocols.iter() {
        let service = protocols.service_name(protocol.service);
        lua.line(&format!("SERVICES[{}] = {}", protocol.service, Lua::quoted(&service)));
        for message in protocol.messages() {
            let mut entries = Vec::new();
            for field in message.fields() {
                let layout = match (field.names(), field.kind.size()) {
                    (Some(names), Some(size)) => {
                        format!("{{ \"e\", {size}, {} }}", lua.names(names))
                    }
                    _ => shapes::layout_of(&FieldValue::shape(field.kind), &mut lua),
                };
                entries.push(format!("{{ {}, {layout} }}", Lua::quoted(&field.name)));
            }
            let number = u32::from(message.service) * 256 + u32::from(message.order);
            let name = Lua::quoted(&format!("{service}.{}", message.tag));
            lua.line(&format!("MESSAGES[{number}] = {{ {name}, {{ {} }} }}", entries.join(", ")));
            messages += 1;
        }
    }
    for (number, name) in Opcode::NAMES.iter() {
        let sides = Side::BOTH.map(|side| {
            let opcode = Opcode(u8::try_from(number).unwrap_or(u8::MAX));
            let (fields, _) = shapes::fields(&Control::fields(opcode, side), &mut lua);
            format!("{} = {fields}", side.name())
        });
        let sides = sides.join(", ");
        lua.line(&format!("CONTROLS[{number}] = {{ name = {}, {sides} }}", Lua::quoted(name)));
    }
    Part {
        prefix: "ki",
        title: "KI",
        transports: "\"tcp\"",
        tables: lua.into_source(),
        code: include_str!("ki.lua"),
        messages,
        opaque: Vec::new(),
    }
}
